"""Learners: one published algorithm per file."""

from longterm.learners._leader import AFTRLState
from longterm.learners.adagrad_aogd import AdaGradAOGD, AdaGradAOGDState
from longterm.learners.adaptive_aftrl import AdaptiveAFTRL, AdaptiveAFTRLState
from longterm.learners.adaptive_penalised_ftrl import AdaptivePenalisedFTRL, AdaptivePenalisedFTRLState
from longterm.learners.aftrl import AFTRL
from longterm.learners.aogd import AOGD, AOGDState
from longterm.learners.base import Learner, OnBrokenBound, State
from longterm.learners.coldq import COLDQ
from longterm.learners.diagonal_adagrad_aogd import DiagonalAdaGradAOGD, DiagonalAdaGradAOGDState
from longterm.learners.doubling import DoublingAOGD
from longterm.learners.doubling_restarts import DoublingRestarts
from longterm.learners.drift_plus_penalty import DriftPlusPenalty, DriftPlusPenaltyState
from longterm.learners.duals import Duals, OneForTheMaximum, OnePerConstraint
from longterm.learners.feedback import Feedback, observe
from longterm.learners.hedged_cuts import HedgedCuts
from longterm.learners.horizon import MadeForHorizon
from longterm.learners.inner import AdaGradDiagonal, AdaGradNorm, AdaptiveInner, Inner, StronglyConvexOGD
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
from longterm.learners.polyak_feasibility import PolyakFeasibility, PolyakFeasibilityState
from longterm.learners.projected_ogd import ProjectedOGD, ProjectedOGDState
from longterm.learners.prox_penalty import ProxPenalty
from longterm.learners.proximal_aogd import ProximalAOGD
from longterm.learners.quadratic_penalty import QuadraticPenaltyOGD, QuadraticPenaltyState
from longterm.learners.recoo import RECOO
from longterm.learners.restarted import Restarted
from longterm.learners.sinha_vaze import SinhaVaze, SinhaVazeState
from longterm.learners.strongly_convex_aftrl import StronglyConvexAFTRL
from longterm.learners.two_point_bandit import TwoPointBandit
from longterm.learners.yu_lee_lee import HardYuLeeLee, YuLeeLee, YuLeeLeeState
from longterm.learners.yu_lee_lee_rates import Published, Rates, Sharp
from longterm.learners.yu_neely import YuNeely, YuNeelyState

__all__ = [
    "AFTRL",
    "AOGD",
    "COLDQ",
    "LEWA",
    "RECOO",
    "AFTRLState",
    "AOGDState",
    "AdaGradAOGD",
    "AdaGradAOGDState",
    "AdaGradDiagonal",
    "AdaGradNorm",
    "AdaptiveAFTRL",
    "AdaptiveAFTRLState",
    "AdaptiveInner",
    "AdaptivePenalisedFTRL",
    "AdaptivePenalisedFTRLState",
    "DecayingMarginAOGD",
    "DiagonalAdaGradAOGD",
    "DiagonalAdaGradAOGDState",
    "DoublingAOGD",
    "DoublingRestarts",
    "DriftPlusPenalty",
    "DriftPlusPenaltyState",
    "Duals",
    "FeasibleOnlineADM",
    "Feedback",
    "HardYuLeeLee",
    "HedgedCuts",
    "Inner",
    "LEWAState",
    "Learner",
    "MadeForHorizon",
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
    "PolyakFeasibility",
    "PolyakFeasibilityState",
    "ProjectedOGD",
    "ProjectedOGDState",
    "ProxPenalty",
    "ProximalAOGD",
    "Published",
    "QuadraticPenaltyOGD",
    "QuadraticPenaltyState",
    "Rates",
    "Restarted",
    "Sharp",
    "SinhaVaze",
    "SinhaVazeState",
    "State",
    "StronglyConvexAFTRL",
    "StronglyConvexOGD",
    "TwoPointBandit",
    "YuLeeLee",
    "YuLeeLeeState",
    "YuNeely",
    "YuNeelyState",
    "observe",
    "smallest_root",
    "twice",
]
