"""Other people's interfaces: River (extra `river`) and ONNX (extra `onnx`). Each module imports its library itself.

river     `BudgetLinearClassifier` and `BudgetLinearRegressor` that learn from dictionaries, one at a time
onnx      converters for skl2onnx
"""
