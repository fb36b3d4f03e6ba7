"""Names for learners and problems: what a specification, a command line or an arena can ask for.

A name is ours, another package's, or a function named by where it is. Another package adds to the catalogue by entry
points of the groups ``longterm.learners`` and ``longterm.problems``; what they name is an entry, or just a builder. A
name with a colon, ``my_module:my_builder``, is imported: code. Where results are only read, names are only names
(`names_only`): a folder of results from a stranger runs nothing.

An entry knows what its parameters may be, and a specification's are held against it.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from longterm.data.encoder import Missing
from longterm.errors import InputError, LongtermError, did_you_mean
from longterm.hindsight import choose_budget, least_log_loss
from longterm.learners import Learner, every_learner
from longterm.problems import Problem, scenarios
from longterm.problems.scenarios import Scenario, labelled_rows


@dataclass(frozen=True, eq=False)
class Prepared:
    """What had to be found out before the game could be built."""

    parameters: Mapping[str, Any]
    """These go over the user's."""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Entry:
    """A name, and a function that builds what it stands for. Its keyword parameters are the user's."""

    name: str
    build: Callable[..., Any]

    own: ClassVar[int] = 0
    """How many leading arguments of `build` are not the user's."""

    @property
    def about(self) -> str:
        """The first line of the builder's docstring."""
        line = (inspect.getdoc(self.build) or "").partition("\n")[0].removeprefix("Return ")
        return line[:1].upper() + line[1:]

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """What the user can set."""
        try:
            every = list(inspect.signature(self.build).parameters.items())
        except ValueError as error:
            what = f"{self.name!r} is no function with parameters"
            raise InputError(self.name, what, "Name a function that builds") from error
        if len(every) < self.own and not any(p.kind is p.VAR_POSITIONAL for _, p in every):
            what = f"{self.name!r} does not take a problem and the rounds"
            raise InputError(self.name, what, "Give build(problem, rounds, **parameters)")
        return dict(every[self.own :])

    def check(self, given: Mapping[str, Any], where: str) -> None:
        """Raise for a parameter that is unknown, missing or of the wrong type; `where` names the table it is in."""
        known, hints = self.parameters, get_type_hints(self.build)
        anything = any(p.kind is p.VAR_KEYWORD for p in known.values())
        for key, value in given.items():
            if key not in known and not anything:
                what = f"is not a parameter of {self.name!r}{did_you_mean(key, known)}"
                raise InputError(f"{where}.{key}", what, f"Choose from {sorted(known)}")
            if key in hints and not fits(value, hints[key]):
                what = f"{value!r} is not {in_words(hints[key])}"
                raise InputError(f"{where}.{key}", what, f"Correct it, or leave it out: {defaults(self)}")
        for key, parameter in known.items():
            named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            if named and parameter.default is parameter.empty and key not in given:
                raise InputError(f"{where}.{key}", "is missing", f"{self.name!r} needs it: {defaults(self)}")


@dataclass(frozen=True, eq=False)
class LearnerEntry(Entry):
    """``build(problem, rounds, **parameters)`` makes a learner. Of a class, `for_problem` says all of it."""

    title: str = ""
    """As figures call it; left out, the name."""
    variants: tuple[Mapping[str, Any], ...] = ({},)
    """The settings of its parameters that take part in an arena where the user names none."""
    drifting: tuple[Mapping[str, Any], ...] = ()
    """Those that take part in the league of problems that drift."""
    own: ClassVar[int] = 2

    @classmethod
    def of_class(cls, learner: type[Learner[Any]]) -> LearnerEntry:
        """The entry of a class: its name, title and variants, and the parameters of its `for_problem`."""
        return _ClassEntry(learner.name, learner.for_problem, learner.title, learner.variants, learner.drifting)

    def learner(self, problem: Problem, rounds: int, parameters: Mapping[str, Any]) -> Learner[Any]:
        """Build it."""
        made = self._build(problem, rounds, parameters)
        if not isinstance(made, Learner):
            what = f"{self.name!r} built a {type(made).__name__}"
            raise InputError("learner", what, "Its builder must return a longterm.Learner")
        return made

    def _build(self, problem: Problem, rounds: int, parameters: Mapping[str, Any]) -> Any:
        return self.build(problem, rounds, **parameters)


@dataclass(frozen=True, eq=False)
class _ClassEntry(LearnerEntry):
    """``build(problem, horizon=…, **parameters)``, the horizon where there is one."""

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        hints = get_type_hints(self.build)
        every = inspect.signature(self.build).parameters
        return {k: p for k, p in every.items() if k not in ("problem", "horizon") and is_plain(hints.get(k, Any))}

    def _build(self, problem: Problem, rounds: int, parameters: Mapping[str, Any]) -> Any:
        horizon = {"horizon": rounds} if "horizon" in inspect.signature(self.build).parameters else {}
        return self.build(problem, **horizon, **parameters)


@dataclass(frozen=True, eq=False)
class ProblemEntry(Entry):
    """``build(**parameters)`` makes a `Scenario`; `prepare(**parameters)` finds out what has to be known before."""

    prepare: Callable[..., Prepared] | None = None
    data: str | None = None
    """The data set that it reads by default, where that does not come with the package."""
    arena: Mapping[str, Any] = field(default_factory=dict)
    """What is set in an arena where the user sets nothing."""
    drifts: bool = False
    """Whether its best decision moves: such problems have a league of their own."""
    vary: Callable[[np.random.Generator], Mapping[str, Any]] | None = None
    """Draws other parameters: a variant for the held-out half of an arena. None: the sequences alone are new."""
    length: Callable[..., int] | None = None
    """From the parameters to the number of rounds, where `build` is dear without what `prepare` finds."""

    def rounds(self, parameters: Mapping[str, Any]) -> int | None:
        """How many rounds it has of its own, where that can be known cheaply."""
        try:
            if self.length is not None:
                return self.length(**parameters)
            length: int | None = self.build(**parameters).length
        except (LongtermError, TypeError, ValueError):  # whatever is wrong is said when it is built
            return None
        return length


def is_plain(hint: Any) -> bool:
    """Whether a specification can say it: a number, a word, true or false, one of several, or nothing but that."""
    if get_origin(hint) in (Union, UnionType):
        return any(is_plain(one) for one in get_args(hint) if one is not NoneType)
    return get_origin(hint) is Literal or hint in (float, int, str, bool, Any)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value from a specification is of the type that a builder asks for."""
    if get_origin(hint) in (Union, UnionType):
        plain = [one for one in get_args(hint) if one is NoneType or is_plain(one)]
        return any(fits(value, one) for one in (plain if is_plain(hint) else get_args(hint)))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint in (None, NoneType):
        return value is None
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint) if isinstance(hint, type) else True


def in_words(hint: Any) -> str:
    """A type, as an error message names it."""
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(in_words(one) for one in get_args(hint) if is_plain(one))
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(json.dumps(one) for one in get_args(hint))
    words: dict[Any, str] = {
        float: "a number",
        int: "a whole number",
        str: "a word",
        bool: "true or false",
        Mapping: "a table",
    }
    return words.get(hint, str(hint))


def defaults(entry: Entry) -> str:
    """The parameters with their defaults as TOML has them, which is how the command line reads them, too."""
    needed = inspect.Parameter.empty
    parts = [
        name if p.default is needed or p.default is None else f"{name} = {json.dumps(p.default, ensure_ascii=False)}"
        for name, p in entry.parameters.items()
    ]
    return f"by default {', '.join(parts)}"


def signature(entry: Entry) -> str:
    """The parameters with their defaults, in a line."""
    needed = inspect.Parameter.empty
    parts = [name if p.default is needed else f"{name}={p.default!r}" for name, p in entry.parameters.items()]
    return f"{entry.name}({', '.join(parts)})"


__all__ = [
    "Entry",
    "LearnerEntry",
    "Prepared",
    "ProblemEntry",
    "Scenario",
    "find_learner",
    "find_problem",
    "learners",
    "names_only",
    "problems",
]

DATA = {"power_allocation": "elec2", "fair_logistic": "a9a"}
"""What games read that does not come with the package."""
SHARE = 0.3
"""Of the offline solution's coordinates, those that the paper wants not to be zero."""
E = TypeVar("E", bound=Entry)
_NAMES_ONLY: ContextVar[bool] = ContextVar("names_only", default=False)


@contextmanager
def names_only() -> Iterator[None]:
    """Within it no name is imported: what one with a colon stands for has no parameters to check, and builds nothing.

    For all that reads results and plays no round.
    """
    before = _NAMES_ONLY.set(True)
    try:
        yield
    finally:
        _NAMES_ONLY.reset(before)


@cache
def learners() -> Mapping[str, LearnerEntry]:
    """Every learner that can be named, by name."""
    return _all(tuple(map(LearnerEntry.of_class, every_learner())), LearnerEntry, "longterm.learners")


@cache
def problems() -> Mapping[str, ProblemEntry]:
    """Every problem that can be named, by name."""
    return _all(PROBLEMS, ProblemEntry, "longterm.problems")


def find_learner(name: str, where: str = "learner") -> LearnerEntry:
    """The learner of this name.

    Examples
    --------
    >>> from longterm.experiments.catalogue import find_learner
    >>> from longterm.problems import two_dimensional
    >>> find_learner("aogd").learner(two_dimensional(), 100, {"beta": 0.5}).schedule.beta
    0.5
    """
    return _find(name, learners, LearnerEntry, where)


def find_problem(name: str, where: str = "problem") -> ProblemEntry:
    """The problem of this name.

    Examples
    --------
    >>> from longterm.experiments.catalogue import find_problem
    >>> game = find_problem("doubly_stochastic").build(size=3)
    >>> game.problem.dimension, game.stream
    (9, RandomPermutations(size=3))
    """
    return _find(name, problems, ProblemEntry, where)


def _all(ours: tuple[E, ...], kind: type[E], group: str) -> Mapping[str, E]:
    """Ours first: another package cannot change what they mean."""
    theirs: dict[str, E] = {}
    for point in entry_points(group=group):
        try:
            theirs[point.name] = _as_entry(point.name, point.load(), kind)
        except Exception as error:  # theirs, whatever it is, must not keep ours from being used
            warnings.warn(f"{group}: {point.value} cannot be loaded: {error!r}", stacklevel=2)
    return theirs | {entry.name: entry for entry in ours}


def _find(name: str, known: Callable[[], Mapping[str, E]], kind: type[E], where: str) -> E:
    if ":" in name and _NAMES_ONLY.get():
        return kind(name, _of_another)
    if ":" in name:
        return _as_entry(name, _imported(name, where), kind)
    if name not in known():
        what = f"{name!r} is not known{did_you_mean(name, known())}"
        raise InputError(where, what, f"Choose from {sorted(known())}, or name a function: module:function")
    return known()[name]


def _of_another(problem: Any = None, rounds: Any = None, /, **parameters: Any) -> Any:
    """Stands for a builder that must not be imported: it takes any parameters."""
    raise InputError("name", "is only a name here", "Play with a specification of your own")


def _imported(name: str, where: str) -> Any:
    module, _, attribute = name.partition(":")
    known: list[str] = []
    try:
        known = [path.stem for path in Path.cwd().glob("*.py")]
        found = import_module(module)
        known, module = [one for one, what in vars(found).items() if callable(what)], attribute
        return getattr(found, attribute)
    except (ImportError, AttributeError, ValueError) as error:  # a ValueError: no module named
        remedy = "Give module:function, of a module in this folder or one that is installed"
        meant = did_you_mean(module, known)
        raise InputError(where, f"{name!r} cannot be imported ({error}){meant}", remedy) from error


def _as_entry(name: str, found: Any, kind: type[E]) -> E:
    if isinstance(found, kind):
        return found
    if not callable(found):
        raise InputError(name, f"is a {type(found).__name__}", f"Name a function that builds, or a {kind.__name__}")
    return kind(name, found)


def budgeted_logistic(
    data: str = "sample",
    budget: float | None = None,
    share: float = SHARE,
    l1: float = 1.0,
    l2: float = 1.0,
    label: str = "",
    drop: str = "",
    scale: bool = True,
    missing: Missing = "refuse",
) -> Scenario:
    """Logistic regression with l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ budget on rows drawn with replacement: Figures 3 and 4.

    Left out, the budget is chosen so that `share` of the offline solution's coordinates are not zero. Of a table of
    your own `label` names the column of the labels, `drop` those to leave out, with commas between them; with `scale`
    its columns are divided by their largest sizes; `missing` says what to do about empty cells.
    """
    if budget is None:
        rows = labelled_rows(data, label, drop, scale, missing)
        budget = choose_budget(rows.features, rows.labels, share, l1=l1, l2=l2, progress=None).budget
    return scenarios.budgeted_logistic(data, budget, l1, l2, label, drop, scale, missing)


def prepare_budgeted_logistic(
    data: str = "sample",
    budget: float | None = None,
    share: float = SHARE,
    l1: float = 1.0,
    l2: float = 1.0,
    **reading: Any,
) -> Prepared:
    """Choose the budget, where none is given, and solve offline."""
    rows = labelled_rows(data, **reading)
    table, weights = (rows.features, rows.labels), {"l1": l1, "l2": l2}
    offline = (
        choose_budget(*table, share, **weights, progress=None)
        if budget is None
        else least_log_loss(*table, budget, **weights)
    )
    facts = {
        "budget_chosen": budget is None,
        "offline_loss": offline.loss,
        "offline_gap": offline.gap,
        "offline_nonzeros": offline.count,
        "offline_unused_budget": offline.slack,
    }
    return Prepared({"budget": offline.budget}, facts)


def rows_of_data(data: str = "sample", **given: Any) -> int:
    """How many rows there are."""
    reading = {name: given[name] for name in ("label", "drop", "scale", "missing") if name in given}
    return len(labelled_rows(data, **reading).labels)


def _number(low: float, high: float) -> Callable[[np.random.Generator], float]:
    return lambda rng: round(float(rng.uniform(low, high)), 3)


def _whole(low: int, high: int) -> Callable[[np.random.Generator], int]:
    return lambda rng: int(rng.integers(low, high + 1))


VARY: Mapping[str, Mapping[str, Callable[[np.random.Generator], float]]] = {
    "doubly_stochastic": {"size": _whole(4, 10)},
    "budgeted_logistic": {"budget": _number(0.1, 1.5)},
    "covariance": {"size": _whole(4, 9), "floor": _number(0.05, 0.3)},
    "consensus": {"agents": _whole(3, 7), "spread": _number(0.1, 0.4)},
    "expert_advice": {"experts": _whole(5, 14), "cap": _number(0.2, 0.6)},
    "noisy_doubly_stochastic": {"size": _whole(4, 9), "noise": _number(0.2, 0.8)},
    "online_linear_program": {"instance": _whole(1, 10**6), "dimension": _whole(2, 5)},
    "power_allocation": {"devices": _whole(3, 8)},
    "fair_logistic": {"budget": _number(4.0, 20.0)},
    "switching_constraints": {"instance": _whole(1, 10**6), "dimension": _whole(2, 5)},
    "job_scheduling": {"servers": _whole(6, 17)},
    "turning_half_plane": {"turns": _number(0.5, 6.0)},
    "drifting_targets": {"dimension": _whole(2, 8), "turns": _number(1.0, 6.0)},
}
"""What differs in a variant of each, for the held-out half of an arena, and how it is drawn."""
DRIFTING = ("turning_half_plane", "drifting_targets")
"""Those whose best decision moves."""


def _entry(name: str, build: Callable[..., Scenario]) -> ProblemEntry:
    drawn = VARY.get(name, {})

    def vary(rng: np.random.Generator) -> Mapping[str, Any]:
        return {parameter: draw(rng) for parameter, draw in drawn.items()}

    if name == "budgeted_logistic":
        return ProblemEntry(
            name, budgeted_logistic, prepare_budgeted_logistic, arena={"budget": 0.3}, vary=vary, length=rows_of_data
        )
    return ProblemEntry(name, build, data=DATA.get(name), drifts=name in DRIFTING, vary=vary)


PROBLEMS = tuple(_entry(name, build) for name, build in scenarios.SCENARIOS.items())
"""Those of the package."""
