"""The theorems, as functions of the constants and the horizon.

Every function takes one horizon or an increasing array of them, and gives a `Bound` of the same shape.
"""

from longterm.bounds.aogd import lemma_5, theorem_1, theorem_1_as_printed, theorem_1_strongly_convex
from longterm.bounds.base import Bound
from longterm.bounds.delayed import gradient_bound_under_delay, lemma_5_delayed

__all__ = [
    "Bound",
    "gradient_bound_under_delay",
    "lemma_5",
    "lemma_5_delayed",
    "theorem_1",
    "theorem_1_as_printed",
    "theorem_1_strongly_convex",
]
