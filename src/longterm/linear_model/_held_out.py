"""What `fit` without a budget chooses, by the loss of rows held out: passes, the leader's strength, how much of each.

Without a budget weights are kept small by the number of passes, or by the strength λ of the leader of all rows
(`_leader`). Both are chosen by the loss of rows that are held out, a part at a time, and so is the share that the
average of the rounds has in the answer; the leader has the rest. Parts and their orders are drawn from a fixed seed, so
that what is chosen depends on the rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.linear_model._feature_scale import KNOWN_POWER
from longterm.linear_model._leader import Leader, Leaders
from longterm.linear_model._passes import DECAY, SAMPLES, Recent, Rows
from longterm.linear_model._row_losses import RowLosses

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
SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Of the average of the rounds in the answer; the first of those that are as good."""

Scores = list[list[FloatArray]]
"""Of the rows held out, for each part and each learner."""


class Choice(NamedTuple):
    """How to fit: how often to go through the rows, and a leader of which strength has which part of the answer."""

    passes: int
    share: float = 1.0
    """Of the average of the rounds."""
    strength: float = 0.0
    power: float = KNOWN_POWER


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
        strength, power, by_leader = self._chosen_leader(self._leaders)
        share = min(SHARES, key=lambda share: self._loss(_mixed(share, by_rounds, by_leader)))
        return Choice(passes, share, strength, power)

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

    def _chosen_leader(self, makes: Leaders) -> tuple[float, float, Scores]:
        """The best strength, between those tried where a parabola is lowest, then the best power, and its scores."""
        leaders = self._leaders_of(makes, KNOWN_POWER)
        points = [[leader.start() for leader in some] for some in leaders]
        losses, best, strength = list[float](), points, STRONGEST
        scores = chosen = self._scores_of(leaders, points)
        while strength > WEAKEST:
            points = _at(leaders, strength, points)
            scores = self._scores_of(leaders, points)
            losses.append(self._loss(scores))
            place = int(np.argmin(losses))
            if place == len(losses) - 1:
                best, chosen = points, scores
            elif not losses[-1] <= WORSE * losses[place] or len(losses) - place > 2:
                break
            strength /= RATIO
        least, power, strength = min(losses), KNOWN_POWER, STRONGEST * RATIO ** -_lowest(losses)
        for other in OTHER_POWERS if makes.powers_matter() else ():
            others = self._leaders_of(makes, other)
            starts = [
                [one.point(*leader.model(point)) for one, leader, point in zip(*three, strict=True)]
                for three in zip(others, leaders, best, strict=True)
            ]
            scores = self._scores_of(others, _at(others, strength, starts))
            if self._loss(scores) < least:
                least, power, chosen = self._loss(scores), other, scores
        return strength, power, chosen

    def _leaders_of(self, makes: Leaders, power: float) -> list[list[Leader]]:
        """Of the rows that are kept, for each part and each kind of targets."""
        return [
            [makes.of(labels, self._rows.weights, power, kept) for labels in self._rows.targets] for kept in self._kept
        ]

    def _scores_of(self, leaders: list[list[Leader]], points: list[list[FloatArray]]) -> Scores:
        return [
            [_scores(self._X[out], *leader.model(point)) for leader, point in zip(*both, strict=True)]
            for *both, out in zip(leaders, points, self._held, strict=True)
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


def _at(leaders: list[list[Leader]], strength: float, starts: list[list[FloatArray]]) -> list[list[FloatArray]]:
    """The points of this strength."""
    return [
        [leader.at(strength, start) for leader, start in zip(*both, strict=True)]
        for both in zip(leaders, starts, strict=True)
    ]


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
