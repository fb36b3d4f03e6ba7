"""
From a CSV file to a report
===========================

Assumes the extra ``experiments``. A table with a header and a column called label is enough. On the command line the same is
``longterm run --problem "budgeted_logistic data=mine.csv budget=2" --learners aogd aftrl --out mine``.
"""

import io
import tempfile
from pathlib import Path

import numpy as np

from longterm.experiments import Backend, run_experiment, spec_of
from longterm.report import write_page

folder = Path(tempfile.mkdtemp())
rows = np.random.default_rng(0).standard_normal((400, 3))
lines = [f"{a:.4f},{b:.4f},{c:.4f},{'yes' if a > b else 'no'}" for a, b, c in rows]
(folder / "mine.csv").write_text("age,income,visits,label\n" + "\n".join(lines))

spec = spec_of(
    {
        "problem": {"name": "budgeted_logistic", "data": str(folder / "mine.csv"), "budget": 2.0},
        "learners": [{"learner": "aogd"}, {"learner": "aftrl"}],
        "seeds": [0, 1],
    }
)
result = run_experiment(spec, folder / "results", backend=Backend(workers=1), out=io.StringIO())
page = write_page(result, folder / "report.html")
print(page.name, "and", [curve.name for curve in result.curves])
print(result.frame().groupby("curve").regret.last().round(2).to_dict())

# %%
# Next: :doc:`/experiments`.
