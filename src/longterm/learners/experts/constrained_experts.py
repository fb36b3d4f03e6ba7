"""Constrained experts with a trade-off between regret and violation (ours, after Sinha and Vaze, NeurIPS 2025).

Experts are the corners s e_1, …, s e_N of a simplex. With losses f̃_t(i) = s ∂_i f_t(x_t)/(ΔG_f), violations
h_t(i) = [g_t(s e_i)]₊/D in [0, 1] and weights p_t, x_t = s p_t, each round

    Q_t = Q_{t−1} + ⟨p_t, h_t⟩,     Q_0 = 0;       AdaHedge is told  f̃_t + λ e^{λQ_t} h_t.

Q_t contains round t. A small λ favours the regret, a large one the violation. For T rounds and β in [0, 1],
λ = min( 1/(4A), 2T^{β−1}/B² ) with A = (16/3) ln N + 2 and B = 2√(ln N).

The abstract of *Beyond Õ(√T) Constraint Violation for Online Convex Optimization and Adversarial Constraints* has these
rates. **We could not obtain its pseudo-code**: rule, constants and proof here are ours.
Needs: a simplex; values of g_t at its corners; a horizon for λ, though the bounds hold in every round.
Guarantees: `theorem`, against every expert that is feasible in every round: O(√T + T^β) regret and Õ(T^{1−β}) hard
violation, without a Slater point. Proof: `docs/proofs/after_the_paper.md`.
Not promised: anything against a *mixture* of experts of which no single one is feasible.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, cast

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, as_column, dot, like, namespace
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.cuts.meta import AdaHedge
from longterm.learners.interface.facts import Variants
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import OnBrokenBound
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.needs import Need
from longterm.learners.surrogates.sinha_vaze import LARGEST_EXPONENT
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.sets import Simplex
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import HARD, REGRET, BoundValues, NoTheoremError, Rounds, horizons_of, require_covered

ROUNDING_AT_CORNERS = 1e-12
"""A constraint counts as non-negative if no corner has less than minus this share of D."""


class ExpertsState(NamedTuple):
    """The state (t, x_t), Q_{t−1} and the memory of AdaHedge, shape (..., 2N + 2)."""

    round: Array
    x: Array
    queue: Array
    memory: Array


@dataclass(frozen=True, eq=False)
class ConstrainedExperts(Learner[ExpertsState]):
    """Mix experts, some of which break a limit that changes from round to round.

    AdaHedge over the corners of a simplex, against losses plus an exponential price of their violations.

    Parameters
    ----------
    enclosing_set : Simplex
        The simplex of the mixtures of the experts.
    rate : float or array
        The rate at which the price of a violation grows (λ), above 0.
    loss_scale, constraint_scale : float
        The largest loss and the largest violation of an expert, which they are divided by.
    spanned : bool
        True if every feasible mixture is one of feasible experts. It is used by `bound` alone.
    made_for : Constants, optional
        The problem's constants that the scales were made for.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import constraints, losses, sets, streams
    >>> g = constraints.Affine([[1.0, 0.0, 0.0]], [0.0])  # the first expert is never feasible
    >>> problem = lt.Problem(sets.Simplex(3), losses.Linear(3), g)
    >>> learner = lt.learners.ConstrainedExperts.for_problem(problem, horizon=1000, beta=0.8)
    >>> trace = lt.run(problem, learner, streams.Replay([np.tile([-0.6, -0.3, 0.0], (1000, 1))]))
    >>> trace.state.x.round(2)
    array([0., 1., 0.])
    """

    enclosing_set: Simplex
    rate: Hyper
    loss_scale: float
    constraint_scale: float
    spanned: bool = False
    made_for: Constants | None = None

    needs = frozenset({Need.HORIZON, Need.OTHER_POINTS})
    name = "constrained_experts"
    title = "Constrained experts"
    promises = {REGRET: "O(√T + T^β)", HARD: "O(T^(1−β) log T)"}
    variants: ClassVar[Variants] = ({}, {"beta": 0.8})

    def __post_init__(self) -> None:
        given: object = self.enclosing_set
        if not isinstance(given, Simplex):
            raise InputError(
                "enclosing_set", f"is a {type(given).__name__}", "Use a Simplex, whose corners are the experts"
            )
        validate.validate_fields(self, validate.positive, "rate")
        validate.validate_fields(self, validate.positive_scalar, "loss_scale", "constraint_scale")

    @classmethod
    def for_problem(
        cls, problem: Problem, *, horizon: int, beta: Hyper = 0.5, spanned: bool | None = None
    ) -> ConstrainedExperts:
        """Mix the corners of a simplex, with a trade-off between regret and violation, for a known horizon.

        Parameters
        ----------
        beta : float or array
            β in [0, 1]: O(√T + T^β) regret and O(T^(1−β) log T) violation.
        spanned : bool, optional
            True if the feasible points are the mixtures of experts that are feasible in every round, for `bound` alone.
            By default it is found for fixed affine constraints, and False for others.
        """
        T, c, B = validate.count("horizon", horizon), problem.constants, problem.enclosing_set
        trade = np.asarray(validate.non_negative("beta", beta))
        if np.any(trade > 1):
            raise InputError("beta", f"{beta!r} is above 1", "Give a number in [0, 1]")
        if not isinstance(B, Simplex):
            what = f"needs a simplex, whose corners are experts, and {problem.name!r} has a {type(B).__name__}"
            raise InputError(
                "learner", f"{cls.__name__} {what}", "Choose a learner for general sets, such as HedgedCuts"
            )
        A, root = _constants(B.dimension)
        rate = np.minimum(1 / (4 * A), 2 * T ** (trade - 1.0) / max(root**2, np.finfo(np.float64).tiny))
        spans = _is_spanned(problem) if spanned is None else spanned
        scale = validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound) * c.diameter
        return cls(B, rate if rate.ndim else float(rate), scale, c.constraint_bound, spans, c)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        most = 1 / (4 * _constants(self.enclosing_set.dimension)[0])
        return (Assumption.worst("λ ≤ 1/(4A), A = (16/3) ln N + 2", self.rate, most, "Take a smaller rate"),)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds against every expert that is feasible in every round, if λ ≤ 1/(4A).

            Σ f_t(x_t) − f_t(x*) ≤ ΔG_f E,     E = 1 + A + B√T + ½ B² λ T
            Σ [g_t(x_t)]₊        ≤ (D/λ) ln( 4(E + T) )

        Where the feasible points are the mixtures of such experts (`spanned`), x* is any feasible point.
        """
        if not self.spanned:
            why = "the best feasible mixture may be better than every feasible expert"
            raise NoTheoremError(why, "Give spanned=True if the feasible points are the mixtures of feasible experts")
        c = problem.constants
        declared = {
            "the loss scale ΔG_f": (self.loss_scale, c.loss_gradient_bound * c.diameter),
            "the constraint scale D": (self.constraint_scale, c.constraint_bound),
        }
        require_covered(declared, "Use ConstrainedExperts.for_problem")
        self.require_assumptions()
        T, rate = horizons_of(rounds, self.batch_shape), np.asarray(self.rate)
        A, B = _constants(self.enclosing_set.dimension)
        E = 1 + A + B * np.sqrt(T) + B**2 * rate * T / 2
        return {REGRET: self.loss_scale * E, HARD: self.constraint_scale / rate * np.log(4 * (E + T))}

    @property
    def reads_pullback(self) -> bool:
        return True

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        if feedback.constraint_at is None:
            raise InputError("constraint_at", "is missing", "Give the function y ↦ g_t(y), as `observe` does", round=t)

    def first_state(self, t: Array, x: Array) -> ExpertsState:
        return ExpertsState(t, x, namespace(x).zeros(x.shape[:-1], dtype=x.dtype), AdaHedge().start(x))

    def update(self, state: ExpertsState, feedback: Feedback) -> ExpertsState:
        rule, x, total = AdaHedge(), state.x, self.enclosing_set.total
        weights = rule.weights(state.memory)
        broken = self._violations(x, feedback)
        queue = state.queue + dot(weights, broken)
        losses = total / self.loss_scale * feedback.loss_gradient + as_column(self._price(queue)) * broken
        memory = rule.update(state.memory, losses - as_column(dot(weights, losses)))
        return ExpertsState(state.round + 1, total * rule.weights(memory), queue, memory)

    def _violations(self, x: Array, feedback: Feedback) -> Array:
        """Return h_t(i) of every expert, shape (..., N)."""
        xp, N = namespace(x), x.shape[-1]
        corners = xp.reshape(self.enclosing_set.total * xp.eye(N, dtype=x.dtype), (N, *(1,) * (x.ndim - 1), N))
        values = cast("Callable[[Array], Array]", feedback.constraint_at)(corners + 0 * x)
        return xp.moveaxis(xp.maximum(values, 0.0), 0, -1) / self.constraint_scale

    def _price(self, queue: Array) -> Array:
        """Return λ e^{λQ}. The exponent of a run with a feasible expert stays below the limit for T ≤ 10^16."""
        xp, rate = namespace(queue), like(self.rate, queue) + 0 * queue
        return rate * xp.exp(xp.minimum(rate * queue, LARGEST_EXPONENT))

    def report(self, state: ExpertsState) -> dict[str, Array]:
        scale = self.loss_scale / self.constraint_scale
        return {"queue": state.queue, "multiplier": scale * self._price(state.queue)}


def _constants(experts: int) -> tuple[float, float]:
    """Return A and B of AdaHedge's regret, 2√(S L* ln N) + S((16/3) ln N + 2) for losses of range S."""
    log = math.log(experts)
    return 16 / 3 * log + 2, 2 * math.sqrt(log)


def _is_spanned(problem: Problem) -> bool:
    """Return True if g is affine, fixed and nowhere negative: its zeros are then a face of the simplex."""
    affine = None if problem.constraint.parameters else problem.constraint.as_affine()
    if affine is None or not isinstance(problem.enclosing_set, Simplex):
        return False
    corners = problem.enclosing_set.total * np.eye(problem.dimension)
    least = float(np.asarray(affine.values(corners)).min())
    return least >= -ROUNDING_AT_CORNERS * problem.constants.constraint_bound
