"""Replay a table of outcomes against a chooser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.money.choosing.choice import Choice
from longterm.money.choosing.chooser import Chooser


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """The outcome of every action for every request, as simulations need it.

    Parameters
    ----------
    contexts : array, shape (T, d)
        Features.
    rewards : array, shape (T, K)
        In [0, 1].
    costs : array, shape (T, K)
        In money.
    """

    contexts: FloatArray
    rewards: FloatArray
    costs: FloatArray

    def __post_init__(self) -> None:
        rewards = validate.matrix("rewards", self.rewards)
        for name in ("contexts", "costs"):
            array = validate.matrix(name, getattr(self, name))
            if len(array) != len(rewards) or (name == "costs" and array.shape != rewards.shape):
                raise InputError(
                    name,
                    f"have shape {array.shape}, but rewards have shape {rewards.shape}",
                    "Give arrays for the same requests and actions",
                )
            validate.set_frozen(self, **{name: array})
        validate.set_frozen(self, rewards=rewards)

    def __len__(self) -> int:
        return len(self.rewards)

    def ordered(self, order: NDArray[np.integer]) -> OutcomeTable:
        """Return the same rows in another order."""
        return OutcomeTable(self.contexts[order], self.rewards[order], self.costs[order])


class DecisionRun(NamedTuple):
    """The choices and outcomes of a run, request by request.

    Parameters
    ----------
    actions : array of int, shape (T,)
        The actions; −1 where refused.
    probabilities : array, shape (T,)
        The probabilities of the actions; 1 where refused.
    rewards : array, shape (T,)
        The rewards of the actions; 0 where refused.
    costs : array, shape (T,)
        The costs of the actions in full.
    counted : array, shape (T,)
        The costs as the budget counts them.
    prices : array, shape (T,)
        λ_t, when request t was answered.
    """

    actions: NDArray[np.int64]
    probabilities: FloatArray
    rewards: FloatArray
    costs: FloatArray
    counted: FloatArray
    prices: FloatArray


def replay_outcomes(
    chooser: Chooser,
    table: OutcomeTable,
    *,
    labelled: int = 0,
    max_delay: int = 0,
    seed: int = 0,
    announced: bool = True,
) -> DecisionRun:
    """Answer every request of a table with a chooser that has one budget.

    Parameters
    ----------
    chooser : Chooser
        The chooser; its state changes.
    table : OutcomeTable
        The requests, in order.
    labelled : int
        In this many first rounds the rewards of all actions are reported.
    max_delay : int
        Rewards come 0 to `max_delay` requests later, drawn uniformly; costs come at once.
    seed : int
        For the delays.
    announced : bool
        Announce the costs with the request.

    Returns
    -------
    DecisionRun
        The choices and outcomes.
    """
    T = len(table)
    delays = np.random.default_rng(seed).integers(0, max_delay + 1, T) if max_delay else np.zeros(T, dtype=np.int64)
    due: dict[int, list[tuple[int, Choice]]] = {}
    played = np.full(T, -1, dtype=np.int64)
    chance, price = np.ones(T), np.empty(T)
    cheapest = table.costs.min(axis=1) if chooser.rule.budget_set.above_cheapest[0] else np.zeros(T)

    def outcome_of(t: int) -> dict[str, Any]:
        if t < labelled:
            return {"rewards": table.rewards[t], "costs": None if announced else table.costs[t]}
        return {"reward": float(table.rewards[t, played[t]])}

    for t in range(T):
        for asked, open_choice in due.pop(t, ()):
            chooser.settle(open_choice, **outcome_of(asked))
        choice = chooser.act(table.contexts[t], costs=table.costs[t] if announced else None)
        price[t] = choice.prices[0]
        if choice.action is None:
            continue
        played[t], chance[t] = choice.action, choice.probability
        is_due = delays[t] == 0
        chooser.settle(choice, cost=table.costs[t, choice.action], **(outcome_of(t) if is_due else {}))
        if not is_due:
            due.setdefault(t + int(delays[t]), []).append((t, choice))
    for rest in sorted(due):
        for asked, open_choice in due[rest]:
            chooser.settle(open_choice, **outcome_of(asked))
    answered, rows = played >= 0, np.arange(T)
    costs = np.where(answered, table.costs[rows, played], 0.0)
    return DecisionRun(
        played,
        chance,
        np.where(answered, table.rewards[rows, played], 0.0),
        costs,
        np.where(answered, costs - cheapest, 0.0),
        price,
    )
