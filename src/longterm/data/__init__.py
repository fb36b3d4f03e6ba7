"""Data sets by their publishers' names: where they are, fetched, parsed once, checked.

DATA_SETS, find, path, fetch     what there is, and where its file is
load, load_adult, load_sample    the arrays
load_mapped                      dense rows that many processes share
load_table, from_frame           a CSV or Parquet file, a data frame of your own
read_libsvm                      a file in LIBSVM's format
load_elec2                       half-hourly prices of electricity
"""

from longterm.data.files import cache_folder, fetch, find, path
from longterm.data.libsvm import read_libsvm
from longterm.data.registry import DATA_SETS, DataSet, Labelled, data_set
from longterm.data.rows import load, load_mapped, load_sample
from longterm.data.tables import Adult, Elec2, from_frame, load_adult, load_elec2, load_table
from longterm.errors import DataError

__all__ = [
    "DATA_SETS",
    "Adult",
    "DataError",
    "DataSet",
    "Elec2",
    "Labelled",
    "cache_folder",
    "data_set",
    "fetch",
    "find",
    "from_frame",
    "load",
    "load_adult",
    "load_elec2",
    "load_mapped",
    "load_sample",
    "load_table",
    "path",
    "read_libsvm",
]
