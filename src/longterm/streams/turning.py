"""Streams whose best decision moves: what is right now is wrong later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm.streams.adversary import RandomCosts
from longterm.streams.base import Block, Stream


@dataclass(frozen=True)
class TurningHalfPlane(Stream):
    """⟨a_t, x⟩ ≤ offset in the plane, a_t a unit vector that turns; costs −a_t and noise, shortened to length 1.

    Parameters
    ----------
    turns : float
        Turns of a_t in `rounds` rounds; the angle it begins at is the seed's.
    offset : float
        Of the half-plane.
    rounds : int
        What it is made for; it goes on after them.
    noise : float
        Its length.

    Examples
    --------
    >>> from longterm.streams import TurningHalfPlane
    >>> block = TurningHalfPlane(turns=1.0, offset=0.3, rounds=4, noise=0.0).draw(seed=0, start=0, stop=4)
    >>> float((block.constraint[0][0] @ block.constraint[0][2].T).round(9)[0, 0])  # half a turn later
    -1.0
    """

    turns: float = 2.0
    offset: float = 0.3
    rounds: int = 4096
    noise: float = 0.3

    def __post_init__(self) -> None:
        validate.remember(
            self,
            turns=validate.non_negative_scalar("turns", self.turns),
            offset=validate.positive_scalar("offset", self.offset),
            rounds=validate.count("rounds", self.rounds),
            noise=validate.non_negative_scalar("noise", self.noise),
        )

    def draw(self, seed: int, start: int, stop: int) -> Block:
        rows = _turning(seed, start, stop, self.turns, self.rounds)
        costs = -rows
        if self.noise > 0:
            costs = costs + RandomCosts(2, self.noise).draw(seed, start, stop).loss[0]
        costs = costs / np.maximum(np.linalg.norm(costs, axis=1, keepdims=True), 1.0)
        return Block((costs,), (rows[:, None, :], np.full((stop - start, 1), self.offset)))


@dataclass(frozen=True)
class TurningTargets(Stream):
    """Targets on the unit circle of the first two coordinates, going round, with noise of length 0.3 in all
    coordinates.

    Parameters
    ----------
    dimension : int
        d, at least 2.
    turns : float
        Turns in `rounds` rounds; the angle it begins at is the seed's.
    rounds : int
        What it is made for; it goes on after them.
    """

    dimension: int = 5
    turns: float = 3.0
    rounds: int = 4096

    def __post_init__(self) -> None:
        validate.remember(
            self,
            dimension=validate.dimension("dimension", self.dimension),
            turns=validate.non_negative_scalar("turns", self.turns),
            rounds=validate.count("rounds", self.rounds),
        )

    def draw(self, seed: int, start: int, stop: int) -> Block:
        targets = np.array(RandomCosts(self.dimension, 0.3).draw(seed, start, stop).loss[0])
        targets[:, :2] += _turning(seed, start, stop, self.turns, self.rounds)
        return Block((targets,))


def _turning(seed: int, start: int, stop: int, turns: float, rounds: int) -> NDArray[np.float64]:
    """Unit vectors of the plane for the rounds start + 1 … stop."""
    first = np.random.default_rng(seed).uniform(0, 2 * np.pi)
    angle = first + 2 * np.pi * turns * np.arange(start, stop) / rounds
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)
