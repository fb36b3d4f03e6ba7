"""Money: budgets that are never overspent, ledgers, choosers of actions and pacers of bids.

ledger     accounts with limits that many processes share
choosing   actions under budgets, and the router
pacing     bids under a budget

Decisions without a budget belong in `learners`, intervals in `calibration`.
"""

from longterm.money.budgets import Budget, Ceiling
from longterm.money.choosing.best_choices import best_choices
from longterm.money.choosing.chooser import Chooser
from longterm.money.choosing.duals import EntropicDual, EuclideanDual, HedgeDual
from longterm.money.choosing.exponential_weights import EXP3IX, ExponentialWeights, FixedMixture
from longterm.money.choosing.inverse_gap import InverseGapWeighting
from longterm.money.choosing.linear_primals import LinearUCB, ThompsonSampling
from longterm.money.choosing.off_policy import off_policy
from longterm.money.choosing.outcome_replay import OutcomeTable, replay_outcomes
from longterm.money.choosing.planned_price import PlannedPrice
from longterm.money.choosing.primal_dual import PrimalDual
from longterm.money.choosing.regressors import RidgeRegressor, TableRegressor
from longterm.money.choosing.router import Router
from longterm.money.choosing.text import WordHash
from longterm.money.holds import ExcessHold
from longterm.money.ledger.ledger import Ledger
from longterm.money.ledger.spending import LeasedAccount, SharedAccount
from longterm.money.pacing.auction_replay import replay_auctions
from longterm.money.pacing.auctions import Auctions, synthetic_auctions
from longterm.money.pacing.base import Outcome, Pacer
from longterm.money.pacing.best_allocation import best_in_hindsight, best_return
from longterm.money.pacing.first_price import FirstPricePacer
from longterm.money.pacing.live_pacer import LivePacer
from longterm.money.pacing.mirror_descent import DualMirrorDescent
from longterm.money.pacing.planned import PlannedMirrorDescent
from longterm.money.pacing.price_history import PriceHistory
from longterm.money.pacing.return_on_spend import ReturnOnSpend

__all__ = [
    "EXP3IX",
    "Auctions",
    "Budget",
    "Ceiling",
    "Chooser",
    "DualMirrorDescent",
    "EntropicDual",
    "EuclideanDual",
    "ExcessHold",
    "ExponentialWeights",
    "FirstPricePacer",
    "FixedMixture",
    "HedgeDual",
    "InverseGapWeighting",
    "LeasedAccount",
    "Ledger",
    "LinearUCB",
    "LivePacer",
    "Outcome",
    "OutcomeTable",
    "Pacer",
    "PlannedMirrorDescent",
    "PlannedPrice",
    "PriceHistory",
    "PrimalDual",
    "ReturnOnSpend",
    "RidgeRegressor",
    "Router",
    "SharedAccount",
    "TableRegressor",
    "ThompsonSampling",
    "WordHash",
    "best_choices",
    "best_in_hindsight",
    "best_return",
    "off_policy",
    "replay_auctions",
    "replay_outcomes",
    "synthetic_auctions",
]
