"""Engines: the loop over rounds in NumPy and in JAX, and the trace it records."""
