"""A search for worst-case sequences against `learner.bound`.

An adversary has a few phases. In each, a direction is a combination of a constant vector, the same vector with
alternating sign, the direction of x_t from the centre, the constraint's gradient at x_t, and the last movement of the
learner. The loss turns it into a cost, a target, or a row with a label (`Loss.parameters_towards`), or it selects one
of the `choices`. Changing constraints get a constant normal, a part along x_t, and a limit. Evolution adapts the
coefficients and the lengths of the phases. Learners are deterministic, so the found adaptive adversary is also a fixed
sequence, which is returned as a stream.

The comparator is the best of a sample of feasible points. The reported regret is therefore a lower bound of the true
one, and a ratio above 1 refutes a theorem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray, norm
from longterm._base.progress import Progress, reporter
from longterm.errors import InputError
from longterm.learners import Learner
from longterm.learners.interface.feedback import observe
from longterm.problems import Problem
from longterm.problems.constraints import VaryingAffine
from longterm.problems.streams import Replay
from longterm.theory.bounds import HARD, LONG_TERM, MEASURES, REGRET, SIGNED, SQUARED

PHASES = 5
CANDIDATES = 128
"""The number of points from which the comparator is taken."""
FEATURES = 4
"""The number of scalar coefficients of a direction: alternation, x_t, constraint gradient, movement."""
LEVELS = 2
"""The number of coefficients of a label: a constant, and one with alternating sign."""
ELITE = 0.25
"""The share of the population that survives a generation."""


@dataclass(frozen=True, eq=False)
class WorstCase:
    """A sequence on which a measure comes close to its bound.

    Parameters
    ----------
    measure : str
        The measure, named as in a trace.
    ratio, value, bound : float
        value / bound, the measure, and its bound after `rounds` rounds.
    rounds : int
        The round at which the ratio is largest.
    stream : Replay
        The sequence.
    """

    measure: str
    ratio: float
    value: float
    bound: float
    rounds: int
    stream: Replay

    def __repr__(self) -> str:
        values = f"{self.value:.4g} of {self.bound:.4g}"
        return f"WorstCase({self.measure}, ratio {self.ratio:.3f}: {values} after {self.rounds} rounds)"


def find_worst_cases(
    problem: Problem,
    learner: Learner[Any],
    rounds: int,
    *,
    generations: int = 100,
    population: int = 48,
    seed: int = 0,
    choices: Sequence[ArrayLike] | None = None,
    progress: Progress = "auto",
) -> dict[str, WorstCase]:
    """Search for sequences that maximise each measure divided by the learner's bound.

    Parameters
    ----------
    problem : Problem
        Any problem whose constraint is fixed or a `VaryingAffine`.
    learner : Learner
        The learner. A learner without a theorem gives an empty result.
    rounds : int
        The length of the sequences.
    generations, population : int
        The number of generations, and of adversaries in each.
    seed : int
        The seed of the search.
    choices : sequence of array_like, optional
        Parameters of the loss in possible rounds, each with the rounds on its first axis. The adversary plays these
        only. A `CustomLoss` with parameters needs them.
    progress : callable, "auto" or None
        Progress of the search: a function of the finished and all generations, or a bar on a terminal.

    Returns
    -------
    dict of str to WorstCase
        The largest ratio found for each measure with a positive bound.

    Examples
    --------
    >>> from longterm import AOGD, Problem
    >>> from longterm.problems.constraints import Affine
    >>> from longterm.problems.losses import Linear
    >>> from longterm.problems.sets import Box
    >>> from longterm.testing.worst_case import find_worst_cases
    >>> problem = Problem(Box([-1.0], [1.0]), Linear(1), Affine([[1.0]], [0.5]))
    >>> found = find_worst_cases(problem, AOGD.for_problem(problem), 16, generations=5)
    >>> sorted(found), 0 < found["regret"].ratio <= 1
    (['regret', 'signed_violation'], True)
    """
    T, size = validate.count("rounds", rounds), validate.count("population", population)
    validate.count("generations", generations)
    adversary = _Adversary(problem, choices)
    rng = np.random.default_rng(validate.seed("seed", seed))
    candidates = _comparators(problem, rng)
    found: dict[str, WorstCase] = {}
    measures = _bounded_measures(problem, learner, T)
    with reporter(progress, "worst cases", unit="generations") as report:
        for k, measure in enumerate(measures):
            genes = adversary.draw(rng, size)
            for generation in range(generations):
                case, fitness = _evaluate(problem, learner, adversary, genes, T, measure, candidates)
                if case is not None and (measure not in found or case.ratio > found[measure].ratio):
                    found[measure] = case
                if generation + 1 < generations:
                    genes = _next_generation(rng, genes, fitness, adversary)
                report(k * generations + generation + 1, len(measures) * generations)
    return found


class _Adversary:
    """The map from genes, time and the learner's position to the parameters of a round."""

    def __init__(self, problem: Problem, choices: Sequence[ArrayLike] | None = None) -> None:
        constraint = problem.constraint
        self.choices = None if choices is None else _require_choices(problem, choices)
        if self.choices is None:
            zero = np.zeros((1, problem.dimension))
            problem.loss.parameters_towards(zero, zero[:, 0], problem.enclosing_set)
        if constraint.parameters and not isinstance(constraint, VaryingAffine):
            what = f"a {type(constraint).__name__} that changes has no known set of possible parameters"
            raise InputError("problem", what, "Use VaryingAffine, or a fixed constraint")
        self.problem, self.d = problem, problem.dimension
        self.rows = constraint.count if isinstance(constraint, VaryingAffine) else 0
        self.size = 1 + self.d + FEATURES + LEVELS + self.rows * (self.d + 2)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return random genes, shape (size, phases, genes). The first adversaries use a single feature."""
        genes = rng.standard_normal((size, PHASES, self.size)) * rng.choice([0.3, 1.0, 3.0], (size, PHASES, 1))
        for k in range(min(FEATURES + 1, size)):
            genes[k, :, 1 : 1 + self.d + FEATURES] = 0.0
            if k == 0:
                genes[k, :, 1] = 3.0 * (-1.0) ** np.arange(PHASES)
            else:
                genes[k, :, self.d + k] = 3.0
        return np.asarray(genes)

    def phases(self, genes: FloatArray, rounds: int) -> NDArray[np.int64]:
        """Return the phase of every round, shape (rounds, size)."""
        lengths = np.exp(np.clip(genes[..., 0], -4.0, 4.0))
        ends = np.cumsum(lengths, axis=1) / lengths.sum(axis=1, keepdims=True)
        share = (np.arange(rounds) + 0.5) / rounds
        return np.asarray(np.sum(share[:, None, None] > ends[None], axis=-1))

    def parameters(
        self, genes: FloatArray, t: int, x: FloatArray, before: FloatArray
    ) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return the loss and constraint parameters of round t for the current genes (size, genes)."""
        d, centre = self.d, self.problem.enclosing_set.centre
        fixed, scalars = genes[:, 1 : 1 + d], genes[:, 1 + d : 1 + d + FEATURES]
        position = _unit(x - centre)
        rows, limits = self._constraint(genes, position)
        given = [rows, limits] if self.rows else []
        directions = (
            (-1.0) ** t * _unit(fixed),
            position,
            _unit(self._steepest(x, given)),
            _unit(x - before),
        )
        u = fixed + sum(scalars[:, k, None] * direction for k, direction in enumerate(directions))
        u = u / np.maximum(norm(u), 1.0)[:, None]
        if self.choices is not None:
            return self._choose(x, u), given
        first = 1 + d + FEATURES
        level = np.clip(genes[:, first] + (-1.0) ** t * genes[:, first + 1], -1.0, 1.0)
        return list(self.problem.loss.parameters_towards(u, level, self.problem.enclosing_set)), given

    def _steepest(self, x: FloatArray, given: list[FloatArray]) -> FloatArray:
        """Return the gradient at x of the largest g_j."""
        g = self.problem.constraint
        return np.asarray(g.gradient_of(x, np.argmax(g.values(x, *given), axis=-1), *given))

    def _choose(self, x: FloatArray, u: FloatArray) -> list[FloatArray]:
        """Return for each adversary the choice whose gradient at x goes farthest along u."""
        assert self.choices is not None
        gradients = self.problem.loss.gradient(x[:, None], *self.choices)
        gradients = np.broadcast_to(gradients, (len(x), len(self.choices[0]), self.d))
        best = np.argmax(np.vecdot(gradients, u[:, None]), axis=1)
        return [values[best] for values in self.choices]

    def _constraint(self, genes: FloatArray, position: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows and limits of a changing constraint. The centre of the set stays feasible."""
        g, d, m = self.problem.constraint, self.d, self.rows
        if not isinstance(g, VaryingAffine):
            return np.zeros(0), np.zeros(0)
        own = genes[:, 1 + d + FEATURES + LEVELS :].reshape(len(genes), m, d + 2)
        rows = g.row_norm * _unit(own[..., :d] + own[..., d, None] * position[:, None, :])
        least = np.maximum(rows @ self.problem.enclosing_set.centre, -g.limit_bound)
        return rows, least + (g.limit_bound - least) / (1 + np.exp(-own[..., d + 1]))


def _require_choices(problem: Problem, choices: Sequence[ArrayLike]) -> list[FloatArray]:
    """Return the parameters of possible rounds, validated."""
    shapes = problem.loss.parameters
    remedy = f"Give one array for each of {list(shapes)}, with the rounds on the first axis"
    try:
        arrays = [np.asarray(values, dtype=np.float64) for values in choices]
    except (TypeError, ValueError) as error:
        raise InputError("choices", f"cannot be read as arrays of numbers ({error})", remedy) from None
    counts = {len(values) if values.ndim else 0 for values in arrays}
    if len(arrays) != len(shapes) or len(counts) != 1 or 0 in counts:
        raise InputError("choices", f"has arrays of shapes {[values.shape for values in arrays]}", remedy)
    if any(values.shape[1:] != shape for values, shape in zip(arrays, shapes.values(), strict=True)):
        raise InputError("choices", f"has arrays of shapes {[values.shape for values in arrays]}", remedy)
    problem.loss.check_parameters(arrays, 1)
    return arrays


def _unit(vectors: FloatArray) -> FloatArray:
    lengths = np.asarray(norm(vectors))[..., None]
    return np.where(lengths > 1e-12, vectors / np.where(lengths > 1e-12, lengths, 1.0), 0.0)


def _comparators(problem: Problem, rng: np.random.Generator) -> FloatArray:
    """Return points of the set. For a fixed constraint they are feasible, most of them extreme."""
    B = problem.enclosing_set
    points = np.concatenate([B.sample(rng, CANDIDATES), B.centre[None]])
    if problem.constraint.parameters:
        return points
    if problem.projection is not None:
        far = B.centre + 4 * B.diameter * _unit(rng.standard_normal((CANDIDATES, B.dimension)))
        points = np.asarray(problem.projection(np.concatenate([points, far])))
    feasible = np.max(problem.constraint.values(points), axis=-1) <= 1e-12 * problem.constants.constraint_bound
    return np.asarray(points[feasible])


def _bounded_measures(problem: Problem, learner: Learner[Any], rounds: int) -> tuple[str, ...]:
    with_state = learner.bound(problem, 1, state=learner.init((1,)))
    known = {*learner.bound(problem, rounds), *with_state}
    return tuple(measure for measure in MEASURES if measure in known)


@dataclass(eq=False)
class _Run:
    """The measures of every round, shape (rounds, size), the parameters, and the last state."""

    values: Mapping[str, FloatArray]
    loss: list[FloatArray]
    constraint: list[FloatArray]
    states: Mapping[int, Any]
    """The states after some rounds, by the number of rounds."""


def _run(
    problem: Problem,
    learner: Learner[Any],
    adversary: _Adversary,
    genes: FloatArray,
    rounds: int,
    candidates: FloatArray,
) -> _Run:
    """Run the learner against a population of adversaries."""
    size = len(genes)
    state, states = learner.init((size,)), {}
    phases = adversary.phases(genes, rounds)
    x = before = np.array(learner.ask(state))
    loss, others = np.zeros(size), np.zeros((size, len(candidates)))
    feasible = np.ones((size, len(candidates)), dtype=np.bool_)
    per_constraint = np.zeros((size, problem.constraint.count))
    sums = {SIGNED: np.zeros(size), HARD: np.zeros(size), SQUARED: np.zeros(size)}
    values: dict[str, list[FloatArray]] = {measure: [] for measure in MEASURES}
    parameters: tuple[list[list[FloatArray]], list[list[FloatArray]]] = ([], [])
    points = np.broadcast_to(candidates, (size, *candidates.shape))
    with np.errstate(all="ignore"):
        for t in range(rounds):
            x, before = np.asarray(learner.ask(state)), x
            of_loss, of_constraint = adversary.parameters(genes[np.arange(size), phases[t]], t, x, before)
            feedback = observe(problem, x, of_loss, of_constraint)
            parameters[0].append(of_loss)
            parameters[1].append(of_constraint)
            loss = loss + feedback.loss
            others = others + problem.loss.value(points, *(a[:, None] for a in of_loss))
            if of_constraint:
                at_points = problem.constraint.values(points, *(a[:, None] for a in of_constraint))
                feasible = feasible & (np.max(at_points, axis=-1) <= 0)
            worst = np.asarray(feedback.constraint)
            excess = np.maximum(worst, 0.0)
            per_constraint = per_constraint + feedback.constraint_values
            for measure, amount in ((SIGNED, worst), (HARD, excess), (SQUARED, excess**2)):
                sums[measure] = sums[measure] + amount
                values[measure].append(sums[measure])
            values[LONG_TERM].append(per_constraint.max(axis=-1))
            values[REGRET].append(loss - np.min(np.where(feasible, others, np.inf), axis=-1))
            state = learner.update(state, feedback)
            if t + 1 == rounds or (t + 1) & t == 0:
                states[t + 1] = state
    arrays = [[np.stack(column) for column in zip(*part, strict=True)] for part in parameters]
    return _Run({measure: np.stack(column) for measure, column in values.items()}, arrays[0], arrays[1], states)


def _evaluate(
    problem: Problem,
    learner: Learner[Any],
    adversary: _Adversary,
    genes: FloatArray,
    rounds: int,
    measure: str,
    candidates: FloatArray,
) -> tuple[WorstCase | None, FloatArray]:
    """Return the best case of a population, and the ratios of all."""
    run = _run(problem, learner, adversary, genes, rounds, candidates)
    bound = _bounds(problem, learner, rounds, measure, run)
    values = run.values[measure]
    usable = np.isfinite(values) & np.isfinite(bound) & (bound > 0)
    ratio = np.where(usable, values / np.where(usable, bound, 1.0), -np.inf)
    fitness = ratio.max(axis=0)
    k = int(np.argmax(fitness))
    t = int(np.argmax(ratio[:, k]))
    if not np.isfinite(fitness[k]):
        return None, fitness
    loss, constraint = ([a[: t + 1, k] for a in part] for part in (run.loss, run.constraint))
    level = float(bound[t, k])
    return WorstCase(measure, float(fitness[k]), float(values[t, k]), level, t + 1, Replay(loss, constraint)), fitness


def _bounds(problem: Problem, learner: Learner[Any], rounds: int, measure: str, run: _Run) -> FloatArray:
    """Return the smallest bound that is known of every round, shape (rounds, size). NaN where none is known.

    Bounds that need a state are evaluated after 1, 2, 4, … rounds and after the last.
    """
    table = np.full(run.values[measure].shape, np.nan)
    try:
        before = learner.bound(problem, np.arange(1, rounds + 1))
        where: Any = slice(None)
    except InputError:
        before, where = learner.bound(problem, rounds), -1
    if measure in before:
        table[where] = np.asarray(before[measure])[..., None]
    for t, state in run.states.items():
        after = learner.bound(problem, t, state=state)
        if measure in after:
            table[t - 1] = np.fmin(table[t - 1], after[measure])
    return table


def _next_generation(
    rng: np.random.Generator, genes: FloatArray, fitness: FloatArray, adversary: _Adversary
) -> FloatArray:
    """Keep the elite, and fill the population with mutated crossings of it."""
    size = len(genes)
    order = np.argsort(-fitness, kind="stable")
    elite = genes[order[: max(2, int(ELITE * size))]]
    count = size - len(elite)
    mothers, fathers = (elite[rng.integers(len(elite), size=count)] for _ in range(2))
    children = np.where(rng.random((count, PHASES, 1)) < 0.5, mothers, fathers)
    scale = 10 ** rng.uniform(-2.0, 0.5, (count, 1, 1))
    chosen = rng.random(children.shape) < rng.choice([0.1, 0.5, 1.0], (count, 1, 1))
    children = children + chosen * scale * rng.standard_normal(children.shape)
    fresh = rng.random((count, PHASES, 1)) < 0.03
    return np.concatenate([elite, np.where(fresh, adversary.draw(rng, count), children)])
