"""longterm catalogue: the learners and problems that can be named."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from longterm.experiments.catalogue import learners, problems
from longterm.experiments.catalogue.base import signature


@dataclass(frozen=True)
class CatalogueCommand:
    """The learners and problems that can be named, with their parameters and defaults.

    try:
      longterm catalogue
    """

    def run(self) -> None:
        """Print them."""
        groups: dict[str, Any] = {"learners": learners(), "problems": problems()}
        for group, entries in groups.items():
            sys.stdout.write(f"{group}\n{_lines(entries)}\n")


def _lines(entries: dict[str, Any]) -> str:
    return "\n".join(f"  {signature(entry)}\n      {entry.about}" for entry in entries.values())
