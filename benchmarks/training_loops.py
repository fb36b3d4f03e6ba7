"""Constrained training: the untuned default of `compat.torch` beside cooper's νPI, tuned on a grid, and fairlearn.

    python benchmarks/training_loops.py [TASK …] [--seeds N]

Needs torch, scikit-learn and LONGTERM_DATA for Adult; cooper-optim and fairlearn are used where they are installed.
Objective and violations are those of the whole training set, measured four times per epoch in the last tenth of the
epochs. Both are means over these times and the seeds. Then the largest of the mean violations is shown. Of cooper's
grid the smallest objective within the tolerance counts.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.functional import cross_entropy

from longterm.compat.multipliers import Regularised, ascent, optimistic
from longterm.compat.torch import TorchMultipliers

DATA = Path(os.environ.get("LONGTERM_DATA", "../shared/data"))
GRID = [(step, gain, nu) for step in (1e-3, 1e-2, 1e-1, 1.0) for gain, nu in ((0.0, 0.0), (1.0, 0.0), (10.0, 0.9))]


class Task(NamedTuple):
    """Data, a model, and a function (model, batch) → (objective, violations)."""

    tensors: tuple[torch.Tensor, ...]
    model: object
    evaluate: object
    constraints: int
    tolerance: float
    epochs: int = 40
    batch: int = 256


def norm_task():
    """Logistic regression on the breast cancer data with ‖w‖² ≤ 1: convex."""
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)

    def evaluate(model, batch):
        return bce(model(batch[0])[:, 0], batch[1]), (model.weight**2).sum()[None] - 1.0

    return Task((x, torch.tensor(y, dtype=torch.float32)), lambda: torch.nn.Linear(30, 1), evaluate, 1, 0.01, 200, 64)


def dense_network():
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))


def convolutional_network(side):
    """Return a network with two convolutions for images of side × side pixels."""
    convolutions = [torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                    torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]  # fmt: skip
    return torch.nn.Sequential(*convolutions, torch.nn.Flatten(), torch.nn.Linear(32 * (side // 4) ** 2, 10))


def sparsity_task(make=dense_network, side=None):
    """A network on scikit-learn's digits whose first weights have a mean |w| ≤ 0.02; images have `side` × `side`."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x / 16.0, dtype=torch.float32)
    if side is not None:
        x = torch.nn.functional.interpolate(x.view(-1, 1, 8, 8), size=side)

    def evaluate(model, batch):
        return cross_entropy(model(batch[0]), batch[1]), 50.0 * model[0].weight.abs().mean()[None] - 1.0

    return Task((x, torch.tensor(y)), make, evaluate, 1, 0.01, 100, 128)


def adult():
    """Return standardised features, the label and sex of the Adult training set."""
    import pandas as pd

    with gzip.open(DATA / "adult.data.gz", "rt") as file:
        table = pd.read_csv(file, header=None, skipinitialspace=True)
    y, sex = (table[14] == ">50K").to_numpy(float), (table[9] == "Male").to_numpy(float)
    x = pd.get_dummies(table.drop(columns=[3, 14])).to_numpy(float)
    return (x - x.mean(0)) / np.maximum(x.std(0), 0.05), y, sex


def gaps(p, groups):
    """Return ±(mean of p in the one group − in the other) − 0.02 for pairs of 0/1 weights."""
    values = []
    for one, other in groups:
        gap = (p * one).sum() / one.sum().clamp(min=1.0) - (p * other).sum() / other.sum().clamp(min=1.0)
        values += [gap - 0.02, -gap - 0.02]
    return torch.stack(values)


def fairness_task(odds):
    """Logistic regression on Adult with demographic parity, or with equalised odds, of the predicted probabilities."""
    x, y, sex = (torch.tensor(part, dtype=torch.float32) for part in adult())

    def evaluate(model, batch):
        features, label, s = batch
        logits = model(features)[:, 0]
        pairs = [(s * label, (1 - s) * label), (s * (1 - label), (1 - s) * (1 - label))] if odds else [(s, 1 - s)]
        return bce(logits, label), gaps(torch.sigmoid(logits), pairs)

    return Task((x, y, sex), lambda: torch.nn.Linear(x.shape[1], 1), evaluate, 4 if odds else 2, 0.005, 40, 512)


TASKS = {
    "norm": norm_task,
    "sparsity": sparsity_task,
    "parity": lambda: fairness_task(False),
    "odds": lambda: fairness_task(True),
}


def train(task, step, seed):
    """Train by Adam with a step function; return µs per step, and means of objective and violations near the end."""
    torch.manual_seed(seed)
    model = task.model()
    run = step(model, task)
    rows, found, seconds = len(task.tensors[0]), [], 0.0
    steps = rows // task.batch
    for epoch in range(task.epochs):
        parts = torch.randperm(rows).split(task.batch)[:steps]
        for quarter in np.array_split(np.arange(steps), 4):
            start = time.process_time()
            for k in quarter:
                run([tensor[parts[k]] for tensor in task.tensors])
            seconds += time.process_time() - start
            if epoch >= 0.9 * task.epochs:
                with torch.no_grad():
                    objective, violations = task.evaluate(model, task.tensors)
                found.append([objective.item(), *violations.tolist()])
    return [1e6 * seconds / (steps * task.epochs), *np.mean(found, axis=0)]


def plain(model, task):
    """Return the step of a loop without constraints; violations are evaluated all the same."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)

    def run(batch):
        objective, _ = task.evaluate(model, batch)
        optimiser.zero_grad()
        objective.backward()
        optimiser.step()

    return run


def ours(rule=None):
    """Return a maker of steps with our multipliers: four lines more than `plain`."""

    def make(model, task):
        optimiser, multipliers = torch.optim.Adam(model.parameters(), lr=1e-2), TorchMultipliers(task.constraints, rule)

        def run(batch):
            objective, violations = task.evaluate(model, batch)
            loss = objective + multipliers.penalty(violations)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            multipliers.update(violations)

        return run

    return make


def cooper_pi(setting):
    """Return a maker of steps with cooper's νPI."""
    import cooper

    step, gain, nu = setting

    def make(model, task):
        class Problem(cooper.ConstrainedMinimizationProblem):
            def __init__(self):
                super().__init__()
                multiplier = cooper.multipliers.DenseMultiplier(num_constraints=task.constraints)
                self.constraint = cooper.Constraint(
                    multiplier=multiplier,
                    constraint_type=cooper.ConstraintType.INEQUALITY,
                    formulation_type=cooper.formulations.Lagrangian,
                )

            def compute_cmp_state(self, batch):
                objective, violations = task.evaluate(model, batch)
                return cooper.CMPState(loss=objective, observed_constraints={
                    self.constraint: cooper.ConstraintState(violation=violations)
                })  # fmt: skip

        problem = Problem()
        dual = cooper.optim.nuPI(problem.dual_parameters(), lr=step, Kp=gain, ema_nu=nu, maximize=True)
        optimiser = cooper.optim.SimultaneousOptimizer(
            cmp=problem, primal_optimizers=torch.optim.Adam(model.parameters(), lr=1e-2), dual_optimizers=dual
        )
        return lambda batch: optimiser.roll(compute_cmp_state_kwargs={"batch": batch})

    return make


def mean_over_seeds(task, make, seeds):
    """Return the mean objective, the largest mean violation and the least time per step."""
    rows = np.array([train(task, make, seed) for seed in range(seeds)])
    return rows[:, 1].mean(), rows[:, 2:].mean(axis=0).max(), rows[:, 0].min()


def compare(name, seeds):
    """Print one task."""
    task = TASKS[name]()
    print(f"\n{name}: {TASKS[name]().epochs} epochs, tolerance {task.tolerance}; objective, violation, µs per step")

    def show(label, row):
        print(f"  {label:34s} {row[0]:.4f} {row[1]:+.4f} {row[2]:6.0f}", flush=True)

    show("without constraints", mean_over_seeds(task, plain, seeds))
    default = mean_over_seeds(task, ours(), seeds)
    show("default", default)
    for label, rule in (("ascent .1", ascent(0.1)), ("optimistic .1", optimistic(0.1)),
                        ("regularised .1", Regularised(0.1))):  # fmt: skip
        show(label, mean_over_seeds(task, ours(rule), seeds))
    try:
        grid = {setting: mean_over_seeds(task, cooper_pi(setting), seeds) for setting in GRID}
    except ImportError:
        print("  cooper is not installed")
        return
    feasible = {setting: row for setting, row in grid.items() if row[1] <= task.tolerance}
    count = f"{len(feasible)} of {len(grid)} settings within the tolerance"
    if not feasible:
        print(f"  cooper νPI: {count}")
        return
    best = min(feasible, key=lambda setting: feasible[setting][0])
    show(f"cooper νPI, best {best}", feasible[best])
    show("cooper νPI, worst in objective", max(feasible.values()))
    print(f"  {count}; default / best objective {default[0] / feasible[best][0]:.3f}, "
          f"violation {'within' if default[1] <= task.tolerance else 'ABOVE'} the tolerance")  # fmt: skip


def fairlearn_reference(seeds=1):
    """Print fairlearn's ExponentiatedGradient and our default on Adult: accuracy and gaps of decisions, seconds."""
    try:
        from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        print("fairlearn is not installed")
        return
    x, y, sex = adult()
    print("\nfairlearn on Adult: accuracy, largest gap of the decisions' rates, seconds (training set)")
    for name, constraint, task in (("parity", DemographicParity, TASKS["parity"]()),
                                   ("odds", EqualizedOdds, TASKS["odds"]())):  # fmt: skip
        start = time.perf_counter()
        peer = ExponentiatedGradient(LogisticRegression(max_iter=200), constraint(difference_bound=0.02), max_iter=20)
        peer.fit(x, y, sensitive_features=sex)
        print(f"  {name} fairlearn {decisions(peer.predict(x, random_state=0), y, sex, name)} "
              f"{time.perf_counter() - start:.0f} s", flush=True)  # fmt: skip
        start = time.perf_counter()
        torch.manual_seed(0)
        model = task.model()
        run = ours()(model, task)
        for _ in range(task.epochs):
            for part in torch.randperm(len(x)).split(task.batch):
                run([tensor[part] for tensor in task.tensors])
        decided = (model(task.tensors[0])[:, 0] > 0).numpy().astype(float)
        print(f"  {name} default   {decisions(decided, y, sex, name)} {time.perf_counter() - start:.0f} s", flush=True)


def decisions(decided, y, sex, name):
    """Return accuracy and the largest gap between the groups' rates of positive decisions, as text."""
    parts = [np.ones(len(y), dtype=bool)] if name == "parity" else [y == 1, y == 0]
    gap = max(abs(decided[part & (sex == 1)].mean() - decided[part & (sex == 0)].mean()) for part in parts)
    return f"{np.mean(decided == y):.4f} {gap:.3f}"


def with_violations(model, task):
    """The same losses as `ours` without multipliers: the violations enter with the constant weight 1."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)

    def run(batch):
        objective, violations = task.evaluate(model, batch)
        optimiser.zero_grad()
        (objective + violations.sum()).backward()
        optimiser.step()

    return run


def by_hand(model, task):
    """Projected ascent written into the loop."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    multipliers = torch.zeros(task.constraints)

    def run(batch):
        objective, violations = task.evaluate(model, batch)
        optimiser.zero_grad()
        (objective + multipliers @ violations).backward()
        optimiser.step()
        with torch.no_grad():
            multipliers.add_(violations, alpha=0.01).clamp_(min=0.0)

    return run


def overhead():
    """Print the time that multipliers add to a step of three small networks, medians of alternated runs."""
    makers = {"constant weight": with_violations, "by hand": by_hand, "default": ours()}
    if importable("cooper"):
        makers["cooper νPI"] = cooper_pi((0.01, 1.0, 0.0))
    for title, task, repeats, steps in (
        ("64-64-10 network, batch 128", sparsity_task(), 60, 50),
        ("two convolutions on 8 × 8, batch 128", sparsity_task(lambda: convolutional_network(8), 8), 100, 5),
        ("two convolutions on 28 × 28, batch 128", sparsity_task(lambda: convolutional_network(28), 28), 200, 1),
    ):
        batch = [tensor[:128] for tensor in task.tensors]
        runs = {name: make(task.model(), task) for name, make in makers.items()}
        times = {name: [] for name in runs}
        for _, (name, run) in itertools.product(range(repeats), runs.items()):
            start = time.process_time()
            for _ in range(steps):
                run(batch)
            times[name].append(1e6 * (time.process_time() - start) / steps)
        base = np.array(times["constant weight"])
        print(f"\n{title}, {np.median(base):.0f} µs per step; added µs, medians of alternated runs")
        for name in list(times)[1:]:
            added = np.median(times[name] - base)
            print(f"  {name:12s} {added:6.0f}   {100 * added / np.median(base):+.1f} %", flush=True)


def importable(name):
    """Return True if a module can be imported."""
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def main():
    """Run the tasks that are named, or all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tasks", nargs="*", default=[*TASKS, "fairlearn", "overhead"])
    parser.add_argument("--seeds", type=int, default=4)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    for name in chosen.tasks:
        {"fairlearn": fairlearn_reference, "overhead": overhead}.get(name, lambda n=name: compare(n, chosen.seeds))()


if __name__ == "__main__":
    main()
