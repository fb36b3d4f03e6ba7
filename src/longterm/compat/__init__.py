"""Adapters: River, ONNX, LiteLLM, PyTorch, Optax, Ray and Spark, each with an extra of that name.

river            `BudgetLinearClassifier` and `BudgetLinearRegressor` that learn from dictionaries, one at a time
onnx             converters for skl2onnx
litellm_router   a routing strategy under a budget
torch, optax     `Multipliers` for constrained training loops
ray              an executor for experiments and the arena
spark            `decide`: a learner for each key of a stream
multipliers      the rules of both, without a dependency
"""
