"""The router with its defaults beside ParetoBandit, on the peer's validation prompts: reward, bill, drift, time.

    make bench-router
    python benchmarks/router.py --quick                # three seeds, two ceilings, a minute
    python benchmarks/router.py stationary drop        # these parts only

Parts: stationary (six ceilings; cold, warm by bandit feedback, warm by all labels), prices (a model's price falls to a
fiftieth and comes back), drop (a model's rewards silently become 0.75 and recover), arrival (a fourth model
that is good, bad or expensive) and speed. Needs the folder `router` of LONGTERM_DATA. The peer runs if it is installed
(`pip install paretobandit==0.1.1`), with the settings of its paper and with its own priors from 8,374 prompts.

Each seed splits the prompts into halves: one for warm starts, one for tests. The cold start uses all prompts. "Over" is
the largest bill above ceiling · requests at any time, as a part of the whole bill allowed; credit is 0. "Mixture" is
the best fixed mixture of models in hindsight, "by source" the best one for each source of prompts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from longterm.errors import BrokenBoundWarning
from longterm.lab.experiments.jobs import single_threaded
from longterm.money import Budget, best_choices
from router_peer import PEER, Ours, Peer

DATA = Path(os.environ.get("LONGTERM_DATA", "../shared/data")) / "router"
CEILINGS = (8.3e-5, 2.3e-4, 6.6e-4, 1.9e-3, 5.3e-3, 1.5e-2)
THREE = {"tight": 3.0e-4, "moderate": 6.62e-4, "loose": 1.87e-3}
PHASE, WINDOW = 608, 50
CHANGED, DROPPED = "google/gemini-2.5-pro", "mistralai/mistral-large-2512"
ARRIVALS = {"good": (1.0, 1.0), "bad": (0.5, 1.0), "expensive": (1.0, 10.0)}
"""Factors of the rewards and of the costs of the model that arrives."""


@dataclass
class Table:
    """Features, rewards and costs of prompts for all models."""

    x: np.ndarray
    r: np.ndarray
    c: np.ndarray
    source: np.ndarray
    models: list[str]

    @classmethod
    def load(cls, name: str) -> Table:
        """Return a table of the data folder."""
        with np.load(DATA / f"paretobandit-{name}.npz") as file:
            return cls(file["x"].astype(float), file["r"], file["c"], file["source"], [str(m) for m in file["models"]])

    def rows(self, rows: np.ndarray) -> Table:
        """Return some rows."""
        return Table(self.x[rows], self.r[rows], self.c[rows], self.source[rows], self.models)

    def split(self, rng: np.random.Generator) -> tuple[Table, Table]:
        """Return two halves in random order."""
        order = rng.permutation(len(self.x))
        return self.rows(order[: len(order) // 2]), self.rows(order[len(order) // 2 :])

    @property
    def prices(self) -> dict[str, float]:
        """The mean cost of a request for each model."""
        return dict(zip(self.models, self.c.mean(axis=0).tolist(), strict=True))


@dataclass
class Run:
    """Models, rewards and costs of a stream of requests."""

    models: np.ndarray
    rewards: np.ndarray
    costs: np.ndarray

    def over(self, ceiling: float) -> float:
        """Return the largest excess of the bill at any time, as a part of the whole allowance."""
        allowed = ceiling * np.arange(1, len(self.costs) + 1)
        return float((np.cumsum(self.costs) - allowed).max() / allowed[-1])


def stream(router: Ours | Peer, table: Table) -> Run:
    """Answer the rows of a table in order."""
    models = np.empty(len(table.x), dtype=int)
    for t, x in enumerate(table.x):
        model = models[t] = router.route(x)
        router.settle(float(table.r[t, model]), float(table.c[t, model]))
    rows = np.arange(len(models))
    return Run(models, table.r[rows, models], table.c[rows, models])


def teach(router: Ours, table: Table) -> None:
    """Report all labels of a table."""
    for x, rewards, costs in zip(table.x, table.r, table.c, strict=True):
        router.teach(x, rewards, costs)


def joined(*runs: Run) -> Run:
    """Return several streams as one."""
    return Run(*(np.concatenate([getattr(run, name) for run in runs]) for name in ("models", "rewards", "costs")))


# --- the experiments: each returns figures of one seed --------------------------------------------------------


def stationary(seed: int, kind: str, ceiling: float) -> list[float]:
    """Return the mean reward and the excess of one seed."""
    table, rng = Table.load("val"), np.random.default_rng(3000 + seed)
    warm, test = table.split(rng)
    whole = table.rows(rng.permutation(len(table.x)))
    router = _router(kind, table.prices, ceiling, table.x.shape[1], seed)
    if kind.endswith("cold"):
        run = stream(router, whole)
        return [run.rewards.mean(), run.over(ceiling)]
    if kind.endswith("labels"):
        teach(router, warm)
        run = stream(router, test)
        return [run.rewards.mean(), run.over(ceiling)]
    before, run = stream(router, warm), stream(router, test)
    return [run.rewards.mean(), joined(before, run).over(ceiling)]


def three_phases(seed: int, kind: str, ceiling: float, *, factor: float, reward: float | None) -> list[float]:
    """Return rewards of three phases and of the whole, the excess, and the shares of the changed model over time."""
    table, rng = Table.load("val"), np.random.default_rng((8000 if reward is None else 6000) + seed)
    warm, test = table.split(rng)
    first, second = (test.rows(rng.permutation(len(test.x))[:PHASE]) for _ in range(2))
    third = first.rows(rng.permutation(PHASE))
    changed = table.models.index(CHANGED if reward is None else DROPPED)
    second.c[:, changed] *= factor
    if reward is not None:
        second.r[:, changed] = reward
    router = _router(kind, table.prices, ceiling, table.x.shape[1], seed)
    if kind.endswith("labels"):
        teach(router, warm)
        before = []
    else:
        before = [stream(router, warm)]
    runs = []
    for number, phase in enumerate((first, second, third)):
        if factor != 1.0 and number:
            router.scale_price(CHANGED, factor if number == 1 else 1.0)
        runs.append(stream(router, phase))
    all_runs = joined(*runs)
    rewards = [run.rewards.mean() for run in (*runs, all_runs)]
    return [*rewards, joined(*before, *runs).over(ceiling), *(all_runs.models == changed).astype(float)]


def arrival(seed: int, kind: str, ceiling: float, *, scale: tuple[float, float]) -> list[float]:
    """Return the reward after the arrival of a fourth model, the excess, and the new model's share over time."""
    table, rng = Table.load("val-4models"), np.random.default_rng(9000 + seed)
    warm, test = table.split(rng)
    test = test.rows(np.concatenate([rng.permutation(len(test.x)) for _ in range(2)]))
    test.r[:, 3] *= scale[0]
    test.c[:, 3] *= scale[1]
    prices = table.prices
    new = {name: prices.pop(name) for name in table.models[3:]}
    router = _router(kind, prices, ceiling, table.x.shape[1], seed)
    before = []
    if kind.endswith("labels"):
        teach(router, Table(warm.x, warm.r[:, :3], warm.c[:, :3], warm.source, table.models[:3]))
    else:
        before = [stream(router, warm)]
    for name, price in new.items():
        router.add_model(name, price, scale[1])
    run = stream(router, test)
    return [run.rewards.mean(), joined(*before, run).over(ceiling), *(run.models == 3).astype(float)]


def _router(kind: str, prices: dict[str, float], ceiling: float, features: int, seed: int) -> Ours | Peer:
    if kind.startswith("peer"):
        return Peer(prices, ceiling, features, seed, cold=kind.endswith("cold"))
    return Ours(prices, ceiling, features, seed)


# --- tables ---------------------------------------------------------------------------------------------------

NAMES = {
    "ours cold": "ours, cold",
    "ours bandit": "ours, warm by bandit feedback",
    "ours labels": "ours, warm by all labels",
    "peer cold": "ParetoBandit, cold",
    "peer bandit": "ParetoBandit, priors and warm",
}


def kinds(*, cold: bool) -> list[str]:
    """Return the routers to compare."""
    found = [kind for kind in NAMES if PEER or kind.startswith("ours")]
    return [kind for kind in found if cold or not kind.endswith("cold")]


class Bench:
    """A command's options, and a pool that runs seeds."""

    def __init__(self, seeds: int, jobs: int, *, quick: bool) -> None:
        self.seeds, self.quick = range(seeds), quick
        self.ceilings = CEILINGS[1:5:2] if quick else CEILINGS
        self.three = {"moderate": THREE["moderate"]} if quick else THREE
        self.pool = ProcessPoolExecutor(jobs)

    def figures(self, experiment: Callable[..., list[float]], *arguments: object) -> np.ndarray:
        """Return the figures of all seeds, shape (seeds, figures)."""
        note(f"{experiment.func.__name__ if isinstance(experiment, partial) else experiment.__name__} {arguments}")
        return np.array(list(self.pool.map(partial(quiet, experiment, arguments), self.seeds)))

    def stationary(self) -> None:
        """Print rewards at the ceilings."""
        head("stationary", [f"{ceiling:.1e}" for ceiling in self.ceilings], "over, worst")
        for kind in kinds(cold=True):
            figures = np.array([self.figures(stationary, kind, ceiling) for ceiling in self.ceilings])
            row(NAMES[kind], figures[:, :, 0].mean(axis=1), f"{figures[:, :, 1].max():+.2%}")
        table = Table.load("val")
        for name in ("mixture", "classes"):
            values = [best(table, ceiling, name) for ceiling in self.ceilings]
            row({"mixture": "mixture in hindsight", "classes": "by source in hindsight"}[name], values, "")

    def prices(self) -> None:
        """Print rewards while a price falls and comes back."""
        self._phases("price cut", partial(three_phases, factor=0.1 / 5.625, reward=None))

    def drop(self) -> None:
        """Print rewards while a model's rewards fall and recover."""
        self._phases("silent drop", partial(three_phases, factor=1.0, reward=0.75))

    def _phases(self, title: str, experiment: Callable[..., list[float]]) -> None:
        head(title, ["phase 1", "phase 2", "phase 3", "whole"], "half-way after, back after; over, worst")
        for label, ceiling in self.three.items():
            for kind in kinds(cold=False):
                figures = self.figures(experiment, kind, ceiling)
                down, up = half_way(figures[:, 5:].mean(axis=0))
                end = f"{down:4d} {up:4d}   {figures[:, 4].max():+.2%}"
                row(f"{label}: {NAMES[kind]}", figures[:, :4].mean(axis=0), end)

    def arrival(self) -> None:
        """Print rewards after a model has arrived."""
        head("a model arrives", list(ARRIVALS), "share of the new model; the good one half-way after; over, worst")
        for label, ceiling in self.three.items():
            for kind in kinds(cold=False):
                parts = [self.figures(partial(arrival, scale=s), kind, ceiling) for s in ARRIVALS.values()]
                shares = " ".join(f"{part[:, 2:].mean():4.0%}" for part in parts)
                shares += f" {half_way_up(parts[0][:, 2:].mean(axis=0)):5d}"
                worst = max(part[:, 1].max() for part in parts)
                row(f"{label}: {NAMES[kind]}", [part[:, 0].mean() for part in parts], f"{shares}   {worst:+.2%}")

    def speed(self) -> None:
        """Print microseconds per decision and per settlement, in turn with the peer."""
        with single_threaded():
            self._speed()

    def _speed(self) -> None:
        table = Table.load("val")
        routers = [Ours(table.prices, 6.6e-4, 26, 0)] + ([Peer(table.prices, 6.6e-4, 26, 0, cold=True)] if PEER else [])
        seconds = np.empty((len(routers), 2, len(table.x)))
        for t, x in enumerate(table.x):
            for i, router in enumerate(routers):
                start = time.perf_counter()
                model = router.route(x)
                decided = time.perf_counter()
                router.settle(float(table.r[t, model]), float(table.c[t, model]))
                seconds[i, :, t] = decided - start, time.perf_counter() - decided
        head("microseconds, median", ["route", "settle", "both"], "")
        for router, (route, settle) in zip(routers, 1e6 * seconds[:, :, 100:], strict=True):
            row(router.name, [np.median(route), np.median(settle), np.median(route + settle)], "", ".0f")


def quiet(experiment: Callable[..., list[float]], arguments: tuple[object, ...], seed: int) -> list[float]:
    """Run an experiment with one thread."""
    with single_threaded(), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", BrokenBoundWarning
        )  # some costs are above 12 times the mean; "over" counts them
        return experiment(seed, *arguments)


def best(table: Table, ceiling: float, benchmark: str) -> float:
    """Return the mean reward of the best mixture in hindsight."""
    budget = Budget(ceiling * len(table.x), largest=float(table.c.max()))
    return best_choices(table.r, table.c, budget, benchmark, classes=table.source).value / len(table.x)


def half_way_up(shares: np.ndarray) -> int:
    """Return after how many requests the share of a new model is half of its level in the last third."""
    smooth = np.convolve(shares, np.ones(WINDOW) / WINDOW)[: len(shares)]
    reached = smooth >= shares[-(len(shares) // 3) :].mean() / 2
    return int(reached.argmax()) + 1 if reached.any() else len(shares)


def half_way(shares: np.ndarray) -> tuple[int, int]:
    """Return after how many requests the share of the changed model is half-way to its new level, and back.

    Shares are means over the last `WINDOW` requests; levels are means of the last third of a phase.
    """
    smooth = np.convolve(shares, np.ones(WINDOW) / WINDOW)[: len(shares)]
    levels = [shares[(n + 1) * PHASE - PHASE // 3 : (n + 1) * PHASE].mean() for n in range(3)]
    times = []
    for n in (1, 2):
        part, middle = smooth[n * PHASE : (n + 1) * PHASE], (levels[n - 1] + levels[n]) / 2
        reached = (part <= middle) if levels[n] < levels[n - 1] else (part >= middle)
        times.append(int(reached.argmax()) + 1 if reached.any() else PHASE)
    return times[0], times[1]


def head(title: str, columns: list[str], end: str) -> None:
    """Print the head of a table."""
    sys.stdout.write(f"\n{title:<42}" + "".join(f"{name:>10}" for name in columns) + f"   {end}\n")


def row(name: str, values: Iterator[float] | list[float] | np.ndarray, end: str, form: str = ".4f") -> None:
    """Print a row."""
    sys.stdout.write(f"{name:<42}" + "".join(format(value, form).rjust(10) for value in values) + f"   {end}\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Show progress."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")


def main() -> None:
    """Run the parts that are named, or all."""
    parts = ("stationary", "prices", "drop", "arrival", "speed")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=[])
    parser.add_argument("--quick", action="store_true", help="three seeds, fewer ceilings")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"{DATA} does not exist. Set LONGTERM_DATA to the folder that holds `router`.")
    if not PEER:
        sys.stdout.write("ParetoBandit is not installed: pip install paretobandit==0.1.1 to have it beside ours.\n")
    bench = Bench(3 if given.quick else given.seeds, given.jobs, quick=given.quick)
    for part in given.parts or parts:
        getattr(bench, part)()
    bench.pool.shutdown()


if __name__ == "__main__":
    main()
