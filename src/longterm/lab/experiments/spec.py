"""Specifications of experiments: the same frozen dataclasses from Python, from a TOML file and the command line."""

from __future__ import annotations

import itertools
import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from longterm._base import validate
from longterm.catalogue.lookup import find_learner, find_problem
from longterm.catalogue.parameter_types import describe_type, fits
from longterm.errors import InputError
from longterm.lab.experiments.result import LOGGED, MEASURES, Role
from longterm.play.engines.selection import EngineChoice
from longterm.problems.streams.base import validate_seeds

MIN_RECORDED = 2
MAX_SEEDS = MAX_RECORDED = 1_000_000
MAX_CURVES = 10_000
"""Limits that keep a small file from asking for more memory than a machine has."""
MAX_ROUNDS = 2**53
DEFAULT_NAME = "experiment"


@dataclass(frozen=True)
class ProblemSpec:
    """A problem of the catalogue and its parameters.

    Parameters
    ----------
    name : str
        Its name in the catalogue.
    parameters : mapping
        The arguments of its builder.

    Examples
    --------
    >>> from longterm.lab.experiments.spec import ProblemSpec
    >>> ProblemSpec("budgeted_logistic", {"data": "sample", "budget": 3.0}).parameters["budget"]
    3.0
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_types(self, "problem.")
        _require_json(self.parameters, "problem")
        find_problem(self.name, "problem.name").check(self.parameters, "problem")

    @property
    def title(self) -> str:
        """The name and the parameters, for figures and tables."""
        given = ", ".join(f"{key} = {value}" for key, value in sorted(self.parameters.items()))
        return self.name.replace("_", " ") + (f", {given}" if given else "")


@dataclass(frozen=True)
class LearnerSpec:
    """A learner of the catalogue and its parameters.

    Parameters
    ----------
    learner : str
        Its name in the catalogue.
    parameters : mapping
        The arguments of its `for_problem`; a list of values becomes a grid.
    name : str
        The name in figures; left out, the learner's title and the given parameters.
    role : {"paper", "fair", "own"}
        As in `Curve`.
    read_off : mapping of str to float
        Values of another source at the last round, by measure, shown with the measured ones.
    """

    learner: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    role: Role = "own"
    read_off: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_types(self, "learners.")
        # Sorted, so that a grid has the same names when it is read from a manifest.
        validate.set_frozen(self, parameters={str(k): _grid_values(v) for k, v in sorted(self.parameters.items())})
        _require_json(self.parameters, f"learners.{self.learner}")
        for measure, value in self.read_off.items():
            if measure not in (known := [*MEASURES, LOGGED]):
                raise InputError("learners.read_off", f"{measure!r} is not a measure", f"Choose from {known}")
            validate.scalar(f"learners.read_off.{measure}", validate.number(f"learners.read_off.{measure}", value))
        entry = find_learner(self.learner, "learners.learner")
        if not self.name:
            fixed = {key: value for key, value in self.parameters.items() if not isinstance(value, tuple)}
            validate.set_frozen(self, name=_with_settings(entry.title, fixed))
        for curve in self.curves:
            entry.check(curve.parameters, f"learners.{self.learner}")

    @property
    def curves(self) -> tuple[LearnerSpec, ...]:
        """The specification of each point of the grid."""
        varied = {key: value for key, value in self.parameters.items() if isinstance(value, tuple)}
        if not varied:
            return (self,)
        require_at_most("learners", math.prod(map(len, varied.values())), MAX_CURVES, "curves")
        points = []
        for values in itertools.product(*varied.values()):
            point = dict(zip(varied, values, strict=True))
            name = _with_settings(self.name, point)
            points.append(LearnerSpec(self.learner, {**self.parameters, **point}, name, self.role, self.read_off))
        return tuple(points)


@dataclass(frozen=True)
class ExperimentSpec:
    """A comparison: one problem, several learners, the same sequences.

    Parameters
    ----------
    problem : ProblemSpec
        The problem.
    learners : tuple of LearnerSpec
        The learners to compare.
    rounds : int, optional
        T. None: the number of rows of the data set.
    seeds : tuple of int
        One seed for each sequence; every learner sees the same sequences.
    record : int
        About how many rounds are recorded, half of them evenly spaced and half evenly on a logarithmic scale.
    logged : bool
        Whether g is also summed over the rounds 8, 16, 32, …, T only, as in the paper's Figure 4.
    engine : {"auto", "numpy", "jax"}
        auto: the faster one, by the rule of `longterm.run`.
    name, title : str
        The name of the folder, and the title of pages and figures; left out, the title is the name or the problem.
    command : str
        The command that runs it again, where that is shorter than the manifest.

    Examples
    --------
    >>> from longterm.lab.experiments.spec import ExperimentSpec, LearnerSpec, ProblemSpec
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
    name: str = DEFAULT_NAME
    title: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        given: Any = self.seeds
        seeds: Any = range(validate_sequences(given, "seeds")) if isinstance(given, int) else validate_seeds(given)
        learners = tuple(self.learners) if isinstance(self.learners, Sequence) else ()
        validate.set_frozen(self, seeds=tuple(seeds), learners=learners)
        _require_types(self)
        title = self.title or (self.name if self.name != DEFAULT_NAME else self.problem.title)
        validate.set_frozen(self, title=title)
        if len(set(self.seeds)) < len(self.seeds):
            raise InputError("seeds", f"{given!r} has a seed twice", "Give each seed once")
        if self.rounds is not None:
            require_at_most("rounds", validate.count("rounds", self.rounds), MAX_ROUNDS, "rounds")
        if validate.count("record", self.record) < MIN_RECORDED:
            raise InputError("record", f"{self.record} is too few", f"Record at least {MIN_RECORDED} rounds")
        require_at_most("record", self.record, MAX_RECORDED, "recorded rounds")
        if not self.learners or not all(isinstance(one, LearnerSpec) for one in self.learners):
            raise InputError(
                "learners",
                "is empty or contains something that is not a learner",
                'Give at least one, in TOML a line [[learners]] and below it learner = "aogd"',
            )
        require_file_names("learners.name", "curves", [curve.name for curve in self.curves])

    @property
    def curves(self) -> tuple[LearnerSpec, ...]:
        """All curves: one for each learner and each point of its grid."""
        return tuple(curve for learner in self.learners for curve in learner.curves)


RESERVED = ("problem", "comparator")
"""File names that no curve may have."""
MAX_NAME_BYTES = 200
"""With the seed and the suffix, file systems allow 255 bytes."""


def require_file_names(argument: str, what: str, names: Sequence[str]) -> None:
    """Raise unless each name can be the name of a file of its own."""
    slugs = [slug(name) for name in names]
    for name in slugs:
        if slugs.count(name) > 1:
            remedy = "Give each a name of its own; values of a grid have to differ in four digits"
            raise InputError(argument, f"two {what} would be called {name!r}", remedy)
        if not name or name in RESERVED:
            raise InputError(argument, f"{name!r} cannot be used", "Give another name")
        if len(name.encode()) > MAX_NAME_BYTES:
            remedy = f"Give a name of at most {MAX_NAME_BYTES} letters"
            raise InputError(argument, f"{name!r} is too long for a file", remedy)


def slug(name: str) -> str:
    """Return a name as a part of a file name.

    Examples
    --------
    >>> from longterm.lab.experiments.spec import slug
    >>> slug("OGD (Mahdavi et al. 2012), a multiplier each")
    'ogd-mahdavi-et-al-2012-a-multiplier-each'
    >>> slug("w = -1"), slug("w = 1e+05"), slug("Été")
    ('w-minus1', 'w-1e05', 'été')
    """
    plain = unicodedata.normalize("NFC", name.lower())
    plain = plain.replace("β", "beta").replace("ρ", "rho").replace("θ", "theta")
    plain = re.sub(r"(?<![\w.])-(?=[\d.])", "minus", plain).replace("e+", "e")  # different values keep different names
    return re.sub(r"(?:[^\w.]|_|\.(?!\d))+", "-", plain).strip("-.")


def validate_sequences(count: Any, argument: str = "sequences") -> int:
    """Return the number of sequences; raise if it is not a positive whole number, or too large."""
    return require_at_most(argument, validate.count(argument, count), MAX_SEEDS, "sequences")


def as_json(content: Any) -> str:
    """Return plain tables as one line of JSON with sorted keys; raise for NaN."""
    return json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def require_at_most(argument: str, count: int, maximum: int, what: str) -> int:
    """Return the count; raise if it is above the maximum."""
    if count > maximum:
        shown = str(count) if count < 10**20 else "more than 1e20"
        raise InputError(argument, f"{shown} {what} were requested", f"Ask for at most {maximum}")
    return count


def _require_types(spec: Any, prefix: str = "") -> None:
    """Raise if a field has the wrong type; `prefix` is that of its key."""
    for name, hint in get_type_hints(type(spec)).items():
        value = getattr(spec, name)
        if not fits(value, hint):
            raise InputError(
                f"{prefix}{name}", f"{value!r} is not {describe_type(hint)}", "Correct it, or leave it out"
            )


def _require_json(parameters: Mapping[str, Any], where: str) -> None:
    """Raise if a value cannot be written into a manifest."""
    for key, value in parameters.items():
        try:
            as_json(value)
        except (TypeError, ValueError) as error:
            what = f"{value!r} is neither text nor a finite number"
            raise InputError(f"{where}.{key}", what, "Correct it, or leave it out") from error


def _grid_values(value: Any) -> Any:
    """Return a list of values as a tuple, and a single value as it is."""
    if isinstance(value, (list, tuple)):
        if not value or any(isinstance(one, (list, tuple, dict)) for one in value):
            what = f"{value!r} is not a list of values"
            raise InputError("learners", what, "Give one value, or several: beta = [0.5, 0.75]")
        return tuple(value)
    return value


def _with_settings(name: str, settings: Mapping[str, Any]) -> str:
    words = (
        f"{key} = {value:.4g}" if isinstance(value, float) else f"{key} = {value}" for key, value in settings.items()
    )
    return ", ".join([name, *words])
