"""Theory: constants, Slater points, schedules, the conditions C1–C3, penalties, margins and bounds."""

from longterm.theory.bounds import MEASURES, Bounds, NoTheoremError
from longterm.theory.counterexamples import Counterexample, challenge
from longterm.theory.delay import gradient_bound_under_delay, lemma_5_delayed
from longterm.theory.facts import Assumption, Constants
from longterm.theory.paper import PaperBound, lemma_5, theorem_1, theorem_1_as_printed, theorem_1_strongly_convex
from longterm.theory.slater import SlaterPoint, find_slater_point

__all__ = [
    "MEASURES",
    "Assumption",
    "Bounds",
    "Constants",
    "Counterexample",
    "NoTheoremError",
    "PaperBound",
    "SlaterPoint",
    "challenge",
    "find_slater_point",
    "gradient_bound_under_delay",
    "lemma_5",
    "lemma_5_delayed",
    "theorem_1",
    "theorem_1_as_printed",
    "theorem_1_strongly_convex",
]
