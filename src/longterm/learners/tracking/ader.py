"""Ader (Zhang, Lu, Zhou 2018): gradient descents with a grid of constant steps, weighed by Hedge."""

from __future__ import annotations

import math

import numpy as np

from longterm._base.arrays import Array, FloatArray, as_column, dot, min_keepdims, namespace
from longterm.learners.tracking.tracker import Tracker, copies, mixture


class Ader(Tracker):
    """Follow a best decision that moves, without knowing how far.

    N gradient descents with steps 2^i Δ/(G'√T), weighed by Hedge. Constants and proof are ours.

    N = ⌈½ log₂(1 + 2T)⌉ + 1, prior w_i ∝ 1/(i(i + 1)), rate ε = √(8/T)/(G'Δ). All experts use the gradient at the
    mixture:

        Σ ⟨d_t, x_t − u_t⟩ ≤ 1.5 G' √(T(Δ² + 2ΔP)) + G'Δ √(T/8) (1 + 2 ln(k + 1)),   k = ⌊½ log₂(1 + 2P/Δ)⌋ + 1

    The same bound holds after t < T rounds. Proof: `docs/proofs/drift.md`.
    """

    @property
    def experts(self) -> int:
        """The number N of experts."""
        return math.ceil(0.5 * math.log2(1 + 2 * self.horizon)) + 1

    def memory(self, x: Array) -> Array:
        """Return the experts' points and log weights, shape (..., N, d + 1)."""
        xp, N = namespace(x), self.experts
        i = np.arange(1, N + 1)
        prior = xp.asarray(np.log((1 + 1 / N) / (i * (i + 1.0))), dtype=x.dtype)
        return xp.concat([copies(x, N), xp.broadcast_to(prior[:, None], (*x.shape[:-1], N, 1))], axis=-1)

    def step(self, x: Array, memory: Array, gradient: Array, t: Array, weight: Array = 0.0) -> tuple[Array, Array]:
        xp, points, logs = namespace(x), memory[..., :-1], memory[..., -1]
        logs = logs - math.sqrt(8 / self.horizon) / self.unit * dot(points, gradient[..., None, :])
        logs = logs + min_keepdims(-logs)
        first = self.enclosing_set.diameter / (self.gradient_bound * math.sqrt(self.horizon))
        steps = xp.asarray(first * 2.0 ** np.arange(self.experts), dtype=x.dtype)
        points = self.project(points - steps[:, None] * gradient[..., None, :])
        return mixture(xp.exp(logs), points), xp.concat([points, as_column(logs)], axis=-1)

    def dynamic_regret(self, rounds: FloatArray, path: float) -> FloatArray:
        T, diameter = float(self.horizon), self.enclosing_set.diameter
        P = min(path, diameter * T)
        k = math.floor(0.5 * math.log2(1 + 2 * P / diameter)) + 1
        bound = 1.5 * self.gradient_bound * math.sqrt(T * (diameter**2 + 2 * diameter * P))
        return bound + self.unit * math.sqrt(T / 8) * (1 + 2 * math.log(k + 1)) + 0 * rounds
