"""Streams: the parameters of f_1 … f_T, in blocks of arrays."""

from longterm.problems.streams.base import Stream
from longterm.problems.streams.costs import RandomCosts
from longterm.problems.streams.iterable import FromIterable
from longterm.problems.streams.points import NoisyTargets, RandomPermutations
from longterm.problems.streams.replay import Replay, ResampledRows, Windows

__all__ = [
    "FromIterable",
    "NoisyTargets",
    "RandomCosts",
    "RandomPermutations",
    "Replay",
    "ResampledRows",
    "Stream",
    "Windows",
]
