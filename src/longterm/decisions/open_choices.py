"""Open choices as columns of arrays, for snapshots. Writing and reading are linear in their number."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from longterm._arrays import Array
from longterm.decisions.budgets import LARGEST_STORED
from longterm.decisions.primal_dual import PrimalDual
from longterm.decisions.primals import ActionOutcomes, OpenChoice

LARGEST_EPOCH = 2**48


def columns_of(choices: Mapping[int, OpenChoice]) -> dict[str, Array]:
    """Return open choices as named arrays with one row for each choice.

    Optional parts are 0 where they are missing; `open.has_…` says where they are there.
    """
    rows = list(choices.values())
    if not rows:
        return {}
    first = rows[0]
    K, m = len(first.probabilities), len(first.prices)
    nothing, zero = ActionOutcomes(np.zeros(K, dtype=np.bool_), np.zeros(K), np.zeros((K, m))), np.zeros((K, m))
    columns = {
        name: [getattr(row, name) for row in rows]
        for name in ("round", "epoch", "action", "prices", "allowed", "probabilities", "target", "bound", "base")
    }
    columns["context"] = [number for row in rows for number in row.context.tolist()]
    columns["context_length"] = [len(row.context) for row in rows]
    columns["has_counted"] = [row.counted is not None for row in rows]
    columns["counted"] = [zero if row.counted is None else row.counted for row in rows]
    columns["has_paid"] = [row.paid is not None for row in rows]
    columns["paid"] = [zero[0] if row.paid is None else row.paid for row in rows]
    columns["has_outcomes"] = [row.outcomes is not None for row in rows]
    for name in ActionOutcomes._fields:
        columns[f"outcome_{name}"] = [getattr(row.outcomes or nothing, name) for row in rows]
    kinds = {"context": np.float64}
    return {f"open.{name}": np.asarray(column, dtype=kinds.get(name)) for name, column in columns.items()}


def choices_of(rule: PrimalDual, arrays: Mapping[str, Array], next_round: int) -> dict[int, OpenChoice]:
    """Return the open choices of a snapshot, oldest first; raise a ValueError unless all of them can be open."""
    columns = {name.removeprefix("open."): array for name, array in arrays.items() if name.startswith("open.")}
    if not columns:
        return {}
    _require_columns(rule, columns, next_round)
    ends = np.cumsum(columns["context_length"])
    numbers = columns["round"].tolist()
    found = {}
    for row, (number, end, length) in enumerate(
        zip(numbers, ends.tolist(), columns["context_length"].tolist(), strict=True)
    ):
        part = {name: column[row] for name, column in columns.items() if name not in ("context", "context_length")}
        context = columns["context"][end - length : end]
        rule.primal.require_context(context, number)
        outcomes = ActionOutcomes(*(part[f"outcome_{name}"] for name in ActionOutcomes._fields))
        found[number] = OpenChoice(
            number,
            context,
            part["prices"],
            part["allowed"],
            int(part["action"]),
            part["probabilities"],
            part["target"],
            part["counted"] if part["has_counted"] else None,
            part["bound"],
            part["base"],
            part["paid"] if part["has_paid"] else None,
            outcomes if part["has_outcomes"] else None,
            int(part["epoch"]),
        )
    return found


def _require_columns(rule: PrimalDual, columns: Mapping[str, Array], next_round: int) -> None:
    """Raise a ValueError unless the columns have the right shapes, dtypes and ranges."""
    count, K, m = len(columns["round"]), rule.actions, rule.setting.resources
    numbers: dict[str, tuple[int, ...]] = {"prices": (m,), "target": (m,), "bound": (m,), "base": (m,), "paid": (m,)}
    numbers |= {"counted": (K, m), "probabilities": (K,), "outcome_rewards": (K,), "outcome_costs": (K, m)}
    masks = {"has_counted": (), "has_paid": (), "has_outcomes": (), "allowed": (K,), "outcome_seen": (K,)}
    whole = {"round": (), "epoch": (), "action": (), "context_length": ()}
    for shapes, dtype in ((numbers, np.float64), (masks, np.bool_), (whole, np.int64)):
        for name, shape in shapes.items():
            column = columns[name]
            if column.dtype != dtype or column.shape != (count, *shape):
                raise ValueError(f"open.{name} has the wrong shape or dtype")
    for name in (*numbers, "context"):
        column = columns[name]
        if column.dtype != np.float64 or not np.abs(column).max(initial=0.0) <= LARGEST_STORED:
            raise ValueError(f"open.{name} holds a number that no request leaves")
    order, action, length = columns["round"], columns["action"], columns["context_length"]
    if np.any(np.diff(order) <= 0) or order[0] < 1 or order[-1] >= next_round:
        raise ValueError("the numbers of open choices are not increasing from 1")
    if action.min() < 0 or action.max() >= K or length.min() < 0 or length.sum() != len(columns["context"]):
        raise ValueError("an open choice has an action or a context that does not exist")
    rows = np.arange(count)
    if not columns["allowed"][rows, action].all() or columns["probabilities"][rows, action].min() <= 0:
        raise ValueError("an open choice was not allowed")
    if min(columns[name].min() for name in ("probabilities", "bound", "paid", "outcome_rewards")) < 0:
        raise ValueError("an open choice has a negative probability, bound, cost or reward")
    if columns["epoch"].min() < 0 or columns["epoch"].max() >= LARGEST_EPOCH:
        raise ValueError("an open choice has an epoch that does not exist")
