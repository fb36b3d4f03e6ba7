"""Learners with every public parameter drawn from its whole permitted range.

A parameter of `for_problem` with a `Literal` type is drawn from its choices, a number from several orders of magnitude.
Facts about the problem are true: a declared spread is not below the true one. Fields of the made learner are then
changed too. What a constructor refuses is outside of the permitted range.
"""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from longterm import InputError, Problem
from longterm.learners import Learner, every_learner
from longterm.learners.optimistic.hints import Seasonal
from longterm.problems import consensus
from longterm.problems.constraints import Affine, CustomConstraint, ElasticNetBudget, L2Budget, VaryingAffine
from longterm.problems.losses import Absolute, Linear, SquaredDistance
from longterm.problems.sets import Ball, Box, Simplex

Draw = Callable[[np.random.Generator, Problem, int], Any]


def problems() -> dict[str, Problem]:
    """Small problems on which different terms of a bound dominate."""
    interval, disc = Box([-1.0], [1.0]), Ball(2)
    ring, net = consensus(2, [(0, 1)], interval), ElasticNetBudget(2, budget=0.5)
    tent = CustomConstraint(1, lambda x: np.abs(x[..., 0]) - 0.3, lambda x: np.sign(x) + 0.0, 1.0, 0.7)
    rows = Affine([[1.0, 0.0], [0.6, -0.8]], [0.1, 0.2])
    return {
        "interval, tent": Problem(interval, Linear(1), tent),
        "interval, half feasible": Problem(interval, Linear(1), Affine([[1.0]], [0.0])),
        "interval, targets": Problem(interval, SquaredDistance(1), Affine([[0.01]], [0.01])),
        "box, two rows": Problem(Box.cube(2, -1.0, 1.0), Absolute(2, 1.0, 0.5), rows),
        "disc, targets and budget": Problem(disc, SquaredDistance(2), L2Budget(2, budget=0.9)),
        "disc, elastic net": Problem(net.enclosing_ball(), Linear(2), net),
        "simplex": Problem(Simplex(3), Linear(3), Affine([[1.0, 0.0, 0.0]], [0.5])),
        "interval, changing g": Problem(interval, Linear(1), VaryingAffine(1, 1, 1.0, 0.5)),
        "box, changing g": Problem(Box.cube(2, -1.0, 1.0), Linear(2), VaryingAffine(2, 2, 1.0, 0.5)),
        "two agents": Problem(ring.enclosing_set, Linear(2), ring.constraint),
    }


def _size(low: float, high: float) -> Draw:
    return lambda rng, problem, rounds: float(10.0 ** rng.uniform(low, high))


def _among(*values: Any) -> Draw:
    return lambda rng, problem, rounds: values[rng.integers(len(values))]


def _or_none(draw: Draw) -> Draw:
    return lambda rng, problem, rounds: None if rng.random() < 0.3 else draw(rng, problem, rounds)


def _default(rng: np.random.Generator, problem: Problem, rounds: int) -> Any:
    """Leave the parameter out."""
    return inspect.Parameter.empty


PARAMETERS: Mapping[str, Draw] = {
    "horizon": lambda rng, problem, rounds: int(rounds * rng.choice([1, 1, 3, 100])),
    "beta": lambda rng, problem, rounds: float(rng.uniform(0.01, 0.99)),
    "penalty": _size(-1.0, 0.5),
    "theta_0": _or_none(_size(-4.0, 4.0)),
    "w_0": _or_none(_size(-4.0, 4.0)),
    "V": _or_none(_size(-3.0, 3.0)),
    "growth": _or_none(_size(-2.0, 0.7)),
    "scale": _size(-2.0, 2.0),
    "margin": _or_none(_size(-3.0, 0.0)),
    "factor": _size(0.01, 2.0),
    "path": _or_none(_size(-2.0, 1.0)),
    "share": _or_none(_size(-3.0, 0.0)),
    "typical_size": _or_none(_size(-3.0, 1.0)),
    "bank": _among(0.0, 0.3, 1.0, 1.0 + 1e-9, 3.0, 30.0),
    "experts": _among(1, 2, 4, 9),
    "cuts": _among(None, 0, 1, 2, 40),
    "remembered": _among(0, 1, 2, 64),
    "query": _among(True, False),
    "priced": _among(True, False),
    "hard": _among(True, False),
    "hints": _among(None, Seasonal(2)),
    "constraint_hints": _among(None, Seasonal(2)),
    "constraint_bound": _among("exact", "paper", 0.01, 10.0),
    "window": _among(1, 2, 10, 100),
    "every": _among(1, 2, 7, 500),
    "first_epoch": _among(None, 1, 2, 12),
    "block": _among(None, 1, 3, 50),
    "seed": _among(0, 1, 7),
    "smoothness": _default,
    # Facts about the problem, or objects with parameters of their own: the problem's are true.
    "loss_spread": _default,
    "constraint_spread": _default,
    "slope": _default,
    "slack": _default,
    "diameter": _default,
    "projection": _default,
    "slater": _default,
    "learner": _default,
    "of": _among(
        *("yu_neely", "drift_plus_penalty", "sinha_vaze", "no_violation_aogd"),
        *("aogd", "hedged_cuts", "yu_lee_lee", "aftrl", "quadratic_penalty_ogd", "tracked_penalty"),
    ),
    "args": _default,
    "options": _default,
    "limit": _default,
    "noise": _default,
    "delta": _size(-3.0, -0.1),
    "spanned": _default,
}
"""Ranges by name. `Literal` types need none."""


def signature_of(kind: type[Learner[Any]]) -> dict[str, Any]:
    """Return the types of the parameters of `for_problem` besides the problem."""
    hints = get_type_hints(kind.for_problem)
    names = list(inspect.signature(kind.for_problem).parameters)[1:]
    return {name: hints.get(name, Any) for name in names}


def choices_of(hint: Any) -> list[Any]:
    """Return the values of all `Literal` parts of a type."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [value for part in get_args(hint) for value in choices_of(part)]


def draw_learner(kind: type[Learner[Any]], problem: Problem, rounds: int, rng: np.random.Generator) -> Learner[Any]:
    """Return a learner for the problem. Raise InputError where the drawn parameters are refused."""
    options: dict[str, Any] = {}
    for name, hint in signature_of(kind).items():
        literals = choices_of(hint)
        if name != "horizon" and rng.random() < 0.3:
            continue
        value = literals[rng.integers(len(literals))] if literals else PARAMETERS[name](rng, problem, rounds)
        if value is not inspect.Parameter.empty:
            options[name] = value
    return kind.for_problem(problem, **options)


FACTS = {
    *("made_for", "enclosing_set", "constants", "known", "projection", "onto"),
    *("polyhedron", "prox", "consensus", "constraint", "slater", "duals", "count"),
}
"""Fields that are true of the problem."""


def changed_fields(learner: Learner[Any], rng: np.random.Generator) -> Iterator[Learner[Any]]:
    """Yield the learner with one value changed, for each number, flag and tuple of numbers in its parts."""
    for path, value in values_in(learner):
        try:
            yield with_value(learner, path, _other(value, rng))
        except (InputError, TypeError, ValueError):
            continue


def _other(value: Any, rng: np.random.Generator) -> Any:
    """Return the other flag, or numbers that differ by up to two orders of magnitude."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return tuple(_other(one, rng) for one in value)
    return type(value)(value * 10.0 ** rng.uniform(-2, 2))


def values_in(part: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield what a constructor takes that is not a fact, of the part and of the parts that it is made of."""
    for field in dataclasses.fields(part):
        value, here = getattr(part, field.name), (*path, field.name)
        if not field.init or field.name in FACTS:
            continue
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield from values_in(value, here)
        elif isinstance(value, (int, float)) or (isinstance(value, tuple) and value):
            yield here, value


def unsampled_in(part: Any) -> Iterator[str]:
    """Yield the fields that `changed_fields` neither changes nor takes for facts, with their classes."""
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if not field.init or field.name in FACTS:
            continue
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield from unsampled_in(value)
        elif not isinstance(value, (int, float)) and not (isinstance(value, tuple) and value):
            yield f"{type(part).__name__}.{field.name}"


def with_value(part: Any, path: tuple[str, ...], value: Any) -> Any:
    """Return the part with another value at the end of a path of fields."""
    name, *rest = path
    new = with_value(getattr(part, name), tuple(rest), value) if rest else value
    return dataclasses.replace(part, **{name: new})


def all_kinds() -> dict[str, type[Learner[Any]]]:
    """Return every learner of the package by its class's name."""
    return {kind.__name__: kind for kind in every_learner()}


def drawn(
    name: str, draws: int, seed: int, rounds: int, *, changed: bool = True
) -> Iterator[tuple[str, Problem, Learner[Any]]]:
    """Yield learners of one class on small problems, each drawn with other parameters, and then `changed`."""
    rng, cases = np.random.default_rng([seed, *name.encode()]), list(problems().items())
    for _ in range(draws):
        label, problem = cases[rng.integers(len(cases))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                learner = draw_learner(all_kinds()[name], problem, rounds, rng)
            except InputError:
                continue
            yield label, problem, learner
            for other in changed_fields(learner, rng) if changed else ():
                yield label, problem, other
