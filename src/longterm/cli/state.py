"""The command `longterm state`: what a service's database holds."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import tyro

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
        rows = [head, *(_row(found) for found in describe(self.database))]
        widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
        for row in rows:
            line = "  ".join(
                text.rjust(width) if 2 <= k <= 5 else text.ljust(width)
                for k, (text, width) in enumerate(zip(row, widths, strict=True))
            )
            sys.stdout.write(line.rstrip() + "\n")


def _row(found: StoredObject) -> tuple[str, ...]:
    changed = datetime.fromtimestamp(found.changed, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return (
        found.name,
        found.kind,
        str(found.rounds),
        str(found.open),
        _money(found.spent),
        _money(found.held),
        changed,
    )


def _money(amounts: list[float] | None) -> str:
    return "" if amounts is None else " ".join(f"{amount:.6g}" if amount % 1 else f"{amount:.0f}" for amount in amounts)
