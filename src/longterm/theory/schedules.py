"""Schedules: θ_t, η_t and μ_t as functions of the round t (Table 1 of the paper, and others).

θ_t is the weight of the penalty θ_t λ²/2 in the Lagrangian, η_t the step of x and μ_t the step of λ.
`longterm.theory.conditions` checks C1–C3 on any of them. Hyper-parameters may differ from learner to learner in a batch
(`PerLearner`, of schedules and learners alike): a field that holds an array holds one value for each learner on the
leading axes. Parts that all learners of a batch share (sets, losses, constraints) are not of this kind.

Schedules for learners that take the multiplier's part exactly: θ_t need not know about η_t.

A-OGD ties θ_t to η_t G² (condition C2) to pay for the gradient λ_t ∇g in its step. Where an argmin holds g itself
there is nothing to pay for, and any θ_0 > 0 will do (`docs/aftrl.md`):

    θ_t = θ_0 / t^β,   μ_t = 1 / (θ_t (t + 1)),   and an η_t of its own.

The schedule of a penalty [g]₊²/(2θ_t) that a learner pays instead of keeping a multiplier.

    η_t = step / t^decay,   θ_t = factor · curvature · η_t,   μ_t = 1 / θ_t.

A dual step with μ_t = 1/θ_t forgets λ_t: [λ + μ(g − θλ)]₊ = [g]₊/θ, the multiplier that is best against g. `curvature`
is the L of ‖Σ_j w_j ∇g_j(x)‖² ≤ L‖w‖², so L/θ_t is the curvature of the penalty, and 1/factor the share of it that a
step takes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_float, like, namespace
from longterm._display import ReprMixin
from longterm._validate import Hyper
from longterm.errors import InputError, ScheduleError


class PerLearner(ReprMixin):
    """Mixin of the frozen dataclasses whose array fields run over the leading axes."""

    def _varying(self) -> Iterator[tuple[str, Any]]:
        for name, value in vars(self).items():
            if isinstance(value, (np.ndarray, PerLearner)):
                yield name, value

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The leading axes that the hyper-parameters span: () for one learner, (3,) for a grid of three."""
        return np.broadcast_shapes(*(array.shape for array in self.hyper_arrays().values()))

    def hyper_arrays(self) -> dict[str, Any]:
        """Every array among the hyper-parameters, by its path: {"schedule.beta": …}."""
        arrays: dict[str, Any] = {}
        for name, value in self._varying():
            if isinstance(value, np.ndarray):
                arrays[name] = value
            else:
                arrays |= {f"{name}.{path}": array for path, array in value.hyper_arrays().items()}
        return arrays

    def with_hyper_arrays(self, arrays: Mapping[str, Any]) -> Self:
        """The same learner with other arrays at these paths. They are taken as they are, without checks."""
        made = object.__new__(type(self))
        fields = vars(made)
        inner: dict[str, dict[str, Any]] = {}
        fields.update(vars(self))
        for path, array in arrays.items():
            name, _, rest = path.partition(".")
            if name not in fields:
                raise KeyError(path)
            if rest:
                inner.setdefault(name, {})[rest] = array
            else:
                fields[name] = array
        for name, own in inner.items():
            fields[name] = fields[name].with_hyper_arrays(own)
        return made

    def with_trailing_axes(self, count: int) -> Self:
        """The same hyper-parameters with `count` axes of length 1 behind theirs, to be crossed with seeds."""
        arrays = self.hyper_arrays()
        if count == 0 or not arrays:
            return self  # the same object: engines remember what they compiled for it
        return self.with_hyper_arrays({path: a.reshape(a.shape + (1,) * count) for path, a in arrays.items()})


class Steps(NamedTuple):
    """The three numbers of one round."""

    theta: Array
    eta: Array
    mu: Array


class Schedule(PerLearner, ABC):
    """t ↦ (θ_t, η_t, μ_t). Numbers may be arrays over the leading axes: one schedule per learner."""

    gradient_bound: Hyper | None
    """The G these steps were made for: a longer gradient breaks C2. None: made for no G in particular."""

    strong_convexity: Hyper = 0.0
    """The σ these steps were made for: losses must be at least as strongly convex. 0: made for any convex losses."""

    @abstractmethod
    def at(self, t: Array, x: Array) -> Steps:
        """The steps of round t, an integer array, in the library and dtype of x."""


@dataclass(frozen=True, eq=False)
class ConvexSchedule(Schedule):
    """Table 1, convex column, for any enclosing set of diameter Δ.

    θ_t = 3ΔG/t^β,   η_t = Δ/(2G t^β),   μ_t = 1/(θ_t (t + 1)).

    With Δ = 2R these are the paper's 6RG/t^β and R/(G t^β).

    >>> import numpy as np
    >>> from longterm.theory.schedules import ConvexSchedule
    >>> steps = ConvexSchedule(diameter=2.0, gradient_bound=1.0, beta=0.5).at(np.asarray(4), np.zeros(1))
    >>> tuple(round(float(step), 6) for step in steps)
    (3.0, 0.5, 0.066667)
    """

    diameter: Hyper
    gradient_bound: Hyper
    beta: Hyper = 2 / 3

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "diameter", "gradient_bound")
        validate.validate_fields(self, validate.trade_off, "beta")

    def at(self, t: Array, x: Array) -> Steps:
        t = as_float(t, x)
        decay = t ** like(self.beta, x)
        theta = like(3 * self.diameter * self.gradient_bound, x) / decay
        eta = like(self.diameter / (2 * self.gradient_bound), x) / decay
        return Steps(theta, eta, 1 / (theta * (t + 1)))


@dataclass(frozen=True, eq=False)
class StronglyConvexSchedule(Schedule):
    """Table 1, strongly convex column; it does not depend on the enclosing set.

    θ_t = 6G²/(σ t^β),   η_t = 1/(σ t),   μ_t = 1/(θ_t (t + 1)).
    """

    gradient_bound: Hyper
    strong_convexity: Hyper = field()
    beta: Hyper = 2 / 3

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "gradient_bound", "strong_convexity")
        validate.validate_fields(self, validate.trade_off, "beta")

    def at(self, t: Array, x: Array) -> Steps:
        t = as_float(t, x)
        theta = like(6 * self.gradient_bound**2 / self.strong_convexity, x) / t ** like(self.beta, x)
        return Steps(theta, 1 / (like(self.strong_convexity, x) * t), 1 / (theta * (t + 1)))


@dataclass(frozen=True, eq=False)
class ConstantSchedule(Schedule):
    """The same θ, η and μ in every round."""

    theta: Hyper
    eta: Hyper
    mu: Hyper
    gradient_bound: Hyper | None = None

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.non_negative, "theta")
        validate.validate_fields(self, validate.positive, "eta", "mu")
        validate.validate_fields(self, validate.positive, "gradient_bound", optional=True)

    def at(self, t: Array, x: Array) -> Steps:
        one = as_float(t, x) ** 0
        return Steps(like(self.theta, x) * one, like(self.eta, x) * one, like(self.mu, x) * one)


@dataclass(frozen=True, eq=False)
class CustomSchedule(Schedule):
    """A user's own: three functions of t, each from an array of rounds (as floats) to an array.

    >>> import numpy as np
    >>> from longterm.theory.schedules import CustomSchedule
    >>> own = CustomSchedule(theta=lambda t: 6 / t, eta=lambda t: 1 / t, mu=lambda t: 1 / (6 * (t + 1) / t))
    >>> float(own.at(np.asarray(2), np.zeros(1)).theta)
    3.0
    """

    theta: Callable[[Array], Array]
    eta: Callable[[Array], Array]
    mu: Callable[[Array], Array]
    gradient_bound: Hyper | None = None

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "gradient_bound", optional=True)
        rounds = np.unique(np.concatenate([np.arange(1, 1001), 2 ** np.arange(10, 40)]))
        with np.errstate(all="ignore"):
            steps = self.at(rounds, np.zeros(1))
        require_positive_steps(rounds, *(np.broadcast_to(step, rounds.shape) for step in steps))

    def at(self, t: Array, x: Array) -> Steps:
        xp = namespace(x)
        t = xp.astype(t, x.dtype)
        theta, eta, mu = (like(xp.asarray(step(t)), x) for step in (self.theta, self.eta, self.mu))
        return Steps(theta, eta, mu)


@dataclass(frozen=True, eq=False)
class DecoupledSchedule(Schedule):
    """For convex losses: η_t = step/√t.

    >>> import numpy as np
    >>> from longterm.theory.schedules import DecoupledSchedule
    >>> steps = DecoupledSchedule(step=1.0, theta_0=3.0, beta=0.5).at(np.asarray(4), np.zeros(1))
    >>> tuple(round(float(step), 6) for step in steps)
    (1.5, 0.5, 0.133333)
    """

    step: Hyper
    theta_0: Hyper
    beta: Hyper = 2 / 3
    gradient_bound: Hyper | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "step", "theta_0")
        validate.validate_fields(self, validate.trade_off, "beta")

    def at(self, t: Array, x: Array) -> Steps:
        t = as_float(t, x)
        theta = like(self.theta_0, x) / t ** like(self.beta, x)
        return Steps(theta, like(self.step, x) / t**0.5, 1 / (theta * (t + 1)))


@dataclass(frozen=True, eq=False)
class StronglyConvexDecoupledSchedule(Schedule):
    """For σ-strongly convex losses: η_t = 1/(σt)."""

    strong_convexity: Hyper = field()
    theta_0: Hyper
    beta: Hyper = 2 / 3
    gradient_bound: Hyper | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "strong_convexity", "theta_0")
        validate.validate_fields(self, validate.trade_off, "beta")

    def at(self, t: Array, x: Array) -> Steps:
        t = as_float(t, x)
        theta = like(self.theta_0, x) / t ** like(self.beta, x)
        return Steps(theta, 1 / (like(self.strong_convexity, x) * t), 1 / (theta * (t + 1)))


@dataclass(frozen=True, eq=False)
class PenaltySchedule(Schedule):
    """Steps η_t = step/t^decay with a penalty that follows them.

    >>> import numpy as np
    >>> from longterm.theory.schedules import PenaltySchedule
    >>> steps = PenaltySchedule(step=1.0, decay=0.5, curvature=4.0, factor=2.0).at(np.asarray(4), np.zeros(1))
    >>> tuple(float(step) for step in steps)
    (4.0, 0.5, 0.25)
    """

    step: Hyper
    decay: Hyper
    curvature: Hyper
    factor: Hyper = 2.0
    strong_convexity: Hyper = 0.0
    """The σ of steps 1/(σt); 0 where they are made for any convex losses."""
    gradient_bound: Hyper | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "step", "decay", "curvature", "factor")
        validate.validate_fields(self, validate.non_negative, "strong_convexity")
        if np.any(np.asarray(self.factor) <= 1):
            raise InputError("factor", f"{self.factor!r} is not above 1", "Give 2, with which the bound is smallest")

    def at(self, t: Array, x: Array) -> Steps:
        t = as_float(t, x)
        eta = like(self.step, x) / t ** like(self.decay, x)
        theta = like(self.factor, x) * like(self.curvature, x) * eta
        return Steps(theta, eta, 1 / theta)


def require_positive_steps(rounds: NDArray[np.int64], theta: FloatArray, eta: FloatArray, mu: FloatArray) -> None:
    """η_t and μ_t must be positive, θ_t at least 0, all finite; rounds on the leading axis."""
    sound = {"theta": theta >= 0, "eta": eta > 0, "mu": mu > 0}
    for (name, good), values in zip(sound.items(), (theta, eta, mu), strict=True):
        good = good & np.isfinite(values)
        if not np.all(good):
            t = int(rounds[np.argmin(good.reshape(len(rounds), -1).all(axis=1))])
            what = f"is {float(values[~good].flat[0]):g}"
            raise ScheduleError(name, what, "η_t and μ_t must be positive, θ_t at least 0, all finite", round=t)
