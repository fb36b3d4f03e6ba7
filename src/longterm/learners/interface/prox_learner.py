"""Learners whose step is a closed-form argmin that holds the constraint itself (`constraints.prox`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from longterm._base.arrays import Array, as_column, namespace
from longterm._base.validate import set_frozen
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.needs import Need, require_needs
from longterm.learners.interface.states import S
from longterm.problems import Problem
from longterm.problems.constraints.prox import Prox
from longterm.problems.constraints.smooth import SmoothProx
from longterm.problems.sets import Set
from longterm.theory.bounds import NoTheoremError


@dataclass(frozen=True, eq=False)
class ProxLearner(Learner[S]):
    """A learner that plays by the prox of one constraint, on the set of that prox."""

    prox: Prox
    enclosing_set: Set = field(init=False, repr=False)

    needs = frozenset({Need.FIXED_CONSTRAINT, Need.PROX})

    def __post_init__(self) -> None:
        set_frozen(self, enclosing_set=self.prox.over)

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_same_constraint(self.prox, problem)


def prox_of(learner: str, needs: frozenset[Need], problem: Problem) -> Prox:
    """Return the prox of the problem's constraint, or raise with the reason why there is none."""
    require_needs(learner, needs, problem)
    return cast(Prox, problem.constraint.prox(problem.enclosing_set))


def require_same_constraint(prox: Prox, problem: Problem) -> None:
    """Raise if the prox belongs to other functions than the problem's, compared at a few points."""
    points = problem.enclosing_set.sample(np.random.default_rng(0), 8)
    ours, theirs = prox.constraint.values(points), problem.constraint.values(points)
    if ours.shape != theirs.shape or not np.allclose(ours, theirs):
        what = f"was made for another constraint than that of {problem.name!r}"
        raise InputError("learner", what, "Build the learner from the problem that it is to play")


def require_exact(prox: Prox) -> None:
    """Raise a NoTheoremError where the argmin is iterative: its error grows with the multipliers' sum."""
    if isinstance(prox, SmoothProx):
        raise NoTheoremError("constraints.Smooth finds its minimum approximately, and no bound includes this error")


def length_bound(prox: Prox, problem: Problem) -> float:
    """Return D for the vector (g_1, …, g_m), from the prox or from the problem, whichever is smaller."""
    return float(min(prox.values_norm_bound(), np.sqrt(prox.constraint.count) * problem.constants.constraint_bound))


def values_of(feedback: Feedback, count: int) -> Array:
    """Return (g_1(x_t), …, g_m(x_t)), shape (..., m)."""
    if count == 1:
        return as_column(feedback.constraint)
    if feedback.constraint_values is None:
        what = f"is missing, and the learner has {count} multipliers"
        raise InputError("constraint_values", what, "Give g_j(x_t) for every constraint, as `observe` does")
    return feedback.constraint_values


def as_reported(multiplier: Array) -> Array:
    """Return multipliers (..., m) as a trace records them: shape (...,) if there is one."""
    return multiplier[..., 0] if multiplier.shape[-1] == 1 else multiplier


def positive_or_one(value: Array) -> Array:
    """Return the value, or 1 where it is 0, so that it can divide."""
    xp = namespace(value)
    return xp.where(value > 0, value, xp.ones_like(value))
