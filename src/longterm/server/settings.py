"""The objects of a service by name, from a TOML file.

    database = "service.db"                # a file beside this one, or postgresql://…
    durability = "commit"                  # or "relaxed"

    [ledger.money]
    unit = "microcent"
    accounts.team = {limit = 5_000_000, period = "day"}

    [router.models]
    prices = {small = 3e-5, large = 1.5e-2}
    per_request = 1e-3

A table ``[kind.name]`` is one object. Its keys are the keyword arguments of the function for that kind below.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

from longterm.calibration import LiveIntervals
from longterm.catalogue.entries import Entry
from longterm.catalogue.lookup import find_learner, find_problem
from longterm.catalogue.words import parse_words
from longterm.errors import InputError, did_you_mean
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
from longterm.money.ledger.accounts import Period
from longterm.play import LiveLearner

PRIMALS = {one.__name__: one for one in (ThompsonSampling, LinearUCB, EXP3IX, ExponentialWeights)}
DUALS = {one.__name__: one for one in (EntropicDual, EuclideanDual, HedgeDual, PlannedPrice)}
PACERS = {one.__name__: one for one in (DualMirrorDescent, ReturnOnSpend)}
LONGEST_NAME = 60
DATABASE = "LONGTERM_DATABASE"
"""The environment variable that replaces the database of the file, so that a password need not be in it."""


class Place(NamedTuple):
    """The database of an object, and its name and durability there."""

    url: str
    options: dict[str, Any]


class _ObjectEntry(Entry):
    """A function of `KINDS`, whose first argument is not in the file."""

    reserved_args = 1


@dataclass(frozen=True)
class ServedChooser:
    """A chooser whose actions have names."""

    chooser: Chooser
    actions: tuple[str, ...]

    def close(self) -> None:
        """Close the connection."""
        self.chooser.close()


@dataclass(frozen=True)
class ServedRouter:
    """A router of prompts."""

    router: Router

    @property
    def chooser(self) -> Chooser:
        """Its chooser."""
        return self.router.chooser

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(self.router.names)

    def close(self) -> None:
        """Close the connection."""
        self.router.close()


@dataclass
class Service:
    """The objects of a service by name, all in one database.

    Parameters
    ----------
    database : str
        The file or URL.
    title : str
        For the page.
    objects : dict
        Learners, choosers, routers, pacers, ledgers and intervals, by name.
    kinds : dict
        Their kinds, by name.
    """

    database: str
    title: str = "longterm"
    objects: dict[str, Any] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)

    def close(self) -> None:
        """Close all connections."""
        for one in self.objects.values():
            one.close()

    def metrics(self, name: str) -> dict[str, Any]:
        """Return the figures of one object."""
        one = self.objects[name]
        found: dict[str, Any] = getattr(one, "chooser", one).metrics()
        return found


def read_service(path: str | PathLike[str]) -> Service:
    """Open the objects that a TOML file describes, or create them in its database.

    Parameters
    ----------
    path : path
        The file.

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
        return open_service(table, path.parent)
    except InputError as error:  # name the file
        raise InputError(f"{path}: {error.argument}", error.what, error.remedy) from error


def open_service(table: Mapping[str, Any], folder: Path) -> Service:
    """Open the objects of a table. A relative path of its database is in `folder`."""
    Entry("a service", _service).check(table, "service")
    database = os.environ.get(DATABASE) or str(table["database"])
    durability = table.get("durability", "commit")
    if not database.startswith(("postgresql://", "postgres://")):
        database = os.fspath(folder / database)
    service = Service(database, str(table.get("title", "longterm")))
    try:
        for kind, build in KINDS.items():
            for name, given in table.get(kind, {}).items():
                where = f"{kind}.{name}"
                _require_name(service, where, name, given)
                _ObjectEntry(where, build).check(given, where)
                place = Place(database, {"name": name, "durability": durability})
                service.objects[name] = _within(where, build, place, **given)
                service.kinds[name] = kind
    except BaseException:
        service.close()
        raise
    if not service.objects:
        raise InputError("service", "has no object", f"Add a table such as [ledger.money]; kinds are {list(KINDS)}")
    return service


def _service(
    *,
    database: str,
    durability: Literal["commit", "relaxed"] = "commit",
    title: str = "longterm",
    learner: dict[str, Any] = {},  # noqa: B006 - read, never changed
    chooser: dict[str, Any] = {},  # noqa: B006
    router: dict[str, Any] = {},  # noqa: B006
    pacer: dict[str, Any] = {},  # noqa: B006
    ledger: dict[str, Any] = {},  # noqa: B006
    intervals: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Declare the top level of the file."""


def _require_name(service: Service, where: str, name: str, given: Any) -> None:
    if not isinstance(given, dict):
        raise InputError(where, f"{given!r:.60} is not a table", f"Write [{where}] with keys below it")
    if not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
        raise InputError(where, "is not a name", f"Give 1 to {LONGEST_NAME} printable characters")
    if name in service.objects:
        what = f"is the name of a {service.kinds[name]}, too"
        raise InputError(where, what, "Give each object its own name: all are in one database")


def _within(where: str, build: Callable[..., Any], *place: Place, **given: Any) -> Any:
    """Call a function. Its errors name the table that the argument is in."""
    try:
        return build(*place, **given)
    except InputError as error:
        argument = error.argument if error.argument.startswith(where) else f"{where}.{error.argument}"
        raise InputError(argument, error.what, error.remedy) from error


def _slot(where: str, given: Mapping[str, Any], known: Mapping[str, Any], **fixed: Any) -> Any:
    """Build the object whose class a table names under `kind`; its other keys are the arguments."""
    kind: Any = given.get("kind")
    if kind not in known:
        what = f"{kind!r} is not known{did_you_mean(kind, known)}" if "kind" in given else "is missing"
        raise InputError(f"{where}.kind", what, f"Choose from {sorted(known)}")
    fields = known[kind].__dataclass_fields__
    arguments = {key: value for key, value in given.items() if key != "kind"}
    arguments |= {key: value for key, value in fixed.items() if key in fields}
    Entry(kind, known[kind]).check(arguments, where)
    return _within(where, known[kind], **arguments)


# --- kinds: the keyword arguments of each function are the keys of its table -----------------------------------


def _learner(
    place: Place,
    *,
    problem: str,
    learner: str,
    horizon: int = 100_000,
    max_in_flight: int = 1024,
    expire_after: int = 1000,
    max_age: float | None = None,
) -> LiveLearner:
    """Open a live learner; problem and learner are texts as on the command line of `longterm run`."""
    (asked, given), (chosen, own) = parse_words(problem, "problem"), parse_words(learner, "learner")
    entry, kind = find_problem(asked, "problem.name"), find_learner(chosen)
    entry.check(given, "problem")
    kind.check(own, f"learner.{chosen}")
    built = entry.build(**given)
    stated = getattr(built, "problem", built)
    rule = kind.learner(stated, horizon, own)
    limits: dict[str, Any] = {"max_in_flight": max_in_flight, "expire_after": expire_after, "max_age": max_age}
    return LiveLearner.open(place.url, rule, stated, **limits, **place.options)


def _chooser(
    place: Place,
    *,
    actions: list[str],
    budgets: list[dict[str, Any]],
    features: int = 1,
    horizon: int | None = None,
    primal: dict[str, Any] = {"kind": "ThompsonSampling"},  # noqa: B006 - read, never changed
    dual: dict[str, Any] = {"kind": "EuclideanDual"},  # noqa: B006
    stop: bool = True,
    replan: bool = False,
    seed: int = 0,
    max_in_flight: int = 100_000,
    expire_after: int | None = None,
    max_age: float | None = None,
    account: dict[str, Any] | None = None,
) -> ServedChooser:
    """Open a chooser. A budget with per_request is a Ceiling, another one a Budget."""
    names = _require_names("actions", actions)
    if not budgets or not all(isinstance(one, dict) for one in budgets):
        raise InputError("budgets", "is not a list of tables", "Write budgets = [{limit = 100.0, largest = 2.0}]")
    money = []
    for index, one in enumerate(budgets):
        kind, where = Ceiling if "per_request" in one else Budget, f"budgets[{index}]"
        Entry(kind.__name__, kind).check(one, where)
        money.append(_within(where, kind, **one))
    fixed: dict[str, Any] = {"actions": len(names), "features": features}
    rule = PrimalDual(
        _slot("primal", primal, PRIMALS, **fixed), _slot("dual", dual, DUALS), money, horizon, stop=stop, replan=replan
    )
    limits: dict[str, Any] = {"max_in_flight": max_in_flight, "expire_after": expire_after, "max_age": max_age}
    options: dict[str, Any] = {"seed": seed, "account": _shared(account), "names": names}
    chooser = Chooser.open(place.url, rule, **options, **limits, **place.options)
    return ServedChooser(chooser, names)


def _router(
    place: Place,
    *,
    prices: dict[str, Any],
    per_request: float | None = None,
    least_quality: float | None = None,
    features: int | None = None,
    credit: float = 0.0,
    largest: dict[str, Any] | None = None,
    seed: int = 0,
    max_in_flight: int = 100_000,
    expire_after: int | None = None,
    max_age: float | None = None,
    account: dict[str, Any] | None = None,
) -> ServedRouter:
    """Open a router of prompts; without `features`, prompts are texts."""
    given: dict[str, Any] = {
        "per_request": per_request,
        "least_quality": least_quality,
        "features": features,
        "credit": credit,
    }
    limits: dict[str, Any] = {"max_in_flight": max_in_flight, "expire_after": expire_after, "max_age": max_age}
    options: dict[str, Any] = {"largest": largest, "seed": seed, "account": _shared(account)}
    return ServedRouter(Router.for_models(prices, **given, **options, **limits, url=place.url, **place.options))


def _pacer(place: Place, *, rule: dict[str, Any], account: dict[str, Any] | None = None) -> LivePacer:
    """Open a pacer."""
    return LivePacer.open(place.url, _slot("rule", rule, PACERS), account=_shared(account), **place.options)


def _shared(account: Mapping[str, Any] | None) -> SharedAccount | None:
    """Return the account of a ledger that an object takes its money from."""
    if account is None:
        return None
    Entry("account", SharedAccount).check(account, "account")
    found: SharedAccount = _within("account", SharedAccount, **account)
    return found


def _ledger(
    place: Place, *, accounts: dict[str, Any], unit: str = "unit", holds: dict[str, Any] | None = None
) -> Ledger:
    """Open a ledger and add its accounts; parents come first. `holds` are the settings of calibrated holds."""
    rule: Any = "worst"
    if holds is not None:
        Entry("holds", ExcessHold).check(holds, "holds")
        rule = _within("holds", ExcessHold, **holds)
    ledger = Ledger.open(place.url, unit=unit, holds=rule, **place.options)
    try:
        for name, given in accounts.items():
            where = f"accounts.{name}"
            if not isinstance(given, dict):
                raise InputError(where, f"{given!r:.60} is not a table", f"Write {where} = {{limit = 1000}}")
            Entry("an account", _account).check(given, where)
            _within(where, ledger.add_account, name=name, **given)
    except BaseException:
        ledger.close()
        raise
    return ledger


def _account(
    *,
    limit: int,
    parent: str | None = None,
    period: Period | None = None,
    timezone: str = "UTC",
    rate: int = 0,
    reserve: int | None = None,
) -> None:
    """Declare the keys of an account."""


def _intervals(
    place: Place,
    *,
    confidence_level: float = 0.9,
    groups: list[str] = [],  # noqa: B006 - read, never changed
    symmetric: bool = True,
) -> LiveIntervals:
    """Open prediction intervals."""
    names = _require_names("groups", groups) if groups else ()
    return LiveIntervals.open(place.url, confidence_level, groups=names, symmetric=symmetric, **place.options)


KINDS: dict[str, Callable[..., Any]] = {
    "ledger": _ledger,
    "learner": _learner,
    "chooser": _chooser,
    "router": _router,
    "pacer": _pacer,
    "intervals": _intervals,
}
"""Ledgers come first: other objects may use their accounts."""


def _require_names(where: str, names: list[Any]) -> tuple[str, ...]:
    sound = all(isinstance(name, str) and name.isprintable() and 0 < len(name) <= LONGEST_NAME for name in names)
    if not sound or not names or len(set(names)) < len(names):
        raise InputError(where, f"{names!r:.80} are not different names", 'Write actions = ["small", "large"]')
    return tuple(names)
