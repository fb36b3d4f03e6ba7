"""Adapters: River, ONNX, LiteLLM, PyTorch and Optax, each with an extra of that name. A module imports its library.

river            `BudgetLinearClassifier` and `BudgetLinearRegressor` that learn from dictionaries, one at a time
onnx             converters for skl2onnx
litellm_router   a routing strategy under a budget
torch, optax     `Multipliers` for constrained training loops
multipliers      the rules of both, without a dependency
"""
