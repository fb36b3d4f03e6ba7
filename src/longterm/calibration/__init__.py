"""Thresholds, intervals and holds whose error rate is a long-term constraint.

`Calibration` is the rule: it keeps the share of scores above a threshold at a nominal level on every sequence, for
every group, without a step size.
"""

from longterm.calibration import published
from longterm.calibration.bases import Mixture, NoBase, Tracker
from longterm.calibration.corrections import Bets, Linear, LinearAndBets, NoCorrection, Saturating, Sinh
from longterm.calibration.rule import Asked, Bound, Calibration, CalibrationState

__all__ = [
    "Asked",
    "Bets",
    "Bound",
    "Calibration",
    "CalibrationState",
    "Linear",
    "LinearAndBets",
    "Mixture",
    "NoBase",
    "NoCorrection",
    "Saturating",
    "Sinh",
    "Tracker",
    "published",
]
