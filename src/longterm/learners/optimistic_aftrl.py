"""Optimistic A-FTRL: the leader counts a forecast of the next loss as if it had come; curvature from the errors.

A-FTRL (`learners.aftrl`) with z_t + m_{t+1} in the place of z_t = Σ_{s≤t} ∇f_s(x_s), m a forecast (`learners.hints`),
and with S_t = Σ ‖∇f_s(x_s) − m_s‖², η_t = 2^{−½} R/√(S_{t−1} + ε), ε = 10^{−4} G_f², in the place of R/(G_f√t):

    x_{t+1} = argmin_B ⟨z_t + m_{t+1}, x⟩ + Σ_{s≤t} ⟨λ_{s+1}, g(x)⟩ + ‖x − x_1‖²/(2η_{t+1})

Guarantees (ours): those of A-FTRL with P = R²/(2η_T) + Σ_t min(½η_t e_t², 2R e_t) ≤ 8.6 R√(S_T + ε), e_t = ‖∇f_t(x_t)
− m_t‖. m enters and leaves within one round: with x̃ the leader that knows ∇f_t, ⟨∇f_t, x_t − x̃⟩ ≤ ⟨∇f_t − m_t, x_t −
x̃⟩ + (what the leader's own inequality pays), and ‖x_t − x̃‖ ≤ min(η_te_t, 2R). Rounds with e_t² ≤ S_{t−1} + ε give
√2·2^{−½} R√(S_T + ε), in the others S doubles: 2R·3.42 √(S_T + ε); with the first term, R√(S_T + ε)/√2. ∎ The
multipliers' part is that of A-FTRL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, dot, like, namespace, to_numpy
from longterm._validate import Hyper
from longterm.constraints.prox import Prox
from longterm.learners._given import (
    ascend,
    default_theta,
    prox_of,
    require_same_constraint,
    values_of,
    with_dual,
)
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.hints import HintModel, LastGradient
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import LONG_TERM, REGRET, NoTheoremError
from longterm.theory.schedules import DecoupledSchedule

TINY = 1e-4
"""ε as a share of G_f²."""


class OptimisticAFTRLState(NamedTuple):
    """(t, x_t, λ_t, z_{t−1}, Σ λ, m_t, S_{t−1}, what the model remembers)."""

    round: Array
    x: Array
    multiplier: Array
    gradient_sum: Array
    multiplier_sum: Array
    hint: Array
    errors: Array
    memory: Array


@dataclass(frozen=True, eq=False)
class OptimisticAFTRL(Learner[OptimisticAFTRLState]):
    """A-FTRL that counts a forecast of the next gradient.

    Parameters
    ----------
    prox : Prox
        The closed form of the argmin.
    schedule : DecoupledSchedule
        θ_t and μ_t; its η_t is not used.
    size : float
        G_f, which sets the scale of ε alone.
    hints : HintModel
        The forecasts.
    """

    prox: Prox
    schedule: DecoupledSchedule
    size: float
    hints: HintModel = LastGradient()  # noqa: RUF009 - frozen
    enclosing_set: Set = field(init=False, repr=False)

    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PROX})
    name: ClassVar[str] = "optimistic_aftrl"
    title: ClassVar[str] = "Optimistic A-FTRL"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(√Σ‖∇f − m‖² + T^β)", LONG_TERM: "O(T^(1−β/2))"}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ()

    def __post_init__(self) -> None:
        validate.remember(self, enclosing_set=self.prox.over, size=validate.positive_scalar("size", self.size))

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        hints: HintModel | None = None,
        beta: Hyper = 2 / 3,
        theta_0: Hyper | None = None,
    ) -> OptimisticAFTRL:
        """A-FTRL that counts a forecast of the next gradient as if it had come.

        Parameters
        ----------
        problem : Problem
            Gives B, the prox of g, R, G_f, D and F.
        hints : HintModel, optional
            The forecasts; left out, the last gradient.
        beta : float or array
            β in (0, 1): larger favours the constraint, smaller the regret.
        theta_0 : float or array, optional
            Above 0; D²/(10F) unless given.
        """
        prox, c = prox_of(cls.__name__, cls.needs, problem), problem.constants
        step = c.radius / validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound)
        schedule = DecoupledSchedule(step, default_theta(problem, prox, theta_0), beta)
        return cls(prox, schedule, c.loss_gradient_bound, LastGradient() if hints is None else hints)

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_same_constraint(self.prox, problem)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        why = "it is about the errors of the forecasts"
        raise NoTheoremError(why, "Ask after the run: bound(problem, rounds, state=trace.state)")

    def theorem_after(self, problem: Problem, state: OptimisticAFTRLState) -> Mapping[str, FloatArray]:
        errors, t = (np.asarray(to_numpy(one), dtype=np.float64) for one in (state.errors, state.round))
        P = 8.6 * problem.constants.radius * np.sqrt(errors + TINY * self.size**2)
        return with_dual(P, self.prox, self.schedule, problem, t - 1)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> OptimisticAFTRLState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        multiplier = xp.zeros((*x.shape[:-1], self.prox.constraint.count), dtype=x.dtype)
        t, memory, errors = xp.asarray(1, dtype=xp.int64), self.hints.start(x), xp.zeros(x.shape[:-1], dtype=x.dtype)
        nothing = xp.zeros_like(x)
        state = OptimisticAFTRLState(t, x, multiplier, nothing, multiplier, nothing, errors, memory)
        return self.hinted(state, self.hints.predict(memory, t, x))

    def ask(self, state: OptimisticAFTRLState) -> Array:
        return state.x

    def hinted(self, state: OptimisticAFTRLState, hint: Array) -> OptimisticAFTRLState:
        """The same state with another forecast of this round, before it is asked."""
        curvature = 2**0.5 / self.enclosing_set.radius * namespace(hint).sqrt(state.errors + TINY * self.size**2)
        centre = column(curvature) * like(self.enclosing_set.centre, hint)
        x = self.prox.argmin(state.gradient_sum + hint - centre, state.multiplier_sum, curvature)
        return state._replace(x=x, hint=hint)

    def update(self, state: OptimisticAFTRLState, feedback: Feedback) -> OptimisticAFTRLState:
        values = values_of(feedback, self.prox.constraint.count)
        multiplier = ascend(state.multiplier, values, self.schedule.at(state.round, state.x))
        wrong = feedback.loss_gradient - state.hint
        memory, hint = self.hints.following(state.memory, state.round, feedback)
        after = state._replace(
            round=state.round + 1,
            multiplier=multiplier,
            gradient_sum=state.gradient_sum + feedback.loss_gradient,
            multiplier_sum=state.multiplier_sum + multiplier,
            errors=state.errors + dot(wrong, wrong),
            memory=memory,
        )
        return self.hinted(after, hint)

    def report(self, state: OptimisticAFTRLState) -> dict[str, Array]:
        return {"errors": state.errors}
