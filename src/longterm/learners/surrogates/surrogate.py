"""An inner learner on the loss plus a priced constraint: the shape of several published methods.

    d_t     = ∇f_t(x_t) + w_t ∇h_t(x_t)         h_t = g_t, or [g_t]₊ if the price is for the hard violation
    x_{t+1} = one step of an inner learner against d_t                                     x_1 = centre of B

The `Price` sets w_t and keeps a queue of the violation so far. The `Inner` learner
(`longterm.learners.surrogates.inner`) knows of no constraints. The theorem of a pair is the price's, with the regret
bound of the inner learner in it. Published methods are subclasses that choose the pair: `SinhaVaze`, `YuLeeLee`,
`TrackedPenalty`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, namespace, resolution
from longterm._base.per_learner import PerLearner
from longterm._base.validate import Hyper
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner
from longterm.learners.surrogates.inner import Inner
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.sets import Set
from longterm.theory.bounds import BoundValues, NoTheoremError, Rounds, horizons_of


class Price(PerLearner, ABC):
    """The weight w_t of the constraint in the surrogate loss, and the queue that it depends on."""

    hard: bool = True
    """True if [g_t]₊ is priced instead of g_t."""

    def start(self, x: Array) -> Array:
        """Return the queue before round 1, for decisions of this shape."""
        return namespace(x).zeros_like(x[..., 0])

    @abstractmethod
    def charge(self, queue: Array, t: Array, constraint: Array) -> tuple[Array, Array]:
        """Return w_t and the queue after round t, given h_t(x_t)."""

    def gradient(self, weight: Array, x: Array, feedback: Feedback) -> Array:
        """Return w_t ∇h_t(x_t)."""
        return as_column(weight) * feedback.constraint_gradient

    def report(self, queue: Array, t: Array) -> dict[str, Array]:
        """Return the numbers of the queue before round t for a trace."""
        return {}

    def bounds(self, inner: Inner, constants: Constants, rounds: FloatArray) -> BoundValues:
        """Return the bounds by measure with that inner learner."""
        names = f"{type(self).__name__} with {type(inner).__name__}"
        raise NoTheoremError(f"no bound is known for {names}", "Make the learner with for_problem")


class SurrogateState(NamedTuple):
    """The state (t, x_t), the price's queue and the inner learner's memory."""

    round: Array
    x: Array
    queue: Array
    memory: Array


@dataclass(frozen=True, eq=False)
class Surrogate(Learner[SurrogateState]):
    """An inner learner on f_t + w_t h_t.

    Parameters
    ----------
    inner : Inner
        The learner without constraints, on its enclosing set.
    price : Price
        The weights w_t.
    made_for : Constants, optional
        The problem's constants that the price was made for.
    """

    inner: Inner
    price: Price
    made_for: Constants | None = None
    enclosing_set: Set = field(init=False, repr=False)

    def __post_init__(self) -> None:
        validate.set_frozen(self, enclosing_set=self.inner.enclosing_set)

    @property
    def strong_convexity(self) -> Hyper:
        return self.inner.strong_convexity

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        bounds = self.price.bounds(self.inner, problem.constants, horizons_of(rounds, self.batch_shape))
        return dict(zip(bounds, np.broadcast_arrays(*bounds.values()), strict=True))

    def initial_x(self, batch_shape: tuple[int, ...], xp: Any, dtype: Any) -> Array:
        return self.inner.start(super().initial_x(batch_shape, xp, dtype))

    def first_state(self, t: Array, x: Array) -> SurrogateState:
        return SurrogateState(t, x, self.price.start(x), self.inner.memory(x))

    def update(self, state: SurrogateState, feedback: Feedback) -> SurrogateState:
        feedback = self._positive_part(feedback) if self.price.hard else feedback
        weight, queue = self.price.charge(state.queue, state.round, feedback.constraint)
        descent = feedback.loss_gradient + self.price.gradient(weight, state.x, feedback)
        x, memory = self.inner.step(state.x, state.memory, descent, state.round, weight)
        return SurrogateState(state.round + 1, x, queue, memory)

    def _positive_part(self, feedback: Feedback) -> Feedback:
        """Return the round with [g]₊ for g. Its gradient is 0 where g ≤ 1e-9 D.

        Iterates often stand on the boundary. Rounding would otherwise decide there, in a batch and in a single run
        differently. The theorem loses at most 1e-9 D in such a round.
        """
        xp, g = namespace(feedback.constraint), feedback.constraint
        broken = g > (0.0 if self.made_for is None else resolution(g) * self.made_for.constraint_bound)
        return feedback._replace(
            constraint=xp.maximum(g, 0.0),
            constraint_gradient=xp.where(as_column(broken), feedback.constraint_gradient, 0.0),
        )

    def report(self, state: SurrogateState) -> dict[str, Array]:
        return self.price.report(state.queue, state.round)
