"""Two logarithms at once, in the lanes of one vector: they take the time of one."""

from __future__ import annotations

from typing import Any

from numba import float64, types
from numba.extending import intrinsic

from longterm.linear_model.kernels.compile import precise
from longterm.linear_model.kernels.functions import LN_2_HIGH, LN_2_LOW, near_power
from longterm.linear_model.kernels.vectors import Lanes


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
    """log(a/b) and log(c), for numbers between 1e-300 and 1e300."""
    near, k = near_power(a, b)
    near_c, k_c = near_power(c, 1.0)
    w, rest, w_c, rest_c = inverse_tangents(a - near, a + near, c - near_c, c + near_c)
    ratio = k * LN_2_HIGH + (2.0 * w + (2.0 * rest + k * LN_2_LOW))
    return ratio, k_c * LN_2_HIGH + (2.0 * w_c + (2.0 * rest_c + k_c * LN_2_LOW))
