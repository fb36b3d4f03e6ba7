"""Adversarial streams, fixed in advance: random, alternating or reversed costs, and switching constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm.errors import InputError
from longterm.problems.constraints import Affine
from longterm.problems.streams.base import CHUNK, Block, ChunkedStream, Stream


@dataclass(frozen=True)
class RandomCosts(ChunkedStream):
    """Draw costs in random directions, so that no decision is better in expectation.

    Directions are uniform, and every cost has the same length.

    Parameters
    ----------
    dimension : int
        The number of coordinates of a decision (d).
    norm : float
        The length of every cost.

    Examples
    --------
    >>> from longterm.problems.streams import RandomCosts
    >>> costs = RandomCosts(3, norm=2.0).draw(seed=0, start=0, stop=4).loss[0]
    >>> costs.shape, (costs**2).sum(axis=1).round(9)
    ((4, 3), array([4., 4., 4., 4.]))
    """

    dimension: int
    norm: float = 1.0

    def __post_init__(self) -> None:
        _validate_costs(self)

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        return rng.standard_normal((CHUNK, self.dimension))

    def expand(self, drawn: NDArray[Any]) -> Block:
        return Block((self.norm * drawn / np.linalg.norm(drawn, axis=1, keepdims=True),))


@dataclass(frozen=True)
class SwitchingCosts(Stream):
    """One random direction whose sign changes in rounds 2, 4, 8, 16, …

    Each phase lasts as long as all before it, so the learner must cross the set with ever smaller steps.

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
        _validate_costs(self)

    def draw(self, seed: int, start: int, stop: int) -> Block:
        direction = np.random.default_rng(seed).standard_normal(self.dimension)
        phase = np.frexp(np.arange(start + 1, stop + 1))[1]
        signs = np.where(phase % 2 == 0, 1.0, -1.0)
        return Block((signs[:, None] * (self.norm / np.linalg.norm(direction)) * direction,))


@dataclass(frozen=True)
class LateReversal(Stream):
    """One-dimensional costs: −G in round 1, then 0, then +G in the last ⌈2 T^β⌉ + 2 rounds.

    They violate the printed regret bound of Theorem 1 for β > ½ (see `named.adversarial.late_reversal`).

    Parameters
    ----------
    rounds : int
        T.
    beta, norm : float
        The β of the learner's schedule and the length of every cost.
    """

    rounds: int
    beta: float
    norm: float = 1.0
    depends_on_seed = False

    def __post_init__(self) -> None:
        beta = validate.scalar("beta", validate.trade_off("beta", self.beta))
        norm = validate.positive_scalar("norm", self.norm)
        validate.set_frozen(self, beta=beta, norm=norm, length=validate.count("rounds", self.rounds))

    def draw(self, seed: int, start: int, stop: int) -> Block:
        rounds = np.arange(start + 1, stop + 1)
        tail = int(np.ceil(2 * self.rounds**self.beta)) + 2
        signs = np.where(rounds == 1, -1.0, np.where(rounds > self.rounds - tail, 1.0, 0.0))
        return Block((self.norm * signs[:, None],))


def _validate_costs(stream: RandomCosts | SwitchingCosts) -> None:
    validate.validate_fields(stream, validate.dimension, "dimension")
    validate.validate_fields(stream, validate.positive_scalar, "norm")


@dataclass(frozen=True, eq=False)
class SwitchingConstraints(Stream):
    """One constraint ⟨a, x⟩ ≤ b of the `pool` at a time, changed in rounds 2, 4, 8, …, with costs that push across it.

    The constraints repeat in a random order. Each phase lasts as long as all before it. The cost of a round has length
    `norm` and direction −(a/‖a‖ + e/2) with a random unit vector e.

    Parameters
    ----------
    pool : Affine
        The half-spaces, one of which holds in each round.
    norm : float
        The length of every cost.

    Examples
    --------
    >>> from longterm.problems.constraints import Affine
    >>> from longterm.problems.streams.costs import SwitchingConstraints
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
        validate.set_frozen(self, norm=validate.positive_scalar("norm", self.norm))
        if np.any(np.linalg.norm(self.pool.matrix, axis=1) == 0):
            raise InputError("pool", "has a row of zeros, which has no direction", "Leave the row out")

    def draw(self, seed: int, start: int, stop: int) -> Block:
        rng = np.random.default_rng(seed)
        order = rng.permutation(self.pool.count)
        phase = np.frexp(np.arange(start + 1, stop + 1))[1] - 1
        rows, limits = self.pool.matrix[order], self.pool.limit[order]
        current = phase % self.pool.count
        noise = rng.standard_normal(self.pool.dimension)
        push = rows / np.linalg.norm(rows, axis=1, keepdims=True) + 0.5 * noise / np.linalg.norm(noise)
        costs = -self.norm * push / np.linalg.norm(push, axis=1, keepdims=True)
        return Block((costs[current],), (rows[current][:, None, :], limits[current][:, None]))
