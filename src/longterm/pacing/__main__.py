"""Budget pacing on real (or invented) auctions, from the command line.

python -m longterm.pacing --help
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from longterm.errors import InputError
from longterm.pacing.auctions import Auctions, load_auctions, synthetic_auctions
from longterm.pacing.figure import figure
from longterm.pacing.history import PriceHistory, load_history
from longterm.pacing.study import METHODS, floor_table, study, table

EXPLANATION = """\
Requests come one by one. Each shows a predicted click rate; a bid is made; if it is at least the market price, the
ad is shown and that price is paid (second price). The total spent must never exceed the budget, and should not fall far
short of it. Everything is known about yesterday's prices, nothing about today's.

Methods:
  planned              dual mirror descent that spends more on the better requests: bid = value / price of money, and
                       the price moves with what a request cost more than its value let expect
  entropic, euclidean  dual mirror descent: bid = value / price of money; an even plan, ρ for every request
  controller           the hand-written rule: bids go up in proportion to the spend error; its gain is tuned on
                       days drawn from the training histogram
  aogd                 A-OGD on a mixture of prices, with the spend as a long-term constraint (slowest: 20 s)

Columns: used (share of the budget spent), predicted (sum of the predicted click rates won), regret and share of the
best in hindsight (who knew all prices and rates), clicks (those that came; few, so noisy).
"""
WHERE = """\
The log is found in the folder that the environment variable LONGTERM_DATA names, or in ../shared/data beside a
checkout. Without it: --synthetic SEED.

examples:
  python -m longterm.pacing
  python -m longterm.pacing --shares 1/8 --methods entropic controller
  python -m longterm.pacing --synthetic 7 --rounds 20000
"""
FLOOR_SHARES = (0.0, 0.3, 0.5, 0.7)
CAP_OF_FLOORS = 0.9


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m longterm.pacing",
        description=EXPLANATION,
        epilog=WHERE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--shares",
        nargs="+",
        type=_share,
        default=[1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32],
        metavar="SHARE",
        help="budgets, as shares of the price of the whole log (default 1/2 1/4 1/8 1/16 1/32)",
    )
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), help="which rules (default all)"
    )
    parser.add_argument("--gain", type=_positive, help="the controller's gain (default: tuned on the history)")
    parser.add_argument("--trust", type=_positive, help="δ of dual mirror descent's step (default 0.3)")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="put the auctions in random order: no drift")
    parser.add_argument("--log", type=Path, help="another log: lines of click, price, predicted rate; .gz or text")
    parser.add_argument("--history", type=Path, help="another training histogram (JSON)")
    parser.add_argument("--synthetic", type=_seed, metavar="SEED", help="an invented log and history, from this seed")
    parser.add_argument("--rounds", type=int, default=50_000, help="auctions of an invented log (default 50000)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the figure (default results)")
    chosen = parser.parse_args(arguments)
    say = sys.stdout.write
    try:
        auctions, history, name = _data(chosen)
        if chosen.shuffle is not None:
            auctions, name = auctions.shuffled(chosen.shuffle), f"{name}, shuffled"
        options = chosen.shares, chosen.methods, chosen.gain, chosen.trust
        found = study(auctions, history, *options, report=lambda line: say(line + "\n"))
        title = (
            f"{name}: {len(auctions):,} auctions, {auctions.clicks.sum():.0f} clicks, price {auctions.total_price:,.0f}"
        )
        say(f"\n{title}\n{table(found)}\n")
        worth = float(history.counts @ history.prices / history.counts.sum() / history.mean_value)
        say(f"\nProfit with a floor on the spend; a click is worth {worth:,.0f}, what it cost in the past:\n")
        say(floor_table(auctions, history, worth, FLOOR_SHARES, CAP_OF_FLOORS) + "\n\n")
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    chosen.out.mkdir(parents=True, exist_ok=True)
    for path in figure(found, title, chosen.out, k=len(chosen.shares) // 2):
        say(f"wrote {path}\n")
    return 0


def _data(chosen: argparse.Namespace) -> tuple[Auctions, PriceHistory, str]:
    if chosen.synthetic is not None:
        past = synthetic_auctions(chosen.rounds, chosen.synthetic + 1)
        return synthetic_auctions(chosen.rounds, chosen.synthetic), PriceHistory.of(past), "Invented log"
    return (
        load_auctions(chosen.log),
        load_history(chosen.history),
        "iPinYou 2997" if chosen.log is None else str(chosen.log),
    )


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed: give a whole number of at least 0")
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def _share(text: str) -> float:
    """A number or a fraction in (0, 1]."""
    try:
        share = float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        share = 0.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share: give a fraction in (0, 1], for example 1/8")
    return share


if __name__ == "__main__":
    sys.exit(main())
