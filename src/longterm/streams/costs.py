"""Costs, and constraints that change with them: fixed beforehand by an adversary, or those of resources.

An adversary's, to hurt: random, with a sign that flips, reversed late; half-spaces of which another is in force now and
then. Of resources: those of Yu and Neely's linear program, of a network's edges, of servers that work off jobs. Then
streams whose best decision moves: what is right now is wrong later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
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
        beta = validate.scalar("beta", validate.trade_off("beta", self.beta))
        norm = validate.positive_scalar("norm", self.norm)
        validate.set_frozen(self, beta=beta, norm=norm, length=validate.count("rounds", self.rounds))

    def draw(self, seed: int, start: int, stop: int) -> Block:
        rounds = np.arange(start + 1, stop + 1)
        tail = int(np.ceil(2 * self.rounds**self.beta)) + 2
        signs = np.where(rounds == 1, -1.0, np.where(rounds > self.rounds - tail, 1.0, 0.0))
        return Block((self.norm * signs[:, None],))


def _checked(stream: RandomCosts | SwitchingCosts) -> None:
    validate.validate_fields(stream, validate.dimension, "dimension")
    validate.validate_fields(stream, validate.positive_scalar, "norm")


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
        validate.set_frozen(self, norm=validate.positive_scalar("norm", self.norm))
        if np.any(np.linalg.norm(self.pool.matrix, axis=1) == 0):
            raise InputError("pool", "has a row of zeros, across which nothing can pull", "Leave the row out")

    def draw(self, seed: int, start: int, stop: int) -> Block:
        rng = np.random.default_rng(seed)
        order = rng.permutation(self.pool.count)
        phase = np.frexp(np.arange(start + 1, stop + 1))[1] - 1
        rows, offsets = self.pool.matrix[order], self.pool.limit[order]
        now = phase % self.pool.count
        aside = rng.standard_normal(self.pool.dimension)
        pull = rows / np.linalg.norm(rows, axis=1, keepdims=True) + 0.5 * aside / np.linalg.norm(aside)
        costs = -self.norm * pull / np.linalg.norm(pull, axis=1, keepdims=True)
        return Block((costs[now],), (rows[now][:, None, :], offsets[now][:, None]))


@dataclass(frozen=True)
class DriftingCosts(ChunkedStream):
    """c_t = c¹_t + c²_t + c³_t in each coordinate, for T = `rounds` rounds.

    - c¹_t uniform in ±t^0.1.
    - c²_t uniform in [−1, 0] for t ≤ 0.3T, 0.4T ≤ t ≤ 0.7T and t ≥ 0.8T, in [0, 1] in between (at T = 5000 these are
      the paper's 1–1500, 2000–3500 and 4000–5000).
    - c³_t = (−1)^π(t) for a random permutation π of 1 … T: as many of either sign. Here it is the same in every
      coordinate.

    No coordinate is above T^0.1 + 2 in size. H. Yu, M. J. Neely, *A low complexity algorithm with O(√T) regret and
    O(1) constraint violations for online convex optimization with long term constraints*, JMLR 21 (2020).

    Parameters
    ----------
    dimension : int
        d.
    rounds : int
        T.

    Examples
    --------
    >>> from longterm.streams import DriftingCosts
    >>> DriftingCosts(2, rounds=10).draw(seed=0, start=0, stop=2).loss[0].round(2)
    array([[-0.39, -2.24],
           [-2.11, -0.86]])
    """

    dimension: int
    rounds: int

    def __post_init__(self) -> None:
        rounds = validate.count("rounds", self.rounds)
        validate.set_frozen(
            self, dimension=validate.dimension("dimension", self.dimension), rounds=rounds, length=rounds
        )

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        return rng.random((CHUNK, 2, self.dimension))

    def expand(self, drawn: NDArray[Any]) -> Block:
        """The first two parts at t = 1: each draw with its sign, in [−1, 1] and in [−1, 0]."""
        return Block((2 * drawn[:, 0] - 1, drawn[:, 1] - 1))

    def draw(self, seed: int, start: int, stop: int) -> Block:
        stop = min(stop, self.rounds)
        t = np.arange(start + 1, stop + 1)[:, None]
        noise, level = super().draw(seed, start, stop).loss
        share = t / self.rounds
        below = (share <= 0.3) | ((share >= 0.4) & (share <= 0.7)) | (share >= 0.8)
        order = np.random.default_rng(seed).permutation(self.rounds)
        signs = np.where(order % 2 == 0, -1.0, 1.0)[start:stop, None]
        return Block((t**0.1 * noise + np.where(below, level, 1 + level) + signs,))


JAMMED = 0.3
"""The share of the time that an edge is jammed."""


@dataclass(frozen=True, eq=False)
class EdgeLatencies(ChunkedStream):
    """The latency of an edge is its level, 0.4 more while it is jammed, and noise; a round's costs are those of paths.

    Levels are uniform in [0.1, 0.5], drawn once for the seed; jams last for 64 rounds; noise is uniform in [0, 0.1].
    So every latency is in [0, 1]. `incidence` (edges, paths) says which edges a path uses: latencies add up.

    Parameters
    ----------
    incidence : FloatArray
        Which edges (rows) a path (columns) uses.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.streams import EdgeLatencies
    >>> EdgeLatencies(np.array([[1.0, 0.0], [1.0, 1.0]])).draw(seed=0, start=0, stop=2).loss[0].round(2)
    array([[0.65, 0.22],
           [0.67, 0.27]])
    """

    incidence: FloatArray

    def __post_init__(self) -> None:
        validate.set_frozen(self, incidence=validate.matrix("incidence", self.incidence))

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        edges = len(self.incidence)
        return 0.4 * (rng.random(edges) < JAMMED) + 0.1 * rng.random((CHUNK, edges))

    def expand(self, drawn: NDArray[Any]) -> Block:
        """Without the levels."""
        # No matrix product: how it rounds a round may depend on the rounds beside it.
        return Block(((drawn[..., None] * self.incidence).sum(axis=-2),))

    def draw(self, seed: int, start: int, stop: int) -> Block:
        levels = np.random.default_rng(seed).uniform(0.1, 0.5, len(self.incidence))
        return Block((super().draw(seed, start, stop).loss[0] + levels @ self.incidence,))


DAY = 48
"""Rounds in a day: half hours."""


@dataclass(frozen=True, eq=False)
class JobsAndPrices(ChunkedStream):
    """Prices of n servers in `zones` zones, and g_t(x) = ω_t − ⟨h, x⟩ with ω_t binomial, B(n, ½); h are the `speeds`.

    The price of a zone is 0.5 + 0.3 sin(2π t/48 + phase of the zone) + noise, uniform in ±0.2; phases are drawn once
    for the seed. Server i is in zone i modulo `zones`.

    Parameters
    ----------
    speeds : FloatArray
        h, the jobs that a server does in a round.
    zones : int
        How many prices there are.

    Examples
    --------
    >>> from longterm.streams import JobsAndPrices
    >>> block = JobsAndPrices([0.5, 1.5], zones=2).draw(seed=0, start=0, stop=3)
    >>> block.constraint[0][0], block.constraint[1][:, 0]
    (array([[-0.5, -1.5]]), array([-2., -1., -1.]))
    """

    speeds: FloatArray
    zones: int = 3

    def __post_init__(self) -> None:
        speeds = validate.vector("speeds", validate.positive("speeds", self.speeds))
        validate.set_frozen(self, speeds=speeds, zones=validate.dimension("zones", self.zones))

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        n = len(self.speeds)
        return np.column_stack([rng.binomial(n, 0.5, CHUNK), rng.uniform(-0.2, 0.2, (CHUNK, self.zones))])

    def expand(self, drawn: NDArray[Any]) -> Block:
        """With noise for prices."""
        rows = np.broadcast_to(-self.speeds, (len(drawn), 1, len(self.speeds)))
        zone = np.arange(len(self.speeds)) % self.zones
        return Block((drawn[:, 1 + zone],), (rows, -drawn[:, :1]))

    def draw(self, seed: int, start: int, stop: int) -> Block:
        block = super().draw(seed, start, stop)
        phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, self.zones)
        angle = 2 * np.pi * np.arange(start + 1, stop + 1)[:, None] / DAY
        zone = np.arange(len(self.speeds)) % self.zones
        return Block((0.5 + 0.3 * np.sin(angle + phases[zone]) + block.loss[0],), block.constraint)


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
        validate.validate_fields(self, validate.non_negative_scalar, "turns", "noise")
        validate.validate_fields(self, validate.positive_scalar, "offset")
        validate.validate_fields(self, validate.count, "rounds")

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
        validate.validate_fields(self, validate.dimension, "dimension")
        validate.validate_fields(self, validate.non_negative_scalar, "turns")
        validate.validate_fields(self, validate.count, "rounds")

    def draw(self, seed: int, start: int, stop: int) -> Block:
        targets = np.array(RandomCosts(self.dimension, 0.3).draw(seed, start, stop).loss[0])
        targets[:, :2] += _turning(seed, start, stop, self.turns, self.rounds)
        return Block((targets,))


def _turning(seed: int, start: int, stop: int, turns: float, rounds: int) -> NDArray[np.float64]:
    """Unit vectors of the plane for the rounds start + 1 … stop."""
    first = np.random.default_rng(seed).uniform(0, 2 * np.pi)
    angle = first + 2 * np.pi * turns * np.arange(start, stop) / rounds
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)
