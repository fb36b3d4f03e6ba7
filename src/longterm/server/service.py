"""The objects of a service, and the names of their actions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from longterm.money import Chooser
from longterm.server.lanes import MakeGroup
from longterm.server.tokens import KnownToken
from longterm.storage.engine import Durability
from longterm.storage.pool import ConnectionPool
from longterm.storage.record import RecordEntry
from longterm.storage.stored_object import Metrics, Stored

POSTGRES = ("postgresql://", "postgres://")


@dataclass(frozen=True)
class ServedChooser:
    """A chooser whose actions have names, as the models of a router have."""

    chooser: Chooser
    names: tuple[str, ...]

    def name_of(self, action: int) -> str:
        """Return the name of an action, which a request with the same key may have got from another replica's file."""
        return self.names[action] if action < len(self.names) else self.chooser.names[action]

    def metrics(self) -> Metrics:
        """Return the figures of the chooser."""
        return self.chooser.metrics()

    def record(self, *, since: float, most: int) -> list[RecordEntry]:
        """Return what people have changed of the chooser."""
        return self.chooser.record(since=since, most=most)

    def close(self) -> None:
        """Close the connection."""
        self.chooser.close()


@dataclass
class Service:
    """The objects of a service by name, all in one database.

    Parameters
    ----------
    database : str
        The file or URL.
    durability : {"commit", "relaxed"}
        Of all of them.
    title : str
        For the page.
    objects : dict
        Learners, choosers, routers, pacers, ledgers and intervals, by name.
    kinds : dict
        Their kinds, by name.
    guide : str
        The address that the page links to for those who use the service; "" for none.
    units : dict
        The units of their money, by name.
    tokens : tuple of KnownToken
        Who may call.
    pool : ConnectionPool, optional
        The connections that its objects share, on PostgreSQL.
    """

    database: str
    durability: Durability = "commit"
    title: str = "longterm"
    objects: dict[str, Any] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    guide: str = ""
    units: dict[str, str] = field(default_factory=dict)
    tokens: tuple[KnownToken, ...] = ()
    pool: ConnectionPool | None = None

    @property
    def is_postgres(self) -> bool:
        """True if the database is one of PostgreSQL."""
        return self.database.startswith(POSTGRES)

    def close(self) -> None:
        """Close all connections."""
        for one in self.objects.values():
            one.close()
        if self.pool is not None:
            self.pool.close()

    def group_maker(self, name: str) -> MakeGroup | None:
        """Return the function that makes calls of an object in one transaction, if they can share one."""
        found = self.objects[name]
        stored: Stored[Any] = getattr(found, "chooser", found)
        return stored.commit_group if stored.commits_groups else None

    def metrics(self, name: str) -> Metrics:
        """Return the figures of one object."""
        found: Metrics = self.objects[name].metrics()
        return found
