"""The theorems, as functions of the constants and the horizon.

Every function takes one horizon or a list of them, and gives a `Bound` of the same shape.
"""

from longterm.bounds.adaptive import adagrad_aogd, adaptive_aftrl, adaptive_penalised_ftrl
from longterm.bounds.aftrl import aftrl, strongly_convex_aftrl
from longterm.bounds.base import Bound
from longterm.bounds.diagonal_adagrad_aogd import diagonal_adagrad_aogd
from longterm.bounds.drift_plus_penalty import drift_plus_penalty, drift_plus_penalty_expected
from longterm.bounds.lewa import lewa
from longterm.bounds.networked_saddle_point import mean_disagreement, networked_saddle_point
from longterm.bounds.penalised_ftrl import penalised_ftrl
from longterm.bounds.prox_penalty import prox_penalty, prox_penalty_varying
from longterm.bounds.proximal_aogd import proximal_aogd
from longterm.bounds.quadratic_penalty import quadratic_penalty, quadratic_penalty_squared
from longterm.bounds.sinha_vaze import sinha_vaze, sinha_vaze_strongly_convex
from longterm.bounds.two_point_bandit import two_point_bandit
from longterm.bounds.yu_lee_lee import yu_lee_lee
from longterm.bounds.yu_neely import yu_neely
from longterm.theory.delay import gradient_bound_under_delay, lemma_5_delayed
from longterm.theory.paper import lemma_5, theorem_1, theorem_1_as_printed, theorem_1_strongly_convex

__all__ = [
    "Bound",
    "adagrad_aogd",
    "adaptive_aftrl",
    "adaptive_penalised_ftrl",
    "aftrl",
    "diagonal_adagrad_aogd",
    "drift_plus_penalty",
    "drift_plus_penalty_expected",
    "gradient_bound_under_delay",
    "lemma_5",
    "lemma_5_delayed",
    "lewa",
    "mean_disagreement",
    "networked_saddle_point",
    "penalised_ftrl",
    "prox_penalty",
    "prox_penalty_varying",
    "proximal_aogd",
    "quadratic_penalty",
    "quadratic_penalty_squared",
    "sinha_vaze",
    "sinha_vaze_strongly_convex",
    "strongly_convex_aftrl",
    "theorem_1",
    "theorem_1_as_printed",
    "theorem_1_strongly_convex",
    "two_point_bandit",
    "yu_lee_lee",
    "yu_neely",
]
