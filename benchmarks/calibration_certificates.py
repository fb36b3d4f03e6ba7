"""Certificates of the calibration rules against 50 adversaries at once, with labels on time and late.

    python benchmarks/calibration_certificates.py [ROUNDS]

Seven kinds of scores are chosen after the thresholds are seen, with sizes from 0.01 to 100, in four patterns of groups.
Every 200 rounds the sum of errors is compared with the certificate. Printed: the largest |sum| relative to its limit.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from longterm.calibration import Calibration, published
from longterm.calibration.corrections import LinearCorrection

COPIES, GROUPS, EVERY = 50, 4, 200
RULES = {
    "default": Calibration(0.1),
    "default with groups": Calibration(0.1, GROUPS),
    "linear with groups": Calibration(0.2, GROUPS, correction=LinearCorrection(0.1)),
    "ACI": published.aci(0.1, step=0.5),
    "PI": published.conformal_pi(0.1, step=0.5),
    "decaying": published.decaying_steps(0.1, step=0.5),
    "SF-OGD": published.scale_free_ogd(0.1, step=0.5),
    "GCACI": published.gcaci(0.1, GROUPS, step=0.5),
    "POGO": published.pogo(0.1, GROUPS),
    "UP-OCP": published.up_ocp(0.1),
}


def choose_scores(rng, t, threshold, size):
    """Return the scores of round t: copy i plays kind i mod 7."""
    q = np.where(np.isfinite(threshold), threshold, 1.0)
    kinds = [
        q + size,  # greedy: always a miss
        q - size,  # greedy: always a cover
        np.full(COPIES, 1.0 if (t // 50) % 2 == 0 else 0.01) * size,  # blocks
        np.full(COPIES, 2.0 ** (t % 60) if t % 7 == 0 else 1.0),  # doubling
        q + 0.1 * size if t % 3 == 0 else q,  # ties
        size * rng.standard_cauchy(COPIES),  # heavy tails
        q + size * rng.choice([-1e-3, 1e-3], COPIES),  # near the threshold
    ]
    return np.clip(np.choose(np.arange(COPIES) % 7, kinds), -1e99, 1e99)


def choose_groups(rng, t, k):
    """Return the groups of round t: copy i plays pattern i mod 4, which no kind of score divides."""
    j, shape = np.arange(k), (COPIES, k)
    patterns = [
        rng.random(shape) < 0.4,
        np.tile(j % 2 == t % 2, (COPIES, 1)),
        j < rng.integers(1, k + 1, (COPIES, 1)),
        rng.random(shape) < 0.3**j,
    ]
    groups = np.choose((np.arange(COPIES) % 4)[:, None], patterns).astype(float)
    groups[:, 0] = 1.0
    return groups


def attack(rule, rounds, delay, seed=0):
    """Return the largest ratio of a sum of errors to its limit; labels come up to `delay` rounds late, in any order."""
    rng = np.random.default_rng(seed)
    state, waiting, worst = rule.init((COPIES,)), [], 0.0
    sizes = 10.0 ** rng.uniform(-2, 2, COPIES)
    for t in range(rounds):
        asked = rule.ask(state, choose_groups(rng, t, rule.groups), open_rounds=len(waiting))
        waiting.append((asked, choose_scores(rng, t, asked.threshold, sizes)))
        if len(waiting) > delay:
            state = rule.tell(state, *waiting.pop(int(rng.integers(len(waiting)))))
        if t % EVERY == EVERY - 1:
            excess, bound = rule.excess(state), rule.bound(state)
            limit = np.where(excess > 0.0, bound.upper, -bound.lower)
            worst = max(worst, float(np.max(np.abs(excess) / np.maximum(limit, 1e-12))))
    return worst


def main():
    """Print the largest ratio of every rule with labels on time and up to 40 rounds late."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(f"{rounds} rounds against {COPIES} adversaries: largest |sum of errors| / certificate, on time and late")
    failed = 0
    for name, rule in RULES.items():
        start = time.perf_counter()
        ratios = [attack(rule, rounds, delay) for delay in (0, 40)]
        failed += sum(ratio > 1.0 + 1e-7 for ratio in ratios)
        print(f"  {name:20s} {ratios[0]:.3f} {ratios[1]:.3f}   {time.perf_counter() - start:.0f} s", flush=True)
    print("every certificate holds" if not failed else f"{failed} certificates FAIL")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
