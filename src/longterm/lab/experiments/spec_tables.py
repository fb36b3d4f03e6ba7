"""Specifications as plain tables: read from TOML, a manifest or the command line, and written."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from longterm._base.messages import did_you_mean
from longterm.catalogue.parameter_types import fits
from longterm.catalogue.words import parse_words
from longterm.errors import InputError
from longterm.lab.experiments.spec import ExperimentSpec, LearnerSpec, ProblemSpec


def read_spec(path: str | Path) -> ExperimentSpec:
    """Read the specification in a TOML file, or in the manifest of a result folder.

    Parameters
    ----------
    path : str or pathlib.Path
        A TOML file, or the manifest.json of a result folder.

    Returns
    -------
    ExperimentSpec
        The validated specification.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        table = json.loads(text)["spec"] if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"cannot be read ({error})", "Give a TOML file, or a manifest.json") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:  # of the parsers
        remedy = "Correct it; docs/guides/experiments.md shows one"
        raise InputError(str(path), f"is not a specification ({error})", remedy) from error
    try:
        return spec_of(table)
    except InputError as error:  # name the file
        raise InputError(f"{path}: {error.argument}", error.what, error.remedy) from error


def spec_of(table: Mapping[str, Any]) -> ExperimentSpec:
    """Return the specification in a table, as in TOML and manifests.

    Parameters
    ----------
    table : mapping
        The fields of `ExperimentSpec`; `problem` and `learners` are nested tables.

    Returns
    -------
    ExperimentSpec
        The validated specification.

    Examples
    --------
    >>> from longterm.lab.experiments.spec_tables import spec_of
    >>> problem = {"name": "doubly_stochastic", "size": 3}
    >>> spec = spec_of({"problem": problem, "learners": [{"learner": "aogd"}], "rounds": 10, "seeds": 2})
    >>> spec.seeds, spec.problem.parameters
    ((0, 1), {'size': 3})
    """
    if not isinstance(table, Mapping):
        raise InputError("spec", "is not a table", "Give a table. docs/guides/experiments.md shows an example")
    known = [one.name for one in fields(ExperimentSpec)]
    for key in table:
        if key not in known:
            raise InputError(key, f"is not known{did_you_mean(key, known)}", f"Choose from {known}")
    for key, kind, words in (("problem", Mapping, "a table"), ("learners", list, "a list of tables")):
        if key not in table:
            raise InputError(key, "is missing", f"Write {_EXAMPLES[key]}")
        if not isinstance(table[key], kind):
            found = "is one table" if isinstance(table[key], Mapping) else f"{table[key]!r} is not {words}"
            raise InputError(key, found, f"Write {_EXAMPLES[key]}")
    seeds = table.get("seeds", 1)
    if not fits(seeds, int) and not (isinstance(seeds, list) and all(fits(one, int) for one in seeds)):
        what = f"{seeds!r} is neither a whole number nor a list of them"
        raise InputError("seeds", what, "Write seeds = 10 for ten sequences, or seeds = [0, 1, 2]")
    rest: dict[str, Any] = {key: value for key, value in table.items() if key not in ("problem", "learners")}
    return ExperimentSpec(problem_of_table(table["problem"]), tuple(map(learner_of_table, table["learners"])), **rest)


def table_of(spec: ExperimentSpec) -> dict[str, Any]:
    """Return the specification as a table, which `spec_of` reads.

    Parameters
    ----------
    spec : ExperimentSpec
        The specification.

    Returns
    -------
    dict
        Text, numbers, lists and tables.
    """
    table: dict[str, Any] = {one.name: getattr(spec, one.name) for one in fields(spec)}
    table |= {
        "problem": {"name": spec.problem.name, **spec.problem.parameters},
        "learners": [table_of_learner(one) for one in spec.learners],
        "seeds": list(spec.seeds),
    }
    return {key: value for key, value in table.items() if value is not None and (key, value) != ("logged", False)}


def parse_learner(text: str) -> LearnerSpec:
    """Parse a learner from the command line.

    Parameters
    ----------
    text : str
        A name of the catalogue, then key=value for each parameter; a list of values becomes a grid.

    Returns
    -------
    LearnerSpec
        The learner with its parameters.

    Examples
    --------
    >>> from longterm.lab.experiments.spec_tables import parse_learner
    >>> parse_learner("aogd beta=[0.5,0.75] name='My A-OGD'")
    LearnerSpec(learner='aogd', parameters={'beta': (0.5, 0.75)}, name='My A-OGD', role='own', read_off={})
    """
    name, parameters = parse_words(text, "learners")
    return learner_of_table({"learner": name, **parameters})


def parse_problem(text: str) -> ProblemSpec:
    """Parse a problem from the command line: ``budgeted_logistic data=sample budget=3``.

    Parameters
    ----------
    text : str
        A name of the catalogue, then key=value for each parameter.

    Returns
    -------
    ProblemSpec
        The problem with its parameters.
    """
    name, parameters = parse_words(text, "problem")
    return ProblemSpec(name, parameters)


_EXAMPLES = {
    "problem": 'a line [problem], and below it name = "doubly_stochastic" and its parameters, size = 8 for example',
    "learners": 'for each learner a line [[learners]], in double brackets, and below it learner = "aogd"',
}


def problem_of_table(table: Mapping[str, Any]) -> ProblemSpec:
    """Return the problem in a table of its name and parameters."""
    if "name" not in table:
        raise InputError("problem.name", "is missing", f"Write {_EXAMPLES['problem']}")
    return ProblemSpec(table["name"], {key: value for key, value in table.items() if key != "name"})


def learner_of_table(table: Any) -> LearnerSpec:
    """Return the learner in a table of its name and parameters."""
    if not isinstance(table, Mapping) or "learner" not in table:
        keys = ", ".join(map(str, table)) if isinstance(table, Mapping) else str(table)
        what = f"a table does not name its learner. It has {keys or 'nothing'}"
        raise InputError("learners", what, f"Write {_EXAMPLES['learners']}")
    named = {one.name: table[one.name] for one in fields(LearnerSpec) if one.name in table and one.name != "parameters"}
    return LearnerSpec(**named, parameters={key: value for key, value in table.items() if key not in named})


def add_learners(learners: Sequence[LearnerSpec], words: Sequence[str]) -> tuple[LearnerSpec, ...]:
    """Return the learners with those from the command line that are not among them."""
    known = {one.name for one in learners}
    return (*learners, *(one for one in map(parse_learner, words) if one.name not in known))


def table_of_learner(spec: LearnerSpec) -> dict[str, Any]:
    """Return the table that `learner_of_table` reads."""
    parameters = {key: list(value) if isinstance(value, tuple) else value for key, value in spec.parameters.items()}
    role = {"role": spec.role} if spec.role != "own" else {}
    read_off = {"read_off": dict(spec.read_off)} if spec.read_off else {}
    return {"learner": spec.learner, "name": spec.name, **role, **read_off, **parameters}
