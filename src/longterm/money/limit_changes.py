"""The limits of choosers, routers and pacers by name, for whoever changes them while a service runs.

Commands, HTTP calls and settings files have names and numbers. The objects have methods `change`. The accounts of a
ledger are changed with `Ledger.change`, which also records who did it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longterm._base.messages import did_you_mean
from longterm.errors import InputError
from longterm.money.choosing.chooser import Chooser
from longterm.money.pacing.live_pacer import CHANGEABLE, LivePacer

Limited = Chooser | LivePacer
REMOVABLE = ("bank", "period")
"""Limits that may be None: there is none from now on."""


def limits_of(found: Limited) -> dict[str, Any]:
    """Return what can be changed of an object, with its present values.

    The limits of a chooser begin with the name of their budget, as in "money.limit".

    Examples
    --------
    >>> from longterm.money import Router
    >>> from longterm.money.limit_changes import change_limits, limits_of
    >>> chooser = Router.for_models({"small": 1e-4, "large": 1e-2}, per_request=2e-3).chooser
    >>> change_limits(chooser, {"per_request": 1e-3})
    >>> limits_of(chooser)
    {'money.per_request': 0.001, 'money.credit': 0.0, 'money.bank': None}
    """
    _ = found.state  # it reads what other processes have changed
    if isinstance(found, LivePacer):
        rule = {name: getattr(found.pacer, name) for name in CHANGEABLE}
        return rule | {"period": found.period or "", "timezone": found.timezone}
    return found.rule.limits


def change_limits(found: Limited, changes: Mapping[str, Any], *, who: str = "", note: str = "") -> None:
    """Change limits in one transaction. The name of the budget may be left out if there is one only.

    `who` and `note` are for the record.

    Raises
    ------
    InputError
        If the object has no such limit, or a value cannot be used. Nothing is changed.
    """
    known = limits_of(found)
    if isinstance(found, LivePacer):
        _require_known(changes, known)
        given: dict[str, Any] = {name: "" if one is None else one for name, one in changes.items()}  # None: no change
        found.change(**given, who=who, note=note)
        return
    names = [budget.name for budget in found.rule.budget_set.budgets]
    whole_names = {name.removeprefix(f"{names[0]}.") if len(names) == 1 else name: name for name in known}
    if "least_reward" in known:
        whole_names["least_quality"] = "least_reward"  # the word of a router
    _require_known(changes, whole_names, known)
    whole = {whole_names.get(name, name): value for name, value in changes.items()}
    budgets: dict[str, dict[str, Any]] = {}
    for name, value in whole.items():
        budget, dot, field = name.rpartition(".")
        if dot:
            budgets.setdefault(budget, {})[field] = value
    found.change(budgets, **{name: value for name, value in whole.items() if "." not in name}, who=who, note=note)


def _require_known(changes: Mapping[str, Any], known: Mapping[str, Any], others: Mapping[str, Any] = {}) -> None:
    for name, value in changes.items():
        if name not in known and name not in others:
            raise InputError(name, f"cannot be changed{did_you_mean(name, known)}", f"Choose from {list(known)}")
        if value is None and name.rpartition(".")[2] not in REMOVABLE:
            raise InputError(name, "cannot be removed", "Give a value")
