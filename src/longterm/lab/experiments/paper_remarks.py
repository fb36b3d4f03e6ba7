"""Remarks on the paper's experiments: claims of the paper compared with measured numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from longterm.lab.experiments.paper_experiments import OF_THE_PAPER, WITH_A_BUDGET
from longterm.lab.experiments.remarks import LABELS, is_near_figure
from longterm.lab.experiments.result import LOGGED, Curve, Remark, Result
from longterm.learners import AOGD, MahdaviOGD, MirrorProx

NOISE_FLOOR_SHARE = 0.15
"""The noise floor explains mirror prox's regret if the two differ by at most this share."""


PANELS = {
    "dsm": ("1", "2", "signed_violation"),
    "ijcnn1": ("3, left", "4, left", LOGGED),
    "covtype": ("3, right", "4, right", LOGGED),
}
"""The paper's figure of the regret, that of the violation, and the measure of the latter."""


def with_paper_remarks(result: Result) -> Result:
    """Return the result with remarks on the paper's claims added, if it is one of the paper's experiments."""
    if not any(curve.role == "paper" for curve in result.curves):  # a user's experiment may have any name
        return result
    if result.name == "dsm" and "size" in result.problem:
        remarks = _on_doubly_stochastic(result)
    elif result.name in WITH_A_BUDGET and "offline_nonzeros" in result.problem:
        remarks = _on_budgets(result)
    else:
        return result
    return replace(result, remarks=(*result.remarks, *_on_panels(result.name), *remarks))


def _on_panels(name: str) -> Iterator[Remark]:
    """Yield a remark that says which panel is which figure of the paper."""
    if name in PANELS:
        regret, violation, measure = PANELS[name]
        text = f"On linear axes the panel of the regret is Figure {regret} of the paper"
        yield Remark("note", f"{text}, that of the {LABELS[measure]} Figure {violation}.")


def _on_doubly_stochastic(result: Result) -> Iterator[Remark]:
    """Yield remarks on Figures 1 and 2."""
    curves, p = {curve.name: curve for curve in result.curves}, int(result.problem["size"])
    drawn, fair = (
        curves.get(MahdaviOGD.title),
        [one for name, one in curves.items() if name.startswith(f"{MahdaviOGD.title}, ")],
    )
    if drawn is not None and fair:
        better = [c.name for c in fair if c.mean("regret")[-1] < drawn.mean("regret")[-1]]
        verdict = "better" if len(better) == len(fair) else f"better as {better[0]}" if better else "no better"
        numbers = "; ".join(f"{c.name}: regret {_last(c, 'regret')}, Σ g {_last(c, 'signed_violation')}" for c in fair)
        yield Remark(
            "note",
            f"The paper's OGD mixes two forms: one multiplier for the maximum, but m = {p * p + 4 * p} in its "
            "steps, which makes them several times too small. With its authors' settings and the true D it is "
            f"{verdict}: {numbers}.",
        )
    if MirrorProx.title in curves:
        T, regret = int(result.rounds[-1]), curves[MirrorProx.title].mean("regret")[-1]
        eta = T ** (-1 / 3)
        floor = eta / (2 - eta) * (p - 1) / 2 * T
        explained = abs(floor - regret) <= NOISE_FLOOR_SHARE * regret
        yield Remark(
            "note",
            f"Mirror prox's regret looks linear. Its constant step η = {eta:.3g} alone costs η/(2 − η)·(p − 1)/2 in "
            f"every round, {floor:.4g} in total; measured {regret:.4g}. "
            + ("This noise floor explains it." if explained else "This does not explain it."),
        )
    yield Remark(
        "note",
        "Bounds are drawn as corrected and, dotted, as the paper prints them. The printed regret bound of Theorem 1 is "
        "false for β > 1/2 and large T (`late_reversal` breaks it); the corrected one holds.",
    )


def _on_budgets(result: Result) -> Iterator[Remark]:
    """Yield remarks on Figures 3 and 4."""
    curves = {curve.name: curve for curve in result.curves}
    ours, theirs = curves.get(AOGD.title), curves.get(MahdaviOGD.title)
    facts = result.problem
    if ours is not None and theirs is not None:
        below = bool(ours.mean("regret")[-1] < theirs.mean("regret")[-1])
        yield Remark(
            _verdict(below),
            f"Regret: A-OGD {_last(ours, 'regret')}, OGD {_last(theirs, 'regret')}. "
            f"A-OGD is {'below, as in Figure 3' if below else 'not below, unlike in Figure 3'}.",
        )
        a, b = ours.mean("signed_violation")[-1], theirs.mean("signed_violation")[-1]
        as_drawn = bool(b < a < 0)
        yield Remark(
            _verdict(as_drawn),
            f"Signed violation: A-OGD {_last(ours, 'signed_violation')}, OGD "
            f"{_last(theirs, 'signed_violation')}. In Figure 4 both are negative and OGD is lower; here this is "
            f"{'so too' if as_drawn else 'not so'}. The hard violations, in which slack does not offset violation, are "
            f"{_last(ours, 'hard_violation')} and {_last(theirs, 'hard_violation')}.",
        )
        if LOGGED in result.measures:
            yield Remark(
                "note",
                "Figure 4 is consistent with a sum of g over logged rounds only, t = 8, 16, 32, …, T. That sum is "
                f"{_last(ours, LOGGED)} for A-OGD and {_last(theirs, LOGGED)} for OGD; the sums over all rounds "
                f"are {_last(ours, 'signed_violation')} and {_last(theirs, 'signed_violation')}. Both are drawn.",
            )
    spent = bool(facts["comparator_on_the_boundary"])
    yield Remark(
        _verdict(spent),
        f"The offline solutions lie {'on' if spent else 'inside'} the boundary of the budget ρ = {facts['budget']:.4g} "
        f"(unused: {facts['comparator_unused_budget']:.2g} of it), with {facts['offline_nonzeros']} of "
        f"{facts['dimension']} non-zero coordinates.",
    )
    exact = curves.get(f"{MahdaviOGD.title}, exact D")
    if theirs is not None and exact is not None:
        D = facts["constants"]["constraint_bound"]
        yield Remark(
            "note",
            f"The paper's D = √d R + R²/2 is larger than the true {D:.4g} and makes OGD's steps too small. "
            f"With the true D its regret is {_last(exact, 'regret')} instead of {_last(theirs, 'regret')}.",
        )
    if result.name in OF_THE_PAPER:
        yield from _scale_differences(result, [curve for curve in (ours, theirs) if curve is not None])


def _scale_differences(result: Result, curves: list[Curve]) -> Iterator[Remark]:
    """Yield a remark where the scales differ from the figures."""
    far = {
        f"{LABELS[measure]} (Figure {figure})": found
        for measure, figure in (("regret", 3), (LOGGED, 4))
        if (found := [_beside(c, measure) for c in curves if measure in c.read_off and not is_near_figure(c, measure)])
    }
    if far:
        numbers = ". ".join(f"{words[0].upper()}{words[1:]}: {'; '.join(found)}" for words, found in far.items())
        yield Remark(
            "differs",
            f"Not all scales of the figures match on {result.name}. {numbers}. The paper gives neither ρ nor the "
            "scaling of the data. We use the publisher's files unchanged and ρ for 30 % non-zeros.",
        )


def _beside(curve: Curve, measure: str) -> str:
    return f"{curve.name} {_last(curve, measure)}, the figure about {curve.read_off[measure]:,g}"


def _verdict(holds: bool) -> Literal["matches", "differs"]:
    return "matches" if holds else "differs"


def _last(curve: Curve, measure: str) -> str:
    return curve.last(measure).partition(" ±")[0]
