"""Replay a log of auctions under a budget with two rules: python -m longterm.pacing.

examples/pacing.py of the repository has more rules and figures. docs/pacing.md has their guarantees.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from longterm.errors import InputError, LongtermError
from longterm.pacing.auctions import Auctions, synthetic_auctions
from longterm.pacing.base import Pacer
from longterm.pacing.hindsight import best_in_hindsight
from longterm.pacing.history import PriceHistory
from longterm.pacing.mirror_descent import DualMirrorDescent
from longterm.pacing.planned import PlannedMirrorDescent
from longterm.pacing.play import play


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay a log with two rules and print the spend and value of each; return 2 on errors of the user."""
    given = _parser().parse_args(arguments)
    try:
        sys.stdout.write(_table(given))
    except LongtermError as error:
        sys.stderr.write(f"longterm: {error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m longterm.pacing",
        description="Spend a budget over a log of second-price auctions with two rules, beside the best in hindsight. "
        "The first tenth of the log is the history; the rest is played.",
    )
    parser.add_argument("log", nargs="?", help="a CSV file with a header (default: synthetic auctions)")
    parser.add_argument("--values", default="value", help="the column of the values of requests")
    parser.add_argument("--prices", default="price", help="the column of the market prices")
    parser.add_argument("--clicks", help="the column of clicks (default: click, if there is one)")
    parser.add_argument("--budget", type=float, help="in the units of the prices (default: --share of their sum)")
    parser.add_argument("--share", type=float, default=0.125, help="budget as a share of the total price")
    parser.add_argument("--auctions", type=int, default=20_000, help="number of synthetic auctions")
    parser.add_argument("--seed", type=int, default=0, help="seed of synthetic auctions")
    return parser


def _table(given: argparse.Namespace) -> str:
    if given.log is None:
        auctions, name = synthetic_auctions(given.auctions, given.seed), "Synthetic auctions: name your log to play it"
    else:
        auctions = Auctions.from_csv(given.log, values=given.values, prices=given.prices, clicks=given.clicks)
        name = str(given.log)
    if len(auctions) < 2:
        raise InputError("log", f"has {len(auctions)} auctions", "Give at least two: the first tenth is not played")
    known = max(1, len(auctions) // 10)
    past, day = auctions[:known], auctions[known:]
    budget = given.share * day.total_price if given.budget is None else given.budget
    history = PriceHistory.of(past)
    rules: dict[str, Pacer[Any]] = {
        "dual mirror descent": DualMirrorDescent.calibrated(budget, len(day), history),
        "dual mirror descent, planned": PlannedMirrorDescent.calibrated(budget, len(day), history),
    }
    best = best_in_hindsight(day.values, day.prices, budget)
    lines = [name, f"{len(day):,} auctions after {known:,} that set the first bid; budget {budget:,.6g}", ""]
    lines.append(f"{'':<30}{'spent':>10}{'value won':>12}{'of the best':>13}")
    for rule, pacer in rules.items():
        run = play(pacer, day)
        share = run.value / best.objective if best.objective else 1.0
        lines.append(f"{rule:<30}{run.spent / budget:>10.1%}{run.value:>12.5g}{share:>13.1%}")
    lines.append(f"{'best in hindsight':<30}{best.spent / budget:>10.1%}{best.objective:>12.5g}{1:>13.1%}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
