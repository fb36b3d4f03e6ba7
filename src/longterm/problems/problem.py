"""A problem: an enclosing set, a loss family, a constraint, and the constants that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.display import ReprMixin
from longterm.errors import InputError
from longterm.problems.constants import Constants
from longterm.problems.constraints import Constraint
from longterm.problems.constraints.prox import AffineProx
from longterm.problems.feasibility import proof_of_emptiness
from longterm.problems.losses import Loss
from longterm.problems.projections.base import Projection
from longterm.problems.sets import Set
from longterm.problems.slater import SlaterPoint, find_slater_point


@dataclass(frozen=True, eq=False)
class Problem(ReprMixin):
    """Describe what is decided: the set of decisions, the losses and the constraints.

    The task is to minimise Σ f_t(x_t) with small Σ g(x_t), for decisions x_t in the enclosing set.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that contains every decision (B in the formulas).
    loss : Loss
        The family of the losses f_t.
    constraint : Constraint
        The constraint g, or the family of the constraints g_t.
    name : str
        The name in messages and tables.
    declared : Mapping[str, float]
        Values that replace derived constants, by name, for example a paper's value or a tighter one.
    minimiser : Callable, optional
        A function that maps the loss parameters of some rounds (rounds on the leading axis) to the x in {g ≤ 0} ∩ B
        that minimises their sum. `longterm.hindsight.best` tries it first and certifies the result.

    Examples
    --------
    >>> from longterm import Problem
    >>> from longterm.problems.constraints import Affine
    >>> from longterm.problems.losses import Linear
    >>> from longterm.problems.sets import Ball
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
        """The exact projection onto X = {g ≤ 0} ∩ B, batched, or None if none is known."""
        return self.constraint.projection(self.enclosing_set)

    @cached_property
    def slater_point(self) -> SlaterPoint | None:
        """A point of B with every g_j below 0, or None if none was found."""
        try:
            return find_slater_point(self.constraint, self.enclosing_set)
        except InputError:
            return None

    @cached_property
    def emptiness(self) -> str | None:
        """A proof in words that {g ≤ 0} ∩ B is empty, or None if no cheap proof was found.

        Examples
        --------
        >>> from longterm import Problem
        >>> from longterm.problems.constraints import Affine
        >>> from longterm.problems.losses import Linear
        >>> from longterm.problems.sets import Ball
        >>> Problem(Ball(1), Linear(1), Affine([[1.0]], [-2.0])).emptiness  # x ≤ −2 on [−1, 1]
        'constraint 0 is nowhere on B below 1'
        """
        if self.constraint.parameters:
            return None
        return proof_of_emptiness(self.constraint, self.enclosing_set)

    def require_feasible(self) -> None:
        """Raise InputError if {g ≤ 0} ∩ B is proved to be empty."""
        if self.emptiness is not None:
            what = f"no x of B has g(x) ≤ 0 in {self.name!r}: {self.emptiness}"
            raise InputError("problem", what, "Check the signs of the constraint, or give a larger enclosing set")

    @cached_property
    def constants(self) -> Constants:
        """The constants R, Δ, G, D, F and σ, derived from the parts or declared."""
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
        """A constant G_m with ‖Σ_j w_j ∇g_j(x)‖ ≤ G_m‖w‖ on B: σ_max(A) if g is affine and fixed, otherwise √m G_g.

        x ↦ (g_1(x), …, g_m(x)) is G_m-Lipschitz.

        Examples
        --------
        >>> from longterm.problems.named.targets import doubly_stochastic, two_dimensional
        >>> two_dimensional().joint_gradient_bound, round(doubly_stochastic(8).joint_gradient_bound ** 2, 9)
        (1.0, 33.0)
        """
        affine = self.constraint.as_affine()
        if affine is not None:
            return float(np.linalg.norm(affine.matrix, 2))
        return float(np.sqrt(self.constraint.count) * self.constants.constraint_gradient_bound)

    @cached_property
    def joint_value_bound(self) -> float:
        """A constant D_m ≥ ‖(g_1(x), …, g_m(x))‖ on B, at most √m D."""
        separate = float(np.sqrt(self.constraint.count) * self.constants.constraint_bound)
        if self.constraint.as_affine() is None:
            return separate
        return min(separate, AffineProx(self.constraint, self.enclosing_set).values_norm_bound())
