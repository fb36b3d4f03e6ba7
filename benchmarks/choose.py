"""The tables of docs/benchmarks/choosing.md: in each situation the recommended learner and its alternatives.

Every scene is one problem, one stream, a few learners and the relevant measures; means over the seeds. µs is the median
time of one round of one learner: its decision, the oracles and its update, without trace and checks. Nothing is
downloaded. It takes about a minute on one core.

    OPENBLAS_NUM_THREADS=1 python benchmarks/choose.py            # all scenes
    OPENBLAS_NUM_THREADS=1 python benchmarks/choose.py routing    # scenes whose name begins like this
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from longterm import AOGD, Problem, Trace, hindsight, observe, run
from longterm.catalogue import scenarios
from longterm.data import load_sample
from longterm.errors import AssumptionWarning
from longterm.learners import (
    AFTRL,
    LEWA,
    AdaGradAOGD,
    AdaptiveAFTRL,
    AdaptivePenalisedFTRL,
    DecayingMarginAOGD,
    DoublingRestarts,
    DriftPlusPenalty,
    FeasibleOnlineADM,
    Feedback,
    Learner,
    MahdaviOGD,
    NoViolationAOGD,
    OneProjectionSGD,
    PenalisedFTRL,
    PolyakFeasibility,
    ProjectedOGD,
    ProximalAOGD,
    ProxPenalty,
    QuadraticPenaltyOGD,
    Restarted,
    SinhaVaze,
    TrackedPenalty,
    TwoPointBandit,
    YuLeeLee,
    YuNeely,
)
from longterm.problems import budgeted_logistic, covariance, doubly_stochastic, two_dimensional
from longterm.problems.constraints import Affine, L1Budget
from longterm.problems.losses import Linear, Logistic
from longterm.problems.sets import Ball, Simplex
from longterm.problems.streams import NoisyTargets, RandomPermutations, Replay, ResampledRows, Stream
from longterm.problems.streams.points import PairwiseSigns

TIMED = 200
PER_CONSTRAINT, HARD, SIGNED, LARGEST = "max Σ g_j", "Σ [g]₊", "Σ max g_j", "worst round"
MEASURES: Mapping[str, Callable[[Trace], Any]] = {
    PER_CONSTRAINT: lambda trace: trace.long_term_violation[-1],
    HARD: lambda trace: trace.hard_violation[-1],
    SIGNED: lambda trace: trace.signed_violation[-1],
    LARGEST: lambda trace: trace.largest_violation[-1],
    "not zero": lambda trace: np.count_nonzero(trace.state.x, axis=-1),
}


@dataclass(frozen=True)
class Scene:
    """A problem, a stream, learners, and the measures besides regret."""

    name: str
    problem: Problem
    stream: Stream
    rounds: int
    best_loss: Callable[[Sequence[int]], Any]
    """The comparator's loss as a function of the seeds."""
    learners: Mapping[str, Learner[Any]]
    measures: Sequence[str]
    seeds: Sequence[int] = field(default_factory=lambda: range(3))


def of_scenario(
    name: str, case: scenarios.Scenario, T: int, learners: Mapping[str, Learner[Any]], measures: Sequence[str]
) -> Scene:
    """Return the scene of a scenario of `longterm.problems`."""

    def best_loss(seeds: Sequence[int]) -> Any:
        return hindsight.best(case.problem, case.stream, [T], seeds=seeds, benchmark=case.benchmark).loss[-1]

    return Scene(name, case.problem, case.stream, T, best_loss, learners, measures)


def changing() -> Scene:
    case, T = scenarios.switching_constraints(), 4000
    problem = case.problem
    learners = {
        "ProxPenalty": ProxPenalty.for_problem(problem),
        "COLDQ, T known": ProxPenalty.for_problem(problem, preset="coldq", horizon=T),
        "QuadraticPenaltyOGD, β = ½": QuadraticPenaltyOGD.for_problem(problem, beta=0.5),
        "AOGD": AOGD.for_problem(problem),
        "YuLeeLee, hard": YuLeeLee.for_problem(problem, hard=True, rates="sharp"),
        "SinhaVaze, T known": SinhaVaze.for_problem(problem, horizon=T),
        "DriftPlusPenalty, neely-yu, T known": DriftPlusPenalty.for_problem(problem, horizon=T, preset="neely-yu"),
    }
    return of_scenario("changing", case, T, learners, [SIGNED, HARD])


def values_only() -> Scene:
    case, T = scenarios.switching_constraints(), 4000
    problem = case.problem
    learners = {
        "TwoPointBandit, values": TwoPointBandit.for_problem(problem, horizon=T),
        "MahdaviOGD, gradients": MahdaviOGD.for_problem(problem, horizon=T),
    }
    return of_scenario("values", case, T, learners, [SIGNED, HARD])


def random_constraints() -> Scene:
    case, T = scenarios.job_scheduling(), 4000
    problem = case.problem
    learners = {
        "DriftPlusPenalty, yu-neely-wei, T known": DriftPlusPenalty.for_problem(
            problem, horizon=T, preset="yu-neely-wei"
        ),
        "DriftPlusPenalty, T known": DriftPlusPenalty.for_problem(problem, horizon=T),
        "AOGD": AOGD.for_problem(problem),
        "YuLeeLee": YuLeeLee.for_problem(problem, rates="sharp"),
        "QuadraticPenaltyOGD, β = ½": QuadraticPenaltyOGD.for_problem(problem, beta=0.5),
    }
    return of_scenario("random", case, T, learners, [SIGNED, HARD])


def affine() -> Scene:
    case, T = scenarios.routing(), 4000
    problem = case.problem
    learners = {
        "ProximalAOGD": ProximalAOGD.for_problem(problem),
        "AFTRL": AFTRL.for_problem(problem),
        "YuNeely, T known": YuNeely.for_problem(problem, horizon=T),
        "DoublingRestarts(YuNeely)": DoublingRestarts(YuNeely.for_problem(problem, horizon=1), first_epoch=100),
        "QuadraticPenaltyOGD, β = ½": QuadraticPenaltyOGD.for_problem(problem, beta=0.5),
        "AOGD": AOGD.for_problem(problem),
        "ProjectedOGD": ProjectedOGD.for_problem(problem),
    }
    return of_scenario("routing", case, T, learners, [PER_CONSTRAINT, HARD])


def strongly_convex() -> Scene:
    case, T = scenarios.noisy_doubly_stochastic(), 2000
    problem = case.problem
    learners = {
        "AFTRL, strongly convex": AFTRL.for_problem(problem, steps="strongly convex"),
        "AFTRL, for convex losses": AFTRL.for_problem(problem),
        "QuadraticPenaltyOGD, strongly convex": QuadraticPenaltyOGD.for_problem(problem, steps="strongly convex"),
        "AOGD, strongly convex": AOGD.for_problem(problem, steps="strongly convex"),
        "ProjectedOGD, strongly convex": ProjectedOGD.for_problem(problem, steps="strongly convex"),
    }
    return of_scenario("strongly convex", case, T, learners, [PER_CONSTRAINT, HARD])


def expensive_projection() -> Scene:
    problem, stream, T = covariance(20), PairwiseSigns(20), 500
    learners = {
        "QuadraticPenaltyOGD, strongly convex": QuadraticPenaltyOGD.for_problem(problem, steps="strongly convex"),
        "SinhaVaze, strongly convex, T known": SinhaVaze.for_problem(problem, horizon=T, steps="strongly convex"),
        "AOGD, strongly convex": AOGD.for_problem(problem, steps="strongly convex"),
        "ProjectedOGD, strongly convex": ProjectedOGD.for_problem(problem, steps="strongly convex"),
    }
    return Scene(
        "expensive projection",
        problem,
        stream,
        T,
        lambda seeds: hindsight.best(problem, stream, [T], seeds=seeds).loss[-1],
        learners,
        [SIGNED, HARD],
    )


def sparse() -> Scene:
    sample, T = load_sample(), 6000
    features = np.asarray(sample.features)
    problem, stream = budgeted_logistic(features, budget=7.0), ResampledRows(features, sample.labels)
    learners = {
        "PenalisedFTRL": PenalisedFTRL.for_problem(problem),
        "COLDQ, T known": ProxPenalty.for_problem(problem, preset="coldq", horizon=T),
        "AFTRL": AFTRL.for_problem(problem),
        "ProjectedOGD": ProjectedOGD.for_problem(problem),
        "QuadraticPenaltyOGD, β = ½": QuadraticPenaltyOGD.for_problem(problem, beta=0.5),
        "AOGD, β = ½": AOGD.for_problem(problem, beta=0.5),
    }
    return Scene(
        "sparse",
        problem,
        stream,
        T,
        lambda seeds: hindsight.best(problem, stream, [T], seeds=seeds, progress=None).loss[-1],
        learners,
        [SIGNED, HARD, "not zero"],
    )


def unknown() -> Scene:
    """Return `sparse` with a loose bound of 100 on the norm of a row; the largest norm is below 3."""
    known = sparse()
    problem = replace(known.problem, loss=Logistic(known.problem.loss.dimension, 100.0), name="rows of unknown length")
    learners = {
        "AdaptivePenalisedFTRL": AdaptivePenalisedFTRL.for_problem(problem),
        "AdaptiveAFTRL": AdaptiveAFTRL.for_problem(problem),
        "AdaGradAOGD": AdaGradAOGD.for_problem(problem),
        "PenalisedFTRL, G guessed": PenalisedFTRL.for_problem(problem),
        "AOGD, β = ½, G guessed": AOGD.for_problem(problem, beta=0.5),
    }
    return Scene("unknown", problem, known.stream, known.rounds, known.best_loss, learners, known.measures)


def every_round() -> Scene:
    problem, stream, T = two_dimensional(), NoisyTargets(np.array([0.6, 0.5]), spread=0.2), 10_000
    assert problem.projection is not None
    learners = {
        "ProjectedOGD, strongly convex": ProjectedOGD.for_problem(problem, steps="strongly convex"),
        "FeasibleOnlineADM, T known": FeasibleOnlineADM.for_problem(problem, horizon=T, projection=problem.projection),
        "PolyakFeasibility, T known": PolyakFeasibility.for_problem(problem, horizon=T),
        "ProxPenalty, strongly convex": ProxPenalty.for_problem(problem, steps="strongly convex"),
    }
    return Scene(
        "every round",
        problem,
        stream,
        T,
        lambda seeds: hindsight.best(problem, stream, [T], seeds=seeds).loss[-1],
        learners,
        [LARGEST, HARD],
    )


def in_the_end() -> Scene:
    scene = every_round()
    problem, T = scene.problem, scene.rounds
    learners = {
        "YuNeely, T known": YuNeely.for_problem(problem, horizon=T),
        "DecayingMarginAOGD, scale 0.01": DecayingMarginAOGD.for_problem(problem, scale=0.01),
        "NoViolationAOGD, T known": NoViolationAOGD.for_problem(problem, horizon=T),
        "AOGD": AOGD.for_problem(problem),
    }
    return Scene("in the end", problem, scene.stream, T, scene.best_loss, learners, [SIGNED, HARD])


def experts(d: int = 1000) -> Scene:
    """Return experts with costs in [0, 1], of whom the cheapest may have at most half of the weight."""
    T = 2000
    costs = np.random.default_rng(0).uniform(0.0, 1.0, (T, d)) * np.r_[0.2, 0.6, np.ones(d - 2)]
    half = Affine([[1.0] + [0.0] * (d - 1)], [0.5])
    longest = float(np.linalg.norm(costs, axis=1).max())
    problem = Problem(Simplex(d), Linear(d, longest), half, name="half of the weight on the best")
    stream = Replay([costs])
    learners = {
        "LEWA, spreads given, T known": LEWA.for_problem(problem, horizon=T, loss_spread=1.0, constraint_spread=1.0),
        "LEWA, T known": LEWA.for_problem(problem, horizon=T),
        "AFTRL": AFTRL.for_problem(problem),
        "QuadraticPenaltyOGD, β = ½": QuadraticPenaltyOGD.for_problem(problem, beta=0.5),
        "AOGD": AOGD.for_problem(problem),
    }
    best = hindsight.best(problem, stream, [T]).loss[-1]
    return Scene(f"experts, {d}", problem, stream, T, lambda seeds: best, learners, [SIGNED, HARD], seeds=[0])


def fewer_experts() -> Scene:
    return experts(100)


def drift() -> Scene:
    """Return costs that change their direction every 500 rounds; regret is against the best point of each part."""
    d, stretch, T = 20, 500, 4000
    rng = np.random.default_rng(0)
    levels = rng.standard_normal((T // stretch, d))
    levels /= 2 * np.linalg.norm(levels, axis=1, keepdims=True)
    costs = np.repeat(levels, stretch, axis=0) + rng.standard_normal((T, d)) / (2 * np.sqrt(d))
    costs /= np.maximum(np.linalg.norm(costs, axis=1, keepdims=True), 1.0)
    problem = Problem(Ball(d), Linear(d), L1Budget(d, budget=1.0), name=f"costs that turn every {stretch} rounds")
    stream = Replay([costs])
    # The best point of the ℓ1 ball for a linear cost c is a corner, with loss −max |c_i|.
    best = -np.abs(costs.reshape(-1, stretch, d).sum(axis=1)).max(axis=1).sum()
    learners = {
        "TrackedPenalty, restarts, T known": TrackedPenalty.for_problem(
            problem, horizon=T, tracker="restarts", penalty="projection"
        ),
        "Restarted(PenalisedFTRL, every=300)": Restarted(PenalisedFTRL.for_problem(problem), every=300),
        "Restarted(ProjectedOGD, every=300)": Restarted(ProjectedOGD.for_problem(problem), every=300),
        "Restarted(AFTRL, every=300)": Restarted(AFTRL.for_problem(problem), every=300),
        "ProjectedOGD": ProjectedOGD.for_problem(problem),
        "ProximalAOGD": ProximalAOGD.for_problem(problem),
        "PenalisedFTRL": PenalisedFTRL.for_problem(problem),
    }
    return Scene("drift", problem, stream, T, lambda seeds: best, learners, [SIGNED, HARD], seeds=[0])


SCENES = (
    changing,
    values_only,
    random_constraints,
    affine,
    strongly_convex,
    expensive_projection,
    sparse,
    unknown,
    every_round,
    in_the_end,
    experts,
    fewer_experts,
    drift,
)


def microseconds(scene: Scene, learner: Learner[Any]) -> float:
    """Return the median time of a round of one learner, after as many rounds of warm-up."""
    drawn = scene.stream.draw(0, 0, 2 * TIMED)
    state, times = learner.init(), []
    for t in range(2 * TIMED):
        losses, constraints = [part[t] for part in drawn.loss], [part[t] for part in drawn.constraint]
        begin = time.perf_counter()
        x = learner.ask(state)
        if isinstance(learner, ProjectedOGD | FeasibleOnlineADM):  # they do not use g
            feedback = Feedback(scene.problem.loss.gradient(x, *losses), None, None)
        else:
            feedback = observe(scene.problem, x, losses, constraints)
        state = learner.update(state, feedback)
        times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times[TIMED:])


def figures(scene: Scene) -> Iterator[tuple[str, list[float]]]:
    """Yield the regret and the other measures of each learner."""
    best = scene.best_loss(scene.seeds)
    for name, learner in scene.learners.items():
        options: dict[str, Any] = {"seeds": scene.seeds, "record": [scene.rounds], "progress": None}
        trace = run(scene.problem, learner, scene.stream, scene.rounds, **options)
        regret = trace.cumulative_loss[-1] - best
        yield name, [float(np.mean(part)) for part in (regret, *(MEASURES[name](trace) for name in scene.measures))]


def print_scene(scene: Scene) -> None:
    """Print the table of a scene."""
    sequences = "one sequence" if len(scene.seeds) == 1 else f"{len(scene.seeds)} sequences"
    print(f"\n{scene.name}: {scene.problem.name}, T = {scene.rounds}, {sequences}")
    print(f"{'':<40}{'regret':>10}" + "".join(f"{name:>13}" for name in scene.measures) + f"{'µs':>8}")
    for name, (regret, *counted) in figures(scene):
        time_of_one = microseconds(scene, scene.learners[name])
        print(f"{name:<40}{regret:>10.1f}" + "".join(f"{value:>13.2f}" for value in counted) + f"{time_of_one:>8.0f}")


def answers() -> None:
    """Print the loss over all rounds, and g, of the decision to use after the last round."""
    scene, T = sparse(), 6000
    problem, drawn = scene.problem, scene.stream.draw(0, 0, 6000)
    project = problem.projection
    assert project is not None
    # On the boundary the shortest subgradient of ‖x‖₁ + ½‖x‖² is that of a point with one entry, 1 + |x_i| = √(1 + 2ρ).
    learners: dict[str, Learner[Any]] = {
        "OneProjectionSGD, its answer": OneProjectionSGD.for_problem(
            problem, horizon=T, projection=project, slope=15**0.5
        ),
        "PenalisedFTRL, last decision": scene.learners["PenalisedFTRL"],
        "ProjectedOGD, last decision": scene.learners["ProjectedOGD"],
    }
    print(f"\nanswer: {problem.name}, after T = {T} rounds of one sequence, per round")
    print(f"{'':<40}{'above best':>12}{'g':>13}{'µs':>8}")
    best = scene.best_loss([0])
    for name, learner in learners.items():
        state = run(problem, learner, scene.stream, T, record=[T], progress=None).state
        x = learner.answer(state) if isinstance(learner, OneProjectionSGD) else learner.ask(state)
        above = float(np.mean(problem.loss.value(x, *drawn.loss)) - best[0] / T)
        excess = float(problem.constraint.values(x).max())
        print(f"{name:<40}{above:>12.4f}{excess:>13.2f}{microseconds(scene, learner):>8.0f}")


def many_at_once() -> None:
    """Print the time of a batch of a thousand learners and of one learner."""
    problem, stream = doubly_stochastic(4), RandomPermutations(4)
    print("\nmany: A-OGD, doubly-stochastic p = 4, the whole loop, µs for each learner and round")
    for count, rounds in ((1, 2000), (1000, 200)):
        learner = AOGD.for_problem(problem, beta=np.full(count, 2 / 3))
        begin = time.perf_counter()
        run(problem, learner, stream, rounds, record=[rounds], progress=None)
        each = 1e6 * (time.perf_counter() - begin) / (rounds * count)
        print(f"{f'{count} at once':<40}{'':>10}{each:>8.1f}")


def main() -> None:
    warnings.simplefilter("ignore", AssumptionWarning)  # some T are too small for a theorem; the page says which
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for make in SCENES:
        scene = make()
        if scene.name.startswith(wanted):
            print_scene(scene)
    for name, block in {"answer": answers, "many": many_at_once}.items():
        if name.startswith(wanted):
            block()


if __name__ == "__main__":
    main()
