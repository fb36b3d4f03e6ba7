"""Learners: one published algorithm per file."""

from longterm.learners.aogd import AOGD, AOGDState
from longterm.learners.base import Learner, OnBrokenBound, State
from longterm.learners.doubling import DoublingAOGD
from longterm.learners.duals import Duals, OneForTheMaximum, OnePerConstraint
from longterm.learners.lewa import LEWA, LEWAState
from longterm.learners.mahdavi_no_violation import NoViolationMahdaviOGD
from longterm.learners.mahdavi_ogd import MahdaviOGD
from longterm.learners.mahdavi_steps import smallest_root, twice
from longterm.learners.mirror_prox import MirrorProx
from longterm.learners.needs import Need
from longterm.learners.networked_saddle_point import NetworkedSaddlePoint, NetworkedSaddlePointState
from longterm.learners.no_violation import DecayingMarginAOGD, NoViolationAOGD
from longterm.learners.no_violation_mirror_prox import NoViolationMirrorProx
from longterm.learners.one_projection_sgd import OneProjectionSGD, OneProjectionSGDState
from longterm.learners.online_adm import FeasibleOnlineADM, OnlineADM, OnlineADMState
from longterm.learners.projected_ogd import ProjectedOGD, ProjectedOGDState

__all__ = [
    "AOGD",
    "LEWA",
    "AOGDState",
    "DecayingMarginAOGD",
    "DoublingAOGD",
    "Duals",
    "FeasibleOnlineADM",
    "LEWAState",
    "Learner",
    "MahdaviOGD",
    "MirrorProx",
    "Need",
    "NetworkedSaddlePoint",
    "NetworkedSaddlePointState",
    "NoViolationAOGD",
    "NoViolationMahdaviOGD",
    "NoViolationMirrorProx",
    "OnBrokenBound",
    "OneForTheMaximum",
    "OnePerConstraint",
    "OneProjectionSGD",
    "OneProjectionSGDState",
    "OnlineADM",
    "OnlineADMState",
    "ProjectedOGD",
    "ProjectedOGDState",
    "State",
    "smallest_root",
    "twice",
]
