"""The doubling trick: a theorem for each epoch, added up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm.bounds.base import Bound
from longterm.learners.doubling_restarts import DoublingRestarts


def doubling_restarts(theorem: Callable[[Any, int], Bound], learner: DoublingRestarts, rounds: ArrayLike) -> Bound:
    """The sum over all epochs of the bound for the learner of that epoch, after as many of its rounds as were played.

    `theorem` gives the bound from a learner and a number of rounds.

    >>> from longterm.learners import DoublingRestarts, YuNeely
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import doubling_restarts, yu_neely
    >>> problem = two_dimensional()
    >>> learner = DoublingRestarts(YuNeely.for_problem(problem, horizon=1))
    >>> theorem = lambda one, n: yu_neely(one, problem.constants, n, slack=1.25)
    >>> bound = doubling_restarts(theorem, learner, [1000, 100_000])
    >>> bound.regret.round(1), bound.violation.round(1)
    (array([ 223.5, 2493.5]), array([30.7, 54.2]))
    """
    asked = validate.horizons("rounds", rounds)
    found = [_one(theorem, learner, int(T)) for T in asked.flat]
    regret, violation = (np.stack(parts).reshape(asked.shape + parts[0].shape) for parts in zip(*found, strict=True))
    return Bound(regret, violation)


def _one(theorem: Callable[[Any, int], Bound], learner: DoublingRestarts, rounds: int) -> Bound:
    regret, violation = np.zeros(learner.batch_shape), np.zeros(learner.batch_shape)
    for start, length in learner.epochs(rounds):
        bound = theorem(learner.learner.for_horizon(np.asarray(float(length))), min(length, rounds - start + 1))
        regret, violation = regret + bound.regret, violation + bound.violation
    return Bound(regret, violation)
