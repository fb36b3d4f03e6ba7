"""One learner's memory with the kernels that play on it: what the streaming learner holds, dense or sparse."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray, cache_aligned_zeros
from longterm.learners.multi_scale_hedge import RATIO, SCALES
from longterm.linear_model.kernels import heap
from longterm.linear_model.kernels.heap import room
from longterm.linear_model.kernels.layout import (
    ADDRESSES,
    AFTRL,
    AOGD,
    COUNTS,
    MIXED_NUMBERS,
    NUMBERS,
    ONE,
    ORDINARY,
    PARAMETERS,
    PENALISED_FTRL,
    SCALARS,
    SPARSE_AFTRL,
    TRACE,
    Parameters,
)
from longterm.linear_model.kernels.mixture import (
    FACTOR,
    IDLE,
    INVERSE,
    LOSS,
    NEVER,
    OWED,
    POWER,
    PRIOR,
    RADIUS,
    RESIDUAL,
    RESIDUAL_POWER,
    ROWS,
    SHARE,
    SQUARES,
    prefer,
)
from longterm.linear_model.kernels.play import block_kernel, row_kernel, sparse_row_kernel
from longterm.linear_model.kernels.vectors import LANES

NO_NUMBERS, NO_ROUNDS, NO_TRACE = np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=TRACE)
CODES = {"a-ftrl": AFTRL, "a-ogd": AOGD, "mahdavi": AOGD, "penalised-ftrl": PENALISED_FTRL}


LARGEST_LOG_ODDS = 4.0
"""The radius of the log-odds' residual; there a typical size is ¼, as if of rows of length 1."""


def lay_out(mixture: FloatArray, first: int, last: int, radius: float) -> None:
    """Radii R/4^k for these lanes, and that of the last for the zero expert's, which follows; nothing seen yet."""
    mixture[:, first : last + 1] = 0.0
    mixture[RADIUS, first:last] = radius / RATIO ** np.arange(last - first)
    mixture[RADIUS, last] = mixture[RADIUS, last - 1]
    mixture[INVERSE, first : last + 1] = 1 / mixture[RADIUS, first : last + 1]


def begun_mixture(parameters: Parameters, first_length: float) -> FloatArray:
    """Radii, their inverses and priors of a mixture with these constants, whose first row other than 0 has this length.

    With 0 for the length there was no such row; nothing is paid yet.
    """
    rule = DenseRule(AFTRL, 1)
    rule.use(parameters)
    if first_length > 0:
        prefer.py_func(rule.mixture, 0, RESIDUAL, 0.25 / first_length, POWER)
    return rule.mixture


def scales_at(mixture: FloatArray, squares: float, pull: float, norm_2: float) -> FloatArray:
    """s_k of the weights' scales, for V > 0, Λl2 and ‖w‖²."""
    factors = 1.0 / (math.sqrt(squares) * mixture[INVERSE, :SCALES] + pull)
    return np.minimum(factors, mixture[RADIUS, :SCALES] / math.sqrt(norm_2)) if norm_2 > 0.0 else factors


APART = 64
"""Numbers of room on either side of a vector. LLVM sums in lanes only where it sees at run time that what is written
and what is read are at least a few lanes apart: a vector beside its neighbour would be summed in another order, and
the same rows would give other last bits to one learner than to another."""


def zeros_apart(length: int) -> FloatArray:
    """So many zeros, apart from whatever else is in memory."""
    return np.zeros(length + 2 * APART)[APART : APART + length]


RESIDUAL_NUMBERS = (
    *("intercept_slope", "intercept_squares", "residual_clip", "residual_clipped_squares", "residual_factor"),
    *("residual_owed", "residual_owed_squares", "residual_patience", "residual_tilt"),
)
"""What is 0 where a residual begins."""
RESCALED = ("multiplier", "multiplier_sum", "longest_gradient", "clip", "pivot", "owed", "patience")
RESCALED_SQUARES = ("gradient_squares", "clipped_squares", "owed_squares")
"""What counts more, or grows with the rows, where features get another scale."""
LARGEST_RESCALED = 1e140


class CompiledRule(ABC):
    """One learner's memory, and the kernels that play on it. Nothing is checked but what kernels check themselves."""

    vector: FloatArray
    """z, or x up to its factor; with a word beside each number where the memory is sparse."""
    is_sparse: ClassVar[bool]
    """Whether the memory is laid out for sparse rows, and blocks must be CSR."""
    counts: ClassVar[tuple[str, ...]]
    numbers: ClassVar[tuple[str, ...]]
    """The scalars that snapshots of this layout store, in their order."""
    vector_name: ClassVar[str]
    numbers_per_coordinate: ClassVar[int]
    """What snapshots call the vector, and how many numbers it has for a coordinate."""
    array_names: ClassVar[tuple[str, ...]]
    """All arrays of a snapshot but the scalars."""

    def __init__(self, code: int, dimension: int, **arrays: NDArray[Any]) -> None:
        self._code, self.dimension = code, dimension
        self.scalars: Any = np.zeros(1, dtype=SCALARS)
        self.scalars["round"], self.scalars["scale"] = 1, 1.0  # before round 1: x_1 = 0, λ_1 = 0, nothing seen
        self.scalars["waits"] = 1.0
        self.parameters: Any = np.zeros(1, dtype=PARAMETERS)
        self.mixture = cache_aligned_zeros(8 * ROWS * LANES).view(np.float64).reshape(ROWS, LANES)
        self.mixture[RADIUS] = self.mixture[INVERSE] = 1.0
        self.mixture[PRIOR] = NEVER
        own = {"parameters": self.parameters, "scalars": self.scalars, "mixture": self.mixture}
        self._arrays = own | arrays  # kept with their addresses
        self._addresses: Any = np.zeros(1, dtype=ADDRESSES)
        self._addresses["dimension"] = dimension
        for name, array in self._arrays.items():
            self._addresses[name] = array.ctypes.data
        self._kernels: dict[Any, Any] = {}
        self._row_kernel: Any = None

    def use(self, parameters: Parameters) -> None:
        """Play with these constants from now on; a residual of another radius begins anew."""
        before = self.number_of("residual_radius"), self.number_of("scales")
        longest = self.number_of("longest") or parameters.longest  # an interval may widen in the midst of long rows
        self.parameters[...] = parameters.as_record()
        self.parameters["longest"] = longest
        if self.number_of("scales") == ONE:
            return
        if not before[1]:
            lay_out(self.mixture, 0, SCALES, parameters.radius)
        if parameters.residual_radius != before[0]:
            lay_out(self.mixture, RESIDUAL, IDLE - 1, parameters.residual_radius)
            typical = 0.25 * parameters.residual_radius / LARGEST_LOG_ODDS
            mean = prefer.py_func(self.mixture, RESIDUAL, IDLE, typical, RESIDUAL_POWER)
            for name in RESIDUAL_NUMBERS:
                self.scalars[name] = 0.0
            self.scalars["residual_mean_radius"] = mean

    @contextmanager
    def of_any_length(self) -> Iterator[None]:
        """Play rows however long: they were looked at."""
        self.parameters["longest"] = math.inf
        try:
            yield
        finally:
            self.parameters["longest"] = ORDINARY**2

    def number_of(self, name: str) -> float:
        """One of the constants in force."""
        return float(self.parameters[name][0])

    @property
    def rounds(self) -> int:
        """Rounds played."""
        return int(self.scalars["round"][0]) - 1

    def number(self, name: str) -> float:
        """One of the state's scalars."""
        return float(self.scalars[name][0])

    def play(
        self,
        rows: Any,
        order: NDArray[np.int64],
        labels: FloatArray,
        weights: FloatArray = NO_NUMBERS,
        record: NDArray[np.int64] = NO_ROUNDS,
        trace: NDArray[Any] = NO_TRACE,
        margins: FloatArray = NO_NUMBERS,
    ) -> int:
        """Play rows; how many were played before one that must be refused. Empty arrays stand for none of a thing."""
        kind = (rows[0].dtype, rows[1].dtype) if type(rows) is tuple else (rows.dtype,)
        run = self._kernels.get(kind)
        if run is None:  # the name of a dtype takes longer to find than a row to learn
            run = self._kernels[kind] = block_kernel(self._code, *(dtype.name for dtype in kind))
        return int(run(self._addresses, rows, order, labels, weights, record, trace, margins))

    @abstractmethod
    def step(self, indices: NDArray[Any], values: NDArray[Any], y: float, weight: float) -> float:
        """One sparse row of float64 values at increasing int64 indices; its margin, NaN if it must be refused."""

    @abstractmethod
    def step_dense(self, row: FloatArray, y: float, weight: float) -> float:
        """One row of float64; its margin, NaN if it must be refused."""

    @abstractmethod
    def x(self) -> FloatArray:
        """The decision in force."""

    @abstractmethod
    def nonzeros(self) -> int:
        """How many of its coordinates are not 0."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state, copied."""

    @abstractmethod
    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over such a state."""

    def _leader(self, z: FloatArray, weight: str) -> FloatArray:
        """−scale · soft(z, l1 · weight)."""
        threshold = self.number(weight) * float(self.parameters["l1"][0])
        x = np.minimum(np.maximum(z, -threshold), threshold)  # a third of the time of `clip`
        x -= z
        x *= self.number("scale")
        x += 0.0
        return x

    def require_room(self) -> None:
        """ValueError if numbers are so large that features on another scale could make them infinite."""
        kept = [abs(self.number(name)) for name in (*RESCALED, *RESCALED_SQUARES)]
        if not max(*kept, float(np.abs(self.mixture[LOSS]).max(initial=0.0))) < LARGEST_RESCALED:
            raise ValueError("a sum is larger than rows can make it")

    @abstractmethod
    def rescale(self, shift: FloatArray, change: FloatArray, lengths: float, more: float) -> None:
        """Go on with z + shift, features that are multiplied by `change`, and squared lengths of rows by `lengths`.

        FTRL only. What was learned so far counts `more` times in what follows.
        """

    def _rescaled(self, z: FloatArray, lengths: float, more: float) -> FloatArray:
        """The leader's numbers for this z, with p as it is; what is left of |z| above the threshold."""
        s, p = self.scalars, self.parameters
        for name in RESCALED:
            s[name] *= more
        for name in RESCALED_SQUARES:
            s[name] *= more * more
        s["tilt"] /= more
        self.mixture[LOSS, :RESIDUAL] *= more
        self.mixture[OWED] *= more
        self.mixture[SQUARES] *= more * more
        name = "multiplier" if self._code == PENALISED_FTRL else "multiplier_sum"
        most = int(p["max_features"][0])
        if most and np.count_nonzero(np.abs(z) > self.number(name) * self.number_of("l1")) > most:
            wanted = float(np.partition(np.abs(z), -most - 1)[-most - 1])
            s[name] = wanted / self.number_of("l1")
            while self.number(name) * self.number_of("l1") < wanted:
                s[name] = np.nextafter(self.number(name), np.inf)
        left = np.maximum(np.abs(z) - self.number(name) * self.number_of("l1"), 0.0)
        s["norm_1"], s["norm_2"] = left.sum(), (left * left).sum()
        s["longest_gradient"] = self.number("longest_gradient") * max(math.sqrt(lengths), 1.0)
        squares = max(self.number("gradient_squares") * lengths, self.number("clipped_squares"))
        s["gradient_squares"] = squares
        pull = self.number(name) * self.number_of("l2")
        if squares > 0.0:  # as `mixture.place_scales` does
            radii, factors = (
                self.mixture[RADIUS, :SCALES],
                scales_at(self.mixture, squares, pull, float(s["norm_2"][0])),
            )
            if pull > 0.0 and self.mixture[FACTOR, 0] == 0.0:
                self.mixture[OWED, :SCALES] = radii * s["owed"]
                self.mixture[SQUARES, :SCALES] = radii**2 * s["owed_squares"]
            self.mixture[FACTOR, :SCALES] = factors if pull > 0.0 else 0.0
            s["factor"] = factors[-1] / radii[-1]
            mean = self.mixture[SHARE, :SCALES] @ factors * (1.0 + self.number("tilt") * self.number("owed"))
            s["scale"] = min(mean, factors[0], self.number_of("most_factor"))
        return left

    def _scalars_as_arrays(self) -> dict[str, NDArray[Any]]:
        whole = np.array([self.scalars[name][0] for name in self.counts], dtype=np.int64)
        made = {"round": whole, "numbers": np.array([self.scalars[name][0] for name in self.numbers])}
        if self.number_of("scales") != ONE:
            made["mixed"] = np.array([self.scalars[name][0] for name in MIXED_NUMBERS])
            made["mixture"] = self.mixture.copy()
        return made

    def _restore_scalars(self, arrays: dict[str, NDArray[Any]]) -> None:
        stored = [(self.counts, arrays["round"]), (self.numbers, arrays["numbers"])]
        if self.number_of("scales") != ONE:
            stored.append((MIXED_NUMBERS, arrays["mixed"]))
            self.mixture[...] = arrays["mixture"]
        for names, values in stored:
            for name, value in zip(names, values, strict=True):
                self.scalars[name] = value


class DenseRule(CompiledRule):
    """Rounds cost O(d). Blocks may be dense or CSR."""

    is_sparse = False
    counts, numbers = COUNTS[:1], NUMBERS[: NUMBERS.index("norm_1_low")]
    vector_name, numbers_per_coordinate, array_names = "vector", 1, ("vector",)

    def __init__(self, code: int, dimension: int) -> None:
        self.vector = zeros_apart(dimension)
        point = self.vector if code == AOGD else zeros_apart(dimension)
        super().__init__(code, dimension, vector=self.vector, point=point, row=zeros_apart(dimension))

    def step(self, indices: NDArray[Any], values: NDArray[Any], y: float, weight: float) -> float:
        row = np.zeros(self.dimension)
        row[indices] = values
        return self.step_dense(row, y, weight)

    def step_dense(self, row: FloatArray, y: float, weight: float) -> float:
        if self._row_kernel is None:
            self._row_kernel = row_kernel(self._code)
        return self._row_kernel(self._addresses, row, y, weight)  # type: ignore[no-any-return]

    def x(self) -> FloatArray:
        if self._code == AOGD:
            return self.number("scale") * self.vector + 0.0  # −0.0 becomes 0.0
        return self._leader(self.vector, "multiplier" if self._code == PENALISED_FTRL else "multiplier_sum")

    def nonzeros(self) -> int:
        return int(np.count_nonzero(self.x()))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self._scalars_as_arrays() | {"vector": self.vector.copy()}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._restore_scalars(arrays)
        self.vector[...] = arrays["vector"]

    def rescale(self, shift: FloatArray, change: FloatArray, lengths: float, more: float) -> None:
        self.vector[:] = (self.vector + shift) * (change * more)
        self._rescaled(self.vector, lengths, more)


class SparseRule(CompiledRule):
    """A-FTRL on CSR rows: rounds cost what they touch, and so does memory, 16 bytes a coordinate and the heap."""

    is_sparse = True
    counts, numbers = COUNTS, NUMBERS
    vector_name, numbers_per_coordinate, array_names = "memory", 2, ("memory", "heap")

    def __init__(self, dimension: int) -> None:
        self.vector, self.heap = np.zeros(2 * dimension), np.zeros(room(dimension), dtype=np.uint64)
        super().__init__(SPARSE_AFTRL, dimension, vector=self.vector, heap=self.heap)
        self._addresses["room"] = len(self.heap)

    def step(self, indices: NDArray[Any], values: NDArray[Any], y: float, weight: float) -> float:
        if self._row_kernel is None:
            self._row_kernel = sparse_row_kernel()
        return self._row_kernel(self._addresses, indices, values, y, weight)  # type: ignore[no-any-return]

    def step_dense(self, row: FloatArray, y: float, weight: float) -> float:
        indices = np.flatnonzero(row)
        return self.step(indices, row[indices], y, weight)

    def x(self) -> FloatArray:
        return self._leader(self.vector[::2], "multiplier_sum")

    def nonzeros(self) -> int:
        return int(self.scalars["active"][0])

    def arrays(self) -> dict[str, NDArray[Any]]:
        heap = self.heap[: self.scalars["entries"][0]].copy()  # the rest of it is not in use
        return self._scalars_as_arrays() | {"memory": self.vector.copy(), "heap": heap}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._restore_scalars(arrays)
        self.vector[...] = arrays["memory"]
        self.heap[: len(arrays["heap"])] = arrays["heap"]

    def rescale(self, shift: FloatArray, change: FloatArray, lengths: float, more: float) -> None:
        self.vector[::2] = (self.vector[::2] + shift) * (change * more)
        left = self._rescaled(self.vector[::2], lengths, more)
        threshold, places = self.number("multiplier_sum") * self.number_of("l1"), np.uint64(self.dimension.bit_length())
        active = np.flatnonzero(left)
        bits = (threshold + heap.SHARE * left[active]).view(np.uint64) << np.uint64(1)
        words = self.vector.view(np.uint64)[1::2]
        words[:] = 0
        words[active] = bits >> places << places | (active + 1).astype(np.uint64)
        self.heap[: len(active)] = np.sort(words[active])  # what is sorted is a heap
        for name in ("active", "live", "entries"):
            self.scalars[name] = len(active)
        self.scalars["norm_1_low"] = self.scalars["norm_2_low"] = 0.0


def compiled_rule(rule: str, dimension: int, sparse: bool) -> CompiledRule:
    """A new memory. Only A-FTRL has a layout for sparse rows; the other rules take them in O(d)."""
    made = rule_class(rule, sparse)
    return SparseRule(dimension) if made is SparseRule else DenseRule(CODES[rule], dimension)


def rule_class(rule: str, sparse: bool) -> type[CompiledRule]:
    """How the memory is laid out."""
    return SparseRule if sparse and rule == "a-ftrl" else DenseRule
