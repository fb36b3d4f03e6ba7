"""How a learner weighs its experts: by what following each of them instead would have cost.

A rule sees ℓ_k = ⟨n_t, x^k_t − x_t⟩, so Σ_k p_k ℓ_k = 0, and keeps a few numbers for each expert.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, dot, floored, namespace, smallest
from longterm.errors import InputError
from longterm.problems import Problem

MetaName = Literal["adahedge", "adapt-ml-prod"]
"""The rules that can be named."""


class Meta(ABC):
    """A rule on the probability simplex; what it remembers is one row of numbers."""

    @abstractmethod
    def start(self, losses: Array) -> Array:
        """The memory before round 1, shape (..., n), for losses of this shape (..., K)."""

    @abstractmethod
    def weights(self, memory: Array) -> Array:
        """p, shape (..., K), from memory of shape (..., n)."""

    @abstractmethod
    def update(self, memory: Array, losses: Array) -> Array:
        """The memory after a round with losses ℓ of shape (..., K)."""

    @abstractmethod
    def regret(self, memory: FloatArray) -> FloatArray:
        """At most this much was lost against each expert, shape (..., K) or (..., 1), by its theorem."""


@dataclass(frozen=True, eq=False)
class AdaHedge(Meta):
    """AdaHedge: α_t = ln K/Γ_{t−1}, Γ the sum of mixability gaps so far (de Rooij, van Erven, Grünwald, Koolen 2014).

    δ_t = (1/α_t) ln Σ_k p_k e^{−α_tℓ_k} ≥ 0,  Γ_t = Γ_{t−1} + δ_t,  p_{t+1,k} ∝ e^{−α_{t+1}L_k}. While Γ = 0, α = ∞: p
    is uniform on the smallest L_k and δ_t = min L_{t−1} − min L_t. It loses at most 2Γ_T to the best expert.
    Kept: L_k − min L, then p_k, then Γ and Σ_k e^{−α(L_k − min L)}, which the next round needs again.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.learners.meta import AdaHedge
    >>> rule, memory = AdaHedge(), AdaHedge().start(np.zeros(2))
    >>> memory = rule.update(memory, np.array([-1.0, 1.0]))
    >>> rule.weights(memory).round(4), float(rule.regret(memory)[0])  # Γ = 1: α = ln 2, weights as 1 : 2^−2
    (array([0.8, 0.2]), 2.0)
    """

    def start(self, losses: Array) -> Array:
        xp, K = namespace(losses), losses.shape[-1]
        zero = xp.zeros_like(losses)
        return xp.concat([zero, zero + 1 / K, zero[..., :1], zero[..., :1] + float(K)], axis=-1)

    def weights(self, memory: Array) -> Array:
        K = memory.shape[-1] // 2 - 1
        return memory[..., K : 2 * K]

    def update(self, memory: Array, losses: Array) -> Array:
        xp, K = namespace(memory), losses.shape[-1]
        if K == 1:
            return memory
        log = math.log(K)
        total = memory[..., :K] + losses
        least = smallest(total)
        behind = total - least
        gap, powers_before = memory[..., 2 * K : 2 * K + 1], memory[..., 2 * K + 1 :]
        # 1/α of this round; where Γ is 0 so small that e^{−α·behind} is 1 for those who lead and 0 for the others.
        slow = floored(gap) / log
        ones = xp.ones(K, dtype=behind.dtype)  # a product with 1 is faster than a sum over a short axis
        after = column(dot(xp.exp(behind / -slow), ones))
        # δ = Φ_α(L) − Φ_α(L + ℓ), both with that α; never below 0 but for rounding.
        gap = gap + xp.maximum(slow * xp.log(after / powers_before) - least, 0.0)
        powers = xp.exp(behind / (floored(gap) / -log))
        summed = column(dot(powers, ones))
        return xp.concat([behind, powers / summed, gap, summed], axis=-1)

    def regret(self, memory: FloatArray) -> FloatArray:
        return np.asarray(2 * memory[..., -2:-1])


@dataclass(frozen=True, eq=False)
class AdaptMLProd(Meta):
    """Adapt-ML-Prod (Gaillard, Stoltz, van Erven 2014): a regret to expert k of order √(ln K Σ ℓ_k²), its own losses.

    With r_k = −ℓ_k/reach in [−1, 1], e_k = min(½, √(ln K/(1 + Σ r_k²))): w_k ← (w_k(1 + e_kr_k))^{e_k'/e_k} and
    p_k ∝ e_k w_k. Kept: ln w_k (from w_k = 1), then Σ r_k², then the rounds.

    Parameters
    ----------
    reach : float
        |ℓ_k| ≤ reach: ΔG_f.
    """

    reach: float

    def __post_init__(self) -> None:
        validate.remember(self, reach=validate.positive_scalar("reach", self.reach))

    def start(self, losses: Array) -> Array:
        xp = namespace(losses)
        zero = xp.zeros_like(losses)
        return xp.concat([zero, zero, zero[..., :1]], axis=-1)

    def weights(self, memory: Array) -> Array:
        xp, K = namespace(memory), memory.shape[-1] // 2
        powers = xp.log(_rates(memory[..., K : 2 * K])) + memory[..., :K]
        powers = xp.exp(powers + smallest(-powers))
        return powers / xp.sum(powers, axis=-1, keepdims=True)

    def update(self, memory: Array, losses: Array) -> Array:
        xp, K = namespace(memory), losses.shape[-1]
        logs, squares, gains = memory[..., :K], memory[..., K : 2 * K], losses / -self.reach
        rates, more = _rates(squares), squares + gains * gains
        logs = (logs + xp.log1p(rates * gains)) * _rates(more) / rates
        return xp.concat([logs, more, memory[..., 2 * K :] + 1.0], axis=-1)

    def regret(self, memory: FloatArray) -> FloatArray:
        """(Q/√ln K) √(1 + Σr_k²) + 2Q, Q = 3 ln K + ln(1 + (K/2e)(1 + ln(T + 1))), times reach: their Corollary 4."""
        K = memory.shape[-1] // 2
        log, squares = math.log(max(K, 2)), memory[..., K : 2 * K]
        Q = 3 * log + np.log1p(K / (2 * math.e) * (1 + np.log1p(memory[..., 2 * K :])))
        return np.asarray(self.reach * (Q / math.sqrt(log) * np.sqrt(1 + squares) + 2 * Q))


def _rates(squares: Array) -> Array:
    log = math.log(max(squares.shape[-1], 2))
    return namespace(squares).minimum(namespace(squares).sqrt(log / (1 + squares)), 0.5)


def rule_called(name: MetaName, problem: Problem) -> Meta:
    """The rule of that name, with the problem's constants where it needs them."""
    if name == "adahedge":
        return AdaHedge()
    if name == "adapt-ml-prod":
        return AdaptMLProd(problem.constants.loss_gradient_bound * problem.constants.diameter)
    raise InputError("meta", f"{name!r} is not known", "Choose 'adahedge' or 'adapt-ml-prod'")
