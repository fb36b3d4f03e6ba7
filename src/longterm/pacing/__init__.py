"""Budget pacing: see the request, then act, and never overspend.

`examples/pacing.py` runs it on real auctions; docs/pacing.md explains it.
"""

from longterm.pacing.auctions import Auctions, Replay, play, synthetic_auctions
from longterm.pacing.base import Outcome, Pacer
from longterm.pacing.controller import ProportionalController, tuned_controller
from longterm.pacing.hindsight import BestAllocation, best_in_hindsight
from longterm.pacing.history import PriceHistory
from longterm.pacing.mirror_descent import DualMirrorDescent, floor_shortfall, regret_bound
from longterm.pacing.mixture import PriceMixture
from longterm.pacing.planned import PlannedMirrorDescent

__all__ = [
    "Auctions",
    "BestAllocation",
    "DualMirrorDescent",
    "Outcome",
    "Pacer",
    "PlannedMirrorDescent",
    "PriceHistory",
    "PriceMixture",
    "ProportionalController",
    "Replay",
    "best_in_hindsight",
    "floor_shortfall",
    "play",
    "regret_bound",
    "synthetic_auctions",
    "tuned_controller",
]
