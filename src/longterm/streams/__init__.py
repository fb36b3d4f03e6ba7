"""Streams: the parameters of f_1 … f_T, in blocks of arrays."""

from longterm.streams.adversary import LateReversal, RandomCosts, SwitchingCosts
from longterm.streams.base import Block, ChunkedStream, Seeds, Stream
from longterm.streams.given import FromIterable, Replay
from longterm.streams.noisy_targets import NoisyTargets
from longterm.streams.pairwise_signs import PairwiseSigns
from longterm.streams.permutations import RandomPermutations
from longterm.streams.rows import ResampledRows

__all__ = [
    "Block",
    "ChunkedStream",
    "FromIterable",
    "LateReversal",
    "NoisyTargets",
    "PairwiseSigns",
    "RandomCosts",
    "RandomPermutations",
    "Replay",
    "ResampledRows",
    "Seeds",
    "Stream",
    "SwitchingCosts",
]
