"""Linear losses that an adversary fixed beforehand, to hurt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm.streams.base import CHUNK, Block, ChunkedStream, Stream


@dataclass(frozen=True)
class RandomCosts(ChunkedStream):
    """Costs of length `norm` in directions drawn uniformly: no decision is better than another."""

    dimension: int
    norm: float = 1.0

    def __post_init__(self) -> None:
        _checked(self)

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        return rng.standard_normal((CHUNK, self.dimension))

    def expand(self, drawn: NDArray[Any]) -> Block:
        return Block((self.norm * drawn / np.linalg.norm(drawn, axis=1, keepdims=True),))


@dataclass(frozen=True)
class SwitchingCosts(Stream):
    """One random direction, with a sign that flips in rounds 2, 4, 8, 16, …

    Each phase lasts as long as all before it, so the learner keeps having to cross the set, with
    ever smaller steps.
    """

    dimension: int
    norm: float = 1.0

    def __post_init__(self) -> None:
        _checked(self)

    def draw(self, seed: int, start: int, stop: int) -> Block:
        direction = np.random.default_rng(seed).standard_normal(self.dimension)
        phase = np.frexp(np.arange(start + 1, stop + 1))[1]
        signs = np.where(phase % 2 == 0, 1.0, -1.0)
        return Block((signs[:, None] * (self.norm / np.linalg.norm(direction)) * direction,))


@dataclass(frozen=True)
class LateReversal(Stream):
    """−G in round 1, nothing for long, then +G in the last ⌈2 T^β⌉ + 2 rounds: one dimension.

    It breaks the regret bound that Theorem 1 prints, for β > ½ (see `longterm.problems.late_reversal`).
    """

    rounds: int
    beta: float
    norm: float = 1.0

    def __post_init__(self) -> None:
        beta = validate.scalar("beta", validate.open_unit_interval("beta", self.beta))
        norm = validate.positive_scalar("norm", self.norm)
        validate.remember(self, beta=beta, norm=norm, length=validate.count("rounds", self.rounds))

    def draw(self, seed: int, start: int, stop: int) -> Block:
        rounds = np.arange(start + 1, stop + 1)
        tail = int(np.ceil(2 * self.rounds**self.beta)) + 2
        signs = np.where(rounds == 1, -1.0, np.where(rounds > self.rounds - tail, 1.0, 0.0))
        return Block((self.norm * signs[:, None],))


def _checked(stream: RandomCosts | SwitchingCosts) -> None:
    validate.remember(
        stream,
        dimension=validate.dimension("dimension", stream.dimension),
        norm=validate.positive_scalar("norm", stream.norm),
    )
