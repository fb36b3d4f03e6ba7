"""Random sequences of one data set: the same learner on thousands of them, for means and deviations of regret."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model._rows import RowBlock, labels_for, row_block
from longterm.linear_model._together import columns
from longterm.linear_model.path import cores
from longterm.linear_model.streaming import BudgetLinearLearner

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MASK = 2**64 - 1


class Sequences(NamedTuple):
    """What every learner has at the end, one row each."""

    loss: FloatArray
    """Σ f_t(x_t)."""
    signed_violation: FloatArray
    hard_violation: FloatArray
    weights: FloatArray
    """The decisions in force, (sequences, d)."""
    intercepts: FloatArray


def drawn_rows(seed: int, start: int, count: int, rows: int) -> NDArray[np.int64]:
    """The row numbers of rounds start + 1 … start + count: drawn with replacement, by splitmix64 of seed and round.

    A round's row is known without those before it, so nothing is stored or sent: a GPU draws the same where it needs
    it. All numbers of rows below 2³² come out evenly, to one part in 2³²/rows.
    """
    with np.errstate(over="ignore"):
        z = np.arange(start + 1, start + count + 1, dtype=np.uint64) + np.uint64((seed * GOLDEN + GOLDEN) & _MASK)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
        z = z ^ (z >> np.uint64(31))
        return (((z >> np.uint64(32)) * np.uint64(rows)) >> np.uint64(32)).astype(np.int64)


def random_sequences(
    X: Any,
    y: ArrayLike,
    *,
    budget: float,
    sequences: int,
    rounds: int | None = None,
    rule: str = "a-ogd",
    scales: str = "one",
    seed: int = 0,
    device: str = "cpu",
    dtype: str = "float32",
    **options: Any,
) -> Sequences:
    """Let the same learner learn so many sequences of rows drawn at random, each from the beginning.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The rows.
    y : array-like of shape (n,)
        Their labels, ±1, or targets.
    budget : float
        Of `BudgetLinearLearner`.
    sequences : int
        How many; sequence i is that of `drawn_rows` with the seed `seed` + i.
    rounds : int, optional
        T; as many as there are rows unless given.
    rule : {"a-ogd", "a-ftrl"}
        Others on the CPU only.
    scales : {"one", "mixed", "priced"}
        As `BudgetLinearLearner` has it, but "one" unless given; mixtures on the CPU only.
    seed : int
        The seed of the first sequence.
    device : {"cpu", "gpu"}
        "gpu" needs the extra `cuda`.
    dtype : {"float32", "float64"}
        On a GPU: of state and arithmetic; sums are float64 always.
    **options
        What else `BudgetLinearLearner` takes.

    Returns
    -------
    Sequences

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model.sequences import random_sequences
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> random_sequences(X, np.sign(X[:, 0]), budget=1.0, sequences=4, rounds=500).loss.round(0)
    array([258., 258., 268., 271.])
    """
    count, T = validate.count("sequences", sequences), len(np.asarray(y)) if rounds is None else rounds
    template = BudgetLinearLearner(X.shape[1], budget, rule=rule, scales=scales, **options)
    block = row_block(X, X.shape[1])
    labels = labels_for(y, block.count, template.settings.classifies)
    if device == "gpu":
        return _on_gpu(template, block, labels, count, validate.count("rounds", T), seed, dtype)
    if device != "cpu":
        raise InputError("device", f"{device!r} is not known", "Choose 'cpu' or 'gpu'")
    template.require(block, labels, np.empty(0))

    def one(number: int) -> tuple[Any, ...]:
        learner = BudgetLinearLearner(X.shape[1], budget, rule=rule, scales=scales, **options)
        learner.learn_checked(block, labels, order=drawn_rows(seed + number, 0, T, block.count))
        violations = learner.signed_violation, learner.hard_violation
        return learner.cumulative_loss, *violations, learner.weights, learner.intercept

    with ThreadPoolExecutor(cores()) as threads:
        made = list(threads.map(one, range(count)))
    return Sequences(*(np.array(column) for column in zip(*made, strict=True)))


def _on_gpu(
    template: BudgetLinearLearner, block: RowBlock, labels: FloatArray, count: int, rounds: int, seed: int, dtype: str
) -> Sequences:
    from longterm.linear_model.gpu import device

    settings, X = template.settings, block.rows
    if settings.rule not in ("a-ogd", "a-ftrl") or settings.scales != "one" or template._widens or isinstance(X, tuple):
        what = "sequences on a GPU are for dense rows, A-OGD and A-FTRL of one scale, and a known intercept_bound"
        raise InputError("device", what, "Use device='cpu', or give intercept_bound=")
    device.cupy()
    d = settings.dimension
    lanes, coordinates = device.lanes_for(d, count, dtype, 2 * device.FEW_THREADS)
    ftrl = settings.rule == "a-ftrl"
    kind = device.Kind(ftrl, settings.given is None, settings.code, device.DRAWN, True, dtype, lanes, coordinates)
    parameters = np.repeat(columns([template._rule.parameters]), count, axis=1)
    state = np.repeat(columns([template._rule.scalars]), count, axis=1)
    with ThreadPoolExecutor(1) as sender:  # rows are looked at while they are on their way
        sent = sender.submit(device.rows_on_device, X, labels, None, kind.width, dtype)
        template.require(block, labels, np.empty(0))
        rows = sent.result()
    seeds = np.arange(seed, seed + count, dtype=np.uint64)
    state, vectors, _, _ = device.play(kind, rows, parameters, state, np.zeros((count, d)), 1, rounds, seeds=seeds)
    field = {name: state[place] for place, name in enumerate(device.STATE_FIELDS)}
    x = vectors
    if ftrl:
        threshold = (field["multiplier_sum"] * settings.l1)[:, None]
        x = np.clip(vectors, -threshold, threshold) - vectors
    sums = field["loss_sum"], field["signed_violation"], field["hard_violation"]
    return Sequences(*sums, field["scale"][:, None] * x, field["intercept"])
