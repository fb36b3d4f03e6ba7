"""exp, log and powers of one number, as series that are compiled into the kernels. Calls of the library were a quarter
of a round with few features, and took lanes of vectors one by one.

Good to a few units of the last place. Even and odd powers are summed apart, which halves the chain of products.
"""

from __future__ import annotations

import numpy as np

from longterm.linear_model.kernels.compile import precise

MAGIC = 6755399441055744.0
"""1.5 · 2^52: adding it rounds to whole numbers, and leaves them in the last bits."""
LOG2_E, LN_2_HIGH, LN_2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
LOWEST = -700.0
_PLACES, _HALF, _BIAS = np.int64(52), np.int64(1 << 51), np.int64(1023)


@precise
def exponential(x):
    """The exponential of x ≤ 0; below −700 that is 0. A NaN comes out as one."""
    cut = x if not x < LOWEST else LOWEST
    shifted = cut * LOG2_E + MAGIC
    whole = shifted - MAGIC
    r = (cut - whole * LN_2_HIGH) - whole * LN_2_LOW
    q = r * r
    even = 1.0 / 479001600.0
    even = even * q + 1.0 / 3628800.0
    even = even * q + 1.0 / 40320.0
    even = even * q + 1.0 / 720.0
    even = even * q + 1.0 / 24.0
    even = even * q + 0.5
    even = even * q + 1.0
    odd = 1.0 / 6227020800.0
    odd = odd * q + 1.0 / 39916800.0
    odd = odd * q + 1.0 / 362880.0
    odd = odd * q + 1.0 / 5040.0
    odd = odd * q + 1.0 / 120.0
    odd = odd * q + 1.0 / 6.0
    odd = odd * q + 1.0
    power = np.int64((np.float64(shifted).view(np.int64) + _BIAS) << _PLACES).view(np.float64)
    made = (odd * r + even) * power
    return 0.0 if x < LOWEST else made


@precise
def log1p_of_share(s):
    """log(1 + s) for s in [0, 1]: 2 artanh(w), w = s/(2 + s) ≤ 1/3."""
    w = s / (2.0 + s)
    q = w * w
    f = q * q
    even = 1.0 / 33.0
    even = even * f + 1.0 / 29.0
    even = even * f + 1.0 / 25.0
    even = even * f + 1.0 / 21.0
    even = even * f + 1.0 / 17.0
    even = even * f + 1.0 / 13.0
    even = even * f + 1.0 / 9.0
    even = even * f + 1.0 / 5.0
    even = even * f + 1.0
    odd = 1.0 / 35.0
    odd = odd * f + 1.0 / 31.0
    odd = odd * f + 1.0 / 27.0
    odd = odd * f + 1.0 / 23.0
    odd = odd * f + 1.0 / 19.0
    odd = odd * f + 1.0 / 15.0
    odd = odd * f + 1.0 / 11.0
    odd = odd * f + 1.0 / 7.0
    odd = odd * f + 1.0 / 3.0
    return 2.0 * w * (odd * q + even)


@precise
def logarithm(x):
    """log(x) for x between 1e-300 and 1e300."""
    near, k = near_power(x, 1.0)
    w = (x - near) / (x + near)
    q = w * w
    f = q * q
    even = 1.0 / 21.0
    even = even * f + 1.0 / 17.0
    even = even * f + 1.0 / 13.0
    even = even * f + 1.0 / 9.0
    even = even * f + 1.0 / 5.0
    odd = 1.0 / 23.0
    odd = odd * f + 1.0 / 19.0
    odd = odd * f + 1.0 / 15.0
    odd = odd * f + 1.0 / 11.0
    odd = odd * f + 1.0 / 7.0
    odd = odd * f + 1.0 / 3.0
    rest = (even * f + odd * q) * w
    return k * LN_2_HIGH + (2.0 * w + (2.0 * rest + k * LN_2_LOW))


@precise
def near_power(a, b):
    """2^k b and k, where 2^k b is within half again of a: log(a/b) = 2 artanh(w) + k log 2 with |w| ≤ 1/5.

    The bits of a number are its logarithm to base 2, but for .086. w = (a − 2^k b)/(a + 2^k b).
    """
    bits = np.float64(b).view(np.int64)
    k = (np.float64(a).view(np.int64) - bits + _HALF) >> _PLACES
    return np.int64(bits + (k << _PLACES)).view(np.float64), np.float64(k)


@precise
def falling_power(logarithm_of_t, beta):
    """t^−β for t ≥ 1 and β ≥ 0, with log t given."""
    return exponential(-beta * logarithm_of_t)
