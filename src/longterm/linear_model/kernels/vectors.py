"""Vectors of sixteen numbers, for code that LLVM must keep in registers: Numba's loops over small arrays do not.

A `Lanes` stands for such a vector while a kernel is compiled; its operators write instructions. Products and sums may
be fused, nothing else is reordered: the same numbers give the same bits wherever they lie in memory.
"""

from __future__ import annotations

from typing import Any, Self

from llvmlite import ir
from numba import float64, types
from numba.extending import intrinsic

from longterm.linear_model.kernels.compile import precise
from longterm.linear_model.kernels.functions import LN_2_HIGH, LN_2_LOW, LOG2_E, MAGIC, near_power

LANES = 16
BYTES = 8
_NUMBER, _WHOLE, _PLACE = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_FUSED = ("contract",)
LOWEST, HIGHEST = -500.0, 30.0
"""Exponents are cut off here: products of exp(−700) with other small numbers are denormal, which made a round of 370 ns
take 440."""


class Lanes:
    """Some numbers, side by side."""

    def __init__(self, builder: Any, vector: Any) -> None:
        self._builder, self.vector = builder, vector

    # --- where they come from and go to -----------------------------------------------------------------------

    @classmethod
    def load(cls, builder: Any, address: Any, row: int, count: int = LANES, first: int = 0) -> Self:
        """`count` lanes from `first` on, of this row of an array of rows of LANES numbers."""
        return cls(builder, builder.load(_place(builder, address, row, count, first), align=BYTES))

    def store(self, address: Any, row: int, first: int = 0) -> None:
        """Back to that array."""
        self._builder.store(self.vector, _place(self._builder, address, row, self.count, first), align=BYTES)

    @classmethod
    def spread(cls, builder: Any, number: Any, count: int) -> Self:
        """The same number in every lane."""
        return cls.parted(builder, number, number, count, count)

    @classmethod
    def parted(cls, builder: Any, one: Any, other: Any, where: int, count: int = LANES) -> Self:
        """One number in the lanes before `where`, the other one from there on."""
        pair: Any = ir.Constant(ir.VectorType(_NUMBER, 2), ir.Undefined)
        pair = builder.insert_element(pair, one, _PLACE(0))
        pair = builder.insert_element(pair, other, _PLACE(1))
        return cls(builder, _shuffled(builder, pair, [0] * where + [1] * (count - where)))

    # --- arithmetic -------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many."""
        return int(self.vector.type.count)

    def _vector_of(self, other: Lanes | float | list[float]) -> Any:
        if isinstance(other, Lanes):
            return other.vector
        numbers = other if isinstance(other, list) else [float(other)] * self.count
        return ir.Constant(ir.VectorType(_NUMBER, self.count), numbers)

    def _made(self, instruction: str, other: Any) -> Lanes:
        written = getattr(self._builder, instruction)(self.vector, self._vector_of(other), flags=_FUSED)
        return Lanes(self._builder, written)

    def __add__(self, other: Any) -> Lanes:
        return self._made("fadd", other)

    def __sub__(self, other: Any) -> Lanes:
        return self._made("fsub", other)

    def __mul__(self, other: Any) -> Lanes:
        return self._made("fmul", other)

    def __truediv__(self, other: Any) -> Lanes:
        return self._made("fdiv", other)

    def inverse(self) -> Lanes:
        """1 over each."""
        return self._constant(1.0) / self

    def at_least(self, other: Any) -> Lanes:
        """The larger one, lane by lane."""
        return self._chosen(">", other)

    def at_most(self, other: Any) -> Lanes:
        """The smaller one, lane by lane."""
        return self._chosen("<", other)

    def _chosen(self, order: str, other: Any) -> Lanes:
        given = self._vector_of(other)
        kept = self._builder.fcmp_ordered(order, self.vector, given)
        return Lanes(self._builder, self._builder.select(kept, self.vector, given))

    def series(self, coefficients: list[float]) -> Lanes:
        """Σ c_i x^i, even and odd powers apart: half as long a chain of products as one after another."""
        square = self * self
        parts = []
        for some in (coefficients[::2], coefficients[1::2]):
            part: Any = self._constant(some[-1])
            for coefficient in some[-2::-1]:
                part = part * square + coefficient
            parts.append(part)
        odd, even = parts[1], parts[0]
        return Lanes(self._builder, (odd * self + even).vector)

    def _constant(self, number: float) -> Lanes:
        return Lanes(self._builder, self._vector_of(number))

    def exponential(self) -> Lanes:
        """Of each, in fewer than two units of the last place; what is not in −500 … 30 is cut off there."""
        x = self.at_least(LOWEST).at_most(HIGHEST)
        shifted = x * LOG2_E + MAGIC
        whole = shifted - MAGIC
        r = (x - whole * LN_2_HIGH) - whole * LN_2_LOW
        coefficients, factorial = [], 1.0
        for i in range(14):
            coefficients.append(1.0 / factorial)
            factorial *= i + 1
        of_rest = r.series(coefficients)
        b, kind = self._builder, ir.VectorType(_WHOLE, self.count)
        bits = b.add(b.bitcast(shifted.vector, kind), ir.Constant(kind, [1023] * self.count))
        power = b.bitcast(b.shl(bits, ir.Constant(kind, [52] * self.count)), self.vector.type)
        return of_rest * Lanes(b, power)

    # --- sums -------------------------------------------------------------------------------------------------

    def lanes(self, first: int, last: int) -> Lanes:
        """Some of them."""
        return Lanes(self._builder, _shuffled(self._builder, self.vector, list(range(first, last))))

    def lane(self, number: int) -> Any:
        """One of them, a number."""
        return self._builder.extract_element(self.vector, _PLACE(number))

    def total(self) -> Any:
        """The sum of 2^n lanes, a number."""
        rest = self
        while rest.count > 1:
            half = rest.count // 2
            rest = rest.lanes(0, half) + rest.lanes(half, 2 * half)
        return rest.lane(0)

    def largest(self) -> Any:
        """The largest of 2^n lanes, a number."""
        rest = self
        while rest.count > 1:
            half = rest.count // 2
            rest = rest.lanes(0, half).at_least(rest.lanes(half, 2 * half))
        return rest.lane(0)

    def parted_totals(self, where: int) -> tuple[Any, Any]:
        """The sums of the lanes before `where`, one beyond the middle, and of those from there on."""
        half = self.count // 2
        low, high = self.lanes(0, half), self.lanes(half, self.count)
        zeros = [0.0] * (where - half) + [1.0] * (self.count - where)
        first = self._builder.fadd(low.total(), self.lane(half))
        return first, (high * zeros).total()


def _shuffled(builder: Any, vector: Any, places: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(_PLACE, len(places)), places)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)


def _place(builder: Any, address: Any, row: int, count: int, first: int) -> Any:
    at = builder.add(address, _WHOLE(BYTES * (LANES * row + first)))
    return builder.inttoptr(at, ir.VectorType(_NUMBER, count).as_pointer())


def _inverse_tangents(context, one, of, other, of_other):
    """artanh(one/of) and artanh(other/of_other), of numbers up to 1/5: of each w, and what it is more than w."""

    def generate(context, builder, signature, arguments):
        one, of, other, of_other = arguments
        w = Lanes.parted(builder, one, other, 1, 2) / Lanes.parted(builder, of, of_other, 1, 2)
        q = w * w
        rest = q.series([1.0 / i for i in range(3, 25, 2)]) * q * w
        numbers = [w.lane(0), rest.lane(0), w.lane(1), rest.lane(1)]
        return context.make_tuple(builder, types.UniTuple(float64, 4), numbers)

    return types.UniTuple(float64, 4)(*[float64] * 4), generate


inverse_tangents: Any = intrinsic(_inverse_tangents)


@precise
def logarithms(a, b, c):
    """log(a/b) and log(c), for numbers between 1e-300 and 1e300: side by side they take the time of one."""
    near, k = near_power(a, b)
    near_c, k_c = near_power(c, 1.0)
    w, rest, w_c, rest_c = inverse_tangents(a - near, a + near, c - near_c, c + near_c)
    ratio = k * LN_2_HIGH + (2.0 * w + (2.0 * rest + k * LN_2_LOW))
    return ratio, k_c * LN_2_HIGH + (2.0 * w_c + (2.0 * rest_c + k_c * LN_2_LOW))
