"""The theorems, as functions of the constants and the horizon.

Every function takes one horizon or a list of them, and gives a `Bound` of the same shape.
"""

from longterm.bounds.base import Bound
from longterm.bounds.doubling_restarts import doubling_restarts
from longterm.bounds.drift_plus_penalty import drift_plus_penalty, drift_plus_penalty_expected
from longterm.bounds.lewa import lewa
from longterm.bounds.mahdavi import mahdavi_theorem_4, vector_lemma
from longterm.bounds.mirror_prox import mahdavi_corollary_13, mahdavi_theorem_12
from longterm.bounds.networked_saddle_point import mean_disagreement, networked_saddle_point
from longterm.bounds.no_violation import corollary_1, decaying_margin, doubling_epochs, mahdavi_theorem_8
from longterm.bounds.one_projection_sgd import one_projection_sgd, projected_answer
from longterm.bounds.online_adm import feasible_online_adm, online_adm, online_adm_affine
from longterm.bounds.polyak_feasibility import polyak_feasibility
from longterm.bounds.projected_ogd import hazan_agarwal_kale, zinkevich
from longterm.bounds.quadratic_penalty import quadratic_penalty, quadratic_penalty_squared
from longterm.bounds.restarted import restarted
from longterm.bounds.sinha_vaze import sinha_vaze, sinha_vaze_strongly_convex
from longterm.bounds.two_point_bandit import two_point_bandit
from longterm.bounds.yu_lee_lee import yu_lee_lee
from longterm.bounds.yu_neely import yu_neely
from longterm.theory.delay import gradient_bound_under_delay, lemma_5_delayed
from longterm.theory.paper import lemma_5, theorem_1, theorem_1_as_printed, theorem_1_strongly_convex

__all__ = [
    "Bound",
    "corollary_1",
    "decaying_margin",
    "doubling_epochs",
    "doubling_restarts",
    "drift_plus_penalty",
    "drift_plus_penalty_expected",
    "feasible_online_adm",
    "gradient_bound_under_delay",
    "hazan_agarwal_kale",
    "lemma_5",
    "lemma_5_delayed",
    "lewa",
    "mahdavi_corollary_13",
    "mahdavi_theorem_4",
    "mahdavi_theorem_8",
    "mahdavi_theorem_12",
    "mean_disagreement",
    "networked_saddle_point",
    "one_projection_sgd",
    "online_adm",
    "online_adm_affine",
    "polyak_feasibility",
    "projected_answer",
    "quadratic_penalty",
    "quadratic_penalty_squared",
    "restarted",
    "sinha_vaze",
    "sinha_vaze_strongly_convex",
    "theorem_1",
    "theorem_1_as_printed",
    "theorem_1_strongly_convex",
    "two_point_bandit",
    "vector_lemma",
    "yu_lee_lee",
    "yu_neely",
    "zinkevich",
]
