"""Linear models trained one row at a time under a budget: compiled streaming kernels and scikit-learn estimators.

BudgetLinearClassifier, BudgetLinearRegressor     scikit-learn's interface
BudgetLinearLearner                               one row at a time, for services
"""

from longterm.linear_model.classifier import BudgetLinearClassifier
from longterm.linear_model.regressor import BudgetLinearRegressor
from longterm.linear_model.streaming import BudgetLinearLearner

__all__ = ["BudgetLinearClassifier", "BudgetLinearLearner", "BudgetLinearRegressor"]
