"""Parameters and state of a learner as NumPy records with named fields.

Numbers are float64 whatever the dtype of the rows. `FIELDS` and `MIXTURE_FIELDS` are the only lists of the state's
parts; files and the forgetting of `EvolvingLinearLearner` are derived from them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm.theory.scales import SCALES

AFTRL, PENALISED_FTRL = range(2)
"""Codes of the rules."""
NO_OFFSET, LOG_ODDS, MEAN = range(3)
"""Codes of the intercept's offset, to which its residual is added."""


@dataclass(frozen=True)
class Parameters:
    """The constants of a rule, as the kernels read them.

    The constraint is g(x) = l1‖x‖₁ + ½ l2‖x‖² − budget on the ball of `radius` about 0 and, once the budget is reached,
    on that of `budget_radius` if that is smaller. The intercept lies in ±intercept_bound (0: no intercept). `loss` is a
    code of `losses`.

    θ_t = theta_0/(M_t t^β) and w_t = weight_0 M_{t−1} t^{1+growth}, M_t the longest gradient.

    Without intercept_bound the intercept is an offset plus a residual of at most residual_radius (0: none). Penalised
    FTRL keeps at most max_features non-zero weights (0: no limit). The factor s of x_t = s w is at most factor_bound.
    The dense kernels stop before a row whose squared length is above longest_row.
    """

    budget: float
    l1: float
    l2: float
    radius: float
    intercept_bound: float = 0.0
    loss: int = 0
    loss_parameter: float = 0.0
    beta: float = 2 / 3
    theta_0: float = 0.0
    weight_0: float = 0.0
    growth: float = 0.5
    offset: int = 0
    residual_radius: float = 0.0
    max_features: int = 0
    factor_bound: float = 1e300
    longest_row: float = 1e300
    budget_radius: float = 1e300

    def numbers(self) -> tuple[float, ...]:
        """Return all constants in their order."""
        return tuple(vars(self).values())

    def as_record(self) -> NDArray[Any]:
        """Return the constants as a record in an array of length one."""
        return np.array([self.numbers()], dtype=PARAMETERS)


class Field(NamedTuple):
    """A number of the state."""

    name: str
    unit: int
    """The power of the losses' unit that it is proportional to, in a state of the leaders."""
    dtype: type = np.float64
    signed: bool = False
    """True if it may be negative."""
    reported: bool = False
    """True if it is a sum that no round reads. Such a sum may overflow."""
    length: int = 1


FIELDS = (
    Field("round", 0, np.int64),  # t, the round about to be played, counted from 1
    Field("active", 0, np.int64),  # sparse layout: coordinates of x_t that are not 0
    Field("live", 0, np.int64),  # sparse layout: live entries of the heap
    Field("entries", 0, np.int64),  # sparse layout: entries of the heap
    Field("reached", 0, np.int64),  # 1 once a decision would have passed the budget
    Field("loss_sum", 1, signed=True, reported=True),  # Σ f_s(x_s), s < t
    Field("signed_violation", 0, signed=True, reported=True),  # Σ g(x_s)
    Field("hard_violation", 0, reported=True),  # Σ [g(x_s)]₊
    Field("squared_violation", 0, reported=True),  # Σ [g(x_s)]₊²
    Field("multiplier", 1),  # λ_t; ν_t in penalised FTRL
    Field("multiplier_sum", 1),  # Λ_t = Σ_{s≤t} λ_s; W_t in penalised FTRL
    Field("gradient_squares", 2),  # V, the sum of the squared gradient lengths
    Field("longest_gradient", 1),  # M_{t−1} = max_{s<t} ‖∇f_s(x_s)‖
    Field("scale", -1),  # x_t = scale · w, w = −soft(vector, threshold)
    Field("norm_1", 1, signed=True),  # ‖w‖₁; in the sparse layout rounding may make it negative
    Field("norm_2", 2, signed=True),  # ‖w‖₂²
    Field("norm_1_low", 1, signed=True),  # sparse layout: the rounding error of norm_1
    Field("norm_2_low", 2, signed=True),  # sparse layout: the rounding error of norm_2
    Field("intercept", 0, signed=True),  # b_t
    Field("intercept_slope", 1, signed=True),  # z_b, the sum of the losses' slopes
    Field("intercept_squares", 2),  # V_b, the sum of the losses' squared slopes
    Field("bound_sum", 0, reported=True),  # for the bound only: S_θ + δ_μ; penalised FTRL: Σ 1/w
    Field("first_length", 0),  # the length of the first row other than 0, which sets the priors
    Field("residual", 0, signed=True),  # the intercept less its offset
    Field("positive_weight", 1),  # LOG_ODDS: the weight of rows with y = +1; MEAN: of all rows
    Field("negative_weight", 1, signed=True),  # LOG_ODDS: the weight of rows with y = −1; MEAN: Σ weight · y
    Field("heaviest", 1),  # the largest weight so far
    Field("reach", 0),  # MEAN: margins are clipped to ±reach
)
WIDTH = SCALES + 1
"""Numbers in the arrays of a mixture: one for each scale, and one for the expert that stays at 0."""
MIXTURE_FIELDS = (
    Field("cap", 1),  # m, the largest loss per unit of radius so far
    Field("clipped_squares", 2),  # U, the sum of squares of the clipped losses per unit of radius
    Field("pivot", 1, signed=True),  # ν, which makes the shares add up to 1
    Field("tolerance", 1),  # a block of rounds ends when pending losses exceed this per unit of radius
    Field("tilt", -1, signed=True),  # relative change of Σ p_k s_k per pending unit of the smallest scale
    Field("radius", 0, length=WIDTH),  # R_k
    Field("inverse", 0, length=WIDTH),  # 1/R_k
    Field("prior", 0, signed=True, length=WIDTH),  # ln π_k
    Field("loss", 1, signed=True, length=WIDTH),  # Q_k, what scale k has been charged
    Field("share", 0, length=WIDTH),  # p_k
    Field("factor", -1, length=WIDTH),  # s_k
    Field("pending", 1, signed=True, length=WIDTH),  # L_k, the losses since the last charge
    Field("squares", 2, length=WIDTH),  # B_k, their squares
)
"""A mixture of scales. A learner has two: that of the weights, and that of the intercept's residual."""
WEIGHTS, RESIDUAL = range(2)
WEIGHT_SCALES, RESIDUAL_SCALES = np.int64(SCALES), np.int64(5)
"""Numbers of scales of the mixtures. Numba compiles a function once for all NumPy integers, but for each literal."""


def _record(names: tuple[Field, ...]) -> np.dtype[Any]:
    shapes = [() if field.length == 1 else (field.length,) for field in names]
    return np.dtype([(field.name, field.dtype, shape) for field, shape in zip(names, shapes, strict=True)], align=True)


PARAMETERS = np.dtype([(f.name, np.int64 if f.type == "int" else np.float64) for f in fields(Parameters)], align=True)
SCALARS, MIXTURE = _record(FIELDS), _record(MIXTURE_FIELDS)
COORDINATE = np.dtype([("z", np.float64), ("entry", np.uint64)], align=True)
"""A coordinate of the sparse layout: z_k and its live entry in the heap, in one cache line."""
