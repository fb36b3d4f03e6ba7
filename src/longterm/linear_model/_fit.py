"""How `fit` goes through its rows, and what it chooses without a budget by the loss of rows held out.

Without a budget weights are kept small by the number of passes, or by the strength λ of a leader of all rows
(`_leader`). Where features are as many as rows, ten passes have half as much loss again on new rows as one has
(invented text, 7 % positive; on sector a third more than two). So passes are chosen by the loss of rows that are held
out, a part at a time, and so is the share that the average of the rounds has in the answer. Leaders of several
strengths and scalings have the rest, each with the weight that those rows give it. Parts and their orders are drawn
from a fixed seed, so that what is chosen depends on the rows alone. Then the rows are learned anew in other orders, and
the average is the mean of all runs, so that less depends on the order of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.linear_model._leader import Leader, Leaders, RowLosses, Scaling
from longterm.linear_model._rows import RowBlock

SAMPLES, COLUMNS_A_ROUND, DECAY = 256, 1024, 2
"""`fit` averages so many decisions, or fewer where a pass over the columns would cost more than learning does; the n-th
counts ∝ n², so that half of the weight is on the last fifth of the rounds. With several passes it counts ∝ n: the first
of them is a small part of it anyway, and less depends on the order."""
ENOUGH_ROUNDS, MOST_PASSES = 20_000, 10
"""How far `fit` goes by itself: small data sets are gone through often, large ones once."""
RUN_ROUNDS, MOST_RUNS = 80_000, 16
"""Runs go on until as many rounds were played as the choice took for 2,000 rows."""
PARTS, PART_ROWS, ENOUGH_ROWS = 5, 20_000, 30
"""A fifth of the rows is held out at a time, five times, or less often where rows are many; of few rows none is."""
TRIED, WORSE = (1, 2, 3, 4, 6, 10), 1.05
"""Numbers of passes, until one has WORSE times the least loss."""
STRONGEST, WEAKEST, RATIO = 16.0, 1e-5, 4.0
"""Strengths go down from here by this ratio, until two in a row have more loss than the best, or one WORSE times it."""
OTHER_POWERS = (0.0, 0.25)
"""Of the shares of rows in which features are not 0, in their factors: tried besides that of `fit`, at the best
strength. Rare words of a text want larger factors (sector: a tenth less loss), rare features of a web set smaller
ones."""
OTHER_UNITS = (0.5, 0.0)
"""Of the features' sizes, in the same way, where features are centred: units may say how much a feature is to count, as
they do in LogisticRegression (make_classification with redundant features: up to 5 % less loss)."""
FEW_ROWS = 5_000
"""Of so many rows other units are tried, and other scalings at three strengths: more rows have no need of it."""
LEAST_WEIGHT = 0.02
"""Leaders with less than this share of the heaviest one's weight are left out."""
SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Of the average of the rounds in the answer; the first of those that are as good."""
IN_TIME, ALIKE = 0.5, 4.0
"""Its least share where targets come in the order of time: where errors of neighbours go together by more than ALIKE
deviations of what chance does. There rows held out lie between rows that are learned, and say nothing of what comes
next; the mean of two kinds of models has lost less on it than either (`docs/models.md`)."""

Scores = list[list[FloatArray]]
"""Of the rows held out, for each part and each learner."""


class Recent:
    """An average of decisions that forgets the first ones: the n-th of them counts ∝ n^decay (polynomial decay)."""

    def __init__(self, decay: int = 1) -> None:
        self.count, self.mean, self.decay = 0, np.empty(0), decay

    def add(self, decision: FloatArray) -> None:
        """One decision more, its intercept behind the weights."""
        self.count += 1
        share = (self.decay + 1) / (self.count + self.decay)
        self.mean = decision if self.count == 1 else self.mean + share * (decision - self.mean)

    def model(self, learner: Any) -> tuple[FloatArray, Any]:
        """Weights and intercepts of the average: 0 where the learner's last decision is, and within the budget."""
        d = learner.settings.dimension
        return learner.nearest_within_budget(np.where(learner.weights != 0, self.mean[:d], 0.0), self.mean[d:])  # type: ignore[no-any-return]


class Rows:
    """What is learned: rows, the labels that each learner sees, weights."""

    def __init__(self, block: RowBlock, targets: list[FloatArray], weights: FloatArray) -> None:
        self.block, self.targets, self.weights = block, targets, weights

    def play(
        self, learners: Sequence[Any], averages: list[list[Recent]], order: NDArray[np.int64], passes: int, samples: int
    ) -> None:
        """One pass in this order, of so many, in which so many decisions go into each learner's averages."""
        stretch = max(passes * len(order) // samples, learners[0].settings.dimension // COLUMNS_A_ROUND, 1)
        for learner, labels, own in zip(learners, self.targets, averages, strict=True):
            for start in range(0, len(order), stretch):
                learner.learn_checked(self.block, labels, self.weights, order[start : start + stretch])
                decision = np.append(learner.weights, learner.intercept)
                for average in own:
                    average.add(decision)

    def runs(self, passes: int, share: float) -> int:
        """How often so many passes can be made anew; less often where the answer is only in part their average."""
        return min(max(round(share * RUN_ROUNDS / (passes * self.block.count)), 1), MOST_RUNS)


class Part(NamedTuple):
    """A leader's part of the answer."""

    weight: float
    """All of them add up to 1."""
    strength: float
    scaling: Scaling = Scaling()


class Choice(NamedTuple):
    """How to fit: how often to go through the rows, and leaders of which strengths have which part of the answer."""

    passes: int
    share: float = 1.0
    """Of the average of the rounds."""
    parts: tuple[Part, ...] = ()
    """Of the rest."""

    def leader(self, of: Callable[[Scaling], Leader]) -> FloatArray:
        """The mixed leader, its intercepts behind the weights; `of` finds that of a scaling."""
        made = np.zeros(0)
        for scaling in dict.fromkeys(part.scaling for part in self.parts):
            some = sorted((part for part in self.parts if part.scaling == scaling), key=lambda part: -part.strength)
            for part, model in zip(some, of(scaling).found([part.strength for part in some]), strict=True):
                made = part.weight * model + (made if made.size else 0.0)
        return made


class Tried(NamedTuple):
    """Leaders of one strength, of each part and kind of targets, with what they lose."""

    loss: float
    strength: float
    scaling: Scaling
    leaders: list[list[Leader]]
    points: list[list[FloatArray]]
    scores: Scores


class HeldOut:
    """Rows, of which parts are held out in turn.

    `make` makes new learners, one for each kind of targets; `leaders` are None where there is to be none.
    """

    def __init__(
        self,
        rows: Rows,
        X: Any,
        losses: RowLosses,
        make: Callable[[], Sequence[Any]],
        leaders: Leaders | None,
    ) -> None:
        self._rows, self._X, self._losses, self._make, self._leaders = rows, X, losses, make, leaders
        n = rows.block.count
        self._are_few = n <= FEW_ROWS
        self._random = np.random.default_rng(0)
        mixed = self._random.permutation(n)
        mixed = mixed[np.lexsort([labels[mixed] for labels in rows.targets])]  # so that parts have alike labels
        parts = min(max(PART_ROWS // n, 1), PARTS)
        self._held = [np.sort(mixed[part::PARTS]) for part in range(parts)]
        self._kept = [np.setdiff1d(mixed, out) for out in self._held]

    def choice(self, most: int, shuffle: bool) -> Choice:
        """What has the least loss, with at most `most` passes."""
        passes, by_rounds = self._chosen_passes([one for one in TRIED if one <= most], shuffle)
        if self._leaders is None:
            return Choice(passes)
        parts, by_leader = self._mixed_leader(self._tried_leaders(self._leaders))
        share = min(SHARES, key=lambda share: self._loss(_mixed(share, by_rounds, by_leader)))
        if share < IN_TIME and self._come_in_time(_mixed(share, by_rounds, by_leader)):
            share = IN_TIME
        return Choice(passes, share, parts)

    def _come_in_time(self, scores: Scores) -> bool:
        """Whether rows are targets in the order of time: an error says something about the next one."""
        if not self._losses.is_of_targets:
            return False
        held = np.concatenate(self._held)
        slopes = self._losses.slopes(
            np.concatenate([own[0] for own in scores]), self._rows.targets[0][held], np.empty(0)
        )[np.argsort(held)]
        slopes -= slopes.mean()
        return bool(slopes[1:] @ slopes[:-1] * np.sqrt(len(held)) > ALIKE * (slopes @ slopes))

    def _chosen_passes(self, tried: Sequence[int], shuffle: bool) -> tuple[int, Scores]:
        """The best number of passes, and the scores that it gives."""
        games = [self._make() for _ in self._held]
        averages = [[[Recent(), Recent(DECAY)] for _ in game] for game in games]
        for learner, labels in zip(games[0], self._rows.targets, strict=True):
            learner.require(self._rows.block, labels, self._rows.weights)
        best, least, chosen = tried[0], np.inf, list[list[FloatArray]]()
        for number in range(1, tried[-1] + 1):
            for part, game in enumerate(games):
                order = self._random.permutation(self._kept[part]) if shuffle else self._kept[part]
                self._rows.play(game, averages[part], order, tried[-1], SAMPLES // 2)
            if number in tried:
                scores = [
                    [_scores(self._X[out], *own[-1].model(one)) for one, own in zip(game, means, strict=True)]
                    for game, means, out in zip(games, averages, self._held, strict=True)
                ]
                loss = self._loss(scores)
                if loss < least or not chosen:
                    best, least, chosen = number, loss, scores
                elif not loss <= WORSE * least:
                    break
            averages = [[own[:1] for own in means] for means in averages]  # that of a single pass is done
        return best, chosen

    def _tried_leaders(self, makes: Leaders) -> list[Tried]:
        """Strengths going down, that between them where a parabola is lowest, then other scalings there and nearby."""
        leaders = self._leaders_of(makes, Scaling())
        points = [[leader.start() for leader in some] for some in leaders]
        tried, strength = list[Tried](), STRONGEST
        while strength > WEAKEST:
            tried.append(self._at(leaders, Scaling(), strength, points))
            points, place = tried[-1].points, min(range(len(tried)), key=lambda i: tried[i].loss)
            behind = len(tried) - 1 - place
            if behind > 1 or (behind and not tried[-1].loss <= WORSE * tried[place].loss):
                break
            strength /= RATIO
        best, strength = _best(tried), STRONGEST * RATIO ** -_lowest([one.loss for one in tried])
        if strength != best.strength:
            tried.append(self._at(leaders, Scaling(), strength, best.points))
        others, thoroughly = [Scaling(power) for power in OTHER_POWERS], makes.is_centred and self._are_few
        others += [Scaling(0.0, units) for units in OTHER_UNITS if thoroughly]
        for scaling in makes.differing(others):
            leaders = self._leaders_of(makes, scaling)
            starts = [
                [one.point(*leader.model(point)) for one, leader, point in zip(*three, strict=True)]
                for three in zip(leaders, best.leaders, best.points, strict=True)
            ]
            tried.append(self._at(leaders, scaling, strength, starts))
            if thoroughly and tried[-1].loss <= WORSE * best.loss:
                points = tried[-1].points
                tried += [self._at(leaders, scaling, times * strength, points) for times in (RATIO, 1 / RATIO)]
        return tried

    def _at(
        self, leaders: list[list[Leader]], scaling: Scaling, strength: float, starts: list[list[FloatArray]]
    ) -> Tried:
        """Leaders of this strength, from points nearby."""
        points = [
            [leader.at(strength, start) for leader, start in zip(*both, strict=True)]
            for both in zip(leaders, starts, strict=True)
        ]
        scores = [
            [_scores(self._X[out], *leader.model(point)) for leader, point in zip(*both, strict=True)]
            for *both, out in zip(leaders, points, self._held, strict=True)
        ]
        return Tried(self._loss(scores), strength, scaling, leaders, points, scores)

    def _mixed_leader(self, tried: list[Tried]) -> tuple[tuple[Part, ...], Scores]:
        """The mean of those tried, each with the weight exp(−its loss), and its scores.

        That is what rows held out say about them, were all alike before: of few rows several are as good, and which has
        the least loss is chance. Losses that are no logarithms are taken as those of errors with the least one's mean.
        """
        best = _best(tried)
        least = best.loss
        unit = np.mean(self._rows.weights) if len(self._rows.weights) else 1.0
        if not self._losses.is_logarithm:
            unit = 2 * least / sum(len(out) for out in self._held)
        with np.errstate(all="ignore"):
            weights = np.exp((least - np.array([one.loss for one in tried])) / unit)
        weights = np.where(weights >= LEAST_WEIGHT, weights, 0.0)
        weights = weights / weights.sum() if weights.sum() > 0 else np.array([one is best for one in tried]) * 1.0
        kept = [(float(weight), one) for weight, one in zip(weights, tried, strict=True) if weight > 0]
        scores = _zeros_like(tried[0].scores)
        for weight, one in kept:
            scores = [
                [total + weight * own for total, own in zip(*both, strict=True)]
                for both in zip(scores, one.scores, strict=True)
            ]
        return tuple(Part(weight, one.strength, one.scaling) for weight, one in kept), scores

    def _leaders_of(self, makes: Leaders, scaling: Scaling) -> list[list[Leader]]:
        """Of the rows that are kept, for each part and each kind of targets."""
        return [
            [makes.of(labels, self._rows.weights, scaling, kept) for labels in self._rows.targets]
            for kept in self._kept
        ]

    def _weights(self, some: NDArray[np.int64]) -> FloatArray:
        return self._rows.weights[some] if len(self._rows.weights) else self._rows.weights

    def _loss(self, scores: Scores) -> float:
        """What all rows held out lose; infinite where numbers overflow."""
        with np.errstate(all="ignore"):
            total = sum(
                self._losses.total(own, labels[out], self._weights(out))
                for out, some in zip(self._held, scores, strict=True)
                for labels, own in zip(self._rows.targets, some, strict=True)
            )
        return total if total < np.inf else np.inf


def _best(tried: list[Tried]) -> Tried:
    return min(tried, key=lambda one: one.loss)


def _zeros_like(scores: Scores) -> Scores:
    return [[np.zeros_like(one) for one in some] for some in scores]


def _scores(X: Any, x: FloatArray, intercept: Any) -> FloatArray:
    """Of these rows: one each, or one for each intercept."""
    outputs = np.size(intercept)
    with np.errstate(all="ignore"):
        made = X @ x + intercept if outputs == 1 else X @ x.reshape(outputs, -1).T + intercept
    return np.asarray(made, dtype=np.float64)


def _mixed(share: float, first: Scores, second: Scores) -> Scores:
    """So much of the first, and the rest of the second."""
    with np.errstate(all="ignore"):
        return [
            [share * one + (1 - share) * two for one, two in zip(*both, strict=True)]
            for both in zip(first, second, strict=True)
        ]


def _lowest(values: Sequence[float]) -> float:
    """Where a parabola through the least of these values and its neighbours is lowest; at an end, there."""
    place = int(np.argmin(values))
    if not 0 < place < len(values) - 1:
        return float(place)
    before, here, after = values[place - 1 : place + 2]
    bend = before - 2 * here + after
    return place + (0.5 * (before - after) / bend if 0 < bend < np.inf else 0.0)
