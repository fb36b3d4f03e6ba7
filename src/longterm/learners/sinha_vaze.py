"""Sinha and Vaze (NeurIPS 2024): √T regret and Õ(√T) *hard* violation against constraints of an adversary.

With g_t = max_j g_{t,j} and the violation so far, round t included, Q(t) = Σ_{s≤t} [g_s(x_s)]₊,

    d_t     = ∇f_t(x_t) + w_t ∇[g_t(x_t)]₊        ∇[g]₊ = 0 where g ≤ 0
    x_{t+1} = one step of an inner learner against d_t                                     x_1 = centre of B

- `convex`: w_t = ω exp(ωQ(t)/(2GΔ)), ω = 1/(2√T); the inner learner is AdaGrad with η_t = (Δ/√2)/√(Σ ‖d_s‖²). The
  article divides f_t and g_t by 2GΔ; its inner step does not feel a common factor of the d_t, so the points are the
  same. Here losses have G_f and constraints G_g: scaling g by G_f/G_g changes neither {g ≤ 0} nor x*, so
  w_t = (G_f/G_g) ω exp(ωQ(t)/(2G_gΔ)).
- `strongly_convex`: w_t = 2Q(t)/V, V = 8G_g² (1 + ln T)/σ; the inner step is 1/(σt). (The article charges
  V f_t + 2Q(t)[g_t]₊, which is Vσ-strongly convex, and its proof steps 1/(Vσt): the same points. Its algorithm prints
  the strong convexity of f_t where that of the charge is meant; such steps are V times too long, and break the bound.)

The inner learner is a slot: ``inner=`` takes any `AdaptiveInner`, whose C replaces √2 Δ (`learners.inner`).
Needs: value and one subgradient of f_t and g_t at x_t; the horizon (`DoublingRestarts` does without).
Guarantees: `bounds.sinha_vaze` and `bounds.sinha_vaze_strongly_convex`, against every x* with g_t(x*) ≤ 0 in all
rounds: in every round t ≤ T regret ≤ 2G_fΔ√t (1 + ω), and Σ [g]₊ ≤ 4G_gΔ√T ln(2(1 + √t + t/2)) (the article has 2GΔ(√t
+ 1) and ln(2(1 + 2T))); strongly convex (G_f²/σ)(1 + ln t) and O(√(t log T)). No Slater point. Proofs:
`docs/after_the_paper.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, column, like, namespace, resolution
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners._given_prox import strong_convexity_of
from longterm.learners.feedback import Feedback
from longterm.learners.horizon import MadeForHorizon
from longterm.learners.inner import AdaGradNorm, AdaptiveInner, Inner, StronglyConvexOGD
from longterm.learners.needs import Need
from longterm.learners.prices import ExponentialPrice, Price, QuadraticPrice
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.facts import Constants


class SinhaVazeState(NamedTuple):
    """(t, x_t, Q(t−1)) and what the inner learner remembers."""

    round: Array
    x: Array
    violation: Array
    memory: Array


@dataclass(frozen=True, eq=False)
class SinhaVaze(MadeForHorizon[SinhaVazeState]):
    """An inner learner on f_t + w_t [g_t]₊, with a price w_t for the violation so far.

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
    """The problem's constants, if the price was made for one."""
    enclosing_set: Set = field(init=False, repr=False)
    needs: ClassVar[frozenset[Need]] = frozenset({Need.HORIZON})

    def __post_init__(self) -> None:
        horizon = validate.positive("horizon", self.horizon)
        validate.remember(self, horizon=horizon, enclosing_set=self.inner.enclosing_set)

    @classmethod
    def convex(cls, problem: Problem, horizon: int, *, inner: Inner | None = None) -> SinhaVaze:
        """The exponential price, with the problem's own G_f, G_g and Δ, or with the C of another inner learner."""
        T, c = validate.count("horizon", horizon), problem.constants
        rule = AdaGradNorm(problem.enclosing_set) if inner is None else inner
        if not isinstance(rule, AdaptiveInner):
            what = f"{type(rule).__name__} is not adaptive"
            raise InputError("inner", what, "Give an AdaptiveInner, whose regret is at most C √(Σ ‖d_t‖²)")
        scales = (2**0.5 * rule.constant * bound for bound in (c.loss_gradient_bound, c.constraint_gradient_bound))
        return cls(rule, ExponentialPrice(*scales), T, c)

    @classmethod
    def strongly_convex(cls, problem: Problem, horizon: int) -> SinhaVaze:
        """The quadratic price, with the problem's own σ and G_g."""
        T, c = validate.count("horizon", horizon), problem.constants
        sigma = strong_convexity_of(problem, "SinhaVaze.convex")
        price = QuadraticPrice(c.constraint_gradient_bound, sigma)
        return cls(StronglyConvexOGD(problem.enclosing_set, sigma), price, T, c)

    def for_horizon(self, rounds: Array) -> SinhaVaze:
        return self.with_steps(horizon=rounds)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        sigma = problem.constants.strong_convexity
        if isinstance(self.inner, StronglyConvexOGD) and self.inner.strong_convexity > sigma * (1 + 1e-9):
            what = f"its steps are made for σ = {self.inner.strong_convexity:g}, the losses have {sigma:g}"
            raise InputError("learner", what, "Use SinhaVaze.convex, or declare a strong_convexity that holds")

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        return None if self.made_for is None else self.made_for.loss_gradient_bound

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        return None if self.made_for is None else self.made_for.constraint_gradient_bound

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> SinhaVazeState:
        x = self.at_the_centre(batch_shape, xp, dtype)
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
        gradient = feedback.loss_gradient + column(self._price(violation) * broken) * feedback.constraint_gradient
        x, memory = self.inner.step(state.x, state.memory, gradient, state.round)
        return SinhaVazeState(state.round + 1, x, violation, memory)

    def report(self, state: SinhaVazeState) -> dict[str, Array]:
        return {"multiplier": self._price(state.violation)}

    def _price(self, violation: Array) -> Array:
        horizon = like(self.horizon, violation) * namespace(violation).ones_like(violation)
        return self.price.at(violation, horizon)
