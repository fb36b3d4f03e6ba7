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

from longterm import _validate as validate
from longterm._arrays import Array
from longterm.learners.base import Learner
from longterm.learners.restarts import Restarts
from longterm.sets import Set


@dataclass(frozen=True, eq=False)
class Restarted(Restarts):
    """A learner begun anew after every `every` rounds. Its state is the learner's own, but the round counts on.

    >>> import numpy as np
    >>> from longterm import Problem, run
    >>> from longterm.learners import AFTRL, Restarted
    >>> from longterm.constraints import L1Budget
    >>> from longterm.losses import Linear
    >>> from longterm.sets import Ball
    >>> from longterm.streams import Replay
    >>> problem = Problem(Ball(2), Linear(2), L1Budget(2, budget=1.0))
    >>> turning = Replay([np.repeat([[1.0, 0.0], [-1.0, 0.0]], 500, axis=0)])
    >>> learner = AFTRL.for_problem(problem)
    >>> for played in (learner, Restarted(learner, every=250)):
    ...     print(float(run(problem, played, turning).cumulative_loss[-1].round(1)))
    -13.9
    -994.8
    """

    learner: Learner[Any]
    every: int
    enclosing_set: Set = field(init=False, repr=False)

    def __post_init__(self) -> None:
        every, given = validate.count("every", self.every), self.learner
        validate.remember(self, every=every, enclosing_set=given.enclosing_set, needs=given.needs)

    def rule_of(self, state: Any) -> Learner[Any]:
        return self.learner

    def own_round(self, t: Array) -> Array:
        return (t - 1) % self.every + 1
