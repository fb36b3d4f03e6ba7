"""Peak memory of a run against the number of rounds, which must not increase it.

python benchmarks/memory.py
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys

ONE_RUN = """
import resource
from longterm import AOGD, run
from longterm.problems import doubly_stochastic
from longterm.problems.streams import RandomPermutations
problem = doubly_stochastic(4)
run(problem, AOGD.for_problem(problem), RandomPermutations(4), ROUNDS, engine=ENGINE, progress=None)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_megabytes(rounds: int, engine: str) -> float:
    """Return the peak resident memory of a new process that runs this many rounds."""
    code = ONE_RUN.replace("ROUNDS", str(rounds)).replace("ENGINE", repr(engine))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, kilobytes elsewhere
    return int(done.stdout) / unit


def main() -> None:
    print("peak memory of a run, doubly-stochastic p = 4, one learner (a fresh process each)")
    engines = {"numpy": (10**4, 10**5, 10**6), "jax": (10**5, 10**6, 10**7)}
    for engine, horizons in engines.items():
        if engine == "jax" and not importlib.util.find_spec("jax"):
            continue
        base = None
        for rounds in horizons:
            peak = peak_megabytes(rounds, engine)
            base = base or peak
            print(f"{engine:<6}{rounds:>9} rounds{peak:>9.1f} MB{peak - base:>+8.1f} MB")


if __name__ == "__main__":
    main()
