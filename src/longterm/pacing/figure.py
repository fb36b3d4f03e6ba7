"""The figure: spend over time, the price of money, clicks won, and how near to hindsight each budget came."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from longterm._arrays import FloatArray
from longterm.pacing.study import METHODS, Study

POINTS = 600


def figure(found: Study, title: str, folder: Path, k: int) -> list[Path]:
    """Draw the k-th budget over time, and all budgets beside each other, as PNG, PDF and SVG."""
    from longterm.report.style import publication_style

    T = len(found.auctions)
    kept = np.unique(np.linspace(0, T - 1, min(POINTS, T)).astype(int))
    budget, best = found.budgets[k], found.best[k]
    with publication_style() as plt:
        drawing, ((spend, price), (clicks, budgets)) = plt.subplots(2, 2, figsize=(9.5, 7), layout="constrained")
        even, hindsight = {"color": "0.6", "linewidth": 2.5}, {"color": "0.2", "linestyle": "--"}
        spend.axhline(0.0, label="even line", **even)
        price.axhline(best.price, label="best in hindsight", **hindsight)
        spend.plot(kept + 1, _ahead(found.auctions.prices * best.taken, budget)[kept], **hindsight)
        clicks.plot(kept + 1, np.cumsum(found.auctions.values * best.taken)[kept], **hindsight)
        shares = found.budgets / found.auctions.total_price
        for n, (name, run) in enumerate(found.runs.items()):
            # The two mirrors nearly coincide: the Euclidean one is drawn broad and pale, beneath.
            broad = name == "euclidean"
            line = {"color": f"C{n}", "linewidth": 3.0 if broad else 1.2, "alpha": 0.6 if broad else 1.0}
            style = {**line, "zorder": 2.0 if broad else 2.5, "label": METHODS[name][0]}
            spend.plot(kept + 1, _ahead(run.paid[:, k], budget)[kept], **style)
            price.plot(kept + 1, run.price[kept, k], **style)
            clicks.plot(kept + 1, np.cumsum(found.auctions.values * run.won[:, k])[kept], **style)
            actual = np.cumsum(found.auctions.clicks * run.won[:, k])[kept]
            clicks.plot(kept + 1, actual, color=f"C{n}", linewidth=0.7, alpha=0.7)
            missing = [100 * (1 - v / b.objective) for v, b in zip(run.value, found.best, strict=True)]
            budgets.plot(shares, missing, "o-", markersize=4, **style)
        spend.set(
            xlabel="auction",
            ylabel="ahead of even line, % of budget",
            title=f"Spend over time, budget {budget:,.0f}",
        )
        price.set(xlabel="auction", ylabel="clicks per unit of money", title="The multiplier, as a price")
        price.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        clicks.set(xlabel="auction", ylabel="clicks won", title="Clicks won: predicted (upper), actual (lower, thin)")
        budgets.set(
            xscale="log", yscale="log", xlabel="budget, as a share of the log's total price", ylabel="% below hindsight"
        )
        budgets.set_title("Regret against hindsight, all budgets")
        budgets.set_xticks(shares, [f"1/{round(1 / share)}" for share in shares], minor=False)
        budgets.minorticks_off()
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
        paths = [folder / f"pacing.{ending}" for ending in ("png", "pdf", "svg")]
        for path in paths:
            drawing.savefig(path)
    return paths


def _ahead(paid: FloatArray, budget: float) -> FloatArray:
    """How far the running total is ahead of an even spender's, in per cent of the budget."""
    done = np.arange(1, len(paid) + 1) / len(paid)
    return 100 * (np.cumsum(paid) / budget - done)
