"""The objects of a service by name, from a TOML file.

    database = "service.db"                # a file beside this one, or postgresql://…
    durability = "commit"                  # or "relaxed"

    [ledger.money]
    unit = "microcent"
    accounts.team = {limit = 5_000_000, period = "day"}

    [router.models]
    prices = {small = 3e-5, large = 1.5e-2}
    per_request = 1e-3

    [tokens.gateway]                       # longterm token gateway prints such a table
    hashes = ["sha256:…"]
    spend = ["models", "money/team"]

A table ``[kind.name]`` is one object. The classes below have its keys.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from datetime import date, datetime, time
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

from longterm._base.extras import missing_extra
from longterm.calibration import LiveIntervals
from longterm.catalogue.lookup import find_learner, find_problem
from longterm.catalogue.words import parse_words
from longterm.errors import InputError
from longterm.money import (
    EXP3IX,
    Budget,
    Ceiling,
    Chooser,
    DualMirrorDescent,
    EntropicDual,
    EuclideanDual,
    ExcessHold,
    ExponentialWeights,
    HedgeDual,
    Ledger,
    LinearUCB,
    LivePacer,
    PlannedPrice,
    PrimalDual,
    ReturnOnSpend,
    Router,
    SharedAccount,
    ThompsonSampling,
)
from longterm.money.choosing.primal_dual import LIMITS
from longterm.money.ledger.accounts import require_settings
from longterm.money.pacing.live_pacer import CHANGEABLE
from longterm.money.periods import Period
from longterm.play import LiveLearner
from longterm.server.changes import WHO, AppliedSettings, apply_limits, warn_of_actions, warn_of_others
from longterm.server.service import POSTGRES, ServedChooser, Service
from longterm.server.tokens import Caller, KnownToken, is_hash
from longterm.storage.pool import limit_connections

try:
    from pydantic import field_validator
    from pydantic_core import PydanticCustomError

    from longterm.server.tables import Table, at, built, chosen, read_table
except ImportError as error:
    raise missing_extra("the server needs FastAPI and uvicorn", "server,metrics") from error

PRIMALS = {one.__name__: one for one in (ThompsonSampling, LinearUCB, EXP3IX, ExponentialWeights)}
DUALS = {one.__name__: one for one in (EntropicDual, EuclideanDual, HedgeDual, PlannedPrice)}
PACERS = {one.__name__: one for one in (DualMirrorDescent, ReturnOnSpend)}
LONGEST_NAME = 60
_ROUTER = {"per_request", "least_quality", "features", "credit", "bank", "largest", "seed"}
CEILING_DEFAULTS: dict[str, Any] = {"credit": 0.0, "bank": None}
"""The limits of a ceiling that the file may leave out."""
DATABASE = "LONGTERM_DATABASE"
"""The environment variable that replaces the database of the file, so that a password need not be in it."""


class Place(NamedTuple):
    """The database of an object, its name and durability there, and its table in the file."""

    url: str
    options: dict[str, Any]
    where: str
    applies: bool
    """True if what has changed in the file is applied: not by a worker that is replaced."""


# --- kinds: the fields of each class are the keys of its table --------------------------------------------------


class AccountTable(Table):
    """An account of a ledger."""

    limit: int
    parent: str | None = None
    period: Literal["day", "week", "month"] | None = None
    timezone: str = "UTC"
    rate: int = 0
    reserve: int | None = None


class LedgerTable(Table):
    """A ledger and its accounts; parents come first. `holds` are the settings of calibrated holds."""

    accounts: dict[str, AccountTable]
    unit: str = "unit"
    holds: dict[str, Any] | None = None
    remember: float = 86_400.0
    keep: float = 604_800.0

    def open(self, place: Place) -> Ledger:
        """Open the ledger and add new accounts, once all accounts are known to be valid."""
        rule: Any = "worst" if self.holds is None else built(f"{place.where}.holds", ExcessHold, self.holds)
        times = {"remember": self.remember, "keep": self.keep} if place.applies else {}
        accounts = {name: account.model_dump() for name, account in self.accounts.items()}
        for name, wanted in accounts.items():
            at(_account_place(place.where, name), require_settings, **wanted)
        ledger = at(place.where, Ledger.open, place.url, unit=self.unit, holds=rule, **times, **place.options)
        try:
            known = ledger.settings
            for name, wanted in accounts.items():
                if name in known:
                    _require_parent(_account_place(place.where, name), known[name].parent, wanted["parent"])
            for name, wanted in accounts.items():
                if name not in known:
                    at(_account_place(place.where, name), ledger.add_account, name=name, **wanted)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def apply(self, ledger: Ledger, where: str, applied: AppliedSettings) -> None:
        """Apply what has changed in the file about accounts."""
        present = ledger.settings
        for name, account in self.accounts.items():
            place, change = _account_place(where, name), partial(ledger.change, name, who=WHO)
            at(place, applied.apply, place, account.model_dump(), present[name]._asdict(), change)


def _account_place(where: str, name: str) -> str:
    """Return the table of an account in the file."""
    return f"{where}.accounts.{name}"


def _require_parent(place: str, before: str | None, now: str | None) -> None:
    if now != before:
        what = f"was {before!r}, is {now!r}, and an account keeps its parent"
        raise InputError(f"{place}.parent", what, "Undo the change, or add an account with another name")


class RoundsTable(Table):
    """The keys of objects that have rounds."""

    expire_after: int | None = None
    max_age: float | None = None

    def window(self) -> dict[str, Any]:
        """Return the limits of open rounds as keyword arguments."""
        names = ("max_in_flight", "expire_after", "max_age")
        return {name: getattr(self, name) for name in names}


class LearnerTable(RoundsTable):
    """A live learner; problem and learner are texts as on the command line of `longterm run`."""

    problem: str
    learner: str
    horizon: int = 100_000
    max_in_flight: int = 1024
    expire_after: int | None = 1000

    def open(self, place: Place) -> LiveLearner:
        """Open the learner."""
        (asked, given), (named, own) = parse_words(self.problem, "problem"), parse_words(self.learner, "learner")
        entry, kind = find_problem(asked, "problem.name"), find_learner(named)
        entry.check(given, "problem")
        kind.check(own, f"learner.{named}")
        problem = entry.build(**given)
        stated = getattr(problem, "problem", problem)
        rule = kind.learner(stated, self.horizon, own)
        return LiveLearner.open(place.url, rule, stated, **self.window(), **place.options)


class ChooserTable(RoundsTable):
    """A chooser. A budget with per_request is a Ceiling, another one a Budget."""

    actions: list[Any]
    budgets: list[dict[str, Any]]
    features: int = 1
    horizon: int | None = None
    primal: dict[str, Any] = {"kind": "ThompsonSampling"}
    dual: dict[str, Any] = {"kind": "EuclideanDual"}
    stop: bool = True
    replan: bool = False
    seed: int = 0
    max_in_flight: int = 100_000
    account: dict[str, Any] | None = None
    unit: str = ""

    def open(self, place: Place) -> ServedChooser:
        """Open the chooser."""
        names, where = _require_names("actions", self.actions), place.where
        if not self.budgets:
            raise InputError("budgets", "is empty", "Write budgets = [{limit = 100.0, largest = 2.0}]")
        money = [
            built(f"{where}.budgets[{index}]", Ceiling if "per_request" in one else Budget, one)
            for index, one in enumerate(self.budgets)
        ]
        primal = chosen(f"{where}.primal", self.primal, PRIMALS, actions=len(names), features=self.features)
        dual = chosen(f"{where}.dual", self.dual, DUALS)
        rule = PrimalDual(primal, dual, money, self.horizon, stop=self.stop, replan=self.replan)
        options: dict[str, Any] = {"seed": self.seed, "account": _shared(self.account, where), "names": names}
        found = Chooser.open(place.url, rule, follow=True, **options, **self.window(), **place.options)
        return ServedChooser(found, names)

    def apply(self, found: ServedChooser, where: str, applied: AppliedSettings) -> None:
        """Apply what has changed in the file about limits."""
        at(where, apply_limits, found.chooser, where, self.changeable(), applied)
        warn_of_actions(where, found.chooser.names, found.names)

    def changeable(self) -> dict[str, Any]:
        """Return what may be changed while the chooser is used. Limits that are removed get their defaults."""
        if "least_reward" in self.dual:
            return {"least_reward": self.dual["least_reward"]}
        stated = [CEILING_DEFAULTS | one if "per_request" in one else one for one in self.budgets]
        given = {f"{one.get('name', 'money')}.{name}": one[name] for one in stated for name in LIMITS if name in one}
        return given if self.horizon is None else given | {"horizon": self.horizon}


class RouterTable(RoundsTable):
    """A router of prompts; without `features`, prompts are texts."""

    prices: dict[str, float]
    per_request: float | None = None
    least_quality: float | None = None
    features: int | None = None
    credit: float = 0.0
    bank: float | None = None
    largest: dict[str, float] | None = None
    seed: int = 0
    max_in_flight: int = 100_000
    account: dict[str, Any] | None = None
    unit: str = "dollar"

    def open(self, place: Place) -> Router:
        """Open the router."""
        given = self.model_dump(include=_ROUTER)
        given |= self.window() | {"account": _shared(self.account, place.where)}
        return Router.for_models(self.prices, **given, follow=True, url=place.url, **place.options)

    def apply(self, router: Router, where: str, applied: AppliedSettings) -> None:
        """Apply what has changed in the file about limits."""
        at(where, apply_limits, router.chooser, where, self.changeable(), applied)
        warn_of_actions(where, router.chooser.names, router.names)

    def changeable(self) -> dict[str, Any]:
        """Return what may be changed while the router is used."""
        if self.least_quality is not None:
            return {"least_reward": self.least_quality}
        return {"money.per_request": self.per_request, "money.credit": self.credit, "money.bank": self.bank}


class PacerTable(Table):
    """A pacer."""

    rule: dict[str, Any]
    period: Period | None = None
    timezone: str = "UTC"
    max_age: float | None = None
    account: dict[str, Any] | None = None
    unit: str = ""

    def open(self, place: Place) -> LivePacer:
        """Open the pacer."""
        rule = chosen(f"{place.where}.rule", self.rule, PACERS)
        given: dict[str, Any] = self.model_dump(include={"period", "timezone", "max_age"})
        given |= {"account": _shared(self.account, place.where)}
        return at(place.where, LivePacer.open, place.url, rule, follow=True, **given, **place.options)

    def apply(self, live: LivePacer, where: str, applied: AppliedSettings) -> None:
        """Apply what has changed in the file about limits."""
        at(where, apply_limits, live, where, self.changeable(), applied)

    def changeable(self) -> dict[str, Any]:
        """Return what may be changed while the pacer is used."""
        rule = {name: self.rule[name] for name in CHANGEABLE if name in self.rule}
        return rule | {"period": self.period or "", "timezone": self.timezone}


class IntervalsTable(Table):
    """Prediction intervals."""

    confidence_level: float = 0.9
    groups: list[Any] = []
    symmetric: bool = True

    def open(self, place: Place) -> LiveIntervals:
        """Open the intervals."""
        names = _require_names("groups", self.groups) if self.groups else ()
        given: dict[str, Any] = {"groups": names, "symmetric": self.symmetric}
        return LiveIntervals.open(place.url, self.confidence_level, **given, **place.options)


KINDS: dict[str, type[Any]] = {
    "ledger": LedgerTable,
    "learner": LearnerTable,
    "chooser": ChooserTable,
    "router": RouterTable,
    "pacer": PacerTable,
    "intervals": IntervalsTable,
}
"""Ledgers come first: other objects may use their accounts."""
LIMITED = (LedgerTable, ChooserTable, RouterTable, PacerTable)
"""The kinds with limits that the file may change."""


# --- the file ---------------------------------------------------------------------------------------------------


class TokenTable(Table):
    """A token: hashes of the secrets that are valid, an expiry, and what its holders may do."""

    hashes: list[str]
    expires: datetime | date | None = None
    spend: list[str] = []
    read: bool = False
    admin: bool = False

    @field_validator("hashes", mode="before")
    @classmethod
    def _require_hashes(cls, given: Any) -> Any:
        """Raise an error that does not show the value, which may be a secret."""
        if not isinstance(given, list) or not given or not all(map(is_hash, given)):
            remedy = "Run `longterm token NAME`, which prints a table with one"
            raise PydanticCustomError("longterm", "is not a list of hashes", {"remedy": remedy})
        return given

    def known(self, name: str) -> KnownToken:
        """Return the token."""
        spend = None if self.admin and not self.spend else frozenset(self.spend)
        caller = Caller(name, spend, self.read or self.admin, self.admin)
        return KnownToken(caller, tuple(self.hashes), float("inf") if self.expires is None else _moment(self.expires))


class ServiceTable(Table):
    """The top level of the file."""

    database: str
    durability: Literal["commit", "relaxed"] = "commit"
    title: str = "longterm"
    connections: int = 2
    guide: str = ""
    tokens: dict[str, dict[str, Any]] = {}
    learner: dict[str, Any] = {}
    chooser: dict[str, Any] = {}
    router: dict[str, Any] = {}
    pacer: dict[str, Any] = {}
    ledger: dict[str, Any] = {}
    intervals: dict[str, Any] = {}


def read_service(path: str | PathLike[str], *, apply: bool = True) -> Service:
    """Open the objects that a TOML file describes, or create them in its database.

    Parameters
    ----------
    path : path
        The file.
    apply : bool
        Apply what has changed in the file since it was last applied, and log it.

    Returns
    -------
    Service

    Raises
    ------
    InputError
        If the file cannot be read or a value cannot be used; it names the table and the key.
    DatabaseError
        If the database cannot be used, or holds another object with one of these names.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from longterm.server.settings import read_service
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "service.toml")
    >>> text = "[ledger.money]" + chr(10) + "accounts = {team = {limit = 100}}"
    >>> _ = file.write_text(f"database = 'service.db'{chr(10)}{text}")
    >>> service = read_service(file)
    >>> service.metrics("money")["limit"]
    {'team': 100}
    >>> service.close()
    >>> folder.cleanup()
    """
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"cannot be read ({error})", "Give a TOML file") from error
    except (ValueError, RecursionError) as error:
        raise InputError(str(path), f"is not TOML ({error})", "Correct the line that it names") from error
    try:
        return open_service(table, path.parent, apply=apply)
    except InputError as error:  # name the file
        raise InputError(f"{path}: {error.argument}", error.what, error.remedy) from error


def open_service(table: Mapping[str, Any], folder: Path, *, apply: bool = True) -> Service:
    """Open the objects of a table. A relative path of its database is in `folder`."""
    settings = read_table(ServiceTable, table, "service")
    tables = _read_tables(settings)
    tokens = _known_tokens(settings.tokens, tables)
    database = os.environ.get(DATABASE) or settings.database
    if not database.startswith(POSTGRES):
        database = os.fspath(folder / database)
    service = Service(database, settings.durability, settings.title, guide=settings.guide, tokens=tokens)
    applied: AppliedSettings | None = None
    try:
        if service.is_postgres:
            service.pool = at("service", limit_connections, database, settings.durability, settings.connections)
        for name, (kind, one) in tables.items():
            place = Place(database, {"name": name, "durability": settings.durability}, f"{kind}.{name}", apply)
            service.objects[name] = at(place.where, one.open, place)
            service.kinds[name] = kind
            service.units[name] = getattr(one, "unit", "")
        if apply:  # once every object is known to suit the database
            applied = AppliedSettings(database)
            for name, (kind, one) in tables.items():
                if isinstance(one, LIMITED):
                    one.apply(service.objects[name], f"{kind}.{name}", applied)
            applied.write()
            warn_of_others(database, set(tables), _accounts(tables))
    except BaseException:
        service.close()
        raise
    finally:
        if applied is not None:
            applied.close()
    return service


def _read_tables(settings: ServiceTable) -> dict[str, tuple[str, Any]]:
    """Return the kind and the table of each object by name. Ledgers come first."""
    found: dict[str, tuple[str, Any]] = {}
    for kind, shape in KINDS.items():
        for name, given in getattr(settings, kind).items():
            where = f"{kind}.{name}"
            if not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
                raise InputError(where, "is not a name", f"Give 1 to {LONGEST_NAME} printable characters")
            if name in found:
                what = f"is also the name of a {found[name][0]}"
                raise InputError(where, what, "Give each object a different name, because all are in one database")
            found[name] = kind, read_table(shape, given, where)
    if not found:
        raise InputError("service", "has no object", f"Add a table such as [ledger.money]; kinds are {list(KINDS)}")
    return found


def _accounts(tables: Mapping[str, tuple[str, Any]]) -> dict[str, set[str]]:
    """Return the names of the accounts of each ledger."""
    return {name: set(one.accounts) for name, (_, one) in tables.items() if isinstance(one, LedgerTable)}


def _known_tokens(given: Mapping[str, Any], tables: Mapping[str, tuple[str, Any]]) -> tuple[KnownToken, ...]:
    """Return the tokens of the file. Raise an InputError if one names an object or account that is not in the file."""
    found = []
    names: dict[str, str] = {}
    accounts = _accounts(tables)
    for name, one in given.items():
        where = f"tokens.{name}"
        table = read_table(TokenTable, one, where)
        for place in table.spend:
            object_name, slash, account = place.partition("/")
            if object_name not in tables or (slash and account not in accounts.get(object_name, ())):
                what = f"{place!r} is not an object or an account of this file"
                raise InputError(f"{where}.spend", what, f"Choose from {list(tables)}, or ledger/account")
        for digest in table.hashes:
            if digest in names:
                what = f"has a hash that the token {names[digest]!r} has too, so requests could not be told apart"
                raise InputError(f"{where}.hashes", what, f"Run `longterm token {name}`, which prints another one")
        names |= dict.fromkeys(table.hashes, name)
        found.append(table.known(name))
    return tuple(found)


def _moment(expires: date) -> float:
    """Return a date or a date with a time in seconds since 1970; a time without a zone is local."""
    return (expires if isinstance(expires, datetime) else datetime.combine(expires, time())).timestamp()


def _shared(account: Mapping[str, Any] | None, where: str) -> SharedAccount | None:
    """Return the account of a ledger that an object takes its money from."""
    found: SharedAccount | None = None if account is None else built(f"{where}.account", SharedAccount, account)
    return found


def _require_names(where: str, names: list[Any]) -> tuple[str, ...]:
    sound = all(isinstance(name, str) and name.isprintable() and 0 < len(name) <= LONGEST_NAME for name in names)
    if not sound or not names or len(set(names)) < len(names):
        raise InputError(where, f"{names!r:.80} are not different names", 'Write actions = ["small", "large"]')
    return tuple(names)
