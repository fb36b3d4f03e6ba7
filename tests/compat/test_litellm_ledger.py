"""Four issues of LiteLLM as tests: its router and mock responses, several workers, one ledger.

BerriAI/litellm #34732 (admission is not atomic), #33325 (spend is local to a pod), #27639 and #40050 (leaked and
phantom reservations), #38647 (worst-case holds refuse calls while little is spent).
"""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("litellm.router", reason="needs the extra `litellm`")

import litellm_worker
from litellm_worker import CALIBRATED, LARGE, PRICES, SMALL, TOKENS_IN, UNITS, make
from longterm import Ledger
from longterm.compat.litellm_router import METADATA_KEY, BudgetExhaustedError

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]  # the warnings are LiteLLM's own

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "litellm.md"
WORKER = Path(litellm_worker.__file__)
HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture
def database(tmp_path):
    return tmp_path / "service.db"


@pytest.fixture
def strategies():
    made = []
    yield made
    for one in made:
        one.unregister()


def ledger_with(database, limit, holds="worst", **options):
    ledger = Ledger.open(database, unit="microcent", holds=holds, durability="relaxed")
    ledger.add_account("team", limit, **options)
    return ledger


def start(database, work, number):
    command = [sys.executable, str(WORKER), str(database), work, str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_workers_admit_atomically_and_share_what_is_spent(database):
    """#34732 and #33325: three workers with four threads each, and money for 60 of 150 calls to the large model."""
    limit = 60 * LARGE
    ledger = ledger_with(database, limit)
    workers = [start(database, "complete", 50) for _ in range(3)]
    counts = [json.loads(worker.communicate(timeout=300)[0]) for worker in workers]
    balance = ledger.balance("team")
    assert (balance.held, sum(count["admitted"] + count["refused"] for count in counts)) == (0, 150)
    assert balance.spent <= limit  # no call costs more than its hold, so nothing is above the limit
    admitted = sum(count["admitted"] for count in counts)
    # Exact: every admitted call was charged once, at one of the two prices.
    assert (balance.spent - SMALL * admitted) % (LARGE - SMALL) == 0
    assert 0 <= (balance.spent - SMALL * admitted) // (LARGE - SMALL) <= admitted
    if admitted < 150:  # a refusal means that not even the small model was affordable
        assert limit - balance.spent < 12 * LARGE


def test_refusals_come_at_the_limit_and_not_before(database, strategies):
    """#33325: a second worker sees what the first one spent, and the last money goes to the small model."""
    ledger_with(database, LARGE + 3 * SMALL)
    first, second = make(database), make(database)
    strategies += [first, second]
    for _ in range(200):
        try:
            kwargs = {}
            first.get_available_deployment("any", HELLO, request_kwargs=kwargs)
        except BudgetExhaustedError:
            break
        first.log_success_event({"litellm_params": kwargs}, answer(), None, None)
    assert first.ledger.balance("team").available < SMALL
    with pytest.raises(BudgetExhaustedError):
        second.get_available_deployment("any", HELLO, request_kwargs={})
    second.ledger.add_account("team", LARGE + 4 * SMALL)
    second.get_available_deployment("any", HELLO, request_kwargs={})


def answer(tokens_out=20, number=1):
    return {"id": f"answer-{number}", "usage": {"prompt_tokens": TOKENS_IN, "completion_tokens": tokens_out}}


def test_the_holds_of_a_killed_worker_come_back(database):
    """#27639, #40050: the worker dies with five calls open. Their money is free after `hold_seconds`."""
    ledger = ledger_with(database, 5 * LARGE)
    worker = start(database, "hang", 5)
    held = json.loads(worker.stdout.readline())
    assert held >= 5 * SMALL
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    deadline = time.monotonic() + 30
    while ledger.balance("team").held and time.monotonic() < deadline:
        time.sleep(0.1)
    assert ledger.balance("team") == (5 * LARGE, 0, 0)
    ledger.hold("team", 5 * LARGE, "all of it")


def test_calls_that_fail_or_end_late_leave_no_phantom(database, strategies):
    """#40050: a failed call gives everything back, and one that ends after its hold expired is charged once."""
    ledger = ledger_with(database, 5 * LARGE)
    strategy = make(database, seconds=0.2)
    strategies.append(strategy)
    failed, late = {}, {}
    strategy.get_available_deployment("any", HELLO, request_kwargs=failed)
    strategy.log_failure_event({"litellm_params": failed}, None, None, None)
    assert ledger.balance("team") == (5 * LARGE, 0, 0)
    deployment = strategy.get_available_deployment("any", HELLO, request_kwargs=late)
    time.sleep(0.3)
    assert ledger.balance("team").held == 0
    for _ in range(2):  # LiteLLM may report a call twice
        strategy.log_success_event({"litellm_params": late}, answer(), None, None)
    cost = SMALL if "small" in deployment["litellm_params"]["model"] else LARGE
    assert ledger.balance("team") == (5 * LARGE, cost, 0)


def test_a_mocked_call_that_fails_releases_its_hold(database, strategies):
    import litellm

    ledger = ledger_with(database, 5 * LARGE)
    strategy = make(database)
    strategies.append(strategy)
    with pytest.raises(litellm.RateLimitError):
        strategy.router.completion(model="any", messages=HELLO, mock_response="litellm.RateLimitError")
    deadline = time.monotonic() + 30
    while ledger.balance("team").held and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ledger.balance("team") == (5 * LARGE, 0, 0)


def admitted_at_once(strategy, calls, concurrent=8):
    """The calls that are admitted with so many open at once, each with a short answer; and the largest overshoot."""
    opened, admitted = [], 0
    for number in range(calls):
        kwargs = {}
        try:
            strategy.get_available_deployment("any", HELLO, request_kwargs=kwargs)
        except BudgetExhaustedError:
            continue
        admitted += 1
        opened.append((number, kwargs))
        if len(opened) == concurrent:
            first, given = opened.pop(0)
            strategy.log_success_event({"litellm_params": given}, answer(number=first), None, None)
    for number, given in opened:
        strategy.log_success_event({"litellm_params": given}, answer(number=number), None, None)
    return admitted


def test_calibrated_holds_do_not_refuse_what_the_budget_pays_for(tmp_path, strategies):
    """#38647: answers may have 4,096 tokens and have 20. Worst-case holds of eight calls are above the budget."""
    worst_small = round(UNITS * (TOKENS_IN * PRICES[0][0] + 4096 * PRICES[0][1]))
    limit, calls = 4 * worst_small, 120
    assert calls * LARGE > limit > calls * SMALL
    ledger_with(tmp_path / "worst.db", limit)
    ledger = ledger_with(tmp_path / "calibrated.db", limit, CALIBRATED, reserve=8 * 25 * worst_small)
    strategies.append(make(tmp_path / "worst.db", largest=4096))
    strategies.append(make(tmp_path / "calibrated.db", CALIBRATED, largest=4096))
    for strategy in strategies:  # the small model only: its costs are the same in both
        strategy.chooser.remove_action(1)
    by_worst = admitted_at_once(strategies[0], calls)
    admitted_at_once(strategies[1], 25, concurrent=1)  # the holds are learned
    by_calibrated = admitted_at_once(strategies[1], calls)
    assert by_worst < calls / 2
    assert by_calibrated == calls
    balance = ledger.balance("team")
    assert (balance.spent, balance.held) == ((calls + 25) * SMALL, 0)
    assert balance.spent <= limit


def test_a_thousand_small_costs_add_up_exactly(database, strategies):
    """No float drift: 0.1 cent a thousand times is a dollar, and the last unit can be spent."""
    assert sum([0.001] * 1000) != 1.0
    ledger = ledger_with(database, round(UNITS))
    strategy = make(database, largest=4096)
    strategies.append(strategy)
    for number in range(1000):
        kwargs = {"max_tokens": 1}
        strategy.get_available_deployment("any", HELLO, request_kwargs=kwargs)
        given = {"litellm_params": kwargs, "response_cost": 0.001}
        strategy.log_success_event(given, answer(number=number), None, None)
    assert ledger.balance("team") == (round(UNITS), round(UNITS), 0)


def test_a_reward_may_come_to_another_worker(database, strategies):
    ledger_with(database, 5 * LARGE)
    first, second = make(database), make(database)
    strategies += [first, second]
    kwargs = {}
    first.get_available_deployment("any", HELLO, request_kwargs=kwargs)
    second.reward(kwargs["metadata"][METADATA_KEY], 1.0)
    first.log_success_event({"litellm_params": kwargs}, answer(), None, None)
    assert not first.chooser.pending


def test_the_account_may_depend_on_the_request(database, strategies):
    ledger = ledger_with(database, 0)
    ledger.add_account("other", 5 * LARGE)
    strategy = make(database)
    strategies.append(strategy)
    strategy.account = lambda metadata: metadata.get("team", "team")
    with pytest.raises(BudgetExhaustedError):
        strategy.get_available_deployment("any", HELLO, request_kwargs={})
    strategy.get_available_deployment("any", HELLO, request_kwargs={"metadata": {"team": "other"}})
    assert ledger.balance("other").held > 0


def test_the_strategy_of_the_guide(tmp_path, monkeypatch):
    import litellm

    (code,) = re.findall(r"```python\n(# In every process.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    models = [{"model_name": "any", "litellm_params": {"model": f"openai/{k}", "api_key": "none"}} for k in "ab"]
    names = {"router": litellm.Router(model_list=models, num_retries=0)}
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "litellm.md", "exec"), names)
    (strategy,) = [one for one in litellm.callbacks if type(one).__name__ == "BudgetStrategy"]
    strategy.get_available_deployment("any", [{"role": "user", "content": "Hello"}], request_kwargs={})
    assert names["ledger"].balance("team").held > 0
    strategy.unregister()
