"""How long a decision takes: features of a prompt and `Chooser.act`, and `Chooser.settle`. Needs no data.

"p99" is by the clock, and means something only alone on the machine; "processor" is the p99 of this thread's own time,
which others on the machine do not change.

python benchmarks/decisions.py            # ten seconds
"""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from longterm.money import Budget, Chooser, EntropicDual, PrimalDual, ThompsonSampling, WordHash

REQUESTS = 4000


def prompts(rng: np.random.Generator) -> list[str]:
    """Texts of 5 to 1,000 words, most of them short."""
    words = np.array(["".join(rng.choice(list("abcdefghij"), rng.integers(2, 9))) for _ in range(2000)])
    return [" ".join(rng.choice(words, int(5 + 995 * rng.random() ** 4))) for _ in range(REQUESTS)]


def measure(models: int, texts: list[str], path: Path | None) -> np.ndarray:
    """Seconds (deciding and settling, by the clock and of the processor, requests); the first tenth is left out."""
    features = WordHash(32, constant=5.0)
    rule = PrimalDual(
        ThompsonSampling(models, features.features, prior_scale=0.1, exploration=1.0),
        EntropicDual(0.3, step=0.02),
        Budget(0.25 * REQUESTS, 1.0, above_cheapest=True),
        REQUESTS,
        replan=True,
    )
    costs, rng = np.linspace(0.01, 1.0, models), np.random.default_rng(1)
    seconds = np.empty((2, 2, REQUESTS))
    with Chooser(rule) if path is None else Chooser.open(path, rule, durability="relaxed") as chooser:
        for t, text in enumerate(texts):
            start = now()
            choice = chooser.act(features(text), costs=costs)
            decided = now()
            chooser.settle(choice, reward=float(rng.random() < 0.5))
            seconds[0, :, t], seconds[1, :, t] = decided - start, now() - decided
    return seconds[:, :, REQUESTS // 10 :]


def now() -> np.ndarray:
    """The clock, and the processor time of this thread."""
    return np.array([time.perf_counter(), time.thread_time()])


def main() -> None:
    """Print the table."""
    texts = prompts(np.random.default_rng(0))
    sys.stdout.write(f"{f'{REQUESTS:,} prompts, 45 features, ms':<34}{'decide':>27}{'settle':>27}\n")
    sys.stdout.write(f"{'':<34}" + f"{'median':>8}{'p99':>8}{'processor':>11}" * 2 + "\n")
    with TemporaryDirectory() as folder:
        for models in (2, 9):
            for name in ("", ", SQLite"):
                gc.collect()
                line = f"{f'{models} models{name}':<34}"
                for clock, processor in measure(models, texts, Path(folder) / f"{models}" if name else None):
                    line += f"{1e3 * np.median(clock):>8.3f}{1e3 * np.percentile(clock, 99):>8.3f}"
                    line += f"{1e3 * np.percentile(processor, 99):>11.3f}"
                sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
