"""Enclosing sets B, onto which learners project in every round."""

from longterm.problems.sets.ball import Ball
from longterm.problems.sets.base import Set
from longterm.problems.sets.box import Box
from longterm.problems.sets.product import Product
from longterm.problems.sets.simplex import RowStochastic, Simplex

__all__ = ["Ball", "Box", "Product", "RowStochastic", "Set", "Simplex"]
