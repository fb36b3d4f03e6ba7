"""The theorems, as functions of the constants and the horizon.

Every function takes one horizon or an increasing array of them, and gives a `Bound` of the same shape.
"""

from longterm.bounds.aogd import lemma_5, theorem_1, theorem_1_as_printed, theorem_1_strongly_convex
from longterm.bounds.base import Bound
from longterm.bounds.mahdavi import theorem_4, vector_lemma
from longterm.bounds.mirror_prox import corollary_13, theorem_12
from longterm.bounds.no_violation import corollary_1, decaying_margin, doubling_epochs, theorem_8

__all__ = [
    "Bound",
    "corollary_1",
    "corollary_13",
    "decaying_margin",
    "doubling_epochs",
    "lemma_5",
    "theorem_1",
    "theorem_1_as_printed",
    "theorem_1_strongly_convex",
    "theorem_4",
    "theorem_8",
    "theorem_12",
    "vector_lemma",
]
