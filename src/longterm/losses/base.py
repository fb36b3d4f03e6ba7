"""What a loss f must be able to do, and the plain ones: of one cost, target or price, or of the user's own.

A loss is a *family*: f_t is the family with the parameters of round t (a target, a row and its
label, a cost vector). Parameters come from the stream as arrays, so that blocks of rounds stay
blocks of arrays. A loss knows its own facts over a set, so that nobody types G, F and σ by hand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, dot, like, namespace
from longterm._display import ReprMixin
from longterm.errors import InputError
from longterm.sets import Ball, Set


class Loss(ReprMixin, ABC):
    """A family of convex functions x ↦ f(x; parameters), batched over leading axes."""

    dimension: int
    strong_convexity: float = 0.0
    """σ: every f_t is σ-strongly convex (0: convex, no more)."""

    parameters: Mapping[str, tuple[int, ...]]
    """The name and the trailing shape of each parameter of one round, in order."""

    @abstractmethod
    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        """f(x), shape (...,), and a (sub)gradient at x, shape (..., d)."""

    @abstractmethod
    def gradient_bound(self, over: Set) -> float:
        """G_f: no (sub)gradient of any f_t on the set is longer."""

    @abstractmethod
    def value_range(self, over: Set) -> float:
        """F: max f_t − min f_t on the set, for every t."""

    def check_parameters(self, arrays: Sequence[Array], first: int) -> None:
        """Raise an InputError if parameters of rounds first, first + 1, … (leading axis) mean nothing to this loss."""

    def value(self, x: Array, *parameters: Array) -> Array:
        """f(x), shape (...,)."""
        return self.value_and_gradient(x, *parameters)[0]

    def gradient(self, x: Array, *parameters: Array) -> Array:
        """A (sub)gradient at x, shape (..., d)."""
        return self.value_and_gradient(x, *parameters)[1]


@dataclass(frozen=True, eq=False)
class CustomLoss(Loss):
    """f of the user's own.

    The facts are declared, not derived: `longterm.challenge` looks for a point that proves them wrong.

    Parameters
    ----------
    dimension : int
        d.
    function, derivative : callable
        f and a (sub)gradient: of x, shape (..., d), and the parameters of the round, to shapes (...,) and (..., d).
    declared_gradient_bound, declared_range, strong_convexity : float
        G_f, F and σ on the enclosing set.
    parameters : mapping of str to tuple of int
        Name and trailing shape of each parameter of a round, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import challenge
    >>> from longterm.losses import CustomLoss
    >>> from longterm.sets import Box
    >>> f = CustomLoss(
    ...     dimension=1,
    ...     function=lambda x: 1.6 * x[..., 0] ** 2,
    ...     derivative=lambda x: 3.2 * x,
    ...     declared_gradient_bound=1.0,
    ...     declared_range=1.6,
    ... )
    >>> print(challenge(f, Box([-1.0], [1.0]))[0])
    your gradient_bound = 1 is wrong: here is an x with gradient 3.2: x = [1.]
    """

    dimension: int
    function: Callable[..., Array]
    derivative: Callable[..., Array]
    declared_gradient_bound: float
    declared_range: float
    strong_convexity: float = 0.0
    parameters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.dimension, "dimension")
        validate.validate_fields(self, validate.positive_scalar, "declared_gradient_bound")
        validate.validate_fields(self, validate.non_negative_scalar, "declared_range", "strong_convexity")
        validate.set_frozen(self, parameters=dict(self.parameters))

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        return self.function(x, *parameters), self.derivative(x, *parameters)

    def gradient_bound(self, over: Set) -> float:
        return self.declared_gradient_bound

    def value_range(self, over: Set) -> float:
        return self.declared_range


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
        validate.validate_fields(self, validate.positive_scalar, "cost_norm")
        validate.set_frozen(self, dimension=dimension, parameters={"cost": (dimension,)})

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
        validate.set_frozen(self, dimension=dimension, parameters={"target": (dimension,)})

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
        validate.set_frozen(
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
