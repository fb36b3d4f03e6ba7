"""Published rules as compositions of a base and a correction, under their names."""

from __future__ import annotations

from longterm._base.validate import Hyper
from longterm.calibration.bases import QuantileTracker
from longterm.calibration.corrections import Bets, Correction, LinearCorrection, Saturating
from longterm.calibration.rule import Calibration

_ZERO = QuantileTracker(step=0.0)
"""The base of rules that are a correction alone."""


def aci(miss_rate: Hyper, *, step: float) -> Calibration:
    """Return adaptive conformal inference on scores: q ← q + η (1{miss} − α) (Gibbs and Candès 2021)."""
    return Calibration(miss_rate, 1, _ZERO, LinearCorrection(step))


def conformal_pi(miss_rate: Hyper, *, step: float, gain: float = 1.0, saturation: float = 5.0) -> Calibration:
    """Return conformal PI control: a tracked quantile plus a saturating integrator.

    On the scores minus a forecast of them it is conformal PID (Angelopoulos, Candès, Tibshirani 2023).
    """
    return Calibration(miss_rate, 1, QuantileTracker(step), Saturating(gain, saturation))


def decaying_steps(miss_rate: Hyper, *, step: float) -> Calibration:
    """Return quantile tracking with steps η t^{−0.6} (Angelopoulos, Barber, Bates 2024)."""
    return Calibration(miss_rate, 1, QuantileTracker(step, "decaying"), Correction())


def scale_free_ogd(miss_rate: Hyper, *, step: float) -> Calibration:
    """Return scale-free online gradient descent, the base of SAOCP (Bhatnagar et al. 2023)."""
    return Calibration(miss_rate, 1, QuantileTracker(step, "scale-free"), Correction())


def gcaci(miss_rate: Hyper, groups: int, *, step: float) -> Calibration:
    """Return group-conditional ACI: q = ⟨θ, c⟩, θ ← θ + η (1{miss} − α) c (arXiv 2502.10947)."""
    return Calibration(miss_rate, groups, _ZERO, LinearCorrection(step, normalised=False))


def pogo(miss_rate: Hyper, groups: int) -> Calibration:
    """Return POGO: one Krichevsky–Trofimov bettor per group, without a step size."""
    return Calibration(miss_rate, groups, _ZERO, Bets())


def up_ocp(miss_rate: Hyper) -> Calibration:
    """Return UP-OCP, the bettor of POGO with a single group."""
    return pogo(miss_rate, 1)
