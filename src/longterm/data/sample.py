"""A small real sample that comes with the package: 6,000 rows of UCI Covertype (see covtype-sample.txt)."""

from __future__ import annotations

import gzip
from importlib.resources import files

import numpy as np

from longterm.data.load import Labelled

# The ranges of the ten measurements in the whole of Covertype.
LOWEST = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0], dtype=np.float64)
HIGHEST = np.array([3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173], dtype=np.float64)
WILDERNESS_AREAS, SOIL_TYPES = 4, 40


def load_sample() -> Labelled:
    """6,000 rows in the 54 columns of LIBSVM's scaled covtype; label +1 for cover type 2, −1 for the others.

    Ten measurements scaled to [0, 1] by the ranges of the whole set, then one column for each wilderness area and each
    soil type. Nothing is downloaded.

    >>> from longterm.data import load_sample
    >>> sample = load_sample()
    >>> sample.features.shape, int((sample.labels == 1).sum())
    ((6000, 54), 2905)
    """
    packed = files("longterm.data").joinpath("covtype-sample.csv.gz").read_bytes()
    table = np.loadtxt(gzip.decompress(packed).decode().splitlines(), delimiter=",", skiprows=1)
    measured = (table[:, :10] - LOWEST) / (HIGHEST - LOWEST)
    area = table[:, 10, None] == np.arange(1, WILDERNESS_AREAS + 1)
    soil = table[:, 11, None] == np.arange(1, SOIL_TYPES + 1)
    labels = np.where(table[:, 12] == 2, 1.0, -1.0)
    return Labelled("covtype sample", np.concatenate([measured, area, soil], axis=1), labels)
