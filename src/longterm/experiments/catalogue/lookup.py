"""Finding an entry by its name: ours, another package's, or a function named by where it is.

Another package adds to the catalogue by entry points of the groups ``longterm.learners`` and ``longterm.problems``;
what they name is an entry, or just a builder. A name with a colon, ``my_module:my_builder``, is imported: code.
Where results are only read, names are only names (`names_only`): a folder of results from a stranger runs nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from longterm.errors import InputError, did_you_mean
from longterm.experiments.catalogue.base import Entry, LearnerEntry, ProblemEntry
from longterm.experiments.catalogue.problems import PROBLEMS
from longterm.learners import every_learner

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
