"""The command `longterm data`: list data sets, download them, find their files."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import tyro

from longterm.cli.options import NameList
from longterm.data import DATA_SETS, cache_folder, fetch, find, path
from longterm.errors import InputError


@dataclass(frozen=True)
class ListAction:
    """List the data sets: name, size, presence of the file, description.

    for example:
      longterm data list
    """

    def run(self) -> None:
        """Print the table."""
        lines = [f"{'name':<12}{'rows':>9}{'columns':>9}  {'here':<5}description"]
        for name, data in DATA_SETS.items():
            here = "no" if find(name) is None else "yes"
            lines.append(f"{name:<12}{data.rows:>9,}{data.features:>9,}  {here:<5}{data.about}")
        lines.append(
            f"Downloads and parsed arrays are stored in {cache_folder()} (LONGTERM_CACHE names another folder);"
        )
        lines.append("LONGTERM_DATA names a folder that already has files.")
        sys.stdout.write("\n".join(lines) + "\n")


@dataclass(frozen=True)
class FetchAction:
    """Download missing data sets from their publishers, and print the paths of the files.

    for example:
      longterm data fetch ijcnn1 covtype
    """

    names: tyro.conf.Positional[NameList]
    """NameList from `longterm data list`."""

    def run(self) -> None:
        """Print the paths."""
        for name in _require_names(self.names):
            sys.stdout.write(f"{fetch(name)}\n")


@dataclass(frozen=True)
class PathAction:
    """Print the paths of data sets; the error for a missing one names its download.

    for example:
      longterm data path ijcnn1
    """

    names: tyro.conf.Positional[NameList]
    """NameList from `longterm data list`."""

    def run(self) -> None:
        """Print the paths."""
        for name in _require_names(self.names):
            sys.stdout.write(f"{path(name)}\n")


@dataclass(frozen=True)
class DataCommand:
    """List data sets, download them, find their files."""

    action: (
        Annotated[ListAction, tyro.conf.subcommand("list")]
        | Annotated[FetchAction, tyro.conf.subcommand("fetch")]
        | Annotated[PathAction, tyro.conf.subcommand("path")]
    )

    def run(self) -> None:
        """Run the action."""
        self.action.run()


def _require_names(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise InputError("names", "is empty", f"Choose from {sorted(DATA_SETS)}")
    return names
