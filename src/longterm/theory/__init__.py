"""Theory: bounds, schedules, the conditions C1–C3, margins, delay, the paper's lemmas and theorems.

Formulas without a state belong here. A theorem about one learner is a method of that learner.
"""

from longterm.theory.delay import gradient_bound_under_delay, lemma_5_delayed
from longterm.theory.paper import lemma_5, theorem_1, theorem_1_strongly_convex

__all__ = [
    "gradient_bound_under_delay",
    "lemma_5",
    "lemma_5_delayed",
    "theorem_1",
    "theorem_1_strongly_convex",
]
