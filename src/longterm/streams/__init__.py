"""Streams: the parameters of f_1 … f_T, in blocks of arrays."""

from longterm.streams.adversary import LateReversal, RandomCosts, SwitchingCosts
from longterm.streams.base import Block, ChunkedStream, Seeds, Stream
from longterm.streams.drifting_costs import DriftingCosts
from longterm.streams.edge_latencies import EdgeLatencies
from longterm.streams.given import FromIterable, Replay
from longterm.streams.jobs_and_prices import JobsAndPrices
from longterm.streams.noisy_permutations import NoisyPermutations
from longterm.streams.noisy_targets import NoisyTargets
from longterm.streams.pairwise_signs import PairwiseSigns
from longterm.streams.permutations import RandomPermutations
from longterm.streams.rows import ResampledRows
from longterm.streams.switching_constraints import SwitchingConstraints
from longterm.streams.windows import Windows

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
    "Windows",
]
