"""
Forget old rows when the world drifts
=====================================

Assumes the extra `linear`. The data are electricity prices of New South Wales, one row per half hour. The label says whether
the price is above its mean over the last day. A learner with a half-life gives old rows less weight. If the data set is not
on your machine, the page uses an invented stream, in which the relation turns every 3,000 rows.
"""

# %%
# The model gets five columns, but not the price itself, because the label is computed from it.
import matplotlib.pyplot as plt
import numpy as np

from longterm.data import load_elec2
from longterm.errors import DataError
from longterm.linear_model import BudgetLinearClassifier

try:
    elec = load_elec2()
    X = np.stack([elec.period, elec.nsw_demand, elec.vic_price, elec.vic_demand, elec.transfer], axis=1)
    y, week = elec.labels, 48 * 7
except DataError as error:
    print(f"{error}\nA stream that turns stands in.")
    rng = np.random.default_rng(0)
    X, week = rng.standard_normal((12_000, 5)), 336
    y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(12_000)) * np.where(np.arange(12_000) // 3000 % 2, -1, 1)

# %%
# Each week is scored before the model learns from it.
half_lives = {"never forgets": None, "half-life of four weeks": 4 * week, "half-life of half a week": week // 2}
losses = {}
for name, half_life in half_lives.items():
    model, seen = BudgetLinearClassifier(half_life=half_life, random_state=0), []
    for start in range(0, len(y) - week, week):
        before = model.cumulative_loss_ if start else 0.0
        model.partial_fit(X[start : start + week], y[start : start + week], classes=[-1, 1])
        seen.append((model.cumulative_loss_ - before) / week)
    losses[name] = np.array(seen)
    print(f"{name:<26}{losses[name].mean():.4f}")

# %%
# The curves are means over a quarter of a year. With too short a half-life the model also forgets what has not changed.
figure, axis = plt.subplots(figsize=(8, 4))
quarter = 13
for name, seen in losses.items():
    smooth = np.convolve(seen, np.ones(quarter) / quarter, mode="valid")
    axis.plot(np.arange(len(smooth)) + quarter, smooth, label=name)
axis.axhline(np.log(2), color="grey", linewidth=0.8, linestyle=":")
axis.annotate("a coin", (quarter, np.log(2)), xytext=(0, 3), textcoords="offset points", color="grey", fontsize=8)
axis.set(xlabel="week", ylabel="progressive loss, mean of 13 weeks", title="Loss with three half-lives")
axis.legend(frameon=False)
figure.tight_layout()

# %%
# If the model also gets the price, the one that never forgets is best, because the relation between a price and its mean
# does not drift. Compare progressive losses before you choose a half-life. Next: :doc:`/guides/drift`.
