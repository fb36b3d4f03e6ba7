"""
Choosing actions under a budget
===============================

Assumes the core alone. Two models answer questions; the large one is expensive, and better on hard questions. A
reward is known only for the model that answered. The budget is never overspent.
"""

import matplotlib.pyplot as plt
import numpy as np

from longterm.money import (
    Budget,
    Chooser,
    EntropicDual,
    FixedMixture,
    OutcomeTable,
    PrimalDual,
    ThompsonSampling,
    best_choices,
    replay_outcomes,
)

rng = np.random.default_rng(0)
hard = rng.random(2000)
right = rng.random((2000, 2)) < np.stack([0.9 - 0.7 * hard, 0.9 - 0.1 * hard], axis=1)
features, costs = np.stack([np.ones(2000), hard], axis=1), np.tile([0.1, 1.0], (2000, 1))
table = OutcomeTable(features, rewards=1.0 * right, costs=costs)
budget = Budget(limit=0.3 * 0.9 * 2000, largest=0.9, above_cheapest=True)  # enough to send 30 % to the large model


def run(primal):
    rule = PrimalDual(primal, EntropicDual(start=0.3, step=0.02), budget, horizon=2000, replan=True)
    return replay_outcomes(Chooser(rule, seed=1), table)


learned, mixed = run(ThompsonSampling(actions=2, features=2, exploration=1.0)), run(FixedMixture((0.7, 0.3)))
best = best_choices(table.rewards, table.costs, budget, "classes", classes=np.digitize(hard, np.linspace(0, 1, 11)))
print(f"best choices in hindsight: {best.value / 2000:.3f} right")
for name, done in {"Thompson sampling": learned, "a random mix": mixed}.items():
    print(f"{name}: {done.rewards.mean():.3f} right, {done.counted.sum() / budget.limit:.1%} of the money")

# %%
# On the left: the share of questions that the large model answers, by difficulty. On the right: the price of money, which
# says how much reward a unit of money must bring.

figure, (left, right_hand) = plt.subplots(1, 2, figsize=(9, 3.2), constrained_layout=True)
bins = np.linspace(0, 1, 11)
for name, done in {"Thompson sampling": learned, "a random mix": mixed}.items():
    large, _ = np.histogram(hard[done.actions == 1], bins)
    left.stairs(large / np.histogram(hard, bins)[0], bins, label=name)
left.set(xlabel="difficulty", ylabel="share, large model")
left.legend()
right_hand.plot(learned.prices, linewidth=0.8)
right_hand.set(xlabel="request", ylabel="price of money", yscale="log")

# %%
# Next: :doc:`/guides/decisions`.
