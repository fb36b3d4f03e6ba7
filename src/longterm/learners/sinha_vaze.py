"""Sinha and Vaze (NeurIPS 2024): √T regret and Õ(√T) *hard* violation against constraints of an adversary.

With g_t = max_j g_{t,j} and the violation so far, round t included, Q(t) = Σ_{s≤t} [g_s(x_s)]₊,

    d_t     = ∇f_t(x_t) + w_t ∇[g_t(x_t)]₊        ∇[g]₊ = 0 where g ≤ 0
    x_{t+1} = one step of an inner learner against d_t                                     x_1 = centre of B

- "convex": w_t = ω exp(ωQ(t)/(2GΔ)), ω = 1/(2√T); the inner learner is AdaGrad with η_t = (Δ/√2)/√(Σ ‖d_s‖²). The
  article divides f_t and g_t by 2GΔ; its inner step does not feel a common factor of the d_t, so the points are the
  same. Here losses have G_f and constraints G_g: scaling g by G_f/G_g changes neither {g ≤ 0} nor x*, so
  w_t = (G_f/G_g) ω exp(ωQ(t)/(2G_gΔ)).
- "strongly convex": w_t = 2Q(t)/V, V = 8G_g² (1 + ln T)/σ; the inner step is 1/(σt). (The article charges
  V f_t + 2Q(t)[g_t]₊, which is Vσ-strongly convex, and its proof steps 1/(Vσt): the same points. Its algorithm prints
  the strong convexity of f_t where that of the charge is meant; such steps are V times too long, and break the bound.)

The inner learner is a slot: ``inner=`` takes any `AdaptiveInner`, whose C replaces √2 Δ.
Needs: value and one subgradient of f_t and g_t at x_t; the horizon (`DoublingRestarts` does without).
Guarantees: `theorem`, against every x* with g_t(x*) ≤ 0 in all rounds: in every round t ≤ T regret ≤ 2G_fΔ√t (1 + ω),
and Σ [g]₊ ≤ 4G_gΔ√T ln(2(1 + √t + t/2)) (the article has 2GΔ(√t + 1) and ln(2(1 + 2T))); strongly convex
(G_f²/σ)(1 + ln t) and O(√(t log T)). No Slater point. Proofs: `docs/after_the_paper.md`.

An inner learner knows of no constraints: it is handed a surrogate loss, sees its gradients d_t and moves x; what it
remembers is one array. Adaptive ones promise, against any u in B,

    Σ ⟨d_t, x_t − u⟩ ≤ C √(Σ ‖d_t‖²)                                    (`constant` is C)

for any d_t, however long, and do not change if all d_t are multiplied by the same number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, dot, like, namespace, resolution
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.base import MadeForHorizon
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need, StepKind, require_strong_convexity
from longterm.problems import Problem
from longterm.sets import Box, Set
from longterm.theory.bounds import HARD, REGRET, NoTheoremError, horizons_of
from longterm.theory.facts import Constants


class Inner(ABC):
    """A rule that moves x against a gradient."""

    enclosing_set: Set
    strong_convexity: float = 0.0
    """The σ that its steps were made for; 0 where they are made for any convex losses."""

    @abstractmethod
    def memory(self, x: Array) -> Array:
        """What it remembers before round 1, for decisions of this shape."""

    @abstractmethod
    def step(self, x: Array, memory: Array, gradient: Array, t: Array) -> tuple[Array, Array]:
        """x_{t+1} and the memory after round t."""


class AdaptiveInner(Inner):
    """One that needs to know nothing about its gradients."""

    constant: float
    """C: its regret is at most C √(Σ ‖d_t‖²)."""


@dataclass(frozen=True, eq=False)
class AdaGradNorm(AdaptiveInner):
    """x_{t+1} = Π_B(x_t − η_t d_t), η_t = (Δ/√2)/√(Σ_{s≤t} ‖d_s‖²), on any B: C = √2 Δ.

    Parameters
    ----------
    enclosing_set : Set
        B.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.learners.sinha_vaze import AdaGradNorm
    >>> from longterm.sets import Ball
    >>> rule, x = AdaGradNorm(Ball(1, radius=2.0)), np.zeros(1)
    >>> x, memory = rule.step(x, rule.memory(x), np.array([3.0]), np.asarray(1))
    >>> x, float(memory)  # −4/√2 is outside the ball
    (array([-2.]), 9.0)
    """

    enclosing_set: Set

    def __post_init__(self) -> None:
        validate.set_frozen(self, constant=2**0.5 * self.enclosing_set.diameter)

    def memory(self, x: Array) -> Array:
        return namespace(x).zeros_like(x[..., 0])

    def step(self, x: Array, memory: Array, gradient: Array, t: Array) -> tuple[Array, Array]:
        squares = memory + dot(gradient, gradient)
        eta = self.enclosing_set.diameter / 2**0.5 / root_or_one(squares)
        return self.enclosing_set.project(x - as_column(eta) * gradient), squares


@dataclass(frozen=True, eq=False)
class AdaGradDiagonal(AdaptiveInner):
    """The same for each coordinate of a box by itself, with the box's widths w_i: C = √2 ‖w‖ = √2 Δ, never more.

    In coordinate i the regret is at most √2 w_i √(Σ d_{t,i}²); add them up by Cauchy's inequality.

    Parameters
    ----------
    enclosing_set : Set
        B, a box.
    """

    enclosing_set: Set
    widths: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        box = self.enclosing_set
        if not isinstance(box, Box):
            what = f"is a {type(box).__name__}, which does not fall apart into coordinates"
            raise InputError("enclosing_set", what, "Give a Box, or use AdaGradNorm")
        validate.set_frozen(self, constant=2**0.5 * box.diameter, widths=validate.frozen(box.upper - box.lower))

    def memory(self, x: Array) -> Array:
        return namespace(x).zeros_like(x)

    def step(self, x: Array, memory: Array, gradient: Array, t: Array) -> tuple[Array, Array]:
        squares = memory + gradient * gradient
        eta = like(self.widths, x) / 2**0.5 / root_or_one(squares)
        return self.enclosing_set.project(x - eta * gradient), squares


@dataclass(frozen=True, eq=False)
class StronglyConvexOGD(Inner):
    """x_{t+1} = Π_B(x_t − d_t/(σt)) for σ-strongly convex losses: regret at most Σ ‖d_t‖²/(2σt). No memory.

    Parameters
    ----------
    enclosing_set : Set
        B.
    strong_convexity : float
        σ.
    """

    enclosing_set: Set
    strong_convexity: float = field()

    def __post_init__(self) -> None:
        sigma = validate.positive_scalar("strong_convexity", self.strong_convexity)
        validate.set_frozen(self, strong_convexity=sigma)

    def memory(self, x: Array) -> Array:
        return namespace(x).zeros_like(x[..., 0])

    def step(self, x: Array, memory: Array, gradient: Array, t: Array) -> tuple[Array, Array]:
        eta = 1 / (self.strong_convexity * namespace(x).astype(t, x.dtype))
        return self.enclosing_set.project(x - as_column(eta) * gradient), memory


def root_or_one(squares: Array) -> Array:
    """√squares, and 1 where nothing has been seen yet: the gradient it divides is 0 there."""
    xp = namespace(squares)
    return xp.sqrt(xp.where(squares > 0, squares, 1.0))


LARGEST_EXPONENT = 40.0
"""Within T ≤ 10^16 rounds of a covered run the exponent stays below; a run that no theorem covers must not overflow."""


class Price(ABC):
    """What a unit of violation costs, from the violation so far: w as a function of Q and of the horizon T.

    w = Φ'(Q)/V, with a convex potential Φ: then V Σ Δf_t + Φ(Q) − Φ(0) ≤ V · (regret of the charged losses), because
    Φ(Q_t) − Φ(Q_{t−1}) ≤ Φ'(Q_t) [g_t(x_t)]₊, and a feasible x* is charged nothing.
    """

    @abstractmethod
    def at(self, violation: Array, horizon: Array) -> Array:
        """w, shaped as the violation is."""


@dataclass(frozen=True, eq=False)
class ExponentialPrice(Price):
    """Φ(Q) = exp(ωQ/s_g) − 1 with ω = 1/(2√T), for f_t/s_f: w = (s_f/s_g) ω exp(ωQ/s_g).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.learners.sinha_vaze import ExponentialPrice
    >>> price = ExponentialPrice(loss_scale=6.0, constraint_scale=2.0)
    >>> float(price.at(np.asarray(0.0), np.asarray(9.0)))  # 3 · 1/6
    0.5
    """

    loss_scale: float
    constraint_scale: float

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "loss_scale", "constraint_scale")

    def at(self, violation: Array, horizon: Array) -> Array:
        xp, omega = namespace(violation), 0.5 / horizon**0.5
        exponent = xp.minimum(omega * violation / self.constraint_scale, LARGEST_EXPONENT)
        return self.loss_scale / self.constraint_scale * omega * xp.exp(exponent)


@dataclass(frozen=True, eq=False)
class QuadraticPrice(Price):
    """Φ(Q) = Q² and V = 8G_g² (1 + ln T)/σ: w = 2Q/V = Qσ/(4G_g² (1 + ln T))."""

    constraint_gradient_bound: float
    strong_convexity: float

    def __post_init__(self) -> None:
        G_g = validate.positive_scalar("constraint_gradient_bound", self.constraint_gradient_bound)
        sigma = validate.positive_scalar("strong_convexity", self.strong_convexity)
        validate.set_frozen(self, constraint_gradient_bound=G_g, strong_convexity=sigma)

    def at(self, violation: Array, horizon: Array) -> Array:
        logarithm = 1 + namespace(violation).log(horizon)
        return violation * self.strong_convexity / (4 * self.constraint_gradient_bound**2 * logarithm)


INNER: Mapping[str, Callable[[Set], AdaptiveInner]] = {"norm": AdaGradNorm, "diagonal": AdaGradDiagonal}


class SinhaVazeState(NamedTuple):
    """(t, x_t, Q(t−1)) and what the inner learner remembers."""

    round: Array
    x: Array
    violation: Array
    memory: Array


@dataclass(frozen=True, eq=False)
class SinhaVaze(MadeForHorizon[SinhaVazeState]):
    """An inner learner on f_t + w_t [g_t]₊, with a price w_t for the violation so far.

    Parameters
    ----------
    inner : Inner
        The learner without constraints, on its enclosing set.
    price : Price
        w_t, from the violation so far.
    horizon : float or array
        T.
    made_for : Constants, optional
        The problem's, if the price was made for one.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import observe
    >>> from longterm.learners import SinhaVaze
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()  # σ = G_g = 1, g = x₁ − ¼
    >>> learner = SinhaVaze.for_problem(problem, horizon=1, steps="strongly convex")  # w = Q/4
    >>> state = learner.init()
    >>> for _ in range(2):
    ...     state = learner.tell(state, observe(problem, learner.ask(state), [np.array([1.0, 0.0])]))
    >>> learner.ask(state), float(state.violation)  # (1, 0) − ½ · w_2 (1, 0), w_2 = ¾/4
    (array([0.90625, 0.     ]), 0.75)
    """

    inner: Inner
    price: Price
    horizon: Hyper
    made_for: Constants | None = None
    enclosing_set: Set = field(init=False, repr=False)

    needs: ClassVar[frozenset[Need]] = frozenset({Need.HORIZON})
    name: ClassVar[str] = "sinha_vaze"
    title: ClassVar[str] = "Sinha–Vaze"
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(√T), O(log T)", HARD: "O(√T log T), O(√(T log T))"}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"steps": "strongly convex"})

    def __post_init__(self) -> None:
        horizon = validate.positive("horizon", self.horizon)
        validate.set_frozen(self, horizon=horizon, enclosing_set=self.inner.enclosing_set)

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        horizon: int,
        steps: StepKind = "convex",
        inner: Literal["norm", "diagonal"] | Inner = "norm",
    ) -> SinhaVaze:
        """Sinha and Vaze: gradient descent on loss plus an exponential price of the violation so far, known horizon.

        Parameters
        ----------
        problem : Problem
            Gives B, Δ, G_f, G_g and σ.
        horizon : int
            T, the number of rounds.
        steps : {"convex", "strongly convex"}
            The exponential price and an adaptive inner learner; or the quadratic price and steps 1/(σt).
        inner : {"norm", "diagonal"} or AdaptiveInner
            For convex losses: AdaGrad with one step, or, on a box, with one for each coordinate; or one of your own,
            whose C replaces √2 Δ.
        """
        T, c, B = validate.count("horizon", horizon), problem.constants, problem.enclosing_set
        if steps != "convex":
            sigma = require_strong_convexity(problem, steps)
            if inner != "norm":
                what = "has no place among the steps for strongly convex losses, which are 1/(σt)"
                raise InputError("inner", what, "Leave it out, or use steps='convex'")
            return cls(StronglyConvexOGD(B, sigma), QuadraticPrice(c.constraint_gradient_bound, sigma), T, c)
        if isinstance(inner, str) and inner not in INNER:
            raise InputError("inner", f"{inner!r} is not known", "Choose 'norm', 'diagonal', or give an AdaptiveInner")
        rule = INNER[inner](B) if isinstance(inner, str) else inner
        if not isinstance(rule, AdaptiveInner):
            what = f"{type(rule).__name__} is not adaptive"
            raise InputError("inner", what, "Give an AdaptiveInner, whose regret is at most C √(Σ ‖d_t‖²)")
        scales = (2**0.5 * rule.constant * bound for bound in (c.loss_gradient_bound, c.constraint_gradient_bound))
        return cls(rule, ExponentialPrice(*scales), T, c)

    def for_horizon(self, rounds: Array) -> SinhaVaze:
        return self.with_steps(horizon=rounds)

    @property
    def strong_convexity(self) -> Hyper:
        return self.inner.strong_convexity

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        return None if self.made_for is None else self.made_for.loss_gradient_bound

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        return None if self.made_for is None else self.made_for.constraint_gradient_bound

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """In any round t ≤ T. The exponential price, with s_f = √2 C G_f, s_g = √2 C G_g and ω = 1/(2√T):

            Σ f_s(x_s) − f_s(x*) ≤ s_f √t (1 + ω)
            Σ [g_s(x_s)]₊        ≤ (s_g/ω) ln( (1 + √t + F t/s_f)/(1 − ω√t) )

        C is the inner learner's: √2 Δ for AdaGrad, which makes s_f = 2G_fΔ and s_g = 2G_gΔ. The quadratic price, with
        V = 8G_g² (1 + ln T)/σ:

            Σ f_s(x_s) − f_s(x*) ≤ P = (G_f²/σ)(1 + ln t),      Σ [g_s(x_s)]₊ ≤ √( 2V (P + F t) )

        Examples
        --------
        >>> from longterm.learners import SinhaVaze
        >>> from longterm.problems import two_dimensional
        >>> problem = two_dimensional()
        >>> bound = SinhaVaze.for_problem(problem, horizon=10_000).bound(problem, 10_000)
        >>> [round(float(part), 1) for part in bound.values()]
        [804.0, 6845.4]
        """
        t, T = horizons_of(rounds, self.batch_shape), np.asarray(self.horizon, dtype=np.float64)
        if np.any(t > T):
            what = f"{np.max(t):g} is beyond the horizon {np.min(T):g} that the learner was made for"
            raise InputError("rounds", what, "Give at most as many, or use DoublingRestarts")
        c, price = problem.constants, self.price
        if isinstance(price, ExponentialPrice) and isinstance(self.inner, AdaptiveInner):
            omega = 1 / (2 * np.sqrt(T))
            regret = price.loss_scale * np.sqrt(t) * (1 + omega)
            most = (1 + np.sqrt(t) + c.loss_range * t / price.loss_scale) / (1 - omega * np.sqrt(t))
            hard = price.constraint_scale / omega * np.log(most)
        elif isinstance(price, QuadraticPrice) and self._steps_fit(price):
            V = 8 * price.constraint_gradient_bound**2 * (1 + np.log(T)) / price.strong_convexity
            regret = c.loss_gradient_bound**2 / price.strong_convexity * (1 + np.log(t))
            hard = np.sqrt(2 * V * (regret + c.loss_range * t))
        else:
            names = f"{type(price).__name__} with {type(self.inner).__name__}"
            raise NoTheoremError(f"none is known for {names}", "Make it with SinhaVaze.for_problem")
        return dict(zip((REGRET, HARD), np.broadcast_arrays(regret, hard), strict=True))

    def _steps_fit(self, price: QuadraticPrice) -> bool:
        return isinstance(self.inner, StronglyConvexOGD) and self.inner.strong_convexity == price.strong_convexity

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> SinhaVazeState:
        x = self.initial_x(batch_shape, xp, dtype)
        nothing = xp.zeros(x.shape[:-1], dtype=x.dtype)
        return SinhaVazeState(xp.asarray(1, dtype=xp.int64), x, nothing, self.inner.memory(x))

    def ask(self, state: SinhaVazeState) -> Array:
        return state.x

    def update(self, state: SinhaVazeState, feedback: Feedback) -> SinhaVazeState:
        xp = namespace(state.x)
        violation = state.violation + xp.maximum(feedback.constraint, 0.0)
        # The gradient is that of some g_j within rounding of the maximum, so what is below rounding is not charged.
        allowed = 0.0 if self.made_for is None else resolution(state.x) * self.made_for.constraint_bound
        broken = xp.astype(feedback.constraint > allowed, state.x.dtype)
        gradient = feedback.loss_gradient + as_column(self._price(violation) * broken) * feedback.constraint_gradient
        x, memory = self.inner.step(state.x, state.memory, gradient, state.round)
        return SinhaVazeState(state.round + 1, x, violation, memory)

    def report(self, state: SinhaVazeState) -> dict[str, Array]:
        return {"multiplier": self._price(state.violation)}

    def _price(self, violation: Array) -> Array:
        horizon = like(self.horizon, violation) * namespace(violation).ones_like(violation)
        return self.price.at(violation, horizon)
