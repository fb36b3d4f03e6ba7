"""The command `longterm state`: what a service's database holds."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import tyro

from longterm._base.display import TextTable
from longterm.cli.output import terminal_width
from longterm.storage.contents import StoredObject, describe


@dataclass(frozen=True)
class StateCommand:
    """List the objects in a service's database: kind, rounds, open rounds, money, last change.

    for example:
      longterm state show service.db
      longterm state show postgresql://localhost/service
    """

    action: tyro.conf.Positional[Literal["show"]]
    """The only action."""
    database: tyro.conf.Positional[str]
    """A file of SQLite, or a URL of PostgreSQL."""

    def run(self) -> None:
        """Print a table."""
        head = ("name", "kind", "rounds", "open", "spent", "held", "last change (UTC)")
        rows = [_row(found) for found in describe(self.database)]
        sys.stdout.write(TextTable(head, rows).to_text(terminal_width()) + "\n")


def _row(found: StoredObject) -> tuple[str, ...]:
    changed = datetime.fromtimestamp(found.changed, UTC).strftime("%Y-%m-%d %H:%M:%S")
    counts = (str(found.rounds), str(found.open), _money(found.spent), _money(found.held))
    return (found.name, found.kind, *counts, changed)


def _money(amounts: dict[str, float] | None) -> str:
    shown = {name: f"{amount:.6g}" if amount % 1 else f"{amount:.0f}" for name, amount in (amounts or {}).items()}
    return ", ".join(f"{name} {amount}".lstrip() for name, amount in shown.items())
