"""Specification of an arena: learners, problems, rounds and sequences."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from longterm._base import validate
from longterm.catalogue.lookup import find_learner, find_problem, learners, problems
from longterm.errors import InputError
from longterm.lab.experiments.spec import LearnerSpec, ProblemSpec, require_file_names, slug, validate_sequences
from longterm.lab.experiments.spec_tables import (
    learner_of_table,
    parse_learner,
    parse_problem,
    problem_of_table,
    table_of_learner,
)
from longterm.problems.streams.base import validate_seeds

ROUNDS, SEQUENCES = 4096, 5
"""The defaults take a few minutes on two cores."""
League = Literal["static", "drift"]
"""Problems with one best decision, or with one that moves."""
HELD_OUT_SEEDS = 1_000_000
"""The first seed of held-out sequences, which no other arena uses."""
HORIZONS = (16, 4, 1)
"""Slopes are fitted to regret and violation after T/16, T/4 and T rounds."""
RECORDED = (64, 32, 16, 8, 4, 2, 1)
"""Bounds are compared with the measured values after T/64, T/32, …, T rounds."""


@dataclass(frozen=True)
class ArenaSpec:
    """Learners and problems of the catalogue. Every learner runs on every problem, on the same sequences.

    Parameters
    ----------
    learners : tuple of LearnerSpec
        The learners with their settings. Each value of a grid becomes a learner of its own.
    problems : tuple of ProblemSpec
        The problems with their parameters.
    rounds : int
        T, the number of rounds of every match. At least 64.
    seeds : tuple of int
        The random sequences that every learner plays.

    Examples
    --------
    >>> from longterm.lab.arena import arena_of
    >>> spec = arena_of(["aogd", "aftrl"], ["doubly_stochastic size=3"], rounds=64, sequences=2)
    >>> spec.horizons, spec.recorded[:3], spec.seeds
    ((4, 16, 64), (1, 2, 4), (0, 1))
    """

    learners: tuple[LearnerSpec, ...]
    problems: tuple[ProblemSpec, ...]
    rounds: int = ROUNDS
    """T, the number of rounds."""
    seeds: tuple[int, ...] = tuple(range(SEQUENCES))

    def __post_init__(self) -> None:
        curves = tuple(curve for one in self.learners for curve in one.curves)
        validate.set_frozen(self, learners=curves, problems=tuple(self.problems), seeds=validate_seeds(self.seeds))
        if validate.count("rounds", self.rounds) < max(RECORDED):
            raise InputError("rounds", f"{self.rounds} is too few", f"Give at least {max(RECORDED)}")
        for argument, names in (
            ("learners", [one.name for one in self.learners]),
            ("problems", [problem_name(one) for one in self.problems]),
        ):
            if not names:
                raise InputError(argument, "is empty", "Name at least one, or leave the argument out to run all")
            require_file_names(argument, argument, names)

    @property
    def horizons(self) -> tuple[int, ...]:
        """T/16, T/4, T."""
        return tuple(self.rounds // part for part in HORIZONS)

    @property
    def recorded(self) -> tuple[int, ...]:
        """The recorded rounds: T/64, T/32, …, T."""
        return tuple(self.rounds // part for part in RECORDED)

    def parameters(self, problem: ProblemSpec) -> dict[str, Any]:
        """Return the problem's parameters, with T if its builder takes the number of rounds."""
        asked = inspect.signature(find_problem(problem.name).build).parameters
        return ({"rounds": self.rounds} if "rounds" in asked else {}) | dict(problem.parameters)

    @property
    def command(self) -> str:
        """The command line that runs the arena again."""
        words = ["longterm", "arena"]
        if self.learners != every_learner():
            named = [_format_words(one.learner, {**one.parameters, "name": one.name}) for one in self.learners]
            words += ["--learners", *named]
        if self.problems != every_problem():
            words += ["--problems", *(_format_words(one.name, one.parameters) for one in self.problems)]
        words += [] if self.rounds == ROUNDS else ["--rounds", str(self.rounds)]
        words += [] if len(self.seeds) == SEQUENCES else ["--sequences", str(len(self.seeds))]
        if self.seeds[0] >= HELD_OUT_SEEDS:
            words += ["--held-out", str((self.seeds[0] - HELD_OUT_SEEDS) // len(self.seeds))]
        return shlex.join(words)

    @classmethod
    def of_table(cls, found: Mapping[str, Any]) -> ArenaSpec:
        """Return the specification in a table, as `table` writes it."""
        problems = ({key: value for key, value in one.items() if key != "rounds"} for one in found["problems"])
        learners = tuple(map(learner_of_table, found["learners"]))
        return cls(learners, tuple(map(problem_of_table, problems)), found["rounds"], tuple(found["seeds"]))

    def table(self) -> dict[str, Any]:
        """Return the specification as plain tables, for the manifest."""
        return {
            "rounds": self.rounds,
            "seeds": list(self.seeds),
            "learners": [table_of_learner(one) for one in self.learners],
            "problems": [{"name": one.name, **self.parameters(one)} for one in self.problems],
        }


def arena_of(
    wanted_learners: Sequence[LearnerSpec | str] = (),
    wanted_problems: Sequence[ProblemSpec | str] = (),
    *,
    rounds: int = ROUNDS,
    sequences: int = SEQUENCES,
    league: League = "static",
    held_out: int | None = None,
) -> ArenaSpec:
    """Return the specification for the given learners and problems, by default all of the catalogue.

    Parameters
    ----------
    wanted_learners : sequence of LearnerSpec or str
        As on the command line; empty: the whole catalogue.
    wanted_problems : sequence of ProblemSpec or str
        As on the command line; empty: the whole catalogue.
    rounds : int
        T.
    sequences : int
        The number of random sequences.
    league : {"static", "drift"}
        Problems with one best decision, or problems whose best decision moves, compared with the best path.
    held_out : int, optional
        A seed for held-out variants of the problems and held-out sequences. Choose one that was not used for tuning.

    Returns
    -------
    ArenaSpec
        The specification, with the parameters of every learner and problem filled in.
    """
    chosen = [parse_learner(one) if isinstance(one, str) else one for one in wanted_learners]
    problems = [parse_problem(one) if isinstance(one, str) else one for one in wanted_problems]
    if league not in ("static", "drift"):
        raise InputError("league", f"{league!r} is not known", "Choose 'static' or 'drift'")
    count = validate_sequences(sequences)
    first = 0 if held_out is None else HELD_OUT_SEEDS + validate.seed("held_out", held_out) * count
    return ArenaSpec(
        tuple(chosen) or every_learner(league),
        tuple(problems) or every_problem(league, held_out),
        rounds,
        tuple(range(first, first + count)),
    )


def every_learner(league: League = "static") -> tuple[LearnerSpec, ...]:
    """Return every learner of the catalogue in each of its settings for the league."""
    return tuple(
        LearnerSpec(name, settings, _title(name, settings))
        for name, entry in learners().items()
        for settings in (entry.drifting if league == "drift" else entry.variants)
    )


def every_problem(league: League = "static", held_out: int | None = None) -> tuple[ProblemSpec, ...]:
    """Return every problem of the catalogue and the league, or a held-out variant of each."""
    found = []
    for name, entry in problems().items():
        if entry.drifts != (league == "drift"):
            continue
        parameters = dict(entry.arena)
        if held_out is not None and entry.vary is not None:
            # Each problem has its own child of the seed, so that a new problem does not change the others.
            child = np.random.SeedSequence(held_out, spawn_key=tuple(name.encode()))
            parameters |= entry.vary(np.random.default_rng(child))
        found.append(ProblemSpec(name, parameters))
    return tuple(found)


def problem_name(problem: ProblemSpec) -> str:
    """Return the problem's name in tables: its parameters are left out where they are the arena's own."""
    is_default = problem.parameters == find_problem(problem.name).arena
    return problem.name.replace("_", " ") if is_default else problem.title


@dataclass(frozen=True)
class ArenaJob:
    """A match, or with no learner the comparator of a problem."""

    problem: ProblemSpec
    learner: LearnerSpec | None = None

    @property
    def stem(self) -> str:
        """The name of its file, without the suffix."""
        name = "comparator" if self.learner is None else slug(self.learner.name)
        return f"{slug(problem_name(self.problem))}--{name}"


def arena_jobs(spec: ArenaSpec, problems: Sequence[ProblemSpec]) -> list[ArenaJob]:
    """Return all jobs of these problems, ordered by problem since a worker reuses the problem it has built."""
    return [ArenaJob(problem, learner) for problem in problems for learner in (None, *spec.learners)]


def _format_words(name: str, parameters: Mapping[str, Any]) -> str:
    return " ".join([name, *(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in parameters.items())])


def _title(name: str, settings: Mapping[str, Any]) -> str:
    """Return the learner's title and settings; of settings that are text, only the value."""
    words = [
        value if isinstance(value, str) else key if value is True else f"{key} = {value}"
        for key, value in settings.items()
    ]
    return ", ".join([find_learner(name).title, *(word.replace("_", " ") for word in words)])
