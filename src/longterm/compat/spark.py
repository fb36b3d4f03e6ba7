"""A learner for each key of a stream on Spark 4 (extra `spark`), by `transformWithState`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from longterm._base import validate
from longterm._base.extras import import_optional
from longterm.errors import InputError
from longterm.play import KeyedLearner

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def decide(stream: Any, *, key: str, learner: KeyedLearner, expire_after: float | None = None) -> Any:
    """Return the stream of decisions for the rows of a stream that ask for one.

    Parameters
    ----------
    stream : pyspark.sql.DataFrame
        A streaming frame with the column of the key and those that the learner names.
    key : str
        The column whose every value has a learner of its own.
    learner : KeyedLearner
        The rule, and the columns that it reads.
    expire_after : float, optional
        The seconds without a row after which a key is forgotten, between the beginnings of the batches. It then begins
        like a new one. Default: never. With the trigger `availableNow`, also set
        spark.sql.streaming.noDataMicroBatches.enabled to false: otherwise Spark waits for keys to expire.

    Returns
    -------
    pyspark.sql.DataFrame
        A streaming frame with the columns key, request, round and x, and `ignored`: the rows of the key without effect.
        Write it with a checkpoint, and every row of the stream changes the state exactly once.
    """
    streaming: Any = import_optional("pyspark.sql.streaming", "decide needs Spark", "spark")
    row_of = import_optional("pyspark.sql", "decide needs Spark", "spark").Row
    if not getattr(stream, "isStreaming", False):
        raise InputError("stream", "is not a streaming frame", "Make it by spark.readStream")
    columns = dict(stream.dtypes)
    for column in (key, learner.request, learner.order, learner.outcome):
        if column not in columns:
            raise InputError("stream", f"has no column {column!r}", f"Choose from {sorted(columns)}")
    if stream.sparkSession.conf.get(PROVIDER, "") != ROCKSDB:
        raise InputError("stream", "belongs to a session without RocksDB", f"Set {PROVIDER} to {ROCKSDB}")
    lifetime = None if expire_after is None else round(1000 * validate.positive_scalar("expire_after", expire_after))

    class Processor(streaming.StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            self.stored = handle.getValueState("learner", "state binary", lifetime)

        def handleInputRows(self, own: Any, rows: Iterator[Any], timers: Any) -> Iterator[Any]:  # noqa: N802
            before = self.stored.get()
            state, decisions = learner.play(
                None if before is None else bytes(before[0]), (row.asDict() for row in rows)
            )
            self.stored.update((state,))
            for request, number, x, ignored in decisions:
                yield row_of(**{key: own[0]}, request=request, round=number, x=list(x), ignored=ignored)

        def close(self) -> None:
            pass

    output = f"`{key}` {columns[key]}, request string, round bigint, x array<double>, ignored bigint"
    mode = "None" if lifetime is None else "ProcessingTime"
    return stream.groupBy(key).transformWithState(Processor(), output, "append", mode)
