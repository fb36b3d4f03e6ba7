"""Exact Euclidean projections onto constraint sets, batched over leading axes.

The sets of `longterm.problems.sets` have a `project` method. This subpackage has the harder projections, for learners
that are feasible in every round. `Constraint.projection` returns the one that belongs to a constraint.
"""

from longterm.problems.projections.base import Projection
from longterm.problems.projections.birkhoff import project_onto_doubly_stochastic
from longterm.problems.projections.correlation import project_onto_correlation
from longterm.problems.projections.elastic_net import project_onto_elastic_net
from longterm.problems.projections.polyhedron import Polyhedron
from longterm.problems.projections.psd import project_onto_psd_in_ball

__all__ = [
    "Polyhedron",
    "Projection",
    "project_onto_correlation",
    "project_onto_doubly_stochastic",
    "project_onto_elastic_net",
    "project_onto_psd_in_ball",
]
