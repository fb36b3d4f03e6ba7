"""Adapters: River (extra `river`), ONNX (extra `onnx`) and LiteLLM (extra `litellm`). Each module imports its library.

river            `BudgetLinearClassifier` and `BudgetLinearRegressor` that learn from dictionaries, one at a time
onnx             converters for skl2onnx
litellm_router   a routing strategy under a budget
"""
