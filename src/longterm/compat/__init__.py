"""Adapters to other libraries: River (extra `river`) and ONNX (extra `onnx`).

river     `BudgetLinearClassifier` and `BudgetLinearRegressor` for dictionaries, one at a time
onnx      converters for skl2onnx
"""
