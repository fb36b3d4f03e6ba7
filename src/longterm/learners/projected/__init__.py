"""Learners that are feasible in every round."""
