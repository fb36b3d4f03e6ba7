"""What is done to each row of a fleet besides its round, compiled (extra `linear`: Numba): to copy it, to check it.

A record that is not in the cache takes a hundred nanoseconds to come, in which a hundred numbers could be copied; so
the records of rows to come are asked for ahead, which NumPy does not do. Bytes are copied, whatever they mean.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, int64, types
from numba.extending import intrinsic

from longterm._arrays import CACHE_LINE
from longterm.storage.compiled import compiled, prefetch, readonly

AHEAD = 16
"""Rows that are asked for before their turn."""


@cache
def mover() -> Any:
    """The kernel that copies fields; None where Numba was told not to compile."""
    integers = readonly(int64)
    return _made(_move, (int64, int64, int64, integers, integers, integers, integers, types.boolean))


@cache
def checker(dtype: np.dtype[Any]) -> Any:
    """The kernel that checks feedback of this dtype; None where there is none."""
    if dtype not in (np.float64, np.float32):
        return None
    number = from_dtype(dtype)
    numbers, table = readonly(number), readonly(number, 2)
    signature = (table, numbers, table, numbers, numbers, numbers)
    return _made(_are_within, signature, fastmath={"reassoc", "contract"})


def _made(function: Callable[..., Any], signature: Any, **options: Any) -> Any:
    made = compiled(function, signature, **options)
    return None if made is function else made


def _are_within(loss_gradient, constraint, constraint_gradient, longest, longest_of_constraint, largest):
    """Whether all rows are what `Limits.within` says. A limit is one number, or one for each row.

    A NaN is never below anything.
    """
    sound = True
    first, second, third = len(longest) > 1, len(longest_of_constraint) > 1, len(largest) > 1
    for i in range(len(constraint)):
        square = square_of_constraint = loss_gradient.dtype.type(0)
        for j in range(loss_gradient.shape[1]):
            square += loss_gradient[i, j] * loss_gradient[i, j]
            square_of_constraint += constraint_gradient[i, j] * constraint_gradient[i, j]
        sound &= square <= longest[i * first]
        sound &= square_of_constraint <= longest_of_constraint[i * second]
        sound &= abs(constraint[i]) <= largest[i * third]
    return sound


def _move(records, each, count, numbers, offsets, sizes, arrays, into_records):
    """Copy fields of the records with these numbers into arrays, or from arrays into the records.

    Parameters
    ----------
    records, each, count : int
        Where the first record begins, the bytes of a record, how many there are.
    numbers : array
        Which ones. Numbers out of range, which another thread might write meanwhile, are taken for the nearest.
    offsets, sizes : array
        For each field, where it begins in a record, and its bytes.
    arrays : array
        For each field, where the array of its values begins, one after another for each of the numbers.
    into_records : bool
        From arrays into records.
    """
    for i in range(len(numbers)):
        if i + AHEAD < len(numbers):
            next_one = records + each * min(max(numbers[i + AHEAD], 0), count - 1)
            for byte in range(0, each, CACHE_LINE):
                prefetch(next_one + byte)
        record = records + each * min(max(numbers[i], 0), count - 1)
        for k in range(len(sizes)):
            field, value = record + offsets[k], arrays[k] + sizes[k] * i
            if sizes[k] == 8:  # the usual one: an instruction, not a call
                copy_word(field, value) if into_records else copy_word(value, field)
            elif into_records:
                copy_bytes(field, value, sizes[k])
            else:
                copy_bytes(value, field, sizes[k])


def _copy_bytes(context, to, source, size):
    """So many bytes from one address to another."""

    def generate(context, builder, signature, arguments):
        pointer = ir.IntType(8).as_pointer()
        function = builder.module.declare_intrinsic("llvm.memcpy", [pointer, pointer, ir.IntType(64)])
        places = [builder.inttoptr(address, pointer) for address in arguments[:2]]
        builder.call(function, [*places, arguments[2], ir.IntType(1)(0)])
        return context.get_dummy_value()

    return types.void(int64, int64, int64), generate


def _copy_word(context, to, source):
    """Eight bytes from one address to another."""

    def generate(context, builder, signature, arguments):
        to, source = (builder.inttoptr(address, ir.IntType(64).as_pointer()) for address in arguments)
        builder.store(builder.load(source, align=1), to, align=1)  # a field of eight bytes may begin at any
        return context.get_dummy_value()

    return types.void(int64, int64), generate


copy_bytes: Any = intrinsic(_copy_bytes)
copy_word: Any = intrinsic(_copy_word)
