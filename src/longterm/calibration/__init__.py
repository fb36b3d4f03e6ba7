"""Thresholds, intervals and holds whose error rate is a long-term constraint.

`Calibration` is the rule: it keeps the share of scores above a threshold at a nominal level on every sequence, for
every group, without a step size. `Intervals`, the estimators and `PanelIntervals` apply it to forecasts.
"""

from longterm.calibration import published
from longterm.calibration.bases import Asked, Tracker
from longterm.calibration.certificates import Bound
from longterm.calibration.corrections import Bets, Correction, Linear, LinearAndBets, Saturating, Sinh
from longterm.calibration.estimators import OnlineConformalClassifier, OnlineConformalRegressor
from longterm.calibration.intervals import Interval, Intervals
from longterm.calibration.live import LiveInterval, LiveIntervals
from longterm.calibration.mixture import Mixture
from longterm.calibration.panel import PanelIntervals
from longterm.calibration.rule import Calibration, CalibrationState

__all__ = [
    "Asked",
    "Bets",
    "Bound",
    "Calibration",
    "CalibrationState",
    "Correction",
    "Interval",
    "Intervals",
    "Linear",
    "LinearAndBets",
    "LiveInterval",
    "LiveIntervals",
    "Mixture",
    "OnlineConformalClassifier",
    "OnlineConformalRegressor",
    "PanelIntervals",
    "Saturating",
    "Sinh",
    "Tracker",
    "published",
]
