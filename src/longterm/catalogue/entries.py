"""Entries of the catalogue: a name, a builder, and the parameters that a specification may set."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, get_type_hints

import numpy as np

from longterm._base import validate
from longterm._base.messages import did_you_mean
from longterm.catalogue.parameter_types import describe_type, fits, is_plain
from longterm.errors import InputError, LongtermError
from longterm.learners import Learner
from longterm.problems import Problem


class Prepared(NamedTuple):
    """The result of a problem's preparation."""

    parameters: Mapping[str, Any]
    """They replace those of the user."""
    facts: Mapping[str, Any] = {}


@dataclass(frozen=True, eq=False)
class Entry:
    """A name and a function that builds the named object. The user sets the function's keyword parameters."""

    name: str
    build: Callable[..., Any]

    reserved_args: ClassVar[int] = 0
    """The number of leading arguments of `build` that the user does not set."""

    @property
    def about(self) -> str:
        """The first line of the builder's docstring."""
        line = (inspect.getdoc(self.build) or "").partition("\n")[0].removeprefix("Return ")
        return line[:1].upper() + line[1:]

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters that the user may set."""
        try:
            every = list(inspect.signature(self.build).parameters.items())
        except ValueError as error:
            what = f"{self.name!r} is not a function with parameters"
            raise InputError(self.name, what, "Name a function that builds a learner or a problem") from error
        if len(every) < self.reserved_args and not any(p.kind is p.VAR_POSITIONAL for _, p in every):
            what = f"{self.name!r} does not take a problem and the rounds"
            raise InputError(self.name, what, "Give build(problem, rounds, **parameters)")
        return dict(every[self.reserved_args :])

    def check(self, given: Mapping[str, Any], where: str) -> None:
        """Raise if a parameter is unknown, missing or of the wrong type; `where` names its table."""
        known, hints = self.parameters, get_type_hints(self.build)
        accepts_any = any(p.kind is p.VAR_KEYWORD for p in known.values())
        for key, value in given.items():
            if key not in known and not accepts_any:
                what = f"is not a parameter of {self.name!r}{did_you_mean(key, known)}"
                raise InputError(f"{where}.{key}", what, f"Choose from {sorted(known)}")
            if key in hints and not fits(value, hints[key]):
                what = f"{value!r} is not {describe_type(hints[key])}"
                needed = key in known and known[key].default is inspect.Parameter.empty
                remedy = "Correct it" if needed else "Correct it, or leave it out"
                raise InputError(f"{where}.{key}", what, f"{remedy}: {self.signature()}")
        for key, parameter in known.items():
            named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            if named and parameter.default is parameter.empty and key not in given:
                raise InputError(f"{where}.{key}", "is missing", f"{self.name!r} needs it: {self.signature()}")

    def signature(self) -> str:
        """Return the name and the parameters with their defaults."""
        parts = [name if p.default is p.empty else f"{name}={p.default!r}" for name, p in self.parameters.items()]
        return f"{self.name}({', '.join(parts)})"


@dataclass(frozen=True, eq=False)
class LearnerEntry(Entry):
    """A learner, made by ``build(problem, rounds, **parameters)``."""

    title: str = ""
    """The name in figures; by default the entry's name."""
    variants: tuple[Mapping[str, Any], ...] = ({},)
    """The settings that take part in an arena unless the user names others."""
    drifting: tuple[Mapping[str, Any], ...] = ()
    """The settings that take part in the arena of problems that drift."""
    reserved_args: ClassVar[int] = 2

    def __post_init__(self) -> None:
        validate.set_frozen(self, title=self.title or self.name)

    @classmethod
    def of_class(cls, learner: type[Learner[Any]]) -> LearnerEntry:
        """Return the entry of a learner's class, with the parameters of its `for_problem`."""
        return _ClassEntry(learner.name, learner.for_problem, learner.title, learner.variants, learner.drifting)

    @classmethod
    def of_presets(cls, learner: type[Learner[Any]]) -> tuple[LearnerEntry, ...]:
        """Return the entries of the published presets of a learner's class. No arena ranks them by default."""
        build = learner.for_problem
        return tuple(
            _ClassEntry(title.lower(), build, title, variants=(), fixed=settings)
            for title, settings in learner.presets.items()
        )

    def learner(self, problem: Problem, rounds: int, parameters: Mapping[str, Any]) -> Learner[Any]:
        """Build the learner; raise if the builder returns something else."""
        made = self._build(problem, rounds, parameters)
        if not isinstance(made, Learner):
            what = f"{self.name!r} built a {type(made).__name__}"
            raise InputError("learner", what, "The function must return a longterm.Learner")
        return made

    def _build(self, problem: Problem, rounds: int, parameters: Mapping[str, Any]) -> Any:
        return self.build(problem, rounds, **parameters)


@dataclass(frozen=True, eq=False)
class _ClassEntry(LearnerEntry):
    """A learner's class, whose `for_problem` takes the problem and perhaps the horizon."""

    fixed: Mapping[str, Any] = field(default_factory=dict)
    """The settings of a preset, which the user cannot change."""

    @property
    def about(self) -> str:
        settings = "; ".join(f"{name}={value!r}" for name, value in self.fixed.items())
        return f"{super().about} With {settings}." if settings else super().about

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        hints = get_type_hints(self.build)
        every = inspect.signature(self.build).parameters
        given = {"problem", "horizon", *self.fixed}
        return {k: p for k, p in every.items() if k not in given and is_plain(hints.get(k, Any))}

    def _build(self, problem: Problem, rounds: int, parameters: Mapping[str, Any]) -> Any:
        horizon = {"horizon": rounds} if "horizon" in inspect.signature(self.build).parameters else {}
        return self.build(problem, **horizon, **{**parameters, **self.fixed})


@dataclass(frozen=True, eq=False)
class ProblemEntry(Entry):
    """A problem with its stream, made by ``build(**parameters)``."""

    prepare: Callable[..., Prepared] | None = None
    """``prepare(**parameters)`` computes parameters that are expensive to find, once for all jobs."""
    data: str | None = None
    """The data set that it reads by default, unless that comes with the package."""
    arena: Mapping[str, Any] = field(default_factory=dict)
    """The parameters in an arena where the user sets none."""
    drifts: bool = False
    """True if the best decision moves. Such problems have an arena of their own."""
    vary: Callable[[np.random.Generator], Mapping[str, Any]] | None = None
    """Draws the parameters of a held-out variant. None: only the sequences are new."""

    def rounds(self, parameters: Mapping[str, Any]) -> int | None:
        """Return the problem's own number of rounds, or None where it has none."""
        try:  # with the arena's parameters nothing has to be prepared
            length: int | None = self.build(**{**self.arena, **parameters}).length
        except (LongtermError, TypeError, ValueError):  # reported when the problem is built
            return None
        return length
