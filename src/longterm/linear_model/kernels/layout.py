"""What kernels read and write: parameters, state and trace as NumPy records, whose fields have names.

Everything is float64 whatever the rows are. A state is the whole memory of a learner: rounds played from a copy of it
give the same bits. A kernel is told the `ADDRESSES` of a learner's arrays, which stay the same from row to row: each
array that Numba takes from Python costs as much as learning ten coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import overload
from numpy.typing import NDArray

from longterm.linear_model.kernels.compile import OPTIONS, helper, pointer
from longterm.linear_model.kernels.mixture import ROWS
from longterm.linear_model.kernels.vectors import LANES

AOGD, AFTRL, PENALISED_FTRL, SPARSE_AFTRL = range(4)
"""The rules. Mahdavi's is A-OGD with constant steps (mu > 0)."""
ONE, MIXED, PRICED = range(3)
"""One scale; a mixture that knows of the losses only; one whose scales pay the multiplier's part, too."""
NO_OFFSET, LOG_ODDS, MEAN = range(3)
"""What the intercept is before the residual."""

ORDINARY = 1e12
"""Rows, targets and weights up to this size are far from the end of the range, whatever the others are."""


@dataclass(frozen=True)
class Parameters:
    """A rule's constants. `as_record()` is what a kernel reads.

    g(x) = l1‖x‖₁ + ½ l2‖x‖² − budget on the ball of this radius about 0, an intercept in ±intercept_bound (0: none).
    `loss` is a number of `losses`.

    Constants given: η_t = step/√t (A-OGD: step/t^β), θ_t = theta_0/t^β, w_t = weight_0 t^{1+growth} (penalised FTRL).
    `mu` > 0 makes A-OGD's steps constant (Mahdavi's): η = step, θ = theta_0, μ = mu in every round.

    **Constants found online: step = 0.** Then theta_0 and weight_0 are per unit of the losses' gradients: with M_t the
    length of the longest so far, θ_t = theta_0/(M_t t^β), w_t = weight_0 M_{t−1} t^{1+growth}.

    Found online, FTRL may have `scales` (`mixture`): ONE, MIXED, or PRICED, where scales pay for the multiplier, too.
    Its intercept is then an offset known before the round, NO_OFFSET, LOG_ODDS or MEAN, plus a residual of at most
    residual_radius in size (0: none), and intercept_bound is 0. In penalised FTRL with scales, x_t has at most
    max_features coordinates other than 0 (0: as many as there are). The mixture's factor, x_t = s w, is at most
    most_factor.

    A row with ‖u‖² > longest is refused: the caller is to look at it first (`_rows`).
    """

    budget: float
    l1: float
    l2: float
    radius: float
    intercept_bound: float = 0.0
    loss: int = 0
    loss_parameter: float = 0.0
    beta: float = 2 / 3
    step: float = 0.0
    theta_0: float = 0.0
    mu: float = 0.0
    weight_0: float = 0.0
    growth: float = 0.5
    scales: int = 0
    offset: int = 0
    residual_radius: float = 0.0
    max_features: int = 0
    most_factor: float = 1e300
    longest: float = ORDINARY**2

    def numbers(self) -> tuple[float, ...]:
        """All of them, in order."""
        return tuple(vars(self).values())

    def as_record(self) -> NDArray[Any]:
        """The same numbers, a record in an array of one."""
        return np.array([self.numbers()], dtype=PARAMETERS)


def _dtype(whole: tuple[str, ...], numbers: tuple[str, ...]) -> np.dtype[Any]:
    return np.dtype([(name, np.int64) for name in whole] + [(name, np.float64) for name in numbers], align=True)


PARAMETERS = np.dtype([(f.name, np.int64 if f.type == "int" else np.float64) for f in fields(Parameters)], align=True)
COUNTS = (
    "round",  # t, the round about to be played, counted from 1
    "active",  # sparse memory, as the next two (`heap`): coordinates of x_t that are not 0
    "live",  # live entries of the heap
    "entries",  # entries of the heap
)
NUMBERS = (
    "loss_sum",  # Σ f_s(x_s), s < t
    "signed_violation",  # Σ g(x_s)
    "hard_violation",  # Σ [g(x_s)]₊
    "squared_violation",  # Σ [g(x_s)]₊²
    "multiplier",  # λ_t; ν_t in penalised FTRL
    "multiplier_sum",  # Λ_t = Σ_{s≤t} λ_s; W_t in penalised FTRL
    "gradient_squares",  # constants found online: Σ_{s<t} of the squared lengths that set the step
    "longest_gradient",  # constants found online: M_{t−1} = max_{s<t} ‖∇f_s(x_s)‖
    "scale",  # x_t = scale · v, where v is the state's vector (A-OGD) or −soft(vector, l1 · multiplier_sum) (FTRL)
    "norm_1",  # ‖v‖₁
    "norm_2",  # ‖v‖₂²
    "intercept",  # b_t
    "intercept_slope",  # FTRL: Σ of the losses' slopes, the intercept's coordinate of z
    "bound_sum",  # constants found online: what only the bound reads: S_θ + δ_μ, penalised FTRL: Σ 1/w
    "intercept_squares",  # constants found online: Σ of the losses' squared slopes, which set the intercept's own step
    "norm_1_low",  # sparse memory, as the next one: what rounding took from norm_1
    "norm_2_low",
)
MIXED_NUMBERS = (
    "first_length",  # length of the first row other than 0: it sets the priors
    "clip",  # m
    "clipped_squares",  # U
    "pivot",  # ν
    "residual_clip",  # the same three for the intercept's residual
    "residual_clipped_squares",
    "residual_pivot",
    "residual",  # ϱ_t
    "positive_weight",  # Σ of the weights of rows with y = +1; MEAN: Σ of all weights
    "negative_weight",  # of rows with y = −1; MEAN: Σ weight · y
    "heaviest",  # the largest weight so far
    "reach",  # MEAN: margins are cut off at ±reach, half as far again as the farthest target before
    "waits",  # 1 where scales pay in blocks of rounds, 0 where in every round, as before snapshots of version 5
    "factor",  # s_k/R_k of the smallest scale; of all of them where Λl2 = 0
    "mean_radius",  # Σ p_k R_k; 0 once a block began with Λl2 > 0
    "owed",  # L_k/R_k of the smallest scale, of the rounds since a block ended
    "owed_squares",  # B_k/R_k², likewise
    "patience",  # the block ends when the largest L_k/R_k is above it
    "tilt",  # by what part Σ p_k s_k changes per unit of `owed`
    "residual_factor",  # the same six for the intercept's residual
    "residual_mean_radius",
    "residual_owed",
    "residual_owed_squares",
    "residual_patience",
    "residual_tilt",
)
SCALARS = _dtype(COUNTS, NUMBERS + MIXED_NUMBERS)
"""The state of a learner, but for its vector. Snapshots store fields in this order: append, never insert."""
TRACE = _dtype(("round", "nonzeros"), ("loss", "signed_violation", "hard_violation", "squared_violation", "multiplier"))
"""What a trace has of round t: sums up to and with round t, the non-zeros of x_t, λ_t."""
ADDRESSES = _dtype(("parameters", "scalars", "vector", "point", "row", "heap", "mixture", "dimension", "room"), ())
"""Where a learner's arrays are, then d and the length of the heap."""


class DenseMemory(NamedTuple):
    """A learner as the kernels of O(d) see it; parameters and scalars are records in arrays of one."""

    parameters: Any
    scalars: Any
    vector: Any
    """x_t up to the factor `scale` (A-OGD), z_{t−1} (FTRL)."""
    point: Any
    """x_t up to the factor `scale`: for A-OGD the vector itself, for FTRL −soft(z, τ)."""
    row: Any
    """0 everywhere: room for a sparse row."""
    mixture: Any
    """The scales (`mixture`), a column for each."""


class SparseMemory(NamedTuple):
    """A learner as the kernel for sparse rows sees it."""

    parameters: Any
    scalars: Any
    vector: Any
    """z_0, word_0, z_1, word_1, …: z_{t−1}, and for each coordinate its live entry in the heap, an integer."""
    words: Any
    """The same array, seen as integers."""
    heap: Any
    places: Any
    """How many bits of an entry hold its coordinate."""
    mixture: Any
    """The scales (`mixture`), a column for each."""


@helper
def _floats(address, length):
    return carray(pointer(address), (length,), np.float64)


@helper
def _words(address, length):
    return carray(pointer(address), (length,), np.uint64)


@helper
def _lanes(address):
    return carray(pointer(address), (ROWS, LANES), np.float64)


@helper
def places_for(dimension):
    """How many bits hold k + 1 for every coordinate k."""
    places = np.uint64(1)
    while np.int64(1) << np.int64(places) <= dimension:
        places += np.uint64(1)
    return places


def memory_at(rule: Any, addresses: Any) -> Any:
    """The memory behind these addresses."""


@overload(memory_at, prefer_literal=True, jit_options=OPTIONS)
def _memory_at(rule, addresses):
    if not isinstance(rule, types.IntegerLiteral):
        return None

    def dense(rule, addresses):
        a = addresses[0]
        parameters = carray(pointer(a.parameters), (1,), PARAMETERS)
        scalars = carray(pointer(a.scalars), (1,), SCALARS)
        d = a.dimension
        vector, point, row = _floats(a.vector, d), _floats(a.point, d), _floats(a.row, d)
        return DenseMemory(parameters, scalars, vector, point, row, _lanes(a.mixture))

    def sparse(rule, addresses):
        a = addresses[0]
        parameters = carray(pointer(a.parameters), (1,), PARAMETERS)
        scalars = carray(pointer(a.scalars), (1,), SCALARS)
        vector, words = _floats(a.vector, 2 * a.dimension), _words(a.vector, 2 * a.dimension)
        heap, mixture = _words(a.heap, a.room), _lanes(a.mixture)
        return SparseMemory(parameters, scalars, vector, words, heap, places_for(a.dimension), mixture)

    return sparse if rule.literal_value == SPARSE_AFTRL else dense
