"""Rules without constraints that follow a comparator which moves: inner learners for `TrackedPenalty`.

Each sees one gradient d_t a round, ‖d_t‖ ≤ G', mixes experts that all see the same gradient, and remembers one array.
`dynamic_regret` is what it promises: Σ ⟨d_t, x_t − u_t⟩ for every u_1, u_2, … in B with Σ ‖u_t − u_{t−1}‖ ≤ P.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, dot, namespace, smallest
from longterm.learners._given_projection import Projection
from longterm.learners.inner import Inner
from longterm.sets import Set


class Tracker(Inner):
    """An inner learner for moving comparators, made for T rounds of gradients no longer than G'.

    Its memory is (..., N, d + 1): the points of N experts, and the logarithm of their weights.
    """

    gradient_bound: float
    horizon: int
    projection: Projection | None
    """Onto the set that the comparator lives in, where that is smaller than B."""

    def project(self, x: Array) -> Array:
        """Onto that set, or onto B."""
        return self.enclosing_set.project(x) if self.projection is None else self.projection(x)

    @abstractmethod
    def dynamic_regret(self, rounds: FloatArray, path: float) -> FloatArray:
        """Its promise after t ≤ T rounds."""


@dataclass(frozen=True, eq=False)
class Ader(Tracker):
    """Ader (Zhang, Lu, Zhou 2018, as we derive it): N gradient descents with steps 2^i Δ/(G'√T), weighed by Hedge.

    N = ⌈½ log₂(1 + 2T)⌉ + 1, prior w_i ∝ 1/(i(i + 1)), rate ε = √(8/T)/(G'Δ); all experts use the gradient at the
    mixture:

        Σ ⟨d_t, x_t − u_t⟩ ≤ 1.5 G' √(T(Δ² + 2ΔP)) + G'Δ √(T/8) (1 + 2 ln(k + 1)),   k = ⌊½ log₂(1 + 2P/Δ)⌋ + 1

    Proof. Constant steps have (Δ²/2 + ΔP)/η + ηG'²T/2; the best η lies in the grid, as P ≤ ΔT, and one within a factor
    of two of it costs 1.5 times as much. Hedge on losses of width G'Δ: ln(1/w_k)/ε + εT(G'Δ)²/8, and w_k ≥ 1/(k + 1)².
    ∎ The same holds after t < T rounds with T in its place: no term grows when the last losses are 0.

    Parameters
    ----------
    enclosing_set : Set
        The set B that it is played on.
    gradient_bound : float
        G', which no gradient may exceed.
    horizon : int
        The number of rounds it is made for.
    projection : callable, optional
        Onto a smaller set that the comparator lives in.
    """

    enclosing_set: Set
    gradient_bound: float
    horizon: int
    projection: Projection | None = None

    def __post_init__(self) -> None:
        validate.remember(
            self,
            gradient_bound=validate.positive_scalar("gradient_bound", self.gradient_bound),
            horizon=validate.count("horizon", self.horizon),
        )

    @property
    def experts(self) -> int:
        """N, how many there are."""
        return math.ceil(0.5 * math.log2(1 + 2 * self.horizon)) + 1

    def memory(self, x: Array) -> Array:
        xp, N = namespace(x), self.experts
        i = np.arange(1, N + 1)
        prior = xp.asarray(np.log((1 + 1 / N) / (i * (i + 1.0))), dtype=x.dtype)
        points = xp.broadcast_to(x[..., None, :], (*x.shape[:-1], N, x.shape[-1]))
        return xp.concat([points, xp.broadcast_to(prior[:, None], (*x.shape[:-1], N, 1))], axis=-1)

    def step(self, x: Array, memory: Array, gradient: Array, t: Array) -> tuple[Array, Array]:
        xp, G, wide = namespace(x), self.gradient_bound, self.enclosing_set.diameter
        points, logs = memory[..., :-1], memory[..., -1]
        logs = logs - math.sqrt(8 / self.horizon) / (G * wide) * dot(points, gradient[..., None, :])
        logs = logs + smallest(-logs)
        steps = wide / (G * math.sqrt(self.horizon)) * 2.0 ** np.arange(self.experts)
        moved = points - xp.asarray(steps, dtype=x.dtype)[:, None] * gradient[..., None, :]
        points = self.project(moved)
        weights = xp.exp(logs)
        mixed = (weights[..., None, :] @ points)[..., 0, :] / xp.sum(weights, axis=-1, keepdims=True)
        return mixed, xp.concat([points, column(logs)], axis=-1)

    def dynamic_regret(self, rounds: FloatArray, path: float) -> FloatArray:
        G, T, wide = self.gradient_bound, float(self.horizon), self.enclosing_set.diameter
        P = min(path, wide * T)
        k = math.floor(0.5 * math.log2(1 + 2 * P / wide)) + 1
        bound = 1.5 * G * math.sqrt(T * (wide**2 + 2 * wide * P))
        return bound + G * wide * math.sqrt(T / 8) * (1 + 2 * math.log(k + 1)) + 0 * rounds


@dataclass(frozen=True, eq=False)
class StronglyAdaptive(Tracker):
    """A fresh gradient descent for every interval [i2^k, (i+1)2^k − 1], i ≥ 1, all alive ones mixed (Daniely et al.
    2015).

    On an interval of length n: steps Δ/(G'√n), rate e = min(½, √(ln(2T)/n)), w ← w(1 + e r) with the gain
    r = ⟨d_t, x_t − x_{t,I}⟩/(G'Δ), x_t = Σ e w x_I/Σ e w. With linearised losses the proof is a few lines, with these
    constants:

        on **every** interval I of rounds, and every u in B:   Σ_I ⟨d_t, x_t − u⟩ ≤ 6.83 G'Δ (1 + 2√ln(2T)) √|I|

    Proof. Σ_I e_I w_I r_I = 0, so Σ w grows by births only, of which there are at most 2T: w_I ≤ 2T, and
    ln(1 + z) ≥ z − z² for z ≥ −½ gives Σ r ≤ ln(2T)/e + e n ≤ 2√(n ln(2T)) where e < ½; elsewhere n < 4 ln(2T), and Σ
    r ≤ n is less than that. Gradient descent adds G'Δ√n. Any I is a chain of such intervals with lengths that double
    and then halve: 2√|I|/(1 − 2^{−½}) ≤ 6.83√|I|. ∎ Against paths: stretches of n rounds, u fixed in each: ⌈T/n⌉ times
    that and G' n P.

    Parameters
    ----------
    enclosing_set : Set
        The set B that it is played on.
    gradient_bound : float
        G', which no gradient may exceed.
    horizon : int
        The number of rounds it is made for.
    projection : callable, optional
        Onto a smaller set that the comparator lives in.
    """

    enclosing_set: Set
    gradient_bound: float
    horizon: int
    projection: Projection | None = None

    def __post_init__(self) -> None:
        validate.remember(
            self,
            gradient_bound=validate.positive_scalar("gradient_bound", self.gradient_bound),
            horizon=validate.count("horizon", self.horizon),
        )

    @property
    def levels(self) -> int:
        """K = 0, 1, … while 2^k ≤ T."""
        return int(math.log2(self.horizon)) + 1

    def memory(self, x: Array) -> Array:
        xp, N = namespace(x), self.levels
        points = xp.broadcast_to(x[..., None, :], (*x.shape[:-1], N, x.shape[-1]))
        # In round 1 only [1, 1] is alive.
        logs = xp.asarray(np.where(np.arange(N) == 0, 0.0, -np.inf), dtype=x.dtype)
        return xp.concat([points, xp.broadcast_to(logs[:, None], (*x.shape[:-1], N, 1))], axis=-1)

    def step(self, x: Array, memory: Array, gradient: Array, t: Array) -> tuple[Array, Array]:
        xp, G, wide = namespace(x), self.gradient_bound, self.enclosing_set.diameter
        points, logs = memory[..., :-1], memory[..., -1]
        lengths = 2 ** np.arange(self.levels)
        rates = xp.asarray(np.minimum(0.5, np.sqrt(math.log(2 * self.horizon) / lengths)), dtype=x.dtype)
        gains = dot(x[..., None, :] - points, gradient[..., None, :]) / (G * wide)
        logs = logs + xp.log1p(rates * gains)
        steps = xp.asarray(wide / (G * np.sqrt(lengths)), dtype=x.dtype)
        points = self.project(points - steps[:, None] * gradient[..., None, :])
        # An interval of length 2^k begins in every round that 2^k divides: a new learner, at the mixture so far.
        begins = (t + 1) % xp.asarray(lengths, dtype=xp.int64) == 0
        logs = xp.where(begins, xp.zeros_like(logs), logs)
        points = xp.where(begins[:, None], x[..., None, :], points)
        weights = rates * xp.exp(logs + smallest(-logs))
        mixed = (weights[..., None, :] @ points)[..., 0, :] / xp.sum(weights, axis=-1, keepdims=True)
        return mixed, xp.concat([points, column(logs)], axis=-1)

    def interval_regret(self, length: FloatArray) -> FloatArray:
        """What is promised on any interval of that length."""
        each = self.gradient_bound * self.enclosing_set.diameter * np.sqrt(length)
        return np.asarray(2 / (1 - 2**-0.5) * (1 + 2 * math.sqrt(math.log(2 * self.horizon))) * each)

    def dynamic_regret(self, rounds: FloatArray, path: float) -> FloatArray:
        t = np.asarray(rounds, dtype=np.float64)[..., None]
        n = np.minimum(2.0 ** np.arange(self.levels + 1), t)
        return np.asarray(np.min(np.ceil(t / n) * self.interval_regret(n) + self.gradient_bound * n * path, axis=-1))
