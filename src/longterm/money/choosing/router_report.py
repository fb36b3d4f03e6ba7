"""A report of a router: figures of the settled requests, as a table and as a drawing, and alerts."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.errors import InputError

LEAST_REQUESTS = 100
"""Alerts begin after this many requests."""
MOST_UNSPENT, MOST_SHARE = 0.2, 0.95
"""Money piles up above this part of the ceiling so far, if one model answers at least this share of recent requests."""
LONGEST_UNTRIED = 1000
"""A model is untried for long after this many requests."""


@dataclass(frozen=True)
class RouterAlert:
    """A reason to look at a router.

    Parameters
    ----------
    kind : {"unspent", "untried", "bounds"}
        "unspent": money piles up while one model answers almost everything. "untried": a model has answered no request
        for long. "bounds": a model's requests cost more than their bound.
    model : str
        The model.
    text : str
        What was seen, and what to do.
    """

    kind: Literal["unspent", "untried", "bounds"]
    model: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class RouterHealth:
    """Figures of a router in all processes, from which alerts are made.

    Parameters
    ----------
    requests : int
        The number of requests.
    unspent : float
        The part of the ceiling so far that was neither spent nor held back, in [0, 1]; 0 without a ceiling.
    shares : mapping of str to float
        The share of each model in use among the recent settled requests.
    untried : mapping of str to float
        The number of requests since the last one of each model whose outcome is known.
    excess : mapping of str to float
        The largest cost of a request as a multiple of its bound, by model, as the bound was given.
    """

    requests: int
    unspent: float
    shares: dict[str, float]
    untried: dict[str, float]
    excess: dict[str, float]

    @property
    def alerts(self) -> tuple[RouterAlert, ...]:
        """The alerts."""
        found = []
        top = max(self.shares, key=self.shares.__getitem__)
        if self.requests < LEAST_REQUESTS:
            return ()
        if len(self.shares) > 1 and self.unspent > MOST_UNSPENT and self.shares[top] >= MOST_SHARE:
            what = (
                f"{self.unspent:.0%} of the money is unspent while {top} answers {self.shares[top]:.0%} of the requests"
            )
            remedy = (
                "Check prices and rewards. Call teach() with some labels, or lower per_request if no model earns more"
            )
            found.append(RouterAlert("unspent", top, f"{what}. {remedy}."))
        for name, requests in self.untried.items():
            if requests >= LONGEST_UNTRIED:
                what = f"{name} has no outcome in the last {requests:,.0f} requests"
                remedy = "Give a smaller largest= if its bound was never saved, try route(models=), or remove it"
                found.append(RouterAlert("untried", name, f"{what}. {remedy}."))
        for name, excess in self.excess.items():
            if excess > 1:
                what = f"a request to {name} cost {excess:.1f} times its bound, so the ceiling may be exceeded"
                found.append(RouterAlert("bounds", name, f"{what}. Give the real bound: largest={{{name!r}: …}}."))
        return tuple(found)


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
    alerts : tuple of RouterAlert
        Reasons to look at the router, from the requests of all processes.
    """

    models: tuple[str, ...]
    actions: np.ndarray[Any, np.dtype[np.int64]]
    rewards: FloatArray
    costs: FloatArray
    prices: FloatArray
    per_request: float | None
    alerts: tuple[RouterAlert, ...] = ()

    def __str__(self) -> str:
        width = max(len(name) for name in ("model", *self.models))
        lines = [f"{'model':<{width}}{'share':>8}{'reward':>9}{'cost':>12}{'of the bill':>13}"]
        total = max(float(self.costs.sum()), 1e-300)
        for action, name in enumerate(self.models):
            mine = self.actions == action
            if mine.any():
                mean, cost = self.rewards[mine].mean(), self.costs[mine].mean()
                bill = self.costs[mine].sum() / total
                lines.append(f"{name:<{width}}{mine.mean():>8.1%}{mean:>9.4f}{cost:>12.3g}{bill:>13.1%}")
        if len(self.rewards):
            lines.append(f"{'all':<{width}}{1:>8.1%}{self.rewards.mean():>9.4f}{self.costs.mean():>12.3g}{1:>13.1%}")
        else:
            lines.append(
                "no request has both its reward and its cost from this process; metrics() counts all processes"
            )
        if self.per_request is not None:
            lines.append(f"ceiling {self.per_request:.3g} per request")
        lines += [f"alert: {alert}" for alert in self.alerts]
        return "\n".join(lines)

    def figure(self, path: str | PathLike[str]) -> Path:
        """Draw reward against cost, the shares of the models and the price over time (extra `experiments`)."""
        if not len(self.rewards) or self.costs.max() <= 0:
            raise InputError(
                "report", "is empty, since no request with a cost is settled", "Settle some requests first"
            )
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
