"""Optimistic gradient descent: a step on the forecast before the round, a step on the gradient after it.

With κ = 2^{−3/4} Δ, S_t = Σ_{s≤t} ‖∇f_s(x_s) − m_s‖² and η_t = κ/√(S_{t−1} + ε),

    x_t = Π_X( y_t − η_t m_t )  is played,         y_{t+1} = Π_X( y_t − η_t ∇f_t(x_t) )          y_1 = Π_X(centre of B).

X is {g ≤ 0} ∩ B where its projection is known and g is fixed; then nothing is violated. Else X is B, and the
constraint is ignored. ε = 10^{−12} G_f² only keeps the first step finite. The rule is well known (Rakhlin and
Sridharan 2013, for example); steps and constants are ours.
Guarantees: Σ f_t(x_t) − f_t(x*) ≤ 5.11 Δ √(S_T + ε). Proof: `docs/proofs/derivations.md`.
Not promised: anything about a constraint whose projection is not known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, as_column, dot, namespace
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.states import as_numbers
from longterm.learners.optimistic.hints import HintModel, LastGradient
from longterm.problems import Problem
from longterm.problems.projections.base import Projection
from longterm.problems.sets import Set
from longterm.theory.bounds import HARD, REGRET, BoundValues

EPSILON = 1e-12
"""ε as a share of G_f²."""


class OptimisticOGDState(NamedTuple):
    """The state (t, x_t, y_t, m_t, S_{t−1}) and the memory of the hint model."""

    round: Array
    x: Array
    anchor: Array
    hint: Array
    errors: Array
    memory: Array


@dataclass(frozen=True, eq=False)
class OptimisticOGD(Learner[OptimisticOGDState]):
    """Profit from forecasts of the next loss, and stay feasible where a projection is known.

    Projected gradient descent that steps along a forecast first.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that every decision stays in (B in the formulas).
    size : float
        The size of the loss gradients (G_f). It only scales a tiny regulariser.
    hints : HintModel
        The forecasts of the loss gradients.
    projection : callable, optional
        The projection onto the feasible points.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.learners.optimistic.hints import GivenHints, NoHint
    >>> from longterm.problems import constraints, losses, sets, streams
    >>> costs = np.random.default_rng(0).choice([-1.0, 1.0], (500, 1))
    >>> problem = lt.Problem(sets.Ball(1), losses.Linear(1), constraints.L2Budget(1, budget=0.5))
    >>> for hints in (NoHint(), GivenHints(costs)):
    ...     learner = lt.learners.OptimisticOGD.for_problem(problem, hints=hints)
    ...     print(float(lt.run(problem, learner, streams.Replay([costs])).cumulative_loss[-1].round(1)))
    -12.5
    -250.0
    """

    enclosing_set: Set
    size: float
    hints: HintModel = field(default_factory=LastGradient)
    projection: Projection | None = None

    name = "optimistic_ogd"
    title = "Optimistic OGD"
    promises = {REGRET: "O(√Σ‖∇f − m‖²)", HARD: "0, where X is projected onto"}
    variants = ()

    def __post_init__(self) -> None:
        validate.set_frozen(self, size=validate.positive_scalar("size", self.size))

    @classmethod
    def for_problem(cls, problem: Problem, *, hints: HintModel | None = None) -> OptimisticOGD:
        """Make gradient descent that steps on a forecast of the gradient before the round.

        Parameters
        ----------
        hints : HintModel, optional
            The forecasts; the last gradient unless given.
        """
        onto = None if problem.constraint.parameters else problem.projection
        model = LastGradient() if hints is None else hints
        return cls(problem.enclosing_set, problem.constants.loss_gradient_bound, model, onto)

    def theorem_after(self, problem: Problem, state: OptimisticOGDState) -> BoundValues:
        errors = as_numbers(state.errors) + EPSILON * self.size**2
        return {REGRET: 5.11 * problem.constants.diameter * np.sqrt(errors)}

    def initial_x(self, batch_shape: tuple[int, ...], xp: Any, dtype: Any) -> Array:
        return self._project(super().initial_x(batch_shape, xp, dtype))

    def first_state(self, t: Array, x: Array) -> OptimisticOGDState:
        errors, memory = namespace(x).zeros(x.shape[:-1], dtype=x.dtype), self.hints.start(x)
        hint = self.hints.predict(memory, t, x)
        return OptimisticOGDState(t, self._step(x, hint, errors), x, hint, errors, memory)

    def hinted(self, state: OptimisticOGDState, hint: Array) -> OptimisticOGDState:
        """Return the state with another forecast of its round, before it is asked."""
        return state._replace(x=self._step(state.anchor, hint, state.errors), hint=hint)

    def update(self, state: OptimisticOGDState, feedback: Feedback) -> OptimisticOGDState:
        gradient = feedback.loss_gradient
        y = self._step(state.anchor, gradient, state.errors)
        error = gradient - state.hint
        errors = state.errors + dot(error, error)
        memory, hint = self.hints.following(state.memory, state.round, feedback)
        return OptimisticOGDState(state.round + 1, self._step(y, hint, errors), y, hint, errors, memory)

    def _step(self, y: Array, direction: Array, errors: Array) -> Array:
        eta = 2**-0.75 * self.enclosing_set.diameter / namespace(y).sqrt(errors + EPSILON * self.size**2)
        return self._project(y - as_column(eta) * direction)

    def _project(self, x: Array) -> Array:
        return self.enclosing_set.project(x) if self.projection is None else self.projection(x)

    def report(self, state: OptimisticOGDState) -> dict[str, Array]:
        return {"errors": state.errors}
