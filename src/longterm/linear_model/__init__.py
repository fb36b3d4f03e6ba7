"""Linear models trained one row at a time under a budget (extra `linear`: numba, scikit-learn).

BudgetLinearClassifier, BudgetLinearRegressor     scikit-learn's interface
BudgetPathClassifier, BudgetPathRegressor         the same with the budget chosen out of many, in one pass
BudgetLinearLearner                               one row at a time, for services; scikit-learn is not imported
EvolvingLinearLearner                             the same where the past fades and features appear
compile_all                                       every kernel ahead of the first request
BudgetPath                                        many such learners on the same rows: which budget?
kernels                                           the compiled rules themselves, a private matter
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longterm.linear_model.precompile import compile_all
    from longterm.linear_model.classifier import BudgetLinearClassifier
    from longterm.linear_model.evolving import EvolvingLinearLearner
    from longterm.linear_model.path import BudgetPath, PathPoint, budgets_for
    from longterm.linear_model.path_estimators import BudgetPathClassifier, BudgetPathRegressor
    from longterm.linear_model.regressor import BudgetLinearRegressor
    from longterm.linear_model.streaming import BudgetLinearLearner

__all__ = [
    "BudgetLinearClassifier",
    "BudgetLinearLearner",
    "BudgetLinearRegressor",
    "BudgetPath",
    "BudgetPathClassifier",
    "BudgetPathRegressor",
    "EvolvingLinearLearner",
    "PathPoint",
    "budgets_for",
    "compile_all",
]

_MODULES = {
    "BudgetLinearClassifier": "classifier",
    "BudgetLinearRegressor": "regressor",
    "BudgetLinearLearner": "streaming",
    "EvolvingLinearLearner": "evolving",
    "compile_all": "precompile",
    "BudgetPath": "path",
    "BudgetPathClassifier": "path_estimators",
    "BudgetPathRegressor": "path_estimators",
    "PathPoint": "path",
    "budgets_for": "path",
}

for _needed in ("numba", "sklearn"):
    if find_spec(_needed) is None:
        raise ImportError(f"longterm.linear_model needs {_needed}: pip install 'longterm[linear]'")


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is: scikit-learn takes longer to import than everything else."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
