"""
Pacing your own auctions
========================

Assumes the core alone. A log is a CSV file with a header; name its columns. The budget is never overspent.
"""

import tempfile
from pathlib import Path

from longterm.pacing import Auctions, DualMirrorDescent, PriceHistory, best_in_hindsight, play, synthetic_auctions

log = Path(tempfile.mkdtemp()) / "log.csv"
made = synthetic_auctions(5_000, seed=0)
pairs = zip(made.values, made.prices, strict=True)
log.write_text("ctr,cost\n" + "\n".join(f"{value},{price}" for value, price in pairs))

auctions = Auctions.from_csv(log, values="ctr", prices="cost")
budget = 0.1 * auctions.total_price
pacer = DualMirrorDescent.calibrated(budget, len(auctions), PriceHistory.of(synthetic_auctions(5_000, seed=1)))
replay = play(pacer, auctions)
best = best_in_hindsight(auctions.values, auctions.prices, budget)
print(f"spent {replay.spent / budget:.1%} of the budget, won {replay.value / best.objective:.1%} of the best")

# %%
# Next: :doc:`/pacing`.
