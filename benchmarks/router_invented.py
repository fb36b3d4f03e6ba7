"""The router on invented tables, chosen to be hard: how many runs lock into one model, and what they miss.

    python benchmarks/router_invented.py                      # all tables, 12 seeds, 1,500 requests: six minutes
    python benchmarks/router_invented.py exact --largest 4    # bounds of four prices in place of twelve

A run is *locked* if one model answers over 95 % of its last third, although the best fixed mixture within the ceiling,
by the true mean rewards, earns 0.02 more there. "missed" is what that mixture earns more; it is negative where the
router uses the prompts. A ceiling is the smallest price plus a share of what the best model costs more.

exact      The ceiling is the price of a middle model, and a mixture of the others is better.
unlucky    The best model fails in its first five answers, whatever the prompts are.
pareto     The variance of costs is infinite: bounds are broken again and again.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import NamedTuple

import numpy as np

from longterm.errors import BrokenBoundWarning
from longterm.lab.experiments.jobs import single_threaded
from longterm.money import Budget, Router, best_choices

SHARES = (0.05, 0.15, 0.3, 0.5, 0.9)
FEATURES = 4


class Models(NamedTuple):
    """Mean rewards and prices of models, the deviation of log costs, and how much prompts matter."""

    rewards: tuple[float, ...]
    prices: tuple[float, ...]
    spread: float = 0.4
    context: float = 0.0


TABLES = {
    "equal": Models((0.6,) * 8, tuple(np.logspace(0, 2, 8))),
    "best dearest": Models((0.4, 0.4, 0.4, 0.4, 0.8), (1, 2, 4, 8, 100)),
    "best a bit dearer": Models((0.5, 0.45, 0.55, 0.5, 0.75), (1, 3, 9, 27, 30)),
    "two nearly equal": Models((0.6, 0.65, 0.3), (1, 10, 3)),
    "best cheapest": Models((0.8, 0.5, 0.5, 0.6), (1, 3, 10, 30)),
    "twenty": Models((0.4,) * 19 + (0.8,), tuple(np.logspace(0, 2, 20))),
    "prompts matter": Models((0.5,) * 4, (1, 3, 10, 30), context=0.3),
    "noisy costs": Models((0.4, 0.6, 0.8), (1, 5, 25), spread=1.2),
    "pareto": Models((0.4, 0.6, 0.8), (1, 5, 25), spread=np.inf),
    "rare rewards": Models((0.01, 0.03, 0.1), (1, 5, 25)),
    "unlucky": Models((0.4, 0.5, 0.8), (1, 5, 25)),
    "exact": Models((0.45, 0.5, 0.9), (1, 10, 30)),
}


def run(name: str, rounds: int, share: float, seed: int, largest: float) -> tuple[float, float, bool]:
    """Return the share of the money that was used, what was missed, and whether the run is locked."""
    models, rng = TABLES[name], np.random.default_rng([seed, list(TABLES).index(name)])
    prices, K = 1e-4 * np.array(models.prices, dtype=float), len(models.prices)
    x = rng.standard_normal((rounds, FEATURES)) / 2
    chances = np.clip(np.array(models.rewards) + x @ rng.normal(0, models.context, (FEATURES, K)), 0.0, 1.0)
    rewards = (rng.random(chances.shape) < chances).astype(float)
    if np.isinf(models.spread):
        costs = prices / 3 * (1 + rng.pareto(1.5, chances.shape))
    else:
        costs = prices * rng.lognormal(-(models.spread**2) / 2, models.spread, chances.shape)
    best = int(chances.mean(axis=0).argmax()) or int(prices.argmax())
    ceiling = prices[1] * (0.95 + 0.2 * share) if name == "exact" else prices[0] + share * (prices[best] - prices[0])
    names = [f"model {k}" for k in range(K)]
    router = Router.for_models(
        dict(zip(names, prices.tolist(), strict=True)),
        per_request=float(ceiling),
        features=FEATURES,
        largest=dict(zip(names, (largest * prices).tolist(), strict=True)),
        seed=seed,
    )
    chosen, tries = np.empty(rounds, dtype=int), 0
    for t in range(rounds):
        route = router.route(x[t])
        k = chosen[t] = names.index(route.model)
        reward = rewards[t, k]
        if name == "unlucky" and k == best:
            tries += 1
            reward = reward if tries > 5 else 0.0
        router.settle(route, float(reward), float(costs[t, k]))
    last = np.arange(rounds - rounds // 3, rounds)
    budget = Budget(float(ceiling) * len(last), largest=float(prices.max()))
    mixture = best_choices(chances[last], np.tile(prices, (len(last), 1)), budget, "mixture").value / len(last)
    missed = float(mixture - chances[last, chosen[last]].mean())
    top = np.bincount(chosen[last]).max() / len(last)
    return float(costs[np.arange(rounds), chosen].mean() / ceiling), missed, bool(top > 0.95 and missed > 0.02)


def main() -> None:
    """Print a row for each table and share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=1500)
    parser.add_argument("--largest", type=float, default=12.0, help="the bounds, in prices")
    given = parser.parse_args()
    with single_threaded(), warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokenBoundWarning)
        for name in given.tables:
            for share in SHARES:
                runs = np.array([run(name, given.rounds, share, seed, given.largest) for seed in range(given.seeds)])
                used, missed, locked = runs.mean(axis=0)
                sys.stdout.write(f"{name:<20}share {share:<6g}used {used:.3f}  missed {missed:+.4f}  ")
                sys.stdout.write(f"worst {runs[:, 1].max():+.4f}  locked {locked:.0%}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
