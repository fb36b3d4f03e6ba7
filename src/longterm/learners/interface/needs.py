"""Requirements of a learner beyond one value and one subgradient of f_t and g_t at the point it plays."""

from __future__ import annotations

from enum import Enum
from typing import Literal, get_args

from longterm._base import validate
from longterm.errors import InputError
from longterm.problems import Problem
from longterm.problems.constraints.prox import PenaltyProx

StepKind = Literal["convex", "strongly convex"]
"""The losses that step sizes are made for."""


class Need(Enum):
    """A requirement of a learner, in the words that a user sees."""

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
    """Raise if the problem itself shows that it lacks what the learner needs.

    Needs that are met by an argument (a horizon, a projection, a Slater point) are checked where it is given.
    """
    constraint, prox = problem.constraint, None
    if needs & {Need.PROX, Need.PENALTY_PROX} and not constraint.parameters:
        prox = constraint.prox(problem.enclosing_set)
    lacking = {
        Need.FIXED_CONSTRAINT: bool(constraint.parameters),
        Need.AFFINE_CONSTRAINT: constraint.as_affine() is None,
        Need.PROX: prox is None,
        Need.PENALTY_PROX: not isinstance(prox, PenaltyProx) or not prox.set_holds_budget,
    }
    for need, lacks in lacking.items():
        if lacks and need in needs:
            why, remedy = _REFUSALS[need]
            raise InputError("learner", f"{learner} needs {need.value}, and {problem.name!r} {why}", remedy)


_REFUSALS = {
    Need.FIXED_CONSTRAINT: (
        "has a constraint with parameters of the round",
        "Choose a learner whose theory allows time-varying constraints, A-OGD for example",
    ),
    Need.AFFINE_CONSTRAINT: ("has another kind", "Choose a learner for general convex constraints, A-OGD for example"),
    Need.PROX: (
        "has no closed form for it on its set",
        "Use affine constraints, or a budget on a ball about 0 (elastic net: or a box), or A-OGD",
    ),
    Need.PENALTY_PROX: (
        "has no closed form for it",
        "Use a budget inside a ball about 0 (elastic net: or a box), or A-FTRL",
    ),
}
"""The words for a problem that lacks what a learner needs, and the remedy."""


def require_strong_convexity(problem: Problem, steps: str) -> float:
    """Return σ of the losses for steps="strongly convex". Raise for another word or where σ is 0."""
    sigma = problem.constants.strong_convexity
    validate.choice("steps", steps, get_args(StepKind))
    if sigma <= 0:
        what = f"the losses of {problem.name!r} are not strongly convex (σ = {sigma:g})"
        raise InputError("problem", what, "Use steps='convex', or declare a strong_convexity that holds")
    return sigma
