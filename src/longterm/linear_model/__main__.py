"""The worked example from the command line.

python -m longterm.linear_model --help
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from longterm.data import Labelled, load, load_sample
from longterm.errors import DataError
from longterm.linear_model.example import Study, study, table
from longterm.linear_model.figure import figure

EXPLANATION = """\
covtype and sector, streamed row by row: A-FTRL and penalised FTRL under a budget, nothing tuned, beside SGDClassifier
with the same elastic net as a penalty, at the best α of a grid chosen in hindsight. Prints a table and draws a figure.
"""
WHERE = """\
The files are found in the folder that the environment variable LONGTERM_DATA names, or downloaded; `longterm.data`
knows where from. Where neither works, the 6,000 rows of covtype that come with the package are played instead.
"""
BUDGETS = {"covtype": 7.0, "sector": 1000.0, "covtype sample": 7.0}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the example and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m longterm.linear_model",
        description=EXPLANATION,
        epilog=WHERE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", nargs="+", choices=["covtype", "sector", "sample"], default=["covtype", "sector"])
    parser.add_argument("--rows", type=int, default=100_000, help="play at most so many rows of each (100,000)")
    parser.add_argument("--figure", type=Path, default=Path("linear_model.png"), metavar="FILE")
    given = parser.parse_args(arguments)
    studies: list[Study] = []
    for name in given.data:
        data = _data(name)
        if all(data.name != found.name for found in studies):
            studies.append(study(data, BUDGETS[data.name], given.rows))
            sys.stdout.write(f"{table(studies[-1])}\n\n")
            sys.stdout.flush()
    figure(studies, given.figure)
    sys.stdout.write(f"figure: {given.figure}\n")
    return 0


def _data(name: str) -> Labelled:
    if name == "sample":
        return load_sample()
    try:
        data = load(name)
    except DataError as error:
        sys.stderr.write(f"{name} is not here ({error}). Playing the sample instead.\n")
        return load_sample()
    if name == "sector":  # 105 classes: the first half against the rest
        return Labelled(name, data.features.tocsr(), np.where(data.labels <= 52, 1.0, -1.0))
    return data


if __name__ == "__main__":
    sys.exit(main())
