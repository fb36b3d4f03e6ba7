"""Measure fleets and streams on a GPU: `make bench-gpu`.

    python benchmarks/scale_gpu.py [by-hand | gpu.json]

"by-hand" measures fleets beside plain JAX with the same checks, and nothing else.
With a file name, the points of the figure are written there (benchmarks/draw_costs.py).
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LEARNERS, DIMENSION = 1_000_000, 64


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the median time, after one call that compiles."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def by_hand(beta: float, bound: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return A-OGD on a unit ball as a JAX user writes it, for all rows and for some, with the checks of a fleet.

    The checks: gradients within their bound, finite numbers in the feedback and in the new state, distinct rows. A
    refused call changes no row. The state is donated.
    """
    import jax
    from jax import numpy as jnp

    def update(rows: Any, told: Any) -> tuple[Any, Any]:
        x, multiplier, t, signed, hard = rows
        loss_gradient, constraint, constraint_gradient = told
        decay = t.astype(x.dtype) ** x.dtype.type(beta)
        theta, eta = 6 * bound / decay, 1 / (bound * decay)  # the diameter is 2
        mu = 1 / (theta * (t + 1).astype(x.dtype))
        step = x - eta[:, None] * (loss_gradient + multiplier[:, None] * constraint_gradient)
        step = step / jnp.maximum(jnp.sqrt(jnp.vecdot(step, step)), 1)[:, None]
        raised = jnp.maximum(multiplier + mu * (constraint - theta * multiplier), 0)
        worst = constraint.astype(signed.dtype)
        new = step, raised, t + 1, signed + worst, hard + jnp.maximum(worst, 0)
        largest = x.dtype.type(bound**2 * (1 + 1e-6))
        within = [jnp.vecdot(g, g) <= largest for g in (loss_gradient, constraint_gradient)]
        good = [*within, jnp.isfinite(constraint), jnp.isfinite(step), jnp.isfinite(raised)]
        return new, jnp.all(jnp.stack([jnp.all(one) for one in good]))

    def tell_all(rows: Any, told: Any) -> tuple[Any, Any]:
        new, good = update(rows, told)
        return jax.tree.map(lambda fresh, old: jnp.where(good, fresh, old), new, rows), good

    def tell_some(rows: Any, told: Any, numbers: Any) -> tuple[Any, Any]:
        size = len(rows[0])
        new, good = update(tuple(field[numbers] for field in rows), told)
        counts = jnp.zeros(size, jnp.int32).at[numbers].add(1, mode="drop")
        good &= jnp.all((numbers >= 0) & (numbers < size)) & jnp.all(counts <= 1)
        places = jnp.where(good, numbers, size)
        put = [f.at[places].set(v, mode="drop", unique_indices=True) for f, v in zip(rows, new, strict=True)]
        return tuple(put), good

    return jax.jit(tell_all, donate_argnums=0), jax.jit(tell_some, donate_argnums=0)


def beside_by_hand() -> None:
    """Compare a fleet with the same update and checks by hand: medians of rounds that take turns."""
    import jax
    from jax import numpy as jnp

    from longterm import AOGD, Feedback, Fleet
    from longterm.problems.sets import Ball
    from longterm.theory.schedules import ConvexSchedule

    calls = 200
    for learners in (1000, LEARNERS):
        fleet = Fleet(
            AOGD(Ball(DIMENSION), ConvexSchedule(2.0, 10.0, beta=2 / 3)), learners, dtype=np.float32, engine="jax"
        )
        keys = jax.random.split(jax.random.key(0), 3)
        gradients = [0.1 * jax.random.normal(key, (learners, DIMENSION), jnp.float32) for key in keys[:2]]
        all_told = gradients[0], jax.random.normal(keys[2], (learners,), jnp.float32), gradients[1]
        some_told = tuple(array[: learners // 10] for array in all_told)
        who = jnp.asarray(np.random.default_rng(0).permutation(learners)[: learners // 10].astype(np.int32))
        whole, some = by_hand(2 / 3, 10.0)
        with jax.enable_x64(True):
            zeros = [jnp.zeros(learners, jnp.float64) for _ in range(2)]
            start = jnp.zeros((learners, DIMENSION), jnp.float32), jnp.zeros(learners, jnp.float32)
            rows = [(*start, jnp.ones(learners, jnp.int64), *zeros)]

        def hand(told: Any, numbers: Any, wait: bool, rows: Any = rows, whole: Any = whole, some: Any = some) -> None:
            with jax.enable_x64(True):
                for _ in range(calls):
                    rows[0], good = whole(rows[0], told) if numbers is None else some(rows[0], told, numbers)
                    if wait:
                        assert good
                jax.block_until_ready(rows[0])

        def ours(told: Any, numbers: Any, wait: bool, fleet: Any = fleet) -> None:
            feedback = Feedback(*told)
            for _ in range(calls):
                fleet.tell(feedback, numbers, wait=wait)
            fleet.check()

        for name, told, numbers in (("all", all_told, None), ("a random tenth", some_told, who)):
            for wait in (False, True):
                times: dict[Any, list[float]] = {hand: [], ours: []}
                for turn in range(6):
                    for work, taken in times.items():
                        begin = time.perf_counter()
                        work(told, numbers, wait)
                        if turn:  # the first one compiles
                            taken.append((time.perf_counter() - begin) / calls)
                by, own = (1e3 * statistics.median(times[work]) for work in (hand, ours))
                how = "each answer waited for" if wait else "answers read later"
                print(
                    f"{learners} learners, {name}, {how}: {own:.3f} ms, by hand {by:.3f}, {own / by:.2f} ×", flush=True
                )
        assert np.allclose(fleet.ask(), np.asarray(rows[0][0]), atol=1e-4), "by hand is another update"


POINTS: list[dict[str, Any]] = []


def fleets() -> None:
    """Measure whole fleets and random tenths against the number of learners; the floor is a copy of the same bytes."""
    import jax
    from jax import numpy as jnp

    from longterm import AOGD, Feedback, Fleet
    from longterm.problems.sets import Ball
    from longterm.theory.schedules import ConvexSchedule

    learner = AOGD(Ball(DIMENSION), ConvexSchedule(2.0, 10.0, beta=2 / 3))
    panel = f"GPU: time of a fleet's call, ms, d = {DIMENSION}, against learners"
    for learners in (10_000, 100_000, LEARNERS):
        fleet = Fleet(learner, learners, dtype=np.float32, engine="jax")
        keys = jax.random.split(jax.random.key(0), 3)
        gradients = [0.1 * jax.random.normal(key, (learners, DIMENSION), jnp.float32) for key in keys[:2]]
        told = Feedback(gradients[0], jax.random.normal(keys[2], (learners,), jnp.float32), gradients[1])
        few = learners // 10
        who = jnp.asarray(np.random.default_rng(0).permutation(learners)[:few].astype(np.int32))
        some = Feedback(*(array[:few] for array in told[:3]))
        for name, count, feedback, numbers in (("all", learners, told, None), ("a random tenth", few, some, who)):
            for wait in (True, False):
                calls = 50 if wait else 400

                def work(
                    calls: int = calls,
                    fleet: Any = fleet,
                    feedback: Any = feedback,
                    numbers: Any = numbers,
                    wait: bool = wait,
                ) -> None:
                    for _ in range(calls):
                        fleet.tell(feedback, numbers, wait=wait)
                    fleet.check()

                taken = seconds(work) / calls
                how, rate = "each answer waited for" if wait else "answers read later", count / taken / 1e9
                what = f"fleet of {learners}, d = {DIMENSION}, {name}, {how}"
                print(f"{what}: {1e3 * taken:.3f} ms a call, {rate:.2f} G/s (goals 3, 1)", flush=True)
                POINTS.append({"panel": panel, "curve": f"{name}, {how}", "x": learners, "y": 1e3 * taken})
        added = jax.jit(lambda a, b, c: a + b + c)  # reads three arrays and writes one, as a round must

        def floor(added: Any = added, a: Any = gradients[0], b: Any = gradients[1]) -> None:
            for _ in range(50):
                made = added(a, b, a)
            made.block_until_ready()

        taken = seconds(floor) / 50
        print(f"three reads and a write of {learners} rows: {1e3 * taken:.3f} ms", flush=True)
        POINTS.append({"panel": panel, "curve": "floor: three reads, a write", "x": learners, "y": 1e3 * taken})


def streams() -> None:
    """Measure runs whose rounds are drawn on the device against the number of seeds."""
    from longterm import AOGD, run
    from longterm.problems import doubly_stochastic
    from longterm.problems.streams import RandomPermutations

    problem, rounds = doubly_stochastic(8), 2000
    learner, stream = AOGD.for_problem(problem), RandomPermutations(8)
    for count in (1, 100, 1000, 10_000):
        seeds: Any = range(count) if count > 1 else 0
        taken = seconds(
            lambda seeds=seeds: run(problem, learner, stream, rounds, seeds=seeds, engine="jax", progress=None)
        )
        print(
            f"doubly-stochastic p = 8, {count} seeds: {1e6 * taken / rounds:.1f} µs a round (goal 30 at 1000)",
            flush=True,
        )
        panel = "GPU: time of a round of run(engine='jax'), µs, against seeds"
        POINTS.append({"panel": panel, "curve": "doubly stochastic, p = 8", "x": count, "y": 1e6 * taken / rounds})
    for record, what in ((None, "the rounds recorded by default"), ([20_000], "the last recorded")):
        options: Any = {"seeds": range(1000), "engine": "jax", "progress": None, "record": record}
        taken = seconds(lambda options=options: run(problem, learner, stream, 20_000, **options), 1)
        print(f"1000 seeds, 20,000 rounds, {what}: {1e6 * taken / 20_000:.1f} µs a round (goal 30)", flush=True)
    few = {"seeds": range(20), "progress": None}
    here, there = run(problem, learner, stream, 200, **few), run(problem, learner, stream, 200, engine="jax", **few)
    print(f"differs from NumPy's by {np.abs(here.cumulative_loss - there.cumulative_loss).max():.1e}")


def main() -> None:
    beside_by_hand()
    if "by-hand" in sys.argv:
        return
    fleets()
    streams()
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps({"points": POINTS}, indent=1))


if __name__ == "__main__":
    main()
