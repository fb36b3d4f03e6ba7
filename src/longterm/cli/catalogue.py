"""The command `longterm catalogue`: learners and problems by name, and their parameters."""

from __future__ import annotations

import inspect
import sys
import textwrap
from dataclasses import dataclass
from typing import Any, get_type_hints

import docstring_parser
import tyro

from longterm.catalogue.entries import Entry
from longterm.catalogue.lookup import find_learner, find_problem, learners, problems
from longterm.catalogue.parameter_types import describe_type
from longterm.cli.options import NameList


@dataclass(frozen=True)
class CatalogueCommand:
    """List the learners and problems. If names are given, list the parameters of these.

    for example:
      longterm catalogue
      longterm catalogue aogd mahdavi_ogd
    """

    names: tyro.conf.Positional[NameList] = ()
    """Names of learners or problems. Default: all of them."""

    def run(self) -> None:
        """Print the entries."""
        if not self.names:
            for group, entries in (("learners", learners().values()), ("problems", problems().values())):
                lines = "\n".join(f"  {entry.signature()}\n      {entry.about}" for entry in entries)
                sys.stdout.write(f"{group}\n{lines}\n")
        for name in self.names:
            entry: Entry = find_problem(name) if name in problems() else find_learner(name)
            sys.stdout.write(f"{describe_entry(entry)}\n")


def describe_entry(entry: Entry) -> str:
    """Return every parameter with its type, its default and its description."""
    hints, descriptions = get_type_hints(entry.build), _parameter_descriptions(entry.build)
    lines = [f"{entry.name}: {entry.about}"]
    for name, parameter in entry.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            lines.append(f"  {name}: the parameters of the inner learner")
            continue
        default = "required" if parameter.default is parameter.empty else f"default: {parameter.default!r}"
        lines.append(f"  {name}: {describe_type(hints.get(name, Any))} ({default})")
        lines += textwrap.wrap(descriptions.get(name, ""), 110, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def _parameter_descriptions(build: Any) -> dict[str, str]:
    """Return the descriptions of the parameters in a numpydoc docstring."""
    parsed = docstring_parser.parse(inspect.getdoc(build) or "", style=docstring_parser.DocstringStyle.NUMPYDOC)
    return {
        name.strip(): " ".join((one.description or "").split())
        for one in parsed.params
        for name in one.arg_name.split(",")
    }
