"""Restarts: a learner begun anew every n rounds, for streams that drift, or in epochs that double.

A-FTRL and penalised FTRL never forget: after t rounds of one kind they need of the order of t rounds of another to
turn round. Begun anew every n rounds, a learner is never behind by more than n.

Guarantees: in every stretch of n rounds (n, 2n, … are the last ones) the learner's own theorem, with T = n, against
the best decision *of that stretch* (`Restarted.bound` adds them up). So, for a learner with regret at most r(n) in n
rounds and violation at most v(n), where r and v are at least 0 and do not fall as n grows, and against decisions u_1,
u_2, …, all feasible, that change S times in T rounds,

    Σ f_t(x_t) − f_t(u_t) ≤ ⌈T/n⌉ r(n) + S n F,         violation ≤ ⌈T/n⌉ v(n).

With r(n) of order √n (penalised FTRL) the best n is of order (T/S)^{2/3}. On a stream that stays the same, restarts
cost: √(T/n) times the regret of one that goes on.

The doubling trick (`DoublingRestarts`): a learner that has to know the number of rounds, played without knowing it.

Epoch k has L_k = N 2^k rounds and is the learner, begun anew, with the steps for T = L_k. `first_epoch` is N.

Guarantees: in each epoch the learner's own theorem (`bound` adds them up). A regret of c√T in T rounds becomes at most
c√T √2/(√2 − 1), 3.4 times as much, from T ≥ N on; in the first epoch it is what the learner made for N rounds promises
after T of them, which may be more than c√T. A violation that is O(1) in every epoch becomes O(log T), as Yu and Neely
(2020) remark. Each epoch forgets the one before it: x begins at the centre, the multipliers at 0.
Around `NoViolationAOGD`, with N = ⌈c_0⌉, it is A-OGD without violation and without a horizon: Σ g(x_t) ≤ 0 whenever an
epoch ends.
Needs: what the learner needs, but for the horizon.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.base import Learner, MadeForHorizon
from longterm.learners.feedback import Feedback
from longterm.learners.feedback_check import OnBrokenBound
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import LONG_TERM, REGRET, SIGNED
from longterm.theory.facts import Assumption


class Restarts(Learner[Any]):
    """A learner begun anew now and then. Its state is the learner's own, but the round counts on."""

    learner: Learner[Any]

    @abstractmethod
    def rule_of(self, state: Any) -> Learner[Any]:
        """The learner that plays the present stretch."""

    @abstractmethod
    def round_within(self, t: Array) -> Array:
        """Round t, counted from the start of its stretch."""

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        self.learner.require_playable(problem)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        return self.learner.assumptions

    @property
    def gradient_bound(self) -> Hyper | None:
        return self.learner.gradient_bound

    @property
    def loss_gradient_bound(self) -> Hyper | None:
        return self.learner.loss_gradient_bound

    @property
    def constraint_gradient_bound(self) -> Hyper | None:
        return self.learner.constraint_gradient_bound

    @property
    def strong_convexity(self) -> Hyper:
        return self.learner.strong_convexity

    @property
    def reads_pullback(self) -> bool:
        return self.learner.reads_pullback

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        self.learner.require(feedback, x, t, on_broken_bound)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> Any:
        return self.learner.init(batch_shape, xp=xp, dtype=dtype)

    def ask(self, state: Any) -> Array:
        return self.learner.ask(self._inside(state))  # what is played stands in the state, whatever the rule

    def update(self, state: Any, feedback: Feedback) -> Any:
        inside = self._inside(state)
        x = self.learner.ask(inside)
        xp = namespace(x)
        after = self.rule_of(state).update(inside, feedback)
        begun = self.learner.init(tuple(x.shape[:-1]), xp=xp, dtype=x.dtype)
        over = self.round_within(state.round + 1) == 1

        def chosen(new: Array, old: Array) -> Array:
            """`new` where a stretch is over: once for all learners, or learner by learner."""
            return xp.where(xp.reshape(over, over.shape + (1,) * (old.ndim - over.ndim)), new, old)

        fields = [chosen(new, old) for new, old in zip(begun, after, strict=True)]
        return type(state)(*fields)._replace(round=state.round + 1)

    def report(self, state: Any) -> dict[str, Array]:
        return self.rule_of(state).report(self._inside(state))

    def _inside(self, state: Any) -> Any:
        """The state as the learner knows it: its rounds are counted from its last start."""
        return state._replace(round=self.round_within(state.round))


@dataclass(frozen=True, eq=False)
class Restarted(Restarts):
    """A learner begun anew after every `every` rounds. Its state is the learner's own, but the round counts on.

    Parameters
    ----------
    learner : Learner
        What is begun anew.
    every : int
        n, the rounds of a stretch.

    Notes
    -----
    On every interval I of rounds, and against every feasible u, the regret is at most (|I|/n + 1) r(n) + (n − 1) F,
    where r(n) ≥ 0 bounds that of n rounds and does not fall with n, and F is the range of a loss: up to n − 1 rounds
    until the next stretch begins, |I|/n whole stretches, and the beginning of one more.

    Examples
    --------
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

    name: ClassVar[str] = "restarted"
    title: ClassVar[str] = "Restarted A-OGD"
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = ({"every": 250},)
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "⌈T/n⌉ times that of n rounds, against the best of each stretch",
        SIGNED: "⌈T/n⌉ times that of n rounds",
    }

    @classmethod
    def for_problem(cls, problem: Problem, *, of: str = "aogd", every: int = 500, **options: Any) -> Restarted:
        """A-OGD, or another learner, begun anew after every so many rounds: for what changes.

        Parameters
        ----------
        problem : Problem
            What is to be played.
        of : str
            The name of the learner, "aogd" or "aftrl" for example.
        every : int
            n, the rounds of a stretch; also the horizon of a learner that needs one.
        **options
            Settings of that learner.
        """
        kind, n = learner_named(of), validate.count("every", every)
        horizon = {"horizon": n} if Need.HORIZON in kind.needs else {}
        return cls(kind.for_problem(problem, **horizon, **options), n)

    def __post_init__(self) -> None:
        every, given = validate.count("every", self.every), self.learner
        validate.set_frozen(self, every=every, enclosing_set=given.enclosing_set, needs=given.needs)

    def rule_of(self, state: Any) -> Learner[Any]:
        return self.learner

    def round_within(self, t: Array) -> Array:
        return (t - 1) % self.every + 1

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """⌊T/n⌋ times the learner's bound for n rounds, and once that for the T mod n rounds that are left.

        The regret is that against the best decision of each stretch; against any fixed one it is no larger.

        Examples
        --------
        >>> from longterm.learners import PenalisedFTRL, Restarted
        >>> from longterm.problems import budgeted_logistic
        >>> problem = budgeted_logistic([[3.0, 4.0, 0.0, 0.0]], budget=1.5)
        >>> learner = Restarted(PenalisedFTRL.for_problem(problem), every=1000)
        >>> {measure: round(float(value), 1) for measure, value in learner.bound(problem, 10_500).items()}
        {'regret': 2511.9, 'hard_violation': 48.4}
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
    """The learner of `longterm.learners` that goes by that name."""
    from longterm.learners import every_learner  # only when asked: that package imports this file

    named = {kind.name: kind for kind in every_learner()}
    if name not in named:
        raise InputError("of", f"no learner is called {name!r}", f"Choose from {sorted(named)}")
    return named[name]


POWERS = 2 ** np.arange(60)
"""No run sees more epochs than this."""
FIRST_EPOCH = 16
"""Where neither the user nor the learner asks for another."""


@dataclass(frozen=True, eq=False)
class DoublingRestarts(Restarts):
    """A learner made for a horizon, in epochs of `first_epoch`, 2 · first_epoch, 4 · first_epoch, … rounds.

    Parameters
    ----------
    learner : MadeForHorizon
        What is begun anew; which horizon it was made for does not matter.
    first_epoch : int
        N.

    Examples
    --------
    >>> from longterm.learners import DoublingRestarts
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> learner = DoublingRestarts.for_problem(problem, of="no_violation_aogd")
    >>> learner.first_epoch, learner.epochs(300_000)
    (40428, [(1, 40428), (40429, 80856), (121285, 161712), (282997, 323424)])
    >>> bool(learner.bound(problem, 40428)["signed_violation"] <= 0)
    True
    """

    learner: MadeForHorizon[Any]
    first_epoch: int = 1
    enclosing_set: Set = field(init=False, repr=False)

    name: ClassVar[str] = "doubling_restarts"
    title: ClassVar[str] = "Doubling restarts"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "√2/(√2 − 1) times that of the learner, from T ≥ N on",
        LONG_TERM: "that of the learner, summed over epochs",
    }
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"of": "yu_neely"},
        {"of": "drift_plus_penalty"},
        {"of": "sinha_vaze"},
        {"of": "no_violation_aogd"},
    )

    @classmethod
    def for_problem(
        cls, problem: Problem, *, of: str = "drift_plus_penalty", first_epoch: int | None = None, **options: Any
    ) -> DoublingRestarts:
        """A learner that needs the horizon, played without it: in epochs that double.

        Parameters
        ----------
        problem : Problem
            What is to be played.
        of : str
            The name of a learner whose steps can be made for another horizon: "yu_neely", "drift_plus_penalty",
            "sinha_vaze" or "no_violation_aogd".
        first_epoch : int, optional
            N. Left out: what the learner's theorem asks for (⌈c_0⌉ of `NoViolationAOGD`), else 16.
        **options
            Settings of that learner.
        """
        kind = learner_named(of)
        if not issubclass(kind, MadeForHorizon):
            what = f"{kind.__name__} has no steps that depend on a horizon"
            raise InputError("of", what, "Play it as it is, or use Restarted")
        learner = kind.for_epochs(problem, **options)
        assert isinstance(learner, MadeForHorizon)
        return cls(learner, (learner.shortest_horizon or FIRST_EPOCH) if first_epoch is None else first_epoch)

    def __post_init__(self) -> None:
        given: object = self.learner
        if not isinstance(given, MadeForHorizon):
            what = f"{type(given).__name__} has no steps that depend on a horizon"
            raise InputError("learner", what, "Play it as it is, or use Restarted")
        first = validate.count("first_epoch", self.first_epoch)
        needs = given.needs - {Need.HORIZON}
        validate.set_frozen(self, first_epoch=first, enclosing_set=given.enclosing_set, needs=needs)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Those of the first epoch, the shortest."""
        return self.learner.for_horizon(np.asarray(float(self.first_epoch))).assumptions

    def epochs(self, rounds: int) -> list[tuple[int, int]]:
        """(first round, length) of every epoch that begins in rounds 1 … `rounds`."""
        epochs, start, length = [], 1, self.first_epoch
        while start <= rounds:
            epochs.append((start, length))
            start, length = start + length, 2 * length
        return epochs

    def length_of(self, t: Array) -> Array:
        """L_k of the epoch that round t is in: N 2^k for N (2^k − 1) < t ≤ N (2^{k+1} − 1)."""
        xp, powers = namespace(t), like(POWERS, t)
        reached = as_column((t - 1) // self.first_epoch + 1) >= powers
        return self.first_epoch * xp.max(xp.where(reached, powers, xp.zeros_like(powers)), axis=-1)

    def rule_of(self, state: Any) -> Learner[Any]:
        length = self.length_of(state.round)
        return self.learner.for_horizon(namespace(length).astype(length, state.x.dtype))

    def round_within(self, t: Array) -> Array:
        return t - (self.length_of(t) - self.first_epoch)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """The sum over all epochs of the bound for the learner of that epoch, after as many rounds as it played.

        Examples
        --------
        >>> from longterm.learners import DoublingRestarts, YuNeely
        >>> from longterm.problems import two_dimensional
        >>> problem = two_dimensional()
        >>> learner = DoublingRestarts(YuNeely.for_problem(problem, horizon=1))
        >>> bounds = learner.bound(problem, [1000, 100_000])
        >>> bounds["regret"].round(1), bounds["long_term_violation"].round(1)
        (array([ 223.5, 2493.5]), array([30.7, 54.2]))
        """
        horizons = rounds.reshape(-1)
        total: dict[str, FloatArray] = {}
        for start, length in self.epochs(int(horizons.max())):
            played, place = np.unique(np.clip(horizons - start + 1, 0, length), return_inverse=True)
            rule = self.learner.for_horizon(np.asarray(float(length)))
            for measure, values in rule.theorem(problem, np.maximum(played, 1)).items():
                begun = (played > 0).reshape(-1, *(1 for _ in range(np.ndim(values) - 1)))
                total[measure] = total.get(measure, np.asarray(0.0)) + np.where(begun, values, 0.0)[place]
        return {measure: values.reshape(rounds.shape + values.shape[1:]) for measure, values in total.items()}
