"""Problems that cannot be played here, because their data are not."""

from __future__ import annotations

from longterm.data import path
from longterm.errors import DataError
from longterm.experiments.arena.spec import ArenaSpec, problem_name
from longterm.experiments.catalogue import find_problem


def left_out(spec: ArenaSpec) -> dict[str, str]:
    """By name, what to download where; nothing is downloaded unasked."""
    found = {}
    for problem in spec.problems:
        data = problem.parameters.get("data", find_problem(problem.name).data)
        try:
            if find_problem(problem.name).data is not None:
                path(str(data))
        except DataError as missing:
            found[problem_name(problem)] = str(missing)
    return found
