"""Routing in a network with changing latencies and long-term edge capacities."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.problems.constraints import Affine
from longterm.problems.losses import Linear
from longterm.problems.problem import Problem
from longterm.problems.sets import Product, Simplex

Edge = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Network:
    """A directed graph with edge capacities and demands between pairs of nodes.

    `paths` are all simple paths of every demand. `incidence` (edges, paths) is 1 where a path uses an edge.

    Parameters
    ----------
    capacities : Mapping[Edge, float]
        The capacity of every edge.
    demands : Mapping[Edge, float]
        The flow required from one node to another.

    Examples
    --------
    >>> from longterm.problems.named.network import Network
    >>> net = Network({(0, 1): 1.0, (1, 2): 1.0, (0, 2): 0.5}, demands={(0, 2): 1.0})
    >>> net.paths
    (((0, 1), (1, 2)), ((0, 2),))
    >>> net.incidence
    array([[1., 0.],
           [1., 0.],
           [0., 1.]])
    """

    capacities: Mapping[Edge, float]
    demands: Mapping[Edge, float]
    paths: tuple[tuple[Edge, ...], ...] = field(init=False)
    counts: tuple[int, ...] = field(init=False)
    """The number of paths of each demand, in order."""
    incidence: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for edge, amount in itertools.chain(self.capacities.items(), self.demands.items()):
            validate.positive_scalar(f"capacities or demands of {edge}", amount)
        by_demand = [tuple(self._simple_paths(source, target, (source,))) for source, target in self.demands]
        for demand, found in zip(self.demands, by_demand, strict=True):
            if not found:
                raise InputError("demands", f"no path goes from {demand[0]} to {demand[1]}", "Add edges")
        paths = tuple(itertools.chain(*by_demand))
        incidence = np.array([[float(edge in path) for path in paths] for edge in self.capacities])
        counts = tuple(len(found) for found in by_demand)
        validate.set_frozen(self, paths=paths, counts=counts, incidence=validate.frozen(incidence))

    def _simple_paths(self, node: int, target: int, visited: tuple[int, ...]) -> list[tuple[Edge, ...]]:
        if node == target:
            return [()]
        return [
            ((node, after), *rest)
            for start, after in self.capacities
            if start == node and after not in visited
            for rest in self._simple_paths(after, target, (*visited, after))
        ]


SMALL_NETWORK = Network(
    {
        (0, 1): 0.7,
        (0, 2): 0.7,
        (1, 2): 0.4,
        (1, 3): 0.5,
        (1, 4): 0.5,
        (2, 3): 0.5,
        (2, 4): 0.5,
        (3, 5): 0.7,
        (4, 5): 0.7,
    },
    demands={(0, 5): 1.0, (1, 4): 0.4},
)
"""Six nodes, nine edges and two demands that share edges, with six and two paths."""


def routing(network: Network = SMALL_NETWORK) -> Problem:
    """Return f_t(x) = ⟨latencies of the paths in round t, x⟩, x the flow on every path, with loads ≤ capacities.

    The flow of a demand is split over its simple paths, so B is a product of simplices. Latencies of edges are in
    [0, 1] and add up along a path (`streams.resources.EdgeLatencies`). The fastest paths lack the capacity for all
    flow. The best split in hindsight is a linear program. Related: online shortest paths (Takimoto and Warmuth 2003).

    With P the incidence matrix, G = max(‖Pᵀ1‖, longest row of P), and D and Δ are exact on the product. F is the
    largest Σ_e [Σ_k amount_k (P_{e,i_k} − P_{e,j_k})]₊ over pairs i_k, j_k of paths of the demands k.

    Parameters
    ----------
    network : Network
        The edges, capacities and demands.

    Examples
    --------
    >>> from longterm.problems.named.network import routing
    >>> problem = routing()
    >>> c = problem.constants
    >>> problem.dimension, problem.constraint.count, round(c.loss_gradient_bound, 4), round(c.loss_range, 2)
    (8, 9, 8.544, 4.8)
    """
    P = network.incidence
    amounts = list(network.demands.values())
    flows = Product([Simplex(count, amount) for count, amount in zip(network.counts, amounts, strict=True)])
    loss = Linear(P.shape[1], float(np.linalg.norm(P.sum(axis=0))))
    constraint = Affine(P, np.array(list(network.capacities.values())))
    name = f"routing over {len(network.capacities)} edges"
    return Problem(flows, loss, constraint, name=name, declared={"loss_range": _largest_difference(network)})


def _largest_difference(network: Network) -> float:
    ends = np.cumsum(network.counts)
    of_demand = []
    for end, count, amount in zip(ends, network.counts, network.demands.values(), strict=True):
        paths = network.incidence[:, end - count : end].T
        of_demand.append([amount * (one - other) for one in paths for other in paths])
    return float(max(np.maximum(sum(choice), 0.0).sum() for choice in itertools.product(*of_demand)))
