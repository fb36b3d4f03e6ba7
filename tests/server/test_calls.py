"""Calls, their answers and their errors, over HTTP."""

import json
import re
import uuid
from contextlib import suppress

import pytest

from longterm import InputError
from longterm.server import Client, ServerError
from servers import fetch, in_thread

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def client(url):
    with Client(url) as client:
        yield client


def refused(status, call, *arguments, **options):
    with pytest.raises(ServerError) as caught:
        call(*arguments, **options)
    assert caught.value.status == status, caught.value
    return caught.value


def test_a_chooser_answers_and_learns(client):
    before = client.status()["images"]
    choice = client.act("images", context=[1.0, 0.0], costs=[0.01, 0.02], allowed=["large"])
    assert choice["action"] == "large"
    client.settle("images", choice["token"], reward=1.0)
    figures = client.status()["images"]
    assert figures["requests"] == before["requests"] + 1
    assert figures["spent"]["money"] == pytest.approx(before["spent"]["money"] + 0.02)


def test_a_retry_returns_the_first_answer(client):
    key = uuid.uuid4().hex
    first = client.act("images", context=[1.0, 0.0], costs=[0.0, 0.0], key=key)
    assert client.act("images", context=[0.0, 1.0], costs=[0.0, 0.0], key=key) == first
    assert client.ask("power", key=key) == client.ask("power", key=key)
    assert client.bid("campaign", 0.01, key=key) == client.bid("campaign", 0.02, key=key)
    interval = client.ask("demand", prediction=1.0, key=key)
    assert client.ask("demand", prediction=2.0, key=key) == interval


def test_a_router_takes_prompts_and_late_costs(client):
    route = client.act("models", prompt="What is 2 + 2?", allowed=["small"])
    assert route["action"] == "small"
    client.settle("models", route["token"], reward=1.0)
    assert client.status()["models"]["open"] == 1
    client.settle("models", route["token"], cost=2e-5)
    assert client.status()["models"]["open"] == 0
    assert refused(400, client.act, "models", context=[1.0]).argument == "prompt"
    assert refused(400, client.act, "models", prompt="x", costs={"huge": 1.0}).argument == "action"
    assert refused(400, client.act, "models", prompt="x", costs=[1.0, 2.0]).argument == "costs"


def test_a_pacer_bids_and_settles(client):
    bid = client.bid("campaign", 1.0)
    assert bid["amount"] > 0
    assert refused(400, client.settle, "campaign", bid["token"]).argument == "paid"
    client.settle("campaign", bid["token"], paid=0.5, price=0.5)
    assert client.status()["campaign"]["spent"] == 0.5
    client.skip("campaign", client.bid("campaign", 1.0)["token"])


def test_a_learner_is_told_in_two_ways(client):
    first, second = client.ask("power"), client.ask("power")
    client.tell("power", first["token"], loss_parameters=[[1.0, 0.0]])
    ragged = [[[1.0, 2.0], [3.0]]]
    error = refused(400, client.tell, "power", second["token"], loss_parameters=ragged)
    assert (error.argument, error.remedy) == ("loss_parameters", "Give each parameter as one array")
    parameters = {"loss_parameters": [[1.0, 0.0]], "constraint_parameters": ragged}
    assert refused(400, client.tell, "power", second["token"], **parameters).argument == "constraint_parameters"
    gradients = {"loss_gradient": [1.0, 0.0], "constraint_gradient": [1.0, 0.0]}
    assert refused(400, client.tell, "power", second["token"], **gradients).argument == "constraint"
    client.tell("power", second["token"], constraint=-0.25, loss=0.5, **gradients)
    assert client.ask("power")["x"][0] != 0.0


def test_intervals_are_asked_and_told(client):
    asked = client.ask("demand", prediction=3.0, groups=["north"])
    assert "lower" not in asked  # the first interval is unbounded
    client.tell("demand", asked["token"], outcome=3.5)
    assert client.status()["demand"]["coverage"]["north"] == 1.0
    assert refused(400, client.ask, "demand").argument == "prediction"
    second = client.ask("demand", prediction=3.0)
    assert refused(400, client.tell, "demand", second["token"]).argument == "outcome"


def test_a_ledger_holds_settles_and_releases(client):
    client.hold("money", "team", 400, "one")
    client.hold("money", "team", 400, "one")
    error = refused(402, client.hold, "money", "team", 400, "two")
    assert (error.code, "200 are available" in str(error)) == ("out of budget", True)
    client.settle_hold("money", "one", 250)
    client.hold("money", "team", 100, "three", seconds=60)
    client.release("money", "three")
    assert client.status()["money"]["spent"] == {"organisation": 250, "team": 250}
    assert refused(400, client.release, "money", "four").argument == "key"
    for call in (lambda: client.settle_hold("money", "one", 251), lambda: client.release("money", "one")):
        assert refused(409, call).code == "hold is closed"
    assert refused(400, client.hold, "money", "nobody", 1, "five").argument == "account"


def test_a_chooser_without_money_answers_402(client):
    with suppress(ServerError):
        for _ in range(10):
            client.act("images", context=[1.0, 0.0], costs=[1.0, 1.0])
    assert refused(402, client.act, "images", context=[1.0, 0.0], costs=[1.0, 1.0]).code == "out of budget"
    assert client.status()["images"]["refused"] >= 1


def test_tokens_that_cannot_be_used_answer_409(client):
    bid = client.bid("campaign", 0.1)
    client.settle("campaign", bid["token"], paid=0.0)
    assert refused(409, client.settle, "campaign", bid["token"], paid=0.0).code == "already settled"
    assert refused(409, client.settle, "campaign", "0123456789ab-1", paid=0.0).code == "unknown token"
    assert refused(409, client.skip, "power", "nonsense").code == "unknown token"


def test_names_and_kinds_are_checked(client):
    error = refused(404, client.act, "imges")
    assert "did you mean 'images'" in str(error)
    assert refused(400, client.act, "money").argument == "name"
    assert refused(400, client.act, "images", prompt="x").argument == "prompt"
    assert refused(400, client.act, "images", context=[1.0, 0.0], allowed=["huge"]).argument == "action"


@pytest.mark.parametrize(
    ("body", "argument"),
    [
        ({"name": "images", "context": ["1"]}, "context.0"),
        ({"name": "images", "context": [True]}, "context.0"),
        ({"name": "images", "contxt": [1.0]}, "contxt"),
        ({"context": [1.0]}, "name"),
        ({"name": "images", "key": "k" * 201}, "key"),
        ([1, 2], "body"),
    ],
)
def test_bodies_are_validated(url, body, argument):
    status, text = fetch(f"{url}/act", json.dumps(body).encode(), JSON)
    error = json.loads(text)["error"]
    assert (status, error["argument"]) == (400, argument)
    assert error["remedy"] in error["message"]


@pytest.mark.parametrize("body", [b"{", b"", b"\xff\xfe", b'{"name": "images", "context": [NaN]}', b"[" * 100_000])
def test_what_is_not_json_is_refused(url, body):
    status, text = fetch(f"{url}/act", body, JSON)
    assert status == 400
    assert json.loads(text)["error"]["code"] == "bad argument"


def test_the_calls_are_documented(url):
    _, text = fetch(f"{url}/openapi.json")
    document = json.loads(text)
    calls = {"act", "settle", "skip", "ask", "tell", "bid", "hold", "settle-hold", "release"}
    assert calls <= {path.strip("/") for path in document["paths"]}
    for call in calls:
        post = document["paths"][f"/{call}"]["post"]
        assert post["description"]
        assert {"400", "401", "402", "409", "413"} <= set(post["responses"])


def test_the_client_refuses_what_is_no_address():
    with pytest.raises(InputError, match="url"):
        Client("service.toml")


def test_a_client_without_a_server_says_so():
    with pytest.raises(ServerError, match="no answer") as caught:
        Client("http://127.0.0.1:1", retries=1).bid("campaign", 1.0)
    assert caught.value.status == 0


def test_every_call_says_that_no_server_answers():
    with Client("http://127.0.0.1:9", retries=0) as client:
        for call in (client.status, lambda: client.act("images", context=[1.0])):
            with pytest.raises(ServerError, match=r"^0: no answer from 127.0.0.1:9 .*Start longterm serve") as caught:
                call()
            assert caught.value.remedy


def test_a_message_of_a_queue_counts_once(url):
    with Client(url) as client:
        for number in (7, 8):
            client.hold("money", "team", 1, f"message {number}")
        place = {"partition": "orders-3", "number": 8}
        client.settle_hold("money", "message 8", 1, position=place)
        with pytest.raises(ServerError, match="applied already") as caught:
            client.settle_hold("money", "message 7", 1, position=place | {"number": 7})
        assert (caught.value.status, caught.value.code) == (409, "already applied")
        client.release("money", "message 7")
        for position in ({"partition": "", "number": 1}, {"partition": "p", "number": -1}, {"partition": "p"}, 3):
            with pytest.raises(ServerError, match="position") as caught:
                client.settle_hold("money", "message 8", 1, position=position)
            assert caught.value.status == 400
        bid, asked = client.bid("campaign", 1.0), client.ask("demand", prediction=1.0)
        choice = client.act("images", context=[1.0, 0.0], costs=[0.0, 0.0])
        client.settle("campaign", bid["token"], paid=0.0, position=place)
        client.settle("images", choice["token"], reward=1.0, position=place)
        client.tell("demand", asked["token"], outcome=1.0, position=place)
        with pytest.raises(ServerError, match="applied already"):
            client.tell("demand", asked["token"], outcome=1.0, position=place)


SHARED = """
database = "service.db"
durability = "relaxed"
[ledger.money]
accounts.team = {limit = 0}
[router.models]
prices = {small = 1.0, large = 2.0}
per_request = 1.5
account = {ledger = "money", account = "team", units = 1.0}
[chooser.images]
actions = ["small", "large"]
horizon = 10
budgets = [{limit = 3.0, largest = 1.0}]
account = {ledger = "money", account = "team", units = 1.0}
"""


def test_an_empty_account_answers_402_for_routers_and_choosers(tmp_path):
    with in_thread(tmp_path, SHARED) as url, Client(url) as client:
        for name, request in (("models", {"prompt": "x"}), ("images", {"context": [1.0]})):
            with pytest.raises(ServerError) as caught:
                client.act(name, **request)
            assert (caught.value.status, caught.value.code) == (402, "out of budget")
            assert caught.value.remedy


PYTHON = re.compile(r"\w\(\)|\w=(\W|\w)|_\w+\(|add_account|\bTrue\b|\bNone\b")
"""Words that only callers of the Python library can use."""


@pytest.mark.filterwarnings("ignore::longterm.errors.OverspentWarning")
def test_every_error_has_a_remedy_that_suits_http(tmp_path, monkeypatch):
    """Its message ends with the remedy, and a call over HTTP can follow it."""
    with in_thread(tmp_path) as url, Client(url, retries=0) as client:
        client.hold("money", "team", 1, "closed")
        client.settle_hold("money", "closed", 1)
        client.hold("money", "team", 1, "absurd")
        bid, asked, choice = client.bid("campaign", 0.5), client.ask("power"), client.act("images", context=[1.0, 0.0])
        steep = {"loss_gradient": [10.0, 0.0], "constraint": 0.1, "constraint_gradient": [1.0, 2.0]}
        for status, call in (
            (404, lambda: client.bid("nothing", 1.0)),
            (404, lambda: client._call("nothing")),
            (400, lambda: client.hold("money", "nobody", 1, "k")),
            (400, lambda: client.settle_hold("money", "none", 1)),
            (409, lambda: client.settle_hold("money", "closed", 2)),
            (400, lambda: client.settle_hold("money", "absurd", 101)),
            (400, lambda: client.settle("campaign", bid["token"], paid=1e6)),
            (400, lambda: client.settle("images", choice["token"], reward=1.0, cost=1e6)),
            (400, lambda: client.act("images", context=[1.0, 0.0], allowed=[])),
            (400, lambda: client.act("images")),
            (400, lambda: client.act("models")),
            (400, lambda: client.act("models", prompt=[1.0])),
            (400, lambda: client.tell("power", asked["token"], **steep)),
            (402, lambda: client.hold("money", "team", 601, "k")),
        ):
            error = refused(status, call)
            assert error.remedy
            assert error.code in ("out of budget", "unknown object") or error.remedy in str(error)
            assert not PYTHON.search(str(error)), error
        client.settle_hold("money", "absurd", 101, force=True)  # as the remedy says
        client.settle("campaign", bid["token"], paid=1e3, force=True)
        client.skip("power", asked["token"])
        monkeypatch.setattr("longterm.money.LivePacer.bid", lambda *_: 1 / 0)
        assert refused(500, client.bid, "campaign", 1.0).remedy
