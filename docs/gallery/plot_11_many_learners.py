"""
What changes the answer: many learners at once
==============================================

Assumes the core alone. Seeds and grids of hyper-parameters are one batch; a fleet is many learners that are told one by one.
"""

import numpy as np

from longterm import AOGD, Fleet, observe, run
from longterm.problems import doubly_stochastic
from longterm.streams import RandomPermutations

problem = doubly_stochastic(4)
grid = AOGD.for_problem(problem, beta=np.array([0.5, 2 / 3, 0.75]))
trace = run(problem, grid, RandomPermutations(4), 500, seeds=range(10))
print(trace)

# %%
fleet = Fleet(AOGD.for_problem(problem), 1000)
some = np.array([3, 141, 592])
targets = np.tile(np.eye(4).ravel(), (3, 1))
fleet.tell(observe(problem, fleet.ask(some), [targets]), some)
print(fleet)

# %%
# Next: :doc:`/live`.
