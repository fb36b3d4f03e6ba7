"""A flexible load under a yearly carbon budget, planned one day ahead.

A house has solar panels and a load that may run at any hour, a fixed number of kWh every day (a car, a boiler). Each
evening the 24 hours of the next day are planned. Price, carbon intensity, the house's own load and the sun become known
only afterwards. Energy that the sun does not cover is bought at the hour's price and with the hour's carbon; surplus is
worth nothing. The carbon of the year must stay within a budget, and the bill should be small.

    f_t(x) = Σ_h price_h ([x_h + net_h]₊ − [net_h]₊),     g_t(x) = Σ_h carbon_h ([x_h + net_h]₊ − [net_h]₊) − budget

x_t is in a simplex, net is load minus sun, and the budget is that of one day. Today is the forecast of tomorrow. The
data are one year of one building of the CityLearn challenge 2022 (`citylearn-2022.csv.gz`) in the folder LONGTERM_DATA.
Without that file a synthetic year is used.

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
from numpy.typing import NDArray

from longterm import Problem, observe
from longterm.cli import run_function
from longterm.lab.report.style import COLOURS, publication_style, save_figure
from longterm.learners import AOGD, DriftPlusPenalty, HedgedCuts, HintedCuts, Learner
from longterm.learners.optimistic.hints import LastGradient, NoHint
from longterm.problems.constraints import CustomConstraint
from longterm.problems.losses import CustomLoss
from longterm.problems.sets import Simplex

FloatArray = NDArray[np.float64]
FILE, HOURS = "citylearn-2022.csv.gz", 24


@dataclass(frozen=True, eq=False)
class Year:
    """Prices, carbon intensities and net loads, shape (days, 24)."""

    price: FloatArray
    carbon: FloatArray
    net: FloatArray
    """The house's own load minus solar energy, kWh."""
    source: str = ""


@dataclass(frozen=True)
class Outcome:
    """The cost of the plans of a year beyond the house's own load."""

    money: float
    carbon: float
    days: FloatArray
    """Cumulative money and carbon, shape (days, 2)."""


def read(folder: Path, panels: float) -> Year:
    """Read the year, with this many kW of panels; without the file, return a synthetic year."""
    path = folder / FILE
    if not path.exists():
        return synthetic_year(panels)
    with gzip.open(path, "rt") as lines:
        rows = list(csv.DictReader(lines))
    first = next(i for i, row in enumerate(rows) if int(row["hour"]) == 1)
    days = (len(rows) - first) // HOURS

    def column(name: str) -> FloatArray:
        values = np.array([float(row[name]) for row in rows[first : first + days * HOURS]])
        return values.reshape(days, HOURS)

    return Year(column("price"), column("carbon"), column("load") - panels * column("solar") / 1000, "CityLearn 2022")


def synthetic_year(panels: float, days: int = 365, seed: int = 0) -> Year:
    """Return a year with expensive evenings, a varying carbon intensity, and sun that depends on season and clouds."""
    rng = np.random.default_rng(seed)
    hour, day = np.arange(HOURS), np.arange(days)[:, None]
    evening = np.exp(-((hour - 19) ** 2) / 8)
    summer = 0.5 - 0.5 * np.cos(2 * np.pi * day / 365)
    price = 0.22 + 0.25 * evening + 0.02 * rng.standard_normal((days, HOURS))
    carbon = 0.14 + 0.06 * evening - 0.04 * summer + 0.03 * rng.standard_normal((days, 1))
    sun = np.maximum(np.sin(np.pi * (hour - 6) / 12), 0.0) * (0.3 + 0.5 * summer) * rng.uniform(0.2, 1.0, (days, 1))
    load = 0.4 + 0.5 * evening + 0.1 * rng.random((days, HOURS))
    return Year(np.maximum(price, 0.05), np.maximum(carbon, 0.03), load - panels * sun, "synthetic")


def bought(x: Any, net: Any) -> Any:
    """Return the kWh from the grid that the plan adds in each hour."""
    return np.maximum(x + net, 0.0) - np.maximum(net, 0.0)


def daily_problem(year: Year, energy: float, budget: float) -> Problem:
    """Return the problem of one day; its parameters are the hourly rates and the net load."""

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
    """Return the cost of one plan for each day."""
    extra = bought(plans, year.net)
    days = np.cumsum(np.stack([(year.price * extra).sum(axis=1), (year.carbon * extra).sum(axis=1)], axis=1), axis=0)
    return Outcome(float(days[-1, 0]), float(days[-1, 1]), days)


def learned_plans(problem: Problem, year: Year, learner: Learner[Any]) -> FloatArray:
    """Return the plans of a learner, one for each day."""
    state, plans = learner.init(), []
    for price, carbon, net in zip(year.price, year.carbon, year.net, strict=True):
        plans.append(learner.ask(state))
        state = learner.tell(state, observe(problem, plans[-1], [price, net], [carbon, net]))
    return np.array(plans)


def simple_rules(year: Year, energy: float) -> dict[str, FloatArray]:
    """Return the plans of simple rules without a learner."""
    days = len(year.price)

    def hours(chosen: range | list[int]) -> FloatArray:
        plan = np.zeros(HOURS)
        plan[list(chosen)] = energy / len(chosen)
        return np.tile(plan, (days, 1))

    # The best plan for yesterday: solar surplus first, then the cheapest hour.
    yesterday = np.zeros((days, HOURS))
    yesterday[0] = energy / HOURS
    for t in range(1, days):
        yesterday[t] = greedy(year.price[t - 1], year.net[t - 1], energy)
    return {
        "evenly over the day": hours(range(HOURS)),
        "at night, 0 to 6": hours(range(6)),
        "at noon, 10 to 15": hours(range(10, 15)),
        "cheapest plan of yesterday": yesterday,
    }


def greedy(rate: FloatArray, net: FloatArray, energy: float) -> FloatArray:
    """Return the cheapest plan of one day: solar surplus first, the rest in the cheapest hour."""
    plan, left = np.zeros(HOURS), energy
    for hour in np.argsort(net):
        used = min(left, max(-net[hour], 0.0))
        plan[hour] += used
        left -= used
    plan[int(np.argmin(rate))] += left
    return plan


def in_hindsight(year: Year, energy: float, budget: float | None, *, fixed: bool, least: str = "price") -> FloatArray:
    """Solve for the cheapest plans within the year's budget: one plan for all days, or one for each day.

    Without a budget, minimise money or carbon.
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
    """Plan a flexible load under a yearly carbon budget, and compare the bill with simple rules and hindsight.

    Parameters
    ----------
    energy
        Energy per day in kWh.
    panels
        Solar panels in kW.
    share
        The carbon budget between 0 (the lowest carbon of one plan for all days) and 1 (that of the cheapest plan).
    bank
        The share of past slack that may be spent.
    out
        The folder of the figure.
    """
    year = read(Path(os.environ.get("LONGTERM_DATA", ".")), panels)
    rules = simple_rules(year, energy)
    even = outcome(year, rules["evenly over the day"])
    days = len(year.price)
    ends = [outcome(year, in_hindsight(year, energy, None, fixed=True, least=by)).carbon for by in ("carbon", "price")]
    budget = (ends[0] + share * (ends[1] - ends[0])) / days
    problem = daily_problem(year, energy, budget)
    learners: dict[str, Learner[Any]] = {
        "A-OGD": AOGD.for_problem(problem),
        "drift plus penalty, T known": DriftPlusPenalty.for_problem(problem, horizon=days, preset="yu-neely-wei"),
        "hedged cuts": HedgedCuts.for_problem(problem),
        f"hedged cuts, bank = {bank:g}": HedgedCuts.for_problem(problem, bank=bank),
        "the same, hints of 0": HintedCuts.for_problem(problem, hints=NoHint(), bank=bank),
        "the same, yesterday as a hint": HintedCuts.for_problem(problem, hints=LastGradient(), bank=bank),
    }
    plans = rules | {name: learned_plans(problem, year, learner) for name, learner in learners.items()}
    plans["hindsight, one plan"] = in_hindsight(year, energy, budget, fixed=True)
    plans["hindsight, a plan a day"] = in_hindsight(year, energy, budget, fixed=False)
    found = {name: outcome(year, plan) for name, plan in plans.items()}
    lines = [
        f"{energy:g} kWh a day for {days} days ({year.source}), {panels:g} kW of panels, budget {budget * days:.1f} kg",
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
    """Draw the bill against the carbon of all plans, and the mean plan over the hours of the day."""
    with publication_style() as plt:
        drawing, (left, right) = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
        days = len(next(iter(plans.values())))
        for i, (name, one) in enumerate(found.items()):
            mark = "*" if name.startswith("hindsight") else "o" if i >= 4 else "s"
            size = 10 if mark == "*" else 7
            left.plot(
                one.carbon, one.money, mark, color=COLOURS[i % 8][0], markersize=size, label=name, linestyle="none"
            )
        left.axvline(budget * days, color="black", linestyle=":", linewidth=1, label="budget")
        left.set(xlabel="carbon of the year, kg", ylabel="bill of the year")
        styles = {"hindsight, a plan a day": ":", "hindsight, one plan": "--", "the same, yesterday as a hint": "-"}
        for i, name in enumerate(found):
            if name in styles:
                mean = plans[name].mean(axis=0)
                right.plot(np.arange(HOURS) + 0.5, mean, styles[name], color=COLOURS[i % 8][0], linewidth=2)
        right.set(xlabel="hour of the day", ylabel="kWh planned, mean over the year", xticks=range(0, 25, 4))
        drawing.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
        return save_figure(drawing, folder, "flexible_load")


if __name__ == "__main__":
    sys.exit(run_function(main))
