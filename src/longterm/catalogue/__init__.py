"""The catalogue: learners and problems by name, for the command line, settings files and the arena.

It finds names, reads their parameters and builds them. Rules and problems themselves belong in `learners` and
`problems`.
"""

from longterm.catalogue.scenarios import Scenario

__all__ = [
    "Scenario",
]
