"""Constants of a problem, and a challenge to those that somebody only declared.

What a theorem assumes of the hyper-parameters in use: checked before round 1, reported, never silent.

A learner whose rule can be played at all is not stopped for a theorem that does not cover it: the
assumption says so, and the loop warns. A learner that makes no sense is refused where it is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm import _validate as validate
from longterm._arrays import ROUNDING, Array, FloatArray, norm
from longterm.constraints import Constraint
from longterm.errors import InputError
from longterm.losses import Loss
from longterm.sets import Set


@dataclass(frozen=True)
class Constants:
    """The letters of the theorems, by name. `docs/theory.md` joins the two.

    Parameters
    ----------
    radius : float
        max ‖x_1 − x‖ over B (the paper's R, for a ball).
    diameter : float
        Δ, the diameter of B (2R for a ball).
    loss_gradient_bound, constraint_gradient_bound : float
        G_f and G_g: bound every gradient of a loss, and of a constraint, on B.
    constraint_bound, loss_range : float
        D and F: bound |g_j| and the range of every f_t on B.
    strong_convexity : float
        σ of the losses.
    """

    radius: float
    diameter: float
    loss_gradient_bound: float
    constraint_gradient_bound: float
    constraint_bound: float
    loss_range: float
    strong_convexity: float = 0.0

    def __post_init__(self) -> None:
        for constant in fields(self):
            validate.non_negative_scalar(constant.name, getattr(self, constant.name))

    @property
    def gradient_bound(self) -> float:
        """G, the larger of the two."""
        return max(self.loss_gradient_bound, self.constraint_gradient_bound)


@dataclass(frozen=True)
class Counterexample:
    """A point that proves a fact wrong.

    Parameters
    ----------
    fact, what : str
        The name of the fact, and what was seen, in words.
    declared, observed : float
        What was promised, and what it is at x.
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
    function: Loss | Constraint,
    over: Set,
    *,
    parameters: Sequence[Array] = (),
    samples: int = 1000,
    seed: int = 0,
) -> list[Counterexample]:
    """Look for points of a set where a fact of a loss or a constraint fails.

    What is tried: the gradient bound, the range of a loss or the bound of a constraint, and the inequality f(y) ≥ f(x)
    + ⟨∇f(x), y − x⟩ + ½σ‖y − x‖², which a non-convex function, a wrong gradient and a σ too large all break. Sampling
    can prove a fact wrong, never right.

    Parameters
    ----------
    function : Loss or Constraint
        Whose facts are tried.
    over : Set
        Where they are tried.
    parameters : sequence of array
        Those of a single round.
    samples : int
        How many points are tried, half of them extreme.
    seed : int
        Of the points.

    Returns
    -------
    list of Counterexample
        Empty where every fact held.
    """
    if function.dimension != over.dimension:
        what = f"has dimension {over.dimension}, the function has {function.dimension}"
        raise InputError("over", what, "Give a set of the function's dimension")
    if len(parameters) != len(function.parameters):
        what = f"{len(parameters)} given, the function has {tuple(function.parameters)}"
        raise InputError("parameters", what, "Give the parameters of one round, in this order")
    parameters = [np.asarray(parameter) for parameter in parameters]
    points = over.sample(np.random.default_rng(seed), validate.count("samples", samples))
    if isinstance(function, Loss):
        values, gradients = function.value_and_gradient(points, *parameters)
        return _challenge_one(function, over, points, _checked(values, samples), gradients)
    columns = _checked(function.values(points, *parameters), samples, function.count)
    proofs: list[Counterexample] = []
    for j in range(function.count):
        gradients = function.gradient_of(points, np.full(samples, j), *parameters)
        proofs += _challenge_one(function, over, points, columns[:, j], gradients)
    return proofs


def _checked(values: Array, samples: int, *columns: int) -> NDArray[np.float64]:
    if np.shape(values) != (samples, *columns):
        raise InputError(
            "function",
            f"returned shape {np.shape(values)} for {samples} points",
            "Write it for x of shape (..., d), so that it returns shape (...,)",
        )
    return np.asarray(values)


def _challenge_one(
    function: Loss | Constraint, over: Set, points: FloatArray, values: FloatArray, gradients: FloatArray
) -> list[Counterexample]:
    if gradients.shape != points.shape:
        raise InputError(
            "derivative",
            f"returned shape {gradients.shape} for x of shape {points.shape}",
            "Write it for x of shape (..., d), so that it returns the same shape",
        )
    proofs: list[Counterexample] = []

    def compare(fact: str, declared: float, amounts: FloatArray, what: str) -> None:
        worst = int(np.argmax(amounts))
        if not amounts[worst] <= declared * (1 + 1e-9) + 1e-12:
            proofs.append(Counterexample(fact, declared, float(amounts[worst]), points[worst], what))

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
    lacking = int(np.argmax(gap))
    if not gap[lacking] <= 1e-9 * scale:
        what = "an x whose tangent overshoots another point by"
        proofs.append(Counterexample("convexity (σ)", sigma, float(gap[lacking]), points[lacking], what))
    return proofs


@dataclass(frozen=True)
class Assumption:
    """An inequality that a theorem needs, with its numbers.

    Parameters
    ----------
    statement : str
        The inequality.
    value, limit : float
        Its left side and its right side.
    remedy : str
        What to do where it does not hold.

    Examples
    --------
    >>> from longterm.theory.facts import Assumption
    >>> print(Assumption("2η²(σ_max² + δ²η²) ≤ 1", value=1.2, limit=1.0, remedy="Give a longer horizon"))
    2η²(σ_max² + δ²η²) ≤ 1 does not hold (1.2 against 1): no theorem covers the run. Give a longer horizon.
    """

    statement: str
    value: float
    limit: float
    remedy: str

    @classmethod
    def worst(cls, statement: str, values: ArrayLike, limits: ArrayLike, remedy: str) -> Assumption:
        """For a batch of learners: the one that comes off worst."""
        value, limit = np.broadcast_arrays(np.asarray(values, dtype=np.float64), np.asarray(limits, dtype=np.float64))
        k = int(np.argmax(value - limit))
        return cls(statement, float(value.flat[k]), float(limit.flat[k]), remedy)

    @property
    def holds(self) -> bool:
        """Whether value ≤ limit, up to rounding."""
        return self.value <= self.limit + ROUNDING * abs(self.limit)

    def __str__(self) -> str:
        sides = f"({self.value:.6g} against {self.limit:.6g})"
        if self.holds:
            return f"{self.statement} holds {sides}"
        return f"{self.statement} does not hold {sides}: no theorem covers the run. {self.remedy}."
