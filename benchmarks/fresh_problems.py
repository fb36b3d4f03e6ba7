"""Five problems outside the arena: portfolio, allocation, fair SVM, tracking and completion.

All learners of the catalogue run on them as in `longterm arena`. For each problem and for all together, the scores of
hedged cuts at weights ¼, ½, ¾ of the violation, the best of the others, and the rank. `--instance` draws other data,
sizes and limits. A finished folder is only printed.

    python benchmarks/fresh_problems.py --out fresh --rounds 1024 --instance 0
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from longterm import Problem
from longterm.catalogue import Scenario
from longterm.lab import Backend
from longterm.lab.arena import Preference, arena_of, league, run_arena
from longterm.problems import EveryRound
from longterm.problems.constraints import Affine, CustomConstraint, VaryingAffine
from longterm.problems.losses import Hinge, LeastSquares, Linear, SquaredDistance
from longterm.problems.sets import Ball, Box, Product, Simplex
from longterm.problems.streams import Stream
from longterm.problems.streams.base import CHUNK, Block

WORST = 0.1
"""The share of scenarios whose mean loss is bounded."""


@dataclass(frozen=True, eq=False)
class Drawn(Stream):
    """Rounds drawn by a function of a generator and the numbers of the rounds, in chunks."""

    make: Callable[[np.random.Generator, np.ndarray], Block]

    def draw(self, seed: int, start: int, stop: int) -> Block:
        chunks = []
        for chunk in range(start // CHUNK, -(-stop // CHUNK)):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(chunk,)))
            chunks.append(self.make(rng, np.arange(chunk * CHUNK, (chunk + 1) * CHUNK)))
        parts = [
            tuple(np.concatenate(a) for a in zip(*(getattr(c, side) for c in chunks), strict=True))
            for side in ("loss", "constraint")
        ]
        first = start // CHUNK * CHUNK
        return Block(*parts).part(start - first, stop - first)


def _bounded(costs: np.ndarray, length: float) -> np.ndarray:
    """Return the rows shortened to a length."""
    return costs * np.minimum(1.0, length / np.maximum(np.linalg.norm(costs, axis=-1, keepdims=True), 1e-12))


def portfolio(instance: int = 0) -> Scenario:
    """Return a portfolio whose mean loss over the worst tenth of 200 scenarios is bounded."""
    rng = np.random.default_rng([1, instance])
    assets, count = int(rng.integers(6, 14)), 200
    kept = int(WORST * count)
    risk = np.sort(rng.uniform(0.05, 0.5, assets))
    mean = 0.3 * risk * rng.uniform(0.5, 1.5, assets)
    common = rng.uniform(0.3, 0.9, assets)

    def returns(rng: np.random.Generator, size: int) -> np.ndarray:
        noise = common * rng.standard_normal((size, 1)) + np.sqrt(1 - common**2) * rng.standard_normal((size, assets))
        return mean + risk * noise

    scenarios = returns(rng, count)

    def tail(x: np.ndarray) -> np.ndarray:
        return np.mean(np.sort(-(x @ scenarios.T), axis=-1)[..., -kept:], axis=-1)

    def slope(x: np.ndarray) -> np.ndarray:
        worst = np.argsort(-(x @ scenarios.T), axis=-1, kind="stable")[..., -kept:]
        return -np.mean(scenarios[worst], axis=-2)

    safest = min(tail(x) for x in [*np.eye(assets), np.full(assets, 1 / assets)])
    limit = float(safest + 0.3 * (tail(np.eye(assets)[np.argmax(mean)]) - safest))
    longest = float(np.linalg.norm(scenarios, axis=1).max())
    g = CustomConstraint(assets, lambda x: tail(x) - limit, slope, longest, longest + abs(limit))
    problem = Problem(Simplex(assets), Linear(assets, longest), g, name="portfolio")
    stream = Drawn(lambda rng, t: Block((-_bounded(returns(rng, len(t)), longest),)))
    return Scenario(problem, stream, facts={"assets": assets, "limit": limit})


def allocation(instance: int = 0) -> Scenario:
    """Return an allocation to tasks by three resources whose capacities change; x* is feasible in every round."""
    rng = np.random.default_rng([2, instance])
    tasks, resources = int(rng.integers(6, 12)), 3
    usage = rng.uniform(0.0, 1.0, (resources, tasks)) * (rng.random((resources, tasks)) < 0.7)
    usage /= np.maximum(np.linalg.norm(usage, axis=1, keepdims=True), 1e-12)
    value = rng.uniform(0.2, 1.0, tasks)
    capacity = rng.uniform(0.25, 0.5, resources) * usage.sum(axis=1)
    period = float(rng.uniform(50, 400))
    longest = 1.5 * np.sqrt(tasks)

    def make(rng: np.random.Generator, t: np.ndarray) -> Block:
        season = 1 + 0.4 * np.sin(2 * np.pi * t[:, None] / period + np.arange(resources))
        limits = capacity * season * rng.uniform(0.8, 1.2, (len(t), resources))
        costs = -value + rng.uniform(-0.5, 0.5, (len(t), tasks))
        return Block((_bounded(costs, longest),), (np.broadcast_to(usage, (len(t), *usage.shape)), limits))

    g = VaryingAffine(tasks, resources, 1.0, float(2 * capacity.max()))
    problem = Problem(Box.cube(tasks, 0.0, 1.0), Linear(tasks, longest), g, name="allocation")
    return Scenario(problem, Drawn(make), facts={"benchmark": "every round"}, benchmark=EveryRound())


def fair_svm(instance: int = 0) -> Scenario:
    """Return a support vector machine whose score has a small covariance with a sensitive attribute."""
    rng = np.random.default_rng([3, instance])
    d, count = int(rng.integers(8, 20)), 2000
    group = np.where(rng.random(count) < 0.4, 1.0, -1.0)
    truth = rng.standard_normal(d)
    rows = rng.standard_normal((count, d)) + 0.5 * group[:, None] * (rng.random(d) < 0.4)
    rows /= np.sqrt(d)
    labels = np.sign(rows @ truth + 0.3 * group + 0.3 * rng.logistic(size=count))
    covariance = np.mean((group - group.mean())[:, None] * rows, axis=0)
    limit = float(rng.uniform(0.02, 0.1))
    g = Affine(np.stack([covariance, -covariance]), [limit, limit])
    problem = Problem(Ball(d, radius=4.0), Hinge(d, float(np.linalg.norm(rows, axis=1).max())), g, name="fair SVM")

    def make(rng: np.random.Generator, t: np.ndarray) -> Block:
        chosen = rng.integers(count, size=len(t))
        return Block((rows[chosen], labels[chosen]))

    return Scenario(problem, Drawn(make), facts={"limit": limit})


def tracking(instance: int = 0, linear: bool = False) -> Scenario:
    """Return shares of several users on a product of simplices, with capacities per item that are tight to 2 %."""
    rng = np.random.default_rng([4, instance])
    users, items = int(rng.integers(4, 9)), int(rng.integers(4, 9))
    popular = rng.dirichlet(np.full(items, 0.5), users)
    weights = rng.dirichlet(np.full(items, 2.0))
    capacities = 1.02 * users * weights
    g = Affine(np.tile(np.eye(items), users), capacities)
    B, d = Product([Simplex(items)] * users), users * items
    period = float(rng.uniform(100, 1000))

    def make(rng: np.random.Generator, t: np.ndarray) -> Block:
        moving = 0.5 + 0.5 * np.sin(2 * np.pi * t[:, None, None] / period + np.arange(users)[:, None])
        targets = moving * popular + (1 - moving) * rng.dirichlet(np.ones(items), (len(t), users))
        targets = targets.reshape(len(t), d)
        return Block((_bounded(-targets, np.sqrt(users)) if linear else targets,))

    loss: Any = Linear(d, float(np.sqrt(users))) if linear else SquaredDistance(d, targets=B)
    problem = Problem(B, loss, g, name="tracking")
    return Scenario(problem, Drawn(make), facts={"users": users, "items": items})


def completion(instance: int = 0) -> Scenario:
    """Return a matrix whose entries are seen one at a time, with a bound on its trace norm."""
    rng = np.random.default_rng([5, instance])
    p, rank = int(rng.integers(5, 9)), 2
    truth = rng.standard_normal((p, rank)) @ rng.standard_normal((rank, p)) / np.sqrt(rank)
    budget = float(rng.uniform(0.6, 0.9) * np.linalg.norm(truth, "nuc"))
    largest = float(np.abs(truth).max() + 0.5)

    def size(x: np.ndarray) -> np.ndarray:
        return np.linalg.svd(x.reshape(*x.shape[:-1], p, p), compute_uv=False).sum(axis=-1) - budget

    def slope(x: np.ndarray) -> np.ndarray:
        left, _, right = np.linalg.svd(x.reshape(*x.shape[:-1], p, p))
        return (left @ right).reshape(x.shape)

    def make(rng: np.random.Generator, t: np.ndarray) -> Block:
        entries = rng.integers(p * p, size=len(t))
        labels = truth.ravel()[entries] + rng.uniform(-0.5, 0.5, len(t))
        return Block((np.eye(p * p)[entries], labels))

    radius = budget  # the trace ball lies in this ball
    g = CustomConstraint(p * p, size, slope, float(np.sqrt(p)), (np.sqrt(p) + 1) * radius)
    loss = LeastSquares(p * p, 1.0, largest)
    problem = Problem(Ball(p * p, radius=radius), loss, g, name="completion")
    return Scenario(problem, Drawn(make), facts={"size": p, "budget": budget})


BUILDERS = {build.__name__: build for build in (portfolio, allocation, fair_svm, tracking, completion)}


def main() -> None:
    """Run the arena of the five problems and print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=1024)
    parser.add_argument("--instance", type=int, default=0)
    parser.add_argument("--sequences", type=int, default=3)
    parser.add_argument("--learners", nargs="*", default=[])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    problems = [f"fresh_problems:{name} instance={options.instance}" for name in BUILDERS]
    spec = arena_of(options.learners, problems, rounds=options.rounds, sequences=options.sequences)
    arena = run_arena(spec, options.out, backend=Backend(workers=1))
    parts = {name.split(":")[1].split(",")[0]: {name: facts} for name, facts in arena.problems.items()}
    for violation in ("hard", "long-term"):
        print(f"| {violation} | plain | bank = 0.1 | best other | rank of the better |\n|---|---|---|---|---|")
        for name, chosen in (*parts.items(), ("all", arena.problems)):
            rows: list[list[str]] = [[], [], [], []]
            matches = tuple(match for match in arena.matches if match.problem in chosen)
            for weight in (0.25, 0.5, 0.75):
                table = league(replace(arena, problems=chosen, matches=matches), Preference(weight, violation))
                score = {one.learner: one.score for one in table}
                ours = [score["Hedged cuts"], score["Hedged cuts, bank = 0.1"]]
                other = next(one for one in table if not one.learner.startswith("Hedged cuts"))
                rank = 1 + sum(
                    one.score < min(ours) - 1e-9 for one in table if not one.learner.startswith("Hedged cuts")
                )
                for row, text in zip(
                    rows, (*(f"{x:.3f}" for x in ours), f"{other.score:.3f} {other.learner}", str(rank)), strict=True
                ):
                    row.append(text)
            print(f"| {name} | " + " | ".join(" / ".join(row) for row in rows) + " |")


if __name__ == "__main__":
    main()
