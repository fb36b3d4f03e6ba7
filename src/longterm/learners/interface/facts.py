"""Facts about a learner: its name, its needs and its theorem, as tables, the catalogue and the arena read them.

Every fact has a default, so that a learner of your own states only what it knows. To be ranked it needs none of them;
to have a bound it needs `theorem`, and to be refused where it cannot play, `needs` and `require_playable`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Generic

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base import validate
from longterm._base.arrays import ROUNDING, Array
from longterm._base.messages import kind_of
from longterm._base.per_learner import PerLearner
from longterm._base.validate import Hyper
from longterm.errors import AssumptionWarning, InputError, ScheduleError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import OnBrokenBound
from longterm.learners.interface.needs import Need, require_needs
from longterm.learners.interface.states import S
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


class LearnerFacts(PerLearner, Generic[S]):
    """What is known about a learner, besides its rule."""

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

    @property
    def effective_needs(self) -> frozenset[Need]:
        """The needs, and what this instance uses besides because its problem provides it."""
        return self.needs

    @property
    def reads_pullback(self) -> bool:
        """True if `update` calls a function of the feedback, such as its pullback."""
        return False

    @property
    def has_requirements(self) -> bool:
        """True if `require` checks anything."""
        return type(self).require is not LearnerFacts.require

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        """Raise if a field that only this learner reads is missing or unusable."""

    @property
    def strong_convexity(self) -> Hyper:
        """The σ that the steps were made for. 0 where they are made for any convex losses."""
        return 0.0

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
    def assumptions(self) -> tuple[Assumption, ...]:
        """The assumptions of its theorem about the hyper-parameters, checked."""
        return ()

    @property
    def hypotheses(self) -> tuple[str, ...]:
        """What the bounds before the run assume about the run, in words. Nothing checks it."""
        return ()

    def require_assumptions(self) -> None:
        """Raise NoTheoremError for the first assumption that does not hold."""
        for assumption in self.assumptions:
            if not assumption.holds:
                raise NoTheoremError(str(assumption), assumption.remedy)

    def check(self, problem: Problem) -> None:
        """Raise if this learner cannot play the problem. Warn if an assumption of its theorem fails."""
        self.require_playable(problem)
        for text in self.broken_assumptions(problem):
            warnings.warn(text, AssumptionWarning, stacklevel=4)

    def broken_assumptions(self, problem: Problem) -> list[str]:
        """Return the assumptions of its theorem that fail on this problem, as `check` words them."""
        failing = [str(assumption) for assumption in self.assumptions if not assumption.holds]
        return [f"{type(self).__name__}: {' '.join(failing)}"] if failing else []

    def require_playable(self, problem: Problem) -> None:
        """Raise if this learner cannot play the problem. Learners with more requirements extend this."""
        ours, theirs = self.enclosing_set, problem.enclosing_set
        remedy = f"Build the learner from the problem: {type(self).__name__}.for_problem(problem)"
        if ours.dimension != theirs.dimension:
            what = f"was made for dimension {ours.dimension}, but the problem has {theirs.dimension}"
            raise InputError("learner", what, remedy)
        problem.require_feasible()
        require_needs(type(self).__name__, self.needs, problem)
        if not ours.same_as(theirs):
            what = "was made for another set than that of the problem, so its constants may be wrong"
            raise InputError("learner", what, remedy)
        sigma = problem.constants.strong_convexity
        if np.any(np.asarray(self.strong_convexity) > sigma * (1 + ROUNDING)):
            largest = float(np.max(self.strong_convexity))
            what = f"its steps are made for losses with σ = {largest:g}, but those of {problem.name!r} have {sigma:g}"
            raise InputError("learner", what, "Use steps for convex losses, or declare a strong_convexity that holds")

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds of its theorem by measure. Raise NoTheoremError where there is none."""
        if type(self).theorem_after is not LearnerFacts.theorem_after:
            raise DataDependentError
        raise NoTheoremError(f"no bound is known for {type(self).__name__}")

    def theorem_after(self, problem: Problem, state: S) -> BoundValues:
        """Return the bounds of a theorem that depends on what happened, from the state after the run."""
        raise NoTheoremError(f"the bound of {type(self).__name__} does not depend on a state", "Leave state= out")

    def theorem_as_printed(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds as a paper prints them, where they are false."""
        raise NoTheoremError("the paper prints no bound for this learner")

    def bound(self, problem: Problem, rounds: ArrayLike, *, state: S | None = None) -> Bounds:
        """Return the proved bounds of this learner on a problem after T rounds, by measure.

        `rounds` is one T or several. `state`, the state after the run, is for theorems that depend on what happened.
        The result is empty, with a reason, where there is no theorem.
        """
        if state is not None:
            return self._bounds(problem, rounds, lambda T: self.theorem_after(problem, state), any_horizon=False)
        anytime = Need.HORIZON not in self.needs
        found = self._bounds(problem, rounds, partial(self.theorem, problem), any_horizon=anytime)
        return replace(found, assumptions=found.assumptions + self.hypotheses) if found else found

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
