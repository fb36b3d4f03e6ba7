"""Regret and violation of the streaming rules on real data: ten random sequences, as many rounds as there are rows.

Logistic loss under ‖x‖₁ + ½‖x‖² ≤ ρ, ρ such that 30 % of the best fixed decision is not 0. Means over the sequences;
regret against the certified best decision in hindsight.

    python benchmarks/linear_regret.py
"""

from __future__ import annotations

import numpy as np

from linear_timing import data_set
from longterm import hindsight
from longterm.linear_model import BudgetLinearLearner
from longterm.problems import budgeted_logistic
from longterm.problems.streams import ResampledRows

BUDGETS = {"ijcnn1": 3.419, "covtype": 6.987}
SEEDS = range(10)


RULES = {"A-FTRL": "a-ftrl", "penalised FTRL": "penalised-ftrl"}


def main() -> None:
    columns = f"{'regret':>9}{'± std':>8}{'Σ g':>10}{'Σ [g]₊':>10}{'largest':>10}{'non-zeros':>11}"
    print(f"{'data':<9}{'rule':<24}{columns}")
    for name, budget in BUDGETS.items():
        data = data_set(name)
        rounds = len(data.labels)
        problem, stream = budgeted_logistic(data.features, budget), ResampledRows(data.features, data.labels)
        best = hindsight.best(problem, stream, [rounds], seeds=SEEDS, progress=None)
        for label, rule in RULES.items():
            results = []
            for position, seed in enumerate(SEEDS):
                learner = BudgetLinearLearner(problem.dimension, budget, rule=rule, fit_intercept=False)
                learner.learn(data.features, data.labels, order=np.asarray(stream.drawn(seed, 0, rounds)))
                regret = learner.cumulative_loss - best.loss[-1, position]
                results.append((regret, learner.signed_violation, learner.hard_violation, learner.nonzeros))
            regret, signed, hard, nonzeros = np.mean(results, axis=0)
            spread, largest = np.std([line[0] for line in results]), max(line[2] for line in results)
            print(
                f"{name:<9}{label:<24}{regret:>9.1f}{spread:>8.1f}"
                f"{signed:>10.1f}{hard:>10.3f}{largest:>10.3f}{nonzeros:>11.1f}"
            )
        print(f"{name:<9}{'best in hindsight':<24}{np.count_nonzero(best.x[-1], axis=-1).mean():>58.1f}")


if __name__ == "__main__":
    main()
