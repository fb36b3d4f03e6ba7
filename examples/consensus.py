"""Agents on a ring with different targets reach consensus with their neighbours (Koppel, Jakubiec, Ribeiro 2014).

python examples/consensus.py --help
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from longterm import hindsight
from longterm.cli import run_function
from longterm.lab.report.style import COLOURS, publication_style, save_figure
from longterm.learners import NetworkedSaddlePoint
from longterm.play import Trace, run
from longterm.problems import consensus
from longterm.problems.sets import Box
from longterm.problems.streams import NoisyTargets

FloatArray = NDArray[np.float64]
SPREAD = 0.3
"""The largest distance of a target from its agent's mean."""


@dataclass(frozen=True)
class Agreement:
    """Results at the recorded rounds: rounds first, then the sequences, then the agents."""

    rounds: NDArray[np.int64]
    means: FloatArray
    """Each agent's mean target."""
    decisions: FloatArray
    regret: FloatArray
    apart: FloatArray
    """The largest difference of two neighbours' decisions in that round."""
    means_apart: FloatArray
    """Σ_e |x̄_i − x̄_j| of the means up to that round."""
    regret_bound: FloatArray
    means_apart_bound: FloatArray


def agree(agents: int, rounds: int, sequences: int) -> Agreement:
    """Run the agents on random sequences of noisy targets."""
    edges = [(i, (i + 1) % agents) for i in range(agents)] if agents > 2 else [(0, 1)]
    problem = consensus(agents, edges, Box.cube(1, -1.0, 1.0))
    means = np.random.default_rng(1).permutation(np.linspace(SPREAD - 1, 1 - SPREAD, agents)) * 0.7 + 0.2
    stream, seeds = NoisyTargets(means, SPREAD), range(sequences)
    learner = NetworkedSaddlePoint.for_problem(problem, horizon=rounds)
    recorded = np.unique(
        np.concatenate([np.geomspace(min(10, rounds), rounds, 120).astype(np.int64), _powers_of_ten(rounds)])
    )
    trace: Trace | None = None
    decisions = []
    for t in recorded.tolist():  # in parts, to record the decisions in between
        trace = run(problem, learner, stream, t, seeds=seeds, record=recorded.tolist(), resume=trace, progress=None)
        decisions.append(trace.state.x)
    assert trace is not None
    best = hindsight.best(problem, stream, recorded, seeds=seeds, progress=None)
    x = np.stack(decisions)
    sums = trace.per_constraint_violation[..., : len(edges)]
    return Agreement(
        rounds=recorded,
        means=means,
        decisions=x,
        regret=trace.regret(best),
        apart=np.abs(problem.constraint.values(x)).max(axis=-1),
        means_apart=np.abs(sums).sum(axis=-1) / recorded[:, None],
        regret_bound=learner.bound(problem, recorded)["regret"],
        means_apart_bound=learner.mean_disagreement(problem, recorded),
    )


def table(found: Agreement) -> str:
    """Return the table of regret and disagreement with their bounds at rounds 10, 100, … and the last."""
    lines = [f"{'round':>8}{'regret':>10}{'bound':>10}{'Σ|x̄_i − x̄_j|':>16}{'bound':>10}{'|x_i − x_j| now':>18}"]
    lines += [
        f"{found.rounds[k]:>8}{found.regret[k].mean():>10.2f}{found.regret_bound[k]:>10.0f}"
        f"{found.means_apart[k].mean():>16.4f}{found.means_apart_bound[k]:>10.3g}{found.apart[k].mean():>18.4f}"
        for k in np.searchsorted(found.rounds, _powers_of_ten(int(found.rounds[-1])))
    ]
    return "\n".join(lines)


def _powers_of_ten(rounds: int) -> list[int]:
    """Return 10, 100, … below the last round, and the last round."""
    return [10**k for k in range(1, len(str(rounds))) if 10**k < rounds] + [rounds]


def agents_table(found: Agreement) -> str:
    """Return the table of each agent's mean target and last decision."""
    final = found.decisions[-1].mean(axis=0)
    lines = [f"{'agent':>8}{'own mean target':>18}{'last decision':>16}"]
    lines += [f"{i + 1:>8}{own:>18.3f}{x:>16.3f}" for i, (own, x) in enumerate(zip(found.means, final, strict=True))]
    return "\n".join([*lines, f"{'all':>8}{found.means.mean():>18.3f}"])


def figure(found: Agreement, title: str, folder: Path) -> list[Path]:
    """Draw the decisions of one sequence, and the disagreement with its bound."""
    with publication_style() as plt:
        drawing, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
        for i, own in enumerate(found.means):
            left.plot(found.rounds, found.decisions[:, 0, i], color=COLOURS[i % 8][0], label=f"agent {i + 1}")
            left.plot(
                found.rounds[-1] * 1.15, own, marker="<", color=COLOURS[i % 8][0], clip_on=False, linestyle="none"
            )
        left.axhline(found.means.mean(), color="black", linestyle=":", linewidth=1, label="mean of all targets")
        left.set(xscale="log", xlabel="round $t$", ylabel="decision $x_{i,t}$ (marks: own mean target)")
        right.plot(found.rounds, found.apart.mean(axis=1), color=COLOURS[0][0], label="worst neighbours, this round")
        right.plot(found.rounds, found.means_apart.mean(axis=1), color=COLOURS[1][0], label="all edges, means so far")
        right.plot(found.rounds, found.means_apart_bound, "--", color=COLOURS[1][0], label="bound of the latter")
        right.set(xscale="log", yscale="log", xlabel="round $t$", ylabel="disagreement")
        for axis in (left, right):
            axis.grid(visible=True, which="major", alpha=0.3)
        left.legend(frameon=False, fontsize=8, ncols=2)
        right.legend(frameon=False, fontsize=8)
        drawing.suptitle(title)
        return save_figure(drawing, folder, "consensus")


def main(agents: int = 6, rounds: int = 20_000, sequences: int = 10, out: Path = Path("results")) -> None:
    """Let agents on a ring with different noisy targets agree; print regret and disagreement with their bounds.

    Parameters
    ----------
    agents
        The number of agents.
    rounds
        T.
    sequences
        The number of random sequences.
    out
        The folder of the figure.
    """
    found = agree(agents, rounds, sequences)
    title = f"{agents} agents on a ring, T = {rounds:,}, {sequences} sequences"
    sys.stdout.write("\n".join([title, table(found), agents_table(found), ""]))
    for path in figure(found, title, out):
        sys.stdout.write(f"wrote {path}\n")


if __name__ == "__main__":
    sys.exit(run_function(main))
