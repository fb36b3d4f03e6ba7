"""Learners: one published algorithm per file."""

from longterm.learners._leader import AFTRLState
from longterm.learners.adagrad_aogd import AdaGradAOGD, AdaGradAOGDState
from longterm.learners.adaptive_aftrl import AdaptiveAFTRL, AdaptiveAFTRLState
from longterm.learners.adaptive_penalised_ftrl import AdaptivePenalisedFTRL, AdaptivePenalisedFTRLState
from longterm.learners.aftrl import AFTRL
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
from longterm.learners.penalised_ftrl import PenalisedFTRL, PenalisedFTRLState
from longterm.learners.projected_ogd import ProjectedOGD, ProjectedOGDState
from longterm.learners.proximal_aogd import ProximalAOGD
from longterm.learners.restarted import Restarted
from longterm.learners.strongly_convex_aftrl import StronglyConvexAFTRL

__all__ = [
    "AFTRL",
    "AOGD",
    "LEWA",
    "AFTRLState",
    "AOGDState",
    "AdaGradAOGD",
    "AdaGradAOGDState",
    "AdaptiveAFTRL",
    "AdaptiveAFTRLState",
    "AdaptivePenalisedFTRL",
    "AdaptivePenalisedFTRLState",
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
    "PenalisedFTRL",
    "PenalisedFTRLState",
    "ProjectedOGD",
    "ProjectedOGDState",
    "ProximalAOGD",
    "Restarted",
    "State",
    "StronglyConvexAFTRL",
    "smallest_root",
    "twice",
]
