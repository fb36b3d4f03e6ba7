"""Online learners under long-term constraints, in families. Each file has one rule with its theorem and variants.

Begin with `default_learner`. Every learner says what it needs, what it guarantees and what it does not promise. To add
one, write a file in its family. Code that several families share is in `interface`, and formulas without a state are in
`longterm.theory`.
"""

from typing import Any

from longterm.learners.cuts.hedged_cuts import HedgedCuts
from longterm.learners.cuts.hinted_cuts import HintedCuts
from longterm.learners.cuts.latest_cut import LatestCut
from longterm.learners.default import default_learner
from longterm.learners.experts.constrained_experts import ConstrainedExperts
from longterm.learners.experts.osoco import OSOCO
from longterm.learners.ftrl.aftrl import AFTRL, AdaptiveAFTRL, MixedAFTRL
from longterm.learners.ftrl.ftrl import FTRL
from longterm.learners.ftrl.penalised_ftrl import AdaptivePenalisedFTRL, MixedPenalisedFTRL, PenalisedFTRL
from longterm.learners.interface.feedback import Feedback, observe
from longterm.learners.interface.learner import Learner
from longterm.learners.optimistic.optimistic_aftrl import OptimisticAFTRL
from longterm.learners.optimistic.optimistic_coco import OptimisticCOCO
from longterm.learners.optimistic.optimistic_ogd import OptimisticOGD
from longterm.learners.penalties.prox_penalty import ProxPenalty
from longterm.learners.penalties.quadratic_penalty import QuadraticPenaltyOGD
from longterm.learners.projected.polyak_feasibility import PolyakFeasibility
from longterm.learners.projected.projected_ogd import ProjectedOGD
from longterm.learners.queues.drift_plus_penalty import DriftPlusPenalty
from longterm.learners.queues.yu_neely import YuNeely
from longterm.learners.restarts.doubling_restarts import DoublingRestarts
from longterm.learners.restarts.restarts import Restarted
from longterm.learners.saddle_point.adagrad_aogd import AdaGradAOGD
from longterm.learners.saddle_point.aogd import AOGD
from longterm.learners.saddle_point.lewa import LEWA
from longterm.learners.saddle_point.mahdavi_ogd import MahdaviOGD
from longterm.learners.saddle_point.mirror_prox import MirrorProx
from longterm.learners.saddle_point.networked_saddle_point import NetworkedSaddlePoint
from longterm.learners.saddle_point.one_projection_sgd import OneProjectionSGD
from longterm.learners.saddle_point.online_adm import FeasibleOnlineADM, OnlineADM
from longterm.learners.saddle_point.proximal_aogd import ProximalAOGD
from longterm.learners.saddle_point.two_point_bandit import TwoPointBandit
from longterm.learners.surrogates.sinha_vaze import SinhaVaze
from longterm.learners.surrogates.yu_lee_lee import YuLeeLee
from longterm.learners.tightened.decaying_margin_aogd import DecayingMarginAOGD
from longterm.learners.tightened.mahdavi_no_violation import NoViolationMahdaviOGD
from longterm.learners.tightened.no_violation_aogd import NoViolationAOGD
from longterm.learners.tightened.no_violation_mirror_prox import NoViolationMirrorProx
from longterm.learners.tracking.ader import Ader
from longterm.learners.tracking.hedged_restarts import HedgedRestarts
from longterm.learners.tracking.tracked_penalty import TrackedPenalty

__all__ = [
    "AFTRL",
    "AOGD",
    "FTRL",
    "LEWA",
    "OSOCO",
    "AdaGradAOGD",
    "AdaptiveAFTRL",
    "AdaptivePenalisedFTRL",
    "Ader",
    "ConstrainedExperts",
    "DecayingMarginAOGD",
    "DoublingRestarts",
    "DriftPlusPenalty",
    "FeasibleOnlineADM",
    "Feedback",
    "HedgedCuts",
    "HedgedRestarts",
    "HintedCuts",
    "LatestCut",
    "Learner",
    "MahdaviOGD",
    "MirrorProx",
    "MixedAFTRL",
    "MixedPenalisedFTRL",
    "NetworkedSaddlePoint",
    "NoViolationAOGD",
    "NoViolationMahdaviOGD",
    "NoViolationMirrorProx",
    "OneProjectionSGD",
    "OnlineADM",
    "OptimisticAFTRL",
    "OptimisticCOCO",
    "OptimisticOGD",
    "PenalisedFTRL",
    "PolyakFeasibility",
    "ProjectedOGD",
    "ProxPenalty",
    "ProximalAOGD",
    "QuadraticPenaltyOGD",
    "Restarted",
    "SinhaVaze",
    "TrackedPenalty",
    "TwoPointBandit",
    "YuLeeLee",
    "YuNeely",
    "default_learner",
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
