"""Movement that is limited, or that costs: gradient descent with one constant step, on the losses alone (ours).

    x_{t+1} = Π_B( x_t − η ∇f_t(x_t) ),     η = min( Δ/√(T(G_f² + 2βG_f)), S/(G_fT) )

A step moves by at most ηG_f, so Σ ‖x_{t+1} − x_t‖ ≤ S whatever happens, and with a price β of movement and u_t in B
with path P, which pays for its own movement:

    Σ f_t(x_t) − f_t(u_t) + β Σ ‖x_{t+1} − x_t‖ ≤ (Δ²/2 + ΔP)/η + ηG_f²T/2 + βηG_fT

which for P = 0 is Δ√(T(G_f² + 2βG_f)) where the budget S does not bind. `bound` gives the right side. A dead zone ν
moves by (1 − ν/‖∇f_t‖)₊ of the step only; it has no theorem here. The constraint plays no part: for constraints and
few changes, `PathBudget` with `block`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, floored, like, namespace, norm
from longterm._validate import Hyper
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import REGRET, NoTheoremError, horizons_of


class MovementBudgetState(NamedTuple):
    """(t, x_t, Σ ‖x_{s+1} − x_s‖ so far)."""

    round: Array
    x: Array
    moved: Array


@dataclass(frozen=True, eq=False)
class MovementBudget(Learner[MovementBudgetState]):
    """Gradient descent with the constant step `eta`, which never moves by more than its budget.

    Parameters
    ----------
    enclosing_set : Set
        B.
    eta : float or array
        The step.
    price : float
        β, of a unit of movement, for `bound`.
    path : float
        P, of the comparator, for `bound`.
    dead_zone : float or array
        ν: gradients no longer than this do not move it, longer ones count that much less.

    Examples
    --------
    >>> from longterm import run
    >>> from longterm.learners import MovementBudget
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import NoisyTargets
    >>> problem = two_dimensional()
    >>> learner = MovementBudget.for_problem(problem, horizon=500, movement=2.0)
    >>> bool(run(problem, learner, NoisyTargets([0.3, 0.2], 0.2), 500).state.moved <= 2.0)
    True
    """

    enclosing_set: Set
    eta: Hyper
    price: float = 0.0
    path: float = 0.0
    dead_zone: Hyper = 0.0

    needs: ClassVar[frozenset[Need]] = frozenset({Need.HORIZON})
    name: ClassVar[str] = "movement_budget"
    title: ClassVar[str] = "Movement budget"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(√T + T/S), movement within S"}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ()

    def __post_init__(self) -> None:
        validate.remember(
            self,
            eta=validate.positive("eta", self.eta),
            price=validate.non_negative_scalar("price", self.price),
            path=validate.non_negative_scalar("path", self.path),
            dead_zone=validate.non_negative("dead_zone", self.dead_zone),
        )

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        horizon: int,
        movement: float | None = None,
        price: float = 0.0,
        path: float = 0.0,
        dead_zone: Hyper = 0.0,
    ) -> MovementBudget:
        """Gradient descent on the losses alone that moves by no more than a budget, or at a price.

        Parameters
        ----------
        problem : Problem
            Gives B, Δ and G_f.
        horizon : int
            T.
        movement : float, optional
            S: Σ ‖x_{t+1} − x_t‖ stays within it; left out, there is no budget.
        price : float
            β, what a unit of movement costs.
        path : float
            P, how far the comparator moves.
        dead_zone : float or array
            ν, in units of the gradient.
        """
        c, T, beta = problem.constants, validate.count("horizon", horizon), validate.non_negative_scalar("price", price)
        G = c.loss_gradient_bound
        far = np.sqrt(c.diameter**2 + 2 * c.diameter * validate.non_negative_scalar("path", path))
        eta = far / np.sqrt(T * (G**2 + 2 * beta * G))
        if movement is not None:
            eta = min(eta, validate.positive_scalar("movement", movement) / (G * T))
        return cls(problem.enclosing_set, float(eta), beta, path, dead_zone)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """Regret and β times the movement together."""
        if np.any(np.asarray(self.dead_zone) > 0):
            raise NoTheoremError("a dead zone has none here", "Leave it at 0")
        T, c, eta = horizons_of(rounds, self.batch_shape), problem.constants, np.asarray(self.eta)
        G = c.loss_gradient_bound
        start = c.diameter**2 / 2 + c.diameter * self.path
        return {REGRET: start / eta + eta * G**2 * T / 2 + self.price * eta * G * T}

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> MovementBudgetState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        return MovementBudgetState(xp.asarray(1, dtype=xp.int64), x, xp.zeros(x.shape[:-1], dtype=x.dtype))

    def ask(self, state: MovementBudgetState) -> Array:
        return state.x

    def update(self, state: MovementBudgetState, feedback: Feedback) -> MovementBudgetState:
        x, xp, gradient = state.x, namespace(state.x), feedback.loss_gradient
        kept = xp.maximum(1 - like(self.dead_zone, x) / floored(norm(gradient)), 0.0)
        following = self.enclosing_set.project(x - column(like(self.eta, x) * kept) * gradient)
        return MovementBudgetState(state.round + 1, following, state.moved + norm(following - x))

    def report(self, state: MovementBudgetState) -> dict[str, Array]:
        return {"moved": state.moved}
