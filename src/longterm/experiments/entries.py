"""What an entry of the catalogue is, and how a specification's parameters are held against it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from longterm.errors import InputError, LongtermError, did_you_mean
from longterm.learners import Learner
from longterm.problems import Problem


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
        return (inspect.getdoc(self.build) or "").partition("\n")[0]

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
    """``build(**parameters)`` makes a `Game`; `prepare(**parameters)` finds out what has to be known before."""

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
