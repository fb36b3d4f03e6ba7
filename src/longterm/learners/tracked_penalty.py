"""Follow what moves, constraints by a penalty without memory: a rule for moving comparators on f_t plus a penalty.

    d_t = a subgradient at x_t of   f_t                                  penalty "none"
                                    f_t + 2G_f dist(·, X) + [g]₊         "distance": fixed g, its projection known
                                    f_t + (1 + W)[g_t]₊,  W = G_fΔ/ε     "slater": g_t ≤ −ε at a point of each round

and d_t goes to a `Tracker`. The penalty has no memory, so what the tracker promises on an
interval, or against a path, is promised of loss and violation together: for u_t in B with g_t(u_t) ≤ 0 in its own
round, P its path and 𝓐(P) the tracker's promise with the penalised gradients' bound for G',

    Σ f_t(x_t) − f_t(u_t) + Σ [g_t(x_t)]₊ ≤ 𝓐(P);     Σ [g_t(x_t)]₊ ≤ 𝓐(P*), P* the path of u*_t = argmin_{X_t} f_t

Proof. The penalised loss of u_t is f_t(u_t). And f_t(x) + G_f dist(x, X_t) ≥ f_t(u*_t): move x to its projection. With
a point of slack ε, [g_t(x)]₊ ≥ (ε/Δ) dist(x, X_t) by convexity on the segment to it, so W[g_t]₊ ≥ G_f dist. ∎ The
first line for all u at once (`bound`, with `path`), the second by `violation_bound`. The "distance" form with Ader is
Supantha and Sinha's (2026; abstract read, proof ours). Strongly adaptive: on **every** interval I and u feasible in
all of it, Reg_I + Σ_I [g]₊ ≤ SA(|I|). "none" is for problems whose constraint does not matter: it promises the regret
alone. "projection" keeps all experts in a fixed X, whose projection is known: nothing is broken, and 𝓐 has G_f for G'.

A `Tracker` is a rule without constraints that follows a comparator which moves: an inner learner for `TrackedPenalty`.
Each sees one gradient d_t a round, ‖d_t‖ ≤ G', mixes experts that all see the same gradient, and remembers one array.
`dynamic_regret` is what it promises: Σ ⟨d_t, x_t − u_t⟩ for every u_1, u_2, … in B with Σ ‖u_t − u_{t−1}‖ ≤ P.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, clamp_to_divisor, dot, min_keepdims, namespace, norm
from longterm.errors import InputError
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.learners.sinha_vaze import Inner
from longterm.problems import Problem
from longterm.projections import Projection
from longterm.sets import Set
from longterm.theory.bounds import REGRET, horizons_of


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
        validate.validate_fields(self, validate.positive_scalar, "gradient_bound")
        validate.validate_fields(self, validate.count, "horizon")

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
        logs = logs + min_keepdims(-logs)
        steps = wide / (G * math.sqrt(self.horizon)) * 2.0 ** np.arange(self.experts)
        moved = points - xp.asarray(steps, dtype=x.dtype)[:, None] * gradient[..., None, :]
        points = self.project(moved)
        weights = xp.exp(logs)
        mixed = (weights[..., None, :] @ points)[..., 0, :] / xp.sum(weights, axis=-1, keepdims=True)
        return mixed, xp.concat([points, as_column(logs)], axis=-1)

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
        weights = rates * xp.exp(logs + min_keepdims(-logs))
        mixed = (weights[..., None, :] @ points)[..., 0, :] / xp.sum(weights, axis=-1, keepdims=True)
        return mixed, xp.concat([points, as_column(logs)], axis=-1)

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
        least, slow = min_keepdims(losses), clamp_to_divisor(gap) / self.complexity
        powers = weights * xp.exp((least - losses) / slow)
        mass = xp.sum(powers, axis=-1, keepdims=True)
        gap = gap + xp.maximum(slow * xp.log(clamp_to_divisor(mass)) - least, 0.0)
        rounds = xp.astype(t, x.dtype)
        weights = (rounds * powers / clamp_to_divisor(mass) + 1 / N) / (rounds + 1)
        sums, squares = sums - gradient[..., None, :], squares + as_column(dot(gradient, gradient))
        points = self.project(
            starts + self.enclosing_set.diameter * sums / as_column(xp.sqrt(clamp_to_divisor(squares)))
        )
        ends = t % xp.asarray(2 ** np.arange(N), dtype=xp.int64) == 0
        anew, start = ends[:, None], weights[..., None, :] @ points
        points, starts = (xp.where(anew, start, one) for one in (points, starts))
        sums, squares = xp.where(anew, xp.zeros_like(sums), sums), xp.where(ends, xp.zeros_like(squares), squares)
        mixed = (weights[..., None, :] @ points)[..., 0, :]
        kept = (points, starts, sums, as_column(squares), as_column(weights), as_column(gap + xp.zeros_like(weights)))
        return mixed, xp.concat(kept, axis=-1)

    def dynamic_regret(self, rounds: FloatArray, path: float) -> FloatArray:
        t, C = np.asarray(rounds, dtype=np.float64), self.complexity
        each = self.gradient_bound * self.enclosing_set.diameter
        meta = 2 * each * (np.sqrt(C / 4 * t) + 2 / 3 * C + 1)
        n = 2.0 ** np.arange(self.levels)
        blocks = np.ceil(t[..., None] / n) * 5.34 * each * np.sqrt(n) + self.gradient_bound * n * path
        return np.asarray(np.min(blocks, axis=-1) + meta)


PenaltyKind = Literal["none", "distance", "slater", "projection"]
TrackerName = Literal["ader", "strongly adaptive", "restarts"]
RULES: Mapping[TrackerName, type[Tracker]] = {
    "ader": Ader,
    "strongly adaptive": StronglyAdaptive,
    "restarts": HedgedRestarts,
}


class TrackedPenaltyState(NamedTuple):
    """(t, x_t) and what the tracker remembers."""

    round: Array
    x: Array
    memory: Array


@dataclass(frozen=True, eq=False)
class TrackedPenalty(Learner[TrackedPenaltyState]):
    """A tracker on f_t + `price`·[g_t]₊ + `distance_price`·dist(·, X).

    Parameters
    ----------
    tracker : Tracker
        The rule without constraints, on its enclosing set.
    price : float
        Of [g_t]₊.
    distance_price : float
        Of the distance to X.
    projection : callable, optional
        Onto X, where the distance has a price.
    path : float
        P, for `bound`; the rule does not read it.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import Problem, run
    >>> from longterm.constraints import L2Budget
    >>> from longterm.learners import TrackedPenalty
    >>> from longterm.losses import Linear
    >>> from longterm.sets import Ball
    >>> from longterm.streams import Replay
    >>> problem = Problem(Ball(2), Linear(2), L2Budget(2, budget=0.5))
    >>> turning = Replay([np.repeat([[1.0, 0.0], [-1.0, 0.0]], 500, axis=0)])  # at best −½ a round
    >>> learner = TrackedPenalty.for_problem(problem, horizon=1000)
    >>> trace = run(problem, learner, turning)
    >>> float(trace.cumulative_loss[-1].round()), float(trace.hard_violation[-1].round())
    (-450.0, 3.0)
    """

    tracker: Tracker
    price: float = 0.0
    distance_price: float = 0.0
    projection: Projection | None = None
    path: float = 0.0
    enclosing_set: Set = field(init=False, repr=False)

    needs: ClassVar[frozenset[Need]] = frozenset({Need.HORIZON})
    name: ClassVar[str] = "tracked_penalty"
    title: ClassVar[str] = "Tracked penalty"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(√(T(1 + P))), moving, with the hard violation added"}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"slater": 0.3},
        {"slater": 0.3, "tracker": "strongly adaptive"},
        {"slater": 0.3, "tracker": "restarts"},
    )

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.non_negative_scalar, "price", "distance_price", "path")
        validate.set_frozen(self, enclosing_set=self.tracker.enclosing_set)

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        horizon: int,
        tracker: TrackerName = "ader",
        penalty: PenaltyKind | None = None,
        slater: float | None = None,
        path: float = 0.0,
    ) -> TrackedPenalty:
        """Ader, a strongly adaptive rule or hedged restarts on the loss and a penalty without memory: for what drifts.

        Parameters
        ----------
        problem : Problem
            Gives B, Δ, G_f, G_g, the projection or the Slater point.
        horizon : int
            T.
        tracker : {"ader", "strongly adaptive", "restarts"}
            The best rate against paths; small regret on every interval; or restarts whose period need not be known.
        penalty : {"none", "distance", "slater", "projection"}, optional
            Left out: the distance where the projection is known, else that of a Slater point. "projection" is no
            penalty: all experts are projected onto X, and nothing is broken.
        slater : float, optional
            ε: in every round some point has g_t ≤ −ε; left out, that of a fixed constraint.
        path : float
            P, for `bound` alone.
        """
        c, B = problem.constants, problem.enclosing_set
        fixed = not problem.constraint.parameters
        if penalty is None:
            penalty = "distance" if fixed and problem.projection is not None else "slater"
        if penalty not in ("none", "distance", "slater", "projection"):
            known = "'none', 'distance', 'slater' or 'projection'"
            raise InputError("penalty", f"{penalty!r} is not known", f"Choose {known}")
        price, far, onto = 0.0, 0.0, None
        if penalty in ("distance", "projection"):
            onto = problem.projection if fixed else None
            if onto is None:
                what = f"no exact projection onto a fixed {{g ≤ 0}} is known for {problem.name!r}"
                raise InputError("penalty", what, "Choose penalty='slater' with a slater=, or 'none'")
            if penalty == "distance":
                price, far = 1.0, 2 * c.loss_gradient_bound
        elif penalty == "slater":
            point = problem.slater_point if fixed else None
            epsilon = slater if slater is not None else None if point is None else point.epsilon
            if epsilon is None:
                what = f"no Slater point of every round is known for {problem.name!r}"
                raise InputError("slater", what, "Give ε, such that in every round some point has g ≤ −ε")
            price = 1 + c.loss_gradient_bound * c.diameter / validate.positive_scalar("slater", epsilon)
        G = c.loss_gradient_bound + price * c.constraint_gradient_bound + far
        if tracker not in RULES:
            raise InputError("tracker", f"{tracker!r} is not known", f"Choose from {sorted(RULES)}")
        if penalty == "projection":
            return cls(RULES[tracker](B, G, horizon, onto), path=path)
        return cls(RULES[tracker](B, G, horizon), price, far, onto, path)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """Of the regret against u with Σ ‖u_t − u_{t−1}‖ ≤ `path`, each feasible in its round."""
        return {REGRET: self._tracked(rounds, self.path)}

    def violation_bound(self, rounds: NDArray[np.int64] | int, path: float) -> FloatArray:
        """Of the hard violation, where the best decisions of single rounds move by no more than `path` in all."""
        if self.price == 0:
            raise InputError("penalty", "violations cost nothing, so nothing is promised of them", "Choose another")
        return self._tracked(np.asarray(rounds), path)

    def _tracked(self, rounds: NDArray[np.int64], path: float) -> FloatArray:
        t = horizons_of(np.asarray(rounds), self.batch_shape)
        if np.any(t > self.tracker.horizon):
            what = f"{np.max(t):g} is beyond the horizon {self.tracker.horizon} that the learner was made for"
            raise InputError("rounds", what, "Give at most as many")
        return self.tracker.dynamic_regret(t, path)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> TrackedPenaltyState:
        x = self.tracker.project(self.initial_x(batch_shape, xp, dtype))
        return TrackedPenaltyState(xp.asarray(1, dtype=xp.int64), x, self.tracker.memory(x))

    def ask(self, state: TrackedPenaltyState) -> Array:
        return state.x

    def update(self, state: TrackedPenaltyState, feedback: Feedback) -> TrackedPenaltyState:
        x, xp, descent = state.x, namespace(state.x), feedback.loss_gradient
        broken = as_column(xp.astype(feedback.constraint > 0, x.dtype))
        if self.price > 0:
            descent = descent + self.price * broken * feedback.constraint_gradient
        if self.projection is not None:
            away = x - self.projection(x)
            descent = descent + self.distance_price * broken * away / as_column(clamp_to_divisor(norm(away)))
        x, memory = self.tracker.step(x, state.memory, descent, state.round)
        return TrackedPenaltyState(state.round + 1, x, memory)

    def report(self, state: TrackedPenaltyState) -> dict[str, Array]:
        return {}
