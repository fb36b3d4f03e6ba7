"""Ranks of hedged cuts in finished arenas: by both measures of violation, at three trade-offs.

    longterm arena --out arena
    longterm arena --out unseen --held-out 20261119
    python benchmarks/arena_ranks.py arena unseen

The first table ranks all learners, where a problem that a learner cannot handle counts ½, and names the first of the
other learners. The second table names the learners that are ahead of hedged cuts on the problems which they can handle,
and the last line counts the problems on which hedged cuts are first.
"""

from __future__ import annotations

import sys

import numpy as np

from longterm.lab.arena.arena_spec import ArenaSpec
from longterm.lab.arena.league import MEASURE_OF, Preference, Violation, league, shares
from longterm.lab.arena.matches import ArenaFolder
from longterm.lab.arena.results import ArenaResult, load_arena

WEIGHTS = (0.25, 0.5, 0.75)
OURS: dict[Violation, str] = {"hard": "Hedged cuts", "long-term": "Hedged cuts, bank = 0.1"}
"""The setting for each measure of violation."""


def finished(folder: str) -> ArenaResult:
    """Return the arena in a folder."""
    records = ArenaFolder(folder)
    return load_arena(ArenaSpec.of_table(records.manifest["spec"]), records, {})


def scores(arena: ArenaResult, preference: Preference) -> dict[tuple[str, str], float]:
    """Return the score of each learner on each problem that it can handle."""
    found: dict[tuple[str, str], float] = {}
    for problem in arena.problems:
        present = {match.learner: match for match in arena.on_problem(problem)}
        weights = arena.weights(problem)
        for measure, weight in (("regret", 1 - preference.weight), (preference.measure, preference.weight)):
            lost = [match.lost(measure) for match in present.values()]
            for name, share in zip(present, shares(lost, weights), strict=True):
                found[name, problem] = found.get((name, problem), 0.0) + weight * share
    return found


def ahead_on_their_problems(arena: ArenaResult, preference: Preference, ours: str) -> list[str]:
    """Return the learners with a smaller mean score than ours on the problems that they can handle."""
    by_pair, found = scores(arena, preference), []
    for name in arena.learners:
        handled = [problem for problem in arena.problems if (name, problem) in by_pair]
        if name == ours or not handled:
            continue
        theirs, mine = (float(np.mean([by_pair[one, problem] for problem in handled])) for one in (name, ours))
        if theirs < mine:
            found.append(f"{name} ({len(handled)} problems: {theirs:.3f}, ours {mine:.3f})")
    return found


def times_first(arena: ArenaResult, preference: Preference, ours: str) -> int:
    """Return the number of problems on which no learner has a smaller score than ours."""
    by_pair = scores(arena, preference)
    return sum(
        by_pair[ours, problem] <= min(score for (_, other), score in by_pair.items() if other == problem)
        for problem in arena.problems
    )


def main(*folders: str) -> None:
    """Print the tables."""
    for folder in folders:
        arena = finished(folder)
        count = len(arena.problems)
        print(f"{folder}: {len(arena.learners)} learners and settings, {count} problems")
        print(f"{'violation':<12}{'weight':>7}  {'ours':<25}{'rank':>5}{'score':>16}   the first of the others")
        for measure, ours in OURS.items():
            for weight in WEIGHTS:
                standings = league(arena, Preference(weight, measure))
                mine = next(one for one in standings if one.learner == ours)
                other = next(one for one in standings if not one.learner.startswith("Hedged cuts"))
                number = f"{mine.score:.3f} ± {mine.deviation:.3f}"
                print(f"{measure:<12}{weight:>7}  {ours:<25}{mine.rank:>5}{number:>16}   ", end="")
                print(f"{other.learner} ({len(other.matches)} problems), {other.score:.3f} ± {other.deviation:.3f}")
        print("on the problems that they can handle, ahead of ours:")
        for measure, ours in OURS.items():
            for weight in WEIGHTS:
                preference = Preference(weight, measure)
                names = "; ".join(ahead_on_their_problems(arena, preference, ours)) or "none"
                print(f"  {MEASURE_OF[measure]}, {weight}: {names}")
                print(f"    ours first on {times_first(arena, preference, ours)} of {count} problems")


if __name__ == "__main__":
    main(*sys.argv[1:])
