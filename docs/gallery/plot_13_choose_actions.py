"""
Choosing actions under a budget
===============================

Assumes the core alone. Two models answer questions; the large one is dear and better on hard ones. Only the answer of
the model that was asked is scored. The budget is never overspent.
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
budget = Budget(limit=0.3 * 0.9 * 2000, largest=0.9, above_cheapest=True)  # a third of the questions may be dear


def run(primal):
    rule = PrimalDual(primal, EntropicDual(start=0.3, step=0.02), budget, horizon=2000, replan=True)
    return replay_outcomes(Chooser(rule, seed=1), table)


learned, mixed = run(ThompsonSampling(actions=2, features=2, exploration=1.0)), run(FixedMixture((0.7, 0.3)))
best = best_choices(table.rewards, table.costs, budget, "classes", classes=np.digitize(hard, np.linspace(0, 1, 11)))
print(f"knows how good each model is: {best.value / 2000:.3f}")
for name, done in {"Thompson sampling": learned, "a random mix": mixed}.items():
    print(f"{name}: {done.rewards.mean():.3f} right, {done.counted.sum() / budget.limit:.1%} of the money")

# %%
# Which questions the money went to, and the price of money that sends it there.

figure, (left, right_hand) = plt.subplots(1, 2, figsize=(9, 3.2), constrained_layout=True)
bins = np.linspace(0, 1, 11)
for name, done in {"Thompson sampling": learned, "a random mix": mixed}.items():
    dear, _ = np.histogram(hard[done.actions == 1], bins)
    left.stairs(dear / np.histogram(hard, bins)[0], bins, label=name)
left.set(xlabel="how hard the question is", ylabel="share answered by the large model")
left.legend()
right_hand.plot(learned.prices, linewidth=0.8)
right_hand.set(xlabel="request", ylabel="price of money", yscale="log")

# %%
# Next: :doc:`/guides/decisions`.
