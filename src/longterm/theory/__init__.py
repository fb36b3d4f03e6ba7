"""What the theorems speak of: constants, Slater points, schedules, the conditions C1–C3, penalties, margins, bounds."""

from longterm.theory.bounds import MEASURES, Bounds, NoTheoremError
from longterm.theory.facts import Assumption, Constants, Counterexample, challenge
from longterm.theory.paper import (
    Bound,
    gradient_bound_under_delay,
    lemma_5,
    lemma_5_delayed,
    theorem_1,
    theorem_1_as_printed,
    theorem_1_strongly_convex,
)
from longterm.theory.slater import SlaterPoint, find_slater_point

__all__ = [
    "MEASURES",
    "Assumption",
    "Bound",
    "Bounds",
    "Constants",
    "Counterexample",
    "NoTheoremError",
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
