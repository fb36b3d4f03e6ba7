"""Remarks on the two experiments of the paper: its claims held against what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Literal

from longterm.experiments.result import Curve, Remark, Result

CLOSE = 0.1
"""A value within this share of one that was read off a figure by eye counts as the same."""
NOISE_FLOOR_SHARE = 0.15
"""The noise floor explains mirror prox's regret if it is within this share of it."""


def on_doubly_stochastic(result: Result) -> Iterator[Remark]:
    """Figures 1 and 2."""
    curves, p = {curve.name: curve for curve in result.curves}, int(result.problem["size"])
    drawn = curves.get("Convex OGD")
    fair = [curves[name] for name in curves if name.startswith("Convex OGD, ")]
    if drawn is not None and fair:
        m = p * p + 4 * p
        better = all(c.mean("regret")[-1] < drawn.mean("regret")[-1] for c in fair)
        numbers = "; ".join(f"{c.name}: regret {_last(c, 'regret')}, Σ g {_last(c, 'signed_violation')}" for c in fair)
        yield Remark(
            "note",
            f"The paper's Convex OGD mixes two forms: one multiplier for the maximum, but m = {m} in its steps, which "
            "makes them several times too small. Set up as its authors do it is "
            f"{'better' if better else 'no better'}: {numbers}.",
        )
    yield Remark(
        "note",
        f"The paper states D = √p = {sqrt(p):.3g}; the true one is p + 1 = {p + 1}, attained by one row of −1's. "
        "A-OGD's steps do not use D; those of Convex OGD do, and the curves here keep the paper's, to be compared.",
    )
    if "Convex mirror prox" in curves:
        T, regret = int(result.rounds[-1]), curves["Convex mirror prox"].mean("regret")[-1]
        eta = T ** (-1 / 3)
        floor = eta / (2 - eta) * (p - 1) / 2 * T
        explained = abs(floor - regret) <= NOISE_FLOOR_SHARE * regret
        yield Remark(
            "note",
            f"Mirror prox's regret looks linear. Its constant step η = {eta:.3g} alone costs η/(2 − η)·(p − 1)/2 in "
            f"every round, {floor:.4g} in all; measured {regret:.4g}. "
            + ("So it is that noise floor, not a T that is too small." if explained else "That does not explain it."),
        )
    yield Remark(
        "note",
        "Bounds are drawn as corrected and, dotted, as the paper prints them. The printed regret bound of Theorem 1 is "
        "false for β > 1/2 and large T (`late_reversal` breaks it); the corrected one holds.",
    )


def on_budgets(result: Result, *, of_the_paper: bool) -> Iterator[Remark]:
    """Figures 3 and 4."""
    curves = {curve.name: curve for curve in result.curves}
    ours, theirs = curves.get("Convex A-OGD"), curves.get("Convex OGD")
    facts = result.problem
    if ours is not None and theirs is not None:
        below = bool(ours.mean("regret")[-1] < theirs.mean("regret")[-1])
        yield Remark(
            _verdict(below),
            f"Regret: A-OGD {_last(ours, 'regret')}, Convex OGD {_last(theirs, 'regret')}. "
            f"A-OGD is {'below, as in Figure 3' if below else 'not below, unlike in Figure 3'}.",
        )
        a, b = ours.mean("signed_violation")[-1], theirs.mean("signed_violation")[-1]
        as_drawn = bool(b < a < 0)
        yield Remark(
            _verdict(as_drawn),
            f"Signed violation: A-OGD {_last(ours, 'signed_violation')}, Convex OGD "
            f"{_last(theirs, 'signed_violation')}. Figure 4 has both negative, and Convex OGD lower; here that is "
            f"{'so, too' if as_drawn else 'not so'}. "
            f"Rounds that break the budget are not undone by others: the hard violations are "
            f"{_last(ours, 'hard_violation')} and {_last(theirs, 'hard_violation')}.",
        )
    spent = bool(facts["comparator_on_the_boundary"])
    yield Remark(
        _verdict(spent),
        f"The offline solutions lie {'on' if spent else 'inside'} the boundary of the budget ρ = {facts['budget']:.4g} "
        f"(unused: {facts['comparator_unused_budget']:.2g} of it), with {facts['offline_nonzeros']} of "
        f"{facts['dimension']} coordinates not zero.",
    )
    exact = curves.get("Convex OGD, exact D")
    if theirs is not None and exact is not None:
        D = facts["constants"]["constraint_bound"]
        yield Remark(
            "note",
            f"The paper's D = √d R + R²/2 is larger than the true {D:.4g}, and makes Convex OGD's steps smaller "
            f"than need be. With the true one its regret is {_last(exact, 'regret')}, not {_last(theirs, 'regret')}.",
        )
    if of_the_paper:
        yield from _what_cannot_be_matched(result, [curve for curve in (ours, theirs) if curve is not None])


def _what_cannot_be_matched(result: Result, curves: list[Curve]) -> Iterator[Remark]:
    """Scales that are far from the figures, said plainly."""
    for measure, words, figure in (("regret", "regret", 3), ("signed_violation", "signed violation", 4)):
        far = [c for c in curves if measure in c.read_off and not is_near(c, measure)]
        if far:
            numbers = "; ".join(f"{c.name} {_last(c, measure)}, the figure about {c.read_off[measure]:,g}" for c in far)
            yield Remark(
                "differs",
                f"The scale of Figure {figure} ({words}) on {result.name} cannot be matched: {numbers}. The paper "
                "gives neither ρ nor the scaling of the data. We take the publisher's files as they are and ρ for 30 % "
                "non-zeros, and found no reading of the paper that gives its numbers.",
            )


def is_near(curve: Curve, measure: str) -> bool:
    """Whether the last round is what was read off the paper's figure, to the eye's accuracy or the deviation."""
    away = abs(curve.mean(measure)[-1] - curve.read_off[measure])
    return bool(away <= max(CLOSE * abs(curve.read_off[measure]), float(curve.std(measure)[-1])))


def _verdict(holds: bool) -> Literal["matches", "differs"]:
    return "matches" if holds else "differs"


def _last(curve: Curve, measure: str) -> str:
    return curve.last(measure).partition(" ±")[0]
