"""Count false refusals of a ledger: worst-case holds beside calibrated ones, with reserves.

    python benchmarks/holds.py [RUNS]

600 requests for language models come, 8 are open at once, and the budget is 300 times the mean cost. A refusal is false
if the request would have fitted: the money spent, the costs of the open requests and its own are within the limit. A
request costs the price of its model (the table of LONGTERM_DATA, or invented prices) times its tokens. Prompts and
answers have log-normal lengths; an answer has at most 4,096 tokens, which is the worst case. The ledger has seen 100
earlier requests of each model. "over" is the money above the limit in % of it, the mean and the largest of the runs.
"used" is the money spent in %.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Literal, NamedTuple

from longterm import Ledger
from longterm.errors import OutOfBudgetError
from longterm.money import ExcessHold

REQUESTS, PAID, CONCURRENT, HISTORY, MOST_TOKENS = 600, 300, 8, 100, 4096
PRICES = Path(os.environ.get("LONGTERM_DATA", "../shared/data")) / "llmrouter-prices.json"
UNIT = 1000
"""Units per dollar and million tokens: a thousandth of a millionth of a dollar."""


class Request(NamedTuple):
    """A request, its cost and its largest cost."""

    model: str
    cost: int
    largest: int


def prices() -> dict[str, tuple[float, float]]:
    if PRICES.exists():
        table = json.loads(PRICES.read_text())
        return {model: (row["input_price"], row["output_price"]) for model, row in table.items()}
    return {f"model {k}": (price, 2 * price) for k, price in enumerate((0.1, 0.2, 0.2, 0.9, 0.9, 3.0))}


def draw(dice: random.Random, model: str, price: tuple[float, float]) -> Request:
    prompt = min(int(dice.lognormvariate(6.2, 1.0)), 30_000) + 1
    answer = min(int(dice.lognormvariate(5.3, 1.1)), MOST_TOKENS) + 1
    sent = prompt * price[0]
    return Request(model, int(UNIT * (sent + answer * price[1])), int(UNIT * (sent + (MOST_TOKENS + 1) * price[1])))


def play(seed: int, holds: Literal["worst"] | ExcessHold, reserve: float | None) -> tuple[int, float]:
    """Return the number of false refusals, and the money spent as a share of the limit."""
    dice, table = random.Random(seed), prices()
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger.open(f"{folder}/s.db", holds=holds, durability="relaxed") as ledger,
    ):
        ledger.add_account("past", 10**15)
        for k in range(HISTORY):
            for model, price in table.items():
                past = draw(dice, model, price)
                ledger.hold("past", past.largest, f"{model} {k}", group=model)
                ledger.settle(f"{model} {k}", past.cost)
        requests = [draw(dice, *dice.choice(list(table.items()))) for _ in range(REQUESTS)]
        limit = sum(request.cost for request in requests) * PAID // REQUESTS
        ledger.add_account("a", limit, reserve=None if reserve is None else int(reserve * limit))
        false, committed = 0, 0
        open_requests: list[tuple[str, int]] = []
        for k, request in enumerate(requests):
            try:
                ledger.hold("a", request.largest, str(k), group=request.model)
                open_requests.append((str(k), request.cost))
                committed += request.cost
            except OutOfBudgetError:
                false += committed + request.cost <= limit
            if len(open_requests) == CONCURRENT or (open_requests and open_requests[-1][0] != str(k)):
                ledger.settle(*open_requests.pop(dice.randrange(len(open_requests))))
        for key, cost in open_requests:
            ledger.settle(key, cost)
        return false, ledger.balance("a").spent / limit


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    largest = [r.largest / r.cost for seed in range(50) for r in [draw(random.Random(seed), "", (1.0, 1.0))]]
    print(f"{runs} runs, {len(prices())} models, the worst case is {statistics.median(largest):.1f} × a cost")
    print(f"{'holds':>14}{'reserve %':>11}{'false':>8}{'of worst':>10}{'used %':>8}{'over %':>8}{'largest':>9}")
    worst = 0.0
    rows: list[tuple[str, Literal["worst"] | ExcessHold, float | None]] = [("worst", "worst", None)]
    rows += [(f"share {share}", ExcessHold(share), None) for share in (0.02, 0.1, 0.3, 0.5)]
    rows += [("share 0.5", ExcessHold(0.5), reserve) for reserve in (0.02, 0.05, 0.1, 0.2)]
    for name, holds, reserve in rows:
        found = [play(seed, holds, reserve) for seed in range(runs)]
        false = statistics.mean(refused for refused, _ in found)
        worst = worst or false
        used = statistics.mean(100 * spent for _, spent in found)
        over = [100 * max(spent - 1, 0.0) for _, spent in found]
        stated = "" if reserve is None else f"{100 * reserve:.0f}"
        print(f"{name:>14}{stated:>11}{false:>8.1f}{false / worst:>10.2f}{used:>8.1f}", end="")
        print(f"{statistics.mean(over):>8.2f}{max(over):>9.2f}")


if __name__ == "__main__":
    main()
