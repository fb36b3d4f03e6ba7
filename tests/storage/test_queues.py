"""Consumers of Redis Streams and Kafka, killed between any two effects, and messages that come again days later.

They need redis-server and redis, or confluent-kafka, which has a mock broker. Without them they are skipped.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import longterm
import queue_consumer

SCRIPT = Path(queue_consumer.__file__)


def consumed(kind, address, folder):
    """Return what learner and ledger held after runs with kills and without."""
    package = str(Path(longterm.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([package, str(SCRIPT.parent)])}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", SCRIPT, kind, address, folder],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=150,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def check(found, kills):
    whole = found["whole"]
    asked, told, in_flight, delay, _ = whole["learner"]
    assert (asked, told, in_flight) == (5, 5, 0)
    assert delay > 0
    costs = {"request 0": 50, "request 1": 60, "request 2": 70, "request 3": 90, "request 4": 110}
    assert whole["ledger"] == [10**6, sum(costs.values()), 0]
    assert whole["holds"] == [[key, "settled", cost] for key, cost in costs.items()]
    assert found["again"] == whole
    assert len(found["killed"]) == kills
    for place, (after, again) in enumerate(found["killed"], 1):
        assert after == again == whole, f"killed after effect {place}"


@contextmanager
def redis_server(folder):
    """Start a server on this machine, and stop it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    server = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            with socket.socket() as found:
                if found.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


@pytest.mark.slow
def test_redis_streams(tmp_path):
    pytest.importorskip("redis", reason="needs redis: pip install redis")
    if shutil.which("redis-server") is None:
        pytest.skip("needs redis-server: apt-get install redis-server")
    with redis_server(tmp_path) as address:
        found = consumed("redis", address, tmp_path)
    check(found, found["steps"])
    assert found["steps"] >= 5 * 5


@contextmanager
def kafka_broker():
    """Start the mock broker of librdkafka with the messages in it."""
    kafka = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install confluent-kafka")
    producer = kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0})
    for event in queue_consumer.events():
        producer.produce("orders", event, partition=0)
    assert producer.flush(20.0) == 0
    (broker,) = producer.list_topics(timeout=20.0).brokers.values()
    yield f"{broker.host}:{broker.port}"


@pytest.mark.slow
def test_kafka(tmp_path):
    with kafka_broker() as address:
        found = consumed("kafka", address, tmp_path)
    check(found, found["steps"])
    assert found["steps"] >= 5 * 5
