"""The theorems, as functions of the constants and the horizon.

Every function takes one horizon or an increasing array of them, and gives a `Bound` of the same shape.
"""

from longterm.bounds.aogd import lemma_5, theorem_1, theorem_1_as_printed, theorem_1_strongly_convex
from longterm.bounds.base import Bound
from longterm.bounds.projected_ogd import hazan_agarwal_kale, zinkevich

__all__ = [
    "Bound",
    "hazan_agarwal_kale",
    "lemma_5",
    "theorem_1",
    "theorem_1_as_printed",
    "theorem_1_strongly_convex",
    "zinkevich",
]
