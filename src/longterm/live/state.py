"""What can be read of a live learner at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from longterm._arrays import Array
from longterm._display import Shown


@dataclass(frozen=True, eq=False)
class LiveState(Shown):
    """One moment of a live learner; it does not change when the learner does.

    Violations and losses are sums over the rounds told, at the decisions that were played in them. They are
    scalars for one learner, arrays for a batch.

    Parameters
    ----------
    round : int
        The learner's own counter t, from 1: one more than the rounds told. The steps below are those of t.
    x : array
        What the next ask would return.
    report : mapping of str to array
        What the learner reports: multiplier, theta, eta, mu, …
    asked, told, skipped, expired, in_flight : int
        How many rounds were asked for, came back, were skipped, expired, and are still out.
    largest_delay : int
        τ: the most rounds that were asked for between a round and its feedback. `theory.lemma_5_delayed` wants it.
    cumulative_loss : array
        Σ f_s(x_s), over the rounds whose feedback had a loss.
    losses_told : int
        How many rounds those are.
    signed_violation : array
        Σ g_s(x_s): what the theorem bounds.
    hard_violation : array
        Σ [g_s(x_s)]₊.
    squared_violation : array
        Σ [g_s(x_s)]₊².
    largest_violation : array
        max g_s(x_s); −∞ before the first feedback.
    """

    round: int
    x: Array
    report: Mapping[str, Array]
    asked: int
    told: int
    skipped: int
    expired: int
    in_flight: int
    largest_delay: int
    cumulative_loss: Array
    losses_told: int
    signed_violation: Array
    hard_violation: Array
    squared_violation: Array
    largest_violation: Array

    @property
    def multiplier(self) -> Array:
        """λ_t; None if the learner has none."""
        return self.report.get("multiplier")

    @property
    def theta(self) -> Array:
        """θ_t; None if the learner has none."""
        return self.report.get("theta")

    @property
    def eta(self) -> Array:
        """η_t; None if the learner has none."""
        return self.report.get("eta")

    @property
    def mu(self) -> Array:
        """μ_t; None if the learner has none."""
        return self.report.get("mu")

    def budget_used(self, allowance: float) -> Array:
        """The share used of what the rounds told so far allow, where g = cost − `allowance` in every round.

        Σ cost / (allowance · rounds told): 1 is exactly on budget. NaN before the first feedback.
        """
        spent = self.signed_violation + self.told * allowance
        return spent / (self.told * allowance) if self.told else spent * float("nan")
