"""The stored state of a live learner with its open rounds, and the changes that calls make to it.

A round is opened by `ask` and closed once: told, skipped or expired.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from longterm._base.arrays import Array
from longterm._base.states import are_finite, state_values
from longterm.errors import ExpiredTokenError, NonFiniteError, TokenError, UnknownTokenError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner
from longterm.play.engines.sums import Sums
from longterm.play.live_learner.live_state import LiveState, require_near
from longterm.storage.database import RoundRow
from longterm.storage.packing import (
    LARGEST_COUNT,
    StatePacker,
    raw_bytes,
    require,
    require_sound,
    restored_state,
    unpack_checked,
)
from longterm.storage.rounds import DONE, EXPIRED, SKIPPED, OpenRound, RoundChange, RoundsCopy, Window
from longterm.storage.tokens import REMEDY, Token

_SUMS = 5
"""The sums that are stored: all but those of single constraints."""
_COUNTERS = struct.Struct("<5q")


class Counters(NamedTuple):
    """The numbers of rounds by what became of them."""

    told: int = 0
    skipped: int = 0
    expired: int = 0
    losses_told: int = 0
    largest_delay: int = 0

    @property
    def closed(self) -> int:
        """The number of closed rounds."""
        return self.told + self.skipped + self.expired


class Progress(NamedTuple):
    """The state of the rule, the sums over the rounds told, and the counters."""

    state: Any
    sums: Sums
    counters: Counters


Change = RoundChange[Progress, Array]


class LearnerCopy(RoundsCopy[Progress, Array]):
    """A copy of a live learner's state.

    Parameters
    ----------
    learner : Learner
        The rule.
    window : Window
        The limits of open rounds.
    """

    kind = "live learner"
    remedy = REMEDY

    def __init__(self, learner: Learner[Any], window: Window) -> None:
        self._learner = learner
        if window.expire_after is not None:
            self.closed_kept = window.expire_after + 1
        self._start = learner.init()
        self._x = learner.ask(self._start)
        sums = np.array(Sums.zero(self._x.shape[:-1], 0)[:_SUMS])
        super().__init__(Progress(self._start, self._totals(sums), Counters()), window)
        others = {"sums": sums, "counters": np.array(Counters(), dtype=np.int64)}
        self._packer = StatePacker(self._start, {"counters": Counters._fields}, others)

    # --- changes ---------------------------------------------------------------------------------------------

    def asking(self, epoch: int, now: float, key: str | None) -> Change:
        """Return the change that opens a round with the learner's present decision."""
        expired = self.outnumbered()
        self.require_window(expired)
        progress = self._without(expired)
        x = np.array(self._learner.ask(progress.state))
        x.setflags(write=False)
        return self.opening(progress, x, epoch, key, expired, now=now)

    def expiring(self, now: float) -> Change:
        """Return the change that closes the rounds that are too old in seconds."""
        expired = self.outdated(now)
        return self.expiry(self._without(expired), expired)

    def _without(self, expired: tuple[int, ...]) -> Progress:
        """Return the state after these rounds have expired."""
        counters = self.state.counters
        more = counters.expired + len(expired)
        return self.state._replace(counters=counters._replace(expired=more)) if expired else self.state

    def telling(self, number: int, feedback: Feedback) -> Change:
        """Return the change that closes an open round with an update. Raise a NonFiniteError if it overflows."""
        before, _, counters = self.state
        state, loss = self._learner.update(before, feedback), feedback.loss
        place = next((place for place, value in enumerate(state_values(state)) if not are_finite(value)), None)
        if place is not None:
            what = "would hold a number that is not finite after this update"
            remedy = "Check the feedback of this round. The state is unchanged"
            raise NonFiniteError(f"state.{self._packer.names[place]}", what, remedy, round=number)
        told, skipped, expired, losses_told, largest_delay = counters
        losses_told, largest_delay = losses_told + (loss is not None), max(self.asked - number, largest_delay)
        counters = Counters(told + 1, skipped, expired, losses_told, largest_delay)
        after = Progress(state, self._sums_with(number, feedback.constraint, loss), counters)
        return self.closing(number, after, DONE, last=number + largest_delay)

    def _totals(self, sums: Array) -> Sums:
        """Return the sums that are stored. Those of a single learner are floats, which add faster."""
        loss, signed, hard, squared, largest = sums if self._x.ndim > 1 else sums.tolist()
        return Sums(loss, signed, hard, squared, largest, np.zeros(()))

    def _sums_with(self, number: int, constraint: Array, loss: Array | None) -> Sums:
        """Return the sums with one more round."""
        sums, gain = self.state.sums, 0.0 if loss is None else loss
        if self._x.ndim > 1:
            sums = sums.with_round(gain, constraint)
        else:
            sums = sums.with_round(float(gain), float(constraint))
        if not are_finite(sums.loss + sums.signed + sums.hard):
            raise NonFiniteError("feedback", "a sum over all rounds would overflow", "Use smaller units", round=number)
        return sums

    def skipping(self, number: int) -> Change:
        """Return the change that closes an open round without feedback."""
        counters = self.state.counters
        after = self.state._replace(counters=counters._replace(skipped=counters.skipped + 1))
        return self.closing(number, after, SKIPPED)

    # --- tokens ----------------------------------------------------------------------------------------------

    def find(self, given: Any, now: float) -> tuple[int, OpenRound[Array]]:
        """Return the open round that is meant. Raise a TokenError that says why there is none."""
        number, found = super().find(given, now)
        x = getattr(given, "x", None)
        if x is not None and x is not found.content and not np.array_equal(x, found.content):
            what = "this round has a different decision"
            raise UnknownTokenError(number, what, "Tell the learner that opened this round")
        return number, found

    def tokens(self) -> tuple[Token, ...]:
        """Return the tokens of the open rounds with their decisions, oldest first."""
        return tuple(Token(number, found.content, found.epoch) for number, found in self.open.items())

    def refusal(self, number: int, status: int | None) -> TokenError:
        """Return the error for a round with this status."""
        if status == EXPIRED:
            what = f"{self.asked - number} later rounds were requested, and expire_after = {self.expire_after}, "
            remedy = "Call tell earlier, or make the learner with a larger expire_after or max_age"
            return ExpiredTokenError(number, f"{what}max_age = {self.max_age}", remedy)
        return super().refusal(number, status)

    # --- storage ---------------------------------------------------------------------------------------------

    def encode_state(self, state: Progress) -> bytes:
        sums = np.array(state.sums[:_SUMS], dtype="<f8")
        return self._packer.encode(state.state, sums.tobytes() + _COUNTERS.pack(*state.counters))

    def decode_state(self, data: bytes, asked: int) -> Progress:
        _, arrays = unpack_checked(data)
        sums = _checked(arrays, "sums", np.float64, (_SUMS, *self._x.shape[:-1]))
        counts = _checked(arrays, "counters", np.int64, (len(Counters._fields),)).tolist()
        counters = Counters(*counts)
        require(min(counts) >= 0 and max(counts) <= LARGEST_COUNT, "a count is out of range")
        require(counters.losses_told <= counters.told, "there are losses of more rounds than were told")
        require(counters.closed <= asked, "more rounds were closed than opened")
        require(counters.largest_delay <= asked, "a delay is longer than the run")
        require(bool(np.isfinite(sums[:3]).all()) and not np.isnan(sums).any(), "a sum is not a number")
        state = restored_state(self._start, arrays)
        require_sound(self._start, state)
        played = int(np.max(np.asarray(state.round))) - 1
        require(played <= counters.told, "the state is of more rounds than were told")
        require_near(self._learner, self._learner.ask(state))
        return Progress(state, self._totals(sums), counters)

    def encode_round(self, content: Array) -> bytes:
        return raw_bytes(content)

    def decode_round(self, row: RoundRow) -> Array:
        require(row.number >= 1 and 0 <= row.epoch < 2**63, "a round has an absurd number")
        require(len(row.content) == self._x.nbytes, "a decision has the wrong size")
        stored = np.frombuffer(row.content, dtype=self._x.dtype.newbyteorder("<"))
        x = stored.astype(self._x.dtype).reshape(self._x.shape)
        require(bool(np.isfinite(x).all()), "an open decision is not finite")
        require_near(self._learner, x)
        x.setflags(write=False)
        return x

    def require_rounds(self, state: Progress, rounds: dict[int, OpenRound[Array]], asked: int) -> None:
        require(len(rounds) + state.counters.closed == asked, "the rounds do not add up")

    # --- views -----------------------------------------------------------------------------------------------

    def view(self) -> LiveState:
        """Return everything that users can read, independent of the copy."""
        state, sums, counters = self.state
        return LiveState(
            round=int(np.max(np.asarray(state.round))),
            x=np.array(self._learner.ask(state)),
            report={name: _copied(value) for name, value in self._learner.report(state).items()},
            asked=self.asked,
            in_flight=len(self.open),
            cumulative_loss=_copied(sums.loss),
            signed_violation=_copied(sums.signed),
            hard_violation=_copied(sums.hard),
            squared_violation=_copied(sums.squared),
            largest_violation=_copied(sums.largest),
            **counters._asdict(),
        )


def _checked(arrays: dict[str, Array], name: str, dtype: Any, shape: tuple[int, ...]) -> Array:
    found = arrays.get(name)
    require(isinstance(found, np.ndarray) and found.dtype == dtype and found.shape == shape, f"{name} does not fit")
    return found


def _copied(value: Array) -> Array:
    """Return an independent copy; a number where there is only one."""
    return np.array(value)[()]
