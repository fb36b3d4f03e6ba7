"""One worker of a LiteLLM proxy, as a process: its own router and strategy, on the database of all workers.

    python litellm_worker.py DATABASE WORK NUMBER

WORK is `complete` (calls with LiteLLM's mock responses from 4 threads) or `hang` (admit calls, and wait to be killed).
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no look at the network for prices

from longterm import Ledger
from longterm.money import ExcessHold, Router

PRICES = [(1e-6, 2e-6), (1e-5, 5e-5)]
"""Dollars per token in and out."""
TOKENS_IN, TOKENS_OUT = 10, 20
"""The tokens that LiteLLM's mock responses report."""
UNITS = 1e8
SMALL = round(UNITS * (TOKENS_IN * PRICES[0][0] + TOKENS_OUT * PRICES[0][1]))
LARGE = round(UNITS * (TOKENS_IN * PRICES[1][0] + TOKENS_OUT * PRICES[1][1]))
"""The costs of a call, in microcents."""

CALIBRATED = ExcessHold(share=0.02, warm_up=20)


def make(database: Path | str, holds: Any = "worst", *, seconds: float = 600.0, largest: float = TOKENS_OUT) -> Any:
    import litellm

    from longterm.compat.litellm_router import BudgetStrategy

    models = [
        {"model_name": "any", "litellm_params": {"model": f"openai/{name}-of-ours", "api_key": "none"}}
        for name in ("small", "large")
    ]
    router = litellm.Router(model_list=models, num_retries=0)
    prices = {"small": SMALL / UNITS, "large": LARGE / UNITS}
    chooser = Router.for_models(prices, per_request=LARGE / UNITS, url=database, durability="relaxed").chooser
    ledger = Ledger.open(database, unit="microcent", holds=holds, durability="relaxed")
    return BudgetStrategy(
        router,
        chooser,
        PRICES,
        tokens=lambda text: TOKENS_IN,
        largest_answer=largest,
        ledger=ledger,
        account="team",
        units=UNITS,
        hold_seconds=seconds,
    ).register()


def complete(strategy: Any, calls: int) -> dict[str, int]:
    from longterm.compat.litellm_router import BudgetExhaustedError

    def call(number: int) -> bool:
        try:
            strategy.router.completion(
                model="any", messages=[{"role": "user", "content": f"Question {number}"}], mock_response="Answer."
            )
        except BudgetExhaustedError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        admitted = sum(threads.map(call, range(calls)))
    while strategy._open:  # callbacks run in threads of their own
        time.sleep(0.02)
    return {"admitted": admitted, "refused": calls - admitted}


def main(database: str, work: str, number: int) -> None:
    warnings.simplefilter("ignore")
    if work == "hang":
        strategy = make(database, seconds=2.0)
        for _ in range(number):
            strategy.get_available_deployment("any", [{"role": "user", "content": "Hello"}], request_kwargs={})
        report(strategy.ledger.balance("team").held)
        time.sleep(600)
    report(complete(make(database), number))


def report(found: Any) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
