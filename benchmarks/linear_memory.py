"""Peak memory of a process that learns 2,000 sparse rows of d columns, above that of importing the same modules.

Each contestant has a process of its own. Rows have 100 non-zeros, Zipf-distributed columns, and take next to nothing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from linear_timing import Line

ROWS = """
import sys
from pathlib import Path
import numpy as np
from scipy import sparse
d, rng = int(sys.argv[1]), np.random.default_rng(0)
columns = [np.unique(np.minimum(rng.zipf(1.3, 100), d) - 1) for _ in range(2000)]
indptr = np.cumsum([0] + [len(row) for row in columns]).astype(np.int32)
indices = np.concatenate(columns).astype(np.int32)
X = sparse.csr_matrix((rng.standard_normal(len(indices)), indices, indptr), shape=(len(columns), d))
y = np.sign(rng.standard_normal(len(columns)))
"""
CONTESTANTS = {
    "BudgetLinearClassifier": """
from longterm.linear_model import BudgetLinearClassifier
model = lambda: BudgetLinearClassifier(100.0)
""",
    "SGDClassifier": """
from sklearn.linear_model import SGDClassifier
model = lambda: SGDClassifier(loss="log_loss", penalty="elasticnet")
""",
}
LEARN = """
def peak():  # not ru_maxrss, which a process takes over from the one that started it
    said = Path("/proc/self/status").read_text()
    return int(said.partition("VmHWM:")[2].split()[0])

model().partial_fit(X[:, :1000], y, classes=[-1.0, 1.0])  # imports and compiles
before = peak()
model().partial_fit(X, y, classes=[-1.0, 1.0])
print((peak() - before) / 1024)
"""


def measure() -> Iterator[Line]:
    for power in (5, 6, 7):
        for name, imports in CONTESTANTS.items():
            command = [sys.executable, "-c", ROWS + imports + LEARN, str(10**power)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            megabytes = float(done.stdout)
            yield Line(f"d = 10^{power}", name, megabytes, "MiB", f"{megabytes * 2**20 / 10**power:.0f} bytes a column")


if __name__ == "__main__":
    for line in measure():
        print(f"{line.setting:<12}{line.contestant:<26}{line.value:>9,.1f} {line.unit}  {line.remark}", flush=True)
