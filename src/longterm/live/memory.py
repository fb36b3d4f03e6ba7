"""Everything a live learner remembers, the three things that can happen to it, and what can be read of it.

What happens is first worked out, as a `Change`, then written to the journal as the change's record, then made.
Calls and the replay of a journal make the same changes, so they cannot drift apart. Making a change checks nothing:
by then it has been found good and written down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from longterm._arrays import Array
from longterm.engines.trace import Sums
from longterm.errors import NonFiniteError
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.live.records import Asked, Event, Skipped, StateLayout, Told
from longterm.live.stored import check_book
from longterm.live.tokens import Closed, Lives, Token, Window
from longterm.storage.packing import require_sound, restored_state, state_arrays

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

    event: Event
    """What the journal is told."""
    state: Any
    sums: Sums
    counters: Counters
    asked: int
    lives: Lives
    leaving: tuple[int, ...] = ()
    """Tokens that are open no longer."""
    opened: Token | None = None
    closed: tuple[int, Closed] | None = None


class Memory:
    """The learner's state, sums over the rounds told, tokens and counters."""

    def __init__(self, state: Any, x: Array, window: Window) -> None:
        self.state = state
        self.layout = StateLayout(state, x)
        self._x = x
        self.sums = Sums.zero(x.shape[:-1], 0)
        self._no_loss, self._no_values = self.sums.loss, self.sums.per_constraint
        self.window = window
        self.counters = Counters()

    @property
    def sequence(self) -> int:
        """How many things have happened."""
        counters = self.counters
        return self.window.asked + counters.told + counters.skipped

    def copied(self) -> Memory:
        """A memory that stays as this one is now. What it shares with it is never written to."""
        made, window = copy(self), self.window
        made.window = replace(window, open=window.open.copy(), closed=window.closed.copy())
        return made

    # --- what can happen -------------------------------------------------------------------------------------

    def asking(self, x: Array, life: int) -> Change:
        """A round begins with the decision x; its token belongs to this life."""
        window, counters = self.window, self.counters
        number, expired = window.asked + 1, window.expiring()
        decision = np.array(x)
        decision.setflags(write=False)
        if expired:
            counters = counters._replace(expired=counters.expired + len(expired))
        lives = window.lives_with(life)
        event = Asked() if lives is window.lives else Asked(life)
        return Change(
            event, self.state, self.sums, counters, number, lives, expired, Token(number, decision, life), None
        )

    def telling(self, event: Told) -> Change:
        """The feedback of an open round led to a state; a NonFiniteError if that is none."""
        number, state, constraint, loss = event
        self._require_open(number)
        for place, value in enumerate(self.layout.leaves(state)):
            if not _is_finite(value):
                what = "would hold a number that is not finite after this update"
                remedy = "Check the feedback of this round; the state is as it was"
                raise NonFiniteError(f"state.{self.layout.name(place)}", what, remedy, round=number)
        window, (told, skipped, expired, losses_told, delay) = self.window, self.counters
        asked = window.asked
        if asked - number > delay:
            delay = asked - number
        counters = Counters(told + 1, skipped, expired, losses_told + (loss is not None), delay)
        sums = self._sums_with(constraint, loss)
        return Change(event, state, sums, counters, asked, window.lives, (number,), None, (number, "told"))

    def skipping(self, number: int) -> Change:
        """An open round is given up."""
        self._require_open(number)
        window, counters = self.window, self.counters._replace(skipped=self.counters.skipped + 1)
        closed: tuple[int, Closed] = (number, "skipped")
        return Change(
            Skipped(number), self.state, self.sums, counters, window.asked, window.lives, (number,), None, closed
        )

    def _sums_with(self, constraint: Array, loss: Array | None) -> Sums:
        """`Sums.add`; for a single learner without arrays made to hold one number."""
        sums = self.sums
        if np.ndim(constraint) != 0:
            value = self._no_loss if loss is None else loss
            return sums.add(Feedback(None, constraint, None, value, self._no_values))
        worst = float(constraint)
        positive = worst if worst > 0.0 else 0.0
        return Sums(
            sums.loss + (0.0 if loss is None else float(loss)),
            sums.signed + worst,
            sums.hard + positive,
            sums.squared + positive * positive,
            np.float64(worst) if worst > sums.largest else sums.largest,
            sums.per_constraint,
        )

    def _require_open(self, number: int) -> None:
        if number not in self.window.open:
            raise KeyError(f"token {number} is not open")

    def recorded(self, record: bytes, learner: Learner[Any]) -> Change:
        """The change that this record of a journal is about; ValueError, KeyError or TypeError if it makes no sense."""
        event = self.layout.decode(record, self.state)
        if isinstance(event, Told):
            return self.telling(event)
        if isinstance(event, Skipped):
            return self.skipping(event.number)
        lives = self.window.lives
        life = event.life if event.life is not None else lives[-1][1] if lives else 0
        return self.asking(learner.ask(self.state), life)

    def make(self, change: Change) -> None:
        """Let it happen."""
        window = self.window
        for number in change.leaving:
            window.open.pop(number, None)
        if change.opened is not None:
            window.open[change.asked] = change.opened
            window.closed.pop(change.asked - window.expire_after - 1, None)
            window.lives = change.lives
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

    def restore(self, metadata: Mapping[str, Any], lives: Sequence[Any], arrays: Mapping[str, Array]) -> None:
        """Take on what `metadata` and `arrays` of another memory said; ValueError or KeyError if it makes no sense."""
        check_book(metadata, arrays, self._x, self.sums._asdict())
        state = restored_state(self.state, arrays)
        require_sound(self.state, state)
        if int(np.max(np.asarray(state.round))) > metadata["told"] + 1:
            raise ValueError("the state is of more rounds than were told")
        self.state = state
        self.sums = Sums(**{name: arrays[f"sums.{name}"] for name in Sums._fields})
        self.counters = Counters(**{name: int(metadata[name]) for name in Counters._fields})
        window = self.window = Window(
            max_in_flight=int(metadata["max_in_flight"]),
            expire_after=int(metadata["expire_after"]),
            asked=int(metadata["asked"]),
            lives=tuple((int(first), int(life)) for first, life in lives),
        )
        for number, x in zip(arrays["open.number"].tolist(), arrays["open.x"], strict=True):
            decision = np.array(x)
            decision.flags.writeable = False
            window.open[number] = Token(number, decision, window.life_of(number))
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

    Parameters
    ----------
    round : int
        The learner's own counter t, from 1: one more than the rounds told. The steps below are those of t.
    x : array
        What the next ask would return.
    report : mapping of str to array
        What the learner reports: multiplier, theta, eta, mu, …
    asked, told, skipped, expired, in_flight : int
        How many rounds were asked for, came back, were skipped, expired, and are still out.
    largest_delay : int
        τ: the most rounds that were asked for between a round and its feedback. `theory.lemma_5_delayed` wants it.
    cumulative_loss : array
        Σ f_s(x_s), over the rounds whose feedback had a loss.
    losses_told : int
        How many rounds those are.
    signed_violation : array
        Σ g_s(x_s): what the theorem bounds.
    hard_violation : array
        Σ [g_s(x_s)]₊.
    squared_violation : array
        Σ [g_s(x_s)]₊².
    largest_violation : array
        max g_s(x_s); −∞ before the first feedback.
    """

    round: int
    x: Array
    report: Mapping[str, Array]
    asked: int
    told: int
    skipped: int
    expired: int
    in_flight: int
    largest_delay: int
    cumulative_loss: Array
    losses_told: int
    signed_violation: Array
    hard_violation: Array
    squared_violation: Array
    largest_violation: Array

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


def _is_finite(value: Array) -> bool:
    """Whether every number is."""
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        return math.isfinite(value)
    return b"\0" not in np.isfinite(value).tobytes()  # a third of what .all() takes


def _copied(value: Array) -> Array:
    """A copy that shares nothing with the learner; a number where there is only one."""
    return np.array(value)[()]
