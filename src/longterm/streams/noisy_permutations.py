"""Permutation matrices read by sensors that are off: neither they nor their mean are doubly stochastic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm.errors import InputError
from longterm.streams.base import CHUNK, Block, ChunkedStream


@dataclass(frozen=True)
class NoisyPermutations(ChunkedStream):
    """Y_t = P_t + E + N_t, size × size matrices, flattened; no entry of E + N_t is above `noise` in size.

    P_t is a hidden permutation matrix with probability `hidden`, else uniformly random. E are the errors of the
    sensors, one for each entry, drawn once (with the hidden permutation) and kept: they do not average out. N_t is
    fresh in every round. Entries of E and of N_t are uniform in ±noise/2.

    >>> from longterm.streams import NoisyPermutations
    >>> NoisyPermutations(2, noise=0.5).draw(seed=0, start=0, stop=2).loss[0].round(2)
    array([[ 0.7 , -0.27, -0.17,  0.93],
           [ 1.06, -0.43, -0.04,  1.37]])
    """

    size: int
    noise: float = 0.5
    hidden: float = 0.5

    def __post_init__(self) -> None:
        hidden = validate.non_negative_scalar("hidden", self.hidden)
        if hidden > 1:
            raise InputError("hidden", f"{self.hidden!r} is no probability", "Give a number from 0 to 1")
        validate.remember(
            self,
            size=validate.dimension("size", self.size),
            noise=validate.non_negative_scalar("noise", self.noise),
            hidden=hidden,
        )

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        # Of each round: whether it is the hidden permutation, the numbers that sort into another, the noise.
        return rng.random((CHUNK, 1 + self.size + self.size**2))

    def expand(self, drawn: NDArray[Any]) -> Block:
        """Without the sensors' errors, and with the identity for the hidden permutation."""
        other = np.argsort(drawn[:, 1 : 1 + self.size], axis=1)
        shown = np.where(drawn[:, :1] < self.hidden, np.arange(self.size), other)
        matrices = (shown[:, :, None] == np.arange(self.size)).reshape(len(drawn), -1)
        return Block((matrices + self.noise * (drawn[:, 1 + self.size :] - 0.5),))

    def draw(self, seed: int, start: int, stop: int) -> Block:
        rng = np.random.default_rng(seed)
        columns, errors = rng.permutation(self.size), self.noise * (rng.random(self.size**2) - 0.5)
        (targets,) = super().draw(seed, start, stop).loss
        matrices = targets.reshape(-1, self.size, self.size)[:, :, columns]
        return Block((matrices.reshape(targets.shape) + errors,))
