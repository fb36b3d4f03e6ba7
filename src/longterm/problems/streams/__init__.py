"""Streams: the parameters of f_1 … f_T, in blocks of arrays."""

from longterm.problems.streams.adversarial import LateReversal, RandomCosts, SwitchingConstraints, SwitchingCosts
from longterm.problems.streams.arrays import Replay, ResampledRows, Windows
from longterm.problems.streams.base import Block, ChunkedStream, Seeds, Stream
from longterm.problems.streams.iterable import FromIterable
from longterm.problems.streams.resources import DriftingCosts, EdgeLatencies, JobsAndPrices
from longterm.problems.streams.targets import NoisyPermutations, NoisyTargets, PairwiseSigns, RandomPermutations
from longterm.problems.streams.turning import TurningHalfPlane, TurningTargets

__all__ = [
    "Block",
    "ChunkedStream",
    "DriftingCosts",
    "EdgeLatencies",
    "FromIterable",
    "JobsAndPrices",
    "LateReversal",
    "NoisyPermutations",
    "NoisyTargets",
    "PairwiseSigns",
    "RandomCosts",
    "RandomPermutations",
    "Replay",
    "ResampledRows",
    "Seeds",
    "Stream",
    "SwitchingConstraints",
    "SwitchingCosts",
    "TurningHalfPlane",
    "TurningTargets",
    "Windows",
]
