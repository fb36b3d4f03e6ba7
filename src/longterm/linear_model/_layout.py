"""What kernels read and write: parameters and state as arrays whose positions have names.

Everything is float64 whatever the rows are. A kernel changes a state in place; `state.copy()` keeps one. A state is the
whole memory of a learner: rounds played from a copy give the same bits.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray

(
    BUDGET,
    L1,
    L2,
    RADIUS,
    INTERCEPT_BOUND,
    LOSS,
    LOSS_PARAMETER,
    BETA,
    STEP,
    THETA_0,
    MU,
    WEIGHT_0,
    GROWTH,
    GRADIENT_BOUND,
) = range(14)


@dataclass(frozen=True)
class Parameters:
    """A rule's constants, in the order of the names above. `as_array()` is what a kernel reads.

    g(x) = l1‖x‖₁ + ½ l2‖x‖² − budget on the ball of this radius about 0, an intercept in ±intercept_bound (0: none).
    `loss` is a number of `_losses`.

    Constants given: η_t = step/√t (A-OGD: step/t^β), θ_t = theta_0/t^β, w_t = weight_0 t^{1+growth} (penalised FTRL).
    `mu` > 0 makes A-OGD's steps constant (Mahdavi's): η = step, θ = theta_0, μ = mu in every round.

    **Constants found online: step = 0.** Then theta_0 and weight_0 are per unit of the losses' gradients: with M_t the
    length of the longest so far, θ_t = theta_0/(M_t t^β), w_t = weight_0 M_{t−1} t^{1+growth}.

    A row whose gradient is longer than `gradient_bound` is refused. 1e100 keeps sums of squares from overflowing.
    """

    budget: float
    l1: float
    l2: float
    radius: float
    intercept_bound: float = 0.0
    loss: int = 0
    loss_parameter: float = 0.0
    beta: float = 2 / 3
    step: float = 0.0
    theta_0: float = 0.0
    mu: float = 0.0
    weight_0: float = 0.0
    growth: float = 0.5
    gradient_bound: float = 1e100

    def as_array(self) -> FloatArray:
        """The same numbers, in order."""
        return np.array(astuple(self), dtype=np.float64)


(
    LOSS_SUM,  # Σ f_s(x_s), s < t
    SIGNED,  # Σ g(x_s)
    HARD,  # Σ [g(x_s)]₊
    SQUARED,  # Σ [g(x_s)]₊²
    MULTIPLIER,  # λ_t; ν_t in penalised FTRL
    MULTIPLIER_SUM,  # Λ_t = Σ_{s≤t} λ_s; W_t in penalised FTRL
    SQUARES,  # constants found online: Σ_{s<t} of the squared lengths that set the step
    LARGEST,  # constants found online: M_{t−1} = max_{s<t} ‖∇f_s(x_s)‖
    SCALE,  # x_t = SCALE · v, where v is the state's vector (A-OGD) or −soft(vector, l1 · MULTIPLIER_SUM) (FTRL)
    NORM_1,  # ‖v‖₁
    NORM_2,  # ‖v‖₂²
    INTERCEPT,  # b_t
    INTERCEPT_SLOPE,  # FTRL: Σ of the losses' slopes, the intercept's coordinate of z
    BOUND_SUM,  # constants found online: what only the bound reads: S_θ + δ_μ, penalised FTRL: Σ 1/w
    INTERCEPT_SQUARES,  # constants found online: Σ of the losses' squared slopes, which set the intercept's own step
) = range(15)
NUMBERS = 15
"""How many. Kernels take them all into registers with `unpack`, in this order, and put them back with `pack`."""

COLUMNS = ("loss", "signed_violation", "hard_violation", "squared_violation", "nonzeros", "multiplier")
"""What a trace has of round t: sums up to and with round t, then of x_t and λ_t themselves."""


class State(NamedTuple):
    """One learner. `vector` is x_t up to a factor (A-OGD, Mahdavi) or z_{t−1} (the FTRL rules)."""

    round: NDArray[np.int64]
    """[t], the round about to be played, counted from 1."""
    vector: FloatArray
    numbers: FloatArray

    @classmethod
    def start(cls, dimension: int) -> State:
        """Before round 1: x_1 = 0, λ_1 = 0, nothing seen."""
        numbers = np.zeros(NUMBERS)
        numbers[SCALE] = 1.0
        return cls(np.ones(1, dtype=np.int64), np.zeros(dimension), numbers)

    def copy(self) -> State:
        """The same learner, apart."""
        return State(self.round.copy(), self.vector.copy(), self.numbers.copy())

    def become(self, other: State) -> None:
        """Take over another state's numbers, in place."""
        for mine, theirs in zip(self, other, strict=True):
            mine[...] = theirs
