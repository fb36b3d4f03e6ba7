"""Regret and violation of the streaming rules on real data: ten random sequences, as many rounds as there are rows.

Logistic loss under ‖x‖₁ + ½‖x‖² ≤ ρ, ρ such that 30 % of the best fixed decision is not 0. Constants given by the
problem, then found online. Means over the sequences; regret against the certified best decision in hindsight.

    python benchmarks/linear_regret.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linear_timing import data_set
from longterm import Problem, hindsight
from longterm.linear_model import _layout as at
from longterm.linear_model._layout import Parameters, State
from longterm.linear_model.play import decision, play
from longterm.problems import budgeted_logistic
from longterm.streams import ResampledRows

BUDGETS = {"ijcnn1": 3.419, "covtype": 6.987}
SEEDS = range(10)


def rules(problem: Problem) -> dict[str, tuple[Any, Parameters]]:
    """Each rule with its constants given, and with those that it finds itself."""
    c = problem.constants
    R, G, D, F, G_f = c.radius, c.gradient_bound, c.constraint_bound, c.loss_range, c.loss_gradient_bound
    base = {"budget": problem.constraint.budget, "l1": 1.0, "l2": 1.0, "radius": R}  # type: ignore[attr-defined]
    return {
        "A-OGD": ("aogd", Parameters(**base, step=R / G, theta_0=6 * R * G)),
        "A-FTRL": ("aftrl", Parameters(**base, step=R / G_f, theta_0=D**2 / (10 * F))),
        "penalised FTRL": ("penalised_ftrl", Parameters(**base, step=R / G_f, weight_0=(F + R * G_f) / D)),
        "A-OGD, online": ("aogd", Parameters(**base, theta_0=D**2 / (10 * R))),
        "A-FTRL, online": ("aftrl", Parameters(**base, theta_0=D**2 / (10 * R))),
        "penalised FTRL, online": ("penalised_ftrl", Parameters(**base, weight_0=2 * R / D)),
    }


def main() -> None:
    columns = f"{'regret':>9}{'± std':>8}{'of A-OGD':>10}{'Σ g':>10}{'Σ [g]₊':>10}{'largest':>10}{'non-zeros':>11}"
    print(f"{'data':<9}{'rule':<24}{columns}")
    for name, budget in BUDGETS.items():
        data = data_set(name)
        rounds = len(data.labels)
        problem, stream = budgeted_logistic(data.features, budget), ResampledRows(data.features, data.labels)
        best = hindsight.best(problem, stream, [rounds], seeds=SEEDS, progress=None)
        first = None
        for rule_name, (rule, parameters) in rules(problem).items():
            p, found = parameters.as_array(), []
            for position, seed in enumerate(SEEDS):
                state = State.start(problem.dimension)
                play(rule, p, state, data.features, data.labels, order=np.asarray(stream.drawn(seed, 0, rounds)))
                n, x = state.numbers, decision(rule, p, state)[0]
                found.append((n[at.LOSS_SUM] - best.loss[-1, position], n[at.SIGNED], n[at.HARD], np.count_nonzero(x)))
            regret, signed, hard, nonzeros = np.mean(found, axis=0)
            first = first or regret
            spread, largest = np.std([line[0] for line in found]), max(line[2] for line in found)
            print(
                f"{name:<9}{rule_name:<24}{regret:>9.1f}{spread:>8.1f}{regret / first:>10.3f}"
                f"{signed:>10.1f}{hard:>10.3f}{largest:>10.3f}{nonzeros:>11.1f}"
            )
        print(f"{name:<9}{'best in hindsight':<24}{np.count_nonzero(best.x[-1], axis=-1).mean():>68.1f}")


if __name__ == "__main__":
    main()
