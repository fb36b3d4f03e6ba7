"""Learners with forecasts of the next gradient."""
