"""Forged snapshots with valid checksums: each is refused with a SnapshotError, or can be played on.

    python tests/storage/fuzz_snapshots.py [count] [seed]

Valid files of every kind are changed in one to three places, their checksums are made anew, and they are loaded under a
limit on the memory. What loads plays 1,000 rounds, or as many as FUZZ_ROUNDS says. Run in a process of its own: a crash
is found by who started it, and the file that did it is left behind.
"""

import json
import math
import os
import resource
import signal
import struct
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from hashlib import sha256
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import ClassifierMixin

from longterm import AOGD, Feedback, Fleet
from longterm.errors import LongtermError, SnapshotError
from longterm.linear_model import (
    BudgetLinearClassifier,
    BudgetLinearLearner,
    BudgetLinearRegressor,
    EvolvingLinearLearner,
)
from longterm.problems import two_dimensional
from longterm.storage.packing import DTYPES
from longterm.storage.snapshot import MAGIC

PRELUDE, LENGTH = struct.Struct("<8sIQ"), struct.Struct("<I")
ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "1000"))
SPARE = 512 * 2**20
"""Bytes that loading and playing may take beyond what the imports took."""
SECONDS = 120
"""A file that takes longer is taken to hang."""
PROBLEM = two_dimensional()


def rows(d, regression):
    rng = np.random.default_rng(d)
    X = rng.standard_normal((ROUNDS, d)) * (rng.random((ROUNDS, d)) < 0.5)
    signal = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(ROUNDS)
    return X, signal if regression else np.where(signal > 0, 1.0, -1.0)


class Linear:
    """A linear learner of this rule, dense or sparse, of one scale or of many."""

    def __init__(self, rule, d, sparse=False, regression=False, budget=1.0, **more):
        self.regression = regression
        self.loss = "squared" if regression else "logistic"
        self.fresh = lambda: BudgetLinearLearner(d, budget, rule=rule, sparse=sparse, loss=self.loss, **more)
        self.X, self.y = rows(d, regression)
        self.S = csr_array(self.X) if sparse else self.X

    def save(self, path, played):
        learner = self.fresh()
        if played:
            learner.learn(self.S[:played], self.y[:played])
        learner.save(path)

    def play(self, path):
        learner = BudgetLinearLearner.load(path)
        X, y = self.S, self.y
        if learner.settings.dimension != X.shape[1] or learner.settings.classifies == self.regression:
            X, y = rows(max(learner.settings.dimension, 2), not learner.settings.classifies)
            X = X[:, : learner.settings.dimension]
        learner.learn(X[: ROUNDS // 2], y[: ROUNDS // 2])
        for i in range(ROUNDS // 2, ROUNDS // 2 + 50):
            (columns,) = np.nonzero(self.X[i]) if X is self.S else np.nonzero(X[i])
            learner.step(columns, (self.X if X is self.S else X)[i][columns], y[i])
        learner.learn(X[ROUNDS // 2 + 50 :], y[ROUNDS // 2 + 50 :])
        finite(learner.weights, learner.intercept, *learner.average(), learner.multiplier)
        assert 0 <= learner.nonzeros <= learner.settings.dimension


class Rows:
    """A fleet."""

    def save(self, path, played):
        fleet = Fleet(AOGD.for_problem(PROBLEM), 3)
        self.rounds(fleet, played)
        fleet.save(path)

    def rounds(self, fleet, count):
        for i in range(count):
            few = None if i % 3 else [i % fleet.size]
            n = fleet.size if few is None else 1
            told = np.tile([0.1 * math.cos(i), 0.1], (n, 1)), np.full(n, 0.1 * math.sin(i)), np.full((n, 2), 0.1)
            fleet.tell(Feedback(*told), rows=few)

    def play(self, path):
        fleet = Fleet.load(path, AOGD.for_problem(PROBLEM))
        self.rounds(fleet, ROUNDS)
        finite(fleet.ask())


class Fits:
    """An estimator."""

    def __init__(self, make, labels):
        self.make = make
        self.X, y = rows(5, True)
        self.y = labels(y)

    def save(self, path, played):
        made, count = self.make(), played or 5
        more = {"classes": np.unique(self.y)} if isinstance(made, ClassifierMixin) else {}
        made.partial_fit(self.X[:count], self.y[:count], **more).save(path)

    def play(self, path):
        made = type(self.make()).load(path)
        X = np.resize(self.X, (ROUNDS, made.n_features_in_))
        classifies = isinstance(made, ClassifierMixin)
        made.partial_fit(X, np.resize(made.classes_, ROUNDS) if classifies else self.y)
        finite(made.decision_function(X[:50]) if classifies else made.predict(X[:50]))


class Evolves:
    """A learner that skips."""

    X, y = rows(5, False)

    def save(self, path, played):
        learner = EvolvingLinearLearner(5, 1.0, half_life=100.0)
        if played:
            learner.learn(self.X[:played], self.y[:played])
        learner.save(path)

    def play(self, path):
        learner = EvolvingLinearLearner.load(path)
        X, y = rows(max(learner.settings.dimension, 2), not learner.settings.classifies)
        X = X[:, : learner.settings.dimension]
        learner.learn(X, y)
        finite(learner.margins(X[:50]), learner.weights, learner.multiplier)


def two(y):
    return np.where(y > 0, 1, -1)


KINDS = {
    "a-ftrl": Linear("a-ftrl", 6),
    "a-ftrl, regression": Linear("a-ftrl", 5, regression=True),
    "a-ftrl, within a bound": Linear("a-ftrl", 6, intercept_bound=1.0),
    "penalised-ftrl": Linear("penalised-ftrl", 6, max_features=2),
    "scaled": Linear("a-ftrl", 6, scale_features=True),
    "scaled, sparse": Linear("a-ftrl", 40, sparse=True, scale_features=True),
    "sparse": Linear("a-ftrl", 40, sparse=True, budget=0.02),  # it binds, so there is a heap
    "sparse, regression": Linear("a-ftrl", 12, sparse=True, regression=True),
    "fleet": Rows(),
    "evolving": Evolves(),
    "classifier": Fits(lambda: BudgetLinearClassifier(budget=5.0), two),
    "regressor": Fits(lambda: BudgetLinearRegressor(budget=5.0), lambda y: y),
}


CHOSEN = [name for name, kind in KINDS.items() for _ in range(3 if isinstance(kind, Linear) else 1)]
"""Linear models have the most to break, and play the fastest."""


def finite(*values):
    for value in values:
        assert np.isfinite(value).all(), f"{value} is not finite"


# --- taking apart, changing, putting together ---------------------------------------------------------------


def taken_apart(data):
    body = data[PRELUDE.size : -32]
    (length,) = LENGTH.unpack_from(body)
    header = json.loads(body[4 : 4 + length])
    parts, start = [], 4 + length
    for name, dtype, shape in header["arrays"]:
        size = math.prod(shape or ()) * np.dtype(dtype).itemsize
        parts.append([name, dtype, shape, body[start : start + size]])
        start += size
    return {key: value for key, value in header.items() if key != "arrays"}, parts


def put_together(header, parts, layout=1):
    text = json.dumps(header | {"arrays": [part[:3] for part in parts]}).encode()
    body = LENGTH.pack(len(text)) + text + b"".join(part[3] for part in parts)
    return sealed(PRELUDE.pack(MAGIC, layout, PRELUDE.size + len(body) + 32) + body)


def sealed(data):
    return data + sha256(data).digest()


NUMBERS = [0, 1, -1, 2, 7, 63, 64, 1000, 2**31, 2_000_000_000, 2**53, 2**62, 2**63 - 1, -(2**63), 10**30]
JSON = [None, True, False, "", "a-ftrl", "a-ogd", "squared", "huber", "\ud800", [], {}, [1], {"a": 1}, 1.5, -0.0, 1e308]
JSON += [math.nan, math.inf, 1e-320, *NUMBERS]
FLOATS = [0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 1e-320, 1e160, 1e-165, 1e15]


def pick(rng, options):
    return options[int(rng.integers(len(options)))]


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def known(dtype):
    """The dtype, or bytes where an earlier change made it none."""
    return np.dtype(dtype if dtype in DTYPES else "|u1")


def change_header(rng, header, parts):
    path = pick(rng, [p for p in places(header) if p])
    holder = header
    for key in path[:-1]:
        holder = holder[key]
    how, old = rng.integers(4), holder[path[-1]]
    if how == 0:
        del holder[path[-1]]
    elif how == 1 and isinstance(old, int | float) and not isinstance(old, bool):
        holder[path[-1]] = old + pick(rng, [1, -1, 2**20]) if rng.random() < 0.5 else old * pick(rng, [-1, 2, 0.5])
    else:
        holder[path[-1]] = pick(rng, JSON)


def change_number(rng, header, parts):
    part = pick(rng, [p for p in parts if p[3]] or parts)
    dtype, data = known(part[1]), bytearray(part[3])
    if len(data) < dtype.itemsize:
        return
    place, how = int(rng.integers(len(data) // dtype.itemsize)) * dtype.itemsize, rng.integers(4)
    if how == 0:
        at = place + int(rng.integers(dtype.itemsize))
        data[at] ^= 1 << int(rng.integers(8))
    elif how == 1:
        other = int(rng.integers(len(data) // dtype.itemsize)) * dtype.itemsize
        here, there = data[place : place + dtype.itemsize], data[other : other + dtype.itemsize]
        data[place : place + dtype.itemsize], data[other : other + dtype.itemsize] = there, here
    elif how == 2:
        old = np.frombuffer(bytes(data), dtype=dtype)[place // dtype.itemsize]
        with np.errstate(all="ignore"):
            data[place : place + dtype.itemsize] = (old + dtype.type(pick(rng, [1, 2]))).astype(dtype).tobytes()
    else:
        value = pick(rng, FLOATS) if dtype.kind == "f" else pick(rng, NUMBERS) % 2 ** (8 * dtype.itemsize)
        with np.errstate(all="ignore"):
            made = np.array([value], dtype=dtype if dtype.kind == "f" else f"<u{dtype.itemsize}")
        data[place : place + dtype.itemsize] = made.tobytes()
    part[3] = bytes(data)


def change_entry(rng, header, parts):
    place = int(rng.integers(len(parts)))
    name, dtype, shape, data = parts[place]
    size, how = known(dtype).itemsize, rng.integers(8)
    if how == 0:
        del parts[place]
    elif how == 1:
        parts.insert(place, [pick(rng, ["state.heap", "state.x", "other", name]), dtype, shape, data])
    elif how == 2:
        parts[place][1] = pick(rng, [*sorted(DTYPES), "<f2", "|O", ">f8", "<c16", "<U4", "x"])
    elif how == 3:
        parts[place][2] = pick(
            rng, [None, [], [1], [0], [2**62, 0], [0, 2**40], [-1], [1.0], 3, [[1]], [2**64], [1] * 40]
        )
    elif how == 4:
        count = len(data) // size + pick(rng, [1, 2, 50])
        parts[place][2:] = [[count], (data + bytes(size * 60))[: count * size]]
    elif how == 5 and len(data) >= size:
        parts[place][2:] = [[len(data) // size - 1], data[:-size]]
    elif how == 6:
        parts[place][2] = [len(data) // size, 1]
    else:
        other = pick(rng, parts)
        parts[place][3], other[3] = other[3], parts[place][3]


def forged(rng, data):
    """Another file, its checksum valid."""
    if rng.random() < 0.05:  # any byte, the layout's version and the length too
        raw = bytearray(data[:-32])
        raw[int(rng.integers(8, min(len(raw), 400)))] = int(rng.integers(256))
        return sealed(bytes(raw))
    if rng.random() < 0.005:
        return sealed(data[: int(rng.integers(8, len(data) - 32))])
    header, parts = taken_apart(data)
    for _ in range(pick(rng, [1, 1, 1, 2, 3])):
        how = pick(rng, [change_header, change_number, change_number, change_number, change_entry])
        if parts and header:
            how(rng, header, parts)
    return put_together(header, parts)


# --- the run ------------------------------------------------------------------------------------------------


def limit_memory():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    used = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE, used + SPARE))


STOPPED = []


def stop(*_):
    STOPPED.append(True)


def hangs(*_):
    raise TimeoutError("it hangs")


def main(count, seed):
    warnings.simplefilter("error")
    rng = np.random.default_rng(seed)
    tally, wrong = Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forged"
        bases = {}
        for name, kind in KINDS.items():
            for played in (0, 60, ROUNDS):
                kind.save(path, played)
                bases[name, played] = path.read_bytes()
                kind.play(path)  # as it is, it loads and goes on; and every kernel is compiled before memory is limited
        limit_memory()
        signal.signal(signal.SIGALRM, hangs)
        left = Path(tempfile.gettempdir()) / f"longterm-forged-{seed}-{os.getpid()}"
        signal.signal(signal.SIGTERM, stop)  # what was done until then is shown
        for number in range(count):
            if STOPPED:
                break
            name = pick(rng, CHOSEN)
            data = forged(rng, bases[name, pick(rng, [0, 60, ROUNDS])])
            path.write_bytes(data)
            left.write_bytes(data)
            signal.alarm(SECONDS)
            try:
                with warnings.catch_warnings():
                    KINDS[name].play(path)
                outcome = "played"
            except SnapshotError as error:
                outcome = f"refused ({error.reason})"
                str(error).encode()
            except LongtermError as error:
                outcome = f"a round was refused ({type(error).__name__})"
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                outcome = f"WRONG: {type(error).__name__}"
                keep = left.with_name(f"{left.name}-{number}")
                keep.write_bytes(data)
                wrong.append(f"{name}, {keep}: {traceback.format_exc(limit=-3)}")
            signal.alarm(0)
            tally[f"{name}: {outcome}"] += 1
        left.unlink()
    for outcome, times in sorted(tally.items()):
        sys.stdout.write(f"{times:8d}  {outcome}\n")
    sys.stdout.write(f"{tally.total():8d}  files, {len(wrong)} wrong\n")
    sys.stdout.write("".join(f"{one}\n" for one in wrong[:20]))
    return 1 if wrong else 0


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*arguments[:1] or [3000], *arguments[1:2] or [0]))
