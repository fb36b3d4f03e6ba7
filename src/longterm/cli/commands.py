"""The command line as dataclasses: tyro reads them, and each knows how to run itself."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any

import tyro

from longterm.cli.arena import Arena
from longterm.cli.data import Data
from longterm.cli.own import Catalogue, Report, Run
from longterm.cli.reproduce import Reproduce

COMMANDS = {
    "reproduce": Reproduce,
    "run": Run,
    "arena": Arena,
    "report": Report,
    "data": Data,
    "catalogue": Catalogue,
}
Command = Reproduce | Run | Arena | Report | Data | Catalogue
ABOUT = """Online convex optimisation with long-term constraints.

start with:
  longterm reproduce dsm sample    the paper's first experiment and a small real one, with a report (a minute)
  longterm run --help              a comparison of your own
  longterm arena --help            every learner on every problem, and a league table
"""


def parse(arguments: Sequence[str] | None = None) -> Command:
    """The command that was asked for."""
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    parsed: Command = tyro.cli(
        reduce(or_, [_subcommand(name, name == given[0]) for name in COMMANDS]),
        prog="longterm",
        description=ABOUT,
        args=given,
        config=(tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone),
    )
    return parsed


def _subcommand(name: str, in_full: bool) -> Any:
    """With all its help where it was asked for, and one line of it in the list of commands."""
    text = inspect.getdoc(COMMANDS[name]) or ""
    return Annotated[
        COMMANDS[name], tyro.conf.subcommand(name, description=text if in_full else text.partition("\n")[0])
    ]
