"""Passes over coordinates, eight at a time: load, compute, store, sum up; the last few coordinates under a mask.

LLVM turns a plain loop into wide instructions by itself, but leaves the last coordinates to slower code, and with a few
dozen of them (covtype has 54) that part is most of the time. A pass is written as plain arithmetic on `Lanes`:

    @lanes(writes=1, sums=1)
    def add_scaled(x, u, factor):
        x = x + factor * u
        return x, x * x

The arguments come in this order: arrays that are read and written, arrays that are only read, numbers. The function
returns the new values of the written arrays, then what is to be added up. In a kernel `add_scaled(x, u, factor)`
changes x and returns the sums: a number where there is one, a tuple where there are more. All arrays have the length of
the last.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic

WIDTH = 8
FLAGS = ("reassoc", "contract", "nsz", "arcp")
DOUBLE, INTEGER, BIT = ir.DoubleType(), ir.IntType(64), ir.IntType(1)
WIDE, MASK = ir.VectorType(DOUBLE, WIDTH), ir.VectorType(BIT, WIDTH)


class Lanes:
    """Eight numbers on their way through a pass."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def _with(self, value: Any) -> Lanes:
        return Lanes(self.builder, value)

    def __add__(self, other: Lanes) -> Lanes:
        return self._with(self.builder.fadd(self.value, other.value, flags=FLAGS))

    def __sub__(self, other: Lanes) -> Lanes:
        return self._with(self.builder.fsub(self.value, other.value, flags=FLAGS))

    def __mul__(self, other: Lanes) -> Lanes:
        return self._with(self.builder.fmul(self.value, other.value, flags=FLAGS))

    def __neg__(self) -> Lanes:
        return self._with(self.builder.fneg(self.value))

    def __abs__(self) -> Lanes:
        return self._with(_call(self.builder, f"llvm.fabs.v{WIDTH}f64", WIDE, [self.value]))

    def signed(self, size: Lanes) -> Lanes:
        """Size · sign(self): 0 where self is 0."""
        builder, zero = self.builder, ir.Constant(WIDE, [0.0] * WIDTH)
        copied = _call(builder, f"llvm.copysign.v{WIDTH}f64", WIDE, [size.value, self.value])
        return self._with(builder.select(builder.fcmp_unordered("une", self.value, zero), copied, zero))

    def beyond(self, threshold: Lanes) -> Lanes:
        """1 where self > threshold, 0 elsewhere."""
        builder = self.builder
        above = builder.fcmp_ordered(">", self.value, threshold.value)
        return self._with(builder.select(above, ir.Constant(WIDE, [1.0] * WIDTH), ir.Constant(WIDE, [0.0] * WIDTH)))

    def clipped(self, bound: Lanes) -> Lanes:
        """The nearest number in [−bound, bound]."""
        builder, low = self.builder, (-bound).value
        raised = builder.select(builder.fcmp_ordered("<", self.value, low), low, self.value)
        return self._with(builder.select(builder.fcmp_ordered(">", raised, bound.value), bound.value, raised))


def lanes(*, writes: int, sums: int) -> Callable[[Callable[..., tuple[Lanes, ...]]], Any]:
    """Make an arithmetic of lanes into a function for kernels."""

    def make(function: Callable[..., tuple[Lanes, ...]]) -> Any:
        def run(context, *arguments):
            arrays = [kind for kind in arguments if isinstance(kind, types.Array)]
            numbers = [types.float64] * (len(arguments) - len(arrays))
            result: Any = types.float64 if sums == 1 else types.UniTuple(types.float64, sums)

            def generate(context, builder, signature, values):
                totals = _generate(context, builder, signature.args, values, len(arrays), function, writes, sums)
                return totals[0] if sums == 1 else context.make_tuple(builder, result, totals)

            return result(*arrays, *numbers), generate

        own = inspect.signature(function)
        first = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        run.__signature__ = own.replace(parameters=[first, *own.parameters.values()])  # type: ignore[attr-defined]
        run.__doc__ = function.__doc__
        return intrinsic(run)

    return make


def _generate(
    context: Any, builder: Any, kinds: Any, values: Any, count: int, function: Any, writes: int, sums: int
) -> list[Any]:
    held = [
        context.make_array(kind)(context, builder, value) for kind, value in zip(kinds[:count], values, strict=False)
    ]
    types_of = [context.get_value_type(kind.dtype) for kind in kinds[:count]]
    splats = [Lanes(builder, _splat(builder, value)) for value in values[count:]]
    zero = ir.Constant(WIDE, [0.0] * WIDTH)
    totals = [cgutils.alloca_once_value(builder, zero) for _ in range(sums)]
    length = cgutils.unpack_tuple(builder, held[count - 1].shape)[0]
    whole = builder.and_(length, INTEGER(-WIDTH))

    def step(start: Any, mask: Any) -> None:
        pointers = [builder.gep(array.data, [start]) for array in held]
        loaded = [
            Lanes(builder, _load(builder, pointer, kind, mask))
            for pointer, kind in zip(pointers, types_of, strict=True)
        ]
        found = function(*loaded, *splats)
        for pointer, new in zip(pointers, found[:writes], strict=False):
            _store(builder, pointer, new.value, mask)
        for total, addend in zip(totals, found[writes:], strict=True):
            kept = addend.value if mask is None else builder.select(mask, addend.value, zero)
            builder.store(builder.fadd(builder.load(total), kept, flags=FLAGS), total)

    with cgutils.for_range_slice(builder, INTEGER(0), whole, INTEGER(WIDTH), intp=INTEGER) as (start, _):
        step(start, None)
    rest = builder.sub(length, whole)
    with builder.if_then(builder.icmp_signed(">", rest, INTEGER(0))):
        each = ir.Constant(ir.VectorType(INTEGER, WIDTH), list(range(WIDTH)))
        step(whole, builder.icmp_unsigned("<", each, _splat(builder, rest)))
    name = f"llvm.vector.reduce.fadd.v{WIDTH}f64"
    return [_call(builder, name, DOUBLE, [DOUBLE(-0.0), builder.load(total)]) for total in totals]


def _splat(builder: Any, value: Any) -> Any:
    kind = ir.VectorType(value.type, WIDTH)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)


def _load(builder: Any, pointer: Any, kind: Any, mask: Any) -> Any:
    wide, align = ir.VectorType(kind, WIDTH), 8 if kind == DOUBLE else 4
    address = builder.bitcast(pointer, wide.as_pointer())
    if mask is None:
        loaded = builder.load(address, align=align)
    else:
        name, zero = f"llvm.masked.load.v{WIDTH}f{8 * align}.p0", ir.Constant(wide, [0.0] * WIDTH)
        loaded = _call(builder, name, wide, [address, ir.IntType(32)(align), mask, zero])
    return loaded if kind == DOUBLE else builder.fpext(loaded, WIDE)


def _store(builder: Any, pointer: Any, value: Any, mask: Any) -> None:
    address = builder.bitcast(pointer, WIDE.as_pointer())
    if mask is None:
        builder.store(value, address, align=8)
    else:
        name = f"llvm.masked.store.v{WIDTH}f64.p0"
        _call(builder, name, ir.VoidType(), [value, address, ir.IntType(32)(8), mask])


def _call(builder: Any, name: str, kind: Any, arguments: list[Any]) -> Any:
    form = ir.FunctionType(kind, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, form, name)
    return builder.call(function, arguments, fastmath=() if kind == ir.VoidType() else FLAGS)
