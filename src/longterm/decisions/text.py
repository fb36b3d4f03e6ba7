"""Features of a text, small and fast: a signed hash of its words and a few counts.

No training, no vocabulary, no dependency.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray

_WORD = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")
SURFACE = 13
"""How many surface features there are; the first is constant."""


@dataclass(frozen=True)
class WordHash:
    """A text as `SURFACE` + `size` numbers.

    Each distinct word (or digit string, or sign) adds ±1 to one of `size` places, both by its CRC-32; the sum is
    scaled to norm 1. Before it stand surface features: a constant, length, shares of digits, capitals and signs,
    lines, mean word length, marks of questions, gaps, formulas and money, short and long. Only the first `limit`
    characters are read.

    Parameters
    ----------
    size : int
        Places for words.
    limit : int
        Characters read: what keeps a decision below a millisecond for any text.
    constant : float
        The constant feature. A linear belief lets actions differ in level by `constant` times its `own`: make it
        large and `own` small where actions are better or worse more than they are good at different things.

    Examples
    --------
    >>> from longterm.decisions import WordHash
    >>> WordHash(8)("What is 2 + 2?").shape
    (21,)
    """

    size: int = 32
    limit: int = 4000
    constant: float = 1.0

    def __post_init__(self) -> None:
        validate.count("size", self.size)
        validate.count("limit", self.limit)
        validate.fields(self, validate.positive_scalar, "constant")

    @property
    def features(self) -> int:
        """The length of the vector."""
        return SURFACE + self.size

    def __call__(self, text: str) -> FloatArray:
        """The features of one text."""
        whole = len(text)
        text = text[: self.limit]
        words = _WORD.findall(text.lower())
        hashes = np.array([zlib.crc32(word.encode("utf-8", "replace")) for word in set(words)], dtype=np.int64)
        sums = np.bincount((hashes >> 1) % self.size, weights=2.0 * (hashes & 1) - 1.0, minlength=self.size)
        places = np.asarray(sums, dtype=np.float64)
        norm = float(np.sqrt(places @ places))
        if norm > 0:
            places = places / norm
        length = max(len(text), 1)
        codes = np.frombuffer(text.encode("ascii", "replace"), dtype=np.uint8)
        digits = int(np.count_nonzero((codes >= 48) & (codes <= 57)))
        capitals = int(np.count_nonzero((codes >= 65) & (codes <= 90)))
        letters = int(np.count_nonzero((codes >= 97) & (codes <= 122)))
        blanks = int(np.count_nonzero((codes == 32) | ((codes >= 9) & (codes <= 13))))
        signs = len(codes) - digits - capitals - letters - blanks
        mean = min(sum(map(len, words)) / len(words), 20.0) if words else 4.0
        surface = [
            self.constant,
            np.log1p(whole) / 8 - 0.7,
            digits / length * 4,
            capitals / length * 4,
            signs / length * 4,
            min(text.count("\n") / 10, 3.0),
            mean / 5 - 0.8,
            float("?" in text),
            float("_" in text),
            float("=" in text or "+" in text or "^" in text),
            float("$" in text),
            float(whole < 150),
            float(whole > 600),
        ]
        return np.concatenate([surface, places])
