"""A-OGD without violation and without a horizon, by epochs of doubling length (the usual restart trick).

Epoch k has L_k = N 2^k rounds and is A-OGD on g + γ_k from the start, with γ_k = c_1 L_k^{−β/2}; N is the length of the
first. Over every epoch with L_k ≥ c_0, Σ g(x_t) ≤ 0 (`theory.margins`), so with N ≥ c_0 the whole sum is ≤ 0 whenever
an epoch ends, and inside one at most what `longterm.bounds.doubling_epochs` gives. (With N = 1, as the trick is usually
told, the sum over the first epochs is not made up for by any theorem.)
Needs: a Slater point; value and one subgradient of f_t and g_t at x_t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, column, like, namespace
from longterm._validate import Hyper
from longterm.learners.aogd import AOGD, AOGDState
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.learners.tightened import slater_of, tighten
from longterm.problems import Problem
from longterm.theory.assumptions import Assumption
from longterm.theory.margins import beta_of, coefficient, needed_horizon
from longterm.theory.slater import SlaterPoint, require_slack


class DoublingState(NamedTuple):
    """(t, x_t, λ_t) and the round in which the present epoch began."""

    round: Array
    x: Array
    multiplier: Array
    epoch_start: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class DoublingAOGD(Learner[DoublingState]):
    """A-OGD on g + γ_k in epochs of `first_epoch`, 2 · first_epoch, 4 · first_epoch, … rounds.

    >>> from longterm import AOGD
    >>> from longterm.learners import DoublingAOGD
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> learner = DoublingAOGD.of(AOGD.for_problem(problem), problem)
    >>> learner.first_epoch, learner.epochs(300_000)
    (40428, [(1, 40428), (40429, 80856), (121285, 161712), (282997, 323424)])
    """

    learner: AOGD
    slater: SlaterPoint
    coefficient: Hyper
    """c in γ_k = min(ε, c L_k^{−β/2})."""
    first_epoch: int
    """N."""
    checked: tuple[Assumption, ...] = ()

    needs: ClassVar[frozenset[Need]] = frozenset({Need.SLATER_POINT})

    def __post_init__(self) -> None:
        first = validate.dimension("first_epoch", self.first_epoch)
        validate.remember(self, enclosing_set=self.learner.enclosing_set, first_epoch=first)

    @classmethod
    def of(
        cls,
        learner: AOGD,
        problem: Problem,
        *,
        first_epoch: int | None = None,
        scale: Hyper = 1.0,
        slater: SlaterPoint | None = None,
    ) -> DoublingAOGD:
        """C = scale · c_1; the first epoch is as long as the theorem asks for, ⌈c_0⌉, unless said otherwise."""
        point, factor = slater_of(problem, slater), validate.positive("scale", scale)
        least = np.max(needed_horizon(learner.schedule, problem.constants, point.epsilon))
        first = int(np.ceil(least)) if first_epoch is None else first_epoch
        return cls(
            learner=learner,
            slater=point,
            coefficient=factor * coefficient(learner.schedule, problem.constants),
            first_epoch=first,
            checked=(
                Assumption("c_0 ≤ first_epoch", float(least), float(first), f"Make it {np.ceil(least):.0f} rounds"),
                Assumption.worst("1 ≤ scale", 1.0, factor, "A smaller margin is a choice of yours"),
            ),
        )

    @property
    def gradient_bound(self) -> Hyper | None:
        return self.learner.gradient_bound

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        return self.checked

    def epochs(self, rounds: int) -> list[tuple[int, int]]:
        """(first round, length) of every epoch that begins in rounds 1 … `rounds`."""
        found, start, length = [], 1, self.first_epoch
        while start <= rounds:
            found.append((start, length))
            start, length = start + length, 2 * length
        return found

    def check(self, problem: Problem) -> None:
        super().check(problem)
        require_slack(self.slater, problem.constraint, problem.enclosing_set)

    def margin_of(self, length: Array, x: Array) -> Array:
        """γ_k of an epoch of that many rounds, in the library and dtype of x."""
        xp, power = namespace(x), like(-beta_of(self.learner.schedule) / 2, x)
        asked = like(self.coefficient, x) * xp.astype(length, x.dtype) ** power
        return xp.minimum(asked, self.slater.epsilon)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> DoublingState:
        start = self.learner.init(np.broadcast_shapes(batch_shape, self.batch_shape), xp=xp, dtype=dtype)
        return DoublingState(*start, epoch_start=start.round)

    def ask(self, state: DoublingState) -> Array:
        return state.x

    def update(self, state: DoublingState, feedback: Feedback) -> DoublingState:
        xp, x = namespace(state.x), state.x
        length = self._length(state)
        inside = AOGDState(state.round - state.epoch_start + 1, x, state.multiplier)
        after = self.learner.update(inside, tighten(feedback, self.margin_of(length, x)))
        begins = after.round > length  # then the next round is the first of a new epoch
        centre = xp.broadcast_to(like(self.enclosing_set.centre, x), x.shape)
        return DoublingState(
            round=state.round + 1,
            x=xp.where(column(begins), centre, after.x),
            multiplier=xp.where(begins, xp.zeros_like(after.multiplier), after.multiplier),
            epoch_start=xp.where(begins, state.round + 1, state.epoch_start),
        )

    def report(self, state: DoublingState) -> dict[str, Array]:
        inside = AOGDState(state.round - state.epoch_start + 1, state.x, state.multiplier)
        return {**self.learner.report(inside), "margin": self.margin_of(self._length(state), state.x)}

    def _length(self, state: DoublingState) -> Array:
        """The epoch that starts in round s has s + N − 1 rounds: N 2^k, with s = N (2^k − 1) + 1."""
        return state.epoch_start + (self.first_epoch - 1)
