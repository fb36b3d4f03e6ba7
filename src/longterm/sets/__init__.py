"""Enclosing sets B: where the learner projects in every round."""

from longterm.sets.ball import Ball
from longterm.sets.base import Set
from longterm.sets.polyhedra import Box, Product, RowStochastic, Simplex

__all__ = ["Ball", "Box", "Product", "RowStochastic", "Set", "Simplex"]
