"""The command `longterm`: data, the paper's experiments, the user's comparisons, reports.

Every command is a dataclass that `tyro` parses, with a method `run`. Only the module of the given command is imported,
so that ``longterm --help`` stays fast. What a command does belongs in the folder that it is about.
"""

from __future__ import annotations

import inspect
import io
import shutil
import signal
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, NamedTuple

from longterm import __version__
from longterm._base.extras import missing_extra
from longterm._base.messages import did_you_mean
from longterm.errors import LongtermError

MAX_WIDTH = 110
"""Columns of help texts."""
STOPPED, TERMINATED = 130, 143
"""The exit statuses after an interrupt and after SIGTERM, as in shells."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, handled like an interrupt."""


class Command(NamedTuple):
    """The class of a command, and its help line."""

    target: str
    """module:class"""
    about: str


COMMANDS = {
    "reproduce": Command("reproduce:ReproduceCommand", "Run the paper's experiments and write a report."),
    "run": Command("run:RunCommand", "Compare learners on a problem of your choice."),
    "arena": Command("arena:ArenaCommand", "Run every learner on every problem and rank them."),
    "report": Command("report:ReportCommand", "Draw the figures and write the page of finished experiments."),
    "fit": Command("fit:FitCommand", "Fit a linear model to Parquet or CSV files of any size."),
    "pace": Command("pace:PaceCommand", "Spend a budget over a log of auctions."),
    "serve": Command("serve:ServeCommand", "Serve live objects over HTTP, with metrics and a page."),
    "state": Command("state:StateCommand", "Show a service's database, change limits, back it up."),
    "token": Command("token:TokenCommand", "Make a token for callers of a service."),
    "data": Command("data:DataCommand", "List and download data sets, and find their files."),
    "catalogue": Command(
        "catalogue:CatalogueCommand", "List the learners and problems by name, with their parameters."
    ),
}
ABOUT = """\
usage: longterm COMMAND [options]

Make decisions one at a time, and stay within a budget in the long run.

examples:
  longterm reproduce dsm sample    the paper's first experiment and a small one on real data (a minute)
  longterm run --help              your own comparison
  longterm arena --help            every learner on every problem, and a league table
  longterm --version
  longterm --completion bash       a completion script for bash (or zsh)

commands:
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    The status is 0, 2 after an error of the user, 130 after an interrupt, 143 after SIGTERM.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after `longterm`; left out, those of this process.

    Returns
    -------
    int
    """
    return _guard(lambda: parse(arguments).run())


def run_function(function: Callable[..., Any], arguments: Sequence[str] | None = None) -> int:
    """Run a function whose parameters are command-line options, as the examples do, and return the exit status."""
    return _guard(lambda: _tyro().cli(function, args=arguments))


def _guard(call: Callable[[], Any]) -> int:
    """Call the function; print errors of the user in one line, and return the exit status."""
    _allow_any_encoding()
    try:
        with _raise_on_sigterm(), _short_warnings():
            call()
    except (LongtermError, ImportError, OSError) as error:  # OSError: a folder that cannot be written, a full disk
        if isinstance(error, BrokenPipeError):  # the reader of the output has closed it
            sys.stdout = None
            return 0
        return _complain(str(error))
    except KeyboardInterrupt as error:
        by_signal = isinstance(error, Terminated)
        _complain(f"stopped{' by SIGTERM' if by_signal else ''}. Finished work is kept: the same command continues")
        return TERMINATED if by_signal else STOPPED
    return 0


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Print warnings for the user in one line, without the line of code that gave them."""
    usual = warnings.formatwarning

    def format_warning(message: Any, category: type[Warning], *place: Any, **options: Any) -> str:
        if issubclass(category, UserWarning):
            return f"longterm: {message}\n"
        return usual(message, category, *place, **options)

    warnings.formatwarning = format_warning
    try:
        yield
    finally:
        warnings.formatwarning = usual


def _allow_any_encoding() -> None:
    """Replace characters that a terminal which is not UTF-8 cannot show, instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def _raise_on_sigterm() -> Iterator[None]:
    """Raise Terminated on SIGTERM, so that workers are stopped and files closed; possible in the main thread only."""
    if current_thread() is not main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def parse(arguments: Sequence[str] | None = None) -> Any:
    """Return the parsed command, a dataclass with a method `run`; raise SystemExit after a help text or a wrong word.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after `longterm`; left out, those of this process.

    Returns
    -------
    object
    """
    name, *rest = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        sys.stdout.write(ABOUT + "".join(f"  {name:<12}{command.about}\n" for name, command in COMMANDS.items()))
        raise SystemExit(0)
    if name in ("-V", "--version"):
        sys.stdout.write(f"longterm {__version__}\n")
        raise SystemExit(0)
    tyro = _tyro()
    if name == "--completion":
        shell = rest[0] if rest else "bash"
        commands = {name: _command_class(name) for name in COMMANDS}
        tyro.extras.subcommand_cli_from_dict(commands, prog="longterm", args=["--tyro-print-completion", shell])
    if name not in COMMANDS:
        choose = f"Choose from {', '.join(COMMANDS)}; longterm --help describes them"
        _complain(f"{name!r} is no command{did_you_mean(name, COMMANDS)}. {choose}")
        raise SystemExit(2)
    if str(Path.cwd()) not in sys.path:  # module:function may be in this folder, for workers too
        sys.path.insert(0, str(Path.cwd()))
    command = _command_class(name)
    if {"-h", "--help"} & set(rest):
        sys.stdout.write(_wrapped_description(command) + "\n\n")
    return tyro.cli(
        command,
        prog=f"longterm {name}",
        description="",
        args=rest,
        config=(tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone),
    )


def _wrapped_description(command: type) -> str:
    """Return the docstring wrapped to the terminal, with indented lines unchanged; tyro does not wrap it."""
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH) - 1
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(text if "\n " in f"\n{text}" else textwrap.fill(text, width) for text in paragraphs)


def _command_class(name: str) -> Any:
    module, _, kind = COMMANDS[name].target.partition(":")
    return getattr(import_module(f"longterm.cli.{module}"), kind)


def _tyro() -> Any:
    try:
        return import_module("tyro")
    except ImportError as error:
        raise missing_extra(f"the command line needs {error.name}", "experiments") from error


def _complain(message: str) -> int:
    sys.stderr.write(f"longterm: {message}\n")
    return 2
