"""What the builders and the bounds of the catalogue share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longterm import bounds
from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.problems import Problem
from longterm.projections import Projection
from longterm.theory.slater import SlaterPoint, find_slater_point

Rounds = NDArray[np.int64]
Bounds = Mapping[str, FloatArray]
Steps = Literal["convex", "strongly convex"]
BETA = 2 / 3

SIGNED, HARD, EACH = "signed_violation", "hard_violation", "long_term_violation"
"""What a theorem bounds besides the regret; the last is the largest of the Σ_t g_j(x_t)."""

BOTH_STEPS: tuple[Mapping[str, Any], ...] = ({}, {"steps": "strongly convex"})
"""Both of them take part in an arena."""


def named(bound: bounds.Bound, violation: str) -> Bounds:
    """Both parts of a bound, by measure."""
    return {"regret": np.asarray(bound.regret), violation: np.asarray(bound.violation)}


@lru_cache(maxsize=16)
def interior(problem: Problem) -> SlaterPoint:
    """A point with g < 0, looked for once; an InputError says why where there is none."""
    return find_slater_point(problem.constraint, problem.enclosing_set)


def slack(problem: Problem) -> float | None:
    """The ε of `interior`; None where there is none, or where nobody can know."""
    try:
        return interior(problem).epsilon
    except InputError:
        return None


def projection_of(problem: Problem, learner: str) -> Projection:
    """Π onto {g ≤ 0} ∩ B, where it is known."""
    if problem.projection is None:
        what = f"{learner} needs the Euclidean projection onto {{g ≤ 0}} and B, and none is known for {problem.name!r}"
        raise InputError("problem", what, "Choose a learner that does not project, A-OGD for example")
    return problem.projection
