"""Theory: bounds, schedules, the conditions C1–C3, margins, delay, the paper's lemmas and theorems."""

from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import MEASURES, Bounds, NoTheoremError
from longterm.theory.delay import gradient_bound_under_delay, lemma_5_delayed
from longterm.theory.paper import PaperBound, lemma_5, theorem_1, theorem_1_as_printed, theorem_1_strongly_convex

__all__ = [
    "MEASURES",
    "Assumption",
    "Bounds",
    "NoTheoremError",
    "PaperBound",
    "gradient_bound_under_delay",
    "lemma_5",
    "lemma_5_delayed",
    "theorem_1",
    "theorem_1_as_printed",
    "theorem_1_strongly_convex",
]
