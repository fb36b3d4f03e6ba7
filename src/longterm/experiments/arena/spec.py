"""Who plays what in an arena, and for how long."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longterm import _validate as validate
from longterm.errors import InputError
from longterm.experiments.catalogue import find_problem, learners, problems
from longterm.experiments.spec import MOST_SEEDS, LearnerSpec, ProblemSpec, at_most, entry_title, slug
from longterm.streams.base import checked_seeds

ROUNDS, SEQUENCES = 4096, 5
"""By default: a few minutes on two cores."""
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
    """T."""
    seeds: tuple[int, ...] = tuple(range(SEQUENCES))

    def __post_init__(self) -> None:
        curves = tuple(curve for one in self.learners for curve in one.curves)
        validate.remember(self, learners=curves, problems=tuple(self.problems), seeds=checked_seeds(self.seeds))
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
        return shlex.join(words)

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

    Returns
    -------
    ArenaSpec
    """
    from longterm.experiments.spec_files import learner_of_words, problem_of_words

    chosen = [learner_of_words(one) if isinstance(one, str) else one for one in wanted_learners]
    played = [problem_of_words(one) if isinstance(one, str) else one for one in wanted_problems]
    return ArenaSpec(
        tuple(chosen) or every_learner(),
        tuple(played) or every_problem(),
        rounds,
        tuple(range(at_most("sequences", validate.count("sequences", sequences), MOST_SEEDS, "sequences"))),
    )


def every_learner() -> tuple[LearnerSpec, ...]:
    """Every learner of the catalogue, others' too, in each of the settings that its entry names."""
    return tuple(
        LearnerSpec(name, settings, _title(name, settings))
        for name, entry in learners().items()
        for settings in entry.variants
    )


def every_problem() -> tuple[ProblemSpec, ...]:
    """Every problem of the catalogue, others' too."""
    return tuple(ProblemSpec(name, entry.arena) for name, entry in problems().items())


def problem_name(problem: ProblemSpec) -> str:
    """How tables call it."""
    given = ", ".join(f"{key} = {value}" for key, value in problem.parameters.items())
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
