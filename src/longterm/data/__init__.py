"""Data sets by their publishers' names, and tables of the user.

find, fetch                      the file of a known data set
load, load_sample                rows with labels
load_adult, load_elec2           two published tables
load_table, from_frame           CSV and Parquet files, data frames
learn_files, read_batches        files larger than the memory, in batches
group_fit                        a model for each group, on Spark, Dask, Ray Data and pandas
TableModel                       a linear model with the encoder of its table, in one file
read_libsvm                      files in LIBSVM's format

Streams of rounds made from rows belong in `problems.streams`.
"""

from longterm.data.batches import learn_files, read_batches
from longterm.data.group_model import group_fit
from longterm.data.libsvm import read_libsvm
from longterm.data.locations import fetch, find
from longterm.data.named_rows import load, load_sample
from longterm.data.published_sets import load_adult, load_elec2
from longterm.data.table_model import TableModel
from longterm.data.tables import from_frame, load_table

__all__ = [
    "TableModel",
    "fetch",
    "find",
    "from_frame",
    "group_fit",
    "learn_files",
    "load",
    "load_adult",
    "load_elec2",
    "load_sample",
    "load_table",
    "read_batches",
    "read_libsvm",
]
