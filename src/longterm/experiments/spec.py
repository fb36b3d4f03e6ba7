"""What to run: the same frozen dataclasses from Python, from a TOML file and from the command line.

name = "mine"                       # of the experiment
rounds = 2000                       # T; left out, the rows of the data set
seeds = 5                           # 0 … 4, or a list of seeds: one sequence each
record = 30                         # about how many rounds are kept

[problem]
name = "budgeted_logistic"          # of the catalogue; the other keys are its parameters
data = "sample"
budget = 3.0

[[learners]]
learner = "aogd"                    # of the catalogue; the keys below are its parameters
beta = [0.5, 0.6667]                # a list becomes a grid: one curve each

[[learners]]
learner = "mahdavi_ogd"
name = "Convex OGD"                 # how figures call it
"""

from __future__ import annotations

import itertools
import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm.errors import InputError
from longterm.experiments.catalogue import find_learner, find_problem, fits, in_words
from longterm.experiments.result import LOGGED, MEASURES, Role
from longterm.streams.base import validate_seeds

EngineChoice = Literal["auto", "numpy", "jax"]
"""The engine that is named; auto: the faster one, by the rule of `longterm.run`."""
FEWEST_ROUNDS_KEPT = 2
MOST_SEEDS = MOST_ROUNDS_KEPT = 1_000_000
MOST_CURVES = 10_000
"""Beyond these a few words in a file would ask for more than a machine has."""
MOST_ROUNDS = 2**53


@dataclass(frozen=True)
class ProblemSpec:
    """A problem of the catalogue and its parameters.

    Parameters
    ----------
    name : str
        Its name in the catalogue.
    parameters : mapping
        Of the function that makes it.

    Examples
    --------
    >>> from longterm.experiments import ProblemSpec
    >>> ProblemSpec("budgeted_logistic", {"data": "sample", "budget": 3.0}).parameters["budget"]
    3.0
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(self)
        _require_plain(self.parameters, "problem")
        find_problem(self.name, "problem.name").check(self.parameters, "problem")


@dataclass(frozen=True)
class LearnerSpec:
    """A learner of the catalogue and its parameters.

    Parameters
    ----------
    learner : str
        Its name in the catalogue.
    parameters : mapping
        Of its `for_problem`; a list of values becomes a grid.
    name : str
        How figures call it; left out, by the learner's title and the parameters that were given.
    role : {"paper", "fair", "own"}
        As in `Curve`.
    read_off : mapping of str to float
        What another source says of the measures at the last round, to be shown beside ours.
    """

    learner: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    role: Role = "own"
    read_off: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(self)
        # In order, however they were written: a grid has the same names when it is read from a manifest.
        validate.set_frozen(self, parameters={str(k): _no_list(v) for k, v in sorted(self.parameters.items())})
        if self.role not in get_args(Role):
            raise InputError("learners.role", f"{self.role!r} is not known", f"Choose from {list(get_args(Role))}")
        _require_plain(self.parameters, f"learners.{self.learner}")
        for measure, value in self.read_off.items():
            if measure not in (*MEASURES, LOGGED):
                known = [*MEASURES, LOGGED]
                raise InputError("learners.read_off", f"{measure!r} is no measure", f"Choose from {known}")
            validate.scalar(f"learners.read_off.{measure}", validate.number(f"learners.read_off.{measure}", value))
        entry = find_learner(self.learner, "learners.learner")
        for one in self.curves if self.is_grid else (self,):
            entry.check(one.parameters, f"learners.{self.learner}")
        if not self.name:
            given = ", ".join(f"{k} = {_short(v)}" for k, v in self.parameters.items() if not isinstance(v, tuple))
            title = entry_title(self.learner)
            validate.set_frozen(self, name=f"{title}, {given}" if given else title)

    @property
    def is_grid(self) -> bool:
        """Whether a parameter has several values."""
        return any(isinstance(value, tuple) for value in self.parameters.values())

    @property
    def curves(self) -> tuple[LearnerSpec, ...]:
        """One specification for each point of the grid."""
        varied = {key: value for key, value in self.parameters.items() if isinstance(value, tuple)}
        if not varied:
            return (self,)
        at_most("learners", math.prod(map(len, varied.values())), MOST_CURVES, "curves")
        made = []
        for values in itertools.product(*varied.values()):
            point = dict(zip(varied, values, strict=True))
            words = ", ".join(f"{key} = {_short(value)}" for key, value in point.items())
            name = f"{self.name or entry_title(self.learner)}, {words}"
            made.append(LearnerSpec(self.learner, {**self.parameters, **point}, name, self.role, self.read_off))
        return tuple(made)


@dataclass(frozen=True)
class ExperimentSpec:
    """A comparison: one problem, several learners, the same sequences.

    Parameters
    ----------
    problem : ProblemSpec
        What is played.
    learners : tuple of LearnerSpec
        Who plays it.
    rounds : int, optional
        T; None: as many as the data set has rows.
    seeds : tuple of int
        One sequence each; every learner sees the same.
    record : int
        About how many rounds are kept, half of them evenly spaced and half evenly on a logarithmic scale.
    logged : bool
        Whether g is also summed over the logged rounds 8, 16, 32, …, T alone, as the paper's Figure 4 has it.
    engine : {"auto", "numpy", "jax"}
        What runs it; auto: the faster one, by the rule of `longterm.run`.
    name, title : str
        Of the folder, and of pages and figures.
    command : str
        What runs it again, where that is shorter than the manifest.

    Examples
    --------
    >>> from longterm.experiments import ExperimentSpec, LearnerSpec, ProblemSpec
    >>> spec = ExperimentSpec(
    ...     problem=ProblemSpec("doubly_stochastic", {"size": 3}),
    ...     learners=(LearnerSpec("aogd", {"beta": [0.5, 0.75]}), LearnerSpec("mirror_prox")),
    ...     rounds=100,
    ...     seeds=(0, 1),
    ... )
    >>> [curve.name for curve in spec.curves]
    ['A-OGD, beta = 0.5', 'A-OGD, beta = 0.75', 'Mirror prox']
    """

    problem: ProblemSpec
    learners: tuple[LearnerSpec, ...]
    rounds: int | None = None
    seeds: tuple[int, ...] = tuple(range(10))
    record: int = 40
    logged: bool = False
    engine: EngineChoice = "auto"
    name: str = "experiment"
    title: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        given: Any = self.seeds
        seeds: Any
        if isinstance(given, int):
            seeds = tuple(range(at_most("seeds", validate.count("seeds", given), MOST_SEEDS, "sequences")))
        else:
            seeds = validate_seeds(given)
        learners = tuple(self.learners) if isinstance(self.learners, Sequence) else ()
        validate.set_frozen(self, seeds=seeds, learners=learners, title=self.title or self.name)
        _require(self)
        if len(set(self.seeds)) < len(self.seeds):
            raise InputError("seeds", f"{given!r} has a seed twice", "Give each once: two equal sequences tell nothing")
        if self.rounds is not None:
            at_most("rounds", validate.count("rounds", self.rounds), MOST_ROUNDS, "rounds")
        if validate.count("record", self.record) < FEWEST_ROUNDS_KEPT:
            raise InputError("record", f"{self.record} is too few", f"Keep at least {FEWEST_ROUNDS_KEPT} rounds")
        at_most("record", self.record, MOST_ROUNDS_KEPT, "rounds kept")
        if self.engine not in get_args(EngineChoice):
            known = list(get_args(EngineChoice))
            raise InputError("engine", f"{self.engine!r} is not known", f"Choose from {known}")
        if not self.learners or not all(isinstance(one, LearnerSpec) for one in self.learners):
            raise InputError(
                "learners",
                "is empty or holds something else",
                'Give at least one, in TOML a line [[learners]] and below it learner = "aogd"',
            )
        names = [slug(curve.name) for curve in self.curves]
        for name in names:
            if names.count(name) > 1 or not name or name in RESERVED:
                what = f"two curves would be called {name!r}" if names.count(name) > 1 else f"{name!r} cannot be used"
                remedy = "Give every learner a name of its own; values of a grid have to differ in four digits"
                raise InputError("learners.name", what, remedy)
            if len(name.encode()) > LONGEST_NAME:
                what = f"{name!r} is too long for a file"
                raise InputError("learners.name", what, f"Give a name of at most {LONGEST_NAME} letters")

    @property
    def curves(self) -> tuple[LearnerSpec, ...]:
        """The learners with grids spread out: one curve each."""
        return tuple(curve for learner in self.learners for curve in learner.curves)


RESERVED = ("problem", "bounds", "comparator")
"""File names that are not curves'."""
LONGEST_NAME = 200
"""Bytes of a curve's name in a file name; with the seed and the ending, systems take 255."""


def slug(name: str) -> str:
    """A name as a part of a file name.

    Examples
    --------
    >>> from longterm.experiments.spec import slug
    >>> slug("Convex OGD, a multiplier each")
    'convex-ogd-a-multiplier-each'
    >>> slug("w = -1"), slug("w = 1e+05"), slug("Été")
    ('w-minus1', 'w-1e05', 'été')
    """
    plain = unicodedata.normalize("NFC", name.lower())
    plain = plain.replace("β", "beta").replace("ρ", "rho").replace("θ", "theta")
    plain = re.sub(r"(?<![\w.])-(?=[\d.])", "minus", plain).replace("e+", "e")  # two values, two names
    return re.sub(r"[^\w.]+|_+", "-", plain).strip("-.")


def kept_rounds(rounds: int, record: int) -> NDArray[np.int64]:
    """The rounds that are kept: 1 and T, half of the others evenly spaced, half evenly on a logarithmic scale.

    Examples
    --------
    >>> from longterm.experiments.spec import kept_rounds
    >>> kept_rounds(1000, 8)
    array([   1,   10,  100,  250,  500,  750, 1000])
    """
    half = max(record // 2, 1)
    wanted = np.concatenate([np.geomspace(1, rounds, half), np.linspace(0, rounds, half + 1)[1:]])
    return np.unique(np.maximum(np.rint(wanted), 1).astype(np.int64))


def logged_rounds(rounds: int) -> NDArray[np.int64]:
    """The rounds at which the paper logged g, and over which alone its Figure 4 sums it: 8, 16, 32, …, and T.

    Examples
    --------
    >>> from longterm.experiments.spec import logged_rounds
    >>> logged_rounds(100)
    array([  8,  16,  32,  64, 100])
    """
    powers = 2 ** np.arange(3, max(int(rounds).bit_length(), 3), dtype=np.int64)
    return np.unique(np.append(powers[powers < rounds], rounds))


def entry_title(learner: str) -> str:
    """How figures call a learner of the catalogue."""
    entry = find_learner(learner, "learners.learner")
    return entry.title or entry.name


def as_json(content: Any) -> str:
    """Plain tables in one line, keys in order, no NaN: the same content, the same text."""
    return json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def at_most(argument: str, count: int, most: int, what: str) -> int:
    """The count; an InputError where it is absurd."""
    if count > most:
        words = str(count) if count < 10**20 else "more than 1e20"
        raise InputError(argument, f"{words} {what} were asked for", f"Ask for at most {most}")
    return count


def _require(spec: Any) -> None:
    """Every field that is a plain word or number is one."""
    plain: dict[str, Any] = {
        "name": str,
        "title": str,
        "command": str,
        "learner": str,
        "rounds": int | None,
        "record": int,
        "logged": bool,
    }
    plain |= {"parameters": Mapping, "read_off": Mapping, "problem": ProblemSpec}
    for one in fields(spec):
        value, kind = getattr(spec, one.name), plain.get(one.name)
        if kind is not None and not fits(value, kind):
            raise InputError(one.name, f"{value!r} is not {in_words(kind)}", "Correct it, or leave it out")


def _require_plain(parameters: Mapping[str, Any], where: str) -> None:
    """Every value can be written into a manifest."""
    for key, value in parameters.items():
        try:
            as_json(value)
        except (TypeError, ValueError) as error:
            what = f"{value!r} is neither a word nor a finite number"
            raise InputError(f"{where}.{key}", what, "Correct it, or leave it out") from error


def _no_list(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        if not value or any(isinstance(one, (list, tuple, dict)) for one in value):
            raise InputError(
                "learners", f"{value!r} is no list of values", "Give one value, or several: beta = [0.5, 0.75]"
            )
        return tuple(value)
    return value


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
