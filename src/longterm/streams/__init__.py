"""Streams: the parameters of f_1 … f_T, in blocks of arrays."""

from longterm.streams.adversarial import LateReversal, RandomCosts, SwitchingConstraints, SwitchingCosts
from longterm.streams.arrays import Replay, ResampledRows, Windows
from longterm.streams.base import Block, ChunkedStream, Seeds, Stream
from longterm.streams.iterable import FromIterable
from longterm.streams.resources import DriftingCosts, EdgeLatencies, JobsAndPrices
from longterm.streams.targets import NoisyPermutations, NoisyTargets, PairwiseSigns, RandomPermutations
from longterm.streams.turning import TurningHalfPlane, TurningTargets

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
