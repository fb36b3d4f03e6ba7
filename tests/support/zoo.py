"""One of everything: sets, losses, constraints, problems with a stream each, learners. Tests combine them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

from longterm import AOGD, InputError, Problem, SlaterPoint, find_slater_point
from longterm._base.arrays import as_column, dot, like, namespace
from longterm.learners import (
    AFTRL,
    LEWA,
    OSOCO,
    AdaGradAOGD,
    AdaptiveAFTRL,
    AdaptivePenalisedFTRL,
    ConstrainedExperts,
    DecayingMarginAOGD,
    DoublingRestarts,
    DriftPlusPenalty,
    FeasibleOnlineADM,
    HedgedCuts,
    HintedCuts,
    LatestCut,
    Learner,
    MahdaviOGD,
    MirrorProx,
    MixedAFTRL,
    MixedPenalisedFTRL,
    NetworkedSaddlePoint,
    NoViolationAOGD,
    NoViolationMahdaviOGD,
    NoViolationMirrorProx,
    OneProjectionSGD,
    OnlineADM,
    OptimisticAFTRL,
    OptimisticCOCO,
    OptimisticOGD,
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
from longterm.learners.optimistic.hints import Seasonal
from longterm.learners.penalties.penalty_step import penalty_step_of
from longterm.learners.tightened.margins import ConstantMargin, DecayingMargin
from longterm.problems import (
    budgeted_logistic,
    consensus,
    covariance,
    doubly_stochastic,
    power_allocation,
    two_dimensional,
)
from longterm.problems.constraints import (
    Affine,
    Consensus,
    Constraint,
    CustomConstraint,
    DoublyStochastic,
    ElasticNetBudget,
    L1Budget,
    L2Budget,
    Maximum,
    OnFirstCoordinates,
    PositiveSemidefinite,
    Scaled,
    Smooth,
    Stack,
    VaryingAffine,
)
from longterm.problems.constraints.prox import ElasticNetProx, PenaltyProx
from longterm.problems.losses import (
    Absolute,
    CustomLoss,
    Hinge,
    Huber,
    LeastSquares,
    Linear,
    Logistic,
    Loss,
    Quantile,
    SquaredDistance,
    SquaredHinge,
)
from longterm.problems.named.adversarial import random_half_spaces, switching_constraints
from longterm.problems.sets import Ball, Box, Product, RowStochastic, Set, Simplex
from longterm.problems.streams import (
    NoisyTargets,
    RandomCosts,
    RandomPermutations,
    Replay,
    ResampledRows,
    Stream,
    Windows,
)
from longterm.problems.streams.base import Block
from longterm.problems.streams.costs import SwitchingConstraints, SwitchingCosts
from longterm.problems.streams.points import PairwiseSigns
from longterm.theory.schedules import ConstantSchedule, ConvexSchedule, CustomSchedule

D = 6  # every set of the zoo has six coordinates, so that any loss and constraint fits any set


class MixedPermutations(Stream):
    """Random means of two 3 × 3 permutation matrices."""

    def draw(self, seed: int, start: int, stop: int) -> Block:
        one, other = (RandomPermutations(3).draw(seed + shift, start, stop).loss[0] for shift in (0, 1000))
        weights = np.stack([np.random.default_rng([seed, t]).random(1) for t in range(start, stop)])
        return Block((weights * one + (1 - weights) * other,))


def sets() -> dict[str, Set]:
    return {
        "ball": Ball(D, radius=1.5),
        "moved ball": Ball(D, radius=0.7, centre=np.linspace(-1, 1, D)),
        "box": Box(np.linspace(-2, -1, D), np.linspace(0.5, 3, D)),
        "simplex": Simplex(D, total=2.0),
        "rows": RowStochastic(2, 3),
        "product": Product([Ball(2, radius=0.5), Simplex(3), Box([-1.0], [2.0])]),
    }


def losses() -> dict[str, Loss]:
    return {
        "squared distance": SquaredDistance(D, targets=Ball(D, radius=2.0)),
        "linear": Linear(D, cost_norm=3.0),
        "logistic": Logistic(D, feature_norm=2.0),
        "hinge": Hinge(D, feature_norm=2.0),
        "absolute": Absolute(D, feature_norm=2.0, label_bound=1.0),
        "least squares": LeastSquares(D, feature_norm=2.0, label_bound=1.0),
        "squared hinge": SquaredHinge(D, feature_norm=2.0),
        "Huber": Huber(D, feature_norm=2.0, label_bound=1.0, threshold=0.8),
        "quantile": Quantile(D, feature_norm=2.0, label_bound=1.0, level=0.3),
        "custom": CustomLoss(
            D,
            function=lambda x, a: (x[..., 0] - a) ** 2,
            derivative=lambda x, a: 2 * (x[..., 0] - a)[..., None] * first_axis(x),
            gradient_bound=20.0,
            value_range=50.0,
            parameters={"a": ()},
        ),
    }


def first_axis(x: Any) -> Any:
    """e_1, in x's own library."""
    import array_api_compat

    xp = array_api_compat.array_namespace(x)
    return xp.astype(xp.arange(x.shape[-1]) == 0, x.dtype)


def parameters_of(function: Loss | Constraint, rng: np.random.Generator) -> list[np.ndarray]:
    """Parameters of one round that respect what the function declares."""
    made = []
    for name, shape in function.parameters.items():
        values = rng.standard_normal(shape)
        kind = name.split("[")[0]
        if kind in ("features", "target"):
            values *= 2.0 / np.linalg.norm(values)
        elif kind == "cost":
            values *= 3.0 / np.linalg.norm(values)
        elif kind == "matrix":
            values /= np.linalg.norm(values, axis=-1, keepdims=True)
        elif kind == "limit":
            values = rng.uniform(-1, 1, shape)
        elif kind == "label":
            values = np.sign(values)
        made.append(np.asarray(values))
    return made


def constraints() -> dict[str, Constraint]:
    rng = np.random.default_rng(7)
    affine = Affine(rng.standard_normal((4, D)), rng.uniform(0.1, 1, 4))
    return {
        "affine": affine,
        "varying affine": VaryingAffine(D, count=3, row_norm=1.0, limit_bound=1.0),
        "elastic net": ElasticNetBudget(D, budget=1.2, l1=0.7, l2=1.3),
        "l1": L1Budget(D, budget=1.0),
        "l2": L2Budget(D, budget=0.8),
        "scaled": Scaled(affine, factor=2.5),
        "smooth": Smooth(ElasticNetBudget(D, budget=1.2, l1=0.0, l2=1.3), smoothness=1.3),
        "on the first": OnFirstCoordinates(ElasticNetBudget(D - 2, budget=1.2), free=2),
        "stack": Stack([affine, L2Budget(D, budget=0.8), VaryingAffine(D, 2, 1.0, 1.0)]),
        "maximum": Maximum([affine, L1Budget(D, budget=0.8)], over=Ball(D, radius=3.0)),
        "custom": CustomConstraint(
            D,
            function=lambda x: x[..., 0] ** 2 - 1.0,
            derivative=lambda x: 2 * x[..., 0][..., None] * first_axis(x),
            gradient_bound=10.0,
            value_bound=30.0,
        ),
    }


def constraint_sizes() -> dict[str, Constraint]:
    """Constraints whose dimension is not the zoo's."""
    return {
        "doubly stochastic": DoublyStochastic(3),
        "consensus": Consensus(3, 2, [(0, 1), (2, 1)]),
        "positive semi-definite": PositiveSemidefinite(3, floor=0.2),
    }


@cache
def problems() -> dict[str, tuple[Problem, Stream]]:
    """Problems with a stream each, seeded; made once, as all that is made of them: they are never written to."""
    rng = np.random.default_rng(3)
    features, labels = rng.standard_normal((40, 5)), np.sign(rng.standard_normal(40))
    ball = Ball(3, radius=2.0)
    varying = Problem(ball, Linear(3, 1.0), VaryingAffine(3, 2, 1.0, 0.5), name="varying")
    normals = rng.standard_normal((300, 2, 3))
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    costs = rng.standard_normal((300, 3))
    costs /= np.linalg.norm(costs, axis=-1, keepdims=True)
    prices = 0.6 + 0.5 * np.sin(np.arange(100) / 9)
    half_spaces = random_half_spaces(2, 3)
    return {
        "two-dimensional": (two_dimensional(), Replay([np.tile([[1.0, 0.0], [0.0, 1.0]], (150, 1))])),
        "doubly stochastic": (doubly_stochastic(4), RandomPermutations(4)),
        # No permutations here: with them entries of x are equal, and rounding decides which constraint is the largest.
        "doubly stochastic in rows": (doubly_stochastic(3, enclosing="rows"), MixedPermutations()),
        "correlation": (covariance(5), PairwiseSigns(5)),
        # Three rows: with more, small eigenvalues meet, and which of two eigenvectors is played is up to rounding.
        "covariance": (covariance(3, unit_diagonal=False), PairwiseSigns(3)),
        "budgeted logistic": (budgeted_logistic(features, budget=1.0), ResampledRows(features, labels)),
        "adversary on a box": (
            Problem(Box.cube(3, -1.0, 1.0), Linear(3), Affine([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0]], [0.2, 0.3])),
            SwitchingCosts(3),
        ),
        "random costs on a simplex": (
            Problem(Simplex(4), Linear(4), Affine([[1.0, 0.0, 0.0, 1.0]], [0.4])),
            RandomCosts(4),
        ),
        "with an intercept": (
            Problem(
                Product([Ball(2, radius=0.8), Box([-0.5], [0.5])]),
                Hinge(3, feature_norm=1.0),
                OnFirstCoordinates(ElasticNetBudget(2, budget=1.12)),
            ),
            ResampledRows(costs, np.sign(costs[:, 0])),
        ),
        "ball in a ball": (Problem(Ball(3, radius=2.0), Linear(3), L2Budget(3, budget=0.8)), SwitchingCosts(3)),
        "consensus on a path": (
            consensus(3, [(0, 1), (2, 1)], Box.cube(2, -1.0, 1.0)),
            NoisyTargets(np.linspace(-0.8, 0.8, 6), spread=0.2),
        ),
        "power": (power_allocation(prices, 2), Windows(prices)),
        "switching constraints": (switching_constraints(half_spaces), SwitchingConstraints(half_spaces)),
        "varying constraints": (varying, Replay([costs], [normals, rng.uniform(0, 0.5, (300, 2))])),
        "maximum on a product": (
            Problem(
                Product([Ball(2), Simplex(2)]),
                SquaredDistance(4, targets=Ball(4)),
                Maximum([L2Budget(4, budget=1.0), Affine([[1.0, 0.0, 1.0, 0.0]], [0.5])], over=Ball(4, radius=2.0)),
                name="maximum on a product",
            ),
            RandomCosts(4),
        ),
    }


@cache
def learners(problem: Problem) -> dict[str, Learner[Any]]:
    """Every learner that can play the problem."""
    constants = problem.constants
    made: dict[str, Learner[Any]] = {
        "A-OGD convex": AOGD.for_problem(problem),
        "A-OGD constant": AOGD(problem.enclosing_set, ConstantSchedule(theta=0.5, eta=0.05, mu=0.1)),
        "A-OGD custom": AOGD(
            problem.enclosing_set,
            CustomSchedule(theta=lambda t: 2 / t**0.5, eta=lambda t: 0.2 / t**0.5, mu=lambda t: 0.1 / t),
        ),
        "A-OGD other β": AOGD(
            problem.enclosing_set, ConvexSchedule(constants.diameter, constants.gradient_bound, beta=0.3)
        ),
    }
    if not isinstance(problem.constraint, L2Budget):  # there x_3 is 0 up to rounding, where the gradient of ‖x‖ jumps
        scale = 3 * constants.constraint_bound**2  # small ones make chaotic dynamics
        made["A-OGD, constants found"] = AdaGradAOGD.for_problem(problem, theta_0=scale)
    if constants.strong_convexity > 0:
        made["A-OGD strongly convex"] = AOGD.for_problem(problem, steps="strongly convex")
    if not problem.constraint.parameters and problem.projection is not None:
        made["projected OGD"] = ProjectedOGD.for_problem(problem)
        if constants.strong_convexity > 0:
            made["projected OGD strongly convex"] = ProjectedOGD.for_problem(problem, steps="strongly convex")
    project = projection_of(problem.constraint)
    if project is not None:
        made["online ADM"] = OnlineADM.for_problem(problem, horizon=200, projection=project)
    if project is not None and isinstance(problem.enclosing_set, Ball):  # from B it stays in B
        made["one projection"] = OneProjectionSGD.for_problem(problem, horizon=200, projection=project, slope=1.0)
    if isinstance(problem.constraint, L2Budget):  # {g ≤ 0} lies inside B
        made["feasible online ADM"] = FeasibleOnlineADM.for_problem(problem, horizon=200, projection=project)
    affine = None if problem.constraint.parameters else problem.constraint.as_affine()
    if isinstance(problem.enclosing_set, (Ball, Box)) and affine is not None and affine.limit.min() > 0:
        made["OSOCO"] = OSOCO.for_problem(problem, noise=0.01)
    if isinstance(problem.enclosing_set, Simplex):
        made["constrained experts"] = ConstrainedExperts.for_problem(problem, horizon=1000, beta=0.8)
        made["LEWA"] = LEWA.for_problem(problem, horizon=200)
    if isinstance(problem.constraint, Consensus):
        made["networked saddle point"] = NetworkedSaddlePoint.for_problem(problem, horizon=200)
    made |= constant_step_learners(problem) | learners_without_violation(problem) | learners_with_prox(problem)
    made |= penalty_and_queue_learners(problem) | recent_learners(problem)
    return made | drift_learners(problem) | hint_learners(problem)


def drift_learners(problem: Problem) -> dict[str, Learner[Any]]:
    """Return the learners for comparators that move."""
    if isinstance(problem.constraint, DoublyStochastic):  # equal columns: rounding decides which one is the largest
        return {}
    fixed = not problem.constraint.parameters
    penalty: Any = None if fixed and (problem.projection is not None or problem.slater_point is not None) else "none"
    made: dict[str, Learner[Any]] = {
        "latest cut": LatestCut.for_problem(problem),
    }
    trackers: tuple[Any, ...] = ("ader",)
    if problem.name == "two-dimensional":  # elsewhere rounding decides which of two equal levels leads
        trackers = (*trackers, "restarts")
    for tracker in trackers:
        made[f"tracked penalty, {tracker}"] = TrackedPenalty.for_problem(
            problem, horizon=1000, tracker=tracker, penalty=penalty
        )
    if problem.constraint.count == 1 and isinstance(problem.constraint, Affine):
        made["latest set"] = LatestCut.for_problem(problem, onto="set")
    return made


def hint_learners(problem: Problem) -> dict[str, Learner[Any]]:
    """Return the learners that use forecasts of the gradients."""
    made: dict[str, Learner[Any]] = {
        "hinted cuts": HintedCuts.for_problem(problem, hints=Seasonal(3)),
        "optimistic OGD": OptimisticOGD.for_problem(problem),
    }
    if not isinstance(problem.constraint, (DoublyStochastic, L2Budget, PositiveSemidefinite)):
        made["optimistic COCO"] = OptimisticCOCO.for_problem(problem)  # there rounding decides the subgradient
    if not problem.constraint.parameters and problem.constraint.prox(problem.enclosing_set) is not None:
        made["optimistic A-FTRL"] = OptimisticAFTRL.for_problem(problem)
    return made


def recent_learners(problem: Problem) -> dict[str, Learner[Any]]:
    """Return the learners from Yu, Lee and Lee on."""
    # Many cuts bring small eigenvalues together, and rounding decides which of two eigenvectors is cut by.
    few = 3 if isinstance(problem.constraint, PositiveSemidefinite) else None
    made: dict[str, Learner[Any]] = {
        "hedged cuts": HedgedCuts.for_problem(problem, cuts=few),
        "hedged cuts, bank": HedgedCuts.for_problem(problem, bank=0.1, meta="adapt-ml-prod", cuts=1, path=1.0),
        "Yu–Lee–Lee": YuLeeLee.for_problem(problem, rates="published"),
        "Yu–Lee–Lee, hard, sharp": YuLeeLee.for_problem(problem, hard=True, rates="sharp"),
        "A-OGD with a penalty": AOGD.for_problem(problem, penalty=0.3),
    }
    if problem.constraint.parameters:
        made["hedged cuts, remembered"] = HedgedCuts.for_problem(problem, remembered=4)
    B = problem.enclosing_set
    if isinstance(B, Ball) or (isinstance(B, Box) and np.all(B.lower < B.upper)):
        made["two-point bandit"] = TwoPointBandit.for_problem(problem, horizon=1000, seed=5)
    point = interior(problem)
    if point is not None:
        made["Polyak feasibility steps"] = PolyakFeasibility.for_problem(problem, horizon=1000, slater=point)
    if penalty_step_of(problem) is not None:
        made["prox penalty"] = ProxPenalty.for_problem(problem, w_0=0.01)
        made["RECOO"] = ProxPenalty.for_problem(problem, preset="recoo", w_0=0.01)
        made["COLDQ"] = ProxPenalty.for_problem(problem, preset="coldq", horizon=1000)
    if problem.constants.strong_convexity > 0:
        made["hedged cuts strongly convex"] = HedgedCuts.for_problem(problem, steps="strongly convex")
        made["Yu–Lee–Lee strongly convex"] = YuLeeLee.for_problem(problem, steps="strongly convex", rates="sharp")
        if penalty_step_of(problem) is not None:
            made["prox penalty strongly convex"] = ProxPenalty.for_problem(problem, steps="strongly convex", w_0=0.01)
    return made


def learners_with_prox(problem: Problem) -> dict[str, Learner[Any]]:
    """Return the learners whose steps contain a fixed constraint itself."""
    prox = problem.constraint.prox(problem.enclosing_set)
    if problem.constraint.parameters or prox is None:
        return {}
    theta_0 = prox.values_norm_bound() ** 2 / problem.constants.loss_range  # tiny ones make chaotic dynamics
    made: dict[str, Learner[Any]] = {
        "A-FTRL": AFTRL.for_problem(problem, theta_0=theta_0),
        "A-FTRL, constants found": AdaptiveAFTRL.for_problem(problem, theta_0=prox.values_norm_bound() ** 2),
        "A-FTRL restarted": Restarted(AFTRL.for_problem(problem, theta_0=theta_0), every=30),
        "proximal A-OGD": ProximalAOGD.for_problem(problem, theta_0=theta_0),
    }
    if problem.constants.strong_convexity > 0:
        made["A-FTRL strongly convex"] = AFTRL.for_problem(problem, steps="strongly convex", theta_0=theta_0)
        made["proximal A-OGD strongly convex"] = ProximalAOGD.for_problem(
            problem, steps="strongly convex", theta_0=theta_0
        )
    if isinstance(prox, PenaltyProx):
        made["penalised FTRL"] = PenalisedFTRL.for_problem(problem)
        made["penalised FTRL, constants found"] = AdaptivePenalisedFTRL.for_problem(problem)
    if isinstance(prox, ElasticNetProx):
        c = prox.values_norm_bound() ** 2
        made["A-FTRL, a mixture"] = MixedAFTRL.for_problem(problem, theta_0=c, priced=True)
        made["penalised FTRL, a mixture"] = MixedPenalisedFTRL.for_problem(problem)
    return made


def penalty_and_queue_learners(problem: Problem) -> dict[str, Learner[Any]]:
    """Return quadratic penalties, virtual queues and prices of the violation, for more rounds than any test plays."""
    made: dict[str, Learner[Any]] = {
        "quadratic penalty": QuadraticPenaltyOGD.for_problem(problem),
        "drift plus penalty": DriftPlusPenalty.for_problem(problem, horizon=1000),
        "Sinha–Vaze": SinhaVaze.for_problem(problem, horizon=1000),
    }
    if problem.constraint.count > 1:
        made["quadratic penalty on each"] = QuadraticPenaltyOGD.for_problem(problem, beta=0.5, penalties="each")
    if problem.constraint.parameters:
        made["drift plus penalty, doubling"] = DoublingRestarts(
            DriftPlusPenalty.for_problem(problem, horizon=1, preset="neely-yu"), first_epoch=12
        )
    if problem.constants.strong_convexity > 0:
        made["quadratic penalty strongly convex"] = QuadraticPenaltyOGD.for_problem(problem, steps="strongly convex")
        made["Sinha–Vaze strongly convex"] = SinhaVaze.for_problem(problem, horizon=1000, steps="strongly convex")
    if not problem.constraint.parameters and problem.constraint.prox(problem.enclosing_set) is not None:
        made["Yu–Neely"] = YuNeely.for_problem(problem, horizon=1000, preset="published")
        made["Yu–Neely, doubling"] = DoublingRestarts(YuNeely.for_problem(problem, horizon=1), first_epoch=12)
    return made


def projection_of(constraint: Constraint) -> Callable[[Any], Any] | None:
    """The projection onto {g ≤ 0} where it has a closed form: a half-space, a ball."""
    if isinstance(constraint, L2Budget):
        return Ball(constraint.dimension, radius=constraint.budget).project
    if isinstance(constraint, Affine) and constraint.count == 1:
        row, square = constraint.matrix[0], float(constraint.matrix[0] @ constraint.matrix[0])

        def onto_half_space(x: Any) -> Any:
            normal = like(row, x)
            excess = namespace(x).maximum(dot(normal, x) - float(constraint.limit[0]), 0.0)
            return x - as_column(excess / square) * normal

        return onto_half_space
    return None


def constant_step_learners(problem: Problem) -> dict[str, Learner[Any]]:
    """Return the learners of Mahdavi, Jin and Yang, for more rounds than any test plays."""
    made: dict[str, Learner[Any]] = {
        "OGD (Mahdavi et al. 2012), a multiplier each": MahdaviOGD.for_problem(
            problem, horizon=1000, multipliers="each"
        ),
        "OGD (Mahdavi et al. 2012) on the maximum": MahdaviOGD.for_problem(problem, horizon=1000, delta="twice"),
    }
    if problem.constraint.as_affine() is not None:
        made["mirror prox"] = MirrorProx.for_problem(problem, horizon=1000)
    return made


def learners_without_violation(problem: Problem) -> dict[str, Learner[Any]]:
    """Return the learners that need an interior, with margins that change within a few rounds."""
    point = interior(problem)
    if point is None:
        return {}
    rule, epsilon = AOGD.for_problem(problem), point.epsilon
    known = NoViolationAOGD(learner=rule, slater=point, margin=ConstantMargin(epsilon / 2), coefficient=3 * epsilon)
    made: dict[str, Learner[Any]] = {
        "no violation": known,
        "no violation, decaying": DecayingMarginAOGD(
            learner=rule, slater=point, margin=DecayingMargin(3 * epsilon, 1 / 3, epsilon)
        ),
        "no violation, doubling": DoublingRestarts(known, first_epoch=10),
        "no violation, OGD (Mahdavi et al. 2012)": NoViolationMahdaviOGD(
            learner=MahdaviOGD.for_problem(problem, horizon=1000), slater=point, margin=ConstantMargin(epsilon / 2)
        ),
    }
    if problem.constraint.as_affine() is not None:
        made["no violation, mirror prox"] = NoViolationMirrorProx.for_problem(problem, horizon=10_000)
    return made


INTERIOR = {
    "correlation n=5": np.eye(5).ravel(),
    "covariance n=3": 2.41 * np.eye(3).ravel(),
    "maximum on a product": np.array([-0.174, 0.0, 0.413, 0.587]),
}
"""Points of problems where looking for one takes long: every process that collects the tests would look for it."""


@cache
def interior(problem: Problem) -> SlaterPoint | None:
    """A Slater point, None where there is none to be found."""
    if problem.name in INTERIOR:
        x = INTERIOR[problem.name]
        return SlaterPoint(-float(problem.constraint.values(x).max()), x)
    try:
        return find_slater_point(problem.constraint, problem.enclosing_set)
    except InputError:
        return None


CHAOTIC = {f"doubly stochastic in rows / {rule}" for rule in ("latest cut", "optimistic COCO", "tracked penalty, ader")}
"""Rules that follow the largest g_j where two of them meet: one step agrees to 1e-15, a whole run by chance only."""


@cache
def games() -> dict[str, tuple[Problem, Stream, Learner[Any]]]:
    """Every problem × every learner that can play it, but for runs that rounding decides."""
    return {
        game: (problem, stream, learner)
        for name, (problem, stream) in problems().items()
        for rule, learner in learners(problem).items()
        if (game := f"{name} / {rule}") not in CHAOTIC
    }


def crossed(games: Mapping[str, tuple[Problem, Stream, Learner[Any]]], problems: int = 2) -> list[Any]:
    """Return the names of the games as parameters of a test, with `cross` on all but one or two problems per learner.

    The two problems are the first and the last of a learner, which differ in set, loss and constraint. Each variant of
    a learner with several variants has one of the two, in turn.
    """
    of_rule: dict[str, list[str]] = {}
    for game in games:
        of_rule.setdefault(game.partition(" / ")[2], []).append(game)
    of_class: dict[type[Learner[Any]], list[list[str]]] = {}
    for played in of_rule.values():
        of_class.setdefault(type(games[played[0]][2]), []).append(played)
    kept = {
        game
        for variants in of_class.values()
        for i, played in enumerate(variants)
        for game in ((played[0], played[-1])[:problems] if len(variants) == 1 else (played[-(i % 2)],))
    }
    return [pytest.param(game, marks=[] if game in kept else pytest.mark.cross) for game in games]
