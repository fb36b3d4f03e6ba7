"""Multipliers for PyTorch training loops (extra `torch`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from longterm._base.extras import missing_extra
from longterm.compat import multipliers as rules

try:
    import torch
except ImportError as error:
    raise missing_extra("longterm.compat.torch needs PyTorch", "torch") from error
from longterm.errors import NonFiniteError

_FEW = 8
_DTYPES = (torch.float32, torch.float64)


class TorchMultipliers(torch.nn.Module):  # type: ignore[misc]
    """Lagrange multipliers as a module: add `penalty` to the loss, and call `update` after the optimiser's step.

    Parameters
    ----------
    constraints : int
        Number m of constraints, or of samples where each has its own multiplier.
    rule : Rule, optional
        A rule of `longterm.compat.multipliers`. Default: `Adaptive`, which has no step size to tune.
    equality : bool or sequence of m bool
        True for constraints g = 0, False for g ≤ 0.
    device, dtype : optional
        Of the multipliers: float32 or float64. In half precision small steps would be lost.

    Attributes
    ----------
    state : buffer (m, 9)
        The fields of `TrainingMultiplierState`, one row per constraint.
    values : tensor (m,)
        A copy of the multipliers λ, the first column of the state.

    Examples
    --------
    Minimise (x − 2)² subject to x ≤ 1. The multiplier is 2.

    >>> import torch
    >>> from longterm.compat.torch import TorchMultipliers
    >>> x = torch.zeros(1, requires_grad=True)
    >>> optimiser, multipliers = torch.optim.SGD([x], lr=0.05), TorchMultipliers(1)
    >>> for _ in range(2000):
    ...     violations = x - 1
    ...     loss = ((x - 2) ** 2).sum() + multipliers.penalty(violations)
    ...     optimiser.zero_grad()
    ...     loss.backward()
    ...     optimiser.step()
    ...     multipliers.update(violations)
    >>> bool(abs(x.item() - 1) < 0.01), bool(abs(multipliers.values.item() - 2) < 0.05)
    (True, True)
    """

    state: torch.Tensor

    def __init__(
        self,
        constraints: int,
        rule: rules.Rule | None = None,
        *,
        equality: bool | Sequence[bool] = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.rule: rules.Rule = rules.Adaptive() if rule is None else rule
        kinds = rules.constraint_kinds(constraints, self.rule, equality)
        zeros = torch.zeros(constraints, device=device, dtype=dtype)
        if zeros.dtype not in _DTYPES:
            raise rules.precision_error(zeros.dtype)
        state = rules.init(zeros, self.rule, torch.as_tensor(kinds, device=device))
        self.register_buffer("state", torch.stack(state, dim=1))

    def extra_repr(self) -> str:
        return f"{len(self.state)}, {self.rule!r}"

    @property
    def values(self) -> torch.Tensor:
        return torch.select_copy(self.state, 1, 0)

    def penalty(self, violations: torch.Tensor, indices: torch.Tensor | None = None) -> torch.Tensor:
        """Return ⟨λ, violations⟩ to add to the loss. Gradients flow to the violations only.

        Parameters
        ----------
        violations : tensor (m,)
            g_j at the present parameters, on this minibatch.
        indices : tensor of integers, optional
            Samples, or constraints, that the violations belong to; each at most once. Default: all.
        """
        # A copy, because `update` works in place and may come before the backward pass.
        values = torch.select_copy(self.state, 1, 0) if indices is None else self.state[indices, 0]
        _require_violations(violations, values.shape)
        return torch.dot(values, violations.to(values.dtype))

    def update(self, violations: torch.Tensor, indices: torch.Tensor | None = None) -> None:
        """Move the multipliers by the violations; arguments as for `penalty`.

        Up to 8 violations on the CPU are checked to be finite. A check of more would make a GPU wait: there a NaN
        stays in the multiplier.
        """
        state = self.state if indices is None else self.state[indices]
        _require_violations(violations, state.shape[:1])
        if state.dtype not in _DTYPES:
            raise rules.precision_error(state.dtype)
        if 0 < len(state) <= _FEW and state.is_cpu and not torch.compiler.is_compiling():
            # A few floats take a fraction of the time of small tensors.
            given = violations.tolist()
            if not all(map(math.isfinite, given)):
                raise NonFiniteError("violations", f"{given!r} holds NaN or an infinity", "Check this minibatch")
            rows = zip(state.tolist(), given, strict=True)
            state.numpy()[:] = [rules.update(self.rule, rules.TrainingMultiplierState(*row), g) for row, g in rows]
        else:
            old = rules.TrainingMultiplierState(*state.unbind(dim=1))
            state.copy_(torch.stack(rules.update(self.rule, old, violations.detach().to(state.dtype)), dim=1))
        if indices is not None:
            self.state[indices] = state


def _require_violations(violations: Any, shape: tuple[int, ...]) -> None:
    is_tensor = isinstance(violations, torch.Tensor)
    if not is_tensor or violations.shape != shape or not violations.is_floating_point():
        raise rules.violations_error(violations, shape, "tensor")
