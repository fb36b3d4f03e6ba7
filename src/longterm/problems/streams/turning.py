"""Streams whose best decision moves on a circle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.problems.streams.base import Block, Stream
from longterm.problems.streams.costs import RandomCosts


@dataclass(frozen=True)
class TurningHalfPlane(Stream):
    """The constraint ⟨a_t, x⟩ ≤ limit in the plane with a rotating unit vector a_t, and costs −a_t plus noise.

    Costs are shortened to length 1. The first angle is drawn from the seed.

    Parameters
    ----------
    turns : float
        The number of turns in `rounds` rounds.
    limit : float
        The limit of the half-plane.
    rounds : int
        The nominal length. The stream continues after it.
    noise : float
        The length of the noise.

    Examples
    --------
    >>> from longterm.problems.streams.turning import TurningHalfPlane
    >>> block = TurningHalfPlane(turns=1.0, limit=0.3, rounds=4, noise=0.0).draw(seed=0, start=0, stop=4)
    >>> float((block.constraint[0][0] @ block.constraint[0][2].T).round(9)[0, 0])  # half a turn later
    -1.0
    """

    turns: float = 2.0
    limit: float = 0.3
    rounds: int = 4096
    noise: float = 0.3

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.non_negative_scalar, "turns", "noise")
        validate.validate_fields(self, validate.positive_scalar, "limit")
        validate.validate_fields(self, validate.count, "rounds")

    def draw(self, seed: int, start: int, stop: int) -> Block:
        rows = _directions(seed, start, stop, self.turns, self.rounds)
        costs = -rows
        if self.noise > 0:
            costs = costs + RandomCosts(2, self.noise).draw(seed, start, stop).loss[0]
        costs = costs / np.maximum(np.linalg.norm(costs, axis=1, keepdims=True), 1.0)
        return Block((costs,), (rows[:, None, :], np.full((stop - start, 1), self.limit)))


@dataclass(frozen=True)
class TurningTargets(Stream):
    """Targets that rotate on the unit circle of the first two coordinates, plus noise of length 0.3.

    Parameters
    ----------
    dimension : int
        d, at least 2.
    turns : float
        The number of turns in `rounds` rounds. The first angle is drawn from the seed.
    rounds : int
        The nominal length. The stream continues after it.
    """

    dimension: int = 5
    turns: float = 3.0
    rounds: int = 4096

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.dimension, "dimension")
        validate.validate_fields(self, validate.non_negative_scalar, "turns")
        validate.validate_fields(self, validate.count, "rounds")

    def draw(self, seed: int, start: int, stop: int) -> Block:
        targets = np.array(RandomCosts(self.dimension, 0.3).draw(seed, start, stop).loss[0])
        targets[:, :2] += _directions(seed, start, stop, self.turns, self.rounds)
        return Block((targets,))


def _directions(seed: int, start: int, stop: int, turns: float, rounds: int) -> FloatArray:
    """Return the rotating unit vectors of the rounds start + 1 … stop."""
    first = np.random.default_rng(seed).uniform(0, 2 * np.pi)
    angle = first + 2 * np.pi * turns * np.arange(start, stop) / rounds
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)
