"""The calibration rule: a threshold per round whose miss rate is held at a nominal level on every sequence.

The rule plays q_t = b_t + σ_t f(counts), sees the score s_t, and counts a miss where s_t > q_t. The base b_t and the
scale σ_t may be any numbers. The correction f increases with the misses, so the sum of residuals 1{miss} − α over the
rounds with s_t ≠ q_t stays bounded on every sequence; `bound` evaluates how far. A tie, s_t = q_t, is covered and
changes no sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, expand_last, least_divisor, namespace
from longterm._base.display import ReprMixin
from longterm._base.selection import clamp_max, clamp_min, is_true_everywhere, where
from longterm.calibration.bases import Asked, QuantileTracker, count_active, pinball
from longterm.calibration.certificates import Bound, Evidence, group_bound, nested_bound, position_bound, tracker_bound
from longterm.calibration.corrections import LARGEST_LOG_WEALTH, Correction, LinearAndBets, MissCounts, Saturating, Sinh
from longterm.calibration.mixture import Mixture, append_zero
from longterm.errors import InputError

LARGEST_SCORE = 1e100
_NUMPY = namespace(np.zeros(1))


class CalibrationState(NamedTuple):
    """State of a `Calibration`: the rate α, rounds and misses per group, the base's state, the certificate's sums."""

    miss_rate: Array
    counts: MissCounts
    base: Any
    evidence: Evidence

    @property
    def told(self) -> Array:
        """Number of rounds whose score is known."""
        return self.counts.told


@dataclass(frozen=True, repr=False)
class Calibration(ReprMixin):
    """A threshold per round that is exceeded with a given long-run frequency, on every sequence of scores.

    Parameters
    ----------
    miss_rate : float or array
        α: the share of scores above the threshold. An array gives one rule per entry of the leading axes.
    groups : int
        Number k of groups, the first of which holds every round. 1 means no groups.
    base : QuantileTracker or Mixture, optional
        The quantile prediction. Default: `Mixture`, which has no parameter.
    correction : Correction, optional
        The control of coverage. Default: `Sinh` without groups, `LinearAndBets` with groups.
    nested : bool
        The last axis of `miss_rate` holds levels of one score: rates that decrease, as (0.2, 0.05) for 80 % and 95 %.
        Their thresholds never cross: each is the largest of its own and those before. Give the score a last axis of 1.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.calibration.rule import Calibration
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
    base: QuantileTracker | Mixture = field(default_factory=Mixture)
    correction: Correction = None  # type: ignore[assignment]  # chosen by the number of groups
    nested: bool = False

    def __post_init__(self) -> None:
        rate = validate.open_unit_interval("miss_rate", self.miss_rate)
        count = validate.count("groups", self.groups)
        correction: object = self.correction
        if correction is None:
            correction = LinearAndBets() if count > 1 else Sinh()
        if not isinstance(correction, Correction):
            raise InputError(
                "correction", f"{correction!r} is not a correction", "Give a correction such as Sinh() or Linear()"
            )
        if not isinstance(self.base, QuantileTracker | Mixture):
            raise InputError("base", f"{self.base!r} is not a base rule", "Give Mixture() or QuantileTracker()")
        if count > 1 and (isinstance(correction, (Sinh, Saturating)) or type(correction) is Correction):
            name = type(correction).__name__
            raise InputError("correction", f"{name} does not support groups", "Use Linear, Bets or LinearAndBets")
        if self.nested and (np.ndim(rate) == 0 or np.any(np.diff(rate) >= 0.0)):
            raise InputError("miss_rate", f"{rate!r} does not decrease", "Give np.array([0.2, 0.05]), for example")
        if self.nested and (count > 1 or not correction.has_inverse):
            raise InputError(
                "nested", "works with one group and with Sinh, Linear or Saturating only", "Use one rule per level"
            )
        validate.set_frozen(self, miss_rate=rate, groups=count, correction=correction)

    def init(self, shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> CalibrationState:
        """Return the state before the first round, for learners over the leading axes `shape`."""
        dtype = xp.float64 if dtype is None else dtype
        shape = tuple(np.broadcast_shapes(shape, np.shape(self.miss_rate)))
        zero, empty = xp.zeros(shape, dtype=dtype), xp.zeros((*shape, self.groups), dtype=dtype)
        return CalibrationState(
            xp.asarray(self.miss_rate, dtype=dtype) + zero,
            MissCounts(zero, empty, empty, empty, empty, zero + 1.0, zero),
            self.base.init(shape, self.groups, xp, dtype),
            Evidence(zero, zero, zero, zero, zero),
        )

    def ask(self, state: CalibrationState, groups: Array = None, *, open_rounds: Array = 0) -> Asked:
        """Return the threshold of the next round; with the default base +∞ until 1/α − 1 scores are known.

        Parameters
        ----------
        state : CalibrationState
        groups : array (..., k), optional
            1 for the groups the round belongs to, else 0; the first must be 1. Needed if the rule has groups.
        open_rounds : array (...) or int
            Other rounds asked for and not yet told. Corrections react more slowly while labels are late, and for some
            time after.
        """
        xp, told = namespace(state.miss_rate), state.told
        if type(open_rounds) is not int or open_rounds < 0:
            open_rounds = validate.non_negative("open_rounds", open_rounds) if xp is _NUMPY else open_rounds
        c = self._require_groups(state, groups)
        base, scale, experts = self.base.predict(state.base, c)
        others = open_rounds + 0.0 * told
        late = 1.0 + clamp_min(state.counts.delay, others)
        shift = self.correction(state.counts, c, state.miss_rate, late)
        threshold = base + scale * shift
        if isinstance(self.base, Mixture):
            threshold = where(told < self._free, told + xp.inf, threshold)
        if self.nested:
            threshold = xp.stack([xp.max(threshold[..., : j + 1], axis=-1) for j in range(told.shape[-1])], axis=-1)
        return Asked(threshold, shift, base, scale, experts, c, late, told, others)

    def tell(self, state: CalibrationState, asked: Asked, score: Array) -> CalibrationState:
        """Return the state after the score of an asked round, which may come late and in any order.

        Scores are finite, of magnitude at most 1e100 (1e19 in single precision). The ask may be older than a group.
        """
        alpha, counts, s = state.miss_rate, state.counts, self._require_score(state, score)
        # The state changes with each score and with each new group, so these two numbers are its version.
        current = asked.told == state.told
        if asked.groups.shape[-1] < self.groups:
            asked, current = self._with_all_groups(asked), current & False
        residual = where(s > asked.threshold, 1.0 - alpha, where(s < asked.threshold, -alpha, 0.0 * alpha))
        # A burst: rounds that were open at the ask, and told since. A single late round is none.
        burst = clamp_max(state.told - asked.told, asked.open_rounds)
        return CalibrationState(
            alpha,
            counts.add(expand_last(residual), asked.groups, alpha, burst),
            self.base.update(state.base, asked, s, residual, alpha, current),
            self._evidence(state, asked, s, residual, current),
        )

    def _with_all_groups(self, asked: Asked) -> Asked:
        """Return an ask that was made before groups were added, with zeros for the new ones."""
        groups, experts = asked.groups, asked.experts
        while groups.shape[-1] < self.groups and isinstance(self.base, Mixture):
            groups, experts = append_zero(groups), self.base.add_experts(experts)
        return asked._replace(groups=groups, experts=experts)

    def _require_groups(self, state: CalibrationState, groups: Array) -> Array:
        """Return the groups of a round as an array (..., k)."""
        xp = namespace(state.miss_rate)
        shape = (*state.told.shape, self.groups)
        if groups is None:
            if self.groups > 1:
                what = f"is missing; the rule has {self.groups}"
                raise InputError("groups", what, "Give an array of zeros and ones whose first number is 1")
            return xp.ones(shape, dtype=state.told.dtype)
        try:
            c = xp.broadcast_to(xp.asarray(groups, dtype=state.told.dtype), shape)
        except (TypeError, ValueError):
            raise InputError(
                "groups",
                f"{groups!r:.200} has the wrong shape or contains values that are not numbers",
                f"Give numbers of shape {shape}",
            ) from None
        if isinstance(c, np.ndarray) and not ((c * c == c).all() and c[..., 0].all()):
            raise InputError("groups", "contains numbers other than 0 and 1, or its first number is not 1",
                             "Give 0 or 1 for each group. The first group contains every round")  # fmt: skip
        return c

    def _require_score(self, state: CalibrationState, score: Array) -> Array:
        """Return the score as an array of the state's shape. Arrays other than NumPy's are not checked."""
        xp, alpha = namespace(state.miss_rate), state.miss_rate
        if xp is not _NUMPY:
            return xp.asarray(score, dtype=alpha.dtype) + 0.0 * alpha
        largest = min(LARGEST_SCORE, 1.0 / least_divisor(alpha))
        try:
            given = np.asarray(score)
            if given.dtype.kind in "fiu":
                s = given.astype(alpha.dtype) + 0.0 * alpha
                if s.shape == alpha.shape and (np.abs(s) <= largest).all():
                    return s
        except (TypeError, ValueError):
            pass
        what = f"{score!r:.200} is not a number of magnitude at most {largest:.3g}"
        what += f" for each of the rules, whose shape is {alpha.shape}" if alpha.shape else ""
        raise InputError("score", what, "Give the score that was observed", round=int(state.told.min(initial=0)) + 1)

    @cached_property
    def _free(self) -> Any:
        """Scores to know before the threshold is finite: fewer than 1/α − 1 hold no 1 − α quantile."""
        free = np.maximum((1.0 - 1e-9) / np.asarray(self.miss_rate) - 1.0, 2.0)
        return free if free.ndim else float(free)

    @property
    def _has_position(self) -> bool:
        """True if Theorem 1 applies: one group, and a correction with an inverse."""
        return self.groups == 1 and self.correction.has_inverse

    def _evidence(
        self, state: CalibrationState, asked: Asked, score: Array, residual: Array, current: Array
    ) -> Evidence:
        """Return the certificate's sums after a round; `current`: the state is that of the ask."""
        xp, old, alpha = namespace(state.miss_rate), state.evidence, state.miss_rate
        late = clamp_min(old.late, state.told - asked.told)
        free = asked.threshold == xp.inf  # such a round cannot be missed
        position, z = score, (score - asked.base) / asked.scale
        if self._has_position or type(self.correction) is Correction:
            if self._has_position:
                position = self.correction.inverse(z, asked.told, alpha, asked.late)
                if isinstance(self.base, Mixture):
                    position = where(free, state.counts.excess(alpha)[..., 0], position)
            lowest, highest = clamp_max(old.lowest, position), clamp_min(old.highest, position)
            return old._replace(lowest=lowest, highest=highest, late=late)
        # The potential grows by r·(correction now), which is r·(correction at the ask) plus the change in between.
        now = asked.shift
        if not is_true_everywhere(current & (asked.late == 1.0)):
            now = self.correction(state.counts, asked.groups, alpha, xp.ones_like(asked.late))
        ask, base_loss = where(free, 0.0 * z, asked.shift), where(free, 0.0 * z, pinball(z, alpha))
        loss = base_loss + clamp_min(residual * (now - ask), 0.0)
        active = count_active(asked.groups)
        squares = residual**2 * active / clamp_min(state.counts.most_active, active)
        return old._replace(loss=old.loss + loss, squares=old.squares + squares, late=late)

    def add_group(self, state: CalibrationState) -> tuple[Calibration, CalibrationState]:
        """Return the rule and the state with one more group, which has no round yet; for the default rule only.

        The potential of Theorem 3 grows by at most 1/k, or by that of the sums where the rule had no groups before.
        The certificate counts it.
        """
        if self.nested or not isinstance(self.base, Mixture) or not isinstance(self.correction, (Sinh, LinearAndBets)):
            raise InputError(
                "groups", "cannot be added later, except to the default rule", "Make the rule with all groups at once"
            )
        correction = self.correction if self.groups > 1 else LinearAndBets()
        larger = Calibration(self.miss_rate, self.groups + 1, self.base, correction)
        counts, alpha = state.counts, state.miss_rate
        xp, wealth, added = namespace(alpha), counts.log_wealth, 1.0 / larger.groups
        if self.groups == 1:
            linear = correction.gain * counts.excess(alpha)[..., 0] ** 2
            added = 0.5 * (linear + xp.exp(xp.minimum(wealth[..., 0], LARGEST_LOG_WEALTH)) - 1.0)
        grown_names = ("rounds", "misses", "ties", "log_wealth")
        grown = counts._replace(**{name: append_zero(getattr(counts, name)) for name in grown_names})
        evidence = state.evidence._replace(loss=state.evidence.loss + added)
        return larger, CalibrationState(alpha, grown, self.base.add_group(state.base), evidence)

    def excess(self, state: CalibrationState) -> Array:
        """Return Σ (1{miss} − α) per group over the rounds without a tie (score = threshold), shape (..., k).

        A tie is covered. With ties counted as rounds, the sum is smaller by α times their number.
        """
        return state.counts.excess(state.miss_rate)

    def coverage(self, state: CalibrationState) -> Array:
        """Return the share of covered scores per group, shape (..., k); NaN where a group has no round.

        A score equal to its threshold is covered.
        """
        return state.counts.coverage()

    def bound(self, state: CalibrationState) -> Bound:
        """Return limits of `excess` that hold on every sequence, evaluated on the sequence played so far.

        `excess` leaves ties out. The upper limit therefore also holds for the sum over all rounds, the lower does not.
        Corrections with an inverse have Theorem 1, trackers Theorem 2, groups Theorem 3, and all of them Theorem 4
        where labels came late. `InputError` for the default base without a correction, which has no theorem.
        """
        if self._has_position:
            alone = position_bound(state.evidence, state.miss_rate)
            return nested_bound(alone) if self.nested else alone
        if type(self.correction) is not Correction:
            return group_bound(self.correction, state.counts, state.evidence, state.miss_rate)
        if isinstance(self.base, QuantileTracker) and self.base.step > 0.0:
            return tracker_bound(self.base, state.base, state.evidence)
        raise InputError(
            "correction", "is None, but without a correction nothing controls the coverage", "Use Sinh or Linear"
        )
