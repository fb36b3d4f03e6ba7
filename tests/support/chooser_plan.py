"""A deterministic sequence of calls on a chooser, for the tests of interrupts and the soak."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from longterm.money import Budget, Chooser, EntropicDual, PrimalDual, ThompsonSampling
from longterm.money.choosing.open_choices import encode_choice
from longterm.storage.packing import pack, state_arrays


@cache
def rule() -> PrimalDual:
    dual = EntropicDual(0.2, step=0.05)
    return PrimalDual(ThompsonSampling(3, 2, exploration=1.0), dual, Budget(30.0, 1.0), 200, replan=True)


def position(chooser: Chooser) -> int:
    """Return the number of calls that took effect."""
    chooser.pending  # noqa: B018 - finishes interrupted calls
    return chooser._replica.copy.version


def next_call(chooser: Chooser) -> Callable[[], object]:
    """Return the next call, which depends on nothing but the state."""
    here, pending = position(chooser), chooser.pending
    if len(pending) > 3 or (here % 3 == 2 and pending):
        number = list(pending)[here % len(pending)]
        return partial(chooser.settle, pending[number], [0.2, 0.5, 0.8][here % 3], 0.05)
    if here % 11 == 7 and pending:
        return partial(chooser.skip, str(next(iter(pending.values()))))
    if here % 13 == 5:
        return partial(chooser.teach, [1.0, 0.5], [0.1, 0.2, 0.3], [0.0, 0.2, 0.5])
    return partial(chooser.act, [1.0, np.sin(here)], costs=[0.0, 0.2, 0.5], bounds=[0.1, 0.3, 0.6])


def image(chooser: Chooser) -> bytes:
    """Return the whole state as bytes, except for epochs and times."""
    position(chooser)
    copy = chooser._replica.copy
    arrays = {**state_arrays(copy.state.rule), "generator": copy.state.generator}
    opened = {f"open.{number}": encode_choice(copy.choice(number)._replace(epoch=0)).hex() for number in copy.open}
    return pack({"version": copy.version, **opened}, arrays)
