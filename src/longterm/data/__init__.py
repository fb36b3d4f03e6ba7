"""Data sets by their publishers' names, and tables of the user.

DATA_SETS, find, path, fetch     the known data sets and their files
load, load_sample                rows with labels
load_adult, load_elec2           two published tables
load_mapped                      dense rows that several processes share
load_table, from_frame           CSV and Parquet files, data frames
read_libsvm                      files in LIBSVM's format
"""

from longterm.data.encoder import ManyFeaturesWarning, TableEncoder
from longterm.data.labelled import Labelled
from longterm.data.libsvm import read_libsvm
from longterm.data.locations import cache_folder, fetch, find, path
from longterm.data.published import Adult, Elec2, load_adult, load_elec2
from longterm.data.registry import DATA_SETS, DataSet, data_set
from longterm.data.rows import load, load_mapped, load_sample
from longterm.data.tables import from_frame, load_table
from longterm.errors import DataError

__all__ = [
    "DATA_SETS",
    "Adult",
    "DataError",
    "DataSet",
    "Elec2",
    "Labelled",
    "ManyFeaturesWarning",
    "TableEncoder",
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
