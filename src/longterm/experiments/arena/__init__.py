"""The arena: every learner on every problem that it is able to play, and a league table.

ArenaSpec, arena_of          who plays what, for how long
run_arena                    plays what is missing
ArenaResult, load_arena      what was found
league, Preference           the ranking by a trade-off of the reader's
"""

from longterm.experiments.arena.league import Preference, Standing, league
from longterm.experiments.arena.results import ArenaResult, Match, load_arena
from longterm.experiments.arena.run import run_arena
from longterm.experiments.arena.spec import ArenaSpec, arena_of

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
