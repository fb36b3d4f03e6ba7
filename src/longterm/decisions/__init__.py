"""Choose among actions under budgets: see the request, then act, learn from what was chosen only.

docs/decisions.md explains it; examples/routing.py routes language models with it.
"""

from longterm.decisions.choice import Choice
from longterm.decisions.chooser import Chooser
from longterm.decisions.duals import Budget, Dual, EntropicDual, EuclideanDual, HedgeDual
from longterm.decisions.hindsight import BestChoices, best_choices
from longterm.decisions.inverse_gap import InverseGapWeighting, PartialFit, Regressor, RidgeRegressor, TableRegressor
from longterm.decisions.linear import LinearBelief, LinearUCB, ThompsonSampling, WordHash
from longterm.decisions.play import Run, Table, Worth, off_policy, play
from longterm.decisions.primal_dual import Bound, PrimalDual
from longterm.decisions.primals import EXP3IX, FixedMixture, Hedge, Primal

__all__ = [
    "EXP3IX",
    "BestChoices",
    "Bound",
    "Budget",
    "Choice",
    "Chooser",
    "Dual",
    "EntropicDual",
    "EuclideanDual",
    "FixedMixture",
    "Hedge",
    "HedgeDual",
    "InverseGapWeighting",
    "LinearBelief",
    "LinearUCB",
    "PartialFit",
    "Primal",
    "PrimalDual",
    "Regressor",
    "RidgeRegressor",
    "Run",
    "Table",
    "TableRegressor",
    "ThompsonSampling",
    "WordHash",
    "Worth",
    "best_choices",
    "off_policy",
    "play",
]
