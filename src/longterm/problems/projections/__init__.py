"""Exact Euclidean projections onto constraint sets, batched over leading axes.

The sets of `longterm.problems.sets` have a `project` method. This subpackage has the harder projections, for learners
that are feasible in every round. `Constraint.projection` returns the one that belongs to a constraint.
"""
