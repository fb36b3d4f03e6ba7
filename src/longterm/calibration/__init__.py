"""Thresholds, intervals and holds whose error rate is a long-term constraint.

`Calibration` is the rule: it keeps the share of scores above a threshold at a nominal level on every sequence, for
every group, without a step size. `Intervals`, the estimators and `PanelIntervals` apply it to forecasts.
Nothing here chooses or spends: decisions under a budget belong in `money`.
"""

from longterm.calibration import published
from longterm.calibration.estimators import OnlineConformalClassifier, OnlineConformalRegressor
from longterm.calibration.intervals import Intervals
from longterm.calibration.live_intervals import LiveIntervals
from longterm.calibration.panel import PanelIntervals
from longterm.calibration.rule import Calibration

__all__ = [
    "Calibration",
    "Intervals",
    "LiveIntervals",
    "OnlineConformalClassifier",
    "OnlineConformalRegressor",
    "PanelIntervals",
    "published",
]
