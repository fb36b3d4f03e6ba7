"""Drift plus penalty: one state machine, three articles. Constraints may change from round to round.

With queues Q in R^m, and ĝ_j(x) = g_j^t(x_t) + ⟨∇g_j^t(x_t), x − x_t⟩, which is never above g_j^t,

    x_{t+1}  = Π_B( x_t − ( V ∇f_t(x_t) + Σ_j Q_j(t) ∇g_j^t(x_t) ) / (2α) )          x_1 = centre of B
    Q_j(t+1) = [ Q_j(t) + ĝ_j(x_{t+1}) ]₊                                           Q(1) = 0

The queue sees the *new* point. Presets:
- `yu_neely_wei` (NeurIPS 2017): V = √T, α = T; g_t drawn independently from one law, x* feasible on average.
- `neely_yu` (arXiv 1702.04783): the same numbers (second-hand; the proof here confirms the rates); g_t of an adversary,
  x* feasible in every round.
- `liakopoulos` (ICML 2019): V in (K, T), α = max(T, V√T); g_t of an adversary, x* feasible on average over every K
  rounds in a row.
- `tuned`: V = M²√T/(r G_f), α = M²T/(2r²), the same in any units; regret at most (3/2) r G_f √T. M bounds ‖ĝ(x_{t+1})‖.

Needs: the horizon; value and one subgradient of f_t and of every g_j^t at x_t.
Guarantees: `bounds.drift_plus_penalty`: O(√T) regret; O(√T) for each Σ_t g_j^t(x_t) given a Slater point that is one in
every round, else O(T^{3/4}); against windows of K rounds O(KT/V + √T) and O(√(VT)).
`bounds.drift_plus_penalty_expected`: with a point that is slack on average, O(√T) in expectation. Proofs, and what they
found: `docs/after_the_paper.md`.
Not promised: anything about Σ [g_t(x_t)]₊.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, column, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.base import OnBrokenBound
from longterm.learners.duals import Duals, OnePerConstraint, one_each
from longterm.learners.feedback import Feedback
from longterm.learners.horizon import MadeForHorizon
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.facts import Constants


class DriftPlusPenaltyState(NamedTuple):
    """(t, x_t, Q(t)); the queues have the shape of the learner's duals behind the batch."""

    round: Array
    x: Array
    queue: Array


@dataclass(frozen=True, eq=False)
class DriftPlusPenalty(MadeForHorizon[DriftPlusPenaltyState]):
    """Drift plus penalty on an enclosing set, with weights V and α and a queue for each constraint.

    >>> import numpy as np
    >>> from longterm import observe
    >>> from longterm.learners import DriftPlusPenalty
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> learner = DriftPlusPenalty.for_problem(problem, horizon=4, preset="neely-yu")  # V = 2, α = 4
    >>> state = learner.init()
    >>> for _ in range(3):
    ...     state = learner.tell(state, observe(problem, learner.ask(state), [np.array([1.0, 0.0])]))
    >>> learner.ask(state), float(state.queue)
    (array([0.5546875, 0.       ]), 0.4921875)
    """

    enclosing_set: Set
    horizon: Hyper
    V: Hyper
    alpha: Hyper
    queues: Duals
    lipschitz: float
    """G_m with ‖Σ_j w_j ∇g_j‖ ≤ G_m‖w‖, for the bounds."""
    value_bound: float
    """D_m ≥ ‖(g_1(x), …, g_m(x))‖ on B, for the bounds."""
    made_for: Constants | None = None
    """The problem's constants, if the weights were made for one."""
    needs: ClassVar[frozenset[Need]] = frozenset({Need.HORIZON})

    def __post_init__(self) -> None:
        validate.remember(
            self,
            horizon=validate.positive("horizon", self.horizon),
            V=validate.positive("V", self.V),
            alpha=validate.positive("alpha", self.alpha),
            lipschitz=validate.positive_scalar("lipschitz", self.lipschitz),
            value_bound=validate.positive_scalar("value_bound", self.value_bound),
        )

    @classmethod
    def yu_neely_wei(cls, problem: Problem, horizon: int) -> DriftPlusPenalty:
        """V = √T, α = T, for constraints drawn independently from one law."""
        T = validate.count("horizon", horizon)
        return cls._made(problem, T, T**0.5, T)

    @classmethod
    def neely_yu(cls, problem: Problem, horizon: int) -> DriftPlusPenalty:
        """V = √T, α = T, for constraints of an adversary: the same numbers, another promise."""
        return cls.yu_neely_wei(problem, horizon)

    @classmethod
    def liakopoulos(cls, problem: Problem, horizon: int, window: int, V: Hyper | None = None) -> DriftPlusPenalty:
        """α = max(T, V√T), for x* feasible on average over every `window` rounds; V = √(KT) unless given."""
        T, K = validate.count("horizon", horizon), validate.count("window", window)
        chosen = np.sqrt(K * T) if V is None else np.asarray(validate.positive("V", V))
        if np.any(chosen < K) or np.any(chosen > T):
            raise InputError("V", f"{V} is outside [K, T] = [{K}, {T}]", "Give one between the window and the horizon")
        return cls._made(problem, T, _plain(chosen), _plain(np.maximum(T, chosen * T**0.5)))

    @classmethod
    def tuned(cls, problem: Problem, horizon: int) -> DriftPlusPenalty:
        """V = M²√T/(r G_f), α = M²T/(2r²): the same in whatever units losses, constraints and decisions are."""
        T, c = validate.count("horizon", horizon), problem.constants
        square = (problem.joint_value_bound + problem.joint_gradient_bound * c.diameter) ** 2
        G_f = validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound)
        return cls._made(problem, T, square * T**0.5 / (c.radius * G_f), square * T / (2 * c.radius**2))

    @classmethod
    def _made(cls, problem: Problem, horizon: int, V: Hyper, alpha: Hyper) -> DriftPlusPenalty:
        facts = problem.joint_gradient_bound, problem.joint_value_bound, problem.constants
        return cls(problem.enclosing_set, horizon, V, alpha, one_each(problem.constraint.count), *facts)

    def for_horizon(self, rounds: Array) -> DriftPlusPenalty:
        longer = rounds / like(self.horizon, rounds)
        V, alpha = like(self.V, rounds) * longer**0.5, like(self.alpha, rounds) * longer
        return self.with_steps(horizon=rounds, V=V, alpha=alpha)

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        return None if self.made_for is None else self.made_for.loss_gradient_bound

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        return None if self.made_for is None else self.made_for.constraint_gradient_bound

    @property
    def reads_pullback(self) -> bool:
        return isinstance(self.queues, OnePerConstraint)

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        self.queues.require(feedback, x, t)
        if self.reads_pullback and feedback.pushforward is None:
            raise InputError("pushforward", "was not given", "Give v ↦ (⟨∇g_j(x_t), v⟩)_j, as `observe` does", round=t)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> DriftPlusPenaltyState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        queue = xp.zeros((*x.shape[:-1], *self.queues.shape), dtype=x.dtype)
        return DriftPlusPenaltyState(xp.asarray(1, dtype=xp.int64), x, queue)

    def ask(self, state: DriftPlusPenaltyState) -> Array:
        return state.x

    def update(self, state: DriftPlusPenaltyState, feedback: Feedback) -> DriftPlusPenaltyState:
        V, alpha = self._steps(state.x)
        descent = column(V) * feedback.loss_gradient + self.queues.pullback(feedback, state.queue)
        x = self.enclosing_set.project(state.x - descent / column(2 * alpha))
        linearised = self.queues.values(feedback) + self.queues.pushforward(feedback, x - state.x)
        return DriftPlusPenaltyState(state.round + 1, x, namespace(x).maximum(state.queue + linearised, 0.0))

    def report(self, state: DriftPlusPenaltyState) -> dict[str, Array]:
        V, alpha = self._steps(state.x)
        return {"multiplier": state.queue / self.queues.spread(V), "V": V, "alpha": alpha}

    def _steps(self, x: Array) -> tuple[Array, Array]:
        """V and α, one for each learner."""
        one = namespace(x).ones_like(x[..., 0])
        return like(self.V, x) * one, like(self.alpha, x) * one


def _plain(value: Any) -> Hyper:
    """A number as a float, an array as it is."""
    return float(value) if np.ndim(value) == 0 else value
