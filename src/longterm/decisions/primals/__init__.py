"""Primal learners: slots of `PrimalDual`."""

from longterm.decisions.primals.base import Lesson, Primal, Request
from longterm.decisions.primals.hedge import EXP3IX, FixedMixture, Hedge
from longterm.decisions.primals.inverse_gap import InverseGapWeighting
from longterm.decisions.primals.linear import LinearUCB, ThompsonSampling

__all__ = [
    "EXP3IX",
    "FixedMixture",
    "Hedge",
    "InverseGapWeighting",
    "Lesson",
    "LinearUCB",
    "Primal",
    "Request",
    "ThompsonSampling",
]
