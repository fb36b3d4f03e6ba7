"""The arena: every learner on every problem that it is able to play, and a league table.

ArenaSpec, arena_of      who plays what, for how long
run_arena                plays what is missing, and writes the tables
Arena, load_arena        what was found
league, Taste            the ranking by a trade-off of the reader's
"""

from longterm.experiments.arena.found import Arena, Match, load_arena
from longterm.experiments.arena.league import Standing, Taste, league
from longterm.experiments.arena.run import run_arena
from longterm.experiments.arena.spec import ArenaSpec, arena_of

__all__ = ["Arena", "ArenaSpec", "Match", "Standing", "Taste", "arena_of", "league", "load_arena", "run_arena"]
