"""Budget pacing: see the request, then act, and never overspend.

`examples/pacing.py` runs it on real auctions; docs/pacing.md explains it.
"""

from longterm.pacing.auctions import Auctions, PriceHistory, synthetic_auctions
from longterm.pacing.base import Outcome, Pacer, Replay, play
from longterm.pacing.controller import ProportionalController, tuned_controller
from longterm.pacing.first_price import FirstPricePacer, FirstPriceRun, play_first_price
from longterm.pacing.hindsight import BestAllocation, BestReturn, best_first_price, best_in_hindsight, best_return
from longterm.pacing.landscapes import Landscape, LostPrices, SeenPrices, WonOrLost
from longterm.pacing.mirror_descent import DualMirrorDescent, PlannedMirrorDescent, floor_shortfall, regret_bound
from longterm.pacing.mixture import PriceMixture
from longterm.pacing.return_on_spend import ReturnOnSpend, ReturnRun, play_return
from longterm.pacing.several_budgets import SeveralBudgets

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
    "Replay",
    "ReturnOnSpend",
    "ReturnRun",
    "SeenPrices",
    "SeveralBudgets",
    "WonOrLost",
    "best_first_price",
    "best_in_hindsight",
    "best_return",
    "floor_shortfall",
    "play",
    "play_first_price",
    "play_return",
    "regret_bound",
    "synthetic_auctions",
    "tuned_controller",
]
