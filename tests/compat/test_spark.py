"""A learner for each key on Spark: driver, JVM and executors are killed, and every decision is that of one process.

An optional job (``make test-engines``): Spark and its JVM take half a minute to start.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from longterm.errors import InputError

pytest.importorskip("pyspark", reason="needs the extra `spark`")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)

import spark_stream
from longterm.compat.spark import decide

pytestmark = [pytest.mark.slow, pytest.mark.cross]
SECONDS = 400
SCRIPT = Path(spark_stream.__file__)


def start(folder):
    """Start the driver in a process group of its own, with its messages in a file."""
    environment = os.environ | {"PYTHONPATH": str(SCRIPT.parent)}
    with (folder / "said").open("ab") as said:
        command = [sys.executable, str(SCRIPT), str(folder)]
        return subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True, env=environment)


def commits(folder):
    return len(list((folder / "checkpoint" / "commits").glob("[0-9]*")))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    (folder / "in").mkdir()
    spark_stream.write_stream(folder / "in")
    process, end = start(folder), time.monotonic() + SECONDS
    try:
        while commits(folder) < 3 and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        assert process.poll() is None, (folder / "said").read_text()[-3000:]
        os.killpg(process.pid, signal.SIGKILL)  # the driver, its JVM, both executors and their Python workers
        assert process.wait() == -signal.SIGKILL
        assert 3 <= commits(folder) < spark_stream.FILES
        process = start(folder)
        assert process.wait(SECONDS) == 0, (folder / "said").read_text()[-3000:]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return folder


def played(results, expire_after):
    """Return the decisions of one process that forgets a key as Spark does, and how often it forgot one and did not.

    A batch keeps its time when it is repeated after a kill.
    """
    states, last, wanted, expired, continued = {}, {}, [], 0, 0
    for number, rows in enumerate(spark_stream.batches()):
        now = json.loads((results / "checkpoint" / "offsets" / str(number)).read_text().split("\n")[1])[
            "batchTimestampMs"
        ]
        for customer, own in rows.groupby("customer"):
            is_expired = customer in last and last[customer] + 1000 * expire_after <= now
            expired, continued = expired + is_expired, continued + (customer in last and not is_expired)
            before = None if is_expired else states.get(customer)
            states[customer], decisions = spark_stream.KEYED.play(before, own.to_dict("records"))
            last[customer] = now
            wanted += [(customer, *decision) for decision in decisions]
    return sorted(wanted), expired, continued


def test_every_decision_is_that_of_one_process(results):
    found = pd.read_parquet(results / "decisions.parquet")
    ours = sorted((row.customer, row.request, row.round, tuple(row.x), row.ignored) for row in found.itertuples())
    wanted, expired, continued = played(results, spark_stream.EXPIRE_AFTER)
    assert len(wanted) > 2000
    assert max(one[-1] for one in wanted) > 0
    assert min(expired, continued) > 10
    assert wanted != played(results, 10**6)[0]
    assert ours == wanted


def test_a_model_for_each_group_is_that_of_one_process(results):
    found = pd.read_parquet(results / "models.parquet").sort_values("shop").reset_index(drop=True)
    ours = pd.concat([spark_stream.FIT(rows) for _, rows in spark_stream.shops().groupby("shop")], ignore_index=True)
    assert found["model"].tolist() == ours["model"].tolist()
    assert found["rows"].tolist() == [100] * 20
    assert found["error"][:19].isna().all()
    assert "number of classes" in found["error"][19]


def test_what_is_no_stream_is_refused():
    session = SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: default))
    types = [(name, "string") for name in ("customer", "request", "position", "a")]
    for stream, match in (
        (object(), "is not a streaming frame"),
        (SimpleNamespace(isStreaming=True, dtypes=types[:3]), "has no column 'a'"),
        (SimpleNamespace(isStreaming=True, dtypes=types, sparkSession=session), "without RocksDB"),
    ):
        with pytest.raises(InputError, match=f"stream: .*{match}"):
            decide(stream, key="customer", learner=spark_stream.KEYED)
