"""Check the docstrings of the public names with numpydoc: python docs/docstrings.py (part of make lint).

A public name stands in `__all__` of a subpackage. It says what each parameter is, with a type, and what it returns; its
doctest stands under `Examples`. The first line of a learner, a loss, a constraint, a set or a stream says in words what
it is for, and so do the descriptions of its parameters. Nothing in the package has a docstring of a letter or two.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

from numpydoc.validate import validate

import longterm
from longterm.learners import Learner
from longterm.problems.constraints import Constraint
from longterm.problems.losses import Loss
from longterm.problems.sets import Set
from longterm.problems.streams import Stream

CODES = {"GL08", "PR01", "PR02", "PR04", "PR07", "RT01", "RT03"}
"""No docstring; parameters that are missing, unknown, without a type, without a word; the same of what is returned."""
SHORTEST = 6
FORMULA = re.compile(r"[₊₋⟨⟩‖∇Σ√½²≤≥∈Πλμηθ]|[a-z]_[a-z0-9{]")
"""What a first line in words does not have."""


def public_names() -> dict[str, Any]:
    """Classes and functions of the package by the path of their definition."""
    names = [
        *longterm._SUBPACKAGES,
        *(f"problems.{part}" for part in ("sets", "losses", "constraints", "streams")),
        "lab.arena",
    ]
    modules = [longterm, *(import_module(f"longterm.{name}") for name in names)]
    listed = [getattr(module, name) for module in modules for name in getattr(module, "__all__", ())]
    ours = [thing for thing in listed if callable(thing) and str(thing.__module__).startswith("longterm")]
    return {f"{thing.__module__}.{thing.__qualname__}": thing for thing in ours}


def faults(path: str, thing: Any) -> Iterator[str]:
    """What is wrong with the docstring of one public name."""
    # Nobody constructs a member of an Enum, or a Protocol: the parameters there are Python's. A class that inherits its
    # constructor inherits the documentation of the parameters.
    skipped: set[str] = set()
    if inspect.isclass(thing):
        inherits = "__init__" not in vars(thing)
        skipped = {"PR01"} if issubclass(thing, Enum) or _is_protocol(thing) or inherits else set()
    elif (inspect.getdoc(thing) or "").startswith("Return "):  # the first line describes the result
        skipped = {"RT01"}
    yield from (f"{code} {message}" for code, message in validate(path)["errors"] if code in CODES - skipped)
    text = inspect.getdoc(thing) or ""
    if ">>>" in text and "Examples\n--------\n" not in text:
        yield "the doctest does not stand under `Examples`"
    if inspect.isclass(thing) and issubclass(thing, (Learner, Loss, Constraint, Set, Stream)):
        yield from words_missing(text)


def words_missing(text: str) -> Iterator[str]:
    """What the docstring of a part of a problem, or of a learner, says in formulas alone."""
    first, parameters = text.split("\n", 1)[0], re.search(r"Parameters\n-+\n(.*?)(?:\n\n|\Z)", text, re.DOTALL)
    if FORMULA.search(first):
        yield "the first line is a formula: say what it is for"
    for described in re.findall(r"(?m)^(\S.*?) : .*\n((?: +.*\n?)+)", parameters[1] + "\n" if parameters else ""):
        if len(re.findall(r"[A-Za-z]{2,}", described[1])) < 3:
            yield f"the parameter {described[0]} is described by letters: say in words what it is"


def short_docstrings(file: Path) -> Iterator[str]:
    """Docstrings, of fields too, that say next to nothing."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        text = node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else None
        if isinstance(text, str) and len(text) < SHORTEST:
            yield f"line {node.lineno}: {text!r} is too short to help"


def _is_protocol(thing: Any) -> bool:
    return bool(getattr(thing, "_is_protocol", False))


if __name__ == "__main__":
    package = Path(longterm.__path__[0])
    lines = [f"{path}: {fault}" for path, thing in sorted(public_names().items()) for fault in faults(path, thing)]
    lines += [f"{file}: {fault}" for file in sorted(package.rglob("*.py")) for fault in short_docstrings(file)]
    sys.exit("\n".join(lines) or None)
