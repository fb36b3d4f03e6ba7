"""
Feedback that comes late
========================

Assumes the core alone, and Matplotlib for the figure. The step sizes use a gradient bound that includes the delay.
With such steps a theorem bounds the violation. The figure draws this bound.
"""

import matplotlib.pyplot as plt

from longterm.problems import two_dimensional
from longterm.theory import gradient_bound_under_delay, lemma_5_delayed
from longterm.theory.schedules import StronglyConvexSchedule

problem, rounds = two_dimensional(), [10, 100, 1_000, 10_000]
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for late in (0, 5, 50):
    bound = gradient_bound_under_delay(problem.constants.gradient_bound, late)
    schedule = StronglyConvexSchedule(bound, strong_convexity=1.0, beta=0.5)
    proved = [float(lemma_5_delayed(schedule, problem.constants, t, late).violation) for t in rounds]
    print(f"at most {late:2d} rounds late: Σ g ≤ {proved[-1]:,.0f} after 10,000 rounds")
    axis.loglog(rounds, proved, "o-", label=f"at most {late} rounds late")
axis.set(xlabel="round t", ylabel="Σ g at most")
axis.legend()

# %%
# The bound holds for the learner ``AOGD(problem.enclosing_set, schedule)``.

# %%
# Next: :doc:`/guides/late_feedback`.
