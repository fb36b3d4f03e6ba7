"""Optimistic descent on the loss and the weighted violation, with forecasts of both gradients.

With guesses m^f_t of ∇f_t(x_t) and m^g_t of ∇[g_t]₊(x_t), Q_t the violation so far, κ = 2^{−3/4} Δ and C = 5.11 Δ:

    w_t = (G_f/G_g) e^{ωQ_{t−1}},     x_t = Π_B( y_t − η_t(m^f_t + w_t m^g_t) )  is played,     η_t = κ/√(S_{t−1} + ε)
    d_t = ∇f_t(x_t) + w_t ∇[g_t]₊(x_t),     y_{t+1} = Π_B( y_t − η_t d_t )
    S_t = S_{t−1} + ‖d_t − m^f_t − w_t m^g_t‖²,   Q_t = Q_{t−1} + [g_t(x_t)]₊,   ω = min( 1/(4C√(E + 4G_g²)), ln 2/D )

E starts at G_g². Once Σ ‖∇[g]₊ − m^g‖² exceeds it, E grows fourfold and Q = S = 0: a new epoch that keeps y. m^g comes
from a model of the ∇[g_t]₊ so far, or is ∇[g]₊(y_t) for a fixed g. Hints are cut to length G_g.
Guarantees, against x* with g_t(x*) ≤ 0 in every round, summed over the epochs i of T_i rounds, with E^f_i =
Σ ‖∇f_t − m^f_t‖² in it and θ_i = (G_f/G_g)/ω_i; n = O(ln E^g) epochs, E^f and E^g the sums over all rounds:

    Σ f_t(x_t) − f_t(x*)  ≤ Σ_i C√E^f_i + θ_i/4                               = O(√(n E^f) + √E^g)
    Σ [g_t(x_t)]₊         ≤ Σ_i (1/ω_i) ln( 2 + 4(C√E^f_i + F T_i)/θ_i )      = Õ(√E^g + D)

The rule follows the abstract of Lekeufack and Jordan (2024). Steps, constants and proof are ours
(`docs/proofs/drift.md`). Not promised: a gain from forecasts of g at its boundary.
It is no `Surrogate`: the weight is set before x_t is played, and an epoch resets price and
step together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from longterm._base import validate
from longterm._base.arrays import Array, as_column, dot, namespace, norm
from longterm._base.messages import kind_of
from longterm._base.selection import clamp_min, clamp_to_divisor
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.states import as_numbers
from longterm.learners.optimistic.hints import HintModel, KnownConstraint, LastGradient
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.sets import Set
from longterm.theory.bounds import HARD, REGRET, BoundValues, require_covered

EPSILON = 1e-12
"""The ε of the steps as a share of G_f²."""
REGRET_FACTOR = 5.11
"""The constant C as a multiple of Δ."""


class OptimisticCOCOState(NamedTuple):
    """The state (t, x_t, y_t, m^f_t, m^g_t), the models' memories, the sums of this epoch and earlier bounds.

    `errors` is S_{t−1}, `violation` Q_{t−1}, `loss_errors` E^f so far, `level` E, all of this epoch of `rounds` rounds.
    `constraint_errors` is Σ ‖∇[g]₊ − m^g‖² over all epochs.
    """

    round: Array
    x: Array
    anchor: Array
    hint: Array
    constraint_hint: Array
    memory: Array
    constraint_memory: Array
    errors: Array
    violation: Array
    loss_errors: Array
    constraint_errors: Array
    level: Array
    rounds: Array
    past_regret: Array
    past_violation: Array


@dataclass(frozen=True, eq=False)
class OptimisticCOCO(Learner[OptimisticCOCOState]):
    """Keep a limit that changes and profit from forecasts of loss and constraint.

    Descent on the loss and the weighted violation, with a first step along the forecasts.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that every decision stays in (B in the formulas).
    made_for : Constants
        The problem's constants, which scale losses and violations.
    hints, constraint_hints : HintModel
        The forecasts of the gradients of the loss and of the violation.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.learners.optimistic.hints import GivenHints, NoHint
    >>> from longterm.problems import constraints, losses, sets, streams
    >>> costs, rows = np.random.default_rng(0).choice([-1.0, 1.0], (2, 500, 1))
    >>> problem = lt.Problem(sets.Ball(1), losses.Linear(1), constraints.VaryingAffine(1, 1, 1.0, 0.5))
    >>> stream = streams.Replay([costs], [rows[:, None, :], np.full((500, 1), 0.5)])  # |x| ≤ ½, one side at a time
    >>> for hints in (NoHint(), GivenHints(costs)):
    ...     trace = lt.run(problem, lt.learners.OptimisticCOCO.for_problem(problem, hints=hints), stream)
    ...     print([float(value[-1].round(1)) for value in (trace.cumulative_loss, trace.hard_violation)])
    [-7.3, 10.5]
    [-128.7, 20.9]
    """

    enclosing_set: Set
    made_for: Constants
    hints: HintModel = LastGradient()  # noqa: RUF009 - frozen
    constraint_hints: HintModel = LastGradient()  # noqa: RUF009 - frozen

    name = "optimistic_coco"
    title = "Optimistic COCO"
    promises = {REGRET: "O(√Σ‖∇f − m‖² + √Σ‖∇[g]₊ − m‖²)", HARD: "Õ(√Σ‖∇[g]₊ − m‖²)"}
    variants = ()

    def __post_init__(self) -> None:
        given: object = self.made_for
        if not isinstance(given, Constants):
            remedy = "Give problem.constants, or use OptimisticCOCO.for_problem(problem)"
            raise InputError("made_for", f"is {kind_of(given)}, not Constants", remedy)
        for name in ("loss_gradient_bound", "constraint_gradient_bound", "constraint_bound", "loss_range"):
            validate.positive_scalar(name, getattr(self.made_for, name))

    @classmethod
    def for_problem(
        cls, problem: Problem, *, hints: HintModel | None = None, constraint_hints: HintModel | None = None
    ) -> OptimisticCOCO:
        """Descend on the loss and the weighted violation, with forecasts of both gradients.

        Parameters
        ----------
        hints : HintModel, optional
            The forecasts of the loss's gradient. Default: the last one.
        constraint_hints : HintModel, optional
            Those of the violation's gradient. Default: that of the fixed constraint, or the last one if it changes.
        """
        if constraint_hints is None and not problem.constraint.parameters:
            constraint_hints = KnownConstraint(problem.constraint, problem.constants.constraint_bound)
        return cls(
            problem.enclosing_set,
            problem.constants,
            LastGradient() if hints is None else hints,
            LastGradient() if constraint_hints is None else constraint_hints,
        )

    def theorem_after(self, problem: Problem, state: OptimisticCOCOState) -> BoundValues:
        ours, c = self.made_for, problem.constants
        declared = {
            "G_g": (ours.constraint_gradient_bound, c.constraint_gradient_bound),
            "D": (ours.constraint_bound, c.constraint_bound),
            "F": (ours.loss_range, c.loss_range),
        }
        require_covered(declared, "Use OptimisticCOCO.for_problem")
        parts = (as_numbers(part) for part in (state.loss_errors, state.level, state.rounds))
        regret, violation = self._epoch_bounds(*parts)
        return {REGRET: as_numbers(state.past_regret) + regret, HARD: as_numbers(state.past_violation) + violation}

    @property
    def _ratio(self) -> float:
        """G_f/G_g."""
        return self.made_for.loss_gradient_bound / self.made_for.constraint_gradient_bound

    def _growth(self, level: Array) -> Array:
        """Return ω, the rate at which the weight grows with the violation."""
        C, c = REGRET_FACTOR * self.enclosing_set.diameter, self.made_for
        steep = 4 * C * namespace(level).sqrt(level + 4 * c.constraint_gradient_bound**2)
        return 1 / clamp_min(steep, c.constraint_bound / math.log(2))

    def _epoch_bounds(self, errors: Array, level: Array, rounds: Array) -> tuple[Array, Array]:
        """Return the terms of an epoch in the two bounds."""
        xp, omega, c = namespace(level), self._growth(level), self.made_for
        theta, size = self._ratio / omega, REGRET_FACTOR * self.enclosing_set.diameter
        steps = size * (xp.sqrt(errors) + EPSILON**0.5 * c.loss_gradient_bound)
        return steps + theta / 4, xp.log(2 + 4 * (steps + c.loss_range * rounds) / theta) / omega

    def first_state(self, t: Array, x: Array) -> OptimisticCOCOState:
        zero = namespace(x).zeros(x.shape[:-1], dtype=x.dtype)
        memory, constraint_memory = self.hints.start(x), self.constraint_hints.start(x)
        hint, constraint_hint = self.hints.predict(memory, t, x), self._constraint_hint(constraint_memory, t, x)
        models, level = (
            (hint, constraint_hint, memory, constraint_memory),
            zero + self.made_for.constraint_gradient_bound**2,
        )
        start = OptimisticCOCOState(t, x, x, *models, zero, zero, zero, zero, level, zero, zero, zero)
        return start._replace(x=self._step(start, hint, constraint_hint))

    def hinted(
        self, state: OptimisticCOCOState, hint: Array | None = None, constraint_hint: Array | None = None
    ) -> OptimisticCOCOState:
        """Return the state with other forecasts of this round, before it is asked."""
        first = state.hint if hint is None else hint
        second = state.constraint_hint if constraint_hint is None else self._shortened(constraint_hint)
        return state._replace(x=self._step(state, first, second), hint=first, constraint_hint=second)

    def update(self, state: OptimisticCOCOState, feedback: Feedback) -> OptimisticCOCOState:
        xp, x = namespace(state.x), state.x
        normal = as_column(xp.astype(feedback.constraint > 0, x.dtype)) * feedback.constraint_gradient
        y = self._step(state, feedback.loss_gradient, normal)
        loss_error, constraint_error = feedback.loss_gradient - state.hint, normal - state.constraint_hint
        both = loss_error + as_column(self._weight(state)) * constraint_error
        errors, violation = state.errors + dot(both, both), state.violation + xp.maximum(feedback.constraint, 0.0)
        loss_errors = state.loss_errors + dot(loss_error, loss_error)
        constraint_errors = state.constraint_errors + dot(constraint_error, constraint_error)
        rounds, level = state.rounds + 1, state.level
        # A round adds at most 4G_g², and E ≥ G_g²: growing fourfold twice is always enough.
        raised = xp.where(
            constraint_errors > 4 * level, 16 * level, xp.where(constraint_errors > level, 4 * level, level)
        )
        over = raised > level
        regret, broken = self._epoch_bounds(loss_errors, level, rounds)
        zero = xp.zeros_like(level)
        memory, hint = self.hints.following(state.memory, state.round, feedback)
        constraint_memory = self.constraint_hints.update(state.constraint_memory, state.round, normal)
        after = OptimisticCOCOState(
            round=state.round + 1,
            x=x,
            anchor=y,
            hint=hint,
            constraint_hint=self._constraint_hint(constraint_memory, state.round + 1, y),
            memory=memory,
            constraint_memory=constraint_memory,
            errors=xp.where(over, zero, errors),
            violation=xp.where(over, zero, violation),
            loss_errors=xp.where(over, zero, loss_errors),
            constraint_errors=constraint_errors,
            level=raised,
            rounds=xp.where(over, zero, rounds),
            past_regret=state.past_regret + xp.where(over, regret, zero),
            past_violation=state.past_violation + xp.where(over, broken, zero),
        )
        return after._replace(x=self._step(after, after.hint, after.constraint_hint))

    def _weight(self, state: OptimisticCOCOState) -> Array:
        """Return w_t, the weight of the constraint."""
        growth = self._growth(state.level) * state.violation
        return self._ratio * namespace(growth).exp(growth)

    def _step(self, state: OptimisticCOCOState, loss: Array, constraint: Array) -> Array:
        """Step from y_t along both directions."""
        size = 2**-0.75 * self.enclosing_set.diameter
        eta = size / namespace(state.anchor).sqrt(state.errors + EPSILON * self.made_for.loss_gradient_bound**2)
        return self.enclosing_set.project(
            state.anchor - as_column(eta) * (loss + as_column(self._weight(state)) * constraint)
        )

    def _constraint_hint(self, memory: Array, t: Array, y: Array) -> Array:
        """Return m^g_t, given y_t."""
        return self._shortened(self.constraint_hints.predict(memory, t, y))

    def _shortened(self, hint: Array) -> Array:
        """Shorten the hint to G_g, which brings it nearer to any gradient."""
        reach = self.made_for.constraint_gradient_bound / clamp_to_divisor(norm(hint))
        return hint * as_column(namespace(hint).minimum(reach, 1.0))

    def report(self, state: OptimisticCOCOState) -> dict[str, Array]:
        return {"errors": state.errors, "weight": self._weight(state)}
