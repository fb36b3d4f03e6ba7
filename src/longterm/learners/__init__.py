"""Learners: one published algorithm per file."""

from longterm.learners._leader import AFTRLState
from longterm.learners.aftrl import AFTRL
from longterm.learners.aogd import AOGD, AOGDState
from longterm.learners.base import Learner, OnBrokenBound, State
from longterm.learners.lewa import LEWA, LEWAState
from longterm.learners.needs import Need
from longterm.learners.networked_saddle_point import NetworkedSaddlePoint, NetworkedSaddlePointState
from longterm.learners.one_projection_sgd import OneProjectionSGD, OneProjectionSGDState
from longterm.learners.online_adm import FeasibleOnlineADM, OnlineADM, OnlineADMState
from longterm.learners.penalised_ftrl import PenalisedFTRL, PenalisedFTRLState
from longterm.learners.proximal_aogd import ProximalAOGD
from longterm.learners.restarted import Restarted
from longterm.learners.strongly_convex_aftrl import StronglyConvexAFTRL

__all__ = [
    "AFTRL",
    "AOGD",
    "LEWA",
    "AFTRLState",
    "AOGDState",
    "FeasibleOnlineADM",
    "LEWAState",
    "Learner",
    "Need",
    "NetworkedSaddlePoint",
    "NetworkedSaddlePointState",
    "OnBrokenBound",
    "OneProjectionSGD",
    "OneProjectionSGDState",
    "OnlineADM",
    "OnlineADMState",
    "PenalisedFTRL",
    "PenalisedFTRLState",
    "ProximalAOGD",
    "Restarted",
    "State",
    "StronglyConvexAFTRL",
]
