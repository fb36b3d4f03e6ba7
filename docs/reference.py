"""Write the generated pages of the reference: every public name with its methods, and the command line.

`docs/conf.py` calls `write` before each build. The pages go into docs/reference/api; nobody edits them.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import longterm
from longterm.cli import COMMANDS, parse
from longterm.learners import Learner

COMPAT = ("multipliers", "onnx", "optax", "river")
SECTIONS = ("Assumes", "Guarantees", "Needs", "Not promised", "Presets", "Proofs?", "Steps")
"""Words that begin a paragraph in the docstring of an algorithm."""
METHODS = (classmethod, staticmethod, property)


def modules() -> dict[str, ModuleType]:
    """Return the package and its subpackages that have public names, by dotted name."""
    found = {"longterm": longterm}
    for subpackage in longterm._SUBPACKAGES:
        module = import_module(f"longterm.{subpackage}")
        if subpackage == "compat":  # each of its modules needs an extra
            found |= {one.__name__: one for one in map(import_module, (f"longterm.compat.{name}" for name in COMPAT))}
        else:
            found[module.__name__] = module
    return found


def public_names(module: ModuleType) -> list[str]:
    """Return the names that a module exports."""
    named = getattr(module, "__all__", None)
    if named is not None:
        return sorted(named)
    return sorted(
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == module.__name__
    )


def home_of() -> dict[int, str]:
    """Return the full name under which each object is documented, by identity. Other modules link there."""
    found: dict[int, str] = {}
    for name, module in modules().items():
        if module is not longterm:
            for public in public_names(module):
                found.setdefault(id(getattr(module, public)), f"{name}.{public}")
    return found


def page_of(module: ModuleType, homes: dict[int, str]) -> str:
    """Return the page of a module, in reStructuredText."""
    title = f"``{module.__name__}``"
    about = (module.__doc__ or "").strip().partition("\n")[0].replace("*", r"\*")
    full = {name: homes.get(id(getattr(module, name)), f"{module.__name__}.{name}") for name in public_names(module)}
    own = [name for name, home in full.items() if home == f"{module.__name__}.{name}"]
    elsewhere = [home for name, home in full.items() if name not in own]
    page = f"{title}\n{'=' * len(title)}\n\n{about}\n"
    if module is not longterm:
        page += f"\n.. currentmodule:: {module.__name__}\n"
    if own:
        listed = "".join(f"   {name}\n" for name in own)
        page += f"\n.. autosummary::\n   :nosignatures:\n\n{listed}"
    if elsewhere:
        listed = "".join(f"   ~{home}\n" for home in elsewhere)
        page += f"\nAlso here:\n\n.. autosummary::\n   :nosignatures:\n\n{listed}"
    return page


def entry_of(full: str, thing: Any, homes: dict[int, str]) -> str:
    """Return the page of one public name: its docstring, its methods, and links to the methods that it inherits."""
    module, _, name = full.rpartition(".")
    # No page of a name is in a table of contents: the sidebar of every page would list hundreds.
    page = f":orphan:\n\n{name}\n{'=' * len(name)}\n\n.. currentmodule:: {module}\n\n"
    if not inspect.isclass(thing):
        kind = "autofunction" if callable(thing) and hasattr(thing, "__qualname__") else "autodata"
        return f"{page}.. {kind}:: {name}\n{_method_section(thing, homes)}"
    own, inherited = members_of(thing, homes)
    page += f".. autoclass:: {name}\n"
    for one in own:
        kind = "autoproperty" if isinstance(inspect.getattr_static(thing, one), property) else "automethod"
        page += f"\n   .. {kind}:: {name}.{one}\n"
    if inherited:
        page += "\n.. rubric:: Inherited\n\n"
        for base, names in inherited.items():
            links = ", ".join(f":py:obj:`~{base}.{one}`" for one in names)
            page += f"From :py:obj:`~{base}`: {links}.\n\n"
    return page + _method_section(thing, homes)


def members_of(thing: type, homes: dict[int, str]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the members that a class documents, and those documented by its public bases, by base.

    A class documents a public method or property if it, or a private base, defines it with a docstring. An override
    without a docstring is documented by the base.
    """
    own: list[str] = []
    inherited: dict[str, list[str]] = {}
    taken: set[str] = set()
    for base in thing.__mro__:
        if not base.__module__.startswith("longterm"):
            continue
        public = [homes[id(one)] for one in thing.__mro__[1:] if id(one) in homes and issubclass(one, base)]
        full = homes.get(id(base), public[0] if public else None) if base is not thing else None
        for name, member in vars(base).items():
            if name.startswith("_") or name in taken or not _has_docstring(member):
                continue
            taken.add(name)
            if full is None:
                own.append(name)
            else:
                inherited.setdefault(full, []).append(name)
    return own, inherited


def _has_docstring(member: Any) -> bool:
    if not (inspect.isfunction(member) or isinstance(member, METHODS)):
        return False
    function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    return bool(getattr(function, "__doc__", None)) and str(function.__module__).startswith("longterm")


def _method_section(thing: Any, homes: dict[int, str]) -> str:
    """Return the docstring of the file that defines a learner, or one public name only, if it has more than a line."""
    source = inspect.getmodule(thing)
    if source is None or source.__name__ in modules() or not source.__doc__:
        return ""
    text = inspect.cleandoc(source.__doc__)
    public = [one for one in vars(source).values() if getattr(one, "__module__", "") == source.__name__]
    alone = sum(id(one) in homes for one in public) == 1
    if "\n" not in text or not (alone or (inspect.isclass(thing) and issubclass(thing, Learner) and thing.name)):
        return ""
    return f"\n.. rubric:: Method\n\n{as_text(text)}\n"


def as_text(text: str) -> str:
    """Return a docstring as reStructuredText: indented lines are formulas, the rest is prose without markup."""
    parts: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.split("\n")
        while lines:
            formula = lines[0].startswith("    ")
            size = next((n for n, line in enumerate(lines) if line.startswith("    ") != formula), len(lines))
            taken, lines = lines[:size], lines[size:]
            if formula:
                parts.append("::\n\n" + "\n".join(taken))
            else:
                prose = "\n".join(re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", _escape(line)) for line in taken)
                prose = re.sub(r"``docs/(proofs/\w+)\.md``", r":doc:`/\1`", prose)
                prose = re.sub(rf"(?<=\n)(?=(?:{'|'.join(SECTIONS)})\b[^.:]*:)", "\n", prose)
                prose = re.sub(r"(?<=[.)]) (?=(?:Proofs?|Not promised): )", "\n\n", prose)
                prose = re.sub(r"(?<=\n)(?=- )", "\n", prose)  # a list, and the paragraph after it
                parts.append(re.sub(r"(?m)^((?:- |  ).*)\n(?=[^ \n-])", r"\1\n\n", prose))
    return "\n\n".join(parts)


def _escape(line: str) -> str:
    """Escape the characters of prose that reStructuredText reads as markup."""
    pieces = re.split(r"(`[^`]+`|\*\*[\w -]+\*\*)", line)  # code and bold words stay
    return "".join(one if one.startswith(("`", "**")) else re.sub(r"([*|_\\])", r"\\\1", one) for one in pieces)


def command_line() -> str:
    """Return the page with the help of every command."""
    parts = ["# The command line\n", "What `longterm COMMAND --help` prints, for every command.\n"]
    for name, command in COMMANDS.items():
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
            parse([name, "--help"])
        parts.append(f"## longterm {name}\n\n{command.about}\n\n```text\n{shown.getvalue().strip()}\n```\n")
    return "\n".join(parts)


def index() -> str:
    """Return the page that lists every module with the first line of its docstring."""
    first_lines = {name: (module.__doc__ or "").split("\n", 1)[0] for name, module in modules().items()}
    summaries = {name: line.replace("`", "``") for name, line in first_lines.items()}
    listed = "\n".join(f"- :doc:`{name}`: {summary}" for name, summary in summaries.items())
    contents = "\n".join(f"   {name}" for name in summaries)
    return f"Every public name\n=================\n\n{listed}\n\n.. toctree::\n   :hidden:\n\n{contents}\n"


def write(folder: Path) -> None:
    """Write the pages that changed and remove those of names that are gone."""
    os.environ.setdefault("COLUMNS", "80")
    folder.mkdir(parents=True, exist_ok=True)
    homes = home_of()
    pages: dict[str, Callable[[], str]] = {"command_line.md": command_line}
    for name, module in modules().items():
        pages[f"{name}.rst"] = lambda module=module: page_of(module, homes)  # type: ignore[misc]
        for public in public_names(module):
            thing, full = getattr(module, public), f"{name}.{public}"
            if homes.get(id(thing), full) == full:
                pages[f"{full}.rst"] = lambda full=full, thing=thing: entry_of(full, thing, homes)  # type: ignore[misc]
    pages["index.rst"] = index
    for old in folder.iterdir():
        if old.is_file() and old.name not in pages:
            old.unlink()
    for file, make in pages.items():
        path, text = folder / file, make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
