"""The calibration rule: a threshold per round whose miss rate is held at a nominal level on every sequence.

The rule plays q_t = b_t + σ_t f(counts), sees the score s_t, and counts a miss where s_t > q_t. The base b_t and the
scale σ_t may be any numbers. The correction f increases with the misses, so the sum of residuals 1{miss} − α stays
bounded on every sequence; `bound` evaluates how far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln

from longterm import _validate as validate
from longterm._arrays import Array, least_divisor, namespace
from longterm._display import ReprMixin
from longterm.calibration.bases import NoBase, Outcome, Prediction, Tracker
from longterm.calibration.certificates import Bound, Evidence, group_bound, position_bound, tracker_bound
from longterm.calibration.corrections import (
    LARGEST_LOG_WEALTH,
    WITH_BETS,
    Correction,
    Counts,
    Linear,
    LinearAndBets,
    NoCorrection,
    Saturating,
    Sinh,
    count_active,
    next_bet,
)
from longterm.calibration.mixture import Mixture, append_zero
from longterm.errors import InputError

LARGEST_SCORE = 1e100
Base = NoBase | Tracker | Mixture


class CalibrationState(NamedTuple):
    """State of a `Calibration`.

    Parameters
    ----------
    miss_rate : array (...)
        The nominal rate α.
    counts : Counts
        Rounds and misses per group.
    base : object
        State of the base.
    evidence : Evidence
        Sums of the certificate.
    """

    miss_rate: Array
    counts: Counts
    base: Any
    evidence: Evidence

    @property
    def told(self) -> Array:
        """Rounds told."""
        return self.counts.told


class Asked(NamedTuple):
    """A threshold, and what `tell` needs later.

    Parameters
    ----------
    threshold, shift : array (...)
        A score above the threshold is a miss. The shift is the correction in units of the scale.
    prediction : Prediction
        Base, scale and experts at the ask.
    groups : array (..., k)
        Groups of the round, 0 or 1.
    late, told : array (...)
        1 + the other open rounds, and rounds told, at the ask.
    """

    threshold: Array
    shift: Array
    prediction: Prediction
    groups: Array
    late: Array
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
    _free: Any = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        rate = validate.open_unit_interval("miss_rate", self.miss_rate)
        count = validate.count("groups", self.groups)
        correction = self.correction
        if correction is None:
            correction = LinearAndBets() if count > 1 else Sinh()
        if count > 1 and isinstance(correction, (Sinh, Saturating)):
            raise InputError(
                "correction", f"{type(correction).__name__} has no groups", "Use Linear, Bets or LinearAndBets"
            )
        # Fewer than 1/α − 1 scores hold no 1 − α quantile.
        free = np.maximum(1.0 / np.asarray(rate) - 1.0, 2.0) if isinstance(self.base, Mixture) else np.zeros(())
        validate.set_frozen(self, miss_rate=rate, groups=count, correction=correction)
        validate.set_frozen(self, _free=free if free.ndim else float(free))

    def init(self, shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> CalibrationState:
        """Return the state before the first round, for learners over the leading axes `shape`."""
        dtype = xp.float64 if dtype is None else dtype
        shape = tuple(np.broadcast_shapes(shape, np.shape(self.miss_rate)))
        zero, empty = xp.zeros(shape, dtype=dtype), xp.zeros((*shape, self.groups), dtype=dtype)
        alpha = xp.asarray(self.miss_rate, dtype=dtype) + zero
        betting = empty if isinstance(self.correction, WITH_BETS) else empty[..., :0]
        return CalibrationState(
            alpha,
            Counts(zero, empty, empty, betting, next_bet(betting, betting, alpha), zero + 1.0),
            self.base.init(shape, self.groups, xp, dtype),
            Evidence(zero, zero, zero, zero, zero),
        )

    def ask(self, state: CalibrationState, groups: Array = None, *, open_rounds: Array = 0) -> Asked:
        """Return the threshold of the next round.

        Parameters
        ----------
        state : CalibrationState
        groups : array (..., k), optional
            1 for the groups the round belongs to, else 0; the first must be 1. Needed if the rule has groups.
        open_rounds : array (...) or int
            Other rounds asked for and not yet told. Corrections react more slowly while labels are late.

        Returns
        -------
        Asked
            With the default base the threshold is +∞ until 1/α − 1 scores have been told.
        """
        xp, told = namespace(state.miss_rate), state.told
        c = self._groups(state, groups)
        prediction = self.base.predict(state.base, c)
        late = 1.0 + open_rounds + 0.0 * told
        shift = self._shift(state, c, late)
        threshold = prediction.base + prediction.scale * shift
        if isinstance(self.base, Mixture):
            threshold = xp.where(told < self._free, xp.inf, threshold)
        return Asked(threshold, shift, prediction, c, late, told)

    def tell(self, state: CalibrationState, asked: Asked, score: Array) -> CalibrationState:
        """Return the state after the score of an asked round, which may come late and in any order.

        Parameters
        ----------
        state : CalibrationState
        asked : Asked
            The result of `ask`.
        score : array (...)
            Finite scores of magnitude at most 1e100 (1e19 in single precision).
        """
        xp, alpha = namespace(state.miss_rate), state.miss_rate
        s = xp.asarray(score, dtype=alpha.dtype)
        largest = min(LARGEST_SCORE, 1.0 / least_divisor(s))
        if isinstance(s, np.ndarray | np.generic) and not (np.abs(s) <= largest).all():
            what = f"{score!r} is not a number of magnitude at most {largest:.3g}"
            round_number = int(np.min(np.asarray(state.told))) + 1
            raise InputError("score", what, "Give the score that was observed", round=round_number)
        residual = xp.where(s > asked.threshold, 1.0 - alpha, xp.where(s < asked.threshold, -alpha, 0.0))
        outcome = Outcome(s, residual, asked.groups, alpha, xp.minimum(asked.told, 1.0), asked.told is state.told)
        return CalibrationState(
            alpha,
            state.counts.add(residual[..., None], asked.groups, alpha),
            self.base.update(state.base, asked.prediction, outcome),
            self._evidence(state, asked, s, residual),
        )

    def _shift(self, state: CalibrationState, groups: Array, late: Array) -> Array:
        assert self.correction is not None
        return self.correction(state.counts, groups, state.miss_rate, late)

    def _groups(self, state: CalibrationState, groups: Array) -> Array:
        xp = namespace(state.miss_rate)
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
        if isinstance(c, np.ndarray) and not ((c * c == c).all() and c[..., 0].all()):
            raise InputError("groups", "holds other numbers than 0 and 1, or a first that is not 1",
                             "Give 0 or 1 per group; the first group holds every round")  # fmt: skip
        return c if tuple(c.shape) == shape else xp.broadcast_to(c, shape)

    @property
    def _has_position(self) -> bool:
        """True if Theorem 1 applies: one group, and a correction with an inverse."""
        return self.groups == 1 and isinstance(self.correction, (Sinh, Linear, Saturating))

    def _evidence(self, state: CalibrationState, asked: Asked, score: Array, residual: Array) -> Evidence:
        """Return the certificate's sums after a round."""
        xp, old = namespace(state.miss_rate), state.evidence
        late = xp.maximum(old.late, state.told - asked.told)
        free = asked.told < self._free
        z = (score - asked.prediction.base) / asked.prediction.scale
        if self._has_position or isinstance(self.correction, NoCorrection):
            position = score
            if self._has_position:
                # In a free round the sum falls from where it is.
                position = self.correction.inverse(z, asked.told, asked.late)  # type: ignore[union-attr]
                if isinstance(self.base, Mixture):
                    position = xp.where(free, state.counts.excess(state.miss_rate)[..., 0], position)
            lowest, highest = xp.minimum(old.lowest, position), xp.maximum(old.highest, position)
            return Evidence(lowest, highest, old.loss, old.squares, late)
        # The potential grows by r·(correction now), which is r·(correction at the ask) plus the change in between.
        on_time = asked.told is state.told and isinstance(asked.late, np.generic) and asked.late == 1.0
        now = asked.shift if on_time else self._shift(state, asked.groups, xp.ones_like(asked.late))
        ask, pinball = asked.shift, xp.maximum((1.0 - state.miss_rate) * z, -state.miss_rate * z)
        if isinstance(self.base, Mixture):
            ask, pinball = xp.where(free, 0.0, ask), xp.where(free, 0.0, pinball)
        loss = pinball + xp.maximum(residual * (now - ask), 0.0)
        active = count_active(asked.groups)
        squares = residual**2 * active / xp.maximum(state.counts.most_active, active)
        return Evidence(old.lowest, old.highest, old.loss + loss, old.squares + squares, late)

    def add_group(self, state: CalibrationState) -> tuple[Calibration, CalibrationState]:
        """Return the rule and the state with one more group, which has no round yet; for the default rule only.

        The potential of Theorem 3 grows by at most 1/k. The certificate counts this, and what the sums are where the
        rule had no groups before.
        """
        if not isinstance(self.base, Mixture) or not isinstance(self.correction, (Sinh, LinearAndBets)):
            raise InputError("groups", "can be added to the default rule only", "Make the rule with all groups at once")
        larger, counts, alpha = Calibration(self.miss_rate, self.groups + 1, self.base), state.counts, state.miss_rate
        xp, wealth, added = namespace(alpha), counts.log_wealth, 1.0 / larger.groups
        if self.groups == 1:
            misses, hits = counts.misses, counts.rounds - counts.misses
            wealth = xp.asarray(betaln(misses + 0.5, hits + 0.5)) - math.log(math.pi)
            wealth = wealth - misses * xp.log(alpha)[..., None] - hits * xp.log1p(-alpha)[..., None]
            linear = LinearAndBets().gain * counts.excess(alpha)[..., 0] ** 2
            added = 0.5 * (linear + xp.exp(xp.minimum(wealth[..., 0], LARGEST_LOG_WEALTH)) - 1.0)
        rounds, misses = append_zero(counts.rounds), append_zero(counts.misses)
        bet = next_bet(rounds, misses, alpha)
        grown = counts._replace(rounds=rounds, misses=misses, log_wealth=append_zero(wealth), bet=bet)
        evidence = state.evidence._replace(loss=state.evidence.loss + added)
        return larger, CalibrationState(alpha, grown, self.base.add_group(state.base), evidence)

    def with_all_groups(self, asked: Asked) -> Asked:
        """Return an ask that was made before groups were added, with zeros for the new ones."""
        while asked.groups.shape[-1] < self.groups:
            prediction = asked.prediction
            if isinstance(self.base, Mixture):
                prediction = self.base.add_experts(prediction)
            asked = asked._replace(groups=append_zero(asked.groups), prediction=prediction)
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

        Corrections with an inverse have Theorem 1, trackers Theorem 2, groups Theorem 3, and all of them Theorem 5
        where labels came late. `InputError` for the default base without a correction, which has no theorem.
        """
        if self._has_position:
            return position_bound(state.evidence, state.miss_rate)
        if self.correction is not None and not isinstance(self.correction, NoCorrection):
            return group_bound(self.correction, state.counts, state.evidence, state.miss_rate)
        if isinstance(self.base, Tracker):
            return tracker_bound(self.base, state.base, state.evidence, state.miss_rate)
        raise InputError("correction", "none, so nothing controls the coverage", "Use Sinh or Linear")
