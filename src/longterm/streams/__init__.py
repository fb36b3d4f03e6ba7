"""Streams: the parameters of f_1 … f_T, in blocks of arrays."""

from longterm.streams.adversary import LateReversal, RandomCosts, SwitchingConstraints, SwitchingCosts
from longterm.streams.base import Block, ChunkedStream, Seeds, Stream
from longterm.streams.costs import DriftingCosts, EdgeLatencies, JobsAndPrices, TurningHalfPlane, TurningTargets
from longterm.streams.given import FromIterable, Replay, ResampledRows, Windows
from longterm.streams.targets import NoisyPermutations, NoisyTargets, PairwiseSigns, RandomPermutations

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
