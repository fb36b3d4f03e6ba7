"""Yu and Neely (JMLR 2020): O(√T) regret, and a violation that does not grow with T where there is a Slater point.

With queues Q in R^m, written with γ and α as in the article:

    Q_j(t)  = max( −γ g_j(x_t),  Q_j(t−1) + γ g_j(x_t) )                              Q(0) = 0
    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t(x_t), x⟩ + ⟨w_t, g(x)⟩ + α‖x − x_t‖²                x_1 = centre of B
    w_t     = γ ( Q(t) + γ g(x_t) )

For affine g = Ax − b that is x_{t+1} = Π_B(x_t − (∇f_t + Aᵀw_t)/(2α)) (its Lemma 2). Other constraints need their prox
(`Constraint.prox`; `constraints.Smooth` gives smooth ones theirs): a gradient in place of g itself is **not** covered
by the theorem.

Steps: `published`: γ = T^{1/4}, α = (G_m² + 1)√T/2, where G_m is the Lipschitz constant of the vector g (the article's
β). That is not free of units; `tuned` is, with α = G_f√T/r and γ²G_m² = α, and has regret (3/2) r G_f √T. Any γ²G_m² <
2α has a bound.
Needs: a fixed constraint with a prox; the horizon (`DoublingRestarts` does without).
Guarantees: `bounds.yu_neely`: O(√T) regret; each Σ_t g_j(x_t) = O(1) given a Slater point, else O(T^{1/4}). Proved anew
in `docs/after_the_paper.md`, where the article's 1/ε in the leading constant turns out not to be needed.
Not promised: anything about Σ [g(x_t)]₊: the sum is signed, and a slack round makes up for a broken one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, column, like, namespace
from longterm._validate import Hyper
from longterm.constraints.prox import Prox
from longterm.learners._given_prox import as_reported, prox_of, require_same_constraint, values_of
from longterm.learners.feedback import Feedback
from longterm.learners.horizon import MadeForHorizon
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.assumptions import Assumption


class YuNeelyState(NamedTuple):
    """(t, x_t, Q(t−1)); the queues have shape (..., m)."""

    round: Array
    x: Array
    queue: Array


@dataclass(frozen=True, eq=False)
class YuNeely(MadeForHorizon[YuNeelyState]):
    """Yu and Neely's method with the prox of a constraint on a set.

    >>> import numpy as np
    >>> from longterm import Problem, run
    >>> from longterm.learners import YuNeely
    >>> from longterm.constraints import Affine
    >>> from longterm.losses import Linear
    >>> from longterm.sets import Ball
    >>> from longterm.streams import Replay
    >>> problem = Problem(Ball(2), Linear(2), Affine([[-1.0, 0.0]], [-0.5]))  # x₁ ≥ ½, which every cost pulls down
    >>> for T in (100, 10_000):
    ...     trace = run(problem, YuNeely.for_problem(problem, horizon=T), Replay([np.tile([0.8, 0.6], (T, 1))]))
    ...     print(round(float(trace.signed_violation.max()), 2))
    0.54
    0.5
    """

    prox: Prox
    horizon: Hyper
    gamma: Hyper
    alpha: Hyper
    lipschitz: float
    """G_m: ‖g(x) − g(y)‖ ≤ G_m‖x − y‖ for the vector g."""
    made_for: float | None = None
    """The G_f that the steps were made for, if they were made for one."""
    enclosing_set: Set = field(init=False, repr=False)
    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PROX, Need.HORIZON})

    def __post_init__(self) -> None:
        validate.remember(
            self,
            horizon=validate.positive("horizon", self.horizon),
            gamma=validate.positive("gamma", self.gamma),
            alpha=validate.positive("alpha", self.alpha),
            lipschitz=validate.positive_scalar("lipschitz", self.lipschitz),
            enclosing_set=self.prox.over,
        )

    @classmethod
    def published(cls, problem: Problem, horizon: int) -> YuNeely:
        """γ = T^{1/4}, α = (G_m² + 1)√T/2."""
        prox, T, beta, G_f = _facts(problem, horizon)
        return cls(prox, T, T**0.25, (beta**2 + 1) * T**0.5 / 2, beta, G_f)

    @classmethod
    def tuned(cls, problem: Problem, horizon: int) -> YuNeely:
        """α = G_f√T/r, γ = √α/G_m: the same whatever units losses, constraints and decisions are measured in."""
        prox, T, beta, G_f = _facts(problem, horizon)
        alpha = G_f * T**0.5 / problem.constants.radius
        return cls(prox, T, alpha**0.5 / beta, alpha, beta, G_f)

    def for_horizon(self, rounds: Array) -> YuNeely:
        longer = rounds / like(self.horizon, rounds)
        gamma, alpha = like(self.gamma, rounds) * longer**0.25, like(self.alpha, rounds) * longer**0.5
        return self.with_steps(horizon=rounds, gamma=gamma, alpha=alpha)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        require_same_constraint(self.prox, problem)

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        return self.made_for

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        value = (np.asarray(self.gamma) * self.lipschitz) ** 2
        return (Assumption.worst("γ²G_m² ≤ 2α", value, 2 * np.asarray(self.alpha), "Take a smaller γ or a larger α"),)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> YuNeelyState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        queue = xp.zeros((*x.shape[:-1], self.prox.constraint.count), dtype=x.dtype)
        return YuNeelyState(xp.asarray(1, dtype=xp.int64), x, queue)

    def ask(self, state: YuNeelyState) -> Array:
        return state.x

    def update(self, state: YuNeelyState, feedback: Feedback) -> YuNeelyState:
        gamma, alpha = self._steps(state.x)
        scaled = column(gamma) * values_of(feedback, self.prox.constraint.count)
        queue = namespace(scaled).maximum(-scaled, state.queue + scaled)
        weights = column(gamma) * (queue + scaled)
        slope = feedback.loss_gradient - column(2 * alpha) * state.x
        return YuNeelyState(state.round + 1, self.prox.argmin(slope, weights, 2 * alpha), queue)

    def report(self, state: YuNeelyState) -> dict[str, Array]:
        gamma, alpha = self._steps(state.x)
        return {"multiplier": as_reported(column(gamma) * state.queue), "gamma": gamma, "alpha": alpha}

    def _steps(self, x: Array) -> tuple[Array, Array]:
        """γ and α, one for each learner."""
        one = namespace(x).ones_like(x[..., 0])
        return like(self.gamma, x) * one, like(self.alpha, x) * one


def _facts(problem: Problem, horizon: int) -> tuple[Prox, int, float, float]:
    """The constraint's prox, T, G_m and G_f."""
    prox = prox_of(YuNeely.__name__, YuNeely.needs, problem)
    G_f = validate.positive_scalar("loss_gradient_bound", problem.constants.loss_gradient_bound)
    return prox, validate.count("horizon", horizon), problem.joint_gradient_bound, G_f
