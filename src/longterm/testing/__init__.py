"""Tools to test learners: checks that every learner passes, and a search for worst-case sequences."""

from longterm.testing.checks import (
    CHECKS,
    Check,
    assert_same_trace,
    batch_row_equals_single,
    check_learner,
    engines_agree,
    is_pure,
    keeps_dtype,
    refuses_bad_feedback,
    split_equals_whole,
    strict_arrays_agree,
)
from longterm.testing.worst_case import WorstCase, find_worst_cases

__all__ = [
    "CHECKS",
    "Check",
    "WorstCase",
    "assert_same_trace",
    "batch_row_equals_single",
    "check_learner",
    "engines_agree",
    "find_worst_cases",
    "is_pure",
    "keeps_dtype",
    "refuses_bad_feedback",
    "split_equals_whole",
    "strict_arrays_agree",
]
