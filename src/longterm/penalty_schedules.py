"""The schedule of a penalty [g]₊²/(2θ_t) that a learner pays instead of keeping a multiplier.

    η_t = step / t^decay,   θ_t = factor · curvature · η_t,   μ_t = 1 / θ_t.

A dual step with μ_t = 1/θ_t forgets λ_t: [λ + μ(g − θλ)]₊ = [g]₊/θ, the multiplier that is best against g. `curvature`
is the L of ‖Σ_j w_j ∇g_j(x)‖² ≤ L‖w‖², so L/θ_t is the curvature of the penalty, and 1/factor the share of it that a
step takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.schedules import Schedule, Steps


@dataclass(frozen=True, eq=False)
class PenaltySchedule(Schedule):
    """Steps η_t = step/t^decay with a penalty that follows them.

    >>> import numpy as np
    >>> from longterm.penalty_schedules import PenaltySchedule
    >>> steps = PenaltySchedule(step=1.0, decay=0.5, curvature=4.0, factor=2.0).at(np.asarray(4), np.zeros(1))
    >>> tuple(float(step) for step in steps)
    (4.0, 0.5, 0.25)
    """

    step: Hyper
    decay: Hyper
    curvature: Hyper
    factor: Hyper = 2.0
    gradient_bound: Hyper | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        validate.remember(
            self,
            step=validate.positive("step", self.step),
            decay=validate.positive("decay", self.decay),
            curvature=validate.positive("curvature", self.curvature),
            factor=validate.positive("factor", self.factor),
        )
        if np.any(np.asarray(self.factor) <= 1):
            raise InputError("factor", f"{self.factor!r} is not above 1", "Give 2, with which the bound is smallest")

    def at(self, t: Array, x: Array) -> Steps:
        t = namespace(x).astype(t, x.dtype)
        eta = like(self.step, x) / t ** like(self.decay, x)
        theta = like(self.factor, x) * like(self.curvature, x) * eta
        return Steps(theta, eta, 1 / theta)
