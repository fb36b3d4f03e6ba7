"""Enclosing sets B, onto which learners project in every round."""

from longterm.sets.ball import Ball
from longterm.sets.base import Set
from longterm.sets.box import Box
from longterm.sets.product import Product
from longterm.sets.simplex import RowStochastic, Simplex

__all__ = ["Ball", "Box", "Product", "RowStochastic", "Set", "Simplex"]
