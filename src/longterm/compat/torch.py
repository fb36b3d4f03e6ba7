"""Multipliers for PyTorch training loops (extra `torch`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from longterm.compat import multipliers as rules
from longterm.errors import missing_extra

try:
    import torch
except ImportError as error:
    raise missing_extra("longterm.compat.torch needs PyTorch", "torch") from error
from longterm.errors import InputError, NonFiniteError

_FEW = 8
_DTYPES = (torch.float32, torch.float64)


class Multipliers(torch.nn.Module):  # type: ignore[misc]
    """Lagrange multipliers as a module: add `penalty` to the loss, and call `update` after the optimiser's step.

    Parameters
    ----------
    constraints : int
        Number m of constraints, or of samples where each has its own multiplier.
    rule : Rule, optional
        A rule of `longterm.compat.multipliers`. Left out: `Adaptive`, which has no step size to tune.
    equality : bool or sequence of m bool
        True for constraints g = 0, False for g ≤ 0.
    device, dtype : optional
        Of the multipliers; `to` and `load_state_dict` work as for every module.

    Attributes
    ----------
    values, history : buffers (m,) and (m, 8)
        The multipliers λ, and the other fields of `DualState`.

    Examples
    --------
    Minimise (x − 2)² subject to x ≤ 1. The multiplier is 2.

    >>> import torch
    >>> from longterm.compat.torch import Multipliers
    >>> x = torch.zeros(1, requires_grad=True)
    >>> optimiser, multipliers = torch.optim.SGD([x], lr=0.05), Multipliers(1)
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

    values: torch.Tensor
    history: torch.Tensor

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
        kinds = torch.as_tensor(equality, device="cpu")
        if kinds.dtype != torch.bool or kinds.ndim > 1 or kinds.numel() not in (1, constraints):
            raise InputError("equality", f"{equality!r} does not fit", f"Give True, False or {constraints} of them")
        rules.require_arguments(constraints, self.rule, bool(kinds.any()))
        zeros = torch.zeros(constraints, device=device, dtype=dtype)
        state = rules.init(zeros, self.rule, kinds.expand(constraints).to(device))
        self.register_buffer("values", state.multiplier)
        self.register_buffer("history", torch.stack(state[1:], dim=1))

    def penalty(self, violations: torch.Tensor, indices: torch.Tensor | None = None) -> torch.Tensor:
        """Return ⟨λ, violations⟩ to add to the loss. Gradients flow to the violations only.

        Parameters
        ----------
        violations : tensor (m,)
            g_j at the present parameters, on this minibatch.
        indices : tensor of integers, optional
            Samples, or constraints, that the violations belong to; each at most once. Left out: all.
        """
        values = self.values if indices is None else self.values[indices]
        rules.require_shape(violations, values)
        return torch.dot(values, violations.to(values.dtype))

    def update(self, violations: torch.Tensor, indices: torch.Tensor | None = None) -> None:
        """Move the multipliers by the violations; arguments as for `penalty`.

        Up to 8 violations on the CPU are checked to be finite. A check of more would make a GPU wait.
        """
        values, history = self.values, self.history
        if indices is not None:
            values, history = values[indices], history[indices]
        rules.require_shape(violations, values)
        if len(values) <= _FEW and values.is_cpu and values.dtype in _DTYPES and not torch.compiler.is_compiling():
            # A few floats take a fraction of the time of small tensors.
            given = violations.tolist()
            if not all(map(math.isfinite, given)):
                raise NonFiniteError("violations", f"{given!r} holds NaN or an infinity", "Check this minibatch")
            rows = zip(values.tolist(), history.tolist(), given, strict=True)
            new = [rules.update(self.rule, rules.DualState(value, *row), g) for value, row, g in rows]
            history.numpy()[:] = [state[1:] for state in new]
            values = torch.tensor([state[0] for state in new], dtype=values.dtype)
        else:
            state = rules.DualState(values, *history.unbind(dim=1))
            values, *rest = rules.update(self.rule, state, violations.detach().to(values.dtype))
            history.copy_(torch.stack(rest, dim=1))
        if indices is None:
            self.values = values  # not in place: a backward pass may still need the old ones
        else:
            self.history[indices] = history
            self.values = self.values.index_put((indices,), values)
