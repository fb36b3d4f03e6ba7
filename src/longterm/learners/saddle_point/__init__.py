"""Descent in x and ascent in λ on a Lagrangian: A-OGD and its relatives."""
