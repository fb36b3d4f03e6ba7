"""LiteLLM's real proxy with two workers and the files of examples/litellm, on this machine, with mock responses.

An optional job: the extra ``litellm[proxy]`` is heavy. Nothing but 127.0.0.1 is called.
"""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from longterm import Ledger
from servers import fetch, free_port

pytest.importorskip("litellm.router", reason="needs the extra `litellm`")
yaml = pytest.importorskip("yaml")

EXAMPLE = Path(__file__).parents[2] / "examples" / "litellm"
KEY = "sk-of-the-test"
LIMIT = 0.01
"""Dollars: about 44 mock answers of the premium model."""
UNITS = 1e8

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cross,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(find_spec("apscheduler") is None, reason="needs litellm[proxy]"),
]


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    """The address of a proxy with two workers, and its database."""
    folder, port = tmp_path_factory.mktemp("proxy"), free_port()
    shutil.copy(EXAMPLE / "longterm_budget.py", folder)
    config = yaml.safe_load((EXAMPLE / "config.yaml").read_text())
    for one in config["model_list"]:
        one["litellm_params"] |= {"mock_response": one["model_name"], "api_key": "none"}
    failing = {"model": "openai/gpt-4o-mini", "mock_response": "litellm.InternalServerError", "api_key": "none"}
    config["model_list"].append({"model_name": "failing", "litellm_params": failing})
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    environment = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": KEY, "LONGTERM_LIMIT": str(LIMIT)}
    command = [sys.executable, "-m", "litellm.proxy.proxy_cli", "--config", "config.yaml", "--port", str(port)]
    command += ["--host", "127.0.0.1", "--num_workers", "2", "--timeout_worker_healthcheck", "120"]
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, **environment}, start_new_session=True)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 240
        while not is_alive(url):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.5)
        yield url, folder / "budget.db"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def is_alive(url):
    try:
        return fetch(f"{url}/health/liveliness")[0] == 200
    except OSError:
        return False


def ask(url, model):
    """The status of a request for a model group, and the group that answered or the error."""
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 20}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    status, text = fetch(f"{url}/chat/completions", json.dumps(body).encode(), headers)
    answer = json.loads(text)
    return status, answer["choices"][0]["message"]["content"] if status == 200 else answer["error"]


def test_attempts_that_fail_hold_no_money(proxy):
    url, database = proxy
    with ThreadPoolExecutor(8) as threads:
        failed = list(threads.map(ask, [url] * 16, ["failing"] * 16))
    assert {status for status, _ in failed} == {500}
    with Ledger.existing(database, "money") as ledger:
        deadline = time.monotonic() + 10
        while ledger.open_holds() and time.monotonic() < deadline:
            time.sleep(0.2)
        assert (ledger.balance("proxy").spent, ledger.balance("proxy").held) == (0, 0)
        attempts = [one for one in ledger.record(most=100_000) if one.what == "released"]
    assert len(attempts) > 16  # LiteLLM tries again


def test_the_money_ends_with_402_and_no_other_group_answers(proxy):
    url, database = proxy
    with ThreadPoolExecutor(8) as threads:
        first = list(threads.map(ask, [url] * 60, ["cheap", "premium"] * 30))
        assert {answer for status, answer in first[::2] if status == 200} == {"cheap"}
        assert {answer for status, answer in first[1::2] if status == 200} == {"premium"}
        until_premium_ends = list(threads.map(ask, [url] * 100, ["premium"] * 100))
        is_over = False
        while not is_over:  # an answer that costs less than its hold makes room for another one
            with Ledger.existing(database, "money") as ledger:
                is_over = not ledger.open_holds()
            is_over = all(status != 200 for status, _ in threads.map(ask, [url] * 40, ["cheap"] * 40)) and is_over
        past = list(threads.map(ask, [url] * 300, ["cheap", "premium"] * 150))
    assert {status for status, _ in [*first, *until_premium_ends]} <= {200, 402}
    assert [status for status, _ in past] == [402] * 300
    assert all("budget" in error["message"] for _, error in past)
    assert {error["type"] for _, error in past} == {"budget_exceeded"}
    with Ledger.existing(database, "money") as ledger:
        deadline = time.monotonic() + 30
        while ledger.open_holds() and time.monotonic() < deadline:
            time.sleep(0.2)
        balance = ledger.balance("proxy")
        entries = [one for one in ledger.record(most=100_000) if one.what == "settled"]
    assert balance.held == 0
    assert 0.95 * LIMIT * UNITS < balance.spent <= LIMIT * UNITS
    # Every answer cost its tokens at LiteLLM's prices, which are 10 in and 20 out for mock responses.
    listed = {model: price_of(model) for model in ("gpt-4o-mini", "gpt-4.1-nano", "gpt-4o")}
    assert {one.new for one in entries} <= {math.ceil(cost * UNITS * (1 - 2.0**-50)) for cost in listed.values()}
    assert balance.spent == sum(one.new for one in entries)


def price_of(model):
    table = json.loads(
        (Path(find_spec("litellm").origin).parent / "model_prices_and_context_window_backup.json").read_text()
    )
    return 10 * table[model]["input_cost_per_token"] + 20 * table[model]["output_cost_per_token"]


def test_an_unknown_group_is_an_error_of_the_caller(proxy):
    status, _ = ask(proxy[0], "nothing")
    assert 400 <= status < 500
