"""
Choose a budget
===============

Assumes the extras ``linear`` and ``experiments``. How large should the budget of a sparse model be? Train
with several budgets, and compare accuracy and size.
"""

import matplotlib.pyplot as plt
import numpy as np

from longterm.data import load_sample
from longterm.linear_model import BudgetLinearLearner

rows, order = load_sample(), np.random.default_rng(0).permutation(6000)
found = []
print("budget  right  weights")
for budget in (1.0, 5.0, 20.0, 50.0):
    model = BudgetLinearLearner(54, budget=budget)
    margins = model.learn(rows.features, rows.labels, order=order)
    right = np.mean(np.sign(margins) == rows.labels[order])
    print(f"{budget:6.0f}  {right:.1%}  {model.nonzeros}")
    found.append((model.nonzeros, 100 * right, f"budget {budget:g}"))

figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
axis.plot([weights for weights, _, _ in found], [right for _, right, _ in found], "o-")
for weights, right, words in found:
    axis.annotate(words, (weights, right), xytext=(6, -12), textcoords="offset points")
axis.set(xlabel="non-zero weights", ylabel="% right, each row scored first")
axis.margins(0.25)

# %%
# ``longterm.hindsight.choose_budget`` finds the budget for a wanted share of non-zeros. Next: :doc:`/guides/budget`.
