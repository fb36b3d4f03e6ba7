"""
From a CSV file to a sparse model and a report
==============================================

Assumes the extras ``experiments`` and ``linear``. You need a table with a header. Name the column of the labels and the
columns to leave out. This command makes a report of the same data:
``longterm run --problem "budgeted_logistic data=customers.csv label=churned drop=customer budget=2" --learners aogd aftrl --out mine``.
"""

import io
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from longterm.data import load_table
from longterm.lab import Backend, run_experiment, write_page
from longterm.lab.experiments.spec_tables import spec_of
from longterm.linear_model import BudgetLinearLearner

folder = Path(tempfile.mkdtemp())
rng, plans = np.random.default_rng(0), ["basic", "pro", "team"]
people = zip(
    rng.integers(18, 80, 400), rng.poisson(3, 400), rng.gamma(2.0, 40.0, 400), rng.choice(plans, 400), strict=True
)
lines = [
    f"C{n},{age},{visits},{spent:.2f},{plan},{'yes' if age / 20 - visits + 2 * (plan == 'basic') > 0 else 'no'}"
    for n, (age, visits, spent, plan) in enumerate(people)
]
file = folder / "customers.csv"
file.write_text("customer,age,visits,spent,plan,churned\n" + "\n".join(lines))

# %%
# The model takes the rows one by one, and scores each row before it learns from it. Columns may have different units.

rows = load_table(file, label="churned", drop=["customer"])
print(rows)
model = BudgetLinearLearner(len(rows.columns), budget=20.0)
margins = [model.step_dense(row, label) for row, label in zip(rows.features, rows.signs, strict=True)]
print(f"{np.mean(np.sign(margins) == rows.signs):.0%} right with {model.nonzeros} of {len(rows.columns)} weights:")
print({name: round(float(weight), 3) for name, weight in zip(rows.columns, model.weights, strict=True) if weight})
figure, axis = plt.subplots(figsize=(6, 2.8), layout="constrained")
axis.barh(rows.columns, model.weights * rows.features.std(axis=0))
axis.set_xlabel("weight × deviation of the column")

# %%
# Several learners take the same rows. The report has their regret against the best model in hindsight.

spec = spec_of(
    {
        "problem": {
            "name": "budgeted_logistic",
            "data": str(file),
            "label": "churned",
            "drop": "customer",
            "budget": 2.0,
        },
        "learners": [{"learner": "aogd"}, {"learner": "aftrl"}],
        "seeds": [0, 1],
    }
)
result = run_experiment(spec, folder / "results", backend=Backend(workers=1), out=io.StringIO())
page = write_page(result, folder / "report.html")
print(page.name, "and", [curve.name for curve in result.curves])
print(result.to_frame().groupby("curve").regret.last().round(2).to_dict())

# %%
# Next: :doc:`/guides/linear_model` for models, :doc:`/guides/experiments` for reports.
