"""The zoo has every learner, and no two entries of the arena are one rule under two names."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import numpy as np
import pytest

import zoo
from longterm import run
from longterm.catalogue import Scenario
from longterm.catalogue.lookup import find_learner, find_problem
from longterm.errors import AssumptionWarning, DataError, InputError
from longterm.lab.arena.arena_spec import every_learner as ranked
from longterm.lab.arena.arena_spec import every_problem
from longterm.lab.experiments.spec import LearnerSpec
from longterm.learners import every_learner


def test_every_learner_is_in_the_zoo() -> None:
    """Generated tests run the zoo: a learner that is not in it is tested by nobody."""
    present = {type(learner) for _, _, learner in zoo.games().values()}
    assert {learner.__name__ for learner in every_learner()} - {learner.__name__ for learner in present} == set()


@pytest.mark.cross
@pytest.mark.filterwarnings(f"ignore::{AssumptionWarning.__module__}.{AssumptionWarning.__name__}")
def test_no_two_ranked_entries_have_equal_traces() -> None:
    """Prox penalty, RECOO and COLDQ had, and the arena ranked all three. Only what is still equal is played again."""
    groups = [ranked()]
    for rounds in (64, 4096):
        for spec in every_problem() if groups else ():
            try:
                scenario = find_problem(spec.name).build(**spec.parameters)
            except DataError:
                continue
            groups = [part for group in groups for part in split_by_trace(group, scenario, rounds) if len(part) > 1]
    assert not groups, [[entry.name for entry in group] for group in groups]


def split_by_trace(entries: Iterable[LearnerSpec], scenario: Scenario, rounds: int) -> list[list[LearnerSpec]]:
    """Return the entries in groups that play the same points, or that all refuse."""
    parts: list[tuple[np.ndarray | None, list[LearnerSpec]]] = []
    for entry in entries:
        played: np.ndarray | None = None
        with suppress(InputError):
            learner = find_learner(entry.learner).learner(scenario.problem, rounds, entry.parameters)
            trace = run(scenario.problem, learner, scenario.stream, rounds, record=[rounds], progress=None)
            played = np.append(trace.cumulative_loss, trace.state.x)
        for points, part in parts:
            if points is played is None or (
                points is not None and played is not None and np.allclose(points, played, rtol=1e-9, atol=1e-9)
            ):
                part.append(entry)
                break
        else:
            parts.append((played, [entry]))
    return [part for _, part in parts]
