"""The arena: every learner on every problem that it can handle, and a league table.

ArenaSpec, arena_of          learners, problems, rounds and sequences
run_arena                    run the matches that are missing
league, Preference           the ranking for a given trade-off
"""

from longterm.lab.arena.arena_spec import ArenaSpec, arena_of
from longterm.lab.arena.league import Preference, league
from longterm.lab.arena.matches import run_arena

__all__ = [
    "ArenaSpec",
    "Preference",
    "arena_of",
    "league",
    "run_arena",
]
