"""Routers on three public tables: reward and bill beside ParetoBandit, PORT's rule and MESS+'s rule.

    python benchmarks/router_tables.py --seeds 20 --out docs/_static/routing_tables.svg
    python benchmarks/router_tables.py nine mmlu --locks --seeds 50 --rounds 1500    # runs that lock into one model

Tables, from the folder LONGTERM_DATA: ParetoBandit's validation prompts (3 models), LLMRouter's questions (9 models)
and MMLU answered by Mixtral and GPT-4 (2 models). Each seed splits a table into labelled prompts and requests. A
ceiling is the cost of the cheapest model plus a share of what the best one costs more.

ours, cold       `Router.for_models` with its defaults
ours, labelled   the same, after `teach` with the labels
ParetoBandit     version 0.1.1, cold, if it is installed
PORT             the mean score d and cost g of the 5 nearest labelled prompts; 2.5 % of the requests go to random
                 models; then once γ = argmin over [0, 1]^M of ε⟨γ, B⟩ + Σ max_m (α d_m − γ_m g_m) on them; then the
                 model with the largest α d_m − γ_m g_m whose own budget B_m, an equal part of the whole, lasts
MESS+            asks for a mean reward a and has no ceiling: argmin_m V E_m + Q (a − d_m), Q ← [Q + a − reward]₊ with
                 V = 1 and costs in units of the most expensive model. Its a is what ours, labelled, reached.

PORT and MESS+ are written from the descriptions in their papers and not from their code. "bill" is in ceilings.

A run of ours, cold, is *locked* if one model answers over 95 % of its last third, although the best fixed mixture of
two models within the ceiling earns 0.02 more there.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import math
import os
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from longterm.errors import BrokenBoundWarning
from longterm.lab.experiments.jobs import single_threaded
from longterm.money import Budget, best_choices
from longterm.money.choosing.text import WordHash
from router_peer import PEER, Ours, Peer

DATA = Path(os.environ.get("LONGTERM_DATA", "../shared/data"))
SHARES = (0.1, 0.25, 0.5)
NEAREST, LEARN, ALPHA = 5, 0.025, 1e-4
MMLU_PRICES = (0.24, 24.7)
"""Dollars per million tokens of Mixtral and GPT-4."""
METHODS = ("ours, cold", "ours, labelled", "ParetoBandit", "PORT", "MESS+")


@dataclass
class Prompts:
    """Features, rewards and costs of prompts for all models."""

    x: np.ndarray
    r: np.ndarray
    c: np.ndarray
    models: list[str]

    def rows(self, rows: np.ndarray) -> Prompts:
        """Return some rows."""
        return Prompts(self.x[rows], self.r[rows], self.c[rows], self.models)

    def ceiling(self, share: float) -> float:
        """Return the mean cost of the cheapest model plus a share of what the best one costs more."""
        cost = self.c.mean(axis=0)
        return float(cost.min() + share * (cost[self.r.mean(axis=0).argmax()] - cost.min()))


@cache
def load(name: str) -> Prompts:
    """Return a table of the data folder."""
    if name == "paretobandit":
        with np.load(DATA / "router" / "paretobandit-val.npz") as file:
            return Prompts(file["x"].astype(float), file["r"], file["c"], [str(model) for model in file["models"]])
    file, text = {"nine": ("llmrouter-train", "question"), "mmlu": ("routellm-mmlu", "prompt")}[name]
    csv.field_size_limit(10**9)
    with lzma.open(DATA / f"{file}.csv.xz", "rt", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    models = [column for column in rows[0] if column not in (text, "subject")]
    prices = MMLU_PRICES
    if name == "nine":
        listed = json.loads((DATA / "llmrouter-prices.json").read_text())
        prices = tuple(listed[model]["input_price"] for model in models)
    encode = WordHash()
    rewards = np.array([[_score(row[model]) for model in models] for row in rows])
    tokens = np.array([len(row[text]) / 4 + 1 for row in rows])
    return Prompts(np.array([encode(row[text]) for row in rows]), rewards, np.outer(tokens, prices) / 1e6, models)


def _score(text: str) -> float:
    return {"True": 1.0, "False": 0.0}[text] if text in ("True", "False") else float(text)


def neighbours(labelled: Prompts, requests: Prompts) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean rewards and costs (requests, M) of the nearest labelled prompts."""
    rewards, costs = np.empty_like(requests.r), np.empty_like(requests.c)
    squares = (labelled.x**2).sum(axis=1)
    for t, x in enumerate(requests.x):
        near = np.argpartition(squares - 2 * labelled.x @ x, NEAREST)[:NEAREST]
        rewards[t], costs[t] = labelled.r[near].mean(axis=0), labelled.c[near].mean(axis=0)
    return rewards, costs


def port(labelled: Prompts, requests: Prompts, ceiling: float, rng: np.random.Generator) -> np.ndarray:
    """Return the models that PORT's rule chooses."""
    rewards, costs = neighbours(labelled, requests)
    T, M = rewards.shape
    first = math.ceil(LEARN * T)
    budgets = np.full(M, ceiling * T / M)

    def objective(gamma: np.ndarray) -> tuple[float, np.ndarray]:
        payoff = ALPHA * rewards[:first] - gamma * costs[:first]
        best = payoff.argmax(axis=1)
        slope = LEARN * budgets - np.bincount(best, weights=costs[np.arange(first), best], minlength=M)
        return 1e6 * (LEARN * gamma @ budgets + payoff.max(axis=1).sum()), 1e6 * slope

    gamma = minimize(objective, np.full(M, 1 / M), jac=True, bounds=[(0, 1)] * M, method="L-BFGS-B").x
    spent, chosen, cheapest = np.zeros(M), np.empty(T, dtype=int), int(labelled.c.mean(axis=0).argmin())
    for t in range(T):
        payoff = ALPHA * rewards[t] - gamma * costs[t] if t >= first else rng.random(M)
        lasts = spent + requests.c[t] <= budgets
        model = int(np.where(lasts, payoff, -np.inf).argmax()) if lasts.any() else cheapest
        chosen[t], spent[model] = model, spent[model] + requests.c[t, model]
    return chosen


def mess(labelled: Prompts, requests: Prompts, quality: float) -> np.ndarray:
    """Return the models that MESS+'s rule chooses for a mean reward."""
    rewards, costs = neighbours(labelled, requests)
    costs /= labelled.c.mean(axis=0).max()
    chosen, deficit = np.empty(len(rewards), dtype=int), 0.0
    for t in range(len(rewards)):
        chosen[t] = (costs[t] + deficit * (quality - rewards[t])).argmin()
        deficit = max(deficit + quality - requests.r[t, chosen[t]], 0.0)
    return chosen


def stream(router: Ours | Peer, requests: Prompts) -> np.ndarray:
    """Return the models that a learning router chooses."""
    chosen = np.empty(len(requests.x), dtype=int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokenBoundWarning)  # a few costs are above 12 times the mean
        for t, x in enumerate(requests.x):
            chosen[t] = router.route(x)
            router.settle(float(requests.r[t, chosen[t]]), float(requests.c[t, chosen[t]]))
    return chosen


def run(name: str, rounds: int, job: tuple[float, int]) -> dict[str, tuple[float, float]]:
    """Return the mean reward and the bill, in ceilings, of each method."""
    share, seed = job
    table, rng = load(name), np.random.default_rng(seed)
    order = rng.permutation(len(table.x))
    labelled, requests = table.rows(order[rounds : 2 * rounds]), table.rows(order[:rounds])
    ceiling, prices = table.ceiling(share), dict(zip(table.models, table.c.mean(axis=0).tolist(), strict=True))
    features, found = table.x.shape[1], {}

    def note(method: str, chosen: np.ndarray) -> float:
        rows = np.arange(len(chosen))
        reward = float(requests.r[rows, chosen].mean())
        found[method] = reward, float(requests.c[rows, chosen].mean() / ceiling)
        return reward

    with single_threaded():
        note("ours, cold", stream(Ours(prices, ceiling, features, seed), requests))
        ours = Ours(prices, ceiling, features, seed)
        for x, rewards, costs in zip(labelled.x, labelled.r, labelled.c, strict=True):
            ours.teach(x, rewards, costs)
        quality = note("ours, labelled", stream(ours, requests))
        if PEER:
            note("ParetoBandit", stream(Peer(prices, ceiling, features, seed, cold=True), requests))
        note("PORT", port(labelled, requests, ceiling, rng))
        note("MESS+", mess(labelled, requests, quality))
    return found


def locks(name: str, rounds: int, job: tuple[float, int]) -> tuple[float, float, bool]:
    """Return the mean reward and the bill of a cold run, and whether it is locked."""
    share, seed = job
    table = load(name)
    requests = table.rows(np.random.default_rng(seed).permutation(len(table.x))[:rounds])
    ceiling, prices = table.ceiling(share), dict(zip(table.models, table.c.mean(axis=0).tolist(), strict=True))
    with single_threaded():
        chosen = stream(Ours(prices, ceiling, table.x.shape[1], seed), requests)
    rows = np.arange(len(chosen))
    rewards, costs, last = requests.r[rows, chosen], requests.c[rows, chosen], slice(-(len(rows) // 3), None)
    part = requests.rows(rows[last])
    budget = Budget(ceiling * len(part.x), largest=float(part.c.max()))
    missed = best_choices(part.r, part.c, budget, "mixture").value / len(part.x) - rewards[last].mean()
    top = np.bincount(chosen[last]).max() / len(part.x)
    return float(rewards.mean()), float(costs.mean() / ceiling), bool(top > 0.95 and missed > 0.02)


def draw(results: dict[str, np.ndarray], out: Path) -> None:
    """Draw reward against bill for each table."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    grey = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#7f8792")
    clear = dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor"), "none")
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "longterm", "font.size": 8, **grey, **clear}):
        drawing = Figure(figsize=(9, 3.2), layout="constrained")
        for axis, (name, figures) in zip(drawing.subplots(1, len(results)), results.items(), strict=True):
            ceilings = np.array([load(name).ceiling(share) for share in SHARES])
            for method, colour in zip(METHODS, ("#0072B2", "#56B4E9", "#D55E00", "#009E73", "#CC79A7"), strict=True):
                reward, bill = figures[METHODS.index(method)].T
                axis.plot(bill * ceilings, reward, marker="o", markersize=3, label=method, color=colour)
            for ceiling in ceilings:
                axis.axvline(ceiling, linestyle=":", linewidth=0.8, color="#888888")
            axis.set(title=name, xlabel="mean cost of a request, dollars", xscale="log")
        drawing.axes[0].set_ylabel("mean reward")
        drawing.legend(*drawing.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
        drawing.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None)


def main() -> None:
    """Print a table for each source, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=["paretobandit", "nine", "mmlu"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=890)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--locks", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    results: dict[str, np.ndarray] = {}
    with ProcessPoolExecutor(given.jobs) as pool:
        for name in given.tables:
            jobs = [(share, seed) for share in SHARES for seed in range(given.seeds)]
            if given.locks:
                runs = np.array(list(pool.map(partial(locks, name, given.rounds), jobs)), dtype=float)
                for share, part in zip(SHARES, runs.reshape(len(SHARES), given.seeds, 3), strict=True):
                    reward, bill, locked = part.mean(axis=0)
                    sys.stdout.write(f"{name}, {given.seeds} seeds, {given.rounds} requests, share {share:g}: ")
                    sys.stdout.write(f"reward {reward:.4f}, bill {bill:.3f}, locked {locked:.0%}\n")
                continue
            work: Callable[[tuple[float, int]], dict[str, tuple[float, float]]] = partial(run, name, given.rounds)
            found = list(pool.map(work, jobs))
            nothing = (np.nan, np.nan)
            figures = np.array([[one.get(method, nothing) for method in METHODS] for one in found])
            figures = figures.reshape(len(SHARES), given.seeds, len(METHODS), 2)
            results[name] = figures.mean(axis=1).transpose(1, 0, 2)
            head = "".join(f"{f'share {share:g}':>20}" for share in SHARES)
            sys.stdout.write(f"\n{name}: {given.seeds} seeds, {given.rounds} requests\n")
            sys.stdout.write(f"{'reward, bill':<18}{head}   worst bill\n")
            for number, method in enumerate(METHODS):
                cells = "".join(f"{reward:>12.4f} {bill:>7.3f}" for reward, bill in results[name][number])
                sys.stdout.write(f"{method:<18}{cells}   {figures[:, :, number, 1].max():.3f}\n")
            sys.stdout.flush()
    if given.out is not None:
        draw(results, given.out)


if __name__ == "__main__":
    main()
