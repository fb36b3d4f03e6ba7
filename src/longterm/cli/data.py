"""The command `longterm data`: list data sets, download them, find their files."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal

import tyro

from longterm.cli.options import NameList
from longterm.data import fetch, find
from longterm.data.locations import cache_folder, path
from longterm.data.registry import DATA_SETS
from longterm.errors import InputError


@dataclass(frozen=True)
class DataCommand:
    """List data sets, download them, or find their files.

      list    print each data set with its size, whether its file is here, and a description
      fetch   download missing data sets from their publishers, and print the paths of the files
      path    print the paths of the files; if one is missing, print where to download it

    for example:
      longterm data list
      longterm data fetch ijcnn1 covtype
      longterm data path ijcnn1
    """

    action: tyro.conf.Positional[Literal["list", "fetch", "path"]]
    """The action: list, fetch or path."""
    names: tyro.conf.Positional[NameList] = ()
    """The data sets for fetch and path, by the names that `longterm data list` prints."""

    def run(self) -> None:
        """Print the table or the paths."""
        if self.action == "list":
            sys.stdout.write(_list_data_sets())
        elif not self.names:
            raise InputError("names", "is empty", f"Choose from {sorted(DATA_SETS)}")
        for name in self.names:
            sys.stdout.write(f"{fetch(name) if self.action == 'fetch' else path(name)}\n")


def _list_data_sets() -> str:
    lines = [f"{'name':<12}{'rows':>9}{'columns':>9}  {'here':<5}description"]
    for name, data in DATA_SETS.items():
        here = "no" if find(name) is None else "yes"
        lines.append(f"{name:<12}{data.rows:>9,}{data.features:>9,}  {here:<5}{data.about}")
    lines.append(f"Downloads and parsed arrays are stored in {cache_folder()} (LONGTERM_CACHE names another folder);")
    lines.append("LONGTERM_DATA names a folder that already has files.")
    return "\n".join(lines) + "\n"
