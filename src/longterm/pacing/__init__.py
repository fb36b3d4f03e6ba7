"""Budget pacing: see the request, then act, and never overspend.

`python -m longterm.pacing` runs it on real auctions; docs/pacing.md explains it.
"""

from longterm.pacing.auctions import Auctions, load_auctions, synthetic_auctions
from longterm.pacing.base import Outcome, Pacer
from longterm.pacing.controller import ProportionalController
from longterm.pacing.first_price import FirstPricePacer, FirstPriceRun, play_first_price
from longterm.pacing.guarantees import floor_shortfall, regret_bound
from longterm.pacing.hindsight import BestAllocation, best_in_hindsight
from longterm.pacing.history import PriceHistory, load_history
from longterm.pacing.landscapes import Landscape, LostPrices, SeenPrices, WonOrLost
from longterm.pacing.mirror_descent import DualMirrorDescent
from longterm.pacing.mixture import PriceMixture
from longterm.pacing.planned import PlannedMirrorDescent
from longterm.pacing.play import Run, play
from longterm.pacing.return_on_spend import BestReturn, ReturnOnSpend, ReturnRun, best_return, play_return
from longterm.pacing.several_budgets import SeveralBudgets
from longterm.pacing.tuning import tuned_controller

__all__ = [
    "Auctions",
    "BestAllocation",
    "BestReturn",
    "DualMirrorDescent",
    "FirstPricePacer",
    "FirstPriceRun",
    "Landscape",
    "LostPrices",
    "Outcome",
    "Pacer",
    "PlannedMirrorDescent",
    "PriceHistory",
    "PriceMixture",
    "ProportionalController",
    "ReturnOnSpend",
    "ReturnRun",
    "Run",
    "SeenPrices",
    "SeveralBudgets",
    "WonOrLost",
    "best_in_hindsight",
    "best_return",
    "floor_shortfall",
    "load_auctions",
    "load_history",
    "play",
    "play_first_price",
    "play_return",
    "regret_bound",
    "synthetic_auctions",
    "tuned_controller",
]
