"""Restarts, for streams that drift: any learner, begun anew every n rounds.

A-FTRL and penalised FTRL never forget: after t rounds of one kind they need of the order of t rounds of another to
turn round. Begun anew every n rounds, a learner is never behind by more than n.

Guarantees: in every stretch of n rounds (n, 2n, … are the last ones) the learner's own theorem, with T = n, against
the best decision *of that stretch* (`bounds.restarted`). So, for a learner with regret at most r(n) in n rounds, and
violation at most v(n), and against decisions u_1, u_2, …, all feasible, that change S times in T rounds,

    Σ f_t(x_t) − f_t(u_t) ≤ ⌈T/n⌉ r(n) + S n F,         violation ≤ ⌈T/n⌉ v(n).

With r(n) of order √n (penalised FTRL) the best n is of order (T/S)^{2/3}. On a stream that stays the same, restarts
cost: √(T/n) times the regret of one that goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, namespace
from longterm._validate import Hyper
from longterm.feedback import Feedback
from longterm.learners.base import Learner, OnBrokenBound
from longterm.problems import Problem
from longterm.sets import Set


@dataclass(frozen=True, eq=False)
class Restarted(Learner[Any]):
    """A learner begun anew after every `every` rounds. Its state is the learner's own, but the round counts on.

    >>> import numpy as np
    >>> from longterm import AFTRL, Problem, Restarted, run
    >>> from longterm.constraints import L1Budget
    >>> from longterm.losses import Linear
    >>> from longterm.sets import Ball
    >>> from longterm.streams import Replay
    >>> problem = Problem(Ball(2), Linear(2), L1Budget(2, budget=1.0))
    >>> turning = Replay([np.repeat([[1.0, 0.0], [-1.0, 0.0]], 500, axis=0)])
    >>> learner = AFTRL.tuned(problem)
    >>> for played in (learner, Restarted(learner, every=250)):
    ...     print(float(run(problem, played, turning).cumulative_loss[-1].round(1)))
    -13.9
    -994.8
    """

    learner: Learner[Any]
    every: int
    enclosing_set: Set = field(init=False, repr=False)

    def __post_init__(self) -> None:
        validate.remember(self, every=validate.count("every", self.every), enclosing_set=self.learner.enclosing_set)

    @property
    def gradient_bound(self) -> Hyper | None:
        return self.learner.gradient_bound

    def check(self, problem: Problem) -> None:
        self.learner.check(problem)

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        return self.learner.loss_gradient_bound

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        return self.learner.constraint_gradient_bound

    @property
    def reads_pullback(self) -> bool:
        return self.learner.reads_pullback

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        self.learner.require(feedback, x, t, on_broken_bound)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> Any:
        return self.learner.init(batch_shape, xp=xp, dtype=dtype)

    def ask(self, state: Any) -> Array:
        return self.learner.ask(self._own(state))

    def update(self, state: Any, feedback: Feedback) -> Any:
        x = self.ask(state)
        xp = namespace(x)
        after = self.learner.update(self._own(state), feedback)
        begun = self.learner.init(tuple(x.shape[:-1]), xp=xp, dtype=x.dtype)
        over = state.round % self.every == 0

        def chosen(new: Array, old: Array) -> Array:
            """`new` where a stretch is over: once for all learners, or learner by learner."""
            return xp.where(xp.reshape(over, over.shape + (1,) * (old.ndim - over.ndim)), new, old)

        fields = [chosen(new, old) for new, old in zip(begun, after, strict=True)]
        return type(state)(*fields)._replace(round=state.round + 1)

    def report(self, state: Any) -> dict[str, Array]:
        return self.learner.report(self._own(state))

    def _own(self, state: Any) -> Any:
        """The state as the learner knows it: its rounds are counted from its last start."""
        return state._replace(round=(state.round - 1) % self.every + 1)
