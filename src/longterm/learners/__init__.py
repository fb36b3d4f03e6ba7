"""Learners: one published algorithm per file."""

from longterm.learners.adagrad_aogd import AdaGradAOGD
from longterm.learners.adaptive_aftrl import AdaptiveAFTRL
from longterm.learners.adaptive_penalised_ftrl import AdaptivePenalisedFTRL
from longterm.learners.aftrl import AFTRL
from longterm.learners.aogd import AOGD, AOGDState
from longterm.learners.base import Learner, OnBrokenBound, State
from longterm.learners.coldq import COLDQ
from longterm.learners.diagonal_adagrad_aogd import DiagonalAdaGradAOGD
from longterm.learners.doubling import DoublingAOGD
from longterm.learners.doubling_restarts import DoublingRestarts
from longterm.learners.drift_plus_penalty import DriftPlusPenalty
from longterm.learners.duals import Duals, OneForTheMaximum, OnePerConstraint
from longterm.learners.feedback import Feedback, observe
from longterm.learners.hedged_cuts import HedgedCuts
from longterm.learners.horizon import MadeForHorizon
from longterm.learners.inner import AdaGradDiagonal, AdaGradNorm, AdaptiveInner, Inner, StronglyConvexOGD
from longterm.learners.lewa import LEWA
from longterm.learners.mahdavi_no_violation import NoViolationMahdaviOGD
from longterm.learners.mahdavi_ogd import MahdaviOGD
from longterm.learners.mahdavi_steps import smallest_root, twice
from longterm.learners.mirror_prox import MirrorProx
from longterm.learners.needs import Need
from longterm.learners.networked_saddle_point import NetworkedSaddlePoint
from longterm.learners.no_violation import DecayingMarginAOGD, NoViolationAOGD
from longterm.learners.no_violation_mirror_prox import NoViolationMirrorProx
from longterm.learners.one_projection_sgd import OneProjectionSGD, OneProjectionSGDState
from longterm.learners.online_adm import FeasibleOnlineADM, OnlineADM, OnlineADMState
from longterm.learners.penalised_ftrl import PenalisedFTRL
from longterm.learners.polyak_feasibility import PolyakFeasibility, PolyakFeasibilityState
from longterm.learners.projected_ogd import ProjectedOGD, ProjectedOGDState
from longterm.learners.prox_penalty import ProxPenalty
from longterm.learners.proximal_aogd import ProximalAOGD
from longterm.learners.quadratic_penalty import QuadraticPenaltyOGD
from longterm.learners.recoo import RECOO
from longterm.learners.restarted import Restarted
from longterm.learners.sinha_vaze import SinhaVaze
from longterm.learners.two_point_bandit import TwoPointBandit
from longterm.learners.yu_lee_lee import Published, Rates, Sharp, YuLeeLee
from longterm.learners.yu_neely import YuNeely

__all__ = [
    "AFTRL",
    "AOGD",
    "COLDQ",
    "LEWA",
    "RECOO",
    "AOGDState",
    "AdaGradAOGD",
    "AdaGradDiagonal",
    "AdaGradNorm",
    "AdaptiveAFTRL",
    "AdaptiveInner",
    "AdaptivePenalisedFTRL",
    "DecayingMarginAOGD",
    "DiagonalAdaGradAOGD",
    "DoublingAOGD",
    "DoublingRestarts",
    "DriftPlusPenalty",
    "Duals",
    "FeasibleOnlineADM",
    "Feedback",
    "Inner",
    "Learner",
    "MadeForHorizon",
    "MahdaviOGD",
    "MirrorProx",
    "Need",
    "NetworkedSaddlePoint",
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
    "PolyakFeasibility",
    "PolyakFeasibilityState",
    "ProjectedOGD",
    "ProjectedOGDState",
    "ProxPenalty",
    "ProximalAOGD",
    "Published",
    "QuadraticPenaltyOGD",
    "Rates",
    "Restarted",
    "Sharp",
    "SinhaVaze",
    "State",
    "StronglyConvexOGD",
    "TwoPointBandit",
    "YuLeeLee",
    "YuNeely",
    "observe",
    "smallest_root",
    "twice",
]
