"""Budget pacing: see the request, bid, and never overspend.

`examples/pacing.py` runs it on real auctions; docs/guides/pacing.md explains it.
"""

from longterm.pacing.auctions import Auctions, synthetic_auctions
from longterm.pacing.base import Outcome, Pacer
from longterm.pacing.first_price import FirstPricePacer
from longterm.pacing.hindsight import BestAllocation, BestReturn, best_in_hindsight, best_return
from longterm.pacing.history import PriceHistory
from longterm.pacing.landscapes import Landscape, LostPrices, SeenPrices, WonOrLost
from longterm.pacing.live import LiveBid, LivePacer
from longterm.pacing.mirror_descent import DualMirrorDescent, floor_shortfall, regret_bound
from longterm.pacing.planned import PlannedMirrorDescent
from longterm.pacing.play import PacingRun, play
from longterm.pacing.return_on_spend import ReturnOnSpend

__all__ = [
    "Auctions",
    "BestAllocation",
    "BestReturn",
    "DualMirrorDescent",
    "FirstPricePacer",
    "Landscape",
    "LiveBid",
    "LivePacer",
    "LostPrices",
    "Outcome",
    "Pacer",
    "PacingRun",
    "PlannedMirrorDescent",
    "PriceHistory",
    "ReturnOnSpend",
    "SeenPrices",
    "WonOrLost",
    "best_in_hindsight",
    "best_return",
    "floor_shortfall",
    "play",
    "regret_bound",
    "synthetic_auctions",
]
