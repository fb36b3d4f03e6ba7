"""The arena: every learner on every problem that it can handle, and a league table.

arena_of                     learners, problems, rounds and sequences
run_arena                    run the matches that are missing
league, Preference           the ranking for a given trade-off
"""

from longterm.lab.arena.arena_spec import arena_of
from longterm.lab.arena.league import Preference, league
from longterm.lab.arena.matches import run_arena

__all__ = [
    "Preference",
    "arena_of",
    "league",
    "run_arena",
]
