"""
Every round must be feasible
============================

Assumes the core alone, and Matplotlib for the figure. If projecting onto the constraint is cheap, project in every
round: then no round violates it.
"""

from longterm import AOGD, compare, hindsight
from longterm.learners import ProjectedOGD
from longterm.problems import doubly_stochastic
from longterm.problems.streams import RandomPermutations

problem = doubly_stochastic(4)
steps = {"steps": "strongly convex"}
learners = {"projected": ProjectedOGD.for_problem(problem, **steps), "A-OGD": AOGD.for_problem(problem, **steps)}
played = compare(problem, learners, RandomPermutations(4), 1000)
best = hindsight.best(played)
print(played.summary(best))
figure = played.plot(best)

# %%
# Next: :doc:`/benchmarks/choosing`, what a projection costs.
