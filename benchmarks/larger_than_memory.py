"""Peak memory of a model that learns 1 GB of Parquet in batches: python benchmarks/larger_than_memory.py [GB].

A fresh process for each size. The files have 200 columns of random numbers and are removed at the end. They have row
groups of 10,000 rows, of a whole file, and of 1,048,576 rows, which is Arrow's default. The weights of the smallest set
are compared with those of one pass in memory.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from longterm.linear_model import BudgetLinearLearner

COLUMNS, FILE_ROWS, DEFAULT_GROUP = 200, 78_125, 2**20
"""A file with `FILE_ROWS` rows holds 125 MB."""
NAMES = [f"f{column}" for column in range(COLUMNS)]
ONE_PASS = """
import resource, sys, time
from pathlib import Path
from longterm.data import learn_files
from longterm.linear_model import BudgetLinearLearner
folder, files, out = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
begin = time.perf_counter()
paths = sorted(folder.glob("*.parquet"))[:files]
model = learn_files(BudgetLinearLearner(200, budget=5.0), paths, "y", out=out, progress=None)
seconds, status = time.perf_counter() - begin, Path("/proc/self/status")
if status.exists():  # Linux counts the parent's memory in ru_maxrss
    peak = float(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(peak, model.rounds, seconds)
"""


def write(folder: Path, files: int, rows: int, group: int) -> None:
    """Write files with so many random rows each, in groups of so many rows."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=COLUMNS) * (rng.random(COLUMNS) < 0.1)
    schema = pa.schema([(name, pa.float64()) for name in [*NAMES, "y"]])
    for number in range(files):
        X = rng.normal(size=(rows, COLUMNS))
        y = np.where(X @ w + rng.normal(size=rows) > 0, 1.0, -1.0)
        with pq.ParquetWriter(folder / f"{number:03d}.parquet", schema) as file:
            file.write_table(pa.table([*X.T.copy(), y], schema=schema), row_group_size=group)


def one_pass(folder: Path, files: int, out: Path) -> None:
    out.unlink(missing_ok=True)
    command = [sys.executable, "-c", ONE_PASS, str(folder), str(files), str(out)]
    peak, rows, seconds = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    size = sum(file.stat().st_size for file in sorted(folder.glob("*.parquet"))[:files])
    print(f"{size / 1e6:8.0f} MB of files  {int(rows):9,} rows  peak {float(peak):5.0f} MB  {float(seconds):5.1f} s")


def main() -> None:
    files = round(float(sys.argv[1]) * 8) if len(sys.argv) > 1 else 8
    sets = [(files, FILE_ROWS, 10_000), (files, FILE_ROWS, FILE_ROWS)]
    sets += [(1, min(files * FILE_ROWS, DEFAULT_GROUP), DEFAULT_GROUP)]
    for files, rows, group in sets:
        with tempfile.TemporaryDirectory() as name:
            folder, out = Path(name), Path(name) / "model"
            write(folder, files, rows, group)
            print(f"groups of {min(rows, group):,} rows")
            for count in sorted({files, max(files // 2, 1), 1}):
                one_pass(folder, count, out)
                if count == 1:
                    table = pq.read_table(folder / "000.parquet")
                    whole = BudgetLinearLearner(COLUMNS, budget=5.0)
                    whole.learn(np.column_stack([table.column(name) for name in NAMES]), np.asarray(table.column("y")))
                    same = np.array_equal(whole.weights, BudgetLinearLearner.load(out).weights)
                    print(f"weights equal to those of one pass in memory, bit for bit: {same}")


if __name__ == "__main__":
    main()
