"""
One budget that never changes
=============================

Assumes the core alone. Prices arrive round by round, and ‖x‖₁ must be at most ½ in the long run. `PenalisedFTRL` puts the
constraint itself into its step, so it hardly violates it.
"""

from longterm import AOGD, Problem, compare, hindsight
from longterm.learners import PenalisedFTRL
from longterm.problems.constraints import L1Budget
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball
from longterm.problems.streams import RandomCosts

problem = Problem(Ball(5), Linear(5), L1Budget(5, budget=0.5))
learners = {"penalised FTRL": PenalisedFTRL.for_problem(problem), "A-OGD": AOGD.for_problem(problem)}
played = compare(problem, learners, RandomCosts(5), 1000, seeds=range(5))
best = hindsight.best(played)
for name, trace in played.items():
    regret, hard = trace.regret(best)[-1], trace.hard_violation[-1]
    print(f"{name:<15} mean regret {regret.mean():5.1f}, mean hard violation {hard.mean():5.1f}")
figure = played.plot(best)

# %%
# Next: :doc:`/guides/choose`.
