"""Weights of experts from their linear losses.

A rule sees ℓ_k = ⟨n_t, x^k_t − x_t⟩, so Σ_k p_k ℓ_k = 0, and remembers a few numbers for each expert.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from longterm._base import validate
from longterm._base.arrays import (
    Array,
    FloatArray,
    as_column,
    expand_last,
    max_abs,
    min_last,
    namespace,
    scale_rows,
    sum_last,
    where_rows,
)
from longterm._base.selection import clamp_min, clamp_to_divisor

MetaName = Literal["adahedge", "adapt-ml-prod"]
"""The names of the rules."""


class Meta(ABC):
    """A rule on the probability simplex. Its memory is one row of numbers."""

    @abstractmethod
    def start(self, losses: Array) -> Array:
        """Return the memory before round 1, shape (..., n), for losses of this shape (..., K)."""

    @abstractmethod
    def weights(self, memory: Array) -> Array:
        """Return p, shape (..., K), from memory of shape (..., n)."""

    @abstractmethod
    def update(self, memory: Array, losses: Array) -> Array:
        """Return the memory after a round with losses ℓ of shape (..., K)."""

    @abstractmethod
    def regret(self, memory: FloatArray) -> FloatArray:
        """Return a bound on the loss against each expert so far, shape (..., K) or (..., 1)."""


@dataclass(frozen=True, eq=False)
class AdaHedge(Meta):
    """AdaHedge: α_t = ln K/Γ_{t−1}, Γ the sum of mixability gaps so far (de Rooij, van Erven, Grünwald, Koolen 2014).

    δ_t = (1/α_t) ln Σ_k p_k e^{−α_tℓ_k} ≥ 0,  Γ_t = Γ_{t−1} + δ_t,  p_{t+1,k} ∝ e^{−α_{t+1}L_k}. While Γ = 0, α = ∞: p
    is uniform on the smallest L_k and δ_t = min L_{t−1} − min L_t. It loses at most 2Γ_T to the best expert.
    The memory holds L_k − min L, then p_k, then Γ and Σ_k e^{−α(L_k − min L)}.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.learners.cuts.meta import AdaHedge
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
        gap, before = memory[..., 2 * K], memory[..., 2 * K + 1]  # NumPy scalars for a single learner, which are fast
        sums = memory[..., :K] + losses
        least = min_last(sums)
        excess = sums - expand_last(least)
        # 1/α of this round. Where Γ is 0 it is so small that e^{−α·excess} is 1 for the leaders and 0 for the others.
        scale = clamp_to_divisor(gap) / log
        after = sum_last(xp.exp(excess / expand_last(-scale)))
        # δ = Φ_α(L) − Φ_α(L + ℓ), both with that α. Negative by rounding only.
        gap = gap + clamp_min(scale * xp.log(after / before) - least, 0.0)
        powers = xp.exp(excess / expand_last(clamp_to_divisor(gap) / -log))
        total = sum_last(powers)
        return xp.concat([excess, powers / expand_last(total), as_column(gap), as_column(total)], axis=-1)

    def regret(self, memory: FloatArray) -> FloatArray:
        return np.asarray(2 * memory[..., -2:-1])


@dataclass(frozen=True, eq=False)
class AdaptMLProd(Meta):
    """Adapt-ML-Prod (Gaillard, Stoltz, van Erven 2014) with a range learned by clipping: √(ln K Σ ℓ_k²) to expert k.

    With B_t = max_{s≤t,k} |ℓ_{s,k}|, r_{t,k} = −ℓ_{t,k} B_{t−1}/B_t, V_k = Σ r_k²,
    e_k = min(1/(2B), √(ln K/(B² + V_k))): w_k ← (w_k(1 + e_k r_k))^{e_k'/e_k} from w_k = 1, and p_k ∝ e_k w_k. Then

        −Σ_t ℓ_{t,k} ≤ 2√(V_k ln K) + ln(K + A/e) max(2B, √((B² + V_k)/ln K)) + B,    A = Σ_tΣ_k (e_{t−1,k}/e_{t,k} − 1)

    and A ≤ K(1.5 R + ln(1 + TR²)), R the last B over the first: ln A is of order ln K + ln R + ln ln T.
    Proof: `docs/proofs/hedged_cuts.md`.
    The memory holds ln w_k, then V_k, then e_k, then p_k, then B and A.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.learners.cuts.meta import AdaptMLProd
    >>> rule, memory = AdaptMLProd(), AdaptMLProd().start(np.zeros(2))
    >>> for _ in range(3):  # the first round only sets the range
    ...     memory = rule.update(memory, np.array([-3.0, 3.0]))
    >>> rule.weights(memory).round(3)
    array([0.892, 0.108])
    """

    def start(self, losses: Array) -> Array:
        xp, K = namespace(losses), losses.shape[-1]
        zero = xp.zeros_like(losses)
        return xp.concat([zero, zero, zero, zero + 1 / K, zero[..., :1], zero[..., :1]], axis=-1)

    def weights(self, memory: Array) -> Array:
        K = memory.shape[-1] // 4
        return memory[..., 3 * K : 4 * K]

    def update(self, memory: Array, losses: Array) -> Array:
        xp, K = namespace(memory), losses.shape[-1]
        log = math.log(max(K, 2))
        logs, squares, rates = memory[..., :K], memory[..., K : 2 * K], memory[..., 2 * K : 3 * K]
        reach, growth = memory[..., -2], memory[..., -1]
        scope = clamp_min(max_abs(losses), reach)
        divisor = clamp_to_divisor(scope)
        gains = scale_rows(reach / -divisor, losses)
        squares = squares + gains * gains
        least = divisor * divisor
        after = xp.sqrt(log / xp.maximum(squares + expand_last(least), expand_last(4 * log * least)))
        ratios = where_rows(reach > 0, rates, after) / after  # before the first loss there is no rate
        logs = (logs + xp.log1p(rates * gains)) / ratios
        powers = after * xp.exp(logs)  # 1 ≤ Σ w ≤ K + A/e: no overflow, and not all underflow
        growth = growth + (sum_last(ratios) - K)
        weights = powers / expand_last(sum_last(powers))
        return xp.concat([logs, squares, after, weights, as_column(scope), as_column(growth)], axis=-1)

    def regret(self, memory: FloatArray) -> FloatArray:
        K = memory.shape[-1] // 4
        log, squares, reach = math.log(max(K, 2)), self.squares(memory), memory[..., -2:-1]
        spread = np.maximum(2 * reach, np.sqrt((reach**2 + squares) / log))
        logarithm = np.log(K + memory[..., -1:] / math.e)
        return np.asarray(2 * np.sqrt(squares * log) + logarithm * spread + reach)

    def squares(self, memory: FloatArray) -> FloatArray:
        """Return V_k, at most Σ_t ℓ_{t,k}²."""
        K = memory.shape[-1] // 4
        return memory[..., K : 2 * K]


RULES: Mapping[MetaName, Meta] = {"adahedge": AdaHedge(), "adapt-ml-prod": AdaptMLProd()}


def rule_called(name: MetaName) -> Meta:
    """Return the rule of that name. Raise if there is none."""
    validate.choice("meta", name, RULES)
    return RULES[name]
