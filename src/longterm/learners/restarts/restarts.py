"""Restarts: a learner restarted every n rounds, for streams that drift.

A-FTRL and penalised FTRL never forget: after t rounds of one kind they need of the order of t rounds of another to
adapt. A learner that is restarted every n rounds is never behind by more than n.

Guarantees: in every stretch of n rounds the learner's own theorem, with T = n, against the best decision *of that
stretch*. So, with regret at most r(n) and violation at most v(n) in n rounds, and against feasible u_1, u_2, … that
change S times,

    Σ f_t(x_t) − f_t(u_t) ≤ ⌈T/n⌉ r(n) + S n F,         violation ≤ ⌈T/n⌉ v(n).

On every interval I of rounds the regret is at most (|I|/n + 1) r(n) + (n − 1) F. Proof: `docs/proofs/aftrl.md`.
Not promised: to be no worse than the learner on a stream that does not drift.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, namespace
from longterm._base.states import map_states
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.needs import Need
from longterm.learners.interface.wrapper import Wrapper
from longterm.problems import Problem
from longterm.theory.bounds import REGRET, SIGNED, BoundValues, Rounds


class Restarts(Wrapper[Any]):
    """A learner that is restarted from time to time. Its state is the learner's, but the round counts on."""

    @abstractmethod
    def rule_of(self, state: Any) -> Learner[Any]:
        """Return the learner that plays the current stretch."""

    @abstractmethod
    def round_within(self, t: Array) -> Array:
        """Return round t counted from the start of its stretch."""

    @property
    def hypotheses(self) -> tuple[str, ...]:
        return tuple(f"in each stretch, {words}" for words in super().hypotheses)

    def ask(self, state: Any) -> Array:
        return self.learner.ask(self._inner_state(state))

    def update(self, state: Any, feedback: Feedback) -> Any:
        inner = self._inner_state(state)
        x = self.learner.ask(inner)
        xp = namespace(x)
        after = self.rule_of(state).update(inner, feedback)
        fresh = self.learner.init(tuple(x.shape[:-1]), xp=xp, dtype=x.dtype)
        over = self.round_within(state.round + 1) == 1

        def select(new: Array, old: Array) -> Array:
            """Return `new` where a stretch is over, for all learners or learner by learner."""
            return xp.where(xp.reshape(over, over.shape + (1,) * (old.ndim - over.ndim)), new, old)

        return map_states(select, fresh, after)._replace(round=state.round + 1)

    def report(self, state: Any) -> dict[str, Array]:
        return self.rule_of(state).report(self._inner_state(state))

    def _inner_state(self, state: Any) -> Any:
        """Return the state with its round counted from the last start."""
        return state._replace(round=self.round_within(state.round))


@dataclass(frozen=True, eq=False)
class Restarted(Restarts):
    """Forget the past at regular intervals, so that a learner can follow a stream that drifts.

    Parameters
    ----------
    learner : Learner
        The learner that is restarted.
    every : int
        The number of rounds between two restarts.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import constraints, losses, sets, streams
    >>> problem = lt.Problem(sets.Ball(2), losses.Linear(2), constraints.L1Budget(2, budget=1.0))
    >>> turning = streams.Replay([np.repeat([[1.0, 0.0], [-1.0, 0.0]], 500, axis=0)])
    >>> learner = lt.learners.AFTRL.for_problem(problem)
    >>> for played in (learner, lt.learners.Restarted(learner, every=250)):
    ...     print(float(lt.run(problem, played, turning).cumulative_loss[-1].round(1)))
    -13.9
    -994.8
    """

    learner: Learner[Any]
    every: int

    name = "restarted"
    title = "Restarted A-OGD"
    drifting = ({"every": 250},)
    promises = {
        REGRET: "⌈T/n⌉ times that of n rounds, against the best of each stretch",
        SIGNED: "⌈T/n⌉ times that of n rounds",
    }

    @classmethod
    def for_problem(cls, problem: Problem, *, of: str = "aogd", every: int = 500, **options: Any) -> Restarted:
        """Restart A-OGD, or another learner, after every n rounds, for streams that drift.

        Parameters
        ----------
        of : str
            The name of the learner, "aogd" or "aftrl" for example.
        every : int
            n, the rounds of a stretch. Also the horizon of a learner that needs one.
        **options
            Settings of that learner.
        """
        kind, n = learner_named(of), validate.count("every", every)
        horizon = {"horizon": n} if Need.HORIZON in kind.needs else {}
        return cls(kind.for_problem(problem, **horizon, **options), n)

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.set_frozen(self, every=validate.count("every", self.every), needs=self.learner.needs)

    def rule_of(self, state: Any) -> Learner[Any]:
        return self.learner

    def round_within(self, t: Array) -> Array:
        return (t - 1) % self.every + 1

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return ⌊T/n⌋ times the learner's bound for n rounds, plus the bound for the T mod n rounds that are left.

        The regret is against the best decision of each stretch. Against any fixed decision it is no larger.
        """
        n = self.every
        whole = self.learner.theorem(problem, np.asarray(n))
        left = self.learner.theorem(problem, np.maximum(rounds % n, 1))

        def total(one: FloatArray, rest: FloatArray) -> FloatArray:
            axes = (1,) * (np.ndim(rest) - rounds.ndim)
            stretches, remains = (h.reshape(h.shape + axes) for h in (rounds // n, rounds % n > 0))
            return np.asarray(stretches * one + remains * rest)

        return {measure: total(whole[measure], left[measure]) for measure in whole}


def learner_named(name: str) -> type[Learner[Any]]:
    """Return the learner class of that name. Raise if there is none."""
    from longterm.learners import every_learner  # imported here, as that package imports this file

    named = {kind.name: kind for kind in every_learner()}
    if name not in named:
        raise InputError("of", f"no learner is called {name!r}", f"Choose from {sorted(named)}")
    return named[name]
