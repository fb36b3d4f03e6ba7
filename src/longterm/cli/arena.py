"""longterm arena: every learner on every problem, and who comes out best."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from longterm.cli.run import BackendOptions
from longterm.experiments.arena import Preference, arena_of, league, run_arena
from longterm.experiments.arena.league import Violation
from longterm.experiments.arena.run import with_learners
from longterm.experiments.arena.spec import ROUNDS, SEQUENCES, League
from longterm.experiments.arena.tables import league_text, write_tables


@dataclass(frozen=True)
class ArenaCommand:
    """Let every learner play every problem that it is able to, and rank them by a trade-off of your choice.

    Every learner sees the same sequences. Slopes in T come from T/16, T/4 and T rounds: learners that need the horizon
    are run for each, the others once. A learner that refuses a problem is listed with its reason.

    The score: [v]₊/([v]₊ + s) for the regret and for the violation of a learner on a problem, where s is the median of
    what is positive among all that played it; (1 − weight) times the first plus weight times the second; the mean over
    the problems, ½ for one that it cannot play. 0 is best, ½ the middle of the field. Another --weight or --violation
    ranks again without playing again.

    Every match is kept as soon as it is done: stopped and started again, the command plays only what is missing.

    try:
      longterm arena --out arena
      longterm arena --out arena --weight 0.9 --violation hard
      longterm arena --out arena --add mine:build
      longterm arena --out small --learners aogd aftrl mine:build --problems routing "doubly_stochastic size=5"
      longterm arena --out drift --league drift
      longterm arena --out unseen --held-out 20260101
      longterm arena --out arena --backend dask --scheduler tcp://host:8786
    """

    out: Path = Path("arena")
    """Folder for the matches, the tables and the page."""
    learners: tuple[str, ...] = ()
    """Only these, each with its parameters: "aogd beta=0.5", or module:function. Left out: the whole catalogue."""
    add: tuple[str, ...] = ()
    """These in addition, mine:build for example: to what is in the folder already, else to the whole catalogue."""
    problems: tuple[str, ...] = ()
    """Only these, each with its parameters. Left out: the whole catalogue."""
    rounds: int = ROUNDS
    """T, the number of rounds."""
    sequences: int = SEQUENCES
    """Random sequences to average over."""
    league: League = "static"
    """Problems with one best decision, or those whose best decision moves."""
    held_out: int | None = None
    """The held-out half: variants of the problems, and sequences, drawn from this seed, that no tuning has seen."""
    weight: float = 0.5
    """The share of violation in the score: 0 ranks by regret alone, 1 by violation alone."""
    violation: Violation = "long-term"
    """Which: long-term (the largest of the Σ g_j), signed (Σ max g_j), hard (Σ [max g_j]₊), squared, or largest."""
    report: bool = True
    """Draw the figures and write arena.html."""
    workers: Annotated[BackendOptions, tyro.conf.arg(name="")] = field(default_factory=BackendOptions)

    def run(self) -> None:
        """Play, rank, print, write."""
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
        found = run_arena(spec, self.out, backend=self.workers.chosen)
        standings = league(found, preference)
        write_tables(found, standings, preference, self.out)
        sys.stdout.write(f"{league_text(found, standings, preference)}tables   {self.out}\n")
        if self.report:
            from longterm.report.arena import write_arena_page
            from longterm.report.frontier import write_frontiers

            write_frontiers(found, preference.measure, self.out / "figures")
            page = write_arena_page(found, standings, preference, self.out / "arena.html")
            sys.stdout.write(f"figures  {self.out / 'figures'}\nreport   {page}\n")
