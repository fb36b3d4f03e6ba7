"""Learners that restart another one."""
