"""Coverage and sharpness of calibration rules on real series, beside the peers that are installed.

    make bench-calibration

Needs the folder `conformal` of LONGTERM_DATA. Name parts to run only those: table late intermittent unbounded holds
speed. Columns of the table, means over the series of a family: |marginal error| %, worst group %, worst window of 500
rounds %, pinball loss relative to the default rule, longest run of misses.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from pathlib import Path

import numpy as np
import pandas as pd

from calibration_peers import installed_peers
from longterm.calibration import Calibration, published
from longterm.money import ExcessHold

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


def day_before(start=0, rounds=12_000):
    """Return scores of ELEC2's demand predicted by that of the day before, on a longer series."""
    demand = pd.read_csv(DATA.parent / "elec.csv.gz")["feat_3"].to_numpy()
    scores = np.abs(demand[48:] - demand[:-48])[start : start + rounds]
    yield "elec2 day before", scores, np.ones((rounds, 1))


def held_out():
    """Return six series on which the reaction to late labels was not chosen: later rounds of ELEC2, and CityLearn."""
    yield from day_before(12_000)
    yield from day_before(24_000)
    table = pd.read_csv(DATA.parent / "citylearn-2022.csv.gz")
    for name in ("load", "carbon", "solar", "temperature"):
        values = table[name].to_numpy()
        yield f"citylearn {name}, day before", np.abs(values[24:] - values[:-24]), np.ones((len(values) - 24, 1))


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


def play(rule, scores, groups, delay=0):
    """Return the thresholds of a rule over a series and the seconds of processor time per round."""
    state, thresholds, waiting = rule.init(), np.empty(len(scores)), deque()
    start = time.process_time()
    for t, (score, c) in enumerate(zip(scores, groups, strict=True)):
        asked = rule.ask(state, c if rule.groups > 1 else None, open_rounds=len(waiting))
        thresholds[t] = asked.threshold
        waiting.append((asked, score))
        if len(waiting) > delay:
            state = rule.tell(state, *waiting.popleft())
    return thresholds, (time.process_time() - start) / len(scores)


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


def elec2_intermittent():
    """Return set size and coverage of two-sided intervals on the series of the published conformal PID table."""
    table = pd.read_csv(DATA / "cts" / "elec2-first-2000.csv")
    y, start = table["nswdemand"].to_numpy(), 300
    block = np.round(47 * table["period"].to_numpy()).astype(int) // 8
    groups = np.column_stack([np.ones(len(y)), *one_hot(table["day"]), *one_hot(block)])
    published_rows = {"ar": (0.177, 0.900), "transformer": (0.174, 0.901)}
    print("\nelec2-intermittent, mean set size and coverage after round 300 (published conformal PID in brackets)")
    for name, (size, coverage) in published_rows.items():
        forecast = np.load(DATA / "cts" / f"elec2-intermittent_{name}.npz")["forecasts"]
        rule = Calibration(np.full(2, 0.5 * ALPHA), groups.shape[1])
        state, widths, inside = rule.init(), [], []
        for t in range(100, len(y)):
            asked = rule.ask(state, groups[t])
            below, above = asked.threshold
            error = y[t] - forecast[t]
            state = rule.tell(state, asked, np.array([-error, error]))
            widths.append(max(below + above, 0.0))
            inside.append(-below <= error <= above)
        width, covered = np.mean(widths[start - 100 :]), np.mean(inside[start - 100 :])
        print(f"  {name:12s} {width:.3f} at {covered:.3f}   ({size} at {coverage})")


def late_labels():
    """Print coverage and loss with late labels, beside ACI on the quantiles of the past scores."""
    print("\nlabels 50 rounds late: |marginal error| %, pinball loss relative to ACI's, largest width / largest score")
    series = [one for one in stocks() if "AAPL" in one[0]] + list(electricity()) + list(day_before())
    for name, scores, groups in series:
        for label, k in (("no groups", 1), ("groups", groups.shape[1]))[: groups.shape[1]]:
            marginal, ratio, widest = measure_late(scores, groups, k, 50)
            print(f"  {name:18s} {label:10s} {marginal:5.2f} {ratio:7.3f} {widest:6.1f}")
    others = [one for one in stocks() if "AAPL" not in one[0]] + [*climate(), *drift(), *blocks()]
    print("late labels: |marginal error| % in the mean and at most, geometric mean of the relative loss, largest width")
    for label, family, grouped in (
        ("other series", others, False),
        ("with groups", others, True),
        ("held out", list(held_out()), False),
    ):
        for delay in (10, 50, 200):
            rows = np.array([measure_late(s, c, c.shape[1] if grouped else 1, delay) for _, s, c in family])
            ratio = np.exp(np.log(rows[:, 1]).mean())
            errors = f"{rows[:, 0].mean():5.2f} {rows[:, 0].max():6.2f}"
            print(
                f"  {label:14s} {len(rows):2d} series, {delay:3d} late: {errors} {ratio:6.3f} {rows[:, 2].max():6.1f}"
            )


def measure_late(scores, groups, k, delay, burn=300):
    """Return |marginal error| %, the loss relative to ACI's, and the largest finite threshold / largest score."""
    thresholds, _ = play(Calibration(ALPHA, k), scores, groups, delay)
    reference = measure(scores, quantile_aci(scores, delay), groups, burn=burn)[3]
    marginal, _, _, loss, _ = measure(scores, thresholds, groups, burn=burn)
    return marginal, loss / reference, np.max(thresholds[np.isfinite(thresholds)]) / np.max(scores)


def quantile_aci(scores, delay, step=0.02):
    """Return the thresholds of ACI (Gibbs and Candès 2021): the 1 − α_t quantile of the scores told so far."""
    level, told, thresholds = ALPHA, [], np.empty(len(scores))
    for t in range(len(scores)):
        if t >= delay and t > 0:
            i = t - delay - (delay == 0)
            level += step * (ALPHA - (scores[i] > thresholds[i]))
            told.append(scores[i])
        infinite = level <= 0.0 or not told
        thresholds[t] = np.inf if infinite else np.quantile(told, 1.0 - level) if level < 1.0 else -np.inf
    return np.maximum(thresholds, 0.0)


def unbounded():
    """Print POGO's synthetic streams with unbounded scores: coverage and loss relative to POGO's."""
    print("\nPOGO's unbounded streams: miss rate minus nominal % of the default / of POGO, pinball relative to POGO's")
    for path in sorted((DATA / "pogo").glob("*.npz")):
        data = np.load(path)
        scores, groups = np.abs(data["score"]), data["groups"].astype(float)
        for alpha in (0.05, 0.2):
            found = []
            for rule in (Calibration(alpha, groups.shape[1]), published.pogo(alpha, groups.shape[1])):
                thresholds, _ = play(rule, scores, groups)
                found.append(measure(scores, thresholds, groups, alpha))
            (ours, _, _, pin, _), (theirs, _, _, reference, _) = found
            print(f"  {path.stem:18s} {alpha:4} {ours:5.2f} / {theirs:.2f}   {pin / reference:.3f}")


def holds(slots=8, runs=200, seed=0):
    """Print the use of a budget when requests are admitted against holds; costs are log-normal, the largest known."""
    rng = np.random.default_rng(seed)
    table = rng.lognormal(0.0, 0.9, 2000)
    table /= table.mean()
    print(f"\nholds: {slots} slots, {runs} orders of a table whose largest cost is {table.max():.1f} means; "
          "used %, share of runs over, mean over %")  # fmt: skip
    rules = {"worst case": None, "mean": 0.0, "excess .05": 0.05, "excess .02": 0.02, "excess .01": 0.01}
    for name, share in rules.items():
        cells = []
        for budget in (20.0, 100.0, 700.0):
            spent = np.array([spend(rng.permutation(table), budget, share, slots) for _ in range(runs)]) / budget
            over = np.maximum(spent - 1.0, 0.0)
            cells.append(f"{100 * spent.mean():6.1f} {np.mean(over > 1e-12):.2f} {100 * over.mean():.3f}")
        print(f"  {name:12s} " + "   |   ".join(cells))


def spend(costs, budget, share, slots, warm_up=200):
    """Return what is spent on requests that are admitted while spent + holds ≤ budget; each is open for 8 arrivals."""
    largest, estimate = float(np.max(costs)), None
    if share:
        estimate = ExcessHold(share)
        for cost in costs[:warm_up]:
            estimate.update("model", float(cost))
    spent = held = 0.0
    waiting = deque()
    for t, cost in enumerate(costs[warm_up : warm_up + int(2 * budget)].tolist()):
        while waiting and waiting[0][0] <= t - slots:
            _, old_cost, old_hold = waiting.popleft()
            spent, held = spent + old_cost, held - old_hold
            if estimate is not None:
                estimate.update("model", old_cost)
        hold = estimate.predict("model", largest) if estimate is not None else (largest if share is None else 1.0)
        if spent + held + hold <= budget:
            waiting.append((t, cost, hold))
            held += hold
    return spent + sum(cost for _, cost, _ in waiting)


def speed(rounds=1500, series=10_000):
    """Print the time of a round in NumPy, of a panel, and of a compiled scan in JAX."""
    rng = np.random.default_rng(0)
    scores, groups = rng.exponential(size=rounds), (rng.random((rounds, 45)) < 0.2).astype(float)
    groups[:, 0] = 1.0
    print("\ntime of a round, µs of processor time (NumPy, best of 3)")
    for k in (1, 45):
        ours, theirs = (
            min(play(rule, scores, groups[:, :k])[1] for _ in range(3))
            for rule in (Calibration(ALPHA, k), published.pogo(ALPHA, k))
        )
        print(f"  {k:2d} groups: default {1e6 * ours:.0f}, POGO {1e6 * theirs:.0f}, ratio {ours / theirs:.1f}")
    rule = Calibration(ALPHA)
    state, panel = rule.init((series,)), rng.exponential(size=(20, series))
    start = time.process_time()
    for row in panel:
        state = rule.tell(state, rule.ask(state), row)
    print(f"  panel of {series} series: {1e6 * (time.process_time() - start) / panel.size:.2f} per series")
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        print("  JAX is not installed")
        return
    jax.config.update("jax_enable_x64", True)

    def step(state, score):
        asked = rule.ask(state)
        return rule.tell(state, asked, score), asked.threshold

    scan = jax.jit(lambda state, rows: jax.lax.scan(step, state, rows))
    for name, shape in (("one series", ()), (f"{series} series", (series,))):
        rows = jnp.asarray(rng.exponential(size=(200, *shape)))
        initial = rule.init(shape, xp=jnp)
        jax.block_until_ready(scan(initial, rows))
        start = time.perf_counter()
        jax.block_until_ready(scan(initial, rows))
        print(f"  JAX scan, {name}: {1e6 * (time.perf_counter() - start) / rows.size:.2f} per series and round")


def coverage_table():
    """Print the main table."""
    rules = {
        "default": lambda k: Calibration(ALPHA, k),
        "no groups": lambda k: Calibration(ALPHA),
        "POGO": lambda k: published.pogo(ALPHA, k),
        "GCACI 1": lambda k: published.gcaci(ALPHA, k, step=1.0),
        "ACI .05": lambda k: published.aci(ALPHA, step=0.05),
        "PI .1": lambda k: published.conformal_pi(ALPHA, step=0.1),
    }
    peers = installed_peers(ALPHA)
    print("series       rule       marginal group window   pinball  run")
    for family in (electricity, climate, stocks, drift, blocks):
        rows = {}
        for _, scores, groups in family():
            for name, make in rules.items():
                thresholds, _ = play(make(groups.shape[1]), scores, groups)
                rows.setdefault(name, []).append(measure(scores, thresholds, groups))
            for name, peer in peers.items():
                if peer is not None:
                    rows.setdefault(name, []).append(measure(scores, peer(scores), groups))
        reference = np.array(rows["default"])[:, 3]
        for name, values in rows.items():
            table = np.array(values)
            marginal, group, window = table[:, :3].mean(axis=0)
            ratio, run = np.mean(table[:, 3] / reference), int(np.max(table[:, 4]))
            print(f"{family.__name__:12s} {name:10s} {marginal:7.2f} {group:6.1f} {window:6.1f} {ratio:9.3g} {run:4d}")
    missing = [name for name, thresholds in peers.items() if thresholds is None]
    print(f"not installed: {', '.join(missing) or 'none'}")


PARTS = {
    "table": coverage_table,
    "late": late_labels,
    "intermittent": elec2_intermittent,
    "unbounded": unbounded,
    "holds": holds,
    "speed": speed,
}


def main():
    """Run the parts that are named, or all."""
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
