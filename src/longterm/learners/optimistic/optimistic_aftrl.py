"""Optimistic A-FTRL: the leader counts a forecast of the next loss as if it had come; curvature from the errors.

A-FTRL (`learners.ftrl.aftrl`) with z_t + m_{t+1} in the place of z_t = Σ_{s≤t} ∇f_s(x_s), and with
η_t = 2^{−½} R/√(S_{t−1} + ε), S_t = Σ_{s≤t} ‖∇f_s(x_s) − m_s‖², ε = 10^{−4} G_f², in the place of R/(G_f √t). In `ftrl`
this is a `Multiplier` with a `ForecastScale`.
Guarantees: those of A-FTRL with P = 8.6 R√(S_T + ε). The statement is ours; the proof is in
`docs/proofs/derivations.md`. Not promised: feasibility in a single round, a small Σ [g(x_t)]₊.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, dot, namespace
from longterm._base.validate import Hyper
from longterm.learners.ftrl.ftrl import FTRL
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.learners.ftrl.slots import FTRLState, Leader, Scale, SingleLeader, require_state
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.prox_learner import prox_of
from longterm.learners.interface.states import as_numbers
from longterm.learners.optimistic.hints import HintModel, LastGradient
from longterm.problems import Problem
from longterm.problems.constraints.prox import Prox
from longterm.theory.bounds import LONG_TERM, REGRET

EPSILON = 1e-4
"""ε as a share of G_f²."""


class ForecastState(NamedTuple):
    """The state (m_t, S_{t−1}) and the memory of the hint model."""

    hint: Array
    errors: Array
    memory: Array


@dataclass(frozen=True, eq=False)
class ForecastScale(Scale):
    """A forecast in the leader, and the curvature from its errors so far.

    Parameters
    ----------
    size : float
        G_f, which only scales ε.
    hints : HintModel
        The forecasts.
    """

    size: float
    hints: HintModel = field(default_factory=LastGradient)

    starts_at_centre = False

    def __post_init__(self) -> None:
        validate.set_frozen(self, size=validate.positive_scalar("size", self.size))

    def init(self, prox: Prox, x: Array) -> ForecastState:
        xp, memory = namespace(x), self.hints.start(x)
        hint = self.hints.predict(memory, xp.asarray(1, dtype=xp.int64), x)
        return ForecastState(hint, xp.zeros(x.shape[:-1], dtype=x.dtype), memory)

    def observe(self, prox: Prox, state: FTRLState, feedback: Feedback) -> ForecastState:
        error = feedback.loss_gradient - state.scale.hint
        memory, hint = self.hints.following(state.scale.memory, state.round, feedback)
        return ForecastState(hint, state.scale.errors + dot(error, error), memory)

    def leader(self, prox: Prox, state: FTRLState) -> tuple[Leader, ForecastState]:
        root = namespace(state.x).sqrt(state.scale.errors + EPSILON * self.size**2)
        curvature = 2**0.5 / prox.over.radius * root
        return SingleLeader.about_centre(prox, state.gradient_sum + state.scale.hint, curvature), state.scale

    def report(self, prox: Prox, state: FTRLState) -> dict[str, Array]:
        return {"errors": state.scale.errors}

    def primal(self, prox: Prox, problem: Problem, T: FloatArray, state: FTRLState | None) -> FloatArray:
        errors = as_numbers(require_state(state).scale.errors) + EPSILON * self.size**2
        return np.asarray(8.6 * problem.constants.radius * np.sqrt(errors))


class OptimisticAFTRL(FTRL):
    """Keep a long-term budget and profit from forecasts of the next loss.

    A-FTRL that adds a forecast of the next gradient to the sum of the gradients so far.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.learners.optimistic.hints import GivenHints, NoHint
    >>> from longterm.problems import constraints, losses, sets, streams
    >>> costs = np.random.default_rng(0).choice([-1.0, 1.0], (500, 1))
    >>> problem = lt.Problem(sets.Ball(1), losses.Linear(1), constraints.L2Budget(1, budget=0.5))
    >>> for hints in (NoHint(), GivenHints(costs)):
    ...     learner = lt.learners.OptimisticAFTRL.for_problem(problem, hints=hints)
    ...     state = lt.run(problem, learner, streams.Replay([costs])).state
    ...     print(round(float(learner.bound(problem, 500, state=state)["regret"])))
    1132
    940
    """

    name = "optimistic_aftrl"
    title = "Optimistic A-FTRL"
    promises = {REGRET: "O(√Σ‖∇f − m‖² + T^β)", LONG_TERM: "O(T^(1−β/2))"}
    variants = ()

    @classmethod
    def for_problem(
        cls, problem: Problem, *, hints: HintModel | None = None, beta: Hyper = 2 / 3, theta_0: Hyper | None = None
    ) -> OptimisticAFTRL:
        """Make A-FTRL that counts a forecast of the next gradient as if it had come.

        Parameters
        ----------
        hints : HintModel, optional
            The forecasts; the last gradient unless given.
        beta : float or array
            β in (0, 1). Larger values favour the constraint, smaller ones the regret.
        theta_0 : float or array, optional
            Above 0; D²/(10F) unless given.
        """
        prox = prox_of(cls.__name__, cls.needs, problem)
        scale = ForecastScale(problem.constants.loss_gradient_bound, LastGradient() if hints is None else hints)
        return cls(prox, scale, Multiplier.for_range(prox, problem, theta_0, beta))

    def hinted(self, state: FTRLState, hint: Array) -> FTRLState:
        """Return the state with another forecast of its round, before it is asked."""
        return self.lead(state._replace(scale=state.scale._replace(hint=hint)))
