"""`KernelState`: the arrays of one learner and the kernel of its rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import float32, float64, from_dtype, int32, int64, uint64
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm._base.compiling import readonly
from longterm.linear_model.kernels import aftrl, penalised_ftrl, sparse_aftrl
from longterm.linear_model.kernels.compile import compiled, source_digest
from longterm.linear_model.kernels.heap import KEY_SHARE, bits_for, capacity
from longterm.linear_model.kernels.layout import (
    AFTRL,
    COORDINATE,
    MIXTURE,
    MIXTURE_FIELDS,
    PARAMETERS,
    PENALISED_FTRL,
    RESIDUAL,
    RESIDUAL_SCALES,
    SCALARS,
    WEIGHT_SCALES,
    WEIGHTS,
    Parameters,
)
from longterm.linear_model.kernels.mixture import begin, charge, place, set_shares, take_over
from longterm.linear_model.kernels.round import PRIOR_POWER, RESIDUAL_PRIOR_POWER, TYPICAL, excess
from longterm.theory.scales import BLOCK_TOLERANCE

CODES = {"a-ftrl": AFTRL, "penalised-ftrl": PENALISED_FTRL}
"""The kernels of the rules."""
LOG_ODDS_RADIUS = 4.0
"""The radius of the log-odds' residual, for which a typical residual is ¼."""
PADDING = 64
"""Unused numbers on either side of a vector. LLVM's vectorised loops are used only where arrays are some bytes apart;
without the padding the last bits of sums would depend on where the arrays lie in memory."""
RESCALED = ("multiplier", "multiplier_sum", "longest_gradient")
"""Scalars that grow with the weight of the past where features are rescaled, and `gradient_squares` with its square."""
LARGEST_RESCALED = 1e140
STATE: Any = (readonly(from_dtype(PARAMETERS)), from_dtype(SCALARS)[::1], from_dtype(MIXTURE)[::1])
GIVEN: Any = (readonly(float64), readonly(float64), float64[::1])
"""Types of the arguments of all kernels: the state, and labels, weights and margins."""
NUMBERS = {"float32": float32, "float64": float64, "int32": int32, "int64": int64}


@cache
def dense_kernel(code: int, values: str) -> Any:
    """Return the kernel of a rule for dense rows of this dtype, with a buffer, means and factors."""
    loop = {AFTRL: aftrl, PENALISED_FTRL: penalised_ftrl}[code].row_loop(source_digest())
    scaled = float64[::1], readonly(float64), readonly(float64)
    return compiled(loop, (*STATE, float64[::1], *scaled, readonly(NUMBERS[values], 2), *GIVEN))


@cache
def sparse_kernel(values: str, indices: str, binds: bool) -> Any:
    """Return the kernel of A-FTRL for CSR rows of these dtypes, with or without a heap. All dtypes give the same bits.

    The one with a heap takes long to compile, and is needed once the budget binds.
    """
    loop = sparse_aftrl.row_loop if binds else sparse_aftrl.plain_row_loop
    layout = (from_dtype(COORDINATE)[::1], *((uint64[::1], uint64) if binds else ()))
    rows = readonly(NUMBERS[values]), readonly(NUMBERS[indices]), readonly(NUMBERS[indices])
    return compiled(loop(source_digest()), (*STATE, *layout, *rows, *GIVEN), reorder=False)


def _padded(dimension: int) -> FloatArray:
    """Return zeros with PADDING on either side."""
    return np.zeros(dimension + 2 * PADDING)[PADDING : PADDING + dimension]


class KernelState:
    """The state of one learner, and the kernel that changes it. Rows are taken as they are: `_rows` checks them.

    The vector is z. The sparse layout, for A-FTRL only, has the live entries of a heap beside z, takes CSR rows, and
    needs time proportional to their non-zeros. Otherwise rows are dense.
    """

    def __init__(self, rule: str, dimension: int, sparse: bool) -> None:
        self.code, self.dimension = CODES[rule], dimension
        self.is_sparse = sparse and self.code == AFTRL
        self.scales_rows = not self.is_sparse
        """True if the kernel centres and scales the features of rows."""
        self.parameters: Any = np.zeros(1, dtype=PARAMETERS)
        self.scalars: Any = np.zeros(1, dtype=SCALARS)
        self.scalars["round"], self.scalars["scale"] = 1, 1.0
        self.mixtures: Any = np.zeros(2, dtype=MIXTURE)
        self.heap = np.zeros(capacity(dimension) if self.is_sparse else 0, dtype=np.uint64)
        self.vector: Any = np.zeros(dimension, dtype=COORDINATE) if self.is_sparse else _padded(dimension)
        self._row = _padded(dimension if self.scales_rows else 0)
        self._no_scale = np.zeros(len(self._row)), np.ones(len(self._row))
        self._bits = bits_for(dimension)
        self._kernels: dict[Any, Any] = {}

    @property
    def z(self) -> FloatArray:
        """The numbers of the vector."""
        made: FloatArray = self.vector["z"] if self.is_sparse else self.vector
        return made

    def use(self, parameters: Parameters) -> None:
        """Continue with these constants. A residual of another radius begins at 0; the radius of weights may grow."""
        before = self.parameter("residual_radius")
        self.parameters[...] = parameters.as_record()
        reached = self.number("reached") > 0.0
        radius = min(parameters.radius, parameters.budget_radius) if reached else parameters.radius
        if self.number("gradient_squares") == 0.0:  # no scale has lost anything yet
            self._begin_weights(radius)
        elif radius > self.mixture(WEIGHTS).radius[0]:
            self._resize(radius)
        if parameters.residual_radius != before:
            self.mixtures[RESIDUAL] = np.zeros((), dtype=MIXTURE)
            typical = 0.25 * parameters.residual_radius / LOG_ODDS_RADIUS
            begin.py_func(
                self.mixture(RESIDUAL), RESIDUAL_SCALES, parameters.residual_radius, typical, RESIDUAL_PRIOR_POWER
            )
            self.scalars["intercept_slope"] = self.scalars["intercept_squares"] = 0.0

    def _begin_weights(self, radius: float) -> None:
        """Begin with scales of the weights up to this radius."""
        typical = TYPICAL / (self.number("first_length") or 1.0)
        begin.py_func(self.mixture(WEIGHTS), WEIGHT_SCALES, radius, typical, PRIOR_POWER)

    def _resize(self, radius: float) -> None:
        """Continue with other scales of the weights, after the end of a block (`docs/proofs/scales.md`)."""
        mixture = self.mixture(WEIGHTS)
        ratio = radius / mixture.radius[0]
        charge.py_func(mixture, WEIGHT_SCALES, 0.0)
        if ratio < 1.0:  # as `round.place_leader`
            take_over.py_func(mixture, WEIGHT_SCALES, radius)
            self._begin_weights(radius)
        else:
            mixture.radius[:] *= ratio
            mixture.inverse[:] /= ratio
        set_shares.py_func(mixture, WEIGHT_SCALES, BLOCK_TOLERANCE)

    def mixture(self, number: int) -> Any:
        """Return the record of a mixture, whose fields are attributes."""
        return self.mixtures.view(np.recarray)[number]

    def parameter(self, name: str) -> float:
        """Return one of the constants."""
        return float(self.parameters[name][0])

    def number(self, name: str) -> float:
        """Return one of the scalars."""
        return float(self.scalars[name][0])

    @property
    def rounds(self) -> int:
        """The number of rows learned."""
        return int(self.scalars["round"][0]) - 1

    def learn(
        self,
        rows: Any,
        labels: FloatArray,
        weights: FloatArray,
        margins: FloatArray,
        scale: tuple[FloatArray, FloatArray] | None = None,
    ) -> int:
        """Learn rows one after another: a matrix, or (data, indices, indptr) in the sparse layout.

        The margins of the rows, from before they are learned, are written to `margins`. Where `scales_rows`, `scale`
        has the means and factors of the features. Return how many rows were learned: all, or those before one that is
        longer than the parameter `longest_row` allows.
        """
        state = self.parameters, self.scalars, self.mixtures, self.vector
        if self.is_sparse:
            return self._learn_sparse(state, rows, labels, weights, margins)
        kernel = self._kernel(dense_kernel, self.code, rows.dtype)
        return int(kernel(*state, self._row, *(scale or self._no_scale), rows, labels, weights, margins))

    def _learn_sparse(self, state: Any, rows: Any, labels: FloatArray, weights: FloatArray, margins: FloatArray) -> int:
        """Learn CSR rows: without a heap as long as the budget does not bind."""
        (data, indices, indptr), done = rows, 0
        if self.threshold == 0.0:
            kernel = self._kernel(sparse_kernel, data.dtype, indices.dtype, False)
            done = int(kernel(*state, data, indices, indptr, labels, weights, margins))
            if self.threshold > 0.0:
                self.rebuild_heap()
        if done < len(labels):
            kernel = self._kernel(sparse_kernel, data.dtype, indices.dtype, True)
            given = labels[done:], weights[done:], margins[done:]
            kernel(*state, self.heap, self._bits, data, indices, indptr[done:], *given)
        return len(labels)

    def _kernel(self, make: Callable[..., Any], *kind: Any) -> Any:
        """Return a kernel, compiled when it is first used."""
        kernel = self._kernels.get(kind)
        if kernel is None:
            names = (one.name if isinstance(one, np.dtype) else one for one in kind)
            kernel = self._kernels[kind] = make(*names)
        return kernel

    @property
    def weight_in_force(self) -> str:
        """The name of the scalar that multiplies l1 in the threshold: ν (penalised FTRL) or Λ."""
        return "multiplier" if self.code == PENALISED_FTRL else "multiplier_sum"

    @property
    def threshold(self) -> float:
        """τ, the size up to which a coordinate of z gives a weight of 0."""
        return self.number(self.weight_in_force) * self.parameter("l1")

    def x(self, columns: Any = slice(None)) -> FloatArray:
        """Return the decision in force, or some of its coordinates."""
        z: FloatArray = self.z[columns]
        threshold = self.threshold
        x: FloatArray = np.minimum(np.maximum(z, -threshold), threshold)
        x -= z
        x *= self.number("scale")
        x += 0.0
        return x

    def nonzeros(self) -> int:
        """Return how many weights of the decision are not 0."""
        return int(self.scalars["active"][0]) if self.is_sparse else int(np.count_nonzero(self.x()))

    # --- files ------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays."""
        made: dict[str, NDArray[Any]] = {
            "scalars": np.array(self.scalars[0].tolist(), dtype=np.float64),
            "mixtures": self.mixtures.view(np.float64).reshape(len(self.mixtures), -1).copy(),
            "vector": self.z.copy(),
        }
        if self.is_sparse:
            made["entries"] = self.vector["entry"].copy()
            made["heap"] = self.heap[: self.scalars["entries"][0]].copy()
        return made

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over the arrays of another state of this layout; `_stored` has checked them."""
        self.scalars[0] = tuple(arrays["scalars"].tolist())
        self.mixtures[...] = np.ascontiguousarray(arrays["mixtures"]).view(MIXTURE).reshape(-1)
        self.z[...] = arrays["vector"]
        if self.is_sparse:
            self.vector["entry"] = arrays["entries"]
            self.heap[: len(arrays["heap"])] = arrays["heap"]

    # --- other scales of the features -------------------------------------------------------------------------

    def rescale(self, columns: Any, shift: FloatArray, change: FloatArray, lengths: float, more: float) -> None:
        """Continue with the gradient sum (z + shift) · change in these columns, 0 in the others, and with squared
        lengths of rows multiplied by `lengths`.

        For FTRL with a mixture. For the leaders what was learned so far counts `more` times as much. The charges of the
        scales stay, so that the bound against the expert at 0 holds across updates (`docs/proofs/scales.md`).
        """
        s, mixture = self.scalars, self.mixture(WEIGHTS)
        z = (self.z[columns] + shift) * (change * more)
        self.z[columns] = z
        for name in RESCALED:
            s[name] *= more
        squares = max(self.number("gradient_squares") * more * more * lengths, float(mixture["clipped_squares"]))
        s["gradient_squares"] = squares
        s["longest_gradient"] *= max(math.sqrt(lengths), 1.0)
        self._keep_few()
        left = np.maximum(np.abs(z) - self.threshold, 0.0)
        s["norm_1"], s["norm_2"] = left.sum(), (left * left).sum()
        s["norm_1_low"] = s["norm_2_low"] = 0.0
        if self.threshold > 0.0:
            self.rebuild_heap()
        elif self.is_sparse:
            s["active"] = np.count_nonzero(left)
        if squares > 0.0:
            pull = self.number(self.weight_in_force) * self.parameter("l2")
            self._place(squares, pull)
            if self.number("reached") == 0.0 and self.excess > 0.0:
                s["reached"] = 1
                if mixture.radius[0] > self.parameter("budget_radius"):
                    self._resize(self.parameter("budget_radius"))
                    self._place(squares, pull)

    def _place(self, squares: float, pull: float) -> None:
        factor = place.py_func(self.mixture(WEIGHTS), WEIGHT_SCALES, squares, pull, self.number("norm_2"))
        self.scalars["scale"] = min(factor, self.parameter("factor_bound"))

    @property
    def excess(self) -> float:
        """g(x) of the decision in force."""
        return float(excess.py_func(self.parameters.view(np.recarray)[0], self.scalars.view(np.recarray)[0]))

    def _keep_few(self) -> None:
        """Raise ν until at most max_features coordinates are above the threshold."""
        most, l1 = int(self.parameter("max_features")), self.parameter("l1")
        if most and np.count_nonzero(np.abs(self.z) > self.threshold) > most:
            wanted = float(np.partition(np.abs(self.z), -most - 1)[-most - 1])
            self.scalars[self.weight_in_force] = penalised_ftrl.weight_reaching.py_func(wanted, l1)

    def rebuild_heap(self) -> None:
        """Make one entry for each active coordinate of the sparse layout; none while the threshold is 0."""
        if not self.is_sparse:
            return
        left = np.abs(self.z) - self.threshold
        active = np.flatnonzero(left > 0)
        if self.threshold == 0.0:
            self.vector["entry"] = 0
            self.scalars["active"], self.scalars["live"], self.scalars["entries"] = len(active), 0, 0
            return
        keys = (self.threshold + KEY_SHARE * left[active]).view(np.uint64) << np.uint64(1)
        words = keys >> self._bits << self._bits | (active + 1).astype(np.uint64)
        self.vector["entry"] = 0
        self.vector["entry"][active] = words
        self.heap[: len(active)] = np.sort(words)  # a sorted array is a heap
        for name in ("active", "live", "entries"):
            self.scalars[name] = len(active)

    def require_update_in_range(self) -> None:
        """Raise ValueError if numbers are so large that rescaled features could make them overflow."""
        mixture = self.mixture(WEIGHTS)
        numbers = [self.number(name) for name in (*RESCALED, "gradient_squares")]
        numbers += [float(np.abs(mixture[field.name]).max()) for field in MIXTURE_FIELDS if field.unit > 0]
        if not max(numbers) < LARGEST_RESCALED:
            raise ValueError("a sum is larger than rows can make it")
