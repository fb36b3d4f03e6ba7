"""longterm data: which data sets there are, where their files are, and getting them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import tyro

from longterm.data import DATA_SETS, cache_folder, fetch, find, path
from longterm.errors import InputError


@dataclass(frozen=True)
class ListAction:
    """Every data set that is known by name: its size, whether its file is here, what it is.

    try:
      longterm data list
    """

    def run(self) -> None:
        """Print the table."""
        lines = [f"{'name':<12}{'rows':>9}{'columns':>9}  {'here':<5}what it is"]
        for name, data in DATA_SETS.items():
            here = "no" if find(name) is None else "yes"
            lines.append(f"{name:<12}{data.rows:>9,}{data.features:>9,}  {here:<5}{data.about}")
        lines.append(f"Downloads and parsed arrays are kept in {cache_folder()} (LONGTERM_CACHE names another folder);")
        lines.append("LONGTERM_DATA names a folder that already has files.")
        sys.stdout.write("\n".join(lines) + "\n")


@dataclass(frozen=True)
class FetchAction:
    """Download data sets from their publishers, where they are not here yet, and print where they are.

    try:
      longterm data fetch ijcnn1 covtype
    """

    names: tyro.conf.Positional[tuple[str, ...]]
    """Names from `longterm data list`."""

    def run(self) -> None:
        """Print a path for each."""
        for name in _at_least_one(self.names):
            sys.stdout.write(f"{fetch(name)}\n")


@dataclass(frozen=True)
class PathAction:
    """Print where the files of data sets are; an error says what to download where one is not here.

    try:
      longterm data path ijcnn1
    """

    names: tyro.conf.Positional[tuple[str, ...]]
    """Names from `longterm data list`."""

    def run(self) -> None:
        """Print a path for each."""
        for name in _at_least_one(self.names):
            sys.stdout.write(f"{path(name)}\n")


@dataclass(frozen=True)
class DataCommand:
    """Data sets by their publishers' names: list them, download them, find their files."""

    action: (
        Annotated[ListAction, tyro.conf.subcommand("list")]
        | Annotated[FetchAction, tyro.conf.subcommand("fetch")]
        | Annotated[PathAction, tyro.conf.subcommand("path")]
    )

    def run(self) -> None:
        """Do it."""
        self.action.run()


def _at_least_one(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise InputError("names", "is empty", f"Choose from {sorted(DATA_SETS)}")
    return names
