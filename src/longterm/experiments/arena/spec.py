"""Who plays what in an arena, and for how long."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from longterm import _validate as validate
from longterm.errors import InputError
from longterm.experiments.catalogue import find_problem, learners, problems
from longterm.experiments.spec import MOST_SEEDS, LearnerSpec, ProblemSpec, at_most, entry_title, slug
from longterm.experiments.spec_files import learner_of_table, learner_of_words, problem_of_table, problem_of_words
from longterm.streams.base import validate_seeds

ROUNDS, SEQUENCES = 4096, 5
"""By default: a few minutes on two cores."""
League = Literal["static", "drift"]
"""One best decision, or one that moves."""
HELD_OUT_SEEDS = 1_000_000
"""Sequences of the held-out half are counted from here, so that they are none of the others."""
HORIZONS = (16, 4, 1)
"""Slopes are fitted through what was lost after T/16, T/4 and T rounds."""
KEPT = (64, 32, 16, 8, 4, 2, 1)
"""Bounds are held against what was measured after T/64, T/32, …, T rounds."""


@dataclass(frozen=True)
class ArenaSpec:
    """Learners and problems of the catalogue; each plays each, over the same sequences.

    Examples
    --------
    >>> from longterm.experiments.arena import arena_of
    >>> spec = arena_of(["aogd", "aftrl"], ["doubly_stochastic size=3"], rounds=64, sequences=2)
    >>> spec.horizons, spec.kept[:3], spec.seeds
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
        if validate.count("rounds", self.rounds) < max(KEPT):
            raise InputError("rounds", f"{self.rounds} is too few", f"Play at least {max(KEPT)}")
        for argument, names in (
            ("learners", [one.name for one in self.learners]),
            ("problems", [problem_name(one) for one in self.problems]),
        ):
            if not names:
                raise InputError(argument, "is empty", "Name at least one, or leave it out for all")
            slugs = [slug(name) for name in names]
            for name in slugs:
                if slugs.count(name) > 1:
                    raise InputError(argument, f"two would be called {name!r}", "Give each a name of its own")

    @property
    def horizons(self) -> tuple[int, ...]:
        """T/16, T/4, T."""
        return tuple(self.rounds // part for part in HORIZONS)

    @property
    def kept(self) -> tuple[int, ...]:
        """The rounds that are kept: T/64, T/32, …, T."""
        return tuple(self.rounds // part for part in KEPT)

    def parameters(self, problem: ProblemSpec) -> dict[str, Any]:
        """The problem's own, and T where its builder asks for the number of rounds."""
        asked = inspect.signature(find_problem(problem.name).build).parameters
        return ({"rounds": self.rounds} if "rounds" in asked else {}) | dict(problem.parameters)

    @property
    def command(self) -> str:
        """What plays it again, on the command line."""
        words = ["longterm", "arena"]
        if self.learners != every_learner():
            words += [
                "--learners",
                *(_words(one.learner, {**one.parameters, "name": one.name}) for one in self.learners),
            ]
        if self.problems != every_problem():
            words += ["--problems", *(_words(one.name, one.parameters) for one in self.problems)]
        words += [] if self.rounds == ROUNDS else ["--rounds", str(self.rounds)]
        words += [] if len(self.seeds) == SEQUENCES else ["--sequences", str(len(self.seeds))]
        if self.seeds[0] >= HELD_OUT_SEEDS:
            words += ["--held-out", str((self.seeds[0] - HELD_OUT_SEEDS) // len(self.seeds))]
        return shlex.join(words)

    @classmethod
    def of_table(cls, found: Mapping[str, Any]) -> ArenaSpec:
        """What `table` made."""
        problems = ({key: value for key, value in one.items() if key != "rounds"} for one in found["problems"])
        players = tuple(map(learner_of_table, found["learners"]))
        return cls(players, tuple(map(problem_of_table, problems)), found["rounds"], tuple(found["seeds"]))

    def table(self) -> dict[str, Any]:
        """As plain tables, for the manifest."""
        return {
            "rounds": self.rounds,
            "seeds": list(self.seeds),
            "learners": [{"learner": one.learner, "name": one.name, **one.parameters} for one in self.learners],
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
    """The learners and problems that are named, as on the command line; none named: all of the catalogue.

    Parameters
    ----------
    wanted_learners : sequence of LearnerSpec or str
        None: all of the catalogue.
    wanted_problems : sequence of ProblemSpec or str
        None: all of the catalogue.
    rounds : int
        T.
    sequences : int
        Random sequences to average over.
    league : {"static", "drift"}
        Problems with one best decision, or those whose best decision moves, against the best path.
    held_out : int, optional
        The held-out half: variants of the problems, and sequences, that are drawn from this seed. Choose one that
        nothing was tuned on.

    Returns
    -------
    ArenaSpec
    """
    chosen = [learner_of_words(one) if isinstance(one, str) else one for one in wanted_learners]
    played = [problem_of_words(one) if isinstance(one, str) else one for one in wanted_problems]
    if league not in ("static", "drift"):
        raise InputError("league", f"{league!r} is not known", "Choose 'static' or 'drift'")
    count = at_most("sequences", validate.count("sequences", sequences), MOST_SEEDS, "sequences")
    first = 0 if held_out is None else HELD_OUT_SEEDS + validate.seed("held_out", held_out) * count
    return ArenaSpec(
        tuple(chosen) or every_learner(league),
        tuple(played) or every_problem(league, held_out),
        rounds,
        tuple(range(first, first + count)),
    )


def every_learner(league: League = "static") -> tuple[LearnerSpec, ...]:
    """Every learner of the catalogue, others' too, in each of the settings that its entry names for that league."""
    return tuple(
        LearnerSpec(name, settings, _title(name, settings))
        for name, entry in learners().items()
        for settings in (entry.drifting if league == "drift" else entry.variants)
    )


def every_problem(league: League = "static", held_out: int | None = None) -> tuple[ProblemSpec, ...]:
    """Every problem of the catalogue and that league, others' too; or a variant of each, drawn from a seed."""
    found = []
    for name, entry in problems().items():
        if entry.drifts != (league == "drift"):
            continue
        parameters = dict(entry.arena)
        if held_out is not None and entry.vary is not None:
            # Each problem has its own child of the seed: one that is added changes none of the others.
            child = np.random.SeedSequence(held_out, spawn_key=tuple(name.encode()))
            parameters |= entry.vary(np.random.default_rng(child))
        found.append(ProblemSpec(name, parameters))
    return tuple(found)


def problem_name(problem: ProblemSpec) -> str:
    """How tables call it."""
    given = ", ".join(f"{key} = {value}" for key, value in sorted(problem.parameters.items()))
    own = problem.parameters == find_problem(problem.name).arena
    return problem.name.replace("_", " ") + (f", {given}" if given and not own else "")


@dataclass(frozen=True)
class ArenaJob:
    """A comparator (no learner), or a match."""

    problem: ProblemSpec
    learner: LearnerSpec | None = None

    @property
    def stem(self) -> str:
        """The name of its file, without the ending."""
        who = "comparator" if self.learner is None else slug(self.learner.name)
        return f"{slug(problem_name(self.problem))}--{who}"


def arena_jobs(spec: ArenaSpec, problems: Sequence[ProblemSpec]) -> list[ArenaJob]:
    """All jobs of these problems, problem after problem: a worker keeps the game that it has built."""
    players = (None, *spec.learners)
    return [ArenaJob(problem, learner) for problem in problems for learner in players]


def _words(name: str, parameters: Mapping[str, Any]) -> str:
    return " ".join([name, *(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in parameters.items())])


def _title(name: str, settings: Mapping[str, Any]) -> str:
    """The learner's title and what is set: values that are words speak for themselves."""
    words = [
        value if isinstance(value, str) else key if value is True else f"{key} = {value}"
        for key, value in settings.items()
    ]
    return ", ".join([entry_title(name), *(word.replace("_", " ") for word in words)])
