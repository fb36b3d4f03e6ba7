"""Learners: one published algorithm per file."""

from longterm.learners.aogd import AOGD, AOGDState
from longterm.learners.base import Learner, OnBrokenBound, State
from longterm.learners.doubling import DoublingAOGD
from longterm.learners.duals import Duals, OneForTheMaximum, OnePerConstraint
from longterm.learners.mahdavi_no_violation import NoViolationMahdaviOGD
from longterm.learners.mahdavi_ogd import MahdaviOGD
from longterm.learners.mahdavi_steps import smallest_root, twice
from longterm.learners.mirror_prox import MirrorProx
from longterm.learners.needs import Need
from longterm.learners.no_violation import DecayingMarginAOGD, NoViolationAOGD
from longterm.learners.no_violation_mirror_prox import NoViolationMirrorProx

__all__ = [
    "AOGD",
    "AOGDState",
    "DecayingMarginAOGD",
    "DoublingAOGD",
    "Duals",
    "Learner",
    "MahdaviOGD",
    "MirrorProx",
    "Need",
    "NoViolationAOGD",
    "NoViolationMahdaviOGD",
    "NoViolationMirrorProx",
    "OnBrokenBound",
    "OneForTheMaximum",
    "OnePerConstraint",
    "State",
    "smallest_root",
    "twice",
]
