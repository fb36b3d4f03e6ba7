"""Learners against comparators that move."""
