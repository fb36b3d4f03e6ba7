"""x_i = x_j for the agents at both ends of every edge of a graph, as pairs of affine inequalities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, dot, like, namespace
from longterm.constraints.base import Affine, Constraint
from longterm.errors import InputError
from longterm.projections import Projection
from longterm.sets import Product, Set


@dataclass(frozen=True, eq=False)
class Consensus(Constraint):
    """n agents with k coordinates each, x = (x_1, …, x_n) joined end to end; agents are counted from 0.

    With C x the differences x_i − x_j over the edges (i, j), edge by edge, the constraints are C x ≤ 0, then
    −C x ≤ 0. In a trace the sums per constraint hold Σ_t (x_i − x_j) of every edge, and the largest g_j of a round is
    how far the worst pair of neighbours is apart.

    Parameters
    ----------
    agents, size : int
        n and k.
    edges : sequence of pairs of int
        Of neighbours (i, j).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.constraints import Consensus
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
            raise InputError(
                "edges", f"{list(edges)} do not connect {n} agents", "Give at least two agents and a connected graph"
            )
        validate.set_frozen(
            self, edges=edges, dimension=n * k, count=2 * len(edges) * k, _incidence=validate.frozen(incidence)
        )

    def differences(self, x: Array) -> Array:
        """C x: x_i − x_j for every edge, shape (..., edges · k)."""
        xp = namespace(x)
        by_agent = xp.reshape(x, (*x.shape[:-1], self.agents, self.size))
        return xp.reshape(like(self._incidence, x) @ by_agent, (*x.shape[:-1], self.count // 2))

    def adjoint(self, multiplier: Array) -> Array:
        """Cᵀλ: each agent adds up the multipliers of its edges, − where it is the second end; shape (..., n · k)."""
        xp = namespace(multiplier)
        by_edge = xp.reshape(multiplier, (*multiplier.shape[:-1], len(self.edges), self.size))
        at_agents = like(self._incidence, multiplier).T @ by_edge
        return xp.reshape(at_agents, (*multiplier.shape[:-1], self.dimension))

    @property
    def singular_values(self) -> tuple[float, float]:
        """The largest and the smallest non-zero singular value of C: the smallest says how well the graph mixes."""
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
        # Of each pair ±(C x)_e the positive one is broken: v₊ − v₋ = (C x)_e, and v₊² + v₋² is its square.
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
        """On a product of n times the same set: all agents at the nearest point of it to their mean."""
        if isinstance(over, Product) and len(over.factors) == self.agents:
            each = over.factors[0]
            if each.dimension == self.size and all(factor is each for factor in over.factors):
                return partial(_at_the_mean, each=each, agents=self.agents)
        return super().projection(over)

    def gradient_bound(self, over: Set) -> float:
        return float(np.sqrt(2))

    def value_bound(self, over: Set) -> float:
        return self.as_affine().value_bound(over)


def _at_the_mean(x: Array, each: Set, agents: int) -> Array:
    """Σ_i ‖z − x_i‖² is n ‖z − x̄‖² and a constant, so z is the projection of the mean x̄."""
    xp = namespace(x)
    by_agent = xp.reshape(x, (*x.shape[:-1], agents, each.dimension))
    common = each.project(xp.mean(by_agent, axis=-2))
    return xp.reshape(xp.broadcast_to(common[..., None, :], by_agent.shape), x.shape)
