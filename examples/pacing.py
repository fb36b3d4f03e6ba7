"""Budget pacing on real (or invented) auctions.

Requests come one by one. Each shows a predicted click rate; a bid is made; if it is at least the market price, the
ad is shown and that price is paid (second price). The total spent must never exceed the budget, and should not fall far
short of it. Everything is known about yesterday's prices, nothing about today's.

The log is campaign 2997 of iPinYou, in the folder that the environment variable LONGTERM_DATA names. A line of it is
one auction: whether the ad was clicked (0 or 1), the market price (the highest bid of the others) and the click rate
that a model predicted from the request. docs/guides/pacing.md has the rules and what they promise.

python examples/pacing.py --help
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longterm.cli import run_function
from longterm.errors import InputError
from longterm.lab.report.style import publication_style, save_figure, set_plain_ticks
from longterm.money import (
    Auctions,
    DualMirrorDescent,
    Pacer,
    PlannedMirrorDescent,
    PriceHistory,
    best_in_hindsight,
    replay_auctions,
    synthetic_auctions,
)
from longterm.money.pacing.auction_replay import PacingRun
from longterm.money.pacing.best_allocation import BestAllocation
from pacing_baselines import PriceMixture, ProportionalController, tuned_controller

LOG = "ipinyou_2997_test.theta.txt.gz"
"""The test log of campaign 2997 of iPinYou: 156,063 auctions, 530 clicks, total price 8,617,148."""
INFO = "ipinyou_2997_info.json"
"""Totals and price histogram of the 312,437 training auctions of the same campaign."""
FLOOR_SHARES = (0.0, 0.3, 0.5, 0.7)
CAP_OF_FLOORS = 0.9

# The data


def find_data(name: str, path: str | Path | None = None) -> Path:
    """Return the file `name`: at `path`, or in the folder that LONGTERM_DATA names."""
    found = Path(os.environ.get("LONGTERM_DATA", "."), name) if path is None else Path(path)
    if found.is_file():
        return found
    raise InputError(
        "path",
        f"no file at {found}",
        f"Get {name} (the test log of iPinYou campaign 2997 is data/ipinyou-data/2997/test.theta.txt of the GitHub "
        f"repository han-cai/rlb-dp, its totals are info.json beside it), put it into a folder and name that folder "
        f"in the environment variable LONGTERM_DATA, or pass path=; --synthetic SEED needs no file",
    )


def load_auctions(path: str | Path | None = None) -> Auctions:
    """Read a log (gzip or plain text), by default the real one; a bad line is an error that names it."""
    found = find_data(LOG, path)
    opened = gzip.open if found.suffix == ".gz" else open
    rows: list[tuple[float, float, float]] = []
    try:
        with opened(found, "rt", encoding="ascii") as lines:
            rows.extend(_parsed(line, found, number) for number, line in enumerate(lines, start=1))
    except (EOFError, OSError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(
            "path",
            f"{found} cannot be read after line {len(rows)} ({error})",
            "The file is cut off or damaged: get it again",
        ) from None
    if not rows:
        raise InputError("path", f"{found} is empty", "Get the file again")
    clicks, prices, values = np.asarray(rows).T
    return Auctions(values, prices, clicks)


def _parsed(line: str, file: Path, number: int) -> tuple[float, float, float]:
    fields = line.split()
    try:
        click, price, value = (float(field) for field in fields)
    except ValueError:
        reason = f"has {len(fields)} fields, not 3" if len(fields) != 3 else f"{line.strip()!r} is not three numbers"
    else:
        if click not in (0.0, 1.0):
            reason = f"click is {fields[0]}, not 0 or 1"
        elif not 0 <= price < float("inf"):
            reason = f"price is {fields[1]}"
        elif not 0 <= value <= 1:
            reason = f"predicted click rate is {fields[2]}, not in [0, 1]"
        elif not line.endswith("\n"):
            reason = "is cut off: it does not end in a newline"
        else:
            return click, price, value
    raise InputError("path", f"{file}, line {number}: {reason}", "Each line holds: click price rate")


def chosen_auctions(
    log: Path | None, history: Path | None, synthetic: int | None, rounds: int
) -> tuple[Auctions, PriceHistory, str]:
    """Return the auctions, the history before them and a name: of the log, or synthetic ones without a log.

    A log of one's own without a history gives its first tenth for it, which is then not played.
    """
    if synthetic is None and log is None and not Path(os.environ.get("LONGTERM_DATA", "."), LOG).is_file():
        sys.stdout.write(f"No {LOG} where LONGTERM_DATA says: these auctions are invented. --log takes your own.\n")
        synthetic = 0
    if synthetic is not None:
        if synthetic < 0:
            raise InputError("synthetic", f"{synthetic} is not a seed", "Give a whole number of at least 0")
        auctions, past = (synthetic_auctions(rounds, synthetic + k) for k in (0, 1))
        return auctions, PriceHistory.of(past), "Invented log"
    auctions = Auctions.from_csv(log) if log is not None and log.suffix == ".csv" else load_auctions(log)
    if log is None or history is not None:
        return auctions, load_history(history), "iPinYou 2997" if log is None else str(log)
    known = max(1, len(auctions) // 10)
    past, rest = auctions[:known], auctions[known:]
    return rest, PriceHistory.of(past), str(log)


def load_history(path: str | Path | None = None) -> PriceHistory:
    """Return the training histogram of the real campaign; mean value = training clicks / training auctions."""
    found = find_data(INFO, path)
    try:
        facts = json.loads(found.read_text(encoding="utf-8"))
        counts = np.asarray(facts["price_counter_train"], dtype=np.float64)
        return PriceHistory(np.arange(float(len(counts))), counts, facts["clk_train"] / facts["imp_train"])
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise InputError(
            "path",
            f"{found} is not a campaign's totals ({error!r})",
            "It needs price_counter_train, clk_train, imp_train",
        ) from None


# The study

Maker = Callable[..., Pacer[Any]]
"""From budgets, T and the history."""

METHODS: dict[str, tuple[str, Maker]] = {
    "planned": ("dual mirror descent, planned", PlannedMirrorDescent.calibrated),
    "entropic": ("dual mirror descent, entropic", partial(DualMirrorDescent.calibrated, mirror="entropic")),
    "euclidean": ("dual mirror descent, Euclidean", partial(DualMirrorDescent.calibrated, mirror="euclidean")),
    "controller": ("proportional controller", tuned_controller),
    "aogd": ("A-OGD on a mixture of prices", PriceMixture.calibrated),
}
"""By the name on the command line: the name in the table, and how it is made from budgets, T and the history."""
FROM_A_TRUSTED_START = ("planned", "entropic", "euclidean")
"""Those whose step comes from δ, how far the first price is trusted."""


@dataclass(frozen=True)
class PacingStudy:
    """A run of every method, each a batch over the budgets, and the best in hindsight for each budget."""

    auctions: Auctions
    budgets: NDArray[np.float64]
    runs: dict[str, PacingRun]
    best: list[BestAllocation]
    """For the predicted values."""
    clairvoyant: list[BestAllocation]
    """For the clicks themselves: what somebody who knows who will click could buy."""


def study(
    auctions: Auctions,
    history: PriceHistory,
    shares: Sequence[float],
    methods: Sequence[str],
    gain: float | None = None,
    trust: float | None = None,
    report: Callable[[str], object] = lambda line: None,
) -> PacingStudy:
    """Play every method under every budget (a share of the log's total price, in whole units of money).

    `gain` is the controller's; None: tuned on the history. `trust` is δ of dual mirror descent; None: its default.
    """
    budgets = np.floor(np.asarray(shares) * auctions.total_price)
    runs = {}
    for name in methods:
        title, make = METHODS[name]
        if name == "controller" and gain is not None:
            make = partial(ProportionalController.calibrated, gain=gain)
        if name in FROM_A_TRUSTED_START and trust is not None:
            make = partial(make, trust=trust)
        report(f"playing {len(auctions):,} auctions × {len(budgets)} budgets: {title}")
        runs[name] = replay_auctions(make(budgets, len(auctions), history), auctions)
    return PacingStudy(
        auctions,
        budgets,
        runs,
        [best_in_hindsight(auctions.values, auctions.prices, budget) for budget in budgets],
        [best_in_hindsight(auctions.clicks, auctions.prices, budget) for budget in budgets],
    )


def table(found: PacingStudy) -> str:
    """Budget used, predicted and actual clicks won, and the regret against hindsight."""
    lines = [
        f"{'budget':>10}  {'method':<32}{'used':>8}{'predicted':>11}{'regret':>9}{'of best':>9}{'clicks':>8}",
    ]
    for k, (budget, best) in enumerate(zip(found.budgets, found.best, strict=True)):
        for name, run in found.runs.items():
            value = run.value[k]
            lines.append(
                f"{budget:>10.0f}  {METHODS[name][0]:<32}{run.spent[k] / budget:>8.2%}{value:>11.2f}"
                f"{best.objective - value:>9.2f}{value / best.objective:>9.2%}{run.clicks[k]:>8.0f}"
            )
        clicks = float(found.auctions.clicks @ best.taken)
        lines.append(
            f"{budget:>10.0f}  {'best in hindsight':<32}{best.spent / budget:>8.2%}{best.objective:>11.2f}"
            f"{0:>9.2f}{1:>9.2%}{clicks:>8.0f}  (who knows the clicks: {found.clairvoyant[k].objective:.0f})"
        )
    return "\n".join(lines)


def floor_table(auctions: Auctions, history: PriceHistory, worth: float, shares: Sequence[float], cap: float) -> str:
    """Profit with a floor: a click is worth `worth` units of money, and at least each share of the price must be spent.

    Values are in money and κ = 1, so that money not spent is kept; without a floor the best is to bid one's value.
    """
    money = Auctions(auctions.values * worth, auctions.prices, auctions.clicks)
    past = PriceHistory(history.prices, history.counts, history.mean_value * worth)
    budget = float(np.floor(cap * auctions.total_price))
    floors = np.floor(np.asarray(shares) * auctions.total_price)
    pacer = DualMirrorDescent.calibrated(budget, len(money), past, mirror="euclidean", floor=floors, cost_weight=1.0)
    run = replay_auctions(pacer, money)
    lines = [
        f"{'floor':>10}{'spent':>12}{'missed by':>11}{'profit':>12}{'best':>12}{'last price':>12}{'its price':>11}"
    ]
    for k, floor in enumerate(floors):
        best = best_in_hindsight(money.values, money.prices, budget, floor=float(floor), cost_weight=1.0)
        spent = float(run.spent[k])
        lines.append(
            f"{floor:>10.0f}{spent:>12.0f}{max(floor - spent, 0):>11.0f}{run.value[k] - spent:>12.0f}"
            f"{best.objective:>12.0f}{run.price[-1, k]:>12.3f}{best.price:>11.3f}"
        )
    return "\n".join(lines)


# The figure

POINTS = 600


def figure(found: PacingStudy, title: str, folder: Path, k: int) -> list[Path]:
    """Draw the k-th budget over time, and all budgets beside each other, as PNG, PDF and SVG."""
    T = len(found.auctions)
    kept = np.unique(np.linspace(0, T - 1, min(POINTS, T)).astype(int))
    budget, best = found.budgets[k], found.best[k]
    with publication_style() as plt:
        drawing, ((spend, price), (clicks, budgets)) = plt.subplots(2, 2, figsize=(9.5, 7), layout="constrained")
        even, hindsight = {"color": "0.6", "linewidth": 2.5}, {"color": "0.2", "linestyle": "--"}
        spend.axhline(0.0, label="even line", **even)
        price.axhline(best.price, label="best in hindsight", **hindsight)
        spend.plot(kept + 1, _above_even(found.auctions.prices * best.taken, budget)[kept], **hindsight)
        clicks.plot(kept + 1, np.cumsum(found.auctions.values * best.taken)[kept], **hindsight)
        shares = found.budgets / found.auctions.total_price
        for n, (name, run) in enumerate(found.runs.items()):
            # The two mirrors nearly coincide: the Euclidean one is drawn broad and pale, beneath.
            broad = name == "euclidean"
            line = {"color": f"C{n}", "linewidth": 3.0 if broad else 1.2, "alpha": 0.6 if broad else 1.0}
            style = {**line, "zorder": 2.0 if broad else 2.5, "label": METHODS[name][0]}
            spend.plot(kept + 1, _above_even(run.paid[:, k], budget)[kept], **style)
            price.plot(kept + 1, run.price[kept, k], **style)
            clicks.plot(kept + 1, np.cumsum(found.auctions.values * run.won[:, k])[kept], **style)
            actual = np.cumsum(found.auctions.clicks * run.won[:, k])[kept]
            clicks.plot(kept + 1, actual, color=f"C{n}", linewidth=0.7, alpha=0.7)
            missing = [100 * (1 - v / b.objective) for v, b in zip(run.value, found.best, strict=True)]
            budgets.plot(shares, missing, "o-", markersize=4, **style)
        spend.set(
            xlabel="auction",
            ylabel="above even spending, % of budget",
            title=f"Spend over time, budget {budget:,.0f}",
        )
        # One method that is far off would press the others flat: linear up to ±2 %, logarithmic beyond.
        spend.set_yscale("symlog", linthresh=2.0, linscale=2.0)
        spend.yaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "−"))
        price.set(xlabel="auction", ylabel="clicks per unit of money", title="The multiplier, as a price")
        price.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        clicks.set(xlabel="auction", ylabel="clicks won", title="Clicks won: predicted (upper), actual (lower, thin)")
        budgets.set(
            xscale="log", yscale="log", xlabel="budget, as a share of the log's total price", ylabel="% below hindsight"
        )
        budgets.set_title("Regret against hindsight, all budgets")
        budgets.set_xticks(shares, [f"1/{round(1 / share)}" for share in shares], minor=False)
        budgets.minorticks_off()
        set_plain_ticks(budgets.yaxis)
        for axis in (spend, price, clicks, budgets):
            axis.grid(visible=True, alpha=0.3)
        for axis in (spend, price, clicks):
            axis.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}")
        handles, labels = spend.get_legend_handles_labels()
        more = price.get_legend_handles_labels()
        drawing.legend(
            [*handles, more[0][0]], [*labels, more[1][0]], loc="outside lower center", ncols=3, frameon=False
        )
        drawing.suptitle(title)
        return save_figure(drawing, folder, "pacing")


def _above_even(paid: NDArray[np.float64], budget: float) -> NDArray[np.float64]:
    """Return the running total less that of an even spender, in per cent of the budget."""
    done = np.arange(1, len(paid) + 1) / len(paid)
    return 100 * (np.cumsum(paid) / budget - done)


# The command

Method = Literal["planned", "entropic", "euclidean", "controller", "aogd"]


def pacing(
    shares: tuple[str, ...] = ("1/2", "1/4", "1/8", "1/16", "1/32"),
    methods: tuple[Method, ...] = ("planned", "entropic", "euclidean", "controller", "aogd"),
    gain: float | None = None,
    trust: float | None = None,
    shuffle: int | None = None,
    shock: float | None = None,
    log: Path | None = None,
    history: Path | None = None,
    synthetic: int | None = None,
    rounds: int = 50_000,
    out: Path = Path("results"),
) -> None:
    """Spend a budget over a day of auctions, by several rules: a table beside the best in hindsight, and a figure.

    planned: dual mirror descent that spends more on the better requests; the price of money moves with what a request
    cost more than its value let expect. entropic, euclidean: dual mirror descent, bid = value / price of money, with
    an even plan. controller: bids go up in proportion to the spend error; its gain is tuned on days drawn from the
    training histogram. aogd: A-OGD on a mixture of prices, with the spend as a long-term constraint (slowest: 20 s).

    Columns: used (share of the budget spent), predicted (sum of the predicted click rates won), regret and share of the
    best in hindsight (who knew all prices and rates), clicks (those that came; few, so noisy).

    Parameters
    ----------
    shares
        Budgets, as shares of the price of the whole log: numbers or fractions in (0, 1].
    methods
        Which rules.
    gain
        The controller's gain. Left out: tuned on the history.
    trust
        δ of dual mirror descent's step. Left out: 0.3.
    shuffle
        A seed that puts the auctions in random order: no drift.
    shock
        A factor of the values in the second half of the log.
    log
        Your own: a CSV file with the columns value and price, and click where it is known; or lines of click, price,
        predicted rate, .gz or text.
    history
        A training histogram (JSON). Left out with a log of your own: its first tenth, which is then not played.
    synthetic
        A seed for an invented log and history; no file is needed. Left out, and no data here: 0.
    rounds
        Auctions of an invented log.
    out
        Folder for the figure.
    """
    budgets = [_share(text) for text in shares]
    for name, value in (("gain", gain), ("trust", trust), ("shock", shock)):
        if value is not None and not 0 < value < float("inf"):
            raise InputError(name, f"{value} is not positive", f"Give a {name} above 0")
    auctions, prices, name = chosen_auctions(log, history, synthetic, rounds)
    if shuffle is not None:
        auctions, name = auctions.shuffled(shuffle), f"{name}, shuffled"
    if shock is not None:
        factor = np.where(np.arange(len(auctions)) < len(auctions) // 2, 1.0, shock)
        auctions = Auctions(auctions.values * factor, auctions.prices, auctions.clicks)
        name = f"{name}, second half worth {shock:g} times as much"
    say = sys.stdout.write
    found = study(auctions, prices, budgets, methods, gain, trust, report=lambda line: say(line + "\n"))
    title = f"{name}: {len(auctions):,} auctions, {auctions.clicks.sum():.0f} clicks, price {auctions.total_price:,.0f}"
    say(f"\n{title}\n{table(found)}\n")
    worth = float(prices.counts @ prices.prices / prices.counts.sum() / prices.mean_value)
    say(f"\nProfit with a floor on the spend; a click is worth {worth:,.0f}, what it cost in the past:\n")
    say(floor_table(auctions, prices, worth, FLOOR_SHARES, CAP_OF_FLOORS) + "\n\n")
    for path in figure(found, title, out, k=len(budgets) // 2):
        say(f"wrote {path}\n")


def _share(text: str) -> float:
    """A number or a fraction in (0, 1]."""
    try:
        share = float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        share = 0.0
    if not 0 < share <= 1:
        raise InputError("shares", f"{text!r} is not a share", "Give a fraction in (0, 1], for example 1/8")
    return share


if __name__ == "__main__":
    sys.exit(run_function(pacing))
