"""Rules without constraints that follow a comparator which moves: inner learners for `TrackedPenalty`.

Each sees one gradient d_t a round, ‖d_t‖ ≤ G', mixes experts that all see the same gradient, and remembers one array.
`dynamic_regret` is what it promises: Σ ⟨d_t, x_t − u_t⟩ for every u_1, u_2, … in B with Σ ‖u_t − u_{t−1}‖ ≤ P.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, dot, floored, namespace, smallest
from longterm.learners._given import Projection
from longterm.learners.inner import Inner
from longterm.sets import Set


@dataclass(frozen=True, eq=False)
class Tracker(Inner):
    """An inner learner for moving comparators, made for T rounds of gradients no longer than G'.

    Its memory is (..., N, n): the points of N experts first, then what weighs them.
    """

    enclosing_set: Set
    gradient_bound: float
    horizon: int
    projection: Projection | None = None
    """Onto the set that the comparator lives in, where that is smaller than B."""

    def __post_init__(self) -> None:
        validate.remember(
            self,
            gradient_bound=validate.positive_scalar("gradient_bound", self.gradient_bound),
            horizon=validate.count("horizon", self.horizon),
        )

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


@dataclass(frozen=True, eq=False)
class HedgedRestarts(Tracker):
    """Leaders begun anew every 1, 2, 4, … rounds, mixed by AdaHedge with a fixed share: no period to know (ours).

    Level k of N = ⌊log₂ T⌋ + 1 has blocks of n = 2^k rounds. It begins each at x°, the mixture of all levels then, and
    follows the leader of the block: x^k = Π(x° − (Δ/√S) Σ d), S = Σ ‖d‖² over the block so far. With
    ℓ_k = ⟨d_t, x^k_t − x_t⟩, C = 2 ln(N(T + 1)), 1/η_t = Γ_{t−1}/C:

        δ_t = (1/η_t) ln Σ_k w_k e^{−η_tℓ_k},  Γ_t = Γ_{t−1} + δ_t,  v_k ∝ w_k e^{−η_tℓ_k},  w_k ← (t v_k + 1/N)/(t + 1)

    On every block b of every level, for every u: Σ_b ⟨d_t, x^k_t − u⟩ ≤ 5.34 Δ√S_b; and what is lost to the levels:

        to any one of them:               Σ_t ⟨d_t, x_t − x^k_t⟩     ≤ 2Γ_T,   Γ_T ≤ √(C/4) Δ√S_T + (⅔C + 1) Δ max‖d_t‖
        to levels that change M times:    Σ_t ⟨d_t, x_t − x^{k_t}_t⟩ ≤ (2 + M/2) Γ_T

    So it is no worse than these restarts with the best period 2^k in hindsight, but for 2Γ_T = Õ(√T).
    Proof. **A level** follows the leader with regularisers (√S_{t−1}/(2Δ))‖x − x°‖² that grow: its regret on the block
    is at most that of u at the end, ½Δ√S_b, and Σ min(½Δ‖d_t‖²/√S_{t−1}, Δ‖d_t‖). Where ‖d_t‖² ≤ S_{t−1} the first is
    at most Δ‖d_t‖²/√(2S_t), √2Δ√S_b in all; elsewhere S doubles, and the second is 3.42Δ√S_b in all.
    **The mixture.** −δ_t − ℓ_{t,k} = (1/η_t) ln(v_{t,k}/w_{t,k}), w_{t+1} ≥ v_t t/(t + 1) and w_{t+1} ≥ 1/(N(t + 1)).
    On a stretch with one k, as 1/η_t does not fall, the sum of (ln w_{t+1,k} − ln w_{t,k})/η_t is at most
    ln(N(T + 1))/η_T ≤ Γ_T/2, and that of ln((t + 1)/t)/η_t, over all stretches, at most Γ_T/2; add Σ δ_t = Γ_T. Γ_T as
    for AdaHedge (`docs/hedged_cuts.md`), C in the place of ln K. ∎
    Against paths: blocks of n rounds, u fixed in each: ⌈T/n⌉ 5.34 G'Δ√n + G' n P + 2Γ_T for every n = 2^k.

    Parameters
    ----------
    enclosing_set : Set
        The set B that it is played on.
    gradient_bound : float
        G', for `dynamic_regret`; the rule does not read it.
    horizon : int
        The number of rounds it is made for.
    projection : callable, optional
        Onto a smaller set that the comparator lives in.
    """

    @property
    def levels(self) -> int:
        """N: k = 0, 1, … while 2^k ≤ T."""
        return int(math.log2(self.horizon)) + 1

    @property
    def complexity(self) -> float:
        """C = 2 ln(N(T + 1))."""
        return 2 * math.log(self.levels * (self.horizon + 1))

    def memory(self, x: Array) -> Array:
        """(..., N, 3d + 3): each level's point, its x°, −Σ d, S; w; Γ."""
        xp, N, d = namespace(x), self.levels, x.shape[-1]
        points = xp.broadcast_to(x[..., None, :], (*x.shape[:-1], N, d))
        zero = xp.zeros_like(points)
        return xp.concat([points, points, zero, zero[..., :1], zero[..., :1] + 1 / N, zero[..., :1]], axis=-1)

    def step(self, x: Array, memory: Array, gradient: Array, t: Array) -> tuple[Array, Array]:
        xp, N, d = namespace(x), self.levels, x.shape[-1]
        points, starts, sums = (memory[..., i * d : (i + 1) * d] for i in range(3))
        squares, weights, gap = memory[..., -3], memory[..., -2], memory[..., :1, -1]
        losses = dot(points - x[..., None, :], gradient[..., None, :])
        least, slow = smallest(losses), floored(gap) / self.complexity
        powers = weights * xp.exp((least - losses) / slow)
        mass = xp.sum(powers, axis=-1, keepdims=True)
        gap = gap + xp.maximum(slow * xp.log(floored(mass)) - least, 0.0)
        rounds = xp.astype(t, x.dtype)
        weights = (rounds * powers / floored(mass) + 1 / N) / (rounds + 1)
        sums, squares = sums - gradient[..., None, :], squares + column(dot(gradient, gradient))
        points = self.project(starts + self.enclosing_set.diameter * sums / column(xp.sqrt(floored(squares))))
        ends = t % xp.asarray(2 ** np.arange(N), dtype=xp.int64) == 0
        anew, start = ends[:, None], weights[..., None, :] @ points
        points, starts = (xp.where(anew, start, one) for one in (points, starts))
        sums, squares = xp.where(anew, xp.zeros_like(sums), sums), xp.where(ends, xp.zeros_like(squares), squares)
        mixed = (weights[..., None, :] @ points)[..., 0, :]
        kept = (points, starts, sums, column(squares), column(weights), column(gap + xp.zeros_like(weights)))
        return mixed, xp.concat(kept, axis=-1)

    def dynamic_regret(self, rounds: FloatArray, path: float) -> FloatArray:
        t, C = np.asarray(rounds, dtype=np.float64), self.complexity
        each = self.gradient_bound * self.enclosing_set.diameter
        meta = 2 * each * (np.sqrt(C / 4 * t) + 2 / 3 * C + 1)
        n = 2.0 ** np.arange(self.levels)
        blocks = np.ceil(t[..., None] / n) * 5.34 * each * np.sqrt(n) + self.gradient_bound * n * path
        return np.asarray(np.min(blocks, axis=-1) + meta)


RULES: Mapping[str, type[Tracker]] = {
    "ader": Ader,
    "strongly adaptive": StronglyAdaptive,
    "restarts": HedgedRestarts,
}
"""By name."""
