"""
Save a run, and continue it tomorrow
====================================

Assumes the core alone, and Matplotlib for the figure. A saved trace is a file of arrays with a checksum. It contains
no code.
"""

import tempfile
from pathlib import Path

from longterm import AOGD, Trace, run
from longterm.problems import doubly_stochastic
from longterm.problems.streams import RandomPermutations

problem = doubly_stochastic(4)
learner = AOGD.for_problem(problem)
path = Path(tempfile.mkdtemp()) / "today.trace"
run(problem, learner, RandomPermutations(4), 500).save(path)
trace = run(problem, learner, RandomPermutations(4), 1000, resume=Trace.load(path, learner))
print(f"{trace.rounds[-1]} rounds, loss {trace.cumulative_loss[-1]:.1f}")
figure = trace.plot()

# %%
# Next: :doc:`/guides/resuming`.
