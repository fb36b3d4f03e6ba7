"""
Many learners at once
=====================

Assumes the core alone, and Matplotlib for the figure. Seeds and grids of hyper-parameters run as one batch. A fleet
is many learners that get their feedback one by one.
"""

import matplotlib.pyplot as plt
import numpy as np

from longterm import AOGD, Fleet, observe, run
from longterm.problems import doubly_stochastic
from longterm.problems.streams import RandomPermutations

problem = doubly_stochastic(4)
grid = AOGD.for_problem(problem, beta=np.array([0.5, 2 / 3, 0.75]))
trace = run(problem, grid, RandomPermutations(4), 500, seeds=range(10))
print("recorded rounds, values of β, seeds:", trace.hard_violation.shape)
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
axis.plot(trace.rounds, trace.hard_violation.mean(axis=-1), label=["β = 0.5", "β = 2/3", "β = 0.75"])
axis.set(xlabel="round t", ylabel="Σ [g]₊, mean of ten seeds")
axis.legend()

# %%
fleet = Fleet(AOGD.for_problem(problem), 1000)
some = np.array([3, 141, 592])
targets = np.tile(np.eye(4).ravel(), (3, 1))
fleet.tell(observe(problem, fleet.ask(some), [targets]), some)
print(fleet)

# %%
# Next: :doc:`/guides/late_feedback`.
