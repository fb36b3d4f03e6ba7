"""Agents on a graph who see different targets and want to agree on one point."""

from __future__ import annotations

from collections.abc import Sequence

from longterm import _validate as validate
from longterm.constraints import Consensus
from longterm.losses import SquaredDistance
from longterm.problems.problem import Problem
from longterm.sets import Product, Set


def consensus(agents: int, edges: Sequence[tuple[int, int]], each: Set) -> Problem:
    """Agent i plays x_i in the set `each` and pays ½‖x_i − y_{i,t}‖²; x_i = x_j along every edge (i, j).

    A decision holds all agents, one after another, and so does a target (targets lie in the set too: `NoisyTargets`
    makes such a stream). In hindsight the best common point is the mean of all targets of all agents.

    >>> from longterm.problems import consensus
    >>> from longterm.sets import Box
    >>> ring = consensus(4, [(0, 1), (1, 2), (2, 3), (3, 0)], Box.cube(1, -1.0, 1.0))
    >>> ring.dimension, ring.constraint.count, ring.constants.constraint_bound
    (4, 8, 2.0)
    """
    n = validate.dimension("agents", agents)
    return Problem(
        Product([each] * n),
        SquaredDistance(n * each.dimension),
        Consensus(n, each.dimension, edges),
        name=f"consensus of {n} agents",
    )
