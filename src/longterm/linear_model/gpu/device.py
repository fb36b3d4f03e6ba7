"""What a GPU plays: the arrays of many learners, a launch for a block of rows. Nothing here needs Numba."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SOURCE = Path(__file__).with_name("rounds.cu")
PARAMETER_FIELDS = (
    "budget", "l1", "l2", "radius", "intercept_bound", "loss", "loss_parameter", "beta", "step", "theta_0", "mu",
    "weight_0", "growth", "scales", "offset", "residual_radius", "max_features", "most_factor", "longest",
)  # fmt: skip
STATE_FIELDS = (
    "round", "active", "live", "entries", "loss_sum", "signed_violation", "hard_violation", "squared_violation",
    "multiplier", "multiplier_sum", "gradient_squares", "longest_gradient", "scale", "norm_1", "norm_2", "intercept",
    "intercept_slope", "bound_sum", "intercept_squares", "norm_1_low", "norm_2_low",
    "first_length", "clip", "clipped_squares", "pivot", "residual_clip", "residual_clipped_squares", "residual_pivot",
    "residual", "positive_weight", "negative_weight", "heaviest", "reach",
    "waits", "factor", "mean_radius", "owed", "owed_squares", "patience", "tilt", "residual_factor",
    "residual_mean_radius", "residual_owed", "residual_owed_squares", "residual_patience", "residual_tilt",
)  # fmt: skip
"""`kernels.layout` has the same, in this order: a test holds them together."""
NAMES = {
    "LOSS_SUM": "loss_sum", "SIGNED": "signed_violation", "HARD": "hard_violation", "SQUARED": "squared_violation",
    "MULTIPLIER": "multiplier", "MULTIPLIER_SUM": "multiplier_sum", "SQUARES": "gradient_squares",
    "LONGEST": "longest_gradient", "SCALE": "scale", "NORM_1": "norm_1", "NORM_2": "norm_2", "INTERCEPT": "intercept",
    "INTERCEPT_SLOPE": "intercept_slope", "BOUND_SUM": "bound_sum", "INTERCEPT_SQUARES": "intercept_squares",
}  # fmt: skip
IN_ORDER, ONE_ORDER, OWN_ORDER, DRAWN = range(4)
THREADS = 128
MOST_COORDINATES = {"float32": 64, "float64": 32}
"""Of a thread, so that z and two rows stay in registers."""
FEW_THREADS = 32_768
"""An H200 has 528 schedulers: two warps for each of them. With rows of their own, learners want twice that."""


@dataclass(frozen=True)
class Kind:
    """What is compiled for itself."""

    ftrl: bool
    online: bool
    loss: int
    order: int
    same_beta: bool
    dtype: str
    """Of z and the arithmetic: float32 or float64. Sums are float64 always."""
    lanes: int
    """Threads of a learner."""
    coordinates: int
    """Of a thread."""

    @property
    def width(self) -> int:
        """Columns of a row, filled up with 0."""
        return self.lanes * self.coordinates

    def definitions(self) -> str:
        """What stands before the text of rounds.cu."""
        made: Mapping[str, Any] = {
            "REAL": {"float32": "float", "float64": "double"}[self.dtype],
            "LANES": self.lanes,
            "COORDINATES": self.coordinates,
            "FTRL": int(self.ftrl),
            "ONLINE": int(self.online),
            "LOSS": self.loss,
            "ORDER": self.order,
            "SAME_BETA": int(self.same_beta),
            "THREADS": THREADS,
        }
        places = {f"P_{name.upper()}": place for place, name in enumerate(PARAMETER_FIELDS)}
        places |= {f"S_{short}": STATE_FIELDS.index(name) for short, name in NAMES.items()}
        return "".join(f"#define {name} {value}\n" for name, value in {**made, **places}.items())

    def source(self) -> str:
        """The whole text."""
        return self.definitions() + SOURCE.read_text(encoding="utf-8")


def lanes_for(dimension: int, learners: int, dtype: str, threads: int = FEW_THREADS) -> tuple[int, int]:
    """Threads of a learner and coordinates of a thread: enough threads for the whole GPU, all state in registers."""
    lanes = 1
    while lanes < 32 and -(-dimension // lanes) > MOST_COORDINATES[dtype]:
        lanes *= 2
    while lanes < 16 and learners * lanes < threads and -(-dimension // lanes) > 4:
        lanes *= 2
    coordinates = -(-dimension // lanes)
    if coordinates > 4 * MOST_COORDINATES[dtype]:
        raise ValueError(f"{dimension} features are too many for the registers of a GPU")
    return lanes, coordinates


def cupy() -> Any:
    """CuPy with a GPU behind it, or an error that says what is missing."""
    if find_spec("cupy") is None:
        raise ImportError('device="gpu" needs CuPy and an NVIDIA GPU: pip install "longterm[cuda]"')
    import cupy as made

    try:
        count = made.cuda.runtime.getDeviceCount()
    except made.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(f'device="gpu": CuPy is here, but no GPU that it can use ({error})') from None
    if count == 0:
        raise RuntimeError('device="gpu": CuPy is here, but there is no GPU')
    return made


@cache
def _kernel(kind: Kind) -> Any:
    return cupy().RawKernel(kind.source(), "play_block", options=("--std=c++17",))


@dataclass(eq=False)
class Rows:
    """Rows on the device: float32, filled up to `width` columns; lengths ‖u‖² in the dtype of the arithmetic."""

    features: Any
    lengths: Any
    labels: Any
    weights: Any
    width: int


def rows_on_device(X: Any, labels: NDArray[Any], weights: NDArray[Any] | None, width: int, dtype: str) -> Rows:
    """A dense matrix, from the host or the device, as the kernels want it."""
    xp = cupy()
    given = xp.asarray(X)
    features = xp.zeros((given.shape[0], width), dtype=xp.float32)
    features[:, : given.shape[1]] = given
    lengths = (features.astype(dtype) ** 2).sum(axis=1)
    made = None if weights is None else xp.asarray(weights, dtype=dtype)
    return Rows(features, lengths, xp.asarray(labels, dtype=dtype), made, width)


def about(rows: Rows, level: float) -> Rows:
    """The same rows with labels less `level`."""
    return rows if level == 0.0 else replace(rows, labels=rows.labels - level)


def with_order(kind: Kind) -> Kind:
    """The same for rows that stand elsewhere than at the beginning."""
    return replace(kind, order=ONE_ORDER)


def play(
    kind: Kind,
    rows: Rows,
    parameters: NDArray[np.float64],
    state: NDArray[np.float64],
    vectors: NDArray[Any],
    first: int,
    count: int,
    *,
    order: Any = None,
    seeds: Any = None,
    record: Any = (),
    drawn: Any = (),
    totals: Any = None,
) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[np.float64], Any]:
    """Play `count` rounds from round `first` on: the states and vectors after them, losses at `record`, totals.

    `parameters` and `state` are (fields, learners) as `kernels.layout` orders them, `vectors` (learners, d).
    """
    xp = cupy()
    learners, d = vectors.shape
    on = xp.zeros((learners, kind.width), dtype=kind.dtype)
    on[:, :d] = xp.asarray(vectors)
    p, s = xp.asarray(parameters, dtype=xp.float64).copy(), xp.asarray(state, dtype=xp.float64).copy()
    powers = xp.arange(first, first + count, dtype=xp.float64) ** float(parameters[PARAMETER_FIELDS.index("beta"), 0])
    powers = powers.astype(kind.dtype)
    rounds = xp.asarray(np.asarray(record, dtype=np.int64))
    losses = xp.zeros((len(rounds), learners))
    draws = xp.asarray(np.asarray(drawn, dtype=np.int64))
    sums = xp.zeros((learners, d + 1)) if totals is None else xp.asarray(totals)
    none = xp.zeros(1, dtype=xp.int64)
    given = none if order is None else xp.ascontiguousarray(xp.asarray(order, dtype=xp.int32))
    seeded = none if seeds is None else xp.asarray(seeds, dtype=xp.uint64)
    whole = np.int64
    weights = rows.weights if rows.weights is not None else np.uint64(0)
    blocks = -(-learners * kind.lanes // THREADS)
    _kernel(kind)(
        (blocks,), (THREADS,),
        (whole(learners), whole(d), whole(kind.width), whole(count), whole(rows.features.shape[0]), whole(first),
         rows.features, rows.lengths, rows.labels, weights, given, seeded, powers, p, s, on,
         rounds, whole(len(rounds)), losses, draws, whole(len(draws)), sums),
    )  # fmt: skip
    return xp.asnumpy(s), xp.asnumpy(on[:, :d]), xp.asnumpy(losses), xp.asnumpy(sums)


def host_kernel(kind: Kind, folder: Path, compiler: str) -> Any:
    """The same text compiled for the host, one thread a learner: for tests of the arithmetic without a GPU."""
    import subprocess

    source, library = folder / "rounds.cpp", folder / "rounds.so"
    source.write_text("#define HOST\n" + kind.source(), encoding="utf-8")
    subprocess.run([compiler, "-O2", "-std=c++17", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    function = ctypes.CDLL(str(library)).play_block
    function.restype = None
    return function
