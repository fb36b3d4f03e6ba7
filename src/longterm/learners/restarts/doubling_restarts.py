"""The doubling trick: a learner that has to know the number of rounds, played without knowing it.

Epoch k has L_k = N 2^k rounds. It is the learner, restarted, with the steps for T = L_k. `first_epoch` is N.

Guarantees: in each epoch the learner's own theorem (`bound` adds them up). A regret of c√T becomes at most
c√T √2/(√2 − 1), 3.4 times as much, for T ≥ N. A violation that is O(1) in every epoch becomes O(log T). Around
`NoViolationAOGD`, with N = ⌈c_0⌉, Σ g(x_t) ≤ 0 whenever an epoch ends. Proof: `docs/proofs/after_the_paper.md`.
Needs: what the learner needs, except for the horizon.
Not promised: to remember. Every epoch begins at the centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, like, namespace
from longterm.errors import InputError
from longterm.learners.interface.horizons import MadeForHorizon
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.needs import Need
from longterm.learners.restarts.restarts import Restarts, learner_named
from longterm.problems import Problem
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import LONG_TERM, REGRET, BoundValues, Rounds

POWERS = 2 ** np.arange(60)
"""The epoch lengths in units of the first. No run has more epochs."""
FIRST_EPOCH = 16
"""The default N of a learner that has no shortest horizon."""


@dataclass(frozen=True, eq=False)
class DoublingRestarts(Restarts):
    """Play a learner that is made for a known number of rounds without knowing that number.

    It restarts the learner in epochs of ``first_epoch``, 2 · ``first_epoch``, 4 · ``first_epoch``, … rounds.

    Parameters
    ----------
    learner : MadeForHorizon
        The learner that is restarted. The horizon it was made for does not matter.
    first_epoch : int
        The number of rounds of the first epoch.

    Examples
    --------
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()
    >>> learner = lt.learners.DoublingRestarts.for_problem(problem, of="no_violation_aogd")
    >>> learner.first_epoch, learner.epochs(300_000)
    (40428, [(1, 40428), (40429, 80856), (121285, 161712), (282997, 323424)])
    >>> bool(learner.bound(problem, 40428)["signed_violation"] <= 0)
    True
    """

    learner: MadeForHorizon[Any]
    first_epoch: int = 1

    name = "doubling_restarts"
    title = "Doubling restarts"
    promises = {
        REGRET: "√2/(√2 − 1) times that of the learner, from T ≥ N on",
        LONG_TERM: "that of the learner, summed over epochs",
    }
    variants = ({"of": "yu_neely"}, {"of": "drift_plus_penalty"}, {"of": "sinha_vaze"}, {"of": "no_violation_aogd"})

    @classmethod
    def for_problem(
        cls, problem: Problem, *, of: str = "drift_plus_penalty", first_epoch: int | None = None, **options: Any
    ) -> DoublingRestarts:
        """Play a learner that needs the horizon without it, in epochs whose length doubles.

        Parameters
        ----------
        of : str
            A learner with steps for any horizon: "yu_neely", "drift_plus_penalty", "sinha_vaze" or "no_violation_aogd".
        first_epoch : int, optional
            N. Default: the learner's shortest horizon (⌈c_0⌉ of `NoViolationAOGD`), otherwise 16.
        **options
            Settings of that learner.
        """
        kind = learner_named(of)
        if not issubclass(kind, MadeForHorizon):
            raise _no_horizon("of", kind)
        learner = kind.for_epochs(problem, **options)
        assert isinstance(learner, MadeForHorizon)
        return cls(learner, (learner.shortest_horizon or FIRST_EPOCH) if first_epoch is None else first_epoch)

    def __post_init__(self) -> None:
        given: object = self.learner
        if not isinstance(given, MadeForHorizon):
            raise _no_horizon("learner", type(given))
        super().__post_init__()
        first = validate.count("first_epoch", self.first_epoch)
        validate.set_frozen(self, first_epoch=first, needs=given.needs - {Need.HORIZON})

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """The assumptions of the first epoch, the shortest."""
        return self.learner.for_horizon(np.asarray(float(self.first_epoch))).assumptions

    def epochs(self, rounds: int) -> list[tuple[int, int]]:
        """Return (first round, length) of every epoch that starts in rounds 1 … `rounds`."""
        epochs, start, length = [], 1, self.first_epoch
        while start <= rounds:
            epochs.append((start, length))
            start, length = start + length, 2 * length
        return epochs

    def length_of(self, t: Array) -> Array:
        """Return the length N 2^k of the epoch of round t: N (2^k − 1) < t ≤ N (2^{k+1} − 1)."""
        xp, powers = namespace(t), like(POWERS, t)
        reached = as_column((t - 1) // self.first_epoch + 1) >= powers
        return self.first_epoch * xp.max(xp.where(reached, powers, xp.zeros_like(powers)), axis=-1)

    def rule_of(self, state: Any) -> Learner[Any]:
        length = self.length_of(state.round)
        return self.learner.for_horizon(namespace(length).astype(length, state.x.dtype))

    def round_within(self, t: Array) -> Array:
        return t - (self.length_of(t) - self.first_epoch)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the sum over all epochs of the bound of that epoch's learner after the rounds it played."""
        horizons = rounds.reshape(-1)
        total: dict[str, FloatArray] = {}
        for start, length in self.epochs(int(horizons.max())):
            played, place = np.unique(np.clip(horizons - start + 1, 0, length), return_inverse=True)
            rule = self.learner.for_horizon(np.asarray(float(length)))
            for measure, values in rule.theorem(problem, np.maximum(played, 1)).items():
                started = (played > 0).reshape(-1, *(1 for _ in range(np.ndim(values) - 1)))
                total[measure] = total.get(measure, np.asarray(0.0)) + np.where(started, values, 0.0)[place]
        return {measure: values.reshape(rounds.shape + values.shape[1:]) for measure, values in total.items()}


def _no_horizon(argument: str, kind: type) -> InputError:
    """Return the error for a learner that needs no horizon."""
    what = f"{kind.__name__} has no steps that depend on a horizon"
    return InputError(argument, what, "Use the learner itself, or Restarted")
