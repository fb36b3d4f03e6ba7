"""The doubling trick: a learner that has to know the number of rounds, played without knowing it.

Epoch k has L_k = N 2^k rounds and is the learner, begun anew, with the steps for T = L_k. `first_epoch` is N.

Guarantees: in each epoch the learner's own theorem (`bounds.doubling_restarts` adds them up). A regret of c√T in T
rounds becomes at most c√T √2/(√2 − 1), 3.4 times as much; a violation that is O(1) in every epoch becomes O(log T), as
Yu and Neely (2020) remark. Each epoch forgets the one before it: x begins at the centre, the multipliers at 0.
Needs: what the learner needs, but for the horizon.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, column, like, namespace
from longterm.errors import InputError
from longterm.learners.base import Learner
from longterm.learners.horizon import MadeForHorizon
from longterm.learners.needs import Need
from longterm.learners.restarts import Restarts
from longterm.sets import Set
from longterm.theory.assumptions import Assumption

POWERS = 2 ** np.arange(60)
"""No run sees more epochs than this."""


@dataclass(frozen=True, eq=False)
class DoublingRestarts(Restarts):
    """A learner made for a horizon, in epochs of `first_epoch`, 2 · first_epoch, 4 · first_epoch, … rounds.

    >>> from longterm import run
    >>> from longterm.learners import DoublingRestarts, SinhaVaze
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import NoisyTargets
    >>> problem = two_dimensional()
    >>> learner = DoublingRestarts(SinhaVaze.for_problem(problem, horizon=1), first_epoch=100)
    >>> learner.epochs(1000)
    [(1, 100), (101, 200), (301, 400), (701, 800)]
    """

    learner: MadeForHorizon[Any]
    first_epoch: int = 1
    enclosing_set: Set = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given: object = self.learner
        if not isinstance(given, MadeForHorizon):
            what = f"{type(given).__name__} has no steps that depend on a horizon"
            raise InputError("learner", what, "Play it as it is, or use Restarted")
        first = validate.count("first_epoch", self.first_epoch)
        needs = given.needs - {Need.HORIZON}
        validate.remember(self, first_epoch=first, enclosing_set=given.enclosing_set, needs=needs)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        return self.learner.assumptions

    def epochs(self, rounds: int) -> list[tuple[int, int]]:
        """(first round, length) of every epoch that begins in rounds 1 … `rounds`."""
        found, start, length = [], 1, self.first_epoch
        while start <= rounds:
            found.append((start, length))
            start, length = start + length, 2 * length
        return found

    def length_of(self, t: Array) -> Array:
        """L_k of the epoch that round t is in: N 2^k for N (2^k − 1) < t ≤ N (2^{k+1} − 1)."""
        xp, powers = namespace(t), like(POWERS, t)
        reached = column((t - 1) // self.first_epoch + 1) >= powers
        return self.first_epoch * xp.max(xp.where(reached, powers, xp.zeros_like(powers)), axis=-1)

    def rule_of(self, state: Any) -> Learner[Any]:
        length = self.length_of(state.round)
        return self.learner.for_horizon(namespace(length).astype(length, state.x.dtype))

    def own_round(self, t: Array) -> Array:
        return t - (self.length_of(t) - self.first_epoch)
