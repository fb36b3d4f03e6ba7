"""The command `longterm`: data, the paper's experiments, comparisons of one's own, reports."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from longterm.errors import LongtermError

BESIDE_A_CHECKOUT = Path("..") / "shared" / "data"
"""Where data are looked for, too, if LONGTERM_DATA names no folder."""

STOPPED = 130
"""The exit status after an interrupt, as shells have it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status: 0, 2 for something the user can mend, 130 after an interrupt."""
    try:
        from longterm.cli.commands import parse
    except ImportError as error:
        return _say(f"the command line needs {error.name}: install longterm[experiments]")
    try:
        command = parse(arguments)
        if BESIDE_A_CHECKOUT.is_dir():  # workers inherit it
            os.environ.setdefault("LONGTERM_DATA", str(BESIDE_A_CHECKOUT.resolve()))
        command.run()
    except (LongtermError, ImportError) as error:
        return _say(str(error))
    except BrokenPipeError:  # whoever read has seen enough
        sys.stdout = None
        return 0
    except OSError as error:  # a folder that cannot be written, a full disk
        return _say(str(error))
    except KeyboardInterrupt:
        _say("stopped. What is finished is kept: the same command goes on from there")
        return STOPPED
    return 0


def _say(message: str) -> int:
    sys.stderr.write(f"longterm: {message}\n")
    return 2
