"""Invented requests for `longterm serve --demo`: no keys, no data, nothing leaves this machine."""

from __future__ import annotations

import math
import random
import sys
import time
from contextlib import suppress

from longterm.server.client import Client, ServerError

PAUSE = 0.08
"""Seconds between two rounds of requests."""
QUALITY = {"small": (0.9, 0.25), "medium": (0.93, 0.6), "large": (0.95, 0.92)}
"""The mean score of a model's answers to an easy and to a hard prompt."""
JUDGE = 0.15
"""The standard deviation of the scores that a judge gives to equal answers."""
PRICES = {"small": 4e-5, "medium": 6e-4, "large": 9e-3}
SPAN = 400
"""The number of requests between two changes of prices."""
OFFERS: tuple[dict[str, float], ...] = ({}, {"large": 0.2}, {"medium": 5.0})
"""Factors of the prices, in turn."""
LARGEST = 8
"""The largest cost of a request, in prices, as in demo.toml."""
PROMPTS = ("What is the capital of France?", "Prove that every group of order p² is abelian.")
THUMBNAILS = {"cached": (0.35, 0.0), "fast": (0.6, 0.3), "sharp": (0.85, 0.9)}
"""Reward and cost."""


def main(url: str) -> None:
    """Send requests until the process ends, once the server answers."""
    client, draw = Client(url, retries=2), random.Random(1)
    number, session = 0, f"{time.time():.0f}"
    _wait(client)  # before the first draw, so that the requests do not depend on the time that the server takes
    while True:
        number += 1
        try:
            _route(client, draw, number)
            _hold(client, draw, f"{session} {number}")
            _choose(client, draw)
            _bid(client, draw)
            _forecast(client, draw, number)
        except ServerError as error:
            if error.status == 401:
                raise
            time.sleep(0.5)
        time.sleep(PAUSE)


def _wait(client: Client) -> None:
    """Return when the server answers."""
    while True:
        try:
            client.status()
        except ServerError as error:
            if error.status == 401:
                raise
            time.sleep(0.2)
        else:
            return


def prices_at(number: int) -> dict[str, float]:
    """Return the prices of a request, counted from 1."""
    factors = OFFERS[(number - 1) // SPAN % len(OFFERS)]
    return {model: price * factors.get(model, 1.0) for model, price in PRICES.items()}


def outcome(model: str, *, is_hard: bool, price: float, draw: random.Random) -> tuple[float, float]:
    """Return the score and the cost of an answer."""
    score = draw.gauss(QUALITY[model][is_hard], JUDGE)
    return min(max(score, 0.0), 1.0), min(price * draw.lognormvariate(-0.1, 0.45), LARGEST * price)


def _route(client: Client, draw: random.Random, number: int) -> None:
    is_hard, prices = draw.random() < 0.4, prices_at(number)
    bounds = {model: LARGEST * price for model, price in prices.items()}
    route = client.act("models", prompt=PROMPTS[is_hard], costs=prices, bounds=bounds)
    score, cost = outcome(route["action"], is_hard=is_hard, price=prices[route["action"]], draw=draw)
    client.settle("models", route["token"], reward=score, cost=cost)


def _hold(client: Client, draw: random.Random, key: str) -> None:
    account = "search" if draw.random() < 0.6 else "support"
    cost = int(700 * draw.lognormvariate(0, 0.7))
    with suppress(ServerError):  # 402: the account is empty
        client.hold("money", account, 2 * cost, key, seconds=60)
        client.settle_hold("money", key, cost)


def _choose(client: Client, draw: random.Random) -> None:
    importance = draw.random()
    costs = [cost for _, cost in THUMBNAILS.values()]
    choice = client.act("thumbnails", context=[1.0, importance], costs=costs)
    reward, _ = THUMBNAILS[choice["action"]]
    client.settle("thumbnails", choice["token"], reward=min(1.0, reward * (0.4 + 0.7 * importance)))


def _bid(client: Client, draw: random.Random) -> None:
    bid = client.bid("campaign", draw.lognormvariate(0, 0.6))
    price = draw.lognormvariate(0.1, 0.6)
    won = bid["amount"] >= price
    client.settle("campaign", bid["token"], paid=price if won else 0.0, price=price)


def _forecast(client: Client, draw: random.Random, number: int) -> None:
    group = "north" if number % 3 else "south"
    demand = 100 + 20 * math.sin(number / 200)
    asked = client.ask("demand", prediction=demand, groups=[group])
    spread = 4.0 if group == "north" else 9.0
    client.tell("demand", asked["token"], outcome=draw.gauss(demand, spread * (1 + 0.5 * math.sin(number / 900))))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main(sys.argv[1])
