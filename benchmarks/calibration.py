"""Coverage and sharpness of calibration rules on real series, beside the peers that are installed.

    make bench-calibration

Needs the folder `conformal` of LONGTERM_DATA. Cells: |marginal error| % / worst group % / worst 500-window % / pinball
loss relative to the default rule / longest run of misses.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from longterm.calibration import Calibration, published

ALPHA, BURN = 0.1, 100
DATA = Path(os.environ.get("LONGTERM_DATA", "../shared/data")) / "conformal"


def electricity():
    """Return scores and groups of ELEC2's demand with four forecasts."""
    table = pd.read_csv(DATA / "cts" / "elec2-first-2000.csv")
    y = table["nswdemand"].to_numpy()
    block = np.round(47 * table["period"].to_numpy()).astype(int) // 8
    groups = np.column_stack([np.ones(len(y)), *one_hot(table["day"]), *one_hot(block)])
    for name in ("ar", "prophet", "theta", "transformer"):
        forecast = np.load(DATA / "cts" / f"elec2_{name}.npz")["forecasts"]
        yield f"elec2 {name}", np.abs(y - forecast)[100:], groups[100:]


def climate():
    """Return scores and groups of Delhi's daily temperature with four forecasts."""
    table = pd.read_csv(DATA / "cts" / "daily-climate.csv", parse_dates=["date"])
    y, date = table["meantemp"].to_numpy(), table["date"].dt
    groups = np.column_stack(
        [np.ones(len(y)), *one_hot(date.quarter), *one_hot(date.month), *one_hot(date.day_of_week)]
    )
    for name in ("ar", "prophet", "theta", "transformer"):
        forecast = np.load(DATA / "cts" / f"daily-climate_{name}.npz")["forecasts"]
        start = int(np.flatnonzero(forecast)[0]) + 5
        yield f"climate {name}", np.abs(y - forecast)[start:], groups[start:]


def stocks():
    """Return conformity scores and 45 groups of seven stocks."""
    for path in sorted((DATA / "stocks").glob("*.csv.xz")):
        table = pd.read_csv(path).sort_values("date").reset_index(drop=True)
        table = table.iloc[int(np.argmax(table["is_monday"].to_numpy() == 1)) :]
        columns = [c for c in table.columns if c.startswith("is_")]
        n = np.arange(len(table))
        groups = np.column_stack(
            [np.ones(len(n)), table[columns].to_numpy(), *[(n % m == 0).astype(float) for m in range(2, 21)]]
        )
        yield f"stock {path.name.split('.')[0]}", table["conformity_score"].to_numpy(), groups


def drift(rounds=10_000, seed=0):
    """Return scores whose scale jumps, with 300 rounds of zeros and five overlapping groups."""
    rng = np.random.default_rng(seed)
    t = np.arange(rounds)
    scale = np.where(t < 2000, 1.0, np.where(t < 4000, 10.0, np.where(t < 6000, 0.1, 1 + 0.9 * np.sin(t / 60))))
    c = (rng.random((rounds, 5)) < [0.5, 0.3, 0.2, 0.1, 0.03]).astype(float)
    scores = np.abs(rng.standard_t(3, rounds)) * scale * (1 + c[:, 0] + 2 * c[:, 3] + 3 * c[:, 4])
    scores[8000:8300] = 0.0
    yield "drift", scores, np.column_stack([np.ones(rounds), c])


def blocks(rounds=10_000, seed=0):
    """Return blocks of doubling length with large scores and small ones in turn."""
    rng, scores, size, length = np.random.default_rng(seed), [], 1.0, 1
    while len(scores) < rounds:
        scores += [*(size * (1 + 0.01 * rng.random(length))), *(0.01 * size * rng.random(length))]
        size, length = 3 * size, 2 * length
    t = np.arange(rounds)
    yield (
        "blocks",
        np.array(scores[:rounds]),
        np.column_stack([t >= 0, t % 2 == 0, t % 3 == 0, t % 7 == 0]).astype(float),
    )


def one_hot(values):
    """Return one 0/1 column per value."""
    values = np.asarray(values)
    return [(values == v).astype(float) for v in np.unique(values)]


def play(rule, scores, groups, alpha=ALPHA):
    """Return the thresholds of a rule over a series and the seconds per round."""
    state, thresholds = rule.init(), np.empty(len(scores))
    start = time.perf_counter()
    for t, (score, c) in enumerate(zip(scores, groups, strict=True)):
        asked = rule.ask(state, c if rule.groups > 1 else None)
        thresholds[t] = asked.threshold
        state = rule.tell(state, asked, score)
    return thresholds, (time.perf_counter() - start) / len(scores)


def measure(scores, thresholds, groups, alpha=ALPHA, burn=BURN):
    """Return |marginal|, worst group, worst 500-window (in %), mean pinball loss, longest run of misses."""
    s, q, c = scores[burn:], thresholds[burn:], groups[burn:]
    q = np.where(np.isinf(q), np.max(q[np.isfinite(q)], initial=0.0), q)
    residual = np.where(s == q, 0.0, (s > q) - alpha)
    counts = c.sum(axis=0)
    group = max(abs(residual @ c[:, j] / counts[j]) for j in range(c.shape[1]) if counts[j] >= 50)
    sums = np.cumsum(np.concatenate([[0.0], residual]))
    window = min(500, len(s))
    worst = np.max(np.abs(sums[window:] - sums[:-window])) / window
    run = longest = 0
    for missed in s > q:
        run = run + 1 if missed else 0
        longest = max(longest, run)
    pin = np.mean(np.maximum((1 - alpha) * (s - q), alpha * (q - s)))
    return abs(residual.mean()) * 100, group * 100, worst * 100, pin, longest


def main():
    rules = {
        "default": lambda k: Calibration(ALPHA, k),
        "no groups": lambda k: Calibration(ALPHA),
        "POGO": lambda k: published.pogo(ALPHA, k),
        "GCACI 1": lambda k: published.gcaci(ALPHA, k, step=1.0),
        "ACI .05": lambda k: published.aci(ALPHA, step=0.05),
        "PI .1": lambda k: published.conformal_pi(ALPHA, step=0.1),
    }
    chosen = sys.argv[1:] or list(rules)
    for family in (electricity, climate, stocks, drift, blocks):
        rows = {}
        for _, scores, groups in family():
            for name in chosen:
                thresholds, seconds = play(rules[name](groups.shape[1]), scores, groups)
                rows.setdefault(name, []).append((*measure(scores, thresholds, groups), seconds * 1e6))
        reference = np.array(rows[chosen[0]])[:, 3]
        for name, values in rows.items():
            table = np.array(values)
            marginal, group, window = table[:, :3].mean(axis=0)
            ratio = np.mean(table[:, 3] / reference)
            print(f"{family.__name__:12s} {name:10s} {marginal:6.2f} {group:6.1f} {window:6.1f} {ratio:9.3g} "
                  f"{int(np.max(table[:, 4])):5d} {np.median(table[:, 5]):7.0f} us")  # fmt: skip


if __name__ == "__main__":
    main()
