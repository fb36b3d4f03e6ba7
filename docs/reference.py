"""The pages of the reference that are read off the package: every public name, and the command line.

`docs/conf.py` writes them before each build, into docs/reference/api; nobody edits them.
"""

from __future__ import annotations

import contextlib
import io
import os
from importlib import import_module
from pathlib import Path
from types import ModuleType

import longterm
from longterm.cli import COMMANDS, parse

WITHOUT_PAGE = {"storage"}
"""Rooms whose names are for the others."""
COMPAT = ("onnx", "river")


def modules() -> dict[str, ModuleType]:
    """The package and its rooms that have public names, by their dotted name."""
    found = {"longterm": longterm}
    for room in longterm._SUBPACKAGES:
        module = import_module(f"longterm.{room}")
        if room == "compat":  # each of its modules is of an extra
            found |= {one.__name__: one for one in map(import_module, (f"longterm.compat.{name}" for name in COMPAT))}
        elif room not in WITHOUT_PAGE:
            found[module.__name__] = module
    return found


def public_names(module: ModuleType) -> list[str]:
    """What a module shows."""
    named = getattr(module, "__all__", None)
    if named is not None:
        return sorted(named)
    return sorted(
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == module.__name__
    )


def home_of() -> dict[int, str]:
    """By the identity of an object, the module whose page describes it; others that show it point there."""
    found: dict[int, str] = {}
    for name, module in modules().items():
        if module is not longterm:
            for public in public_names(module):
                found.setdefault(id(getattr(module, public)), f"{name}.{public}")
    return found


def page_of(module: ModuleType, homes: dict[int, str]) -> str:
    """The page of a module, in reStructuredText."""
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
        page += f"\n.. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n{listed}"
    if elsewhere:
        listed = "".join(f"   ~{home}\n" for home in elsewhere)
        page += f"\nAlso here:\n\n.. autosummary::\n   :nosignatures:\n\n{listed}"
    return page


def command_line() -> str:
    """The help of every command."""
    parts = ["# The command line\n", "What `longterm COMMAND --help` prints, for every command.\n"]
    for name, command in COMMANDS.items():
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
            parse([name, "--help"])
        parts.append(f"## longterm {name}\n\n{command.about}\n\n```text\n{shown.getvalue().strip()}\n```\n")
    return "\n".join(parts)


def write(folder: Path) -> None:
    """Write the pages."""
    os.environ.setdefault("COLUMNS", "80")
    folder.mkdir(parents=True, exist_ok=True)
    toctree, homes = [], home_of()
    for name, module in modules().items():
        (folder / f"{name}.rst").write_text(page_of(module, homes), encoding="utf-8")
        toctree.append(name)
    listed = "\n".join(f"   {name}" for name in toctree)
    index = f"Every public name\n=================\n\n.. toctree::\n   :maxdepth: 1\n\n{listed}\n"
    (folder / "index.rst").write_text(index, encoding="utf-8")
    (folder / "command_line.md").write_text(command_line(), encoding="utf-8")
