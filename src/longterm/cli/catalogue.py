"""longterm catalogue: the learners and problems that can be named, and every argument of one of them."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

import docstring_parser
import tyro

from longterm.experiments.catalogue import Entry, find_learner, find_problem, learners, problems
from longterm.experiments.catalogue.base import in_words, signature


@dataclass(frozen=True)
class CatalogueCommand:
    """The learners and problems that can be named; with names, every argument of these.

    try:
      longterm catalogue
      longterm catalogue aogd mahdavi_ogd
    """

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Learners or problems, by name. Left out: all of them, a line each."""

    def run(self) -> None:
        """Print them."""
        if not self.names:
            groups: dict[str, Mapping[str, Entry]] = {"learners": dict(learners()), "problems": dict(problems())}
            for group, entries in groups.items():
                lines = "\n".join(f"  {signature(entry)}\n      {entry.about}" for entry in entries.values())
                sys.stdout.write(f"{group}\n{lines}\n")
        for name in self.names:
            entry: Entry = find_problem(name) if name in problems() else find_learner(name)
            sys.stdout.write(f"{described(entry)}\n")


def described(entry: Entry) -> str:
    """Every argument with what it may be, its default and what its docstring says of it."""
    hints, said = get_type_hints(entry.build), _said_of_arguments(entry.build)
    lines = [f"{entry.name}: {entry.about}"]
    for name, parameter in entry.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            lines.append(f"  {name}: whatever else the learner takes that it is made of")
            continue
        default = "needed" if parameter.default is parameter.empty else f"left out: {parameter.default!r}"
        lines.append(f"  {name}: {in_words(hints.get(name, Any))} ({default})")
        lines += textwrap.wrap(said.get(name, ""), 110, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def _said_of_arguments(build: Any) -> dict[str, str]:
    parsed = docstring_parser.parse(inspect.getdoc(build) or "", style=docstring_parser.DocstringStyle.NUMPYDOC)
    return {
        name.strip(): " ".join((one.description or "").split())
        for one in parsed.params
        for name in one.arg_name.split(",")
    }
