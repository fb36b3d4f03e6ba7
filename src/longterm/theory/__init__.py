"""What the theorems speak of: constants, Slater points, schedules, the conditions C1–C3, penalties, margins."""

from longterm.theory.assumptions import Assumption
from longterm.theory.facts import Constants, Counterexample, challenge
from longterm.theory.slater import SlaterPoint, find_slater_point

__all__ = ["Assumption", "Constants", "Counterexample", "SlaterPoint", "challenge", "find_slater_point"]
