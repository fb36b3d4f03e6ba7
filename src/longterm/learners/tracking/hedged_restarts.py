"""Hedged restarts (ours): leaders restarted every 1, 2, 4, … rounds, mixed without knowing the best period."""

from __future__ import annotations

import math

import numpy as np

from longterm._base.arrays import Array, FloatArray, as_column, dot, min_keepdims, namespace
from longterm._base.selection import clamp_to_divisor
from longterm.learners.tracking.tracker import Tracker, copies, mixture


class HedgedRestarts(Tracker):
    """Follow a best decision that moves, without knowing how often or how large the gradients are.

    Leaders restarted every 1, 2, 4, … rounds, mixed by AdaHedge with a fixed share. The rule does not read G'.

    Level k of N = ⌊log₂ T⌋ + 1 has blocks of n = 2^k rounds. It starts each at x°, the mixture of all levels then, and
    follows the leader of the block: x^k = Π(x° − (Δ/√S) Σ d), S = Σ ‖d‖² over the block so far. With
    ℓ_k = ⟨d_t, x^k_t − x_t⟩, C = 2 ln(N(T + 1)), 1/η_t = Γ_{t−1}/C:

        δ_t = (1/η_t) ln Σ_k w_k e^{−η_tℓ_k},  Γ_t = Γ_{t−1} + δ_t,  v_k ∝ w_k e^{−η_tℓ_k},  w_k ← (t v_k + 1/N)/(t + 1)

    On every block b of every level, for every u: Σ_b ⟨d_t, x^k_t − u⟩ ≤ 5.34 Δ√S_b. The loss to the levels is

        to any one of them:               Σ_t ⟨d_t, x_t − x^k_t⟩     ≤ 2Γ_T,   Γ_T ≤ √(C/4) Δ√S_T + (⅔C + 1) Δ max‖d_t‖
        to levels that change M times:    Σ_t ⟨d_t, x_t − x^{k_t}_t⟩ ≤ (2 + M/2) Γ_T

    Against paths: blocks of n rounds, u fixed in each: ⌈T/n⌉ 5.34 G'Δ√n + G' n P + 2Γ_T for every n = 2^k.
    Proof: `docs/proofs/drift.md`.
    """

    @property
    def complexity(self) -> float:
        """The constant C = 2 ln(N(T + 1))."""
        return 2 * math.log(self.levels * (self.horizon + 1))

    def memory(self, x: Array) -> Array:
        """Return each level's point, its x°, −Σ d, S, w and Γ, shape (..., N, 3d + 3)."""
        xp, N = namespace(x), self.levels
        points = copies(x, N)
        zero = xp.zeros_like(points)
        return xp.concat([points, points, zero, zero[..., :1], zero[..., :1] + 1 / N, zero[..., :1]], axis=-1)

    def step(self, x: Array, memory: Array, gradient: Array, t: Array, weight: Array = 0.0) -> tuple[Array, Array]:
        xp, N, d = namespace(x), self.levels, x.shape[-1]
        points, starts, sums = (memory[..., i * d : (i + 1) * d] for i in range(3))
        squares, weights, gap = memory[..., -3], memory[..., -2], memory[..., :1, -1]
        losses = dot(points - x[..., None, :], gradient[..., None, :])
        least, scale = min_keepdims(losses), clamp_to_divisor(gap) / self.complexity
        powers = weights * xp.exp((least - losses) / scale)
        mass = xp.sum(powers, axis=-1, keepdims=True)
        gap = gap + xp.maximum(scale * xp.log(clamp_to_divisor(mass)) - least, 0.0)
        rounds = as_column(xp.astype(t, x.dtype))
        weights = (rounds * powers / clamp_to_divisor(mass) + 1 / N) / (rounds + 1)
        sums, squares = sums - gradient[..., None, :], squares + as_column(dot(gradient, gradient))
        points = self.project(
            starts + self.enclosing_set.diameter * sums / as_column(xp.sqrt(clamp_to_divisor(squares)))
        )
        ends = as_column(t) % xp.asarray(2 ** np.arange(N), dtype=xp.int64) == 0
        restarts, start = as_column(ends), mixture(weights, points)[..., None, :]
        points, starts = (xp.where(restarts, start, one) for one in (points, starts))
        sums, squares = xp.where(restarts, xp.zeros_like(sums), sums), xp.where(ends, xp.zeros_like(squares), squares)
        mixed = mixture(weights, points)
        parts = (points, starts, sums, as_column(squares), as_column(weights), as_column(gap + xp.zeros_like(weights)))
        return mixed, xp.concat(parts, axis=-1)

    def dynamic_regret(self, rounds: FloatArray, path: float) -> FloatArray:
        t, C = np.asarray(rounds, dtype=np.float64), self.complexity
        meta = 2 * self.unit * (np.sqrt(C / 4 * t) + 2 / 3 * C + 1)
        n = 2.0 ** np.arange(self.levels)
        blocks = np.ceil(t[..., None] / n) * 5.34 * self.unit * np.sqrt(n) + self.gradient_bound * n * path
        return np.asarray(np.min(blocks, axis=-1) + meta)
