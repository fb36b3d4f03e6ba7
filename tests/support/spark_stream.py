"""Decide for the rows of a stream on Spark, as a process that a test kills: ``python spark_stream.py FOLDER``.

FOLDER/in has the rows of `write_stream`. FOLDER/decisions.parquet and FOLDER/models.parquet are the results. Spark runs
two executors, each in a process of its own.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from longterm import AOGD, observe
from longterm.compat.spark import PROVIDER, ROCKSDB
from longterm.data import group_fit
from longterm.linear_model import BudgetLinearClassifier
from longterm.play import KeyedLearner
from longterm.problems import two_dimensional
from pages import block_of_page

EVENTS, FILES, CUSTOMERS = 4800, 12, 40
EXPIRE_AFTER = 6
"""Seconds. The page has 30 days."""
SCHEMA = "customer bigint, request string, position bigint, a double, b double"
PROBLEM = two_dimensional()


def feedback(x, row):
    return observe(PROBLEM, x, [np.array([row["a"], row["b"]])])


RULE = AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5)
KEYED = KeyedLearner(RULE, feedback, order="position", outcome="a")
FIT = group_fit(BudgetLinearClassifier(random_state=0), key="shop", label="sold", order="row")


def stream():
    """Return rows whose feedback is late, in any order, repeated or missing. Requests are repeated, too."""
    rng = np.random.default_rng(0)
    due: list[tuple[int, tuple]] = []
    for number in range(EVENTS):
        customer, name = int(rng.integers(CUSTOMERS)), f"r{number}"
        events = [(number, (customer, name, None, None))]
        if rng.random() < 0.05:
            events.append((number + int(rng.integers(200)), events[0][1]))
        if rng.random() < 0.95:
            a = float(rng.random())
            events.append((number + int(rng.integers(1, 300)), (customer, name, a, 1 - a)))
            if rng.random() < 0.1:
                events.append((number + 300 + int(rng.integers(100)), events[-1][1]))
        due += events
    rows = [row for _, row in sorted(due, key=lambda pair: pair[0])][:EVENTS]
    frame = pd.DataFrame(rows, columns=["customer", "request", "a", "b"])
    return frame.assign(position=np.arange(EVENTS))


def batches():
    """Return the rows of each batch. Every fourth customer is silent in four of them."""
    frame = stream()
    parts = [frame.iloc[part] for part in np.array_split(np.arange(EVENTS), FILES)]
    return [rows.query("customer % 4 > 0") if 6 <= number < 10 else rows for number, rows in enumerate(parts)]


def write_stream(folder):
    """Write the rows as files of one batch each, a second apart: Spark reads the oldest first. Rows are shuffled."""
    for number, rows in enumerate(batches()):
        path = folder / f"{number}.parquet"
        rows.sample(frac=1, random_state=number).to_parquet(path)
        os.utime(path, (1e9 + number, 1e9 + number))


def shops():
    """Return rows of 20 shops; the last has one class only."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.standard_normal((2000, 3)), columns=["price", "size", "age"])
    frame["shop"], frame["row"] = np.arange(2000) % 20, np.arange(2000)
    frame["sold"] = (frame["price"] + frame["shop"] * frame["size"] > 0) | (frame["shop"] == 19)
    return frame


def main(folder):
    os.chdir(folder)  # the page writes to relative paths, and so does the JVM
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",  # else availableNow with expire_after never ends
        PROVIDER: ROCKSDB,
    }
    spark = SparkSession.builder.master("local-cluster[2,1,1024]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet("in")
    names = {"stream": rows, "keyed": KEYED, "fit": FIT, "frame": spark.createDataFrame(shops())}
    exec(block_of_page("import decide").replace("30 * 86_400", str(EXPIRE_AFTER)), names)
    names["query"].awaitTermination()
    spark.read.parquet("decisions").toPandas().to_parquet("decisions.parquet")
    exec(block_of_page("applyInPandas", only=True), names)
    names["models"].toPandas().to_parquet("models.parquet")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
