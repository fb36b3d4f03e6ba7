"""Replay a table of outcomes against a chooser, and weigh a log for another policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.decisions.choice import Choice
from longterm.decisions.chooser import Chooser
from longterm.errors import InputError


@dataclass(frozen=True, eq=False)
class Table:
    """Every action's outcome for every request: what a replay needs and a service never has.

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
                raise InputError(name, f"have shape {array.shape}", f"rewards have {rewards.shape}")
            validate.set_frozen(self, **{name: array})
        validate.set_frozen(self, rewards=rewards)

    def __len__(self) -> int:
        return len(self.rewards)

    def ordered(self, order: NDArray[np.integer]) -> Table:
        """The same rows in another order."""
        return Table(self.contexts[order], self.rewards[order], self.costs[order])


class Run(NamedTuple):
    """What happened, request by request.

    Parameters
    ----------
    actions : array of int, shape (T,)
        What was played; −1 where refused.
    probabilities : array, shape (T,)
        Of what was played; 1 where refused.
    rewards : array, shape (T,)
        What the action brought; 0 where refused.
    costs : array, shape (T,)
        What the action cost, in full.
    counted : array, shape (T,)
        What the budget counts of it.
    prices : array, shape (T,)
        λ_t, in force when request t was answered.
    """

    actions: NDArray[np.int64]
    probabilities: FloatArray
    rewards: FloatArray
    costs: FloatArray
    counted: FloatArray
    prices: FloatArray


def play(
    chooser: Chooser, table: Table, *, labelled: int = 0, late: int = 0, seed: int = 0, announced: bool = True
) -> Run:
    """Answer every request of a table; one budget.

    Parameters
    ----------
    chooser : Chooser
        It moves.
    table : Table
        The requests, in order.
    labelled : int
        In this many first rounds the rewards of all actions are told.
    late : int
        Rewards come 0 to `late` requests later (drawn evenly); costs at once.
    seed : int
        For the delays.
    announced : bool
        Whether costs are told with the request.

    Returns
    -------
    Run
        What happened, request by request.
    """
    T = len(table)
    delays = np.random.default_rng(seed).integers(0, late + 1, T) if late else np.zeros(T, dtype=np.int64)
    due: dict[int, list[tuple[int, Choice]]] = {}
    played = np.full(T, -1, dtype=np.int64)
    chance, price = np.ones(T), np.empty(T)
    cheapest = table.costs.min(axis=1) if chooser.rule.books.above_cheapest[0] else np.zeros(T)

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
        now = delays[t] == 0
        chooser.settle(choice, cost=table.costs[t, choice.action], **(outcome_of(t) if now else {}))
        if not now:
            due.setdefault(t + int(delays[t]), []).append((t, choice))
    for rest in sorted(due):
        for asked, open_choice in due[rest]:
            chooser.settle(open_choice, **outcome_of(asked))
    on, rows = played >= 0, np.arange(T)
    costs = np.where(on, table.costs[rows, played], 0.0)
    return Run(
        played,
        chance,
        np.where(on, table.rewards[rows, played], 0.0),
        costs,
        np.where(on, costs - cheapest, 0.0),
        price,
    )


class Worth(NamedTuple):
    """What a log says another policy would have earned per request.

    Parameters
    ----------
    value : float
        Self-normalised: Σ w r / Σ w.
    unbiased : float
        Σ w r / T; of higher variance.
    deviation : float
        The standard error of `value`.
    effective : float
        (Σ w)²/Σ w²: how many requests the estimate rests on.
    """

    value: float
    unbiased: float
    deviation: float
    effective: float


def off_policy(actions: ArrayLike, probabilities: ArrayLike, rewards: ArrayLike, policy: ArrayLike) -> Worth:
    """Weigh a log by w_t = π(a_t | x_t) / p_t.

    Parameters
    ----------
    actions, probabilities, rewards : arrays, shape (T,)
        What was played, with which probability, and what it brought: a `Choice` has the first two.
    policy : array, shape (T, K)
        The other policy's probabilities. Where it plays what the log never could, nothing is learned of it: give
        the rule a `look`.

    Returns
    -------
    Worth
        The estimates, and how far they can be trusted.

    Examples
    --------
    >>> from longterm.decisions import off_policy
    >>> off_policy([0, 1, 1, 0], [0.5, 0.5, 0.5, 0.5], [0.0, 1.0, 1.0, 0.0], [[0.0, 1.0]] * 4).value
    1.0
    """
    a, p = np.asarray(actions, dtype=np.int64), validate.vector("probabilities", probabilities)
    r, other = validate.vector("rewards", rewards, len(p)), validate.matrix("policy", policy)
    if np.any(p <= 0) or a.shape != p.shape or len(other) != len(p):
        raise InputError("probabilities", "and actions, policy do not fit, or are not above 0", "Give T of each")
    if np.any(a < 0) or np.any(a >= other.shape[1]):
        raise InputError(
            "actions",
            f"are not all among the {other.shape[1]} of the policy",
            "Leave refused requests (−1) out, and count actions from 0",
        )
    weights = other[np.arange(len(a)), a] / p
    total = float(weights.sum())
    if total <= 0:
        raise InputError("policy", "plays nothing that the log played", "Log with a look")
    value = float(weights @ r) / total
    return Worth(
        value,
        float(weights @ r) / len(a),
        float(np.sqrt(np.sum((weights * (r - value)) ** 2))) / total,
        total**2 / float(weights @ weights),
    )
