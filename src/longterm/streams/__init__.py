"""Streams: the parameters of f_1 … f_T, in blocks of arrays."""

from longterm.streams.base import Block, ChunkedStream, FromIterable, Replay, ResampledRows, Seeds, Stream, Windows
from longterm.streams.costs import (
    DriftingCosts,
    EdgeLatencies,
    JobsAndPrices,
    LateReversal,
    RandomCosts,
    SwitchingConstraints,
    SwitchingCosts,
    TurningHalfPlane,
    TurningTargets,
)
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
