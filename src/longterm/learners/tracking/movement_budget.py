"""A limit on movement, or a price of it: gradient descent with one constant step on the losses alone (ours).

    x_{t+1} = Π_B( x_t − η ∇f_t(x_t) ),     η = min( Δ/√(T(G_f² + 2βG_f)), S/(G_fT) )

A step moves by at most ηG_f, so Σ ‖x_{t+1} − x_t‖ ≤ S always holds. With a price β of movement, against u_t in B with
path P:

    Σ f_t(x_t) − f_t(u_t) + β Σ ‖x_{t+1} − x_t‖ ≤ (Δ²/2 + ΔP)/η + ηG_f²T/2 + βηG_fT

Proof: `docs/proofs/drift.md`.
Not promised: anything about the constraint, which is not used. For constraints, see `PathBudget` with `block`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, as_column, like, namespace, norm
from longterm._base.validate import Hyper
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.needs import Need
from longterm.problems import Problem
from longterm.problems.sets import Set
from longterm.theory.bounds import REGRET, BoundValues, Rounds, horizons_of


class MovementBudgetState(NamedTuple):
    """The state (t, x_t, Σ ‖x_{s+1} − x_s‖ so far)."""

    round: Array
    x: Array
    moved: Array


@dataclass(frozen=True, eq=False)
class MovementBudget(Learner[MovementBudgetState]):
    """Gradient descent with a constant step that never moves by more than its budget.

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

    Examples
    --------
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> problem = lt.problems.two_dimensional()
    >>> learner = lt.learners.MovementBudget.for_problem(problem, horizon=500, movement=2.0)
    >>> bool(lt.run(problem, learner, streams.NoisyTargets([0.3, 0.2], 0.2), 500).state.moved <= 2.0)
    True
    """

    enclosing_set: Set
    eta: Hyper
    price: float = 0.0
    path: float = 0.0

    needs = frozenset({Need.HORIZON})
    name = "movement_budget"
    title = "Movement budget"
    promises = {REGRET: "O(√T + T/S), movement within S"}
    variants = ()

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "eta")
        validate.validate_fields(self, validate.non_negative_scalar, "price", "path")

    @classmethod
    def for_problem(
        cls, problem: Problem, *, horizon: int, movement: float | None = None, price: float = 0.0, path: float = 0.0
    ) -> MovementBudget:
        """Descend on the losses alone within a budget of movement, or at a price of it.

        Parameters
        ----------
        movement : float, optional
            S, which Σ ‖x_{t+1} − x_t‖ does not exceed. Left out, there is no budget.
        price : float
            β, the cost of a unit of movement.
        path : float
            P, how far the comparator moves.
        """
        c, T, beta = problem.constants, validate.count("horizon", horizon), validate.non_negative_scalar("price", price)
        G = c.loss_gradient_bound
        reach = np.sqrt(c.diameter**2 + 2 * c.diameter * validate.non_negative_scalar("path", path))
        eta = reach / np.sqrt(T * (G**2 + 2 * beta * G))
        if movement is not None:
            eta = min(eta, validate.positive_scalar("movement", movement) / (G * T))
        return cls(problem.enclosing_set, float(eta), beta, path)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bound on the regret plus β times the movement."""
        T, c, eta = horizons_of(rounds, self.batch_shape), problem.constants, np.asarray(self.eta)
        G = c.loss_gradient_bound
        start = c.diameter**2 / 2 + c.diameter * self.path
        return {REGRET: start / eta + eta * G**2 * T / 2 + self.price * eta * G * T}

    def first_state(self, t: Array, x: Array) -> MovementBudgetState:
        return MovementBudgetState(t, x, namespace(x).zeros(x.shape[:-1], dtype=x.dtype))

    def update(self, state: MovementBudgetState, feedback: Feedback) -> MovementBudgetState:
        step = as_column(like(np.asarray(self.eta), state.x)) * feedback.loss_gradient
        x = self.enclosing_set.project(state.x - step)
        return MovementBudgetState(state.round + 1, x, state.moved + norm(x - state.x))

    def report(self, state: MovementBudgetState) -> dict[str, Array]:
        return {"moved": state.moved}
