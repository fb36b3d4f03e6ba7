"""The answer to a request, and the validation of requests and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base.arrays import FloatArray
from longterm.errors import InputError, NonFiniteError
from longterm.money.budgets import LARGEST_NUMBER
from longterm.money.choosing.primal_dual import PrimalDual
from longterm.money.choosing.primals import ActionOutcomes, OpenChoice
from longterm.storage.replica import LONGEST_NAME
from longterm.storage.tokens import Token, is_storable

SMALL = 64
"""Arrays up to this size are checked by Python, which is faster there."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The answer to one request. Keep it, or its text ``str(choice)``, to settle it.

    Parameters
    ----------
    number : int
        From 1, in the order of the requests.
    action : int or None
        The action. None: nothing is affordable, the request is refused and needs no settling.
    probability : float
        The probability with which the action was drawn, for off-policy estimates.
    probabilities : array, shape (K,)
        The probabilities of all actions.
    prices : array, shape (m,)
        λ_t, in reward per unit of each budget's money.
    epoch : int
        The epoch of the chooser that answered: every process has one of its own.
    """

    number: int
    action: int | None
    probability: float
    probabilities: FloatArray
    prices: FloatArray
    epoch: int = 0

    def __str__(self) -> str:
        """Return a short text that JSON can hold; `settle` and `skip` accept it."""
        return str(Token(self.number, epoch=self.epoch))


def require_numbers(name: str, value: ArrayLike, round: int | None) -> FloatArray:
    """Return finite numbers of at most `LARGEST_NUMBER`, or raise an error that names the argument."""
    try:
        array = np.asarray(None if _is_masked(value) else value, dtype=np.float64)
        if value is None or isinstance(value, (str, bytes)):
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise InputError(name, f"{value!r:.60} does not consist of numbers", "Give real numbers", round=round) from None
    # Python adds a few numbers faster than NumPy. False for NaN.
    is_small = array.size <= SMALL and sum(map(abs, array.ravel().tolist())) <= LARGEST_NUMBER
    if is_small or np.abs(array).max(initial=0.0) <= LARGEST_NUMBER:
        return array
    if not np.all(np.isfinite(array)):
        raise NonFiniteError(
            name,
            f"is {value!r}, which is not finite",
            "Correct it or leave this request out. The state is unchanged",
            round=round,
        )
    raise InputError(
        name, f"{value!r} is out of range", f"Give numbers of magnitude at most {LARGEST_NUMBER:g}", round=round
    )


def _is_masked(value: object) -> bool:
    return isinstance(value, np.ma.MaskedArray) and bool(np.ma.is_masked(value))


def require_action(value: object) -> int:
    """Return the index of an action, or raise an InputError unless it is a whole number."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError("action", f"{value!r:.60} is not the index of an action", "Give a whole number")
    return int(value)


def require_costs(rule: PrimalDual, name: str, value: ArrayLike | None, round: int | None) -> FloatArray | None:
    """Return costs of all actions with shape (K, m), or None if none are given."""
    if value is None:
        return None
    table = require_numbers(name, value, round)
    K, m = rule.actions, rule.setting.resources
    if table.shape == (K,) and m == 1:
        table = table[:, None]
    if table.shape != (K, m):
        raise InputError(
            name,
            f"have shape {table.shape}",
            f"Give an array of shape ({K}, {m}), which is actions × budgets",
            round=round,
        )
    if min(table.ravel().tolist()) < 0:
        raise InputError(name, "contain a negative number", "Give costs of at least 0", round=round)
    return table


def require_rewards(value: ArrayLike, actions: int, round: int | None) -> FloatArray:
    """Return rewards in [0, 1], shape (K,)."""
    array = require_numbers("reward", value, round).reshape(-1)
    numbers = array.tolist()
    if len(numbers) != actions or min(numbers) < 0 or max(numbers) > 1:
        raise InputError(
            "reward", f"{value!r} is not {actions} number(s) in [0, 1]", "Scale rewards to [0, 1]", round=round
        )
    return array


def require_labels(value: ArrayLike, actions: int) -> tuple[NDArray[np.bool_], FloatArray]:
    """Return a mask of the known rewards, those that are not NaN, and the rewards with 0 for the others."""
    try:
        given = np.asarray(None if _is_masked(value) else value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        given = np.zeros(0)
    if given.shape != (actions,):
        return np.ones(actions, dtype=np.bool_), require_rewards(value, actions, None)
    seen = ~np.isnan(given)
    if not seen.any():
        raise InputError("rewards", "are missing for every action", "Give the reward of at least one action")
    return seen, require_rewards(np.where(seen, given, 0.0), actions, None)


def require_action_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of actions: different texts that every database can store."""
    if isinstance(names, (str, bytes)) or not np.iterable(names):
        raise InputError("names", f"{names!r:.60} is not a list", "Give a list of names")
    found = tuple(names)
    for name in found:
        if not is_storable(name) or not 0 < len(name) <= LONGEST_NAME:
            raise InputError("names", f"{name!r:.60} is not a name", f"Give texts of 1 to {LONGEST_NAME} characters")
    if len(set(found)) < len(found):
        raise InputError("names", "contain a name twice", "Give each action a different name")
    return found


def require_allowed(value: ArrayLike | None, actions: int, round: int) -> NDArray[np.bool_] | None:
    """Return a mask of the actions that suit a request, shape (K,), or None if all do."""
    if value is None:
        return None
    mask = np.asarray(value)
    if mask.dtype != np.bool_ or mask.shape != (actions,) or not mask.any():
        raise InputError(
            "allowed",
            f"{value!r} is not a mask of the actions",
            f"Give one boolean per action ({actions}), at least one of them True",
            round=round,
        )
    return mask


def require_paid(
    rule: PrimalDual, opened: OpenChoice, cost: ArrayLike | None, costs: ArrayLike | None, *, with_reward: bool
) -> FloatArray | None:
    """Return the cost of the action as the budgets count, shape (m,), or None if it is not known yet.

    A reward without a cost settles the announced cost, if there is one.
    """
    m, number = rule.setting.resources, opened.round
    if cost is not None:
        paid = require_numbers("cost", cost, number).reshape(-1)
        if paid.shape != (m,) or min(paid.tolist()) < 0:
            raise InputError("cost", f"is {cost!r}", f"Give {m} number(s) of at least 0", round=number)
        return rule.counted_paid(opened, paid)
    table = require_costs(rule, "costs", costs, number)
    if table is not None:
        return np.asarray(rule.counted(opened, table)[opened.action])
    return opened.counted[opened.action] if with_reward and opened.counted is not None else None


def require_outcomes(
    rule: PrimalDual, opened: OpenChoice, reward: float | None, rewards: ArrayLike | None, costs: ArrayLike | None
) -> ActionOutcomes | None:
    """Return the outcomes that a call reports, or None if it reports no reward.

    The costs of actions not played are those announced, or given now.
    """
    K, m, number = rule.actions, rule.setting.resources, opened.round
    known = np.zeros((K, m)) if opened.counted is None else opened.counted
    if rewards is not None:
        table = require_costs(rule, "costs", costs, number)
        if table is not None:
            known = rule.counted(opened, table)
        elif opened.counted is None:
            raise InputError(
                "costs",
                "are missing, but the rewards of all actions are given",
                "Pass costs= together with rewards=",
                round=number,
            )
        return ActionOutcomes(np.ones(K, dtype=np.bool_), require_rewards(rewards, K, number), known)
    if reward is None:
        return None
    seen, gained = np.zeros(K, dtype=np.bool_), np.zeros(K)
    seen[opened.action], gained[opened.action] = True, require_rewards(reward, 1, number)[0]
    return ActionOutcomes(seen, gained, known)
