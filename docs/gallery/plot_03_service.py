"""
A learner in a web service: late feedback, restarts, threads
============================================================

Assumes the core alone, and matplotlib for the figure. ``ask`` gives a decision and a token; its text travels with the request, and ``tell`` comes when it
comes. With a journal nothing that was acknowledged is lost when the process is killed.
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from longterm import AOGD, LiveLearner
from longterm.problems import two_dimensional

problem = two_dimensional()
learner = AOGD.for_problem(problem)
journal = Path(tempfile.mkdtemp()) / "learner.journal"
live = LiveLearner(learner, problem, journal=journal, fsync=False)


def handle(request: int) -> str:
    """What a request handler does: decide, and hand the token on, as text."""
    return str(live.ask())


with ThreadPoolExecutor(4) as workers:
    tokens = list(workers.map(handle, range(100)))

rng, decisions = np.random.default_rng(0), []
for token in rng.permutation(tokens)[:80]:  # feedback in any order; of twenty nothing is heard
    live.tell(str(token), loss_parameters=[rng.uniform(0.0, 0.7, 2)])
    decisions.append(live.state.x)
print(live)
figure, axis = plt.subplots(figsize=(6, 2.8), layout="constrained")
axis.plot(decisions, label=["x₁", "x₂"])
axis.set(xlabel="feedback taken", ylabel="the next decision")
axis.legend()

# %%
# All hundred were decided at the start, within the constraint, so that all feedback here says: go further.
#
# The process ends, by ``close`` or by kill −9. The next one goes on from the journal.

before = live.state.x
live.close()
again = LiveLearner(learner, problem, journal=journal, fsync=False)
print(again)
assert np.array_equal(again.state.x, before)
again.close()

# %%
# Several worker processes: one of them holds the learner, since one process at a time may have a journal open; the others
# send it ``ask`` and ``tell``. Next: :doc:`/live`, with what late feedback costs.
