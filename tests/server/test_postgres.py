"""The server on PostgreSQL, with two workers: every kind of object, metrics and history."""

import urllib.request

import pytest

import postgres
from longterm.server import Client, ServerError
from servers import SERVICE, in_process

pytest.importorskip("psycopg")


@pytest.mark.slow
def test_every_call_on_postgresql(tmp_path):
    with postgres.server() as running:
        if running is None:
            pytest.skip("no server can be started here")
        (tmp_path / "service.toml").write_text(SERVICE)
        environment = {"LONGTERM_DATABASE": running.url}
        with in_process(str(tmp_path / "service.toml"), "--workers", "2", environment=environment) as (url, _):
            with Client(url) as client:
                play(client)
            with urllib.request.urlopen(f"{url}/metrics") as answer:
                assert 'longterm_spent{object="money",part="team",unit="cent"} 250.0' in answer.read().decode()
        with in_process(str(tmp_path / "service.toml"), environment=environment) as (url, _):
            with Client(url) as client:
                status = client.status()
            assert status["money"]["spent"] == {"organisation": 250, "team": 250}
            assert (status["power"]["told"], status["power"]["skipped"]) == (1, 1)


def play(client):
    """Make each call once."""
    assert client.hold("money", "team", 400, "one") == {"held": 400}
    with pytest.raises(ServerError, match="402"):
        client.hold("money", "team", 400, "two")
    client.settle_hold("money", "one", 250)
    client.hold("money", "team", 300, "three")
    client.release("money", "three")
    choice = client.act("images", context=[1.0, 0.5], costs=[0.1, 0.5], key="a")
    assert client.act("images", context=[1.0, 0.5], costs=[0.1, 0.5], key="a") == choice
    client.settle("images", choice["token"], reward=0.5)
    with pytest.raises(ServerError, match="409"):
        client.settle("images", choice["token"], reward=0.5)
    client.settle("models", client.act("models", prompt="2 + 2?")["token"], reward=1.0, cost=2e-5)
    client.settle("campaign", client.bid("campaign", 1.0)["token"], paid=0.5)
    asked = client.ask("power")
    client.tell("power", asked["token"], loss_parameters=[[0.3, -0.2]])
    client.skip("power", client.ask("power")["token"])
    client.tell("demand", client.ask("demand", prediction=3.0)["token"], outcome=3.5)
