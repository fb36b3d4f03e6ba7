"""Rounds that an adversary fixed beforehand, to hurt: costs, and constraints that change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm.constraints import Affine
from longterm.errors import InputError
from longterm.streams.base import CHUNK, Block, ChunkedStream, Stream


@dataclass(frozen=True)
class RandomCosts(ChunkedStream):
    """Costs of length `norm` in directions drawn uniformly: no decision is better than another.

    Parameters
    ----------
    dimension : int
        d.
    norm : float
        The length of every cost.
    """

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

    Parameters
    ----------
    dimension : int
        d.
    norm : float
        The length of every cost.
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

    Parameters
    ----------
    rounds : int
        T.
    beta : float
        The β of the schedule to be hurt.
    norm : float
        The length of every cost.
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


@dataclass(frozen=True, eq=False)
class SwitchingConstraints(Stream):
    """⟨a, x⟩ ≤ b for one row of the `pool` at a time, another one in rounds 2, 4, 8, …; costs pull across it.

    The rows come one after another, in an order that the seed chooses, and then over again. Each phase lasts as
    long as all before it. The cost of a round has length `norm` and the direction of −(a/‖a‖ + e/2), e a unit vector
    that the seed chooses: whoever gives in to it breaks the constraint in force, and those to come in other ways.

    Parameters
    ----------
    pool : Affine
        The half-spaces, one of which is in force in each round.
    norm : float
        The length of every cost.

    Examples
    --------
    >>> from longterm.constraints import Affine
    >>> from longterm.streams import SwitchingConstraints
    >>> stream = SwitchingConstraints(Affine([[1.0, 0.0], [0.0, 1.0]], [0.1, 0.2]))
    >>> block = stream.draw(seed=0, start=0, stop=4)
    >>> block.constraint[0][:, 0], block.constraint[1][:, 0]
    (array([[1., 0.],
           [0., 1.],
           [0., 1.],
           [1., 0.]]), array([0.1, 0.2, 0.2, 0.1]))
    """

    pool: Affine
    norm: float = 1.0

    def __post_init__(self) -> None:
        validate.remember(self, norm=validate.positive_scalar("norm", self.norm))
        if np.any(np.linalg.norm(self.pool.matrix, axis=1) == 0):
            raise InputError("pool", "has a row of zeros, across which nothing can pull", "Leave the row out")

    def draw(self, seed: int, start: int, stop: int) -> Block:
        rng = np.random.default_rng(seed)
        order = rng.permutation(self.pool.count)
        phase = np.frexp(np.arange(start + 1, stop + 1))[1] - 1
        rows, offsets = self.pool.matrix[order], self.pool.offset[order]
        now = phase % self.pool.count
        aside = rng.standard_normal(self.pool.dimension)
        pull = rows / np.linalg.norm(rows, axis=1, keepdims=True) + 0.5 * aside / np.linalg.norm(aside)
        costs = -self.norm * pull / np.linalg.norm(pull, axis=1, keepdims=True)
        return Block((costs[now],), (rows[now][:, None, :], offsets[now][:, None]))
