"""Everything a live learner remembers, and the three things that can happen to it.

Calls and replay of a journal go through the same three methods, so they cannot drift apart. The methods
check nothing: by the time one is called, what it does has been found good and written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from longterm._arrays import Array
from longterm.engines.trace import Sums
from longterm.learners.feedback import Feedback
from longterm.live.window import Closed, Token, Window
from longterm.storage.states import restored_state, state_arrays

_COUNTERS = ("told", "skipped", "expired", "losses_told", "largest_delay")
_HOW: tuple[Closed, ...] = ("told", "skipped")


class Book:
    """The learner's state, sums over the rounds told, tokens and counters."""

    def __init__(self, state: Any, x: Array, window: Window) -> None:
        self.state = state
        self.sums = Sums.zero(x.shape[:-1], 0)
        self.window = window
        self.told = self.skipped = self.expired = self.losses_told = self.largest_delay = 0

    @property
    def sequence(self) -> int:
        """How many things have happened."""
        return self.window.asked + self.told + self.skipped

    def ask(self, x: Array) -> Token:
        """A round begins with the decision x."""
        token, expired = self.window.admit(x)
        self.expired += expired
        return token

    def tell(self, number: int, state: Any, constraint: Array, loss: Array | None) -> None:
        """The feedback of a round led to `state`."""
        self.state = state
        self.largest_delay = max(self.largest_delay, self.window.close(number, "told"))
        nothing = np.zeros_like(self.sums.loss)
        values = np.zeros((*nothing.shape, 0))
        self.sums = self.sums.add(Feedback(None, constraint, None, nothing if loss is None else loss, values))
        self.losses_told += loss is not None
        self.told += 1

    def skip(self, number: int) -> None:
        """A round is given up."""
        self.window.close(number, "skipped")
        self.skipped += 1

    def metadata(self) -> dict[str, int]:
        """The counters, for a snapshot."""
        window = self.window
        counters = {name: getattr(self, name) for name in _COUNTERS}
        sizes = {"max_in_flight": window.max_in_flight, "expire_after": window.expire_after, "asked": window.asked}
        return counters | sizes

    def arrays(self) -> dict[str, Array]:
        """Everything else, for a snapshot."""
        tokens, closed = self.window.open, self.window.closed
        shape = np.shape(next(iter(tokens.values())).x) if tokens else (0,)
        return {
            **state_arrays(self.state),
            **{f"sums.{name}": value for name, value in self.sums._asdict().items()},
            "open.number": np.array(list(tokens), dtype=np.int64),
            "open.x": np.array([token.x for token in tokens.values()]).reshape(len(tokens), *shape),
            "closed.number": np.array(list(closed), dtype=np.int64),
            "closed.how": np.array([_HOW.index(how) for how in closed.values()], dtype=np.uint8),
        }

    def restore(self, metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Take on what `metadata` and `arrays` of another book said; ValueError or KeyError if it makes no sense."""
        self.state = restored_state(self.state, arrays)
        self.sums = Sums(**{name: arrays[f"sums.{name}"] for name in Sums._fields})
        for name in _COUNTERS:
            setattr(self, name, int(metadata[name]))
        window = self.window = Window(
            max_in_flight=int(metadata["max_in_flight"]),
            expire_after=int(metadata["expire_after"]),
            asked=int(metadata["asked"]),
        )
        for number, x in zip(arrays["open.number"].tolist(), arrays["open.x"], strict=True):
            copy = np.array(x)
            copy.flags.writeable = False
            window.open[number] = Token(number, copy)
        for number, how in zip(arrays["closed.number"].tolist(), arrays["closed.how"].tolist(), strict=True):
            window.closed[number] = _HOW[how]
