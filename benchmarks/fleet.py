"""Fleet updates per second, d = 10, beside the bare array update of the same rows.

A tenth of the fleet, drawn at random, gets a request in each call. "bare" is A-OGD's update written by hand on
arrays of exactly the rows that got one: no gathering, no scattering, no checks, no counters.

    python benchmarks/fleet.py
"""

from __future__ import annotations

import importlib.util
import statistics
import time

import numpy as np

from longterm import AOGD, Feedback, Fleet
from longterm.problems.sets import Ball
from longterm.theory.schedules import ConvexSchedule

DIMENSION = 10


def feedback(rng: np.random.Generator, rows: int) -> Feedback:
    gradient, normal = rng.standard_normal((2, rows, DIMENSION))
    gradient /= np.linalg.norm(gradient, axis=1, keepdims=True)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    return Feedback(gradient, rng.uniform(-1, 1, rows), normal)


def bare(
    x: np.ndarray, multiplier: np.ndarray, t: np.ndarray, beta: np.ndarray, told: Feedback
) -> tuple[np.ndarray, ...]:
    decay = t**beta
    theta, eta = 6 / decay, 1 / decay
    step = x - eta[:, None] * (told.loss_gradient + multiplier[:, None] * told.constraint_gradient)
    step /= np.maximum(np.sqrt(np.vecdot(step, step)), 1)[:, None]
    return step, np.maximum(multiplier + (told.constraint - theta * multiplier) / (theta * (t + 1)), 0)


def main() -> None:
    rng = np.random.default_rng(0)
    engines = ["numpy", *(["jax"] if importlib.util.find_spec("jax") else [])]
    print(f"fleet of A-OGD, d = {DIMENSION}, a tenth told per call: million updates per second, and time over bare")
    print(f"{'learners':>9}{'bare':>9}" + "".join(f"{engine:>11}{'ratio':>8}" for engine in engines))
    for size, calls in ((10**3, 200), (10**5, 30), (10**6, 7)):
        rows = size // 10
        beta = rng.uniform(0.4, 0.8, size)
        batches = [(rng.permutation(size)[:rows], feedback(rng, rows)) for _ in range(calls)]
        fleets = {e: Fleet(AOGD(Ball(DIMENSION), ConvexSchedule(2.0, 1.0, beta)), size, engine=e) for e in engines}
        x, multiplier, t = np.zeros((rows, DIMENSION)), np.zeros(rows), np.ones(rows)
        times: dict[str, list[float]] = {name: [] for name in ("bare", *engines)}
        for engine in engines:  # what has to be compiled is compiled before
            fleets[engine].tell(batches[0][1], batches[0][0])
        for numbers, told in batches:
            begin = time.perf_counter()
            x, multiplier = bare(x, multiplier, t, beta[:rows], told)
            times["bare"].append(time.perf_counter() - begin)
            for engine in engines:
                begin = time.perf_counter()
                fleets[engine].tell(told, numbers)
                _ = fleets[engine].ask([0])  # waits for what runs in the background
                times[engine].append(time.perf_counter() - begin)
        median = {name: statistics.median(seconds) for name, seconds in times.items()}
        line = f"{size:>9}{rows / median['bare'] / 1e6:>9.1f}"
        for engine in engines:
            line += f"{rows / median[engine] / 1e6:>11.2f}{median[engine] / median['bare']:>8.1f}"
        print(line)


if __name__ == "__main__":
    main()
