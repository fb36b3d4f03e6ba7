"""A problem: an enclosing set, a loss family, a constraint, and the constants that follow from them.

Whether {g ≤ 0} ∩ B is empty, where that can be shown in a few milliseconds.

A proof is a lower bound of max_j g_j over B that is above 0. Two kinds are tried:

- one constraint alone: `Constraint.least_values` knows min_B g_j, or a number below it;
- several together: for points y_k of B, subgradients s_k of the largest g_j there, and weights w_k ≥ 0 with sum 1,

      max_j g_j(x) ≥ Σ_k w_k (g(y_k) + ⟨s_k, x − y_k⟩),      whose minimum over B is known by B's support function.

  The points are those of Polyak's steps x ← Π_B(x − g(x) s/‖s‖²), which go to {g ≤ 0} where there is such a point.
  Affine constraints that these steps leave open, and that are few, are put to a linear program, whose multipliers
  are weights like these.

Any weights give a true bound, so neither rounding nor a solver's tolerance makes a proof false. Where steps come near
{g ≤ 0} nothing is shown, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np

from longterm import _validate as validate
from longterm._arrays import ROUNDING, FloatArray
from longterm._display import ReprMixin
from longterm.constraints import Affine, Constraint
from longterm.constraints.prox import AffineProx
from longterm.errors import InputError
from longterm.losses import Loss
from longterm.projections import Projection
from longterm.sets import Set
from longterm.theory.facts import Constants
from longterm.theory.slater import SlaterPoint, find_slater_point


@dataclass(frozen=True, eq=False)
class Problem(ReprMixin):
    """Minimise Σ f_t(x_t) with Σ g(x_t) small, x_t in B.

    Parameters
    ----------
    enclosing_set : Set
        B, where learners play.
    loss : Loss
        The family f_t.
    constraint : Constraint
        g, or the family g_t.
    name : str
        As messages and tables call it.
    declared : Mapping[str, float]
        Overrides single constants, by name, where a paper's value (or a user's tighter one) is wanted instead of the
        derived one.
    minimiser : Callable, optional
        From the loss parameters of some rounds (rounds on the leading axis) to the x of {g ≤ 0} ∩ B where their sum is
        least, for a problem whose maker knows it. `longterm.hindsight.best` asks it first, and certifies what it says.

    Examples
    --------
    >>> from longterm import Problem
    >>> from longterm.constraints import Affine
    >>> from longterm.losses import Linear
    >>> from longterm.sets import Ball
    >>> problem = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
    >>> problem.constants.gradient_bound, problem.constants.constraint_bound
    (1.0, 1.5)
    """

    enclosing_set: Set
    loss: Loss
    constraint: Constraint
    name: str = "problem"
    declared: Mapping[str, float] = field(default_factory=dict)
    minimiser: Callable[..., FloatArray] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for argument, kind in (("enclosing_set", Set), ("loss", Loss), ("constraint", Constraint)):
            if not isinstance(getattr(self, argument), kind):
                what = f"is a {type(getattr(self, argument)).__name__}, not a {kind.__name__}"
                raise InputError(argument, what, f"Give one from longterm.{kind.__module__.split('.')[1]}")
        dimensions = {
            "enclosing_set": self.enclosing_set.dimension,
            "loss": self.loss.dimension,
            "constraint": self.constraint.dimension,
        }
        if len(set(dimensions.values())) != 1:
            raise InputError("dimension", f"the parts disagree: {dimensions}", "Build all three for the same d")
        known = {constant.name for constant in fields(Constants)}
        for name, value in self.declared.items():
            if name not in known:
                raise InputError("declared", f"{name!r} is not a constant", f"Choose from {sorted(known)}")
            may_be_zero = name in ("loss_range", "strong_convexity")
            (validate.non_negative_scalar if may_be_zero else validate.positive_scalar)(name, value)

    @property
    def dimension(self) -> int:
        """The length d of a decision."""
        return self.enclosing_set.dimension

    @cached_property
    def projection(self) -> Projection | None:
        """Π onto X = {g ≤ 0} ∩ B, batched, where it is known how to find it exactly; None elsewhere."""
        return self.constraint.projection(self.enclosing_set)

    @cached_property
    def slater_point(self) -> SlaterPoint | None:
        """A point of B with every g_j below 0, looked for once; None where there is none, or nobody can know."""
        try:
            return find_slater_point(self.constraint, self.enclosing_set)
        except InputError:
            return None

    @cached_property
    def emptiness(self) -> str | None:
        """Why {g ≤ 0} ∩ B is empty, where that can be shown at little cost; None where it is not, or nobody knows.

        Examples
        --------
        >>> from longterm import Problem
        >>> from longterm.constraints import Affine
        >>> from longterm.losses import Linear
        >>> from longterm.sets import Ball
        >>> Problem(Ball(1), Linear(1), Affine([[1.0]], [-2.0])).emptiness  # x ≤ −2 on [−1, 1]
        'constraint 0 is nowhere on B below 1'
        """
        if self.constraint.parameters:
            return None
        return proof_of_emptiness(self.constraint, self.enclosing_set)

    def require_possible(self) -> None:
        """Raise, in words, if {g ≤ 0} ∩ B is shown to be empty."""
        if self.emptiness is not None:
            what = f"no x of B has g(x) ≤ 0 in {self.name!r}: {self.emptiness}"
            raise InputError("problem", what, "Check the signs of the constraint, or give a larger enclosing set")

    @cached_property
    def constants(self) -> Constants:
        """R, Δ, G, D, F and σ, derived from the parts or declared."""
        over = self.enclosing_set
        derived = Constants(
            radius=over.radius,
            diameter=over.diameter,
            loss_gradient_bound=self.loss.gradient_bound(over),
            constraint_gradient_bound=self.constraint.gradient_bound(over),
            constraint_bound=self.constraint.value_bound(over),
            loss_range=self.loss.value_range(over),
            strong_convexity=self.loss.strong_convexity,
        )
        return replace(derived, **self.declared)

    @cached_property
    def joint_gradient_bound(self) -> float:
        """G_m with ‖Σ_j w_j ∇g_j(x)‖ ≤ G_m‖w‖ on B, which makes x ↦ (g_1(x), …, g_m(x)) G_m-Lipschitz.

        σ_max(A) for fixed affine constraints, √m G_g for others.

        Examples
        --------
        >>> from longterm.problems import doubly_stochastic, two_dimensional
        >>> two_dimensional().joint_gradient_bound, round(doubly_stochastic(8).joint_gradient_bound ** 2, 9)
        (1.0, 33.0)
        """
        affine = self.constraint.as_affine()
        if affine is not None:
            return float(np.linalg.norm(affine.matrix, 2))
        return float(np.sqrt(self.constraint.count) * self.constants.constraint_gradient_bound)

    @cached_property
    def joint_value_bound(self) -> float:
        """D_m ≥ ‖(g_1(x), …, g_m(x))‖ on B: at most √m D, D itself where there is one constraint."""
        separate = float(np.sqrt(self.constraint.count) * self.constants.constraint_bound)
        if self.constraint.as_affine() is None:
            return separate
        return min(separate, AffineProx(self.constraint, self.enclosing_set).values_norm_bound())


STEPS = 60
ABOVE_ZERO = 1e-9
"""A lower bound counts as above 0 where it is, by this share of D."""
NEAR = 0.01
"""Steps that end with max_j g_j below this share of where they began are on the way to a feasible point."""
LARGE_TABLE = 1_000_000
"""Steps are tried for no more than this, constraints times coordinates."""
SMALL_TABLE = 20_000
"""A linear program is asked for no more than this."""


def proof_of_emptiness(constraint: Constraint, over: Set) -> str | None:
    """Why no point of the set has g ≤ 0, in words; None where there is one, or nothing can be shown cheaply.

    Parameters
    ----------
    constraint : Constraint
        A fixed one.
    over : Set
        B.

    Returns
    -------
    str or None
        The proof.
    """
    first = float(np.max(constraint.values(over.centre)))
    if not first > 0:  # the centre is feasible, or g is no number there: others say so
        return None
    least = np.asarray(constraint.least_values(over))
    size = constraint.gradient_bound(over) * over.largest_norm(
        2
    )  # of the numbers that are added up, B far from 0 or not
    nothing = ABOVE_ZERO * constraint.value_bound(over) + ROUNDING * size
    worst = int(np.argmax(least))
    if least[worst] > nothing:
        return f"constraint {worst} is nowhere on B below {least[worst]:.4g}"
    if constraint.count * constraint.dimension > LARGE_TABLE:
        return None
    reached, lower = _steps(constraint, over, nothing)
    affine = constraint.as_affine() if lower <= nothing and reached > NEAR * first and constraint.count > 1 else None
    if affine is not None and affine.matrix.size <= SMALL_TABLE:
        lower = max(lower, _by_linear_program(affine, over))
    return f"the largest constraint is nowhere on B below {lower:.4g}" if lower > nothing else None


def _steps(constraint: Constraint, over: Set, nothing: float) -> tuple[float, float]:
    """The least max_j g_j that Polyak's steps reach, and the lower bound that their subgradients prove."""
    x = np.asarray(over.centre, dtype=np.float64)
    reached, lower = np.inf, -np.inf
    slope, level, weight = np.zeros(over.dimension), 0.0, 0.0
    for _ in range(STEPS):
        values = np.asarray(constraint.values(x))
        worst = float(values.max())
        reached = min(reached, worst)
        if not reached > nothing or lower > nothing:
            break
        s = np.asarray(constraint.gradient_of(x, np.argmax(values)), dtype=np.float64)
        square = float(s @ s)
        if not square > 0:  # x is where the largest is least
            return reached, worst
        step = worst / square
        slope, level, weight = slope + step * s, level + step * (worst - float(s @ x)), weight + step
        for cut, height in ((s, worst - float(s @ x)), (slope / weight, level / weight)):
            lower = max(lower, height - float(over.support(-cut)))
        x = np.asarray(over.project(x - step * s))
    return reached, lower


def _by_linear_program(affine: Affine, over: Set) -> float:
    """The bound with the multipliers of min_x max_j g_j(x) over B, or over a box about B where it is no polyhedron."""
    from scipy.optimize import linprog  # loaded when asked for

    d, sides = over.dimension, over.half_spaces()
    each = np.eye(d)
    rows, limits = (
        sides
        if sides is not None
        else (np.concatenate([each, -each]), np.concatenate([over.support(each), over.support(-each)]))
    )
    above = np.column_stack([affine.matrix, -np.ones(affine.count)])
    inside = np.column_stack([rows, np.zeros(len(rows))])
    found = linprog(
        np.append(np.zeros(d), 1.0),
        A_ub=np.concatenate([above, inside]),
        b_ub=np.concatenate([affine.limit, limits]),
        bounds=(None, None),
    )
    if found.x is None:
        return -np.inf
    weights: FloatArray = np.maximum(-found.ineqlin.marginals[: affine.count], 0.0)
    if not weights.sum() > 0:
        return -np.inf
    weights = weights / weights.sum()
    return float(-weights @ affine.limit - over.support(-(weights @ affine.matrix)))
