"""The networked saddle point (Koppel, Jakubiec, Ribeiro 2014): agents on a graph with messages between neighbours.

Agent i plays x_i and sees its own f_{i,t}. Every edge e = (i, j) has a multiplier λ_e for x_i = x_j. With
L_t(x, λ) = Σ_i f_{i,t}(x_i) + Σ_{e=(i,j)} ⟨λ_e, x_i − x_j⟩, both steps from (x_t, λ_t) are

    x_i ← Π( x_i − η ( ∇f_{i,t}(x_i) + Σ_{e=(i,j)} λ_e − Σ_{e=(j,i)} λ_e ) )        x_1 = the sets' centre
    λ_e ← Π_Λ( λ_e + μ ( x_i − x_j ) ),   Λ the ball of radius ℓ                    λ_1 = 0

Steps: let C x be the differences over all E edges, σ and σ₂ the largest and the smallest non-zero singular value of C,
G_f bound the joined gradient of all agents, and L = ℓ√E. Then

    η = r / ((G_f + σL) √T),   μ = L / (σr √T),   ℓ = 2w,   w = G_f min( 1/σ₂, √(n − 1) ).

Needs: a horizon, and a `Consensus` constraint on a product of n copies of one set.
Guarantees: `theorem`, O(√T) regret: Σ_t Σ_i f_{i,t}(x_{i,t}) − f_{i,t}(u) for every common u of the agents' set.
If the losses are drawn independently from one law, the agents' mean decisions agree: `mean_disagreement`. Not promised:
agreement in single rounds, or against an adversary. Proof, and our reading of the rule: `docs/proofs/derivations.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, like, namespace
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.needs import Need
from longterm.learners.interface.states import DualState
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.constraints import Consensus
from longterm.problems.sets import Ball, Product
from longterm.theory.bounds import LONG_TERM, REGRET, BoundValues, NoTheoremError, Rounds, horizons_of


@dataclass(frozen=True, eq=False)
class NetworkedSaddlePoint(Learner[DualState]):
    """Let agents of a network agree on one decision while each sees its own losses.

    Every agent takes gradient steps, and multipliers on the edges pull neighbours together.

    Parameters
    ----------
    enclosing_set : Product
        The product of the agents' sets, one copy for each.
    consensus : Consensus
        The constraint that neighbours agree, with the graph.
    multiplier_set : Ball
        The ball that the multiplier of an edge stays in (Λ).
    eta, mu : float or array
        The step sizes of the decisions and of the multipliers.
    made_for : Constants, optional
        The problem's constants that the steps were made for.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> problem = lt.problems.consensus(3, [(0, 1), (1, 2)], lt.problems.sets.Box.cube(1, -1.0, 1.0))
    >>> learner = lt.learners.NetworkedSaddlePoint.for_problem(problem, horizon=20_000)
    >>> stream = streams.NoisyTargets(np.array([-0.5, 0.2, 0.9]), spread=0.1)
    >>> trace = lt.run(problem, learner, stream, rounds=20_000)
    >>> trace.state.x.round(1)  # the mean of all targets is 0.2
    array([0.2, 0.2, 0.2])
    """

    enclosing_set: Product
    consensus: Consensus
    multiplier_set: Ball
    eta: Hyper
    mu: Hyper
    made_for: Constants | None = None

    needs = frozenset({Need.FIXED_CONSTRAINT, Need.AFFINE_CONSTRAINT, Need.HORIZON})
    name = "networked_saddle_point"
    title = "Networked saddle point"
    promises = {REGRET: "O(√T)", LONG_TERM: "O(T); agents' means agree at O(1/√T), i.i.d. losses"}

    def __post_init__(self) -> None:
        factors = self.enclosing_set.factors if isinstance(self.enclosing_set, Product) else ()
        n, k = self.consensus.agents, self.consensus.size
        if len(factors) != n or any(f is not factors[0] for f in factors) or factors[0].dimension != k:
            what = f"is not a product of {n} copies of one set of dimension {k}"
            remedy = "All agents need the same set: Product([each] * agents), or longterm.consensus"
            raise InputError("enclosing_set", what, remedy)
        if self.multiplier_set.dimension != k or np.any(self.multiplier_set.centre):
            what = "is not a ball about 0 with the size of one agent"
            raise InputError("multiplier_set", what, f"Give Ball({k}, radius)")
        validate.validate_fields(self, validate.positive, "eta", "mu")

    @classmethod
    def for_problem(cls, problem: Problem, *, horizon: int) -> NetworkedSaddlePoint:
        """Make the saddle-point method of agents on a graph, for a known horizon.

        The problem has a `Consensus` constraint on a product of copies of one set.
        """
        T, c, consensus = validate.count("horizon", horizon), problem.constants, problem.constraint
        if not isinstance(consensus, Consensus) or not isinstance(problem.enclosing_set, Product):
            what = f"{problem.name!r} is not a consensus problem"
            raise InputError("problem", what, "Build it with longterm.consensus")
        largest, _ = consensus.singular_values
        reach = 2 * holding_multiplier(consensus, c.loss_gradient_bound)
        L = reach * np.sqrt(len(consensus.edges))
        eta = c.radius / ((c.loss_gradient_bound + largest * L) * np.sqrt(T))
        return cls(
            problem.enclosing_set,
            consensus,
            Ball(consensus.size, reach),
            eta=float(eta),
            mu=float(L / (largest * c.radius * np.sqrt(T))),
            made_for=c,
        )

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        ours, theirs = self.consensus.as_affine(), problem.constraint.as_affine()
        if theirs is None or not np.array_equal(ours.matrix, theirs.matrix) or np.any(theirs.limit):
            what = f"was made for the edges {list(self.consensus.edges)}, but {problem.name!r} has other constraints"
            remedy = "Build it from the problem: NetworkedSaddlePoint.for_problem(problem, horizon=rounds)"
            raise InputError("learner", what, remedy)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds against any common point u of the agents' set, with σ and L = ℓ√E as above.

            Σ_t Σ_i f_{i,t}(x_{i,t}) − f_{i,t}(u) + ℓ Σ_e ‖Σ_t (x_{i,t} − x_{j,t})‖ ≤ P
            P = r²/(2η) + ηT (G_f + σL)²/2 + L²/(2μ) + μT σ²r²/2

        The regret is at most P − L²/(2μ), and max_j Σ_t g_j(x_t) at most (P + FT)/ℓ, which does not vanish on average.
        """
        P, dual, T = self._terms(problem, rounds)
        return {REGRET: P - dual, LONG_TERM: (P + problem.constants.loss_range * T) / self.multiplier_set.radius}

    def mean_disagreement(self, problem: Problem, rounds: ArrayLike) -> FloatArray:
        """Return P/((ℓ − w) T) ≥ E Σ_e ‖x̄_i − x̄_j‖, for the means x̄ of T rounds with independent losses of one law."""
        P, _, T = self._terms(problem, validate.horizons("rounds", rounds))
        holding = holding_multiplier(self.consensus, problem.constants.loss_gradient_bound)
        spare = self.multiplier_set.radius - holding
        if spare <= 0:
            raise NoTheoremError(
                "its multipliers are too small to enforce agreement",
                f"Use a larger radius of multiplier_set, above {holding:g}",
            )
        return P / (spare * T)

    def _terms(self, problem: Problem, rounds: Rounds) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return P, its part L²/(2μ), and T."""
        T, c = horizons_of(rounds, self.batch_shape), problem.constants
        eta, mu = np.asarray(self.eta), np.asarray(self.mu)
        largest, _ = self.consensus.singular_values
        L = self.multiplier_set.radius * np.sqrt(len(self.consensus.edges))
        dual = np.asarray(L**2 / (2 * mu))
        primal = c.radius**2 / (2 * eta) + eta * T * (c.loss_gradient_bound + largest * L) ** 2 / 2
        return primal + dual + mu * T * (largest * c.radius) ** 2 / 2, dual, T

    def first_state(self, t: Array, x: Array) -> DualState:
        multiplier = namespace(x).zeros((*x.shape[:-1], self.consensus.count // 2), dtype=x.dtype)
        return DualState(t, x, multiplier)

    def update(self, state: DualState, feedback: Feedback) -> DualState:
        xp = namespace(state.x)
        eta, mu = as_column(like(np.asarray(self.eta), state.x)), as_column(like(np.asarray(self.mu), state.x))
        descent = feedback.loss_gradient + self.consensus.adjoint(state.multiplier)
        raised = state.multiplier + mu * self.consensus.differences(state.x)
        by_edge = xp.reshape(raised, (*raised.shape[:-1], len(self.consensus.edges), self.consensus.size))
        return DualState(
            round=state.round + 1,
            x=self.enclosing_set.project(state.x - eta * descent),
            multiplier=xp.reshape(self.multiplier_set.project(by_edge), raised.shape),
        )

    def report(self, state: DualState) -> dict[str, Array]:
        return {"multiplier": state.multiplier, "eta": like(self.eta, state.x), "mu": like(self.mu, state.x)}


def holding_multiplier(consensus: Consensus, gradient_bound: float) -> float:
    """Return w = G_f min(1/σ₂, √(n − 1)): Σ_i F_i(x_i) ≥ min_u Σ_i F_i(u) − w Σ_e ‖x_i − x_j‖ for convex F_i."""
    _, smallest = consensus.singular_values
    return gradient_bound * min(1 / smallest, float(np.sqrt(consensus.agents - 1)))
