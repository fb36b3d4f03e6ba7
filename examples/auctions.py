"""First-price auctions and returns on spend, on the log of examples/pacing.py.

First price: a winner pays its own bid. Rules learn how likely a bid wins, from the price of every auction (seen), of
lost ones only (lost), or from the result alone (won). The landscape has `cells` bands of value, or one for all. The
rival without shading bids value / price of money. Shares are of the best in hindsight, which pays the *market* price.
The benchmark `landscape` knows the distribution of prices in every band, and no more.

Return on spend: the value won must be at least `target` times the payments. A click is worth its cost in training.
Rivals: "truthful" bids value / target, and "budget only" ignores the return.

python examples/auctions.py --help
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from longterm.errors import InputError
from longterm.money import (
    Auctions,
    DualMirrorDescent,
    FirstPricePacer,
    PriceHistory,
    ReturnOnSpend,
    best_in_hindsight,
    best_return,
    replay_auctions,
)
from longterm.money.pacing.landscapes import Landscape, LostPrices, SeenPrices, WonOrLost
from pacing import chosen_auctions

CELLS = 20
FloatArray = NDArray[np.float64]


def first_price_pacers(budget: float, T: int, history: PriceHistory, top: float) -> dict[str, FirstPricePacer]:
    """Return the rules, with a first price of money from yesterday's prices."""
    start = history.mean_value / float(history.bid_for(budget / T))
    grid = np.arange(top + 1)
    landscapes: dict[str, Landscape] = {
        "seen, by value": SeenPrices(grid, CELLS),
        "lost only, by value": LostPrices(grid, CELLS),
        "won or lost, by value": WonOrLost(grid, CELLS),
        "seen, one for all": SeenPrices(grid),
    }
    return {
        name: FirstPricePacer(budget, T, landscape, start, 0.01, mean_value=history.mean_value)
        for name, landscape in landscapes.items()
    }


def unshaded(auctions: Auctions, budget: float, start: float) -> tuple[float, float]:
    """Bid value / λ as in second price, and pay it: value won and money spent."""
    price, left, won, T = start, budget, 0.0, len(auctions)
    for t, (value, market) in enumerate(zip(auctions.values.tolist(), auctions.prices.tolist(), strict=True)):
        bid = min(float(np.floor(value / price)), left)
        plan = left / (T - t)
        paid = bid if bid >= market else 0.0
        won += value if bid >= market else 0.0
        left -= paid
        price *= float(np.exp(0.01 * (paid - plan) / plan)) if plan > 0 else 1.0
    return won, budget - left


def first_price_table(
    auctions: Auctions, history: PriceHistory, shares: Sequence[float]
) -> tuple[str, dict[str, list[float]]]:
    """Lines of text, and the shares of hindsight by rule."""
    lines = [f"{'budget':>10}  {'first price':<24}{'used':>9}{'value':>10}{'of hindsight':>14}{'of landscape':>14}"]
    found: dict[str, list[float]] = {}
    top = float(auctions.prices.max())
    for share in shares:
        budget = float(np.floor(auctions.total_price * share))
        pacers = first_price_pacers(budget, len(auctions), history, top)
        best = best_in_hindsight(auctions.values, auctions.prices, budget)
        known = best_first_price(auctions, budget, pacers["seen, by value"])
        runs = {name: replay_auctions(pacer, auctions) for name, pacer in pacers.items()}
        rows = {name: (float(run.value), float(run.spent)) for name, run in runs.items()}
        rows["no shading"] = unshaded(auctions, budget, pacers["seen, by value"].start)
        for name, (value, spent) in rows.items():
            if spent > budget:
                raise AssertionError(f"{name} overspent")
            found.setdefault(name, []).append(value / best.objective)
            lines.append(
                f"{budget:>10.0f}  {name:<24}{spent / budget:>9.2%}{value:>10.2f}"
                f"{value / best.objective:>14.2%}{value / known:>14.2%}"
            )
        gap = best.upper_bound - best.objective
        lines.append(
            f"{budget:>10.0f}  {'hindsight, market price':<24}{'':>9}{best.objective:>10.2f}   (gap {gap:.1e})"
        )
        lines.append(f"{budget:>10.0f}  {'hindsight, landscape':<24}{'':>9}{known:>10.2f}   (upper bound)")
    return "\n".join(lines), found


def best_first_price(auctions: Auctions, budget: float, pacer: FirstPricePacer, prices: int = 40) -> float:
    r"""Bound the value of any bidder that sees values only and knows the landscape of every cell of this log.

    .. math:: \min_{λ ≥ 0} \sum_t \max_b (v_t − λ b) Ĝ_T(b | z_t) + λ \cdot \text{budget}

    Every λ gives an upper bound, and the search makes it tighter. The stronger benchmark `best_in_hindsight` pays the
    market price.

    Parameters
    ----------
    auctions : Auctions
        The log.
    budget : float
        The budget of the bidder.
    pacer : FirstPricePacer
        Its grid and cells are used.
    prices : int
        The number of steps of the search for λ.

    Returns
    -------
    float
        The smallest upper bound found, in units of value.
    """
    bids = pacer.landscape.bids
    cells = pacer.cells(auctions.values)
    groups = []
    for cell in np.unique(cells):
        mine = cells == cell
        law = np.searchsorted(np.sort(auctions.prices[mine]), bids, side="right") / mine.sum()
        values = np.sort(auctions.values[mine])
        groups.append((values, np.append(0.0, np.cumsum(values)), *_worth_bidding(bids, law)))

    def dual(price: float) -> float:
        total = price * budget
        for values, sums, chance, cost, turns in groups:
            # The best bid for a value depends on the interval of `turns` in which v/λ lies.
            cuts = np.concatenate([[0], np.searchsorted(values, price * turns), [len(values)]])
            total += float(chance @ np.diff(sums[cuts]) - price * (cost @ np.diff(cuts)))
        return total

    low, high = 0.0, float(auctions.values.max()) / max(float(bids[1]), 1e-300)
    golden = (np.sqrt(5.0) - 1) / 2
    # A golden-section search on a logarithmic scale.
    left, right = np.log(high) - 20.0, np.log(high)
    a, b = right - golden * (right - left), left + golden * (right - left)
    at_a, at_b = dual(float(np.exp(a))), dual(float(np.exp(b)))
    best = min(at_a, at_b, dual(low))
    for _ in range(prices):
        if at_a < at_b:
            right, b, at_b = b, a, at_a
            a = right - golden * (right - left)
            at_a = dual(float(np.exp(a)))
        else:
            left, a, at_a = a, b, at_b
            b = left + golden * (right - left)
            at_b = dual(float(np.exp(b)))
        best = min(best, at_a, at_b)
    return best


def _worth_bidding(bids: FloatArray, law: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return chances G(b) and costs b G(b) of the bids that are best for some value, and the ratios between them.

    v G(b) − λ b G(b) is largest on the lower convex hull of the points (G(b), b G(b)), where its slope is v/λ.
    """
    hull: list[tuple[float, float]] = []
    turns: list[float] = []
    for chance, cost in zip(law.tolist(), (bids * law).tolist(), strict=True):
        if hull and chance <= hull[-1][0]:
            continue  # it wins no more and costs more
        while hull:
            turn = (cost - hull[-1][1]) / (chance - hull[-1][0])
            if not turns or turn > turns[-1]:
                turns.append(turn)
                break
            hull.pop()
            turns.pop()
        hull.append((chance, cost))
    chances, costs = np.array(hull).T
    return chances, costs, np.array(turns)


def truthful(auctions: Auctions, target: float, budget: float | None) -> tuple[float, float]:
    """Bid value / target while there is money, which keeps the return in every auction: value won and money spent."""
    limit = np.inf if budget is None else budget
    value = spent = 0.0
    for worth, market in zip(auctions.values.tolist(), auctions.prices.tolist(), strict=True):
        if min(worth / target, limit - spent) >= market:
            value, spent = value + worth, spent + market
    return value, spent


def return_table(
    auctions: Auctions, history: PriceHistory, worth: float, targets: Sequence[float], share: float
) -> tuple[str, dict[str, FloatArray]]:
    """Second price with a return on spend, with and without a budget."""
    money = Auctions(auctions.values * worth, auctions.prices, auctions.clicks)
    lines = [
        f"{'target':>6}{'budget':>10}  {'second price':<12}{'spent':>10}{'value':>12}{'of hindsight':>14}"
        f"{'return':>8}{'worst slack':>13}{'its bound':>11}"
    ]
    slacks: dict[str, FloatArray] = {}
    v, p, T = float(money.values.max()), float(money.prices.max()), len(money)
    for target in targets:
        for budget in (None, float(np.floor(money.total_price * share))):
            best = best_return(money.values, money.prices, target, budget)
            name = "none" if budget is None else f"{budget:.0f}"
            for rule in ("joint", "guarded"):
                pacer = ReturnOnSpend(target, T, v, p, budget=budget, rule=rule)
                run = replay_auctions(pacer, money)
                slack, spent, value, bound = (
                    pacer.slack(run),
                    float(run.spent),
                    float(run.value),
                    pacer.violation_bound(),
                )
                if -slack.min() > bound + 1e-6 or (budget is not None and spent > budget):
                    raise AssertionError(f"{rule} exceeds its bound")
                slacks[f"{rule}, target {target:g}, budget {name}"] = slack
                lines.append(
                    f"{target:>6g}{name:>10}  {rule:<12}{spent:>10.0f}{value:>12.0f}{value / best.value:>14.2%}"
                    f"{value / max(spent, 1e-9):>8.3f}{slack.min():>13.0f}{0.0 - bound:>11.0f}"
                )
            if budget is not None:  # a pacer that never heard of the return
                paced = replay_auctions(DualMirrorDescent.calibrated(budget, T, history), auctions)
                spent, value = float(paced.spent), float(paced.value) * worth
                worst = float(np.cumsum(money.values * paced.won / target - paced.paid).min())
                lines.append(
                    f"{target:>6g}{name:>10}  {'budget only':<12}{spent:>10.0f}{value:>12.0f}"
                    f"{value / best.value:>14.2%}{value / max(spent, 1e-9):>8.3f}{worst:>13.0f}"
                )
            value, spent = truthful(money, target, budget)
            lines.append(
                f"{target:>6g}{name:>10}  {'truthful':<12}{spent:>10.0f}{value:>12.0f}{value / best.value:>14.2%}"
                f"{value / max(spent, 1e-9):>8.3f}"
            )
            lines.append(
                f"{target:>6g}{name:>10}  {'hindsight':<12}{float(money.prices @ best.taken):>10.0f}{best.value:>12.0f}"
                f"   (gap {best.upper_bound - best.value:.1e})"
            )
    return "\n".join(lines), slacks


def figure(found: dict[str, list[float]], shares: Sequence[float], slacks: dict[str, FloatArray], out: Path) -> Path:
    """Shares of hindsight by budget, and the slack of the return over time, without a budget and with one."""
    from longterm.lab.report.style import curve_style, publication_style, set_plain_ticks

    with publication_style() as plt:
        drawing, (left, *panels) = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained")
        for n, (name, values) in enumerate(found.items()):
            left.plot(
                shares,
                [100 * v for v in values],
                color=curve_style(n).colour,
                marker=curve_style(n).marker,
                markersize=5,
                label=name,
            )
        left.set(xscale="log", xlabel="budget, share of the log's price", ylabel="value, % of hindsight")
        left.set_title("first price")
        set_plain_ticks(left.xaxis)
        rules = list(dict.fromkeys(name.split(", ")[0] for name in slacks))
        targets = list(dict.fromkeys(name.split(", ")[1] for name in slacks))
        for name, slack in slacks.items():
            rule, target, budget = name.split(", ")
            panel = panels[budget != "budget none"]
            dashes = ("-", "--", ":", "-.")[targets.index(target) % 4]
            line = {"color": curve_style(rules.index(rule)).colour, "linestyle": dashes}
            every = max(len(slack) // 2000, 1)  # more points than pixels only take time
            panel.plot(np.arange(len(slack))[::every], slack[::every], linewidth=1.0, label=f"{rule}, {target}", **line)
            panel.set_title("return on spend, " + ("no budget" if budget == "budget none" else budget))
        for panel in panels:
            panel.axhline(0.0, color="black", linewidth=0.5)
            panel.set(xlabel="auction", yscale="symlog")
            for axis in (panel.xaxis, panel.yaxis):
                axis.set_major_formatter(lambda value, _: f"{value:,.0f}".replace("-", "−"))
            panel.xaxis.set_major_locator(plt.MaxNLocator(4))  # numbers of seven letters fit
        panels[0].set_ylabel("worth won / target − paid")
        # Below the panels: a legend inside would lie on the curves.
        drawing.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=2, fontsize=8, frameon=False)
        handles = panels[0].get_legend_handles_labels()
        drawing.legend(*handles, loc="outside lower right", ncols=3, fontsize=8, frameon=False)
        out.mkdir(parents=True, exist_ok=True)
        path = out / "auctions.png"
        drawing.savefig(path, dpi=150, metadata={"Software": None})
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both studies and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--shares", nargs="+", type=float, default=[1 / 2, 1 / 8, 1 / 32], help="budgets, of the log's price"
    )
    parser.add_argument("--targets", nargs="+", type=float, default=[2.0, 4.0], help="returns asked for")
    parser.add_argument(
        "--log",
        type=Path,
        help="your own: a CSV with columns value, price, click; or lines of click, price, predicted rate",
    )
    parser.add_argument("--synthetic", type=int, metavar="SEED", help="an invented log instead")
    parser.add_argument("--rounds", type=int, default=20_000, help="of an invented log")
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args(arguments)
    try:
        auctions, history, _ = chosen_auctions(chosen.log, None, chosen.synthetic, chosen.rounds)
        text, found = first_price_table(auctions, history, chosen.shares)
        sys.stdout.write(text + "\n\n")
        worth = float(history.counts @ history.prices / history.counts.sum() / history.mean_value)
        text, slacks = return_table(auctions, history, worth, chosen.targets, 1 / 8)
        sys.stdout.write(f"A click is worth {worth:,.0f}.\n{text}\n")
        sys.stdout.write(f"wrote {figure(found, chosen.shares, slacks, chosen.out)}\n")
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
