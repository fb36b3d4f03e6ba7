"""Consensus of agents on a graph: x_i = x_j for every edge, written as pairs of affine inequalities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, dot, like, namespace
from longterm._base.registered import registered
from longterm.errors import InputError
from longterm.problems.constraints.affine import Affine
from longterm.problems.constraints.base import Constraint
from longterm.problems.projections.base import Projection
from longterm.problems.sets import Product, Set


@dataclass(frozen=True, eq=False)
class Consensus(Constraint):
    """Make the decisions of neighbouring agents in a network agree.

    The decision x = (x_1, …, x_n) has k coordinates for each agent. Let C x be the differences x_i − x_j over the edges
    (i, j). The constraints are C x ≤ 0, then −C x ≤ 0.

    Parameters
    ----------
    agents, size : int
        The number of agents (n), and the number of coordinates of each (k).
    edges : sequence of pairs of int
        The pairs (i, j) of neighbours. Agents are numbered from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.constraints import Consensus
    >>> g = Consensus(agents=3, size=1, edges=[(0, 1), (1, 2)])
    >>> g.values(np.array([1.0, 4.0, 2.0]))
    array([-3.,  2.,  3., -2.])
    """

    agents: int
    size: int
    edges: Sequence[tuple[int, int]]
    _incidence: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n, k = validate.dimension("agents", self.agents), validate.dimension("size", self.size)
        edges = tuple((int(i), int(j)) for i, j in self.edges)
        incidence = np.zeros((len(edges), n))
        for row, (i, j) in zip(incidence, edges, strict=True):
            if not (0 <= i < n and 0 <= j < n and i != j):
                raise InputError("edges", f"({i}, {j}) does not join two of {n} agents", "Count the agents from 0")
            row[i], row[j] = 1.0, -1.0
        if n < 2 or np.linalg.matrix_rank(incidence) < n - 1:
            what = f"{list(edges)} do not connect {n} agents"
            raise InputError("edges", what, "Give at least two agents and a connected graph")
        validate.set_frozen(
            self, edges=edges, dimension=n * k, count=2 * len(edges) * k, _incidence=validate.frozen(incidence)
        )

    def differences(self, x: Array) -> Array:
        """Return C x, the differences x_i − x_j of all edges, shape (..., edges · k)."""
        xp = namespace(x)
        by_agent = xp.reshape(x, (*x.shape[:-1], self.agents, self.size))
        return xp.reshape(like(self._incidence, x) @ by_agent, (*x.shape[:-1], self.count // 2))

    def adjoint(self, multiplier: Array) -> Array:
        """Return Cᵀλ, the signed sum of the multipliers of each agent's edges, shape (..., n · k)."""
        xp = namespace(multiplier)
        by_edge = xp.reshape(multiplier, (*multiplier.shape[:-1], len(self.edges), self.size))
        at_agents = like(self._incidence, multiplier).T @ by_edge
        return xp.reshape(at_agents, (*multiplier.shape[:-1], self.dimension))

    @property
    def singular_values(self) -> tuple[float, float]:
        """The largest and the smallest non-zero singular value of C."""
        squares = np.linalg.eigvalsh(self._incidence.T @ self._incidence)
        return float(np.sqrt(squares[-1])), float(np.sqrt(squares[1]))

    def values(self, x: Array, *parameters: Array) -> Array:
        differences = self.differences(x)
        return namespace(x).concat([differences, -differences], axis=-1)

    def pushforward(self, x: Array, direction: Array, *parameters: Array) -> Array:
        return self.values(direction)

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        half = self.count // 2
        return self.adjoint(weights[..., :half] - weights[..., half:])

    def squared_excess(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        # Of each pair ±(C x)_e the positive one is violated: v₊ − v₋ = (C x)_e and v₊² + v₋² = (C x)_e².
        differences = self.differences(x)
        return dot(differences, differences), self.adjoint(differences)

    @property
    def is_affine(self) -> bool:
        return True

    def as_affine(self) -> Affine:
        matrix = np.kron(self._incidence, np.eye(self.size))
        return Affine(np.concatenate([matrix, -matrix]), np.zeros(self.count))

    def least_values(self, over: Set) -> FloatArray:
        return self.as_affine().least_values(over)

    def projection(self, over: Set) -> Projection | None:
        """Return the projection. On a product of n equal sets, it moves all agents to the projection of their mean."""
        if isinstance(over, Product) and len(over.factors) == self.agents:
            each = over.factors[0]
            if each.dimension == self.size and all(factor is each for factor in over.factors):
                return partial(_project_mean, each=each, agents=self.agents)
        return super().projection(over)

    def gradient_bound(self, over: Set) -> float:
        return float(np.sqrt(2))

    def value_bound(self, over: Set) -> float:
        return self.as_affine().value_bound(over)


@registered("common_mean")
def _project_mean(x: Array, each: Set, agents: int) -> Array:
    """Move all agents to the projection z of their mean x̄, because Σ_i ‖z − x_i‖² is n ‖z − x̄‖² plus a constant."""
    xp = namespace(x)
    by_agent = xp.reshape(x, (*x.shape[:-1], agents, each.dimension))
    common = each.project(xp.mean(by_agent, axis=-2))
    return xp.reshape(xp.broadcast_to(common[..., None, :], by_agent.shape), x.shape)
