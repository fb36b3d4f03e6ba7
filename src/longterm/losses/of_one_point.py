"""Losses of one cost, target or price: linear, ½ ‖x − target‖² (the paper's), and power less what it is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, dot, like, namespace
from longterm.errors import InputError
from longterm.losses.base import Loss
from longterm.sets import Ball, Set


@dataclass(frozen=True, eq=False)
class Linear(Loss):
    """⟨cost, x⟩ with ‖cost‖₂ ≤ cost_norm. Parameter of a round: its cost.

    Parameters
    ----------
    dimension : int
        d.
    cost_norm : float
        Bounds ‖cost‖₂.
    """

    dimension: int
    cost_norm: float = 1.0

    def __post_init__(self) -> None:
        dimension = validate.dimension("dimension", self.dimension)
        validate.remember(
            self,
            dimension=dimension,
            parameters={"cost": (dimension,)},
            cost_norm=validate.positive_scalar("cost_norm", self.cost_norm),
        )

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        (cost,) = parameters
        return dot(cost, x), cost + 0 * x

    def gradient_bound(self, over: Set) -> float:
        return self.cost_norm

    def value_range(self, over: Set) -> float:
        return self.cost_norm * over.diameter


@dataclass(frozen=True, eq=False)
class SquaredDistance(Loss):
    """½ ‖x − target‖², 1-strongly convex. Parameter of a round: its target.

    Parameters
    ----------
    dimension : int
        d.
    targets : Set, optional
        Holds every target; left out, the targets lie in the enclosing set itself.
    """

    dimension: int
    targets: Set | None = None

    strong_convexity = 1.0

    def __post_init__(self) -> None:
        dimension = validate.dimension("dimension", self.dimension)
        if self.targets is not None and getattr(self.targets, "dimension", None) != dimension:
            what = f"{self.targets!r} is no set of dimension {dimension}"
            raise InputError("targets", what, "Give a set that holds every target, Ball(dimension, radius) for example")
        validate.remember(self, dimension=dimension, parameters={"target": (dimension,)})

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        (target,) = parameters
        gradient = x - target
        return 0.5 * dot(gradient, gradient), gradient

    def gradient_bound(self, over: Set) -> float:
        if self.targets is None or self.targets is over:
            return over.diameter
        apart = float(np.linalg.norm(over.centre - self.targets.centre))
        return apart + over.radius + self.targets.radius

    def value_range(self, over: Set) -> float:
        farthest = self.gradient_bound(over)
        if isinstance(over, Ball):
            # From a target at distance δ of the centre the ball lies between δ − R and δ + R: ½(δ + R)² − ½[δ − R]₊².
            return 0.5 * (farthest**2 - max(farthest - over.diameter, 0.0) ** 2)
        return 0.5 * farthest**2


@dataclass(frozen=True, eq=False)
class PricedUtility(Loss):
    """price Σ_i x_i − Σ_i w_i log(1 + a_i x_i) on 0 ≤ x ≤ `caps`. Parameter of a round: its price, in `prices`.

    The first unit of power is worth w_i a_i, each further one less. All bounds are exact on boxes: coordinates do not
    mix, what a unit is worth falls with x_i, and what is largest over the price is convex in it, so that the lowest and
    the highest price decide. σ = min_i w_i a_i²/(1 + a_i caps_i)².

    Parameters
    ----------
    weights, gains : array_like of shape (d,)
        w and a of the devices.
    caps : array_like of shape (d,)
        The most power that each can take.
    prices : tuple of float
        The lowest and the highest price.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.losses import PricedUtility
    >>> f = PricedUtility(weights=[2.0, 1.0], gains=[1.0, 3.0], caps=[1.0, 1.0], prices=(0.0, 4.0))
    >>> value, gradient = f.value_and_gradient(np.array([1.0, 0.0]), 0.5)
    >>> round(float(value), 4), gradient, f.strong_convexity  # ½ − 2 log 2, (½ − 1, ½ − 3), min(2/4, 9/16)
    (-0.8863, array([-0.5, -2.5]), 0.5)
    """

    weights: FloatArray
    gains: FloatArray
    caps: FloatArray
    prices: tuple[float, float]

    def __post_init__(self) -> None:
        weights = validate.vector("weights", validate.positive("weights", self.weights))
        gains = validate.vector("gains", validate.positive("gains", self.gains), len(weights))
        caps = validate.vector("caps", validate.positive("caps", self.caps), len(weights))
        lowest, highest = validate.vector("prices", self.prices, 2).tolist()
        if not lowest <= highest:
            raise InputError("prices", f"{self.prices!r} is no interval", "Give the lowest and the highest price")
        validate.remember(
            self,
            weights=weights,
            gains=gains,
            caps=caps,
            prices=(lowest, highest),
            dimension=len(weights),
            parameters={"price": ()},
            strong_convexity=float((weights * gains**2 / (1 + gains * caps) ** 2).min()),
        )

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        (price,) = parameters
        xp = namespace(x)
        weights, gains = like(self.weights, x), like(self.gains, x)
        units = 1 + gains * x
        gradient = xp.asarray(price, dtype=x.dtype)[..., None] - weights * gains / units
        return price * xp.sum(x, axis=-1) - xp.sum(weights * xp.log(units), axis=-1), gradient

    def _ends(self, over: Set) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest x_i on the set."""
        each = np.eye(self.dimension)
        low, high = -np.asarray(over.support(-each)), np.asarray(over.support(each))
        if np.any(low < -1e-9 * self.caps) or np.any(high > self.caps * (1 + 1e-9)):
            raise InputError("over", "is not inside 0 ≤ x ≤ caps", "Give a box within the caps of the devices")
        return np.maximum(low, 0.0), high

    def gradient_bound(self, over: Set) -> float:
        worth = [self.weights * self.gains / (1 + self.gains * end) for end in self._ends(over)]
        sizes = [np.linalg.norm(np.maximum(*(np.abs(price - w) for w in worth))) for price in self.prices]
        return float(max(sizes))

    def value_range(self, over: Set) -> float:
        low, high = self._ends(over)
        return max(self._range(price, low, high) for price in self.prices)

    def _range(self, price: float, low: FloatArray, high: FloatArray) -> float:
        best = self.weights / price - 1 / self.gains if price > 0 else high
        values = [price * x - self.weights * np.log1p(self.gains * x) for x in (low, high, np.clip(best, low, high))]
        return float(np.sum(np.maximum(values[0], values[1]) - values[2]))
