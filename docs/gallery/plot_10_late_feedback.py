"""
What changes the answer: feedback comes late
============================================

Assumes the core alone. The steps are made for a gradient bound that counts the delay; then a theorem holds.
"""

from longterm import AOGD
from longterm.problems import two_dimensional
from longterm.theory import gradient_bound_under_delay, lemma_5_delayed
from longterm.theory.schedules import StronglyConvexSchedule

problem = two_dimensional()
for late in (0, 5, 50):
    bound = gradient_bound_under_delay(problem.constants.gradient_bound, late)
    schedule = StronglyConvexSchedule(bound, strong_convexity=1.0, beta=0.5)
    learner = AOGD(problem.enclosing_set, schedule)
    proved = lemma_5_delayed(schedule, problem.constants, 10_000, late)
    print(f"at most {late:2d} rounds late: Σ g ≤ {float(proved.violation):,.0f} after 10,000 rounds")

# %%
# Next: :doc:`/live`.
