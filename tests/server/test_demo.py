"""The demo: it waits for its server, and its models trade places."""

import random
import tomllib
from collections import Counter
from importlib.resources import files

import pytest

from longterm.money import Router
from longterm.server import demo
from longterm.server.client import ServerError


class SlowServer:
    """A client of a server that answers after some calls, and stops the demo after some requests."""

    def __init__(self, failures, requests):
        self.failures, self.requests, self.sent = failures, requests, []

    def status(self):
        if self.failures:
            self.failures -= 1
            raise ServerError(503, {})
        return {}

    def act(self, name, **request):
        self.status()
        self.sent.append((name, request))
        if len(self.sent) > self.requests:
            raise KeyboardInterrupt
        return {"action": "small" if name == "models" else "fast", "token": "1"}

    def bid(self, name, value):
        return {"amount": 1.0, "token": "1"}

    def ask(self, name, **request):
        return {"token": "1"}

    def settle(self, *_, **outcome):
        self.sent.append(outcome)

    hold = settle_hold = tell = settle


def requests_of(monkeypatch, failures):
    client = SlowServer(failures, 60)
    monkeypatch.setattr(demo, "Client", lambda url, retries: client)
    monkeypatch.setattr(demo.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(demo.time, "time", lambda: 0.0)
    with pytest.raises(KeyboardInterrupt):
        demo.main("http://127.0.0.1:1")
    return client.sent


def test_requests_do_not_depend_on_the_start_of_the_server(monkeypatch):
    assert requests_of(monkeypatch, 0) == requests_of(monkeypatch, 7)


def test_a_token_that_is_refused_ends_the_demo(monkeypatch):
    client = SlowServer(0, 9)
    client.status = lambda: (_ for _ in ()).throw(ServerError(401, {}))
    monkeypatch.setattr(demo, "Client", lambda url, retries: client)
    with pytest.raises(ServerError):
        demo.main("http://127.0.0.1:1")


def test_the_models_of_the_demo_trade_places():
    options = tomllib.loads((files("longterm.server") / "demo.toml").read_text())["router"]["models"]
    router = Router.for_models(options["prices"], per_request=options["per_request"], largest=options["largest"])
    assert options["largest"] == pytest.approx({model: demo.LARGEST * price for model, price in demo.PRICES.items()})
    assert options["prices"] == demo.PRICES
    draw, spans, bill = random.Random(1), [Counter() for _ in demo.OFFERS], 0.0
    for number in range(1, 3 * demo.SPAN + 1):
        is_hard, prices = draw.random() < 0.4, demo.prices_at(number)
        bounds = {model: demo.LARGEST * price for model, price in prices.items()}
        route = router.route(demo.PROMPTS[is_hard], costs=prices, bounds=bounds)
        score, cost = demo.outcome(route.model, is_hard=is_hard, price=prices[route.model], draw=draw)
        router.settle(route, score, cost)
        spans[(number - 1) // demo.SPAN][route.model] += 1
        bill += cost
        assert bill <= options["per_request"] * number
    assert [span.most_common(1)[0][0] for span in spans] == ["medium", "large", "small"]
    assert bill > 0.85 * options["per_request"] * 3 * demo.SPAN
