"""
A fixed affine constraint
=========================

Assumes the core alone, and Matplotlib for the figure. `AFTRL` and `ProximalAOGD` use the proximal map of the
constraint. `YuNeely` needs to know the number of rounds.
"""

from longterm import compare, hindsight
from longterm.learners import AFTRL, ProximalAOGD, YuNeely
from longterm.problems import two_dimensional
from longterm.problems.streams import RandomCosts

problem = two_dimensional()
learners = {
    "A-FTRL": AFTRL.for_problem(problem),
    "proximal A-OGD": ProximalAOGD.for_problem(problem),
    "Yu–Neely": YuNeely.for_problem(problem, horizon=1000),
}
played = compare(problem, learners, RandomCosts(2), 1000, seeds=range(3))
best = hindsight.best(played)
for name, trace in played.items():
    regret, hard = trace.regret(best)[-1], trace.hard_violation[-1]
    print(f"{name:<15} mean regret {regret.mean():5.1f}, mean hard violation {hard.mean():5.1f}")
figure = played.plot(best)

# %%
# Next: :doc:`/proofs/guarantees`.
