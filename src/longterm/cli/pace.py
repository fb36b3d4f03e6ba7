"""The command `longterm pace`: spend a budget over a log of auctions with two rules."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import tyro

from longterm._base.display import TextTable
from longterm.cli.options import OptionalFile, OptionalFloat, OptionalStr
from longterm.errors import InputError
from longterm.money import (
    Auctions,
    DualMirrorDescent,
    PriceHistory,
    best_in_hindsight,
    replay_auctions,
    synthetic_auctions,
)
from longterm.money.pacing.auctions import Missing
from longterm.money.pacing.base import Pacer
from longterm.money.pacing.planned import PlannedMirrorDescent


@dataclass(frozen=True)
class PaceCommand:
    """Spend a budget over a log of second-price auctions with two rules, and compare with the best in hindsight.

    The first tenth of the log is the history that sets the first bid; the rest is played. examples/pacing.py of the
    repository has more rules and figures.

    for example:
      longterm pace log.csv --values pCTR --prices "market price" --budget 5000
      longterm pace --auctions 5000
    """

    log: tyro.conf.Positional[OptionalFile] = None
    """A CSV file with a header. Default: synthetic auctions."""
    values: str = "value"
    """The name of the column with the value of each request."""
    prices: str = "price"
    """The name of the column with the market prices."""
    clicks: OptionalStr = None
    """The column of clicks. Default: the column click, if there is one."""
    missing: Missing = "drop"
    """drop: leave out rows with an empty cell, with a warning. refuse: stop at the first."""
    budget: OptionalFloat = None
    """The budget, in the units of the prices. Default: --share times the sum of all prices."""
    share: float = 0.125
    """The budget as a share of the sum of all prices, if --budget is not given."""
    auctions: int = 20_000
    """The number of synthetic auctions."""
    seed: int = 0
    """The seed of synthetic auctions."""

    def run(self) -> None:
        """Play the log with each rule and print spend and value."""
        if self.log is None:
            auctions, name = synthetic_auctions(self.auctions, self.seed), "Synthetic auctions"
        else:
            auctions = Auctions.from_csv(
                self.log, values=self.values, prices=self.prices, clicks=self.clicks, missing=self.missing
            )
            name = str(self.log)
        if len(auctions) < 2:
            raise InputError(
                "log",
                f"has {len(auctions)} auctions",
                "Give at least two, because the first tenth only sets the first bid",
            )
        known = max(1, len(auctions) // 10)
        past, day = auctions[:known], auctions[known:]
        budget = self.share * day.total_price if self.budget is None else self.budget
        history = PriceHistory.of(past)
        rules: dict[str, Pacer[Any]] = {
            "dual mirror descent": DualMirrorDescent.calibrated(budget, len(day), history),
            "dual mirror descent, planned": PlannedMirrorDescent.calibrated(budget, len(day), history),
        }
        best = best_in_hindsight(day.values, day.prices, budget)
        runs = {rule: replay_auctions(pacer, day) for rule, pacer in rules.items()}
        totals: dict[str, tuple[Any, Any]] = {rule: (run.spent, run.value) for rule, run in runs.items()}
        totals["best in hindsight"] = (best.spent, best.objective)
        rows = [
            (rule, f"{spent / budget:.1%}", f"{value:.5g}", f"{value / best.objective if best.objective else 1:.1%}")
            for rule, (spent, value) in totals.items()
        ]
        about = f"{len(day):,} auctions after {known:,} that set the first bid; budget {budget:,.6g}"
        table = TextTable(("", "spent", "value won", "of the best"), rows, title=f"{name}\n{about}\n")
        sys.stdout.write(f"{table}\n")
