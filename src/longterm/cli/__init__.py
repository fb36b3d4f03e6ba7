"""The command `longterm`: data, the paper's experiments, comparisons of one's own, reports.

Every command is a dataclass that `tyro` reads and that knows how to run itself. Only the module of the command that was
asked for is imported, so that a list of the commands costs nothing.
"""

from __future__ import annotations

import inspect
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, NamedTuple

from longterm import __version__
from longterm.errors import LongtermError, did_you_mean

STOPPED, TERMINATED = 130, 143
"""The exit statuses after an interrupt and after SIGTERM, as shells have them."""


class Terminated(KeyboardInterrupt):
    """SIGTERM: an interrupt by whoever runs the machine, with the same clearing up."""


class Command(NamedTuple):
    """Where a command is, and what it is for."""

    place: str
    """module:class"""
    about: str


COMMANDS = {
    "reproduce": Command("run:ReproduceCommand", "Run the experiments of the paper, and write a report."),
    "run": Command("run:RunCommand", "Compare learners on a problem of your choice."),
    "arena": Command("run:ArenaCommand", "Let every learner play every problem, and rank them."),
    "report": Command("run:ReportCommand", "Draw the figures and write the page of experiments that have been run."),
    "data": Command("data:DataCommand", "Data sets: list them, download them, find their files."),
    "catalogue": Command("catalogue:CatalogueCommand", "The learners and problems that can be named."),
}
ABOUT = """\
usage: longterm COMMAND [options]

Online convex optimisation with long-term constraints.

start with:
  longterm reproduce dsm sample    the paper's first experiment and a small real one, with a report (a minute)
  longterm run --help              a comparison of your own
  longterm arena --help            every learner on every problem, and a league table
  longterm --version
  longterm --completion zsh        a script that lets zsh (or bash) complete names and options

commands:
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line: `arguments` are the words after `longterm`; left out, those of this process.

    The exit status is 0, 2 for something the user can mend, 130 after an interrupt, 143 after SIGTERM.
    """
    return _guarded(lambda: parse(arguments).run())


def run_function(function: Callable[..., Any], arguments: Sequence[str] | None = None) -> int:
    """Run a function from the command line, as the examples do: its parameters are the options; as `main` otherwise."""
    return _guarded(lambda: _tyro().cli(function, args=arguments))


def _guarded(call: Callable[[], Any]) -> int:
    """Do it; what the user can mend is said in a line."""
    try:
        with _terminable():
            call()
    except (LongtermError, ImportError) as error:
        return _complain(str(error))
    except BrokenPipeError:  # whoever read has seen enough
        sys.stdout = None
        return 0
    except OSError as error:  # a folder that cannot be written, a full disk
        return _complain(str(error))
    except KeyboardInterrupt as error:
        by_signal = isinstance(error, Terminated)
        kept = "What is finished is kept: the same command goes on from there"
        _complain(f"stopped{' by SIGTERM' if by_signal else ''}. {kept}")
        return TERMINATED if by_signal else STOPPED
    return 0


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM raise, so that workers are stopped and files closed; only the main thread may say so."""
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
    """The command that was asked for, a dataclass with a method `run`; left out, by the words of this process.

    SystemExit after a help text, or for words that make no command.
    """
    name, *rest = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        sys.stdout.write(ABOUT + "".join(f"  {name:<12}{command.about}\n" for name, command in COMMANDS.items()))
        raise SystemExit(0)
    if name in ("-V", "--version"):
        sys.stdout.write(f"longterm {__version__}\n")
        raise SystemExit(0)
    if name == "--completion":
        _tyro()  # the commands' modules need it
        completion = import_module("longterm.cli.catalogue")
        shell = rest[0] if rest else "bash"
        if shell not in completion.SHELLS:
            _complain(f"--completion: {shell!r} is not known. Choose from {', '.join(completion.SHELLS)}")
            raise SystemExit(2)
        sys.stdout.write(completion.script({name: command.place for name, command in COMMANDS.items()}, shell))
        raise SystemExit(0)
    if str(Path.cwd()) not in sys.path:  # module:function may be of this folder, for workers too
        sys.path.insert(0, str(Path.cwd()))
    if name not in COMMANDS:
        choose = f"Choose from {', '.join(COMMANDS)}; longterm --help says what they do"
        _complain(f"{name!r} is no command{did_you_mean(name, COMMANDS)}. {choose}")
        raise SystemExit(2)
    tyro = _tyro()
    module, _, kind = COMMANDS[name].place.partition(":")
    command = getattr(import_module(f"longterm.cli.{module}"), kind)
    return tyro.cli(
        command,
        prog=f"longterm {name}",
        description=inspect.getdoc(command),
        args=rest,
        config=(tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone),
    )


def _tyro() -> Any:
    try:
        return import_module("tyro")
    except ImportError as error:
        raise ImportError(f"the command line needs {error.name}: pip install 'longterm[experiments]'") from error


def _complain(message: str) -> int:
    sys.stderr.write(f"longterm: {message}\n")
    return 2
