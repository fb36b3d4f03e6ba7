"""Money: budgets that are never overspent, ledgers, choosers of actions and pacers of bids."""

from longterm.money.budgets import Budget, Ceiling
from longterm.money.choosing.beliefs import LinearBelief
from longterm.money.choosing.choice import Choice
from longterm.money.choosing.chooser import Chooser
from longterm.money.choosing.duals import Dual, EntropicDual, EuclideanDual, HedgeDual
from longterm.money.choosing.exponential_weights import EXP3IX, ExponentialWeights, FixedMixture
from longterm.money.choosing.hindsight import BestChoices, best_choices
from longterm.money.choosing.inverse_gap import InverseGapWeighting
from longterm.money.choosing.linear import LinearUCB, ThompsonSampling
from longterm.money.choosing.off_policy import OffPolicyEstimate, off_policy
from longterm.money.choosing.planned_price import PlannedPrice
from longterm.money.choosing.play import DecisionRun, OutcomeTable, replay_outcomes
from longterm.money.choosing.primal_dual import DecisionBound, PrimalDual
from longterm.money.choosing.primals import Primal
from longterm.money.choosing.regressors import Regressor, RidgeRegressor, TableRegressor
from longterm.money.choosing.router import Route, Router
from longterm.money.choosing.router_report import RouterReport
from longterm.money.choosing.text import WordHash
from longterm.money.holds import ExcessHold
from longterm.money.ledger.accounts import Balance
from longterm.money.ledger.lease import Lease
from longterm.money.ledger.ledger import Ledger
from longterm.money.ledger.spending import LeasedAccount, SharedAccount
from longterm.money.pacing.auctions import Auctions, synthetic_auctions
from longterm.money.pacing.base import Outcome, Pacer
from longterm.money.pacing.first_price import FirstPricePacer
from longterm.money.pacing.hindsight import BestAllocation, BestReturn, best_in_hindsight, best_return
from longterm.money.pacing.history import PriceHistory
from longterm.money.pacing.landscapes import Landscape, LostPrices, SeenPrices, WonOrLost
from longterm.money.pacing.live import LiveBid, LivePacer
from longterm.money.pacing.mirror_descent import DualMirrorDescent, floor_shortfall, regret_bound
from longterm.money.pacing.planned import PlannedMirrorDescent
from longterm.money.pacing.play import PacingRun, replay_auctions
from longterm.money.pacing.return_on_spend import ReturnOnSpend

__all__ = [
    "EXP3IX",
    "Auctions",
    "Balance",
    "BestAllocation",
    "BestChoices",
    "BestReturn",
    "Budget",
    "Ceiling",
    "Choice",
    "Chooser",
    "DecisionBound",
    "DecisionRun",
    "Dual",
    "DualMirrorDescent",
    "EntropicDual",
    "EuclideanDual",
    "ExcessHold",
    "ExponentialWeights",
    "FirstPricePacer",
    "FixedMixture",
    "HedgeDual",
    "InverseGapWeighting",
    "Landscape",
    "Lease",
    "LeasedAccount",
    "Ledger",
    "LinearBelief",
    "LinearUCB",
    "LiveBid",
    "LivePacer",
    "LostPrices",
    "OffPolicyEstimate",
    "Outcome",
    "OutcomeTable",
    "Pacer",
    "PacingRun",
    "PlannedMirrorDescent",
    "PlannedPrice",
    "PriceHistory",
    "Primal",
    "PrimalDual",
    "Regressor",
    "ReturnOnSpend",
    "RidgeRegressor",
    "Route",
    "Router",
    "RouterReport",
    "SeenPrices",
    "SharedAccount",
    "TableRegressor",
    "ThompsonSampling",
    "WonOrLost",
    "WordHash",
    "best_choices",
    "best_in_hindsight",
    "best_return",
    "floor_shortfall",
    "off_policy",
    "regret_bound",
    "replay_auctions",
    "replay_outcomes",
    "synthetic_auctions",
]
