"""A flexible load under a yearly carbon budget, planned hour by hour, a day ahead.

A house has solar panels and a load that may run at any hour, so many kWh every day (a car, a boiler). Each evening
the 24 hours of the next day are planned; price, carbon intensity of the grid, the house's own load and the sun are seen
only afterwards. What the sun does not cover is bought, at the hour's price and with the hour's carbon; what it leaves
over is worth nothing. The carbon of the year must stay within a budget, and the bill should be small.

    f_t(x) = Σ_h price_h ([x_h + net_h]₊ − [net_h]₊),     g_t(x) = Σ_h carbon_h ([x_h + net_h]₊ − [net_h]₊) − budget

x_t is in the simplex of that many kWh, net is load less sun, the budget that of a day. Today is the forecast of
tomorrow (day-ahead persistence). The data are one year of one building of the CityLearn challenge 2022
(`citylearn-2022.csv.gz`), in the folder that the environment variable LONGTERM_DATA names.

python examples/flexible_load.py --help
"""

from __future__ import annotations

import csv
import gzip
import os
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from longterm import Problem, observe
from longterm._arrays import FloatArray
from longterm.cli import run_function
from longterm.constraints import CustomConstraint
from longterm.errors import InputError
from longterm.learners import AOGD, DriftPlusPenalty, HedgedCuts, HintedCuts, LastGradient, Learner, NoHint
from longterm.losses import CustomLoss
from longterm.report.style import publication_style, save_figure
from longterm.sets import Simplex

FILE, HOURS = "citylearn-2022.csv.gz", 24


@dataclass(frozen=True, eq=False)
class Year:
    """Day by day, hour by hour: shape (days, 24)."""

    price: FloatArray
    carbon: FloatArray
    net: FloatArray
    """The house's own load less what the sun gives, kWh."""


@dataclass(frozen=True)
class Outcome:
    """What a plan of the whole year cost beyond the house's own load."""

    money: float
    carbon: float
    days: FloatArray
    """Money and carbon added up, day after day: (days, 2)."""


def read(folder: Path, panels: float) -> Year:
    """The year as it was, with so many kW of panels."""
    path = folder / FILE
    if not path.exists():
        raise InputError("LONGTERM_DATA", f"{path} is not there", f"Name the folder that holds {FILE}")
    with gzip.open(path, "rt") as lines:
        rows = list(csv.DictReader(lines))
    first = next(i for i, row in enumerate(rows) if int(row["hour"]) == 1)
    days = (len(rows) - first) // HOURS

    def column(name: str) -> FloatArray:
        values = np.array([float(row[name]) for row in rows[first : first + days * HOURS]])
        return values.reshape(days, HOURS)

    return Year(column("price"), column("carbon"), column("load") - panels * column("solar") / 1000)


def bought(x: Any, net: Any) -> Any:
    """KWh from the grid that the plan adds, hour by hour."""
    return np.maximum(x + net, 0.0) - np.maximum(net, 0.0)


def game(year: Year, energy: float, budget: float) -> Problem:
    """The problem of one day; its parameters are the hour's rates and the net load."""

    def added(x: Any, rate: Any, net: Any) -> Any:
        return np.sum(rate * bought(x, net), axis=-1)

    def slope(x: Any, rate: Any, net: Any) -> Any:
        return rate * (x + net > 0)

    most_money, most_carbon = float(year.price.max()), float(year.carbon.max())
    steepest = [float(np.linalg.norm(rates, axis=1).max()) for rates in (year.price, year.carbon)]
    shapes = {"net": (HOURS,)}
    loss = CustomLoss(HOURS, added, slope, steepest[0], most_money * energy, parameters={"price": (HOURS,), **shapes})
    limit = CustomConstraint(
        HOURS,
        lambda x, rate, net: added(x, rate, net) - budget,
        slope,
        steepest[1],
        max(most_carbon * energy - budget, budget),
        parameters={"carbon": (HOURS,), **shapes},
    )
    return Problem(Simplex(HOURS, total=energy), loss, limit, name="a flexible load")


def outcome(year: Year, plans: FloatArray) -> Outcome:
    """Of a plan for every day."""
    extra = bought(plans, year.net)
    days = np.cumsum(np.stack([(year.price * extra).sum(axis=1), (year.carbon * extra).sum(axis=1)], axis=1), axis=0)
    return Outcome(float(days[-1, 0]), float(days[-1, 1]), days)


def played(problem: Problem, year: Year, learner: Learner[Any]) -> FloatArray:
    """The plans of a learner, day after day."""
    state, plans = learner.init(), []
    for price, carbon, net in zip(year.price, year.carbon, year.net, strict=True):
        plans.append(learner.ask(state))
        state = learner.tell(state, observe(problem, plans[-1], [price, net], [carbon, net]))
    return np.array(plans)


def thumb_rules(year: Year, energy: float) -> dict[str, FloatArray]:
    """What one would do without a learner."""
    days = len(year.price)

    def hours(chosen: range | list[int]) -> FloatArray:
        plan = np.zeros(HOURS)
        plan[list(chosen)] = energy / len(chosen)
        return np.tile(plan, (days, 1))

    # Yesterday's best hours for money: fill what the sun left over, then the cheapest hours.
    yesterday = np.zeros((days, HOURS))
    yesterday[0] = energy / HOURS
    for t in range(1, days):
        yesterday[t] = greedy(year.price[t - 1], year.net[t - 1], energy)
    return {
        "evenly over the day": hours(range(HOURS)),
        "at night, 0 to 6": hours(range(6)),
        "at noon, 10 to 15": hours(range(10, 15)),
        "what was cheapest yesterday": yesterday,
    }


def greedy(rate: FloatArray, net: FloatArray, energy: float) -> FloatArray:
    """The least of one day's rates: the sun's surplus first, the rest in the best hour."""
    plan, left = np.zeros(HOURS), energy
    for hour in np.argsort(net):
        used = min(left, max(-net[hour], 0.0))
        plan[hour] += used
        left -= used
    plan[int(np.argmin(rate))] += left
    return plan


def in_hindsight(year: Year, energy: float, budget: float | None, *, fixed: bool, least: str = "price") -> FloatArray:
    """The cheapest plans within the year's budget: one for all days, or one for each day (a linear program).

    With no budget, the plan of least money, or of least carbon.
    """
    cp: Any = import_module("cvxpy")

    days = len(year.price)
    x = cp.Variable((1, HOURS) if fixed else (days, HOURS), nonneg=True)
    every = np.ones((days, 1)) @ x if fixed else x
    extra = cp.pos(every + year.net) - np.maximum(year.net, 0.0)
    within = [cp.sum(x, axis=1) == energy]
    if budget is not None:
        within.append(cp.sum(cp.multiply(year.carbon, extra)) <= budget * days)
    cp.Problem(cp.Minimize(cp.sum(cp.multiply(getattr(year, least), extra))), within).solve(solver=cp.CLARABEL)
    return np.broadcast_to(np.asarray(x.value), (days, HOURS))


def main(
    energy: float = 12.0, panels: float = 2.0, share: float = 0.3, bank: float = 0.1, out: Path = Path("results")
) -> None:
    """Plan a flexible load under a yearly carbon budget, a day ahead: the bill beside rules of thumb and hindsight.

    Parameters
    ----------
    energy
        kWh of every day.
    panels
        kW of solar panels.
    share
        The carbon budget, from 0, the least that one plan for all days can have, to 1, what the cheapest one has.
    bank
        How much of the slack so far may be spent.
    out
        Folder for the figure.
    """
    year = read(Path(os.environ.get("LONGTERM_DATA", ".")), panels)
    rules = thumb_rules(year, energy)
    even = outcome(year, rules["evenly over the day"])
    days = len(year.price)
    ends = [outcome(year, in_hindsight(year, energy, None, fixed=True, least=by)).carbon for by in ("carbon", "price")]
    budget = (ends[0] + share * (ends[1] - ends[0])) / days
    problem = game(year, energy, budget)
    learners: dict[str, Learner[Any]] = {
        "A-OGD": AOGD.for_problem(problem),
        "drift plus penalty, T known": DriftPlusPenalty.for_problem(problem, horizon=days, preset="yu-neely-wei"),
        "hedged cuts": HedgedCuts.for_problem(problem),
        f"hedged cuts, bank = {bank:g}": HedgedCuts.for_problem(problem, bank=bank),
        "the same, hints of 0": HintedCuts.for_problem(problem, hints=NoHint(), bank=bank),
        "the same, yesterday as a hint": HintedCuts.for_problem(problem, hints=LastGradient(), bank=bank),
    }
    plans = rules | {name: played(problem, year, learner) for name, learner in learners.items()}
    plans["hindsight, one plan"] = in_hindsight(year, energy, budget, fixed=True)
    plans["hindsight, a plan a day"] = in_hindsight(year, energy, budget, fixed=False)
    found = {name: outcome(year, plan) for name, plan in plans.items()}
    lines = [
        f"{energy:g} kWh a day for {days} days, {panels:g} kW of panels; carbon budget {budget * days:.1f} kg",
        f"{'':<32}{'money':>9}{'saved':>8}{'kg CO₂':>9}{'saved':>8}{'of budget':>11}",
    ]
    for name, one in found.items():
        saved = (100 * (1 - one.money / even.money), 100 * (1 - one.carbon / even.carbon))
        lines.append(
            f"{name:<32}{one.money:>9.1f}{saved[0]:>7.1f}%{one.carbon:>9.1f}{saved[1]:>7.1f}%"
            f"{one.carbon / (budget * days):>11.3f}"
        )
    sys.stdout.write("\n".join([*lines, ""]))
    for path in figure(found, plans, budget, out):
        sys.stdout.write(f"wrote {path}\n")


def figure(found: dict[str, Outcome], plans: dict[str, FloatArray], budget: float, folder: Path) -> list[Path]:
    """Left, bill against carbon of all plans; right, when the load runs on the mean day."""
    with publication_style() as plt:
        drawing, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
        days = len(next(iter(plans.values())))
        for i, (name, one) in enumerate(found.items()):
            mark = "*" if name.startswith("hindsight") else "o" if i >= 4 else "s"
            left.plot(one.carbon, one.money, mark, color=f"C{i % 10}", markersize=9 if mark == "*" else 6, label=name)
        left.axvline(budget * days, color="black", linestyle=":", linewidth=1)
        left.annotate("budget", (budget * days, left.get_ylim()[1]), ha="right", va="top", rotation=90, fontsize=8)
        left.set(xlabel="carbon of the year, kg", ylabel="bill of the year")
        left.legend(frameon=False, fontsize=7)
        for i, name in enumerate(found):
            if name.startswith(("the same, yesterday", "hindsight", "hedged cuts, bank")):
                line = "--" if name.startswith("hindsight") else "-"
                right.plot(np.arange(HOURS) + 0.5, plans[name].mean(axis=0), line, color=f"C{i % 10}", label=name)
        right.set(xlabel="hour of the day", ylabel="kWh planned, mean over the year", xticks=range(0, 25, 4))
        right.legend(frameon=False, fontsize=7)
        return save_figure(drawing, folder, "flexible_load")


if __name__ == "__main__":
    sys.exit(run_function(main))
