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
"""The chance that a model answers an easy and a hard prompt well."""
PRICES = {"small": 4e-5, "medium": 6e-4, "large": 9e-3}
PROMPTS = ("What is the capital of France?", "Prove that every group of order p² is abelian.")
THUMBNAILS = {"cached": (0.35, 0.0), "fast": (0.6, 0.3), "sharp": (0.85, 0.9)}
"""Reward and cost."""


def main(url: str) -> None:
    """Send requests until the process ends. A server that does not answer yet is waited for."""
    client, draw = Client(url, retries=2), random.Random(1)
    number, session = 0, f"{time.time():.0f}"
    while True:
        number += 1
        try:
            _route(client, draw)
            _hold(client, draw, f"{session} {number}")
            _choose(client, draw)
            _bid(client, draw)
            _forecast(client, draw, number)
        except ServerError as error:
            if error.status == 401:
                raise
            time.sleep(0.5)
        time.sleep(PAUSE)


def _route(client: Client, draw: random.Random) -> None:
    is_hard = draw.random() < 0.4
    route = client.act("models", prompt=PROMPTS[is_hard])
    model = route["action"]
    cost = PRICES[model] * draw.lognormvariate(-0.1, 0.45)
    client.settle("models", route["token"], reward=float(draw.random() < QUALITY[model][is_hard]), cost=cost)


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
