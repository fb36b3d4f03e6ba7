"""The arena: every learner on every problem that it can handle, and a league table.

ArenaSpec, arena_of          learners, problems, rounds and sequences
run_arena                    run the matches that are missing
ArenaResult, load_arena      results
league, Preference           the ranking for a given trade-off
"""

from longterm.lab.arena.arena_spec import ArenaSpec, arena_of
from longterm.lab.arena.league import Preference, Standing, league
from longterm.lab.arena.matches import run_arena
from longterm.lab.arena.results import ArenaResult, Match, load_arena

__all__ = [
    "ArenaResult",
    "ArenaSpec",
    "Match",
    "Preference",
    "Standing",
    "arena_of",
    "league",
    "load_arena",
    "run_arena",
]
