"""Tokens with names: what each may do, until when, and what the logs say about it."""

import datetime
import io
import json
import sqlite3
import time

import pytest

from longterm import InputError
from longterm.server import Client, ServerError
from longterm.server.access_log import AccessLog
from longterm.server.settings import open_service, read_service
from longterm.server.tokens import hash_of, new_token
from servers import SERVICE, fetch, in_thread

SECRETS = {name: new_token() for name in ("team", "next", "board", "operator", "old")}
TOKENS = f"""
[tokens.team]
hashes = ["{hash_of(SECRETS["team"])}", "{hash_of(SECRETS["next"])}"]
spend = ["images", "money/team"]

[tokens.board]
hashes = ["{hash_of(SECRETS["board"])}"]
read = true

[tokens.operator]
hashes = ["{hash_of(SECRETS["operator"])}"]
admin = true

[tokens.old]
hashes = ["{hash_of(SECRETS["old"])}"]
admin = true
expires = 2020-01-01
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder, out = tmp_path_factory.mktemp("tokens"), io.StringIO()
    with in_thread(folder, SERVICE + TOKENS, log=AccessLog(out)) as url:
        yield url, out, folder


def status_of(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except ServerError as error:
        return error.status
    return 200


def test_a_token_spends_where_its_table_says(served):
    url, _, _ = served
    with Client(url, token=SECRETS["team"]) as team, Client(url, token=SECRETS["operator"]) as operator:
        assert status_of(team.hold, "money", "team", 1, "a") == 200
        assert status_of(team.settle_hold, "money", "a", 1) == 200
        assert status_of(team.hold, "money", "organisation", 1, "b") == 403
        assert status_of(operator.hold, "money", "organisation", 1, "b") == 200
        # The key of another account's hold is of no use.
        assert status_of(team.settle_hold, "money", "b", 100) == 403
        assert status_of(team.release, "money", "b") == 403
        assert status_of(operator.release, "money", "b") == 200
        assert status_of(team.act, "images", context=[1.0, 0.0], costs=[0.0, 0.0]) == 200
        assert status_of(team.bid, "campaign", 1.0) == 403
        assert status_of(team.skip, "campaign", "x") == 403
        assert status_of(team.status) == 403
        assert status_of(operator.status) == 200


def test_a_reader_reads_and_spends_nothing(served):
    url, _, _ = served
    with Client(url, token=SECRETS["board"]) as board:
        assert status_of(board.status) == 200
        assert status_of(board.bid, "campaign", 1.0) == 403
        assert status_of(board.ask, "demand", prediction=1.0) == 403
        assert status_of(board.hold, "money", "team", 1, "c") == 403
    for path in ("", "metrics", "history", "status"):
        assert fetch(f"{url}/{path}", headers={"Authorization": f"Bearer {SECRETS['board']}"})[0] == 200
        assert fetch(f"{url}/{path}", headers={"Authorization": f"Bearer {SECRETS['team']}"})[0] == 403


def test_two_secrets_are_valid_at_once_and_an_expired_one_is_not(served):
    url, _, _ = served
    for name, wanted in (("team", 200), ("next", 200), ("old", 401)):
        with Client(url, token=SECRETS[name]) as client:
            assert status_of(client.hold, "money", "team", 1, f"by {name}") == wanted
    _, text = fetch(f"{url}/status", headers={"Authorization": f"Bearer {SECRETS['old']}"})
    assert "'old' has expired" in json.loads(text)["error"]["message"]


def written(out):
    """The length of the log, once the lines of answered requests are in it."""
    length = -1
    while length != len(out.getvalue()):
        length = len(out.getvalue())
        time.sleep(0.1)
    return length


def test_errors_name_nothing_that_a_token_may_not_use(served):
    """Neither the names of other objects nor the account that holds a key."""
    url, _, _ = served
    with Client(url, token=SECRETS["operator"]) as operator:
        operator.hold("money", "organisation", 1, "another's")
    for name in ("team", "board"):
        with Client(url, token=SECRETS[name]) as client:
            for call in (
                lambda client=client: client.bid("nothing", 1.0),
                lambda client=client: client.set("nothing", limit=1),
                lambda client=client: client.settle_hold("money", "another's", 1),
                lambda client=client: client.release("money", "another's"),
            ):
                with pytest.raises(ServerError) as caught:
                    call()
                assert (caught.value.status, bool(caught.value.remedy)) == (403, True)
                assert not any(other in str(caught.value) for other in ("campaign", "models", "organisation"))


def test_the_access_log_names_the_token(served):
    url, out, _ = served
    before = written(out)
    with Client(url, token=SECRETS["team"]) as team:
        team.hold("money", "team", 1, "logged")
        status_of(team.hold, "money", "organisation", 1, "refused")
        status_of(team.bid, "campaign", 1.0)
        status_of(team.bid, "nothing", 1.0)
    fetch(f"{url}/status", headers={"Authorization": "Bearer wrong"})
    fetch(f"{url}/health")
    written(out)
    lines = [json.loads(line) for line in out.getvalue()[before:].splitlines()]
    named = [(one["caller"], one["path"], one["object"], one["account"], one["status"]) for one in lines]
    assert named == [
        ("team", "/hold", "money", "team", 200),
        ("team", "/hold", "money", "organisation", 403),
        ("team", "/bid", "campaign", None, 403),
        ("team", "/bid", None, None, 403),
        (None, "/status", None, None, 401),
    ]
    assert all(secret not in out.getvalue() for secret in SECRETS.values())


def test_readiness_names_objects_to_readers_only(served):
    url, _, _ = served
    assert fetch(f"{url}/ready") == (200, '{"ready":true}')
    _, text = fetch(f"{url}/ready", headers={"Authorization": f"Bearer {SECRETS['board']}"})
    assert set(json.loads(text)["objects"].values()) == {"ready"}


def test_errors_of_the_database_name_no_place(served):
    url, _, folder = served
    with sqlite3.connect(folder / "service.db") as other:
        other.execute("UPDATE longterm_accounts SET spent = -1 WHERE name = 'team'")
    try:
        with Client(url, token=SECRETS["team"], retries=0) as team, pytest.raises(ServerError) as caught:
            team.hold("money", "team", 1, "damaged")
    finally:
        with sqlite3.connect(folder / "service.db") as other:
            other.execute("UPDATE longterm_accounts SET spent = 0 WHERE name = 'team'")
        other.close()
    assert caught.value.status == 503
    assert "corrupted" in str(caught.value)
    assert str(folder) not in str(caught.value)
    assert "service.db" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "argument", "says"),
    [
        ({}, "tokens.t.hashes", "missing"),
        ({"hashes": []}, "tokens.t.hashes", "longterm token"),
        ({"hashes": ["sha:" + "0" * 64]}, "tokens.t.hashes", "not a list of hashes"),
        ({"hashes": [3]}, "tokens.t.hashes", "not a list of hashes"),
        ({"hashes": [hash_of("x")], "spend": ["nothing"]}, "tokens.t.spend", "not an object"),
        ({"hashes": [hash_of("x")], "spend": ["m/nobody"]}, "tokens.t.spend", "not an object or an account"),
        ({"hashes": [hash_of("x")], "expires": "soon"}, "tokens.t.expires", "valid"),
        ({"hashes": [hash_of("x")], "admn": True}, "tokens.t.admn", "did you mean 'admin'"),
    ],
)
def test_faults_in_the_file_are_named(tmp_path, given, argument, says):
    table = {"database": "a.db", "ledger": {"m": {"accounts": {"t": {"limit": 1}}}}, "tokens": {"t": given}}
    with pytest.raises(InputError) as caught:
        open_service(table, tmp_path)
    assert caught.value.argument.startswith(argument)
    assert says in str(caught.value)


@pytest.mark.parametrize("given", [["hunter2" * 5], "hunter2" * 5, ["sha256:" + "hunter2" * 5]])
def test_a_secret_in_place_of_its_hash_is_not_printed(tmp_path, given):
    path = tmp_path / "service.toml"
    path.write_text(f'database = "a.db"\n[ledger.m]\naccounts.t = {{limit = 1}}\n[tokens.t]\nhashes = {given!r}\n')
    with pytest.raises(InputError, match=r"tokens\.t\.hashes: is not a list of hashes.*longterm token") as caught:
        read_service(path)
    assert "hunter" not in str(caught.value)


def test_two_tokens_cannot_have_one_hash(tmp_path):
    tokens = {name: {"hashes": [hash_of("y" + name), hash_of("x")]} for name in ("one", "two")}
    table = {"database": "a.db", "ledger": {"m": {"accounts": {"t": {"limit": 1}}}}, "tokens": tokens}
    with pytest.raises(InputError, match=r"^tokens\.two\.hashes: .*'one' has too"):
        open_service(table, tmp_path)


def test_an_expiry_may_have_a_time(tmp_path):
    moment = datetime.datetime(2030, 1, 1, 12, tzinfo=datetime.UTC)
    tokens = {"t": {"hashes": [hash_of("x")], "expires": moment, "spend": ["m/t"]}}
    table = {"database": "a.db", "ledger": {"m": {"accounts": {"t": {"limit": 1}}}}, "tokens": tokens}
    service = open_service(table, tmp_path)
    assert service.tokens[0].expires == moment.timestamp()
    service.close()
