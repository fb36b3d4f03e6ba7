"""What a learner is: a frozen bundle of hyper-parameters with three pure functions; and what it may need of a problem.

`init` makes the state, `ask` reads the decision x_t from it, `tell` returns the state of the next
round. State is never changed in place, so a call that raises leaves nothing behind. `tell` checks what
it is told and then calls `update`, the rule itself; an engine, which checks in bulk, calls `update`.

A `Need` is what a learner asks for beyond one value and one subgradient of f_t and g_t at the point it played. One that
needs the number of rounds can be made for another number (`MadeForHorizon`).
"""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm import _validate as validate
from longterm._arrays import ROUNDING, Array, FloatArray, float_dtype
from longterm._validate import Hyper
from longterm.constraints.prox import PenaltyProx
from longterm.errors import AssumptionWarning, InputError, ScheduleError, kind_of
from longterm.learners.feedback import Feedback, FeedbackCheck
from longterm.learners.feedback import OnBrokenBound as OnBrokenBound
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import Bounds, NoTheoremError, Theorem
from longterm.theory.facts import Assumption
from longterm.theory.schedules import PerLearner


class Need(Enum):
    """A need, in the words that a user sees."""

    FIXED_CONSTRAINT = "the same constraint in every round"
    AFFINE_CONSTRAINT = "affine constraints A x ≤ b"
    HORIZON = "the number of rounds, in advance"
    SLATER_POINT = "a point that satisfies every constraint strictly"
    PROJECTION = "the Euclidean projection onto {g ≤ 0}"
    PROX = "the proximal map of the constraint"
    PENALTY_PROX = "the proximal map of the constraint's positive part"
    LATEST_PENALTY_PROX = "the proximal map of the latest constraint's positive part"
    OTHER_POINTS = "values of the constraint at points it does not play"
    KNOWN_CONSTRAINT = "values and gradients of a fixed constraint at points it does not play"


def require_needs(learner: str, needs: frozenset[Need], problem: Problem) -> None:
    """Raise, in words, if the problem itself shows that it cannot give what the learner needs.

    What a learner is given when it is built (a horizon, a projection, a Slater point) is checked there.
    """
    if problem.constraint.parameters and Need.FIXED_CONSTRAINT in needs:
        raise InputError(
            "learner",
            f"{learner} needs {Need.FIXED_CONSTRAINT.value}, and that of {problem.name!r} has parameters of the round",
            "Choose a learner whose theory allows time-varying constraints, A-OGD for example",
        )
    if Need.AFFINE_CONSTRAINT in needs and problem.constraint.as_affine() is None:
        raise InputError(
            "learner",
            f"{learner} needs {Need.AFFINE_CONSTRAINT.value}, and {problem.name!r} has another kind",
            "Choose a learner for general convex constraints, A-OGD for example",
        )
    if Need.PROX in needs and problem.constraint.prox(problem.enclosing_set) is None:
        raise InputError(
            "learner",
            f"{learner} needs {Need.PROX.value}, and that of {problem.name!r} has no closed form on its set",
            "Use affine constraints, or a budget on a ball about 0 (elastic net: or a box), or A-OGD",
        )
    if Need.PENALTY_PROX in needs:
        prox = problem.constraint.prox(problem.enclosing_set)
        if not isinstance(prox, PenaltyProx) or not prox.set_holds_budget:
            raise InputError(
                "learner",
                f"{learner} needs {Need.PENALTY_PROX.value}, and {problem.name!r} has no closed form for it",
                "Use a budget inside a ball about 0 (elastic net: or a box), or A-FTRL",
            )


class State(Protocol):
    """Every state knows its round; the rest is the learner's own."""

    @property
    def round(self) -> Array:
        """t, an integer array: the round about to be played, counted from 1."""


S = TypeVar("S", bound=State)


class Learner(PerLearner, ABC, Generic[S]):
    """One algorithm. Hyper-parameters may be arrays over the leading axes: a grid is one learner."""

    enclosing_set: Set
    needs: ClassVar[frozenset[Need]] = frozenset()
    """What it asks for beyond values and subgradients at the points it plays."""
    name: ClassVar[str] = ""
    """As the catalogue, the command line and result folders call it; empty for what only code can build."""
    title: ClassVar[str] = ""
    """As figures and tables call it; left out, the name of the class."""
    promises: ClassVar[Mapping[str, str]] = {}
    """What its theorem promises, by measure (`longterm.theory.bounds`), as the order in T: the tables of the docs."""
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    """The settings of `for_problem` that take part in an arena where the user names none."""
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    """The settings that take part in the league of problems whose best decision moves."""

    @classmethod
    def for_problem(cls, problem: Problem, *args: Any, **options: Any) -> Learner[Any]:
        """Make the learner for a problem, with the constants that its theorem asks for.

        Every learner says here which variants it has; `horizon` is among its arguments where it needs one.
        """
        what = f"{cls.__name__} has no way to be made from a problem"
        raise InputError("learner", what, "Call its constructor with hyper-parameters")

    @abstractmethod
    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> S:
        """The state before round 1: `batch_shape` independent learners, in the array library `xp`."""

    @abstractmethod
    def ask(self, state: S) -> Array:
        """The decision x_t, shape (..., d)."""

    @abstractmethod
    def update(self, state: S, feedback: Feedback) -> S:
        """The rule: the state after round t. Pure array arithmetic, no checks."""

    @abstractmethod
    def report(self, state: S) -> dict[str, Array]:
        """What the trace should keep of round t besides x: multipliers and steps in force."""

    def at_the_centre(self, batch_shape: tuple[int, ...], xp: Any, dtype: Any) -> Array:
        """x_1: the centre of the enclosing set, once for every learner."""
        centre = xp.asarray(self.enclosing_set.centre, dtype=float_dtype(xp, dtype))
        shape = np.broadcast_shapes(batch_shape, self.batch_shape)
        return xp.broadcast_to(centre, (*shape, self.enclosing_set.dimension))

    @property
    def asks_for(self) -> frozenset[Need]:
        """What it needs, and what this one makes use of besides because its problem has it."""
        return self.needs

    @property
    def gradient_bound(self) -> Hyper | None:
        """The G that the hyper-parameters were made for, if they were made for one."""
        return None

    @property
    def reads_pullback(self) -> bool:
        """Whether `update` calls a function of the feedback, its pullback or constraint_at, besides reading arrays."""
        return False

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What its theorem assumes of the hyper-parameters, checked; the loop warns of those that fail."""
        return ()

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        """The bound on ∇f_t that the hyper-parameters were made for: G, unless a learner tells the two apart."""
        return self.gradient_bound

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        """The bound on ∇g_t that the hyper-parameters were made for: G, unless a learner tells the two apart."""
        return self.gradient_bound

    @property
    def strong_convexity(self) -> Hyper:
        """The σ that the steps were made for; 0 where they are made for any convex losses."""
        return 0.0

    def check(self, problem: Problem) -> None:
        """Raise, before round 1 and in words, if this learner cannot play that problem; warn if it can, unproven."""
        self.require_playable(problem)
        failing = [str(assumption) for assumption in self.assumptions if not assumption.holds]
        if failing:
            warnings.warn(f"{type(self).__name__}: {' '.join(failing)}", AssumptionWarning, stacklevel=4)

    def require_playable(self, problem: Problem) -> None:
        """Raise if this learner makes no sense on that problem. A learner that asks for more adds to this."""
        ours, theirs = self.enclosing_set, problem.enclosing_set
        remedy = f"Build the learner from the problem: {type(self).__name__}.for_problem(problem)"
        if ours.dimension != theirs.dimension:
            what = f"plays in dimension {ours.dimension}, the problem has {theirs.dimension}"
            raise InputError("learner", what, remedy)
        problem.require_possible()
        require_needs(type(self).__name__, self.needs, problem)
        if not ours.same_as(theirs):
            what = "plays on another set than the problem's: G, D and F, or the best decision, may lie outside of it"
            raise InputError("learner", what, remedy)
        sigma = problem.constants.strong_convexity
        if np.any(np.asarray(self.strong_convexity) > sigma * (1 + ROUNDING)):
            largest = float(np.max(self.strong_convexity))
            what = f"its steps are made for losses with σ = {largest:g}, those of {problem.name!r} have {sigma:g}"
            raise InputError("learner", what, "Use steps for convex losses, or declare a strong_convexity that holds")

    def bound(self, problem: Problem, rounds: ArrayLike, *, state: S | None = None) -> Bounds:
        """What is proved of this learner on that problem after T rounds, by measure.

        Parameters
        ----------
        problem : Problem
            The problem that it plays.
        rounds : int or sequence of int
            One horizon T, or several.
        state : optional
            The state after the run, for learners whose theorem is about what happened (those that find their
            constants while they play).

        Returns
        -------
        Bounds
            A mapping from measure to numbers; empty, with a reason in words, where there is no theorem.
        """
        if state is not None:
            return self._bounds(problem, rounds, lambda T: self.theorem_after(problem, state), everywhere=False)
        return self._bounds(problem, rounds, partial(self.theorem, problem), everywhere=Need.HORIZON not in self.needs)

    def bound_as_printed(self, problem: Problem, rounds: ArrayLike) -> Bounds:
        """What a paper prints and is false: to be drawn beside `bound`, not to be relied on. Mostly nothing is."""
        return self._bounds(problem, rounds, partial(self.theorem_as_printed, problem), everywhere=False)

    def _bounds(self, problem: Problem, rounds: ArrayLike, formula: Theorem, *, everywhere: bool) -> Bounds:
        """The bounds of a formula, or why there are none; `everywhere`: at other horizons it is the same learner's."""
        self.require_playable(problem)
        asked = validate.horizons("rounds", rounds)

        def theorem(T: NDArray[np.int64]) -> Mapping[str, FloatArray]:
            return {measure: np.asarray(values, dtype=np.float64) for measure, values in formula(T).items()}

        try:
            values = theorem(asked)
        except (NoTheoremError, ScheduleError) as none:
            reason = none.why if isinstance(none, NoTheoremError) else str(none)
            return Bounds(asked, {}, problem.constants, reason=reason)
        assumed = tuple(assumption.statement for assumption in self.assumptions)
        return Bounds(asked, values, problem.constants, assumed, theorem=theorem if everywhere else None)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """The bounds of its theorem, by measure; a NoTheoremError says why there are none. Called by `bound`."""
        raise NoTheoremError(f"none is known for {type(self).__name__}")

    def theorem_after(self, problem: Problem, state: S) -> Mapping[str, FloatArray]:
        """The bounds of a theorem about what happened, from the state after the run. Called by `bound`."""
        raise NoTheoremError(f"the theorem of {type(self).__name__} is not about a state", "Leave the state out")

    def theorem_as_printed(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """The bounds as a paper prints them, where they are false. Called by `bound_as_printed`."""
        raise NoTheoremError("nothing else is printed")

    def require_assumptions(self) -> None:
        """Raise a NoTheoremError for the first assumption that does not hold: a theorem that needs all of them."""
        for assumption in self.assumptions:
            if not assumption.holds:
                raise NoTheoremError(str(assumption), assumption.remedy)

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        """Raise if what this learner reads beyond the common part of a feedback is missing or unusable."""

    def tell(self, state: S, feedback: Feedback, *, on_broken_bound: OnBrokenBound = "raise") -> S:
        """The state after round t, once what it is told has been checked. `state` itself never changes."""
        x, t = self.ask(state), int(np.max(np.asarray(state.round)))
        check = FeedbackCheck(self, x, on_broken_bound=on_broken_bound)
        with np.errstate(all="ignore"):
            feedback = check.accept(feedback, t)
        return self.update(state, feedback)


def require_strong_convexity(problem: Problem, steps: str) -> float:
    """σ of the problem's losses, for steps that are made for one; refused where it is 0."""
    sigma = problem.constants.strong_convexity
    if steps != "strongly convex":
        raise InputError("steps", f"{steps!r} is not known", "Choose 'convex' or 'strongly convex'")
    if sigma <= 0:
        raise InputError(
            "problem",
            f"the losses of {problem.name!r} are not strongly convex (σ = {sigma:g})",
            "Use steps='convex', or declare a strong_convexity that holds",
        )
    return sigma


def require_learner(value: Any, argument: str = "learner", swapped: str = "") -> None:
    """Refuse what is no learner, a class for example, in words that say what to write instead."""
    if isinstance(value, type) and issubclass(value, Learner):
        what = f"is the class {value.__name__}, not a learner"
        raise InputError(argument, what, f"Make one: {value.__name__}.for_problem(problem)")
    if not isinstance(value, Learner):
        what = f"is {kind_of(value)}, not a learner{swapped}"
        raise InputError(argument, what, "Make one from longterm.learners, AOGD.for_problem(problem) for example")


class MadeForHorizon(Learner[S]):
    """A learner that knows T. `DoublingRestarts` makes one of those into a learner that need not."""

    horizon: Hyper
    """T, the number of rounds that the steps were made for."""

    @classmethod
    def for_epochs(cls, problem: Problem, **options: Any) -> Learner[Any]:
        """Make one that is only there to be remade by `for_horizon`; `options` are those of `for_problem`."""
        return cls.for_problem(problem, horizon=1, **options)

    @property
    def shortest_horizon(self) -> int | None:
        """The T from which on its theorem is of use, where there is such a number."""
        return None

    @abstractmethod
    def for_horizon(self, rounds: Array) -> Self:
        """The same learner with the steps for another T: an array of the state's library, one for each learner."""

    def with_steps(self, **steps: Any) -> Self:
        """A copy with other numbers, taken as they are: inside a compiled loop they are not numbers yet."""
        made = copy.copy(self)
        for name, value in steps.items():
            object.__setattr__(made, name, value)
        return made
