"""Enclosing sets B: where the learner projects in every round."""

from longterm.sets.base import Ball, Set
from longterm.sets.polyhedra import Box, Product, RowStochastic, Simplex

__all__ = ["Ball", "Box", "Product", "RowStochastic", "Set", "Simplex"]
