"""A search for counterexamples to the declared bounds of losses and constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, norm
from longterm.errors import InputError
from longterm.problems.constraints import Constraint
from longterm.problems.losses import Loss
from longterm.problems.sets import Set


@dataclass(frozen=True)
class Counterexample:
    """Report a point at which a declared bound does not hold.

    Parameters
    ----------
    fact, what : str
        The name of the bound, and a description of the observation.
    declared, observed : float
        The declared and the observed value.
    x : array of shape (d,)
        The point.
    """

    fact: str
    declared: float
    observed: float
    x: FloatArray
    what: str

    def __str__(self) -> str:
        return f"your {self.fact} = {self.declared:g} is wrong: here is {self.what} {self.observed:g}: x = {self.x}"


def challenge(
    function: Loss | Constraint, over: Set, *, parameters: Sequence[Array] = (), samples: int = 1000, seed: int = 0
) -> list[Counterexample]:
    """Return points of a set that violate a declared bound of a loss or a constraint, or an empty list.

    It tests the gradient bound, the value range or bound, and f(y) ≥ f(x) + ⟨∇f(x), y − x⟩ + ½σ‖y − x‖². The last
    fails for a function that is not convex, a wrong gradient, or a σ that is too large. Sampling can refute a bound but
    not prove it.

    Parameters
    ----------
    function : Loss or Constraint
        The function to test.
    over : Set
        The set of points.
    parameters : sequence of array
        The parameters of one round.
    samples : int
        The number of points, half of them extreme points.
    seed : int
        The seed of the points.
    """
    if function.dimension != over.dimension:
        what = f"has dimension {over.dimension}, but the function has {function.dimension}"
        raise InputError("over", what, "Give a set of the function's dimension")
    if len(parameters) != len(function.parameters):
        what = f"has {len(parameters)} arrays, but the function has the parameters {tuple(function.parameters)}"
        raise InputError("parameters", what, "Give the parameters of one round, in this order")
    parameters = [np.asarray(parameter) for parameter in parameters]
    points = over.sample(np.random.default_rng(seed), validate.count("samples", samples))
    if isinstance(function, Loss):
        values, gradients = function.value_and_gradient(points, *parameters)
        return _challenge_one(function, over, points, _require_shape(values, samples), gradients)
    columns = _require_shape(function.values(points, *parameters), samples, function.count)
    found: list[Counterexample] = []
    for j in range(function.count):
        gradients = function.gradient_of(points, np.full(samples, j), *parameters)
        found += _challenge_one(function, over, points, columns[:, j], gradients)
    return found


def _require_shape(values: Array, samples: int, *columns: int) -> NDArray[np.float64]:
    if np.shape(values) != (samples, *columns):
        what = f"returned shape {np.shape(values)} for {samples} points"
        raise InputError("function", what, "Write it for x of shape (..., d), so that it returns shape (...,)")
    return np.asarray(values)


def _challenge_one(
    function: Loss | Constraint, over: Set, points: FloatArray, values: FloatArray, gradients: FloatArray
) -> list[Counterexample]:
    if gradients.shape != points.shape:
        what = f"returned shape {gradients.shape} for x of shape {points.shape}"
        raise InputError("derivative", what, "Write it for x of shape (..., d), so that it returns the same shape")
    found: list[Counterexample] = []

    def compare(fact: str, declared: float, amounts: FloatArray, what: str) -> None:
        worst = int(np.argmax(amounts))
        if not amounts[worst] <= declared * (1 + 1e-9) + 1e-12:
            found.append(Counterexample(fact, declared, float(amounts[worst]), points[worst], what))

    compare("gradient_bound", function.gradient_bound(over), norm(gradients), "an x with gradient")
    if isinstance(function, Loss):
        spread = values - values.min()
        compare("value_range", function.value_range(over), spread, "an x above the lowest value by")
        sigma = function.strong_convexity
    else:
        compare("value_bound", function.value_bound(over), np.abs(values), "an x with value")
        sigma = 0.0
    step = np.roll(points, 1, axis=0) - points
    gap = values + np.vecdot(gradients, step) + 0.5 * sigma * np.vecdot(step, step) - np.roll(values, 1)
    scale = float(np.abs(values).max()) + 1e-300
    worst = int(np.argmax(gap))
    if not gap[worst] <= 1e-9 * scale:
        what = "an x whose tangent overshoots another point by"
        found.append(Counterexample("convexity (σ)", sigma, float(gap[worst]), points[worst], what))
    return found
