"""Tune the hand-written controller as its owner would: on days made from the training histogram only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm.pacing.controller import ProportionalController
from longterm.pacing.history import PriceHistory
from longterm.pacing.play import play

GAINS = (10.0, 20.0, 30.0, 50.0, 100.0, 200.0)


def tuned_controller(
    budgets: ArrayLike,
    horizon: int,
    history: PriceHistory,
    *,
    adjustments: int = 96,
    gains: Sequence[float] = GAINS,
    days: int = 3,
    seed: int = 0,
) -> ProportionalController:
    """For each budget the gain that wins most over the practice days (largest sum of ln value)."""
    wanted = np.atleast_1d(np.asarray(budgets, dtype=np.float64))
    grid = ProportionalController.calibrated(
        np.broadcast_to(wanted, (len(gains), len(wanted))).copy(),
        horizon,
        history,
        gain=np.asarray(gains)[:, None],
        adjustments=adjustments,
    )
    score: FloatArray = np.zeros((len(gains), len(wanted)))
    for day in range(days):
        score = score + np.log(play(grid, history.draw(horizon, seed + day)).value)
    best = np.asarray(gains)[score.argmax(axis=0)]
    return ProportionalController.calibrated(wanted, horizon, history, gain=best, adjustments=adjustments)
