"""Choose among actions under budgets: see the request, act, and learn from the outcome of the action alone.

docs/guides/decisions.md explains it; examples/routing.py routes language models with it.
"""

from longterm.decisions.beliefs import LinearBelief
from longterm.decisions.budgets import Budget, Ceiling
from longterm.decisions.choice import Choice
from longterm.decisions.chooser import Chooser
from longterm.decisions.duals import Dual, EntropicDual, EuclideanDual, HedgeDual
from longterm.decisions.exponential_weights import EXP3IX, ExponentialWeights, FixedMixture
from longterm.decisions.hindsight import BestChoices, best_choices
from longterm.decisions.inverse_gap import InverseGapWeighting
from longterm.decisions.linear import LinearUCB, ThompsonSampling
from longterm.decisions.off_policy import OffPolicyEstimate, off_policy
from longterm.decisions.planned_price import PlannedPrice
from longterm.decisions.play import DecisionRun, OutcomeTable, play
from longterm.decisions.primal_dual import DecisionBound, PrimalDual
from longterm.decisions.primals import Primal
from longterm.decisions.regressors import Regressor, RidgeRegressor, TableRegressor
from longterm.decisions.router import Route, Router
from longterm.decisions.router_report import RouterReport
from longterm.decisions.text import WordHash

__all__ = [
    "EXP3IX",
    "BestChoices",
    "Budget",
    "Ceiling",
    "Choice",
    "Chooser",
    "DecisionBound",
    "DecisionRun",
    "Dual",
    "EntropicDual",
    "EuclideanDual",
    "ExponentialWeights",
    "FixedMixture",
    "HedgeDual",
    "InverseGapWeighting",
    "LinearBelief",
    "LinearUCB",
    "OffPolicyEstimate",
    "OutcomeTable",
    "PlannedPrice",
    "Primal",
    "PrimalDual",
    "Regressor",
    "RidgeRegressor",
    "Route",
    "Router",
    "RouterReport",
    "TableRegressor",
    "ThompsonSampling",
    "WordHash",
    "best_choices",
    "off_policy",
    "play",
]
