"""The study: several budgets, several rules, one log, against hindsight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from longterm._arrays import FloatArray
from longterm.pacing.auctions import Auctions
from longterm.pacing.base import Pacer
from longterm.pacing.controller import ProportionalController
from longterm.pacing.hindsight import BestAllocation, best_in_hindsight
from longterm.pacing.history import PriceHistory
from longterm.pacing.mirror_descent import DualMirrorDescent
from longterm.pacing.mixture import PriceMixture
from longterm.pacing.planned import PlannedMirrorDescent
from longterm.pacing.play import Run, play
from longterm.pacing.tuning import tuned_controller

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
class Study:
    """A run of every method, each a batch over the budgets, and the best in hindsight for each budget."""

    auctions: Auctions
    budgets: FloatArray
    runs: dict[str, Run]
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
) -> Study:
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
        runs[name] = play(make(budgets, len(auctions), history), auctions)
    return Study(
        auctions,
        budgets,
        runs,
        [best_in_hindsight(auctions.values, auctions.prices, budget) for budget in budgets],
        [best_in_hindsight(auctions.clicks, auctions.prices, budget) for budget in budgets],
    )


def table(found: Study) -> str:
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
    money = Auctions(auctions.clicks, auctions.prices, auctions.values * worth)
    past = PriceHistory(history.prices, history.counts, history.mean_value * worth)
    budget = float(np.floor(cap * auctions.total_price))
    floors = np.floor(np.asarray(shares) * auctions.total_price)
    pacer = DualMirrorDescent.calibrated(budget, len(money), past, mirror="euclidean", floor=floors, cost_weight=1.0)
    run = play(pacer, money)
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
