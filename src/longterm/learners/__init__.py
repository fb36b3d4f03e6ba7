"""Learners: one paper or one idea per file. Each owns its rule, its theorem and its variants."""

from typing import Any

from longterm.learners.adagrad_aogd import AdaGradAOGD
from longterm.learners.ader import Ader
from longterm.learners.aftrl import AFTRL, AdaptiveAFTRL, MixedAFTRL
from longterm.learners.aogd import AOGD
from longterm.learners.base import Learner, State
from longterm.learners.coldq import COLDQ
from longterm.learners.decaying_margin_aogd import DecayingMarginAOGD
from longterm.learners.diagonal_adagrad_aogd import DiagonalAdaGradAOGD
from longterm.learners.doubling_restarts import DoublingRestarts
from longterm.learners.drift_plus_penalty import DriftPlusPenalty
from longterm.learners.duals import Duals, OneForTheMaximum, OnePerConstraint
from longterm.learners.feedback import Feedback, observe
from longterm.learners.feedback_check import OnBrokenBound
from longterm.learners.ftrl import FTRL
from longterm.learners.ftrl_scales import GivenScale, OnlineScale, StronglyConvexScale
from longterm.learners.growing_penalty import GrowingPenalty
from longterm.learners.hedged_cuts import HedgedCuts
from longterm.learners.hedged_restarts import HedgedRestarts
from longterm.learners.hinted_cuts import HintedCuts
from longterm.learners.hints import GivenHints, HintModel, KnownConstraint, LastGradient, NoHint, Seasonal
from longterm.learners.inner import AdaGradNorm, Inner, StronglyConvexOGD
from longterm.learners.latest_cut import LatestCut
from longterm.learners.lewa import LEWA
from longterm.learners.made_for import MadeForHorizon
from longterm.learners.mahdavi_no_violation import NoViolationMahdaviOGD
from longterm.learners.mahdavi_ogd import MahdaviOGD
from longterm.learners.margins import ConstantMargin, DecayingMargin, Margin
from longterm.learners.mirror_prox import MirrorProx
from longterm.learners.movement_budget import MovementBudget
from longterm.learners.multiplier import Multiplier
from longterm.learners.needs import Need
from longterm.learners.networked_saddle_point import NetworkedSaddlePoint
from longterm.learners.no_violation_aogd import NoViolationAOGD
from longterm.learners.no_violation_mirror_prox import NoViolationMirrorProx
from longterm.learners.one_projection_sgd import OneProjectionSGD
from longterm.learners.online_adm import FeasibleOnlineADM, OnlineADM
from longterm.learners.optimistic_aftrl import ForecastScale, OptimisticAFTRL
from longterm.learners.optimistic_coco import OptimisticCOCO
from longterm.learners.optimistic_ogd import OptimisticOGD
from longterm.learners.path_budget import PathBudget
from longterm.learners.penalised_ftrl import AdaptivePenalisedFTRL, MixedPenalisedFTRL, PenalisedFTRL
from longterm.learners.polyak_feasibility import PolyakFeasibility
from longterm.learners.projected_ogd import ProjectedOGD
from longterm.learners.prox_penalty import ProxPenalty
from longterm.learners.proximal_aogd import ProximalAOGD
from longterm.learners.quadratic_penalty import QuadraticPenaltyOGD
from longterm.learners.queue_rates import Published, Rates, Sharp
from longterm.learners.recoo import RECOO
from longterm.learners.restarts import Restarted
from longterm.learners.scale_mixture import ScaleMixture
from longterm.learners.sinha_vaze import SinhaVaze
from longterm.learners.strongly_adaptive import StronglyAdaptive
from longterm.learners.tightened import Tightened
from longterm.learners.tracked_penalty import TrackedPenalty
from longterm.learners.two_point_bandit import TwoPointBandit
from longterm.learners.yu_lee_lee import YuLeeLee
from longterm.learners.yu_neely import YuNeely

__all__ = [
    "AFTRL",
    "AOGD",
    "COLDQ",
    "FTRL",
    "LEWA",
    "RECOO",
    "AdaGradAOGD",
    "AdaGradNorm",
    "AdaptiveAFTRL",
    "AdaptivePenalisedFTRL",
    "Ader",
    "ConstantMargin",
    "DecayingMargin",
    "DecayingMarginAOGD",
    "DiagonalAdaGradAOGD",
    "DoublingRestarts",
    "DriftPlusPenalty",
    "Duals",
    "FeasibleOnlineADM",
    "Feedback",
    "ForecastScale",
    "GivenHints",
    "GivenScale",
    "GrowingPenalty",
    "HedgedCuts",
    "HedgedRestarts",
    "HintModel",
    "HintedCuts",
    "Inner",
    "KnownConstraint",
    "LastGradient",
    "LatestCut",
    "Learner",
    "MadeForHorizon",
    "MahdaviOGD",
    "Margin",
    "MirrorProx",
    "MixedAFTRL",
    "MixedPenalisedFTRL",
    "MovementBudget",
    "Multiplier",
    "Need",
    "NetworkedSaddlePoint",
    "NoHint",
    "NoViolationAOGD",
    "NoViolationMahdaviOGD",
    "NoViolationMirrorProx",
    "OnBrokenBound",
    "OneForTheMaximum",
    "OnePerConstraint",
    "OneProjectionSGD",
    "OnlineADM",
    "OnlineScale",
    "OptimisticAFTRL",
    "OptimisticCOCO",
    "OptimisticOGD",
    "PathBudget",
    "PenalisedFTRL",
    "PolyakFeasibility",
    "ProjectedOGD",
    "ProxPenalty",
    "ProximalAOGD",
    "Published",
    "QuadraticPenaltyOGD",
    "Rates",
    "Restarted",
    "ScaleMixture",
    "Seasonal",
    "Sharp",
    "SinhaVaze",
    "State",
    "StronglyAdaptive",
    "StronglyConvexOGD",
    "StronglyConvexScale",
    "Tightened",
    "TrackedPenalty",
    "TwoPointBandit",
    "YuLeeLee",
    "YuNeely",
    "every_learner",
    "observe",
]


def every_learner() -> tuple[type[Learner[Any]], ...]:
    """Return the learners that have a name, sorted by it, as tables and arenas read them.

    Returns
    -------
    tuple of type
        The classes.

    Examples
    --------
    >>> from longterm.learners import every_learner
    >>> [learner.name for learner in every_learner()][:3]
    ['adagrad_aogd', 'adaptive_aftrl', 'adaptive_penalised_ftrl']
    """
    classes = {one for one in globals().values() if isinstance(one, type) and issubclass(one, Learner) and one.name}
    return tuple(sorted(classes, key=lambda one: one.name))
