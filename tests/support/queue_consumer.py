"""The loops of the page on queues, in processes that are killed between any two effects.

    python tests/support/queue_consumer.py redis|kafka HOST:PORT FOLDER

It prints one line of JSON: what learner and ledger hold after a run without kills, and for each effect after a run that
was killed after it, was started again, and then received all messages once more. Children are forked, so that a run
costs milliseconds. Nothing that has threads is imported in use before the fork.
"""

import json
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from clocks import ManualClock
from longterm import AOGD, Ledger, LiveLearner
from longterm.errors import AlreadyToldError
from longterm.problems import two_dimensional

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "queues.md"
PROBLEM = two_dimensional()
REQUESTS = [0, 1, 2, 2, 3, 1, 4]
"""The requests of the messages: the producer sent two of them twice."""
DAYS = 2 * 86_400.0


def events():
    """The messages: feedback and cost of a request."""
    for place, request in enumerate(REQUESTS):
        first = REQUESTS.index(request)
        prices = [0.5 * np.sin(first), 0.5 * np.cos(first)]
        yield json.dumps({"request": f"request {request}", "prices": prices, "cost": 50 + 10 * first, "at": place})


def block(word):
    """The code of the page that has this word."""
    found = re.findall(r"```\{code-block\} python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (code,) = [one for one in found if word in one]
    return code


class FinishedError(Exception):
    """The queue has no more messages."""


class Counted:
    """An object whose calls with these names are effects, after which a process may die."""

    step = 0
    die_after = 0

    def __init__(self, made, names):
        self.made, self.names = made, names

    def __getattr__(self, name):
        found = getattr(self.made, name)
        return self.counted(found) if name in self.names else found

    @staticmethod
    def counted(call):
        def counted(*arguments, **options):
            answer = call(*arguments, **options)
            Counted.step += 1
            if Counted.step == Counted.die_after:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return counted


def objects(path, later):
    clock = ManualClock()
    clock.advance(later)
    options = {"durability": "relaxed", "clock": clock}
    live = LiveLearner.open(path, AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5), PROBLEM, **options)
    ledger = Ledger.open(path, **options)
    ledger.add_account("team", 10**6)
    return live, ledger


def in_child(work):
    """Do something in a forked process; return how it ended."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    status = 1
    signal.alarm(30)  # nobody waits for a child whose parent died
    try:
        work()
        status = 0
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    finally:
        sys.stderr.flush()
        os._exit(status)


def consume(kind, path, queue, later=0.0):
    """Run the loop of the page until the queue is empty. Write the effects made to a file."""
    live, ledger = objects(path, later)
    names = {
        "live": Counted(live, ("ask", "tell")),
        "ledger": Counted(ledger, ("hold", "settle")),
        "np": np,
        "json": json,
        "suppress": suppress,
        "AlreadyToldError": AlreadyToldError,
        **queue,
    }
    exec(block("def apply"), names)
    with suppress(FinishedError):
        exec(block("xreadgroup" if kind == "redis" else "poll"), names)
    path.with_suffix(".steps").write_text(str(Counted.step))


def seen(path):
    """What learner and ledger hold, of any age, and no times."""
    live, ledger = objects(path, DAYS)
    state = live.state
    return {
        "learner": [state.asked, state.told, state.in_flight, state.largest_delay, float(state.cumulative_loss)],
        "x": state.x.tolist(),
        "ledger": list(ledger.balance("team")),
        "holds": sorted([entry.key, entry.what, entry.new] for entry in ledger.record()),
    }


def redis_queue(address, name):
    import redis

    host, _, port = address.partition(":")

    class Stream(Counted):
        def __init__(self, _, **options):
            super().__init__(redis.Redis(host, int(port), db=0, **options), ("xack",))

        def xreadgroup(self, group, consumer, streams, **options):
            (start,) = streams.values()
            found = self.made.xreadgroup(name, consumer, streams, **options | {"block": 1, "count": 2})
            if not found and start == ">":
                raise FinishedError
            return found

        def xack(self, stream, group, entry):
            return self.counted(self.made.xack)(stream, name, entry)

    return {"Redis": Stream}


def kafka_queue(address, name):
    import confluent_kafka as kafka

    class Consumer(Counted):
        def __init__(self, given):
            given |= {"bootstrap.servers": address, "group.id": name, "enable.partition.eof": True}
            super().__init__(kafka.Consumer(given | {"fetch.wait.max.ms": 10}), ("commit",))

        def subscribe(self, topics):
            # As the only member of the group: the mock broker lets a group wait for the dead member for seconds.
            self.made.assign([kafka.TopicPartition(topic, 0, kafka.OFFSET_STORED) for topic in topics])

        def poll(self, seconds):
            message = self.made.poll(seconds)
            if message is not None and message.error() and message.error().code() == kafka.KafkaError._PARTITION_EOF:
                raise FinishedError
            return message

    return {"Consumer": Consumer, "KafkaException": kafka.KafkaException}


def fill_redis(address, names):
    """Write the messages, and a group of consumers for each name."""
    import redis

    host, _, port = address.partition(":")
    with redis.Redis(host, int(port)) as client:
        client.flushall()
        for event in events():
            client.xadd("orders", {"event": event})
        for name in names:
            client.xgroup_create("orders", name, id="0")


def main(kind, address, folder):
    """Kill a consumer after each effect, start it again, deliver everything once more, and print what was found."""

    def run(name, die_after):
        path = Path(folder) / f"{name}.db"
        live, ledger = objects(path, 0.0)
        for request in (0, 1, 2):  # the service has answered these: their feedback is late
            live.ask(f"request {request}")
            ledger.hold("team", 100, key=f"request {request}")
        live.close()
        ledger.close()

        def work(group, later=0.0):
            queue = redis_queue(address, group) if kind == "redis" else kafka_queue(address, group)
            Counted.step, Counted.die_after = 0, die_after if not later else 0
            consume(kind, path, queue, later)

        ended = in_child(lambda: work(name))
        if die_after:
            if ended != -signal.SIGKILL:
                raise SystemExit(f"the consumer was not killed after effect {die_after}: {ended}")
            die_after = 0
            ended = in_child(lambda: work(name))
        steps = int(path.with_suffix(".steps").read_text())
        before = in_child_value(lambda: seen(path), path)
        if ended or in_child(lambda: work(f"{name} again", DAYS)):
            raise SystemExit("a consumer failed")
        return steps, before, in_child_value(lambda: seen(path), path)

    # The number of effects without kills is an upper limit: each message has five.
    most = 5 * len(REQUESTS)
    names = [f"g{place}" for place in range(most + 1)]
    if kind == "redis":
        fill_redis(address, [name + more for name in names for more in ("", " again")])
    steps, whole, again = run("g0", 0)
    killed = [run(f"g{place}", place)[1:] for place in range(1, steps + 1)]
    sys.stdout.write(json.dumps({"steps": steps, "whole": whole, "again": again, "killed": killed}))


def in_child_value(read, path):
    """Return what a function returns in a forked process."""
    file = path.with_suffix(".json")
    if in_child(lambda: file.write_text(json.dumps(read()))):
        raise SystemExit("the state cannot be read")
    return json.loads(file.read_text())


if __name__ == "__main__":
    main(*sys.argv[1:])
