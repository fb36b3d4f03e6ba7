"""A strongly adaptive tracker (Daniely, Gonen, Shalev-Shwartz 2015): small regret on every interval of rounds."""

from __future__ import annotations

import math

import numpy as np

from longterm._base.arrays import Array, FloatArray, as_column, dot, min_keepdims, namespace
from longterm.learners.tracking.tracker import Tracker, copies, mixture


class StronglyAdaptive(Tracker):
    """A new gradient descent for every interval [i2^k, (i+1)2^k − 1], i ≥ 1. All active ones are mixed.

    On an interval of length n: steps Δ/(G'√n), rate e = min(½, √(ln(2T)/n)), w ← w(1 + e r) with the gain
    r = ⟨d_t, x_t − x_{t,I}⟩/(G'Δ), x_t = Σ e w x_I/Σ e w. On **every** interval I of rounds, for every u in B:

        Σ_I ⟨d_t, x_t − u⟩ ≤ 6.83 G'Δ (1 + 2√ln(2T)) √|I|

    Against paths: stretches of n rounds with u fixed in each have ⌈T/n⌉ times that and G' n P.
    Proof: `docs/proofs/drift.md`.
    """

    def memory(self, x: Array) -> Array:
        """Return the points and log weights of the levels, shape (..., N, d + 1). In round 1 only [1, 1] is active."""
        xp, N = namespace(x), self.levels
        log_of_zero = float(xp.finfo(x.dtype).min) / 2  # e^log_of_zero is 0, and states must be finite
        logs = xp.asarray(np.where(np.arange(N) == 0, 0.0, log_of_zero), dtype=x.dtype)
        return xp.concat([copies(x, N), xp.broadcast_to(logs[:, None], (*x.shape[:-1], N, 1))], axis=-1)

    def step(self, x: Array, memory: Array, gradient: Array, t: Array, weight: Array = 0.0) -> tuple[Array, Array]:
        xp, points, logs = namespace(x), memory[..., :-1], memory[..., -1]
        lengths = 2 ** np.arange(self.levels)
        rates = xp.asarray(np.minimum(0.5, np.sqrt(math.log(2 * self.horizon) / lengths)), dtype=x.dtype)
        gains = dot(x[..., None, :] - points, gradient[..., None, :]) / self.unit
        logs = logs + xp.log1p(rates * gains)
        steps = self.enclosing_set.diameter / (self.gradient_bound * np.sqrt(lengths))
        points = self.project(points - xp.asarray(steps, dtype=x.dtype)[:, None] * gradient[..., None, :])
        # An interval of length 2^k starts in every round that 2^k divides, at the mixture so far.
        starts = as_column(t + 1) % xp.asarray(lengths, dtype=xp.int64) == 0
        logs = xp.where(starts, xp.zeros_like(logs), logs)
        points = xp.where(as_column(starts), x[..., None, :], points)
        weights = rates * xp.exp(logs + min_keepdims(-logs))
        return mixture(weights, points), xp.concat([points, as_column(logs)], axis=-1)

    def interval_regret(self, length: FloatArray) -> FloatArray:
        """Return the bound on any interval of that length."""
        each = self.unit * np.sqrt(length)
        return np.asarray(2 / (1 - 2**-0.5) * (1 + 2 * math.sqrt(math.log(2 * self.horizon))) * each)

    def dynamic_regret(self, rounds: FloatArray, path: float) -> FloatArray:
        t = np.asarray(rounds, dtype=np.float64)[..., None]
        n = np.minimum(2.0 ** np.arange(self.levels + 1), t)
        return np.asarray(np.min(np.ceil(t / n) * self.interval_regret(n) + self.gradient_bound * n * path, axis=-1))
