"""The Slater point that a learner uses: the given one, or the problem's."""

from __future__ import annotations

from longterm._base import validate
from longterm.problems import Problem
from longterm.problems.slater import SlaterPoint, find_slater_point, require_slack


def slater_point_for(problem: Problem, given: SlaterPoint | None) -> SlaterPoint:
    """Return the given Slater point, or the problem's; raise if there is none."""
    if given is None:
        return problem.slater_point or find_slater_point(problem.constraint, problem.enclosing_set)
    validate.require_at_most("slater", given.epsilon, problem.constants.constraint_bound, "|g| is never above D")
    require_slack(given, problem.constraint, problem.enclosing_set)
    return given
