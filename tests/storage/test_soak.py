"""Half a minute of `make soak`: nothing lost, no crash, no wrong error, whatever happens to the processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[1] / "support" / "soak.py"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_half_a_minute_of_soaking_loses_nothing():
    """In a process of its own: one that has used JAX must not fork."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, SOAK, "30"], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[2:]]
    assert len(rows) == 12
    assert all(int(row[-5].replace(",", "")) > 0 for row in rows[:-1]), done.stdout  # the last needs a server
