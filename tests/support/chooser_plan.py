"""A chooser's life as a function of where it stands: what the tests of interrupts and the soak do with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from longterm.decisions import Budget, Chooser, EntropicDual, PrimalDual, ThompsonSampling
from longterm.storage.packing import pack


@cache
def rule() -> PrimalDual:
    dual = EntropicDual(0.2, step=0.05)
    return PrimalDual(ThompsonSampling(3, 2, look=1.0), dual, Budget(30.0, 1.0), 200, replan=True)


def position(chooser: Chooser) -> int:
    """How many things have happened."""
    chooser.pending  # noqa: B018 - sees to what was interrupted
    return chooser._recorded.memory.sequence


def next_call(chooser: Chooser) -> Callable[[], object]:
    """The next thing to happen, which depends on nothing but the state."""
    here, pending = position(chooser), chooser.pending
    if len(pending) > 3 or (here % 3 == 2 and pending):
        number = list(pending)[here % len(pending)]
        return partial(chooser.settle, pending[number], [0.2, 0.5, 0.8][here % 3], 0.05)
    if here % 11 == 7 and pending:
        return partial(chooser.forget, str(next(iter(pending.values()))))
    if here % 13 == 5:
        return partial(chooser.teach, [1.0, 0.5], [0.1, 0.2, 0.3], [0.0, 0.2, 0.5])
    return partial(chooser.act, [1.0, np.sin(here)], costs=[0.0, 0.2, 0.5], bounds=[0.1, 0.3, 0.6])


def image(chooser: Chooser) -> bytes:
    """Everything it remembers, but for its lives, which are random."""
    position(chooser)
    memory = chooser._recorded.memory
    return pack(memory._metadata() | {"lives": ()}, memory._arrays())
