"""Whether what a snapshot says could be a live learner's memory: looked at before it is taken on.

A checksum only says that a file is as somebody wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from longterm._arrays import Array, length
from longterm.learners.base import Learner

COUNTERS = ("told", "skipped", "expired", "losses_told", "largest_delay")
LARGEST_COUNT = 2**53
FAR = 10.0
"""Diameters. Decisions are in the set but for rounding."""


def check_counters(
    counters: Mapping[str, Any], arrays: Mapping[str, Array], x: Array, sums: Mapping[str, Array]
) -> None:
    """ValueError, in words, unless counters, sums and tokens fit together.

    Parameters
    ----------
    counters : mapping
        The counters of a snapshot.
    arrays : mapping of str to array
        Its arrays.
    x : array
        A decision, for its shape and dtype.
    sums : mapping of str to array
        Sums over no rounds, for their shapes and dtypes.
    """
    _require(isinstance(counters, Mapping), "there are no counters")
    for name in (*COUNTERS, "max_in_flight", "expire_after", "asked"):
        count = counters.get(name)
        _require(type(count) is int and 0 <= count <= LARGEST_COUNT, f"{name} is {count!r:.40}")
    asked, told, expire_after = counters["asked"], counters["told"], counters["expire_after"]
    _require(counters["max_in_flight"] >= 1, "max_in_flight is 0")
    _require(counters["losses_told"] <= told, "there are losses of more rounds than were told")
    _require(counters["largest_delay"] <= min(asked, expire_after), "a delay is longer than could be")
    for name, like in sums.items():
        value: Any = arrays.get(f"sums.{name}")
        _require(value is not None and _kind(value) == _kind(like), f"the sum {name} has the wrong shape or dtype")
        _require(not np.isnan(value).any(), f"the sum {name} is not a number")
    number, closed = _numbers(arrays, "open.number"), _numbers(arrays, "closed.number")
    decisions: Any = arrays.get("open.x")
    how: Any = arrays.get("closed.how")
    _require(counters["skipped"] + told + counters["expired"] + len(number) == asked, "the rounds do not add up")
    _require(len(number) <= counters["max_in_flight"], "more rounds are open than are allowed")
    _require(bool((number[1:] > number[:-1]).all()), "open rounds are not in order")
    for some in (number, closed):
        young = (some >= 1) & (some <= asked) & (asked - some <= expire_after)
        _require(bool(young.all()), "a round is too old, or was never asked for")
    wanted = (len(number), *(np.shape(x) if len(number) else (0,)))
    fits = isinstance(decisions, np.ndarray) and decisions.shape == wanted
    _require(
        fits and (len(number) == 0 or decisions.dtype == x.dtype), "the open decisions have another shape or dtype"
    )
    _require(bool(np.isfinite(decisions).all()), "an open decision is not finite")
    fits = isinstance(how, np.ndarray) and how.dtype == np.uint8 and how.shape == closed.shape
    _require(fits and bool((how <= 1).all()), "it is not said how rounds were closed")
    both = np.concatenate([number, closed])
    _require(len(np.unique(both)) == len(both), "a round is there twice")
    _require(len(closed) <= told + counters["skipped"], "more rounds are closed than were told or skipped")


def require_near(learner: Learner[Any], *decisions: Array) -> None:
    """ValueError if a decision is nowhere near the learner's set: what is played there would overflow."""
    B = learner.enclosing_set
    for x in decisions:
        with np.errstate(all="ignore"):
            near = length(np.asarray(x) - B.centre) <= FAR * B.diameter
        _require(bool(np.all(near)), "a decision is far outside of the learner's set")


def _numbers(arrays: Mapping[str, Array], name: str) -> Array:
    numbers = arrays.get(name)
    _require(isinstance(numbers, np.ndarray) and numbers.ndim == 1 and numbers.dtype == np.int64, f"{name} is missing")
    return numbers


def _kind(value: Array) -> tuple[Any, Any]:
    return np.shape(value), np.asarray(value).dtype


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
