"""Concave utilities of devices minus the price of their power."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, like, namespace
from longterm.errors import InputError
from longterm.problems.losses.base import Loss
from longterm.problems.sets import Set


@dataclass(frozen=True, eq=False, init=False)
class PricedUtility(Loss):
    """price Σ_i x_i − Σ_i w_i log(1 + a_i x_i) on 0 ≤ x ≤ `caps`. Parameter of a round: its price, in `prices`.

    All bounds are exact on boxes: the loss is separable, its marginal utility decreases with x_i, and its range and
    gradients are largest at the lowest or highest price. σ = min_i w_i a_i²/(1 + a_i caps_i)².

    Parameters
    ----------
    weights, gains, caps : array_like of shape (d,)
        w, a and the largest power of each device.
    prices : tuple of float
        The lowest and the highest price.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.losses.priced_utility import PricedUtility
    >>> f = PricedUtility(weights=[2.0, 1.0], gains=[1.0, 3.0], caps=[1.0, 1.0], prices=(0.0, 4.0))
    >>> value, gradient = f.value_and_gradient(np.array([1.0, 0.0]), 0.5)
    >>> round(float(value), 4), gradient, f.strong_convexity  # ½ − 2 log 2, (½ − 1, ½ − 3), min(2/4, 9/16)
    (-0.8863, array([-0.5, -2.5]), 0.5)
    """

    weights: FloatArray
    gains: FloatArray
    caps: FloatArray
    prices: tuple[float, float]

    def __init__(self, weights: ArrayLike, gains: ArrayLike, caps: ArrayLike, prices: tuple[float, float]) -> None:
        w = validate.vector("weights", validate.positive("weights", weights))
        a = validate.vector("gains", validate.positive("gains", gains), len(w))
        most = validate.vector("caps", validate.positive("caps", caps), len(w))
        lowest, highest = validate.vector("prices", prices, 2).tolist()
        if not lowest <= highest:
            raise InputError("prices", f"{prices!r} is not an interval", "Give the lowest and the highest price")
        validate.set_frozen(
            self,
            weights=w,
            gains=a,
            caps=most,
            prices=(lowest, highest),
            dimension=len(w),
            parameters={"price": ()},
            strong_convexity=float((w * a**2 / (1 + a * most) ** 2).min()),
        )

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        (price,) = parameters
        xp = namespace(x)
        weights, gains = like(self.weights, x), like(self.gains, x)
        units = 1 + gains * x
        gradient = xp.asarray(price, dtype=x.dtype)[..., None] - weights * gains / units
        return price * xp.sum(x, axis=-1) - xp.sum(weights * xp.log(units), axis=-1), gradient

    def parameters_towards(self, direction: FloatArray, level: FloatArray, over: Set) -> tuple[FloatArray, ...]:
        low, high = self.prices
        return (low + (high - low) * 0.5 * (1 + level),)

    def _ends(self, over: Set) -> tuple[FloatArray, FloatArray]:
        """Return the lowest and the highest x_i on the set."""
        each = np.eye(self.dimension)
        low, high = -np.asarray(over.support(-each)), np.asarray(over.support(each))
        if np.any(low < -1e-9 * self.caps) or np.any(high > self.caps * (1 + 1e-9)):
            raise InputError("over", "is not inside 0 ≤ x ≤ caps", "Give a box within the caps of the devices")
        return np.maximum(low, 0.0), high

    def gradient_bound(self, over: Set) -> float:
        marginal = [self.weights * self.gains / (1 + self.gains * end) for end in self._ends(over)]
        sizes = [np.linalg.norm(np.maximum(*(np.abs(price - m) for m in marginal))) for price in self.prices]
        return float(max(sizes))

    def value_range(self, over: Set) -> float:
        low, high = self._ends(over)
        return max(self._range(price, low, high) for price in self.prices)

    def _range(self, price: float, low: FloatArray, high: FloatArray) -> float:
        best = self.weights / price - 1 / self.gains if price > 0 else high
        values = [price * x - self.weights * np.log1p(self.gains * x) for x in (low, high, np.clip(best, low, high))]
        return float(np.sum(np.maximum(values[0], values[1]) - values[2]))
