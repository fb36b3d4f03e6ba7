"""The interface of a learner: a frozen set of hyper-parameters with pure functions on an explicit state.

`init` makes the state, `ask` reads the decision x_t from it, and `tell` returns the state of the next round. `tell`
checks the feedback and then calls `update`, the rule itself. Engines, which check in bulk, call `update`. A state is
never changed in place, so a call that raises changes nothing.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base import validate
from longterm._base.arrays import ROUNDING, Array, FloatArray, float_dtype
from longterm._base.per_learner import PerLearner
from longterm._base.validate import Hyper
from longterm.errors import AssumptionWarning, InputError, ScheduleError, kind_of
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import FeedbackCheck, OnBrokenBound
from longterm.learners.interface.needs import Need, require_needs
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.sets import Set
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import Bounds, BoundValues, NoTheoremError, Rounds, Theorem

Variants = tuple[Mapping[str, Any], ...]
"""Settings of `for_problem`, one mapping for each variant of a learner."""


class DataDependentError(NoTheoremError):
    """A bound was asked for before the run, and the theorem depends on what happens in it."""

    def __init__(self) -> None:
        super().__init__("bounds are data-dependent: ask after the run, bound(problem, rounds, state=trace.state)")


class State(Protocol):
    """The fields that every state has."""

    @property
    def round(self) -> Array:
        """The round t about to be played, an integer array that counts from 1."""

    @property
    def x(self) -> Array:
        """The iterate x_t, shape (..., d)."""


class PointState(NamedTuple):
    """The state (t, x_t) of a learner that remembers nothing else."""

    round: Array
    x: Array


class DualState(NamedTuple):
    """The state (t, x_t, λ_t). λ has the shape (...), or one more axis where there are several multipliers."""

    round: Array
    x: Array
    multiplier: Array


class QueueState(NamedTuple):
    """The state (t, x_t) and the queues, of shape (...) or (..., m)."""

    round: Array
    x: Array
    queue: Array


S = TypeVar("S", bound=State)


class Learner(PerLearner, ABC, Generic[S]):
    """One algorithm. Hyper-parameters may be arrays over the leading axes, so that a grid is one learner."""

    enclosing_set: Set
    made_for: Constants | None = None
    """The problem's constants that the hyper-parameters were made for, if known. Feedback must respect them."""
    needs: ClassVar[frozenset[Need]] = frozenset()
    """The needs beyond one value and one subgradient of f_t and g_t at x_t."""
    name: ClassVar[str] = ""
    """The name in the catalogue, the command line and result folders. Empty for learners that only code can build."""
    title: ClassVar[str] = ""
    """The name in figures and tables. The class name if empty."""
    promises: ClassVar[Mapping[str, str]] = {}
    """The order in T of its bounds, by measure (`longterm.theory.bounds`)."""
    variants: ClassVar[Variants] = ({},)
    """The settings of `for_problem` that take part in an arena by default."""
    drifting: ClassVar[Variants] = ()
    """The settings that take part in the league of problems whose best decision moves."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Settings of `for_problem` by published name. The catalogue knows them in lower case, and no arena ranks them."""

    @classmethod
    def for_problem(cls, problem: Problem, *args: Any, **options: Any) -> Learner[Any]:
        """Make the learner for a problem, with the constants that its theorem uses.

        `problem` gives B and the constants. `horizon`, where a learner needs it, is T, the number of rounds. Every
        learner documents its other options here.
        """
        what = f"{cls.__name__} has no way to be made from a problem"
        raise InputError("learner", what, "Call its constructor with hyper-parameters")

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> S:
        """Return the state before round 1 of `batch_shape` independent learners, in the array library `xp`."""
        return self.first_state(xp.asarray(1, dtype=xp.int64), self.initial_x(batch_shape, xp, dtype))

    def first_state(self, t: Array, x: Array) -> S:
        """Return the state of round t = 1 with x_1 = x. By default it is (t, x) alone."""
        return cast(S, PointState(t, x))

    def ask(self, state: S) -> Array:
        """Return the decision x_t, shape (..., d)."""
        return state.x

    @abstractmethod
    def update(self, state: S, feedback: Feedback) -> S:
        """Return the state after round t. Pure array arithmetic without checks."""

    def report(self, state: S) -> dict[str, Array]:
        """Return the numbers of round t for a trace, besides x: multipliers and step sizes."""
        return {}

    def initial_x(self, batch_shape: tuple[int, ...], xp: Any, dtype: Any) -> Array:
        """Return the centre of the enclosing set, once for every learner."""
        return self.broadcast(self.enclosing_set.centre, batch_shape, xp, dtype)

    def broadcast(self, point: FloatArray, batch_shape: tuple[int, ...], xp: Any, dtype: Any) -> Array:
        """Return the point once for every learner, shape (..., d)."""
        x = xp.asarray(point, dtype=float_dtype(xp, dtype))
        shape = np.broadcast_shapes(batch_shape, self.batch_shape)
        return xp.broadcast_to(x, (*shape, self.enclosing_set.dimension))

    @property
    def effective_needs(self) -> frozenset[Need]:
        """The needs, and what this instance uses besides because its problem provides it."""
        return self.needs

    @property
    def reads_pullback(self) -> bool:
        """True if `update` calls a function of the feedback, such as its pullback."""
        return False

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """The assumptions of its theorem about the hyper-parameters, checked."""
        return ()

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        """The bound on ∇f_t that the hyper-parameters were made for, if any."""
        constants = self._require_constants()
        return None if constants is None else constants.loss_gradient_bound

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        """The bound on ∇g_t that the hyper-parameters were made for, if any."""
        constants = self._require_constants()
        return None if constants is None else constants.constraint_gradient_bound

    def _require_constants(self) -> Constants | None:
        """Return `made_for`. Raise if it is given and not `Constants`."""
        given: object = self.made_for
        if given is None or isinstance(given, Constants):
            return given
        raise InputError("made_for", f"is {kind_of(given)}, not Constants", "Give problem.constants, or leave it out")

    @property
    def strong_convexity(self) -> Hyper:
        """The σ that the steps were made for. 0 where they are made for any convex losses."""
        return 0.0

    def check(self, problem: Problem) -> None:
        """Raise if this learner cannot play the problem. Warn if an assumption of its theorem fails."""
        self.require_playable(problem)
        failing = [str(assumption) for assumption in self.assumptions if not assumption.holds]
        if failing:
            warnings.warn(f"{type(self).__name__}: {' '.join(failing)}", AssumptionWarning, stacklevel=4)

    def require_playable(self, problem: Problem) -> None:
        """Raise if this learner cannot play the problem. Learners with more requirements extend this."""
        ours, theirs = self.enclosing_set, problem.enclosing_set
        remedy = f"Build the learner from the problem: {type(self).__name__}.for_problem(problem)"
        if ours.dimension != theirs.dimension:
            what = f"plays in dimension {ours.dimension}, the problem has {theirs.dimension}"
            raise InputError("learner", what, remedy)
        problem.require_feasible()
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
        """Return the proved bounds of this learner on a problem after T rounds, by measure.

        `rounds` is one T or several. `state`, the state after the run, is for theorems that depend on what happened.
        The result is empty, with a reason, where there is no theorem.
        """
        if state is not None:
            return self._bounds(problem, rounds, lambda T: self.theorem_after(problem, state), any_horizon=False)
        return self._bounds(problem, rounds, partial(self.theorem, problem), any_horizon=Need.HORIZON not in self.needs)

    def bound_as_printed(self, problem: Problem, rounds: ArrayLike) -> Bounds:
        """Return a bound that a paper prints and that is false, to be drawn beside `bound`. Mostly empty."""
        return self._bounds(problem, rounds, partial(self.theorem_as_printed, problem), any_horizon=False)

    def _bounds(self, problem: Problem, rounds: ArrayLike, formula: Theorem, *, any_horizon: bool) -> Bounds:
        """Evaluate a formula. `any_horizon` says that it holds for this learner at other horizons too."""
        self.require_playable(problem)
        asked = validate.horizons("rounds", rounds)

        def theorem(T: NDArray[np.int64]) -> BoundValues:
            return {measure: np.asarray(values, dtype=np.float64) for measure, values in formula(T).items()}

        try:
            values = theorem(asked)
        except (NoTheoremError, ScheduleError) as none:
            reason = none.why if isinstance(none, NoTheoremError) else str(none)
            return Bounds(asked, {}, problem.constants, reason=reason)
        assumed = tuple(assumption.statement for assumption in self.assumptions)
        return Bounds(asked, values, problem.constants, assumed, theorem=theorem if any_horizon else None)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds of its theorem by measure. Raise NoTheoremError where there is none."""
        if type(self).theorem_after is not Learner.theorem_after:
            raise DataDependentError
        raise NoTheoremError(f"none is known for {type(self).__name__}")

    def theorem_after(self, problem: Problem, state: S) -> BoundValues:
        """Return the bounds of a theorem that depends on what happened, from the state after the run."""
        raise NoTheoremError(f"the theorem of {type(self).__name__} is not about a state", "Leave the state out")

    def theorem_as_printed(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds as a paper prints them, where they are false."""
        raise NoTheoremError("nothing else is printed")

    def require_assumptions(self) -> None:
        """Raise NoTheoremError for the first assumption that does not hold."""
        for assumption in self.assumptions:
            if not assumption.holds:
                raise NoTheoremError(str(assumption), assumption.remedy)

    @property
    def has_requirements(self) -> bool:
        """True if `require` checks anything."""
        return type(self).require is not Learner.require

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        """Raise if a field that only this learner reads is missing or unusable."""

    def tell(self, state: S, feedback: Feedback, *, on_broken_bound: OnBrokenBound = "raise") -> S:
        """Check the feedback of round t and return the state after it. `state` itself never changes."""
        x, t = self.ask(state), int(np.max(np.asarray(state.round)))
        check = FeedbackCheck(self, x, on_broken_bound=on_broken_bound)
        with np.errstate(all="ignore"):
            feedback = check.accept(feedback, t)
        return self.update(state, feedback)


def require_learner(value: Any, argument: str = "learner", swapped: str = "") -> None:
    """Raise if the value is not a learner, a class for example, and say what to write instead."""
    if isinstance(value, type) and issubclass(value, Learner):
        what = f"is the class {value.__name__}, not a learner"
        raise InputError(argument, what, f"Make one: {value.__name__}.for_problem(problem)")
    if not isinstance(value, Learner):
        what = f"is {kind_of(value)}, not a learner{swapped}"
        raise InputError(argument, what, "Make one from longterm.learners, AOGD.for_problem(problem) for example")
