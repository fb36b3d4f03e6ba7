"""Constraints that change, no Slater point, no horizon (Yu, Lee, Lee 2026, arXiv 2606.31480): signed and hard form.

A queue Q_t of the violations so far, less what the theory can spare, sets the weight of the constraint:

    w_t     = γ_t exp(γ_t Q_t),                      W_t = Σ_{s≤t} w_s²
    x_{t+1} = Π_B( x_t − η_t d_t ),                  d_t = ∇f_t(x_t) + w_t ∇g_t(x_t),          x_1 = centre of B
    Q_{t+1} = Q_t + g_t(x_t) − κ γ_t D² − ( Ψ(W_t) − Ψ(W_{t−1}) ) / w_t,       Ψ(W) = 4 Δ G √W,      Q_1 = 0

with g_t = max_j g_{t,j} (`YuLeeLee`), or [g_t]₊ in its place (`HardYuLeeLee`). Q_t may be negative. The last term is
computed as 4ΔG w_t/(√W_t + √W_{t−1}), which is the same and loses nothing to rounding.

Steps: η_t = Δ/√(2 (1 + Σ_{s≤t} ‖d_s‖²)) for convex losses, η_t = 1/(σt + (2G/Δ) √W_t) for σ-strongly convex ones.
γ_t and κ are `Published`, the article's min(1/(12 D √t), 1/(24 Δ G), 1) and 12, or `Sharp`, ours, which the same proof
allows. The authors' code leaves out κ γ_t D² and multiplies γ_t by some hundreds; no theorem is known for that.
Needs: value and one subgradient of f_t and g_t at x_t. No horizon, no Slater point, no projection.
Guarantees: `bounds.yu_lee_lee`, at every T: O(√T) regret (strongly convex: O(log T)), and for Σ g_t(x_t) O(√T log T)
(`Sharp`: O(√(T log T))), against any x* with g_t(x*) ≤ 0 in every round; in expectation, where the g_t are drawn
independently, against any x* that is feasible on average. The hard form bounds Σ [g_t(x_t)]₊, against an x* that is
feasible in every round.
Checked: constants and proof are ours (`docs/after_the_paper.md`). With γ_t that change a negative Q_t costs the
proof (1/e) ln(γ_1/γ_T), a logarithm that is in our bound.
Not promised: that the constraint is felt soon. With `Published`, w_t passes 1 when Q_t is about 12 D √t ln(12 D √t): on
the unit disc with D = 5/4 and a constraint broken by ½ in every round that takes some tens of thousands of rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, column, dot, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners._given_prox import strong_convexity_of
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback, positive_part
from longterm.learners.yu_lee_lee_rates import Published, Rates, rates_of
from longterm.problems import Problem
from longterm.sets import Set


class YuLeeLeeState(NamedTuple):
    """(t, x_t, Q_t, W_{t−1}, Σ_{s<t} ‖d_s‖²)."""

    round: Array
    x: Array
    queue: Array
    weight_square_sum: Array
    gradient_square_sum: Array


@dataclass(frozen=True, eq=False)
class YuLeeLee(Learner[YuLeeLeeState]):
    """The signed form. The rates hold Δ, G and D.

    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import YuLeeLee
    >>> from longterm.problems import two_dimensional
    >>> from longterm.learners import Sharp
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> learner, targets = YuLeeLee.for_problem(problem, rates="sharp"), Replay([np.tile([0.8, 0.6], (20_000, 1))])
    >>> trace = run(problem, learner, targets, record=[5000, 20_000])
    >>> trace.signed_violation.round(0)
    array([2155., 4370.])
    """

    enclosing_set: Set
    rates: Rates
    strong_convexity: Hyper | None = None
    """σ, for the steps of strongly convex losses; None for the others'."""

    def __post_init__(self) -> None:
        if self.strong_convexity is not None:
            validate.remember(self, strong_convexity=validate.positive("strong_convexity", self.strong_convexity))

    @classmethod
    def convex(cls, problem: Problem, rates: type[Rates] = Published) -> Self:
        """AdaGrad steps, with the problem's own Δ, G and D."""
        return cls(problem.enclosing_set, rates_of(rates, problem))

    @classmethod
    def strongly_convex(cls, problem: Problem, rates: type[Rates] = Published) -> Self:
        """Steps for strongly convex losses, with the problem's own Δ, G, D and σ."""
        sigma = strong_convexity_of(problem, f"{cls.__name__}.convex")
        return cls(problem.enclosing_set, rates_of(rates, problem), sigma)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        sigma = problem.constants.strong_convexity
        if self.strong_convexity is not None and np.any(self.strong_convexity > sigma):
            what = f"its steps are made for σ = {self.strong_convexity}, the losses have {sigma:g}"
            raise InputError("learner", what, "Use the convex steps, or declare a strong_convexity that holds")

    @property
    def gradient_bound(self) -> Hyper | None:
        return self.rates.gradient_bound

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> YuLeeLeeState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        zero = xp.zeros(x.shape[:-1], dtype=x.dtype)
        return YuLeeLeeState(xp.asarray(1, dtype=xp.int64), x, zero, zero, zero)

    def ask(self, state: YuLeeLeeState) -> Array:
        return state.x

    def update(self, state: YuLeeLeeState, feedback: Feedback) -> YuLeeLeeState:
        xp, D = namespace(state.x), like(self.rates.constraint_bound, state.x)
        gamma, weight = self._weight(state)
        weight_square_sum = state.weight_square_sum + weight**2
        descent = feedback.loss_gradient + column(weight) * feedback.constraint_gradient
        gradient_square_sum = state.gradient_square_sum + dot(descent, descent)
        eta = self._eta(state.round, weight_square_sum, gradient_square_sum)
        roots = xp.sqrt(weight_square_sum) + xp.sqrt(state.weight_square_sum)
        steepness = like(self.rates.diameter * self.rates.gradient_bound, state.x)
        spared = self.rates.spared * gamma * D**2 + 4 * steepness * weight / roots
        return YuLeeLeeState(
            round=state.round + 1,
            x=self.enclosing_set.project(state.x - column(eta) * descent),
            queue=state.queue + feedback.constraint - spared,
            weight_square_sum=weight_square_sum,
            gradient_square_sum=gradient_square_sum,
        )

    def _weight(self, state: YuLeeLeeState) -> tuple[Array, Array]:
        """γ_t and w_t."""
        xp = namespace(state.x)
        gamma = self.rates.gamma(xp.astype(state.round, state.x.dtype))
        return gamma, gamma * xp.exp(gamma * state.queue)

    def _eta(self, t: Array, weight_square_sum: Array, gradient_square_sum: Array) -> Array:
        xp, wide = namespace(weight_square_sum), like(self.rates.diameter, weight_square_sum)
        if self.strong_convexity is None:
            return wide / xp.sqrt(2 * (1 + gradient_square_sum))
        sigma = like(self.strong_convexity, weight_square_sum)
        brake = 2 * like(self.rates.gradient_bound, weight_square_sum) / wide * xp.sqrt(weight_square_sum)
        return 1 / (sigma * xp.astype(t, weight_square_sum.dtype) + brake)

    def report(self, state: YuLeeLeeState) -> dict[str, Array]:
        gamma, weight = self._weight(state)
        return {"multiplier": weight, "queue": state.queue, "gamma": gamma}


@dataclass(frozen=True, eq=False)
class HardYuLeeLee(YuLeeLee):
    """The hard form: it is told [g_t]₊, so that no slack round makes up for a broken one.

    >>> import numpy as np
    >>> from longterm import observe
    >>> from longterm.learners import HardYuLeeLee
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> learner = YuLeeLee.for_problem(problem, hard=True, rates="published")
    >>> state = learner.tell(learner.init(), observe(problem, np.zeros(2), [np.array([0.8, 0.6])]))  # g(x_1) = −¼
    >>> round(float(state.queue), 4)  # −12 γ_1 D² − 4ΔG, γ_1 = 1/(24ΔG) = 1/96
    -16.1953
    """

    def update(self, state: YuLeeLeeState, feedback: Feedback) -> YuLeeLeeState:
        return super().update(state, positive_part(feedback, self.rates.constraint_bound))
