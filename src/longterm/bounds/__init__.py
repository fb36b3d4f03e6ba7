"""The theorems, as functions of the constants and the horizon.

Every function takes one horizon or a list of them, and gives a `Bound` of the same shape.
"""

from longterm.bounds.base import Bound
from longterm.bounds.doubling_restarts import doubling_restarts
from longterm.bounds.mahdavi import mahdavi_theorem_4, vector_lemma
from longterm.bounds.mirror_prox import mahdavi_corollary_13, mahdavi_theorem_12
from longterm.bounds.no_violation import corollary_1, decaying_margin, doubling_epochs, mahdavi_theorem_8
from longterm.bounds.one_projection_sgd import one_projection_sgd, projected_answer
from longterm.bounds.online_adm import feasible_online_adm, online_adm, online_adm_affine
from longterm.bounds.polyak_feasibility import polyak_feasibility
from longterm.bounds.projected_ogd import hazan_agarwal_kale, zinkevich
from longterm.bounds.restarted import restarted
from longterm.theory.delay import gradient_bound_under_delay, lemma_5_delayed
from longterm.theory.paper import lemma_5, theorem_1, theorem_1_as_printed, theorem_1_strongly_convex

__all__ = [
    "Bound",
    "corollary_1",
    "decaying_margin",
    "doubling_epochs",
    "doubling_restarts",
    "feasible_online_adm",
    "gradient_bound_under_delay",
    "hazan_agarwal_kale",
    "lemma_5",
    "lemma_5_delayed",
    "mahdavi_corollary_13",
    "mahdavi_theorem_4",
    "mahdavi_theorem_8",
    "mahdavi_theorem_12",
    "one_projection_sgd",
    "online_adm",
    "online_adm_affine",
    "polyak_feasibility",
    "projected_answer",
    "restarted",
    "theorem_1",
    "theorem_1_as_printed",
    "theorem_1_strongly_convex",
    "vector_lemma",
    "zinkevich",
]
