"""The theorems, as functions of the constants and the horizon.

Every function takes one horizon or a list of them, and gives a `Bound` of the same shape.
"""

from longterm.bounds.aogd import lemma_5, theorem_1, theorem_1_as_printed, theorem_1_strongly_convex
from longterm.bounds.base import Bound

__all__ = ["Bound", "lemma_5", "theorem_1", "theorem_1_as_printed", "theorem_1_strongly_convex"]
