"""Learners: one published algorithm per file."""

from longterm.learners.aogd import AOGD, AOGDState
from longterm.learners.base import Learner, OnBrokenBound, State
from longterm.learners.lewa import LEWA, LEWAState
from longterm.learners.needs import Need
from longterm.learners.networked_saddle_point import NetworkedSaddlePoint, NetworkedSaddlePointState
from longterm.learners.one_projection_sgd import OneProjectionSGD, OneProjectionSGDState
from longterm.learners.online_adm import FeasibleOnlineADM, OnlineADM, OnlineADMState

__all__ = [
    "AOGD",
    "LEWA",
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
    "State",
]
