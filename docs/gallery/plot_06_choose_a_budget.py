"""
Choose a budget
===============

Assumes the extra ``linear``. How much budget does a sparse model need? Try several at once and look at what they cost.
"""

import numpy as np

from longterm.data import load_sample
from longterm.linear_model import BudgetLinearLearner

rows, order = load_sample(), np.random.default_rng(0).permutation(6000)
print("budget  right  weights")
for budget in (1.0, 5.0, 20.0, 50.0):
    model = BudgetLinearLearner(54, budget=budget)
    margins = model.learn(rows.features, rows.labels, order=order)
    print(f"{budget:6.0f}  {np.mean(np.sign(margins) == rows.labels[order]):.1%}  {model.nonzeros}")

# %%
# ``longterm.hindsight.choose_budget`` finds the budget for a wanted share of non-zeros. Next: :doc:`/linear_model`.
