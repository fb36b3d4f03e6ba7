"""Decide for the rows of a stream on Spark, as a process that a test kills: ``python spark_stream.py FOLDER``.

FOLDER/in has the rows of `write_stream`. FOLDER/decisions.parquet and FOLDER/models.parquet are the results.
"""

import ast
import os
import re
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

EVENTS, FILES, CUSTOMERS = 4000, 8, 40
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


def write_stream(folder):
    """Write the rows as files of one batch each, a second apart: Spark reads the oldest first. Rows are shuffled."""
    frame = stream()
    for number, part in enumerate(np.array_split(np.arange(EVENTS), FILES)):
        path = folder / f"{number}.parquet"
        frame.iloc[part].sample(frac=1, random_state=number).to_parquet(path)
        os.utime(path, (1e9 + number, 1e9 + number))


def shops():
    """Return rows of 20 shops; the last has one class only."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.standard_normal((2000, 3)), columns=["price", "size", "age"])
    frame["shop"], frame["row"] = np.arange(2000) % 20, np.arange(2000)
    frame["sold"] = (frame["price"] + frame["shop"] * frame["size"] > 0) | (frame["shop"] == 19)
    return frame


def block_of_page(word, only=False):
    """Return the code of the guide that has this word: the block, or only the statement."""
    text = (Path(__file__).parents[2] / "docs" / "guides" / "beyond_one_machine.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:python|{code-block} python)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    (block,) = [one for one in blocks if word in one]
    statements = [ast.unparse(one) for one in ast.parse(block).body]
    return "\n".join(one for one in statements if word in one) if only else block


def main(folder):
    os.chdir(folder)  # the page writes to relative paths, and so does the JVM
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",  # else availableNow with expire_after never ends
        PROVIDER: ROCKSDB,
    }
    spark = SparkSession.builder.master(os.environ.get("SPARK_MASTER", "local[2]")).config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet("in")
    names = {"stream": rows, "keyed": KEYED, "fit": FIT, "frame": spark.createDataFrame(shops())}
    exec(block_of_page("import decide"), names)
    names["query"].awaitTermination()
    spark.read.parquet("decisions").toPandas().to_parquet("decisions.parquet")
    exec(block_of_page("applyInPandas", only=True), names)
    names["models"].toPandas().to_parquet("models.parquet")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
