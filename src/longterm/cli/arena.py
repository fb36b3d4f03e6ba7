"""The command `longterm arena`: every learner on every problem, ranked."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from longterm.cli.backend import BackendOptions
from longterm.cli.options import NameList, OptionalInt
from longterm.cli.output import terminal_width
from longterm.lab.arena import Preference, arena_of, league, run_arena
from longterm.lab.arena.arena_spec import ROUNDS, SEQUENCES, League
from longterm.lab.arena.league import Violation
from longterm.lab.arena.league_tables import league_text, write_tables
from longterm.lab.arena.matches import with_learners


@dataclass(frozen=True)
class ArenaCommand:
    """Run every learner on every problem that it can handle, and rank them by a trade-off of your choice.

    All learners see the same sequences. If a learner cannot play a problem, the page gives the reason. The
    growth of regret and violation is measured between T/16, T/4 and T rounds.

    The score compares a learner with the median learner: 0 is best and 1/2 is the median. It is the mean over the
    problems of (1 − weight) times the score of the regret plus weight times that of the violation. A problem that the
    learner cannot play counts 1/2. docs/guides/arena.md has the formula. With another --weight or --violation, the
    command ranks finished matches again and runs nothing.

    If the command is interrupted, run it again: finished matches are not repeated.

    for example:
      longterm arena --out arena
      longterm arena --out arena --weight 0.9 --violation hard
      longterm arena --out arena --add mine:build
      longterm arena --out small --learners aogd mine:build --problems routing
      longterm arena --out drift --league drift
      longterm arena --out unseen --held-out 20260101
    """

    out: Path = Path("arena")
    """The folder for the matches, the tables and the page."""
    learners: NameList = ()
    """Run only these learners, such as "aogd beta=0.5" or module:function. Default: the whole catalogue."""
    add: NameList = ()
    """Add learners, such as mine:build, to those in the folder, or to the catalogue if the folder is new."""
    problems: NameList = ()
    """Run only these problems, each with its parameters. Default: the whole catalogue."""
    rounds: int = ROUNDS
    """The number of rounds of each match."""
    sequences: int = SEQUENCES
    """The number of random sequences."""
    league: League = "static"
    """static ranks on problems with one best decision, drift on problems whose best decision moves."""
    held_out: OptionalInt = None
    """A seed that draws new variants of the problems and new sequences, to which no method was tuned."""
    weight: float = 0.5
    """The weight of violation in the score: 0 ranks by regret only, 1 by violation only."""
    violation: Violation = "long-term"
    """The violation to count: long-term (largest Σ g_j), signed (Σ max g_j), hard (Σ [max g_j]₊), squared, largest."""
    report: bool = True
    """Write arena.html."""
    workers: Annotated[BackendOptions, tyro.conf.arg(name="")] = field(default_factory=BackendOptions)

    def run(self) -> None:
        """Run the matches, print the league and write tables and page."""
        preference = Preference(self.weight, self.violation)
        spec = arena_of(
            self.learners,
            self.problems,
            rounds=self.rounds,
            sequences=self.sequences,
            league=self.league,
            held_out=self.held_out,
        )
        if self.add:
            spec = with_learners(spec, self.add, self.out if not self.learners else None)
        result = run_arena(spec, self.out, backend=self.workers.chosen)
        standings = league(result, preference)
        write_tables(result, standings, preference, self.out)
        sys.stdout.write(f"{league_text(result, standings, preference, terminal_width())}tables   {self.out}\n")
        if self.report:
            from longterm.lab.report.arena_page import write_arena_page

            page = write_arena_page(result, standings, preference, self.out / "arena.html")
            sys.stdout.write(f"report   {page}\n")
