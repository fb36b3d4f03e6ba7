"""Problems: an enclosing set, a loss family, a constraint and the streams of rounds; their constants."""

from longterm.problems.benchmarks import Benchmark, EveryRound, InExpectation, OnAverage
from longterm.problems.constants import Constants
from longterm.problems.constraints.affine import Affine, VaryingAffine
from longterm.problems.constraints.base import Constraint
from longterm.problems.constraints.budgets import ElasticNetBudget, L1Budget, L2Budget
from longterm.problems.constraints.combine import Maximum, Stack
from longterm.problems.constraints.consensus import Consensus
from longterm.problems.constraints.custom import CustomConstraint
from longterm.problems.constraints.doubly_stochastic import DoublyStochastic
from longterm.problems.constraints.on_first import OnFirst
from longterm.problems.constraints.positive_semidefinite import PositiveSemidefinite
from longterm.problems.constraints.scaled import Scaled
from longterm.problems.constraints.smooth import Smooth
from longterm.problems.counterexamples import Counterexample, challenge
from longterm.problems.losses.base import Loss
from longterm.problems.losses.custom import CustomLoss
from longterm.problems.losses.linear import Linear
from longterm.problems.losses.margins import Hinge, Logistic, SquaredHinge
from longterm.problems.losses.priced_utility import PricedUtility
from longterm.problems.losses.residuals import Absolute, Huber, LeastSquares, Quantile
from longterm.problems.losses.squared_distance import SquaredDistance
from longterm.problems.named.adversarial import late_reversal, random_half_spaces, switching_constraints
from longterm.problems.named.linear_program import online_linear_program
from longterm.problems.named.logistic import budgeted_logistic, fair_logistic
from longterm.problems.named.network import Network, routing
from longterm.problems.named.power import power_allocation
from longterm.problems.named.servers import job_scheduling, mean_of_arrivals, speeds_of_servers
from longterm.problems.named.targets import (
    consensus,
    covariance,
    doubly_stochastic,
    noisy_doubly_stochastic,
    two_dimensional,
)
from longterm.problems.problem import Problem
from longterm.problems.projections.base import Projection
from longterm.problems.projections.birkhoff import project_onto_doubly_stochastic
from longterm.problems.projections.correlation import project_onto_correlation
from longterm.problems.projections.elastic_net import project_onto_elastic_net
from longterm.problems.projections.polyhedron import Polyhedron
from longterm.problems.projections.psd import project_onto_psd_in_ball
from longterm.problems.sets.ball import Ball
from longterm.problems.sets.base import Set
from longterm.problems.sets.box import Box
from longterm.problems.sets.product import Product
from longterm.problems.sets.simplex import RowStochastic, Simplex
from longterm.problems.slater import SlaterPoint, find_slater_point
from longterm.problems.streams.adversarial import LateReversal, RandomCosts, SwitchingConstraints, SwitchingCosts
from longterm.problems.streams.arrays import Replay, ResampledRows, Windows
from longterm.problems.streams.base import Block, ChunkedStream, Seeds, Stream
from longterm.problems.streams.iterable import FromIterable
from longterm.problems.streams.resources import DriftingCosts, EdgeLatencies, JobsAndPrices
from longterm.problems.streams.targets import NoisyPermutations, NoisyTargets, PairwiseSigns, RandomPermutations
from longterm.problems.streams.turning import TurningHalfPlane, TurningTargets

__all__ = [
    "Absolute",
    "Affine",
    "Ball",
    "Benchmark",
    "Block",
    "Box",
    "ChunkedStream",
    "Consensus",
    "Constants",
    "Constraint",
    "Counterexample",
    "CustomConstraint",
    "CustomLoss",
    "DoublyStochastic",
    "DriftingCosts",
    "EdgeLatencies",
    "ElasticNetBudget",
    "EveryRound",
    "FromIterable",
    "Hinge",
    "Huber",
    "InExpectation",
    "JobsAndPrices",
    "L1Budget",
    "L2Budget",
    "LateReversal",
    "LeastSquares",
    "Linear",
    "Logistic",
    "Loss",
    "Maximum",
    "Network",
    "NoisyPermutations",
    "NoisyTargets",
    "OnAverage",
    "OnFirst",
    "PairwiseSigns",
    "Polyhedron",
    "PositiveSemidefinite",
    "PricedUtility",
    "Problem",
    "Product",
    "Projection",
    "Quantile",
    "RandomCosts",
    "RandomPermutations",
    "Replay",
    "ResampledRows",
    "RowStochastic",
    "Scaled",
    "Seeds",
    "Set",
    "Simplex",
    "SlaterPoint",
    "Smooth",
    "SquaredDistance",
    "SquaredHinge",
    "Stack",
    "Stream",
    "SwitchingConstraints",
    "SwitchingCosts",
    "TurningHalfPlane",
    "TurningTargets",
    "VaryingAffine",
    "Windows",
    "budgeted_logistic",
    "challenge",
    "consensus",
    "covariance",
    "doubly_stochastic",
    "fair_logistic",
    "find_slater_point",
    "job_scheduling",
    "late_reversal",
    "mean_of_arrivals",
    "noisy_doubly_stochastic",
    "online_linear_program",
    "power_allocation",
    "project_onto_correlation",
    "project_onto_doubly_stochastic",
    "project_onto_elastic_net",
    "project_onto_psd_in_ball",
    "random_half_spaces",
    "routing",
    "speeds_of_servers",
    "switching_constraints",
    "two_dimensional",
]
