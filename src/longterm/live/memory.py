"""Everything a live learner remembers, the three things that can happen to it, and what can be read of it.

What happens is first worked out, as a `Change`, then written to the journal as the change's record, then made.
Calls and the replay of a journal make the same changes, so they cannot drift apart. Making a change checks nothing:
by then it has been found good and written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longterm._arrays import Array
from longterm.engines.trace import Sums
from longterm.errors import NonFiniteError
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.live.tokens import Closed, Token, Window
from longterm.storage.packing import pack, restored_state, state_arrays, unpack

_CLOSED: tuple[Closed, ...] = ("told", "skipped")


class Counters(NamedTuple):
    """How often what happened."""

    told: int = 0
    skipped: int = 0
    expired: int = 0
    losses_told: int = 0
    largest_delay: int = 0


class Change(NamedTuple):
    """What one call does to the memory: values to be put in place, so that making it twice is making it once."""

    metadata: dict[str, Any]
    """With `arrays`, the record of it in the journal. Of a tell that is the state it led to, not the feedback: no
    replay depends on a user's function."""
    arrays: dict[str, Array]
    state: Any
    sums: Sums
    counters: Counters
    asked: int
    leaving: tuple[int, ...] = ()
    """Tokens that are open no longer."""
    opened: Token | None = None
    closed: tuple[int, Closed] | None = None

    def record(self) -> bytes:
        """What is written to the journal."""
        return pack(self.metadata, self.arrays)


class Memory:
    """The learner's state, sums over the rounds told, tokens and counters."""

    def __init__(self, state: Any, x: Array, window: Window) -> None:
        self.state = state
        self.sums = Sums.zero(x.shape[:-1], 0)
        self._no_loss, self._no_values = self.sums.loss, self.sums.per_constraint
        self.window = window
        self.counters = Counters()

    @property
    def sequence(self) -> int:
        """How many things have happened."""
        return self.window.asked + self.counters.told + self.counters.skipped

    # --- what can happen -------------------------------------------------------------------------------------

    def asking(self, x: Array) -> Change:
        """A round begins with the decision x."""
        number, expired = self.window.asked + 1, tuple(self.window.expiring())
        decision = np.array(x)
        decision.flags.writeable = False
        counters = self.counters._replace(expired=self.counters.expired + len(expired)) if expired else self.counters
        opened = Token(number, decision)
        return Change({"op": "ask"}, {}, self.state, self.sums, counters, number, expired, opened)

    def telling(self, number: int, state: Any, constraint: Array, loss: Array | None) -> Change:
        """The feedback of an open round led to `state`; a NonFiniteError if that is none."""
        self._require_open(number)
        arrays = state_arrays(state)
        for name, value in arrays.items():
            if not (isinstance(value, np.integer) or np.isfinite(value).all()):
                what = "would hold a number that is not finite after this update"
                remedy = "Check the feedback of this round; the state is as it was"
                raise NonFiniteError(name, what, remedy, round=number)
        arrays["constraint"] = constraint
        if loss is not None:
            arrays["loss"] = loss
        value = self._no_loss if loss is None else loss
        sums = self.sums.add(Feedback(None, constraint, None, value, self._no_values))
        asked, (told, skipped, expired, losses_told, delay) = self.window.asked, self.counters
        counters = Counters(told + 1, skipped, expired, losses_told + (loss is not None), max(delay, asked - number))
        metadata = {"op": "tell", "token": number}
        return Change(metadata, arrays, state, sums, counters, asked, (number,), closed=(number, "told"))

    def skipping(self, number: int) -> Change:
        """An open round is given up."""
        self._require_open(number)
        counters = self.counters._replace(skipped=self.counters.skipped + 1)
        metadata, asked = {"op": "skip", "token": number}, self.window.asked
        return Change(metadata, {}, self.state, self.sums, counters, asked, (number,), closed=(number, "skipped"))

    def _require_open(self, number: int) -> None:
        if number not in self.window.open:
            raise KeyError(f"token {number} is not open")

    def recorded(self, record: bytes, learner: Learner[Any]) -> Change:
        """The change that this record of a journal is about; ValueError, KeyError or TypeError if it makes no sense."""
        metadata, arrays = unpack(record)
        if metadata["op"] == "ask":
            return self.asking(learner.ask(self.state))
        if metadata["op"] == "skip":
            return self.skipping(int(metadata["token"]))
        state = restored_state(self.state, arrays)
        return self.telling(int(metadata["token"]), state, arrays["constraint"], arrays.get("loss"))

    def make(self, change: Change) -> None:
        """Let it happen."""
        window = self.window
        for number in change.leaving:
            window.open.pop(number, None)
        if change.opened is not None:
            window.open[change.asked] = change.opened
            window.closed.pop(change.asked - window.expire_after - 1, None)
        if change.closed is not None:
            number, how = change.closed
            window.closed[number] = how
        window.asked = change.asked
        self.state, self.sums, self.counters = change.state, change.sums, change.counters

    # --- files -----------------------------------------------------------------------------------------------

    def metadata(self) -> dict[str, int]:
        """The counters, for a snapshot."""
        window = self.window
        sizes = {"max_in_flight": window.max_in_flight, "expire_after": window.expire_after, "asked": window.asked}
        return self.counters._asdict() | sizes

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
            "closed.how": np.array([_CLOSED.index(how) for how in closed.values()], dtype=np.uint8),
        }

    def restore(self, metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Take on what `metadata` and `arrays` of another memory said; ValueError or KeyError if it makes no sense."""
        self.state = restored_state(self.state, arrays)
        self.sums = Sums(**{name: arrays[f"sums.{name}"] for name in Sums._fields})
        self.counters = Counters(**{name: int(metadata[name]) for name in Counters._fields})
        window = self.window = Window(
            max_in_flight=int(metadata["max_in_flight"]),
            expire_after=int(metadata["expire_after"]),
            asked=int(metadata["asked"]),
        )
        for number, x in zip(arrays["open.number"].tolist(), arrays["open.x"], strict=True):
            decision = np.array(x)
            decision.flags.writeable = False
            window.open[number] = Token(number, decision)
        for number, how in zip(arrays["closed.number"].tolist(), arrays["closed.how"].tolist(), strict=True):
            window.closed[number] = _CLOSED[how]

    # --- what can be read ------------------------------------------------------------------------------------

    def view(self, learner: Learner[Any]) -> LiveState:
        """All that can be read at this moment; it shares nothing with the learner."""
        state, sums, window = self.state, self.sums, self.window
        return LiveState(
            round=int(np.max(np.asarray(state.round))),
            x=np.array(learner.ask(state)),
            report={name: _copied(value) for name, value in learner.report(state).items()},
            asked=window.asked,
            in_flight=len(window.open),
            cumulative_loss=_copied(sums.loss),
            signed_violation=_copied(sums.signed),
            hard_violation=_copied(sums.hard),
            squared_violation=_copied(sums.squared),
            largest_violation=_copied(sums.largest),
            **self.counters._asdict(),
        )


@dataclass(frozen=True, eq=False)
class LiveState:
    """One moment of a live learner; it does not change when the learner does.

    Violations and losses are sums over the rounds told, at the decisions that were played in them. They are
    scalars for one learner, arrays for a batch.
    """

    round: int
    """The learner's own counter t, from 1: one more than the rounds told. The steps below are those of t."""
    x: Array
    """What the next ask would return."""
    report: Mapping[str, Array]
    """What the learner reports: multiplier, theta, eta, mu, …"""
    asked: int
    told: int
    skipped: int
    expired: int
    in_flight: int
    largest_delay: int
    """τ: the most rounds that were asked for between a round and its feedback. `bounds.lemma_5_delayed` wants it."""
    cumulative_loss: Array
    """Σ f_s(x_s), over the rounds whose feedback had a loss."""
    losses_told: int
    """How many rounds those are."""
    signed_violation: Array
    """Σ g_s(x_s): what the theorem bounds."""
    hard_violation: Array
    """Σ [g_s(x_s)]₊."""
    squared_violation: Array
    """Σ [g_s(x_s)]₊²."""
    largest_violation: Array
    """max g_s(x_s); −∞ before the first feedback."""

    @property
    def multiplier(self) -> Array:
        """λ_t; None if the learner has none."""
        return self.report.get("multiplier")

    @property
    def theta(self) -> Array:
        """θ_t; None if the learner has none."""
        return self.report.get("theta")

    @property
    def eta(self) -> Array:
        """η_t; None if the learner has none."""
        return self.report.get("eta")

    @property
    def mu(self) -> Array:
        """μ_t; None if the learner has none."""
        return self.report.get("mu")

    def budget_used(self, allowance: float) -> Array:
        """The share used of what the rounds told so far allow, where g = cost − `allowance` in every round.

        Σ cost / (allowance · rounds told): 1 is exactly on budget. NaN before the first feedback.
        """
        spent = self.signed_violation + self.told * allowance
        return spent / (self.told * allowance) if self.told else spent * float("nan")


def _copied(value: Array) -> Array:
    """A copy that shares nothing with the learner; a number where there is only one."""
    return np.array(value)[()]
