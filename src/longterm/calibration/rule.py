"""The calibration rule: a threshold per round whose miss rate is held at a nominal level on every sequence.

The rule plays q_t = b_t + σ_t f(counts), sees the score s_t, and counts a miss where s_t > q_t. The base b_t and the
scale σ_t may be any numbers. The correction f increases with the misses, so the sum of residuals 1{miss} − α stays
bounded on every sequence; `bound` evaluates how far.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, namespace
from longterm._display import ReprMixin
from longterm.calibration.bases import (
    GAINS,
    LARGEST_SCORE,
    Base,
    Mixture,
    Prediction,
    Tracker,
    append_zero,
    pinball,
)
from longterm.calibration.certificates import Bound, Evidence, group_bound, position_bound, tracker_bound
from longterm.calibration.corrections import (
    Correction,
    Counts,
    Linear,
    LinearAndBets,
    NoCorrection,
    Saturating,
    Sinh,
)
from longterm.errors import InputError


class CalibrationState(NamedTuple):
    """State of a `Calibration`.

    Parameters
    ----------
    told, miss_rate : array (...)
        Rounds told and the nominal rate α.
    counts : Counts
        Rounds and misses per group.
    base : object
        State of the base.
    evidence : Evidence
        Sums of the certificate.
    """

    told: Array
    miss_rate: Array
    counts: Counts
    base: Any
    evidence: Evidence


class Asked(NamedTuple):
    """A threshold, and what `tell` needs later.

    Parameters
    ----------
    threshold : array (...)
        A score above it is a miss.
    prediction : Prediction
        Base, scale and experts at the ask.
    groups : array (..., k)
        Groups of the round, 0 or 1.
    spread, told : array (...)
        Divisor of the correction while labels are late, and rounds told at the ask.
    """

    threshold: Array
    prediction: Prediction
    groups: Array
    spread: Array
    told: Array


@dataclass(frozen=True, repr=False)
class Calibration(ReprMixin):
    """A threshold per round that is exceeded with a given long-run frequency, on every sequence of scores.

    Parameters
    ----------
    miss_rate : float or array
        α: the share of scores above the threshold. An array gives one rule per entry of the leading axes.
    groups : int
        Number k of groups, the first of which holds every round. 1 means no groups.
    base : NoBase, Tracker or Mixture, optional
        The quantile prediction. Left out: `Mixture`, which has no parameter.
    correction : correction, optional
        The control of coverage. Left out: `Sinh` without groups, `LinearAndBets` with groups.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.calibration import Calibration
    >>> rule = Calibration(miss_rate=0.1)
    >>> state, misses = rule.init(), 0
    >>> for score in np.abs(np.random.default_rng(0).normal(size=2000)):
    ...     asked = rule.ask(state)
    ...     misses += score > asked.threshold
    ...     state = rule.tell(state, asked, score)
    >>> bool(abs(misses - 200) < 10)
    True

    References
    ----------
    Gibbs and Candès 2021 (ACI); Angelopoulos, Candès and Tibshirani 2023 (conformal PID); de Rooij et al. 2014.
    """

    miss_rate: validate.Hyper = 0.1
    groups: int = 1
    base: Base = field(default_factory=Mixture)
    correction: Correction | None = None
    _infinite_rounds: Any = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        rate = validate.number("miss_rate", self.miss_rate)
        if np.any(np.asarray(rate) <= 0.0) or np.any(np.asarray(rate) >= 1.0):
            raise InputError("miss_rate", f"{self.miss_rate!r} is outside (0, 1)", "Give 0.1 for 90 % coverage")
        count = validate.count("groups", self.groups)
        correction = self.correction
        if correction is None:
            correction = LinearAndBets() if count > 1 else Sinh()
        if count > 1 and isinstance(correction, (Sinh, Saturating)):
            raise InputError(
                "correction", f"{type(correction).__name__} has no groups", "Use Linear, Bets or LinearAndBets"
            )
        infinite = np.maximum(1.0 / np.asarray(rate) - 1.0, 2.0) if isinstance(self.base, Mixture) else np.asarray(0.0)
        validate.set_frozen(self, miss_rate=rate, groups=count, correction=correction)
        validate.set_frozen(self, _infinite_rounds=infinite if infinite.ndim else float(infinite))

    def init(self, shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> CalibrationState:
        """Return the state before the first round, for learners over the leading axes `shape`."""
        dtype = xp.float64 if dtype is None else dtype
        shape = tuple(np.broadcast_shapes(shape, np.shape(self.miss_rate)))
        zero = xp.zeros(shape, dtype=dtype)
        return CalibrationState(
            zero,
            xp.asarray(self.miss_rate, dtype=dtype) + zero,
            Counts.zeros(shape, self.groups, xp, dtype),
            self.base.init(shape, self.groups, xp, dtype),
            Evidence(zero, zero, zero, zero, zero),
        )

    def ask(
        self, state: CalibrationState, groups: Array = None, *, open_rounds: Array = 0, forecast: Array = 0.0
    ) -> Asked:
        """Return the threshold of the next round.

        Parameters
        ----------
        state : CalibrationState
        groups : array (..., k), optional
            1 for the groups the round belongs to, else 0; the first must be 1. Needed if the rule has groups.
        open_rounds : array (...) or int
            Other rounds asked for and not yet told. Corrections react more slowly while labels are late.
        forecast : array (...) or float
            A forecast of the score's quantile to add to the base (the scorecaster of conformal PID).

        Returns
        -------
        Asked
            With the default base the threshold is +∞ until 1/α − 1 scores have been told.
        """
        xp = namespace(state.told)
        c = self._groups(state, groups)
        predicted = self.base.predict(state.base, c)
        prediction = predicted._replace(base=predicted.base + forecast)
        spread = 1.0 + 0.25 * xp.asarray(open_rounds, dtype=state.told.dtype) + 0.0 * state.told
        shift = self._shift(state, c, spread)
        threshold = prediction.base + prediction.scale * shift
        if isinstance(self.base, Mixture):
            threshold = xp.where(self._is_free(state.told), xp.inf, threshold)
        return Asked(threshold, prediction, c, spread, state.told)

    def tell(self, state: CalibrationState, asked: Asked, score: Array) -> CalibrationState:
        """Return the state after the score of an asked round, which may come late and in any order.

        Parameters
        ----------
        state : CalibrationState
        asked : Asked
            The result of `ask`.
        score : array (...)
            Finite scores of magnitude at most 1e100.
        """
        xp = namespace(state.told)
        s = xp.asarray(score, dtype=state.told.dtype)
        if isinstance(s, np.ndarray | np.generic) and not np.all(np.abs(s) <= LARGEST_SCORE):
            raise InputError(
                "score", f"{score!r} is not a number of magnitude at most 1e100", "Give the score that was observed",
                round=int(np.min(np.asarray(state.told))) + 1,
            )  # fmt: skip
        missed, alpha = s > asked.threshold, state.miss_rate
        residual = xp.where(s == asked.threshold, 0.0, xp.where(missed, 1.0 - alpha, -alpha))
        free = self._is_free(asked.told)
        return CalibrationState(
            state.told + 1.0,
            alpha,
            state.counts.add(residual, missed, asked.groups, alpha),
            self.base.update(state.base, asked.prediction, s, asked.groups, alpha, asked.told == 0.0),
            self._evidence(state, asked, s, residual, free),
        )

    def _is_free(self, told: Array) -> Array:
        """Return where the threshold is infinite: fewer than 1/α − 1 scores hold no 1 − α quantile."""
        return told < self._infinite_rounds

    def _shift(self, state: CalibrationState, groups: Array, spread: Array) -> Array:
        assert self.correction is not None
        return self.correction(state.counts, groups, state.miss_rate, spread)

    def _groups(self, state: CalibrationState, groups: Array) -> Array:
        xp = namespace(state.told)
        shape = (*state.told.shape, self.groups)
        if groups is None:
            if self.groups > 1:
                raise InputError(
                    "groups", f"is missing; the rule has {self.groups}", "Give an array of zeros and ones, the first 1"
                )
            return xp.ones(shape, dtype=state.told.dtype)
        c = xp.asarray(groups, dtype=state.told.dtype)
        if tuple(c.shape[-1:]) != shape[-1:]:
            raise InputError("groups", f"has shape {tuple(c.shape)}", f"Give an array of shape {shape}")
        if isinstance(c, np.ndarray) and not (np.all((c == 0.0) | (c == 1.0)) and np.all(c[..., 0] == 1.0)):
            raise InputError("groups", "holds other numbers than 0 and 1, or a first that is not 1",
                             "Give 0 or 1 per group; the first group holds every round")  # fmt: skip
        return xp.broadcast_to(c, shape)

    def _evidence(self, state: CalibrationState, asked: Asked, score: Array, residual: Array, free: Array) -> Evidence:
        """Return the certificate's sums after a round; `free` is true where the threshold was infinite at the start."""
        xp = namespace(score)
        old = state.evidence
        late = xp.maximum(old.late, state.told - asked.told)
        if isinstance(self.correction, NoCorrection):
            return old._replace(lowest=xp.minimum(old.lowest, score), highest=xp.maximum(old.highest, score), late=late)
        z = (score - asked.prediction.base) / asked.prediction.scale
        if self.groups == 1 and isinstance(self.correction, (Sinh, Linear, Saturating)):
            # The sum grows at a miss and falls at a cover, each time towards f⁻¹(z) or, if free, from where it is.
            position = self.correction.inverse(z, state.counts.rounds[..., 0], asked.spread)
            position = xp.where(free, state.counts.excess(state.miss_rate)[..., 0], position)
            return old._replace(
                lowest=xp.where(residual < 0.0, xp.minimum(old.lowest, position), old.lowest),
                highest=xp.where(residual > 0.0, xp.maximum(old.highest, position), old.highest),
                late=late,
            )
        active = xp.sum(asked.groups, axis=-1)
        shift = self._shift(state, asked.groups, asked.spread)
        loss = xp.where(free, xp.maximum(residual * shift, 0.0), pinball(z, state.miss_rate))
        squares = residual**2 * active / xp.maximum(state.counts.most_active, active)
        return old._replace(pinball=old.pinball + loss, squares=old.squares + squares, late=late)

    def add_group(self, state: CalibrationState) -> tuple[Calibration, CalibrationState]:
        """Return the rule and the state with one more group, which has no round yet; for the default rule only.

        The potential of Theorem 3 grows by at most 1/k. The certificate counts this, and what the sums are where the
        rule had no groups before.
        """
        if not isinstance(self.base, Mixture) or not isinstance(self.correction, (Sinh, LinearAndBets)):
            raise InputError("groups", "can be added to the default rule only", "Make the rule with all groups at once")
        xp = namespace(state.told)
        larger, counts = Calibration(self.miss_rate, self.groups + 1, self.base), state.counts
        added = 1.0 / larger.groups
        if self.groups == 1:
            gain = LinearAndBets().gain
            excess, wealth = counts.excess(state.miss_rate)[..., 0], xp.exp(counts.log_wealth[..., 0])
            added = added + 0.5 * gain * excess**2 + xp.maximum(wealth - 1.0, 0.0)
        grown = Counts(
            append_zero(counts.rounds), append_zero(counts.misses), append_zero(counts.log_wealth), counts.most_active
        )
        evidence = state.evidence._replace(pinball=state.evidence.pinball + added)
        return larger, CalibrationState(state.told, state.miss_rate, grown, self.base.add_group(state.base), evidence)

    def with_all_groups(self, asked: Asked) -> Asked:
        """Return an ask that was made before groups were added, with zeros for the new ones."""
        while asked.groups.shape[-1] < self.groups:
            asked = asked._replace(groups=append_zero(asked.groups))
            if isinstance(self.base, Mixture):
                count = (3 if self.groups > 1 else 2) * len(GAINS)
                asked = asked._replace(prediction=self.base.with_experts(asked.prediction, count))
        return asked

    def excess(self, state: CalibrationState) -> Array:
        """Return Σ (1{miss} − α) per group, shape (..., k). Rounds with a tie are left out."""
        return state.counts.excess(state.miss_rate)

    def coverage(self, state: CalibrationState) -> Array:
        """Return the share of covered scores per group, shape (..., k); NaN where a group has no round."""
        xp = namespace(state.told)
        rounds = state.counts.rounds
        return xp.where(rounds > 0.0, 1.0 - state.counts.misses / xp.where(rounds > 0.0, rounds, 1.0), xp.nan)

    def bound(self, state: CalibrationState) -> Bound:
        """Return limits of `excess` that hold on every sequence, evaluated on the sequence played so far.

        Corrections with an inverse have Theorem 1 (with Theorem 5 for late labels), trackers Theorem 2, groups
        Theorem 3. `InputError` where there is no theorem: several groups with late labels.
        """
        late = bool(namespace(state.told).any(state.evidence.late > 0.0))
        if self.groups == 1 and isinstance(self.correction, (Sinh, Linear, Saturating)):
            return position_bound(state.evidence, state.miss_rate, "Theorem 5" if late else "Theorem 1")
        if late:
            raise InputError("state", "labels came late, and no theorem covers this rule then", "Read `excess` instead")
        if self.correction is not None and not isinstance(self.correction, NoCorrection):
            return group_bound(self.correction, state.counts, state.evidence, state.miss_rate)
        if isinstance(self.base, Tracker):
            return tracker_bound(self.base, state.base, state.evidence, state.miss_rate)
        raise InputError("correction", "none, so nothing controls the coverage", "Use Sinh or Linear")
