"""Linear models trained one row at a time under a budget (extra `linear`: numba, scikit-learn).

BudgetLinearClassifier, BudgetLinearRegressor     scikit-learn's interface
BudgetLinearLearner                               one row at a time, for services; scikit-learn is not imported
compile_all                                       every kernel ahead of the first request
kernels                                           the compiled rules themselves, a private matter
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longterm.linear_model.ahead import compile_all
    from longterm.linear_model.classifier import BudgetLinearClassifier
    from longterm.linear_model.regressor import BudgetLinearRegressor
    from longterm.linear_model.streaming import BudgetLinearLearner

__all__ = ["BudgetLinearClassifier", "BudgetLinearLearner", "BudgetLinearRegressor", "compile_all"]

_MODULES = {
    "BudgetLinearClassifier": "classifier",
    "BudgetLinearRegressor": "regressor",
    "BudgetLinearLearner": "streaming",
    "compile_all": "ahead",
}

for _needed in ("numba", "sklearn"):
    if find_spec(_needed) is None:
        raise ImportError(f"longterm.linear_model needs {_needed}: install longterm[linear]")


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is: scikit-learn takes longer to import than everything else."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
