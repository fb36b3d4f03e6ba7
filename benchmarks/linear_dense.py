"""Part (a) of benchmarks/linear.py: dense rows. covtype, every row once, in file order and in a random order.

Against a C loop of A-FTRL with one radius (`linear_floor.c`), scikit-learn's SGDClassifier on the same rows (it draws
its random order itself), and on fewer rows, because they take long, River and Vowpal Wabbit. Rows are made into what
these two want beforehand; only learning is timed.
"""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from linear_timing import Line, data_set, nanoseconds, ratio
from longterm.linear_model._settings import Settings
from longterm.linear_model.kernels.kernel_state import KernelState
from longterm.linear_model.kernels.layout import WEIGHTS, Parameters

BUDGET, REPEATS, FEW, PART = 6.987, 9, 3000, 2048
NO_ORDER = np.empty(0, dtype=np.int64)
COMPILE = ("-O3", "-march=native", "-ffast-math", "-shared", "-fPIC")


@cache
def floor() -> Any:
    """Compile and load the C loops."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("benchmarks/linear.py needs a C compiler called cc")
    with tempfile.TemporaryDirectory() as folder:
        library, source = Path(folder) / "floor.so", Path(__file__).with_name("linear_floor.c")
        subprocess.run([compiler, *COMPILE, str(source), "-o", str(library), "-lm"], check=True)
        return ctypes.CDLL(str(library))


def in_c(p: Parameters, rows: Any, labels: Any, order: Any) -> tuple[Any, Any]:
    """Return the vector and the numbers after all rounds."""
    vector, numbers = np.zeros(rows.shape[1]), np.zeros(6)
    n, d = len(order) or len(rows), rows.shape[1]
    pointers = [ctypes.c_void_p(a.ctypes.data if len(a) else None) for a in (rows, order, labels)]
    constants = [ctypes.c_double(c) for c in (p.budget, p.radius, p.theta_0, p.beta)]
    floor().aftrl(
        *pointers,
        ctypes.c_ssize_t(n),
        ctypes.c_ssize_t(d),
        *constants,
        ctypes.c_void_p(vector.ctypes.data),
        ctypes.c_void_p(numbers.ctypes.data),
    )
    return vector, numbers


def ours(p: Parameters, rows: Any, labels: Any, order: Any, *, one_scale: bool = False) -> KernelState:
    """Return the state after all rounds, without the checks and the average of a learner, as in C.

    Rows in another order than theirs are gathered in parts. With `one_scale` the mixture has the largest radius alone,
    which is the rule of the C loop.
    """
    state = KernelState("a-ftrl", rows.shape[1], sparse=False)
    state.use(p)
    if one_scale:
        mixture, state.scalars["first_length"] = state.mixture(WEIGHTS), 1.0
        mixture.prior[:], mixture.share[:] = -np.inf, 0.0
        mixture.prior[0], mixture.share[0] = 0.0, 1.0
    weights, margins = np.ones(len(rows)), np.empty(len(rows))
    if not len(order):
        state.learn(rows, labels, weights, margins)
        return state
    for start in range(0, len(order), PART):
        chosen = order[start : start + PART]
        state.learn(np.take(rows, chosen, axis=0), labels[chosen], weights[: len(chosen)], margins[: len(chosen)])
    return state


def scikit_learn(rows: Any, labels: Any, *, shuffle: bool, l1_ratio: float = 0.5) -> Callable[[], object]:
    """Return one pass of SGDClassifier with its default alpha; with l1_ratio 0 its default penalty, ℓ2."""
    from sklearn.linear_model import SGDClassifier

    def work() -> object:
        penalty = "elasticnet" if l1_ratio else "l2"
        model = SGDClassifier(loss="log_loss", penalty=penalty, l1_ratio=l1_ratio, shuffle=shuffle, random_state=0)
        return model.partial_fit(rows, labels, classes=[-1.0, 1.0])

    return work


def river(rows: Any, labels: Any) -> Callable[[], object]:
    """Return one pass of River's logistic regression over dictionaries."""
    from river import linear_model, optim

    given = [(dict(enumerate(row.tolist())), bool(label > 0)) for row, label in zip(rows, labels, strict=True)]

    def work() -> object:
        model = linear_model.LogisticRegression(optim.SGD(0.01), l1=1e-4)
        for row, label in given:
            model.predict_proba_one(row)
            model.learn_one(row, label)
        return model

    return work


def vowpal_wabbit(rows: Any, labels: Any) -> Callable[[], object]:
    """Return one pass of Vowpal Wabbit over parsed examples."""
    from vowpalwabbit import Workspace

    model = Workspace("--quiet --loss_function logistic --l1 1e-6 --l2 1e-6 --noconstant")
    lines = [
        f"{int(label)} | " + " ".join(f"{j}:{value:.9g}" for j, value in enumerate(row) if value)
        for row, label in zip(rows, labels, strict=True)
    ]
    examples = [model.example(line) for line in lines]

    def work() -> object:
        for example in examples:
            model.learn(example)
        return model

    return work


def measure() -> Iterator[Line]:
    """Yield the lines of this part."""
    data = data_set("covtype")
    rows, labels = data.features, data.labels
    p = Settings(rows.shape[1], BUDGET).parameters()
    shuffled = np.random.default_rng(0).permutation(len(rows))
    yield from default_model(rows, labels)
    for setting, order in (("covtype, file order", NO_ORDER), ("covtype, random order", shuffled)):
        given = (p, rows, labels, order)
        require_same(*given)
        contestants: dict[str, tuple[Callable[[], object], int]] = {
            "A-FTRL in C": (lambda given=given: in_c(*given), len(rows)),
            "A-FTRL": (lambda given=given: ours(*given), len(rows)),
            "SGDClassifier": (scikit_learn(rows, labels, shuffle=len(order) > 0), len(rows)),
        }
        some = (order if len(order) else np.arange(len(rows)))[:FEW]
        peers = {"River": ("river", river), "Vowpal Wabbit": ("vowpalwabbit", vowpal_wabbit)}
        slow = {
            name: (prepare(rows[some], labels[some]), FEW)
            for name, (module, prepare) in peers.items()
            if importlib.util.find_spec(module) is not None
        }
        times = nanoseconds(contestants, REPEATS) | nanoseconds(slow, 3)
        for name in times:
            remark = ""
            if name == "A-FTRL":
                to_c, faster = ratio(times, name, f"{name} in C"), ratio(times, "SGDClassifier", name)
                remark = f"{to_c:.2f} × C of one radius (goals 1.3 and 1.7), {faster:.1f} × faster than SGD"
            yield Line(setting, name, statistics.median(times[name]), remark=remark)
        for name in peers.keys() - slow.keys():
            yield Line(setting, name, float("nan"), remark="not installed")


def default_model(rows: Any, labels: Any) -> Iterator[Line]:
    """Yield the lines of `BudgetLinearClassifier().partial_fit`, default settings, beside SGDClassifier."""
    from longterm.linear_model import BudgetLinearClassifier

    def work() -> object:
        return BudgetLinearClassifier().partial_fit(rows, labels, classes=[-1.0, 1.0])

    contestants: dict[str, tuple[Callable[[], object], int]] = {
        "BudgetLinearClassifier": (work, len(rows)),
        "SGDClassifier": (scikit_learn(rows, labels, shuffle=True), len(rows)),
        "SGDClassifier, l2": (scikit_learn(rows, labels, shuffle=True, l1_ratio=0.0), len(rows)),
    }
    times = nanoseconds(contestants, REPEATS, time.thread_time)
    faster = [ratio(times, name, "BudgetLinearClassifier") for name in ("SGDClassifier, l2", "SGDClassifier")]
    remark = f"{faster[0]:.2f} × faster than SGD with ℓ2 (goal 1.6), {faster[1]:.2f} × with an elastic net"
    for name, found in times.items():
        yield Line("covtype, partial_fit", name, statistics.median(found), remark=remark if name[0] == "B" else "")


def require_same(p: Parameters, rows: Any, labels: Any, order: Any) -> None:
    """Raise AssertionError unless both loops compute the same numbers."""
    rows, labels = (rows[:5000], labels[:5000]) if not len(order) else (rows, labels)
    mine = ours(p, rows, labels, order[:5000], one_scale=True)
    vector, numbers = in_c(p, rows, labels, order[:5000])
    assert np.allclose(mine.z, vector, rtol=1e-8, atol=1e-8), "the two loops compute different things"
    names = ("loss_sum", "signed_violation", "hard_violation", "squared_violation")
    assert np.allclose([mine.number(name) for name in names], numbers[:4], rtol=1e-8), "they compute different sums"
