"""Streams of targets: permutation matrices, noisy points, and signs of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, namespace
from longterm.errors import InputError
from longterm.problems.streams.base import CHUNK, Block, ChunkedStream


@dataclass(frozen=True)
class RandomPermutations(ChunkedStream):
    """Draw random permutation matrices.

    They are flattened, size × size.

    Parameters
    ----------
    size : int
        The number of rows of the matrices.

    Examples
    --------
    >>> from longterm.problems.streams import RandomPermutations
    >>> RandomPermutations(2).draw(seed=0, start=0, stop=3).loss[0]
    array([[0., 1., 1., 0.],
           [0., 1., 1., 0.],
           [1., 0., 0., 1.]])
    """

    size: int

    def __post_init__(self) -> None:
        validate.set_frozen(self, size=validate.dimension("size", self.size))

    @property
    def uniforms_per_round(self) -> int:  # type: ignore[override]
        return self.size

    def compact(self, uniforms: Array) -> Array:
        return (np if isinstance(uniforms, np.ndarray) else namespace(uniforms)).argsort(uniforms, axis=-1)

    def expand(self, drawn: Array) -> Block:
        xp = namespace(drawn)
        matrices = xp.astype(drawn[..., None] == xp.arange(self.size, dtype=drawn.dtype), xp.float64)
        return Block((xp.reshape(matrices, (*drawn.shape[:-1], -1)),))


@dataclass(frozen=True)
class NoisyPermutations(ChunkedStream):
    """Matrices Y_t = P_t + E + N_t, size × size, flattened. Entries of E + N_t are at most `noise` in absolute value.

    P_t is a hidden permutation matrix with probability `hidden`, otherwise uniformly random. The errors E are drawn
    once per seed and do not average out. N_t is drawn in every round. Entries of E and N_t are uniform in ±noise/2.

    Parameters
    ----------
    size : int
        The number of rows of the matrices.
    noise : float
        ν, the largest error of an entry.
    hidden : float
        The probability of the hidden permutation.

    Examples
    --------
    >>> from longterm.problems.streams.points import NoisyPermutations
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
            raise InputError("hidden", f"{self.hidden!r} is not a probability", "Give a number from 0 to 1")
        validate.validate_fields(self, validate.dimension, "size")
        validate.validate_fields(self, validate.non_negative_scalar, "noise")
        validate.set_frozen(self, hidden=hidden)

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        # Per round: one number selects the hidden permutation, `size` numbers sort into another, the rest is noise.
        return rng.random((CHUNK, 1 + self.size + self.size**2))

    def expand(self, drawn: NDArray[Any]) -> Block:
        """Return the targets without the constant errors, with the identity as the hidden permutation."""
        other = np.argsort(drawn[:, 1 : 1 + self.size], axis=1)
        permutations = np.where(drawn[:, :1] < self.hidden, np.arange(self.size), other)
        matrices = (permutations[:, :, None] == np.arange(self.size)).reshape(len(drawn), -1)
        return Block((matrices + self.noise * (drawn[:, 1 + self.size :] - 0.5),))

    def draw(self, seed: int, start: int, stop: int) -> Block:
        rng = np.random.default_rng(seed)
        columns, errors = rng.permutation(self.size), self.noise * (rng.random(self.size**2) - 0.5)
        (targets,) = super().draw(seed, start, stop).loss
        matrices = targets.reshape(-1, self.size, self.size)[:, :, columns]
        return Block((matrices.reshape(targets.shape) + errors,))


@dataclass(frozen=True, eq=False, init=False)
class NoisyTargets(ChunkedStream):
    """Draw targets that scatter around a mean.

    The noise is uniform in [−spread, spread], in every coordinate.

    Parameters
    ----------
    means : array_like
        The mean target.
    spread : float
        The largest error of a coordinate.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.streams import NoisyTargets
    >>> NoisyTargets(np.array([0.5, -0.5]), spread=0.1).draw(seed=0, start=0, stop=2).loss[0].round(3)
    array([[ 0.589, -0.537],
           [ 0.544, -0.575]])
    """

    means: FloatArray
    spread: float

    def __init__(self, means: ArrayLike, spread: float) -> None:
        noise = validate.non_negative_scalar("spread", spread)
        validate.set_frozen(self, means=validate.vector("means", means), spread=noise)

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        return rng.uniform(-1.0, 1.0, (CHUNK, len(self.means)))

    def expand(self, drawn: NDArray[Any]) -> Block:
        return Block((self.means + self.spread * drawn,))


@dataclass(frozen=True)
class PairwiseSigns(ChunkedStream):
    """Symmetric size × size matrices of ±1 with ones on the diagonal, flattened, with mean decay^|i−j|.

    Each pair is measured at its own time, so the entries of a round are independent. Unlike y yᵀ, the matrix has
    negative eigenvalues, down to about −2√n for weak correlations. The mean of t matrices has some down to −2√(n/t).

    Parameters
    ----------
    size : int
        The number of rows of the matrices.
    decay : float
        The correlation of neighbours.

    Examples
    --------
    >>> from longterm.problems.streams.points import PairwiseSigns
    >>> PairwiseSigns(3, decay=0.5).draw(seed=0, start=0, stop=1).loss[0].reshape(3, 3)
    array([[ 1., -1.,  1.],
           [-1.,  1.,  1.],
           [ 1.,  1.,  1.]])
    """

    size: int
    decay: float = 0.9

    def __post_init__(self) -> None:
        decay = validate.non_negative_scalar("decay", self.decay)
        if decay > 1:
            raise InputError("decay", f"{self.decay!r} is above 1", "Give the correlation of neighbours, in [0, 1]")
        validate.set_frozen(self, size=validate.dimension("size", self.size), decay=decay)

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        first, second = np.triu_indices(self.size, k=1)
        probability = 0.5 * (1 + self.decay ** (second - first))
        return rng.random((CHUNK, len(first))) < probability

    def expand(self, drawn: NDArray[Any]) -> Block:
        first, second = np.triu_indices(self.size, k=1)
        matrices = np.ones((len(drawn), self.size, self.size))
        matrices[:, first, second] = matrices[:, second, first] = np.where(drawn, 1.0, -1.0)
        return Block((matrices.reshape(len(drawn), -1),))
