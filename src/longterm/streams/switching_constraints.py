"""Constraints that an adversary changes, with costs that pull across the one in force."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longterm import _validate as validate
from longterm.constraints import Affine
from longterm.errors import InputError
from longterm.streams.base import Block, Stream


@dataclass(frozen=True, eq=False)
class SwitchingConstraints(Stream):
    """⟨a, x⟩ ≤ b for one row of the `pool` at a time, another one in rounds 2, 4, 8, …; costs pull across it.

    The rows come one after another, in an order that the seed chooses, and then over again. Each phase lasts as
    long as all before it. The cost of a round has length `norm` and the direction of −(a/‖a‖ + e/2), e a unit vector
    that the seed chooses: whoever gives in to it breaks the constraint in force, and those to come in other ways.

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
