"""Calls of clients that wait at the same moment share a transaction, and nothing else."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from longterm import Ledger
from longterm.server.lanes import BusyError, Lane
from servers import fetch, in_thread

JSON = {"Content-Type": "application/json"}


class Grouping:
    """What an object's `commit_group` does, with a record of the groups."""

    def __init__(self):
        self.groups, self.errors = [], ValueError

    def __call__(self, calls, keys):
        self.groups.append(list(keys))
        answers = []
        for call in calls:
            try:
                answers.append(call())
            except self.errors as error:
                answers.append(error)
        return answers


def fail(what):
    raise ValueError(what)


def use(lane, *calls):
    """The answers and errors of calls that arrive at the same moment."""

    async def gather():
        return await asyncio.gather(*(call() for call in calls), return_exceptions=True)

    try:
        return asyncio.run(gather())
    finally:
        lane.close()


def test_calls_that_arrive_together_are_made_together():
    grouping = Grouping()
    lane = Lane("money", grouping)
    calls = [lambda place=place: lane.join(str, place, key=f"key {place}") for place in range(5)]
    assert use(lane, *calls) == ["0", "1", "2", "3", "4"]
    assert grouping.groups == [[f"key {place}" for place in range(5)]]


def test_each_caller_has_the_answer_or_the_error_of_its_call():
    lane = Lane("money", Grouping())
    first, error, last = use(lane, lambda: lane.join(str, 1), lambda: lane.join(fail, "b"), lambda: lane.join(str, 3))
    assert (first, str(error), last) == ("1", "b", "3")


def test_a_call_that_may_not_share_keeps_its_place():
    grouping, order = Grouping(), []
    lane = Lane("money", grouping)
    joined = [lambda place=place: lane.join(order.append, place) for place in range(4)]
    use(lane, *joined[:2], lambda: lane.run(order.append, "alone"), *joined[2:])
    assert order == [0, 1, "alone", 2, 3]
    assert [len(group) for group in grouping.groups] == [2, 2]


def test_a_lane_goes_on_after_whatever_happens():
    def explode(calls, keys):
        raise MemoryError("everything")

    lane = Lane("money", explode)
    found = use(lane, lambda: lane.join(str, 1), lambda: lane.join(str, 2))
    assert [str(one) for one in found] == ["everything"] * 2
    lane = Lane("money", explode)
    assert use(lane, lambda: lane.run(str, 1)) == ["1"]


def test_a_caller_that_gives_up_is_left_out_and_delays_nobody():
    grouping = Grouping()
    lane, stop = Lane("money", grouping, most=4), threading.Event()

    async def use_it():
        blocking = asyncio.create_task(lane.run(stop.wait, seconds=0.1))
        await asyncio.sleep(0.02)
        gone = asyncio.create_task(lane.join(str, "gone", key="gone"))
        await asyncio.sleep(0.02)
        gone.cancel()
        with pytest.raises(BusyError, match="did not answer within"):
            await blocking
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(lane.join(str, "late", key="late"), 0.05)
        stop.set()
        return await asyncio.gather(lane.join(str, 1, key="a"), lane.join(str, 2, key="b"))

    assert asyncio.run(use_it()) == ["1", "2"]
    assert grouping.groups == [["a", "b"]]
    lane.close()


def test_a_call_whose_caller_gives_up_while_others_of_its_group_are_made_is_not_made():
    grouping, made, begun, stop = Grouping(), [], threading.Event(), threading.Event()
    grouping.errors = BusyError
    lane = Lane("money", grouping)

    async def use_it():
        first = asyncio.create_task(lane.join(lambda: begun.set() or stop.wait(10)))
        second = asyncio.create_task(lane.join(made.append, "gone"))
        third = asyncio.create_task(lane.join(made.append, "third"))
        await asyncio.to_thread(begun.wait, 10)
        second.cancel()
        await asyncio.sleep(0)
        stop.set()
        await asyncio.gather(first, third)

    asyncio.run(use_it())
    assert made == ["third"]
    lane.close()


def test_an_error_that_no_future_takes_reaches_its_caller():
    def end():
        raise StopIteration("the end")

    grouping = Grouping()
    grouping.errors = StopIteration
    lane = Lane("money", grouping)
    first, error = use(lane, lambda: lane.join(str, 1), lambda: lane.join(end))
    assert first == "1"
    assert "the end" in str(error)


def test_clients_that_spend_at_the_same_moment_stay_within_the_limit(tmp_path, monkeypatch):
    """200 holds of 7 on a limit of 600, with errors of clients among them: 85 are admitted, each counts once."""
    sizes, commit = [], Ledger.commit_group
    monkeypatch.setattr(Ledger, "commit_group", lambda *given: sizes.append(len(given[1])) or commit(*given))

    def post(place, path="hold"):
        key = f"key {place % 200}" if place % 11 else "a\0b"  # some keys are refused, and every request comes twice
        body = {"name": "money", "account": "team", "amount": 7, "key": key}
        if path == "settle-hold":
            body = {"name": "money", "key": key, "actual": 3}
        return place, fetch(f"{url}/{path}", json.dumps(body).encode(), JSON)[0]

    with in_thread(tmp_path) as url, ThreadPoolExecutor(16) as clients:
        found = dict(clients.map(post, range(400)))
        assert {place for place, status in found.items() if status == 400} == set(range(0, 400, 11))
        admitted = {place for place, status in found.items() if status == 200}
        keys = {place % 200 for place in admitted}
        assert len(keys) == 85
        assert set(found.values()) == {200, 400, 402}
        assert max(sizes) > 1
        settled = dict(clients.map(lambda place: post(place, "settle-hold"), sorted(admitted)))
        assert set(settled.values()) == {200}
    with Ledger.open(tmp_path / "service.db", unit="cent", name="money") as ledger:
        assert ledger.balance("team") == (600, 3 * 85, 0)
        assert ledger.balance("organisation") == (1000, 3 * 85, 0)
