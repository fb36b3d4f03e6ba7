"""Figures 1 and 2 of the paper for A-OGD: doubly-stochastic matrices, both regimes.

python -m longterm.experiments.doubly_stochastic --help
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.bounds import Bound, theorem_1, theorem_1_as_printed, theorem_1_strongly_convex
from longterm.engines import compare
from longterm.hindsight import nearest_to_mean
from longterm.learners import AOGD, Learner, MahdaviOGD, MirrorProx, twice
from longterm.problems import Problem, doubly_stochastic
from longterm.streams import RandomPermutations


@dataclass(frozen=True)
class Curve:
    """One learner's run: rounds first, then the sequences."""

    name: str
    rounds: NDArray[np.int64]
    regret: FloatArray
    violation: FloatArray
    bound: Bound | None = None
    printed: Bound | None = None


def reproduce(size: int, rounds: int, beta: float, sequences: int, *, baselines: bool = False) -> list[Curve]:
    """Run both regimes of A-OGD, and what they are measured against, over the same random permutation matrices."""
    problem = doubly_stochastic(size)
    stream, seeds = RandomPermutations(size), range(sequences)
    learners: dict[str, Learner[Any]] = {
        "Convex A-OGD": AOGD.convex(problem, beta),
        "Strongly convex A-OGD": AOGD.strongly_convex(problem, beta),
    }
    if baselines:
        learners |= measured_against(problem, rounds)
    traces = compare(problem, learners, stream, rounds, seeds=seeds)
    kept = next(iter(traces.values())).rounds
    best = nearest_to_mean(problem, stream, kept, seeds=seeds)
    bounds = {
        "Convex A-OGD": theorem_1(problem.constants, kept, beta),
        "Strongly convex A-OGD": theorem_1_strongly_convex(problem.constants, kept, beta),
    }
    printed = {"Convex A-OGD": theorem_1_as_printed(problem.constants, kept, beta)}
    return [
        Curve(name, kept, trace.regret(best), trace.signed_violation, bounds.get(name), printed.get(name))
        for name, trace in traces.items()
    ]


def measured_against(problem: Problem, rounds: int) -> dict[str, Learner[Any]]:
    """Mahdavi, Jin and Yang's methods: as the paper's figures show them, and Convex OGD in its two fair forms.

    The paper's Convex OGD has one multiplier for the maximum, but counts m = p² + 4p in its steps. All three take the
    paper's D = √p, which is too small, and δ = 2(m + 1)G², to be compared with its figures.
    """
    stated_D = float(np.sqrt(np.sqrt(problem.dimension)))
    stated = replace(problem, declared={"constraint_bound": stated_D})
    return {
        "Convex mirror prox": MirrorProx.tuned(problem, rounds),
        "Convex OGD": MahdaviOGD.one_multiplier_counted_as_many(problem, rounds, constraint_bound=stated_D),
        "Convex OGD, a multiplier each": MahdaviOGD.vector(stated, rounds, delta=twice),
        "Convex OGD, one multiplier": MahdaviOGD.aggregate(stated, rounds, delta=twice),
    }


def table(curves: Sequence[Curve]) -> str:
    """The last round of each curve beside its bounds."""
    lines = [
        f"{'learner':<30}{'regret':>10}{'± std':>8}{'bound':>10}{'printed':>10}"
        f"{'Σ g(x_t)':>12}{'± std':>8}{'bound':>10}{'printed':>10}"
    ]
    for curve in curves:
        columns = [f"{curve.name:<30}"]
        for part, width in (("regret", 10), ("violation", 12)):
            last = getattr(curve, part)[-1]
            columns.append(f"{last.mean():>{width}.2f}{last.std():>8.2f}")
            bounds = (curve.bound, curve.printed)
            columns += [f"{'–' if b is None else format(getattr(b, part)[-1], '.0f'):>10}" for b in bounds]
        lines.append("".join(columns))
    return "\n".join(lines)


def figure(curves: Sequence[Curve], title: str, folder: Path) -> list[Path]:
    """Regret and violation with their bounds, on logarithmic axes, as PNG, PDF and SVG."""
    from longterm.experiments.style import publication_style

    with publication_style() as plt:
        drawing, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
        for axis, part, label in zip(
            axes, ("regret", "violation"), ("cumulative regret", r"cumulative violation $\Sigma\, g(x_t)$"), strict=True
        ):
            for k, curve in enumerate(curves):
                values, colour = getattr(curve, part), f"C{k}"
                mean, spread = values.mean(axis=1), values.std(axis=1)
                axis.plot(curve.rounds, mean, color=colour, label=curve.name)
                axis.fill_between(curve.rounds, mean - spread, mean + spread, color=colour, alpha=0.25, linewidth=0)
                if curve.bound is not None:
                    bound = getattr(curve.bound, part)
                    axis.plot(curve.rounds, bound, "--", color=colour, label=f"bound, {curve.name}")
                if curve.printed is not None:
                    axis.plot(
                        curve.rounds, getattr(curve.printed, part), ":", color=colour, label="the same, as printed"
                    )
            axis.set(xscale="log", yscale="log", xlabel="round $t$", ylabel=label)
            axis.grid(visible=True, which="major", alpha=0.3)
        handles, labels = axes[0].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
        drawing.suptitle(title)
        paths = [folder / f"doubly_stochastic.{ending}" for ending in ("png", "pdf", "svg")]
        for path in paths:
            drawing.savefig(path)
    return paths


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m longterm.experiments.doubly_stochastic",
        description="A-OGD on doubly-stochastic matrices (Figures 1 and 2 of Jenatton, Huang, Archambeau 2016): "
        "prints regret and violation beside their bounds and draws them.",
    )
    parser.add_argument("--size", type=int, default=8, help="p, the matrices are p × p (default 8)")
    parser.add_argument("--rounds", type=int, default=1000, help="T (default 1000)")
    parser.add_argument("--beta", type=float, default=2 / 3, help="trade-off in (0, 1) (default 2/3)")
    parser.add_argument("--sequences", type=int, default=10, help="random sequences to average over (default 10)")
    parser.add_argument(
        "--baselines", action="store_true", help="also the methods the paper compares with, as it shows them and fairly"
    )
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the figure (default results)")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    curves = reproduce(chosen.size, chosen.rounds, chosen.beta, chosen.sequences, baselines=chosen.baselines)
    title = (
        f"Doubly-stochastic matrices, p = {chosen.size}, T = {chosen.rounds}, "
        f"β = {chosen.beta:.3g}, {chosen.sequences} sequences"
    )
    print(title)
    print(table(curves))
    print("Bounds in closed form, with the true D = p + 1 (the paper's √p is too small). 'printed' is Theorem 1 as")
    print("printed: its regret line is false for β > 1/2, its violation line merges constants (docs/theory.md).")
    for path in figure(curves, title, chosen.out):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
