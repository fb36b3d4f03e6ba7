"""The catalogue: learners and problems by name.

A name belongs to this package, to another package (entry points of the groups ``longterm.learners`` and
``longterm.problems``, which name an entry or a builder), or it is ``module:function``. The last form imports code.
Within `names_only` no module is imported, so that reading the results of a stranger runs no code.
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

from longterm._base.messages import did_you_mean
from longterm.catalogue.entries import Entry, LearnerEntry, ProblemEntry
from longterm.catalogue.package_problems import PROBLEMS
from longterm.errors import InputError
from longterm.learners import every_learner

E = TypeVar("E", bound=Entry)
_NAMES_ONLY: ContextVar[bool] = ContextVar("names_only", default=False)


@contextmanager
def names_only() -> Iterator[None]:
    """Import no module for a name with a colon: such a name accepts any parameters and builds nothing."""
    before = _NAMES_ONLY.set(True)
    try:
        yield
    finally:
        _NAMES_ONLY.reset(before)


@cache
def learners() -> Mapping[str, LearnerEntry]:
    """Return every learner of the catalogue, by name."""
    classes = every_learner()
    presets = (preset for one in classes for preset in LearnerEntry.of_presets(one))
    return _collect((*map(LearnerEntry.of_class, classes), *presets), LearnerEntry, "longterm.learners")


@cache
def problems() -> Mapping[str, ProblemEntry]:
    """Return every problem of the catalogue, by name."""
    return _collect(PROBLEMS, ProblemEntry, "longterm.problems")


def find_learner(name: str, where: str = "learner") -> LearnerEntry:
    """Return the learner of this name; `where` is the argument that an error names.

    Examples
    --------
    >>> from longterm.catalogue.lookup import find_learner
    >>> from longterm.problems import two_dimensional
    >>> find_learner("aogd").learner(two_dimensional(), 100, {"beta": 0.5}).schedule.beta
    0.5
    """
    return _find(name, learners, LearnerEntry, where)


def find_problem(name: str, where: str = "problem") -> ProblemEntry:
    """Return the problem of this name; `where` is the argument that an error names.

    Examples
    --------
    >>> from longterm.catalogue.lookup import find_problem
    >>> scenario = find_problem("doubly_stochastic").build(size=3)
    >>> scenario.problem.dimension, scenario.stream
    (9, RandomPermutations(size=3))
    """
    return _find(name, problems, ProblemEntry, where)


def _collect(own: tuple[E, ...], kind: type[E], group: str) -> Mapping[str, E]:
    """Return the entries of other packages and of this one, which takes precedence."""
    others: dict[str, E] = {}
    for point in entry_points(group=group):
        try:
            others[point.name] = _as_entry(point.name, point.load(), kind)
        except Exception as error:  # a broken package must not disable the catalogue
            warnings.warn(f"{group}: {point.value} cannot be loaded: {error!r}", stacklevel=2)
    return others | {entry.name: entry for entry in own}


def _find(name: str, known: Callable[[], Mapping[str, E]], kind: type[E], where: str) -> E:
    if ":" in name and _NAMES_ONLY.get():
        return kind(name, _not_imported)
    if ":" in name:
        return _as_entry(name, _import_function(name, where), kind)
    if name not in known():
        what = f"{name!r} is not known{did_you_mean(name, known())}"
        raise InputError(where, what, f"Choose from {sorted(known())}, or name a function: module:function")
    return known()[name]


def _not_imported(problem: Any = None, rounds: Any = None, /, **parameters: Any) -> Any:
    """Raise InputError in the place of a builder that is not imported."""
    raise InputError(
        "name",
        "names a function of a module, which this program does not import",
        "Write a specification of your own and run it",
    )


def _import_function(name: str, where: str) -> Any:
    module, _, attribute = name.partition(":")
    known: list[str] = []
    try:
        known = [path.stem for path in Path.cwd().glob("*.py")]
        found = import_module(module)
        known, module = [key for key, value in vars(found).items() if callable(value)], attribute
        return getattr(found, attribute)
    except (ImportError, AttributeError, ValueError) as error:  # ValueError: an empty module name
        remedy = "Give module:function, of a module in this folder or one that is installed"
        hint = did_you_mean(module, known)
        raise InputError(where, f"{name!r} cannot be imported ({error}){hint}", remedy) from error


def _as_entry(name: str, found: Any, kind: type[E]) -> E:
    if isinstance(found, kind):
        return found
    if not callable(found):
        raise InputError(
            name,
            f"is a {type(found).__name__}",
            f"Name a function that builds a learner or a problem, or a {kind.__name__}",
        )
    return kind(name, found)
