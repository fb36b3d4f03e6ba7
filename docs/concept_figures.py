"""Draw the ideas of docs/explanation/concepts.md: python docs/concept_figures.py writes docs/_static/figures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from page_figures import FOLDER, GREY, collected

from longterm import AOGD, hindsight, run
from longterm.problems import two_dimensional
from longterm.problems.streams import NoisyTargets

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
PROBLEM = two_dimensional()
"""Targets in the unit disc; the first coordinate is at most ¼ in the long run."""


def update_rule() -> None:
    """One step: the loss pulls to the target, the multiplier pushes back, and the sum is the next decision."""
    x, target, step, multiplier = np.array([0.5, -0.1]), np.array([0.8, 0.6]), 0.8, 0.75
    pull, push = step * (target - x), step * multiplier * np.array([-1.0, 0.0])
    figure, axes = plt.subplots(figsize=(4.8, 3.8))
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(angle), np.sin(angle), color=GREY, linewidth=1)
    axes.axvline(0.25, color=ORANGE, linestyle="--")
    axes.text(0.28, -0.5, "limit $x_1 ≤ 1/4$", color=ORANGE)
    axes.plot(*target, marker="*", markersize=12, color=GREEN, linestyle="none")
    for start, arrow, colour in ((x, pull, GREEN), (x + pull, push, ORANGE), (x, pull + push, BLUE)):
        axes.annotate("", start + arrow, start, arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.5})
    axes.plot(*np.array([x, x + pull + push]).T, marker="o", color=BLUE, linestyle="none")
    for text, place, colour in (
        ("target", (0.66, 0.72), GREEN),
        ("decision $x_t$", (0.4, -0.26), BLUE),
        ("loss pulls", (0.72, 0.12), GREEN),
        ("multiplier pushes", (-0.02, 0.53), ORANGE),
        ("next decision", (-0.58, 0.38), BLUE),
    ):
        axes.text(*place, text, color=colour)
    axes.set(aspect="equal", xlabel="first coordinate", ylabel="second coordinate", xlim=(-1.1, 1.3))
    figure.savefig("update_rule.svg")


def beta() -> None:
    """Regret and violation of A-OGD after 2,000 rounds, by β."""
    stream = NoisyTargets([0.7, 0.2], spread=0.3)
    values = np.round(np.arange(0.2, 0.91, 0.1), 1)
    regret, violation = [], []
    for one in values:
        trace = run(PROBLEM, AOGD.for_problem(PROBLEM, steps="strongly convex", beta=float(one)), stream, 2000)
        regret.append(trace.regret(hindsight.best(trace))[-1])
        violation.append(trace.signed_violation[-1])
    figure, axes = plt.subplots()
    axes.plot(values, violation, marker="o", color=ORANGE, label="violation")
    axes.plot(values, regret, marker="s", color=BLUE, label="regret")
    axes.axhline(0, color=GREY, linewidth=0.6)
    axes.set(xlabel="β", ylabel="sum over 2,000 rounds")
    axes.legend()
    figure.savefig("beta.svg")


def strongly_convex() -> None:
    """A strongly convex loss lies above a parabola at every point; a convex one above a line only."""
    x, y = np.linspace(-1, 3, 200), 0.5
    f, slope, sigma = 0.5 * x**2 + 0.08 * x**4, y + 0.32 * y**3, 1.0
    line = 0.5 * y**2 + 0.08 * y**4 + slope * (x - y)
    figure, axes = plt.subplots()
    axes.plot(x, f, color=BLUE, label="loss f")
    axes.plot(x, line + sigma / 2 * (x - y) ** 2, color=GREEN, linestyle="--", label="parabola below f (σ = 1)")
    axes.plot(x, line, color=GREY, linestyle=":", label="tangent at y")
    axes.plot(y, 0.5 * y**2 + 0.08 * y**4, marker="o", color=BLUE, linestyle="none")
    axes.set(xlabel="x", ylabel="value", ylim=(-1, 6))
    axes.legend()
    figure.savefig("strongly_convex.svg")


def slater_point() -> None:
    """A point where the constraint has slack ε."""
    x = np.linspace(-1.5, 1.5, 200)
    figure, axes = plt.subplots()
    axes.plot(x, x**2 - 0.6, color=ORANGE, label="constraint g")
    axes.axhline(0, color=GREY, linewidth=0.8)
    inside = np.abs(x) <= 0.6**0.5
    axes.plot(x[inside], 0 * x[inside], color=GREEN, linewidth=4, label="feasible: g(x) ≤ 0")
    axes.plot(0.2, 0.2**2 - 0.6, marker="o", color=BLUE, linestyle="none", label="Slater point")
    axes.annotate("", (0.2, -0.56), (0.2, 0.0), arrowprops={"arrowstyle": "<->", "color": BLUE})
    axes.text(0.26, -0.33, "slack ε", color=BLUE)
    axes.set(xlabel="x", ylabel="g(x)", ylim=(-0.8, 1.4))
    axes.legend(loc="upper center")
    figure.savefig("slater_point.svg")


def sublinear() -> None:
    """The mean regret per round of A-OGD falls; that of a constant decision does not."""
    stream, rounds = NoisyTargets([0.1, 0.5], spread=0.3), np.unique(np.geomspace(2, 3000, 60).astype(int))
    trace = run(PROBLEM, AOGD.for_problem(PROBLEM), stream, 3000, record=rounds.tolist())
    best = hindsight.best(trace)
    fixed = 0.5 * np.sum(np.asarray([0.1, 0.5]) ** 2)  # the extra loss of staying at the origin, per round, on average
    figure, axes = plt.subplots()
    axes.plot(trace.rounds, trace.regret(best) / trace.rounds, color=BLUE, label="A-OGD: regret is sublinear")
    axes.plot(trace.rounds, np.full(len(trace.rounds), fixed), color=ORANGE, label="always (0, 0): regret is linear")
    axes.set(xscale="log", xlabel="rounds T", ylabel="regret ÷ T", ylim=(0, None))
    axes.legend()
    figure.savefig("sublinear.svg")


DRAWN = (update_rule, beta, strongly_convex, slater_point, sublinear)


def main() -> None:
    """Write the figures."""
    FOLDER.mkdir(exist_ok=True)
    with collected(FOLDER):
        for draw in DRAWN:
            draw()


if __name__ == "__main__":
    main()
