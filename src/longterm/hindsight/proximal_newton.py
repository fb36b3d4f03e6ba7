"""Smooth convex functions over a set X whose projection is cheap (`regions`): a proximal Newton method.

    s_k     ≈ argmin_{s ∈ X} ⟨∇F(x_k), s − x_k⟩ + ½ ⟨s − x_k, H_k (s − x_k)⟩        H_k ≈ ∇²F(x_k)
    x_{k+1} = x_k + α_k (s_k − x_k),     α_k = 1, ½, ¼, … until F falls enough

The model is minimised by projected gradient steps with momentum (FISTA; Beck, Teboulle 2009), started anew where the
momentum points uphill (O'Donoghue, Candès 2015). That reads no data. It stops at 1/100 of the Frank–Wolfe gap of x_k,
which is that of the model at x_k, too. H_k need not be exact: one from a sample of the rows costs a fraction, and
leaves linear convergence with a small factor. Where a step does not bring the gap down to a quarter, the sample grows.

The method ends when the Frank–Wolfe gap, a certificate, is small enough, and in no other way: out of steps, it raises,
unless the gap is small beside the loss at 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.errors import LongtermError
from longterm.hindsight.regions import Region
from longterm.hindsight.weighted_rows import Evaluation

MOST_STEPS = 200
MOST_MODEL_STEPS = 5000
MODEL_ACCURACY = 0.01
SLOW = 0.25
"""A step that leaves more of the gap than this calls for a better H."""
NEGLIGIBLE = 1e-3
"""Out of steps, this share of the loss at 0 stands for a least loss that is below it."""
SUFFICIENT = 1e-3
"""The share of the decrease predicted to first order that a step has to bring."""


class Functions(Protocol):
    """k smooth convex functions, evaluated together."""

    def evaluate(self, which: NDArray[np.intp], x: FloatArray) -> Evaluation:
        """Values and gradients of these functions, each at its own row of x."""

    def curvature(self, which: int, x: FloatArray, level: int) -> FloatArray:
        """H ≈ ∇²F of one function at one point; better at a higher level, and exact from some level on."""


@dataclass(frozen=True)
class Minimum:
    """Points (k, d), their values and certified gaps (k,), and how many steps it took."""

    x: FloatArray
    value: FloatArray
    gap: FloatArray
    steps: int


def minimise(functions: Functions, region: Region, start: FloatArray, relative_gap: float) -> Minimum:
    """Minimise k functions over the region, each from its own row of `start`, until gap ≤ relative_gap · |value|.

    Out of steps, NEGLIGIBLE of the value at the origin may stand for |value|: rows that can be told apart have a least
    loss near 0, and rounding keeps a gap from being small beside that.
    """
    x = region.project(start)
    value, gradient = functions.evaluate(np.arange(len(x)), x)
    gap = region.gap(x, gradient)
    level, length, target = 0, np.ones(len(x)), x.copy()
    for steps in range(MOST_STEPS):
        unfinished = ~(gap <= relative_gap * np.abs(value))  # nothing that is not a number passes
        (todo,) = np.nonzero(unfinished)
        if not len(todo):
            return Minimum(x, value, gap, steps)
        (fresh,) = np.nonzero(unfinished & (length == 1))  # the others still shorten their last step
        if len(fresh):
            H = np.stack([functions.curvature(int(j), x[j], level) for j in fresh])
            target[fresh] = _model_minimum(region, x[fresh], gradient[fresh], H, gap[fresh])
        trial = x[todo] + length[todo, None] * (target[todo] - x[todo])
        there = functions.evaluate(todo, trial)
        promised = SUFFICIENT * np.vecdot(gradient[todo], trial - x[todo])
        accepted = there.value <= value[todo] + promised + 1e-14 * np.abs(value[todo])
        better, points = todo[accepted], trial[accepted]
        before = gap.copy()
        x[better], value[better], gradient[better] = points, there.value[accepted], there.gradient[accepted]
        gap[better] = region.gap(points, gradient[better])
        length[todo] = np.where(accepted, 1.0, length[todo] / 2)
        level += bool(np.any(gap[todo] > SLOW * before[todo]))
    origin = functions.evaluate(np.arange(len(x)), region.project(np.zeros_like(x)))
    worst = float((gap / np.maximum(np.abs(value), NEGLIGIBLE * np.abs(origin.value))).max())
    if worst <= relative_gap:
        return Minimum(x, value, gap, MOST_STEPS)
    raise LongtermError(
        f"the certified gap is still {worst:.3g} of the loss after {MOST_STEPS} Newton steps. "
        "Bring the columns of the data to similar sizes, or make the budget smaller"
    )


def _model_minimum(region: Region, x: FloatArray, gradient: FloatArray, H: FloatArray, gap: FloatArray) -> FloatArray:
    """Minimise ⟨gradient, s − x⟩ + ½ ⟨s − x, H (s − x)⟩ over the region, each row to MODEL_ACCURACY of its gap."""

    def slope(at: FloatArray) -> FloatArray:
        return np.asarray(gradient + (H @ (at - x)[..., None])[..., 0])

    # Where there is next to no curvature, a step of a million radii is as good as any longer one.
    flat = np.linalg.norm(gradient, axis=1) / (1e6 * region.radius)
    rate = 1 / np.maximum(np.linalg.eigvalsh(H)[:, -1], flat)[:, None]
    s = ahead = x
    momentum = np.ones((len(x), 1))
    for step in range(1, MOST_MODEL_STEPS + 1):
        moved = region.project(ahead - rate * slope(ahead))
        uphill = np.vecdot(ahead - moved, moved - s)[:, None] > 0
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + np.where(uphill, 0.0, (momentum - 1) / grown) * (moved - s)
        s, momentum = moved, np.where(uphill, 1.0, grown)
        if step % 10 == 0 and np.all(region.gap(s, slope(s)) <= MODEL_ACCURACY * gap):
            break
    return s
