"""A report of a router: figures of the settled requests, as a table and as a drawing."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.errors import InputError


@dataclass(frozen=True, eq=False)
class RouterReport:
    """Figures of the settled requests.

    Parameters
    ----------
    models : tuple of str
        The names.
    actions : array of int, shape (n,)
        The model of each request.
    rewards, costs, prices : array, shape (n,)
        The rewards and costs of the requests, and the price of money when they were routed.
    per_request : float or None
        The ceiling.
    """

    models: tuple[str, ...]
    actions: np.ndarray[Any, np.dtype[np.int64]]
    rewards: FloatArray
    costs: FloatArray
    prices: FloatArray
    per_request: float | None

    def __str__(self) -> str:
        lines = [f"{'model':<32}{'share':>8}{'reward':>9}{'cost':>12}{'of the bill':>13}"]
        total = max(float(self.costs.sum()), 1e-300)
        for action, name in enumerate(self.models):
            mine = self.actions == action
            if mine.any():
                mean, cost = self.rewards[mine].mean(), self.costs[mine].mean()
                bill = self.costs[mine].sum() / total
                lines.append(f"{name:<32}{mine.mean():>8.1%}{mean:>9.4f}{cost:>12.3g}{bill:>13.1%}")
        if len(self.rewards):
            lines.append(f"{'all':<32}{1:>8.1%}{self.rewards.mean():>9.4f}{self.costs.mean():>12.3g}{1:>13.1%}")
        if self.per_request is not None:
            lines.append(f"ceiling {self.per_request:.3g} per request")
        return "\n".join(lines)

    def figure(self, path: str | PathLike[str]) -> Path:
        """Draw reward against cost, the shares of the models and the price over time (extra `experiments`)."""
        if not len(self.rewards) or self.costs.max() <= 0:
            raise InputError("report", "has no settled request with a cost", "Settle some requests first")
        import matplotlib.pyplot as plt

        drawing, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
        number = np.arange(1, len(self.rewards) + 1)
        left.set(xscale="log", xlim=(0.5 * self.costs[self.costs > 0].min(), 2 * self.costs.max()))
        for action, name in enumerate(self.models):
            mine = self.actions == action
            if mine.any():
                left.scatter(self.costs[mine].mean(), self.rewards[mine].mean(), label=name)
                middle.plot(number, np.cumsum(mine) / number, label=name)
        left.scatter(self.costs.mean(), self.rewards.mean(), label="router", marker="*", color="black")
        if self.per_request is not None:
            left.axvline(self.per_request, label="ceiling", linestyle="--", color="grey")
        left.set(xlabel="mean cost of a request, dollars", ylabel="mean reward", title="Models")
        middle.set(xlabel="request", ylabel="share so far", title="Shares")
        right.plot(number, self.prices)
        right.set(xlabel="request", ylabel="reward per dollar", title="Price of money")
        left.legend(fontsize=8)
        target = Path(path)
        drawing.savefig(target, dpi=150)
        plt.close(drawing)
        return target
