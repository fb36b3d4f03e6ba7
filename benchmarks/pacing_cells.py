"""The planned pacer beside the even one on 96 cells: demand that changes, six budgets, a real log and an invented one.

    python benchmarks/pacing_cells.py              # about five minutes
    python benchmarks/pacing_cells.py invented

Each cell is the value won beside that of the even pacer, as a difference in per cent. The real log is campaign 2997 of
iPinYou from the folder LONGTERM_DATA. Values are multiplied by a factor of the time u in [0, 1], so the history is true
for the beginning of some days only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from longterm.money import (
    Auctions,
    DualMirrorDescent,
    PlannedMirrorDescent,
    PriceHistory,
    replay_auctions,
    synthetic_auctions,
)
from pacing import load_auctions, load_history

SHARES = (2, 4, 8, 16, 32, 64)
DAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "in order": np.ones_like,
    "double at half": lambda u: np.where(u < 0.5, 1.0, 2.0),
    "halve at half": lambda u: np.where(u < 0.5, 1.0, 0.5),
    "halve at a fifth": lambda u: np.where(u < 0.2, 1.0, 0.5),
    "a third from a third on": lambda u: np.where(u < 0.33, 1.0, 0.3),
    "halve for a while": lambda u: np.where((u > 0.35) & (u < 0.6), 0.5, 1.0),
    "five waves": lambda u: np.exp(0.4 * np.sin(10 * np.pi * u)),
    "decline": lambda u: np.exp(-2 * u),
}


def differences(log: Auctions, history: PriceHistory, day: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the difference for each budget, in per cent."""
    T = len(log)
    played = Auctions(log.values * day(np.arange(T) / T), log.prices)
    budgets = np.floor(played.total_price / np.array(SHARES))
    planned, even = (
        replay_auctions(kind.calibrated(budgets, T, history), played).value
        for kind in (PlannedMirrorDescent, DualMirrorDescent)
    )
    return 100 * (planned / even - 1)


def main() -> None:
    """Print the cells, and the worst and the mean of each log."""
    logs = {"invented": (synthetic_auctions(50_000, 21), PriceHistory.of(synthetic_auctions(50_000, 22)))}
    if sys.argv[1:] != ["invented"]:
        logs["iPinYou"] = load_auctions(), load_history()
    for name, (log, history) in logs.items():
        sys.stdout.write(f"\n{name:<26}" + "".join(f"{f'1/{share}':>8}" for share in SHARES) + "\n")
        cells = []
        for title, day in DAYS.items():
            cells.append(differences(log, history, day))
            sys.stdout.write(f"{title:<26}" + "".join(f"{cell:>+8.2f}" for cell in cells[-1]) + "\n")
            sys.stdout.flush()
        sys.stdout.write(f"worst {np.min(cells):+.2f}, mean {np.mean(cells):+.2f}\n")


if __name__ == "__main__":
    main()
