"""Time of a round of the streaming linear learners, beside C, scikit-learn, River and Vowpal Wabbit.

One table, measured in one run: medians over turns, in which the contestants run one after another.

    OPENBLAS_NUM_THREADS=1 python benchmarks/linear.py            # every part
    OPENBLAS_NUM_THREADS=1 python benchmarks/linear.py dense      # one of them
"""

from __future__ import annotations

import importlib
import importlib.util
import sys

PARTS = {"a": "dense", "b": "sparse", "c": "one_row", "d": "memory", "e": "mixture"}
"""Each is a module linear_<name> beside this file with `measure()`, which yields the lines of its part."""


def main(chosen: list[str]) -> None:
    print(f"{'':<4}{'setting':<28}{'contestant':<24}{'median':>12}  {'':<9} remark")
    for letter, name in PARTS.items():
        module = f"linear_{name}"
        if (chosen and name not in chosen) or importlib.util.find_spec(module) is None:
            continue
        for line in importlib.import_module(module).measure():
            print(
                f"({letter}) {line.setting:<28}{line.contestant:<24}{line.value:>12,.1f}  {line.unit:<9} {line.remark}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
