"""Linear models trained one row at a time under a budget (extra `linear`: numba, scikit-learn).

BudgetLinearClassifier, BudgetLinearRegressor     scikit-learn estimators
BudgetPathClassifier, BudgetPathRegressor         estimators that choose their budget
FairLinearClassifier                              a classifier with parity between groups
BudgetLinearLearner                               one row at a time, for services; does not import scikit-learn
EvolvingLinearLearner                             the same with a half-life and new features
BudgetPath                                        learners with many budgets on the same rows
compile_all                                       compile all kernels before the first request
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from longterm._base.extras import missing_extra
from longterm._base.lazy import lazy_names

if TYPE_CHECKING:
    from longterm.linear_model.classifier import BudgetLinearClassifier
    from longterm.linear_model.evolving import EvolvingLinearLearner
    from longterm.linear_model.fair import FairLinearClassifier
    from longterm.linear_model.path import BudgetPath
    from longterm.linear_model.path_estimators import BudgetPathClassifier, BudgetPathRegressor
    from longterm.linear_model.precompile import compile_all
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
    "FairLinearClassifier",
    "compile_all",
]

_MODULES = {
    "BudgetLinearClassifier": "classifier",
    "BudgetLinearRegressor": "regressor",
    "BudgetLinearLearner": "streaming",
    "EvolvingLinearLearner": "evolving",
    "FairLinearClassifier": "fair",
    "compile_all": "precompile",
    "BudgetPath": "path",
    "BudgetPathClassifier": "path_estimators",
    "BudgetPathRegressor": "path_estimators",
}

for _requirement in ("numba", "sklearn"):
    if find_spec(_requirement) is None:
        raise missing_extra(f"longterm.linear_model needs {_requirement}", "linear")

__getattr__ = lazy_names(__name__, _MODULES)  # scikit-learn is slow to import


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
