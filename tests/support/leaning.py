"""Streams that lean in one direction."""

from dataclasses import dataclass

import numpy as np

from longterm.problems.streams import RandomCosts


@dataclass(frozen=True)
class Leaning(RandomCosts):
    """Vectors of length `norm` that lean in one direction: costs that push out of the set, targets outside of it."""

    towards: tuple[float, ...] = ()

    def expand(self, drawn):
        return super().expand(drawn * 0.5 + np.array(self.towards))
