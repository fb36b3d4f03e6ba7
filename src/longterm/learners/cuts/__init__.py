"""Steps that are cut off at half-spaces of linearised constraints."""
