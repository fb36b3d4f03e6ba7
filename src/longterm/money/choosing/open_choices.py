"""Open choices as bytes, for the database.

4 × 8 bytes   round, epoch, action, number of actions K
2 + 3 bytes   length of the group; whether there are announced costs, a paid cost, outcomes
2 × K bytes   masks: allowed actions, actions with known outcomes
8 bytes each  prices, target, bound, base, paid (m); counted, costs (K m); probabilities, rewards (K); context (d)
the rest      the group, UTF-8
"""

from __future__ import annotations

import struct

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.money.budgets import LARGEST_STORED
from longterm.money.choosing.primal_dual import PrimalDual
from longterm.money.choosing.primals import ActionOutcomes, OpenChoice
from longterm.storage.packing import raw_bytes
from longterm.storage.tokens import EPOCH_BITS

_HEAD = struct.Struct("<4qH3?")
MOST_ACTIONS = 10_000


def encode_choice(choice: OpenChoice) -> bytes:
    """Return an open choice as bytes. Missing parts are stored as 0."""
    K, m = len(choice.probabilities), len(choice.prices)
    nothing = np.zeros((K, m))
    outcomes = choice.outcomes or ActionOutcomes(np.zeros(K, dtype=np.bool_), nothing[:, 0], nothing)
    has = choice.counted is not None, choice.paid is not None, choice.outcomes is not None
    numbers = (
        *(choice.prices, choice.target, choice.bound, choice.base, nothing[0] if choice.paid is None else choice.paid),
        *(nothing if choice.counted is None else choice.counted, outcomes.costs, choice.probabilities),
        *(outcomes.rewards, choice.context),
    )
    group = choice.group.encode()
    head = _HEAD.pack(choice.round, choice.epoch, choice.action, K, len(group), *has)
    floats = map(raw_bytes, [np.asarray(part, dtype=np.float64) for part in numbers])
    return b"".join([head, choice.allowed.tobytes(), outcomes.seen.tobytes(), *floats, group])


def decode_choice(rule: PrimalDual, content: bytes, *, refused: bool = False) -> OpenChoice:
    """Return an open choice from bytes. Raise a ValueError unless an act or a settle of this rule can have made it.

    A choice with fewer actions was made before the others were added.
    """
    if len(content) < _HEAD.size:
        raise ValueError("a choice has too few bytes")
    number, epoch, action, K, length = _HEAD.unpack_from(content)[:5]
    content, group = (content[:-length], content[-length:].decode()) if length else (content, "")
    if not 1 <= K <= min(rule.actions, MOST_ACTIONS):
        raise ValueError("a choice has a number of actions that does not exist")
    m = rule.setting.resources
    start, sizes = _HEAD.size + 2 * K, [m] * 5 + [K * m] * 2 + [K] * 2
    if len(content) < start + 8 * sum(sizes) or (len(content) - start) % 8:
        raise ValueError("a choice has too few bytes")
    if content[_HEAD.size - 3 : start].translate(None, b"\0\1"):
        raise ValueError("a choice holds a mask with other values than 0 and 1")
    has_counted, has_paid, has_outcomes = _HEAD.unpack_from(content)[5:]
    masks = np.frombuffer(content[_HEAD.size : start], dtype=np.bool_).reshape(2, K)
    floats = np.frombuffer(content[start:], dtype="<f8").astype(np.float64)
    if not np.abs(floats).max() <= LARGEST_STORED:
        raise ValueError("a choice holds a number that is out of range")
    parts: list[FloatArray] = np.split(floats, np.cumsum(sizes))
    prices, target, bound, base, paid, counted, costs, probabilities, rewards, context = parts
    rule.primal.require_context(context, number)
    if not (number >= 1 and 0 <= epoch < 2**EPOCH_BITS and (action == -1 if refused else 0 <= action < K)):
        raise ValueError("a choice has a number, an epoch or an action that does not exist")
    if not refused and (not masks[0, action] or probabilities[action] <= 0):
        raise ValueError("a choice was not allowed")
    if min(part.min() for part in (probabilities, bound, paid, rewards)) < 0:
        raise ValueError("a choice has a negative probability, bound, cost or reward")
    return OpenChoice(
        number,
        context,
        prices,
        masks[0],
        action,
        probabilities,
        target,
        counted.reshape(K, m) if has_counted else None,
        bound,
        base,
        paid if has_paid else None,
        ActionOutcomes(masks[1], rewards, costs.reshape(K, m)) if has_outcomes else None,
        epoch,
        group,
    )
