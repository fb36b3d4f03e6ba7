"""Every pacer, with the baselines of the examples."""

import numpy as np

from longterm.money import DualMirrorDescent, PlannedMirrorDescent, PriceHistory
from pacing_baselines import PriceMixture, ProportionalController

HISTORY = PriceHistory(np.arange(1.0, 101.0), np.linspace(2, 1, 100), mean_value=0.01)


def pacers(budget, horizon):
    return {
        "euclidean": DualMirrorDescent.calibrated(budget, horizon, HISTORY, mirror="euclidean"),
        "entropic": DualMirrorDescent.calibrated(budget, horizon, HISTORY),
        "floor": DualMirrorDescent.calibrated(budget, horizon, HISTORY, floor=budget / 2, cost_weight=1e-3),
        "wild step": DualMirrorDescent(budget, horizon, step=5.0, start=1e-6, mirror="euclidean"),
        "planned": PlannedMirrorDescent.calibrated(budget, horizon, HISTORY),
        "controller": ProportionalController.calibrated(budget, horizon, HISTORY, gain=500.0),
        "mixture": PriceMixture.calibrated(budget, horizon, HISTORY),
    }


NAMES = list(pacers(100.0, 10))
