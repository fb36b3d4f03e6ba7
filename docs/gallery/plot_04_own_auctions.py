"""
Pacing your own auctions
========================

Assumes the core alone, and Matplotlib for the figure. A log is a CSV file with a header, and you name the columns of values
and prices. The prices of the morning set the first bid. Then the pacer bids in the auctions of the rest of the day. The
budget is never overspent.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from longterm.money import (
    Auctions,
    DualMirrorDescent,
    PriceHistory,
    best_in_hindsight,
    replay_auctions,
    synthetic_auctions,
)

log = Path(tempfile.mkdtemp()) / "log.csv"
made = synthetic_auctions(5_000, seed=0)
pairs = zip(made.values, made.prices, strict=True)
log.write_text("pCTR,market price\n" + "\n".join(f"{value},{price}" for value, price in pairs))

auctions = Auctions.from_csv(log, values="pCTR", prices="market price")
morning, day = auctions[:1_000], auctions[1_000:]
budget = 0.1 * day.total_price
pacer = DualMirrorDescent.calibrated(budget, len(day), PriceHistory.of(morning))
run = replay_auctions(pacer, day)
best = best_in_hindsight(day.values, day.prices, budget)
print(day, run, sep="\n")
print(f"spent {run.spent / budget:.1%} of the budget, won {run.value / best.objective:.1%} of the best")
figure, axis = plt.subplots(figsize=(6, 2.8), layout="constrained")
axis.plot(100 * np.cumsum(run.paid) / budget, label="spent")
axis.plot([0, len(day)], [0, 100], color="grey", linewidth=0.8, label="evenly")
axis.set(xlabel="auction", ylabel="% of the budget")
axis.legend()

# %%
# Next: :doc:`/guides/pacing`.
