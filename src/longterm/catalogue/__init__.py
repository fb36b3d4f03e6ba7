"""The catalogue: learners and problems by name, for the command line, TOML files and the arena."""

from longterm.catalogue import scenarios
from longterm.catalogue.scenarios import Scenario

__all__ = [
    "Scenario",
    "scenarios",
]
