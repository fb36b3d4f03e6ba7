"""Features of texts: a signed hash of the words and a few counts. No training, no vocabulary, no dependency."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError

_WORD = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")
SURFACE_FEATURES = 13
"""The number of counts and marks; the first is constant."""


def _require_text(text: Any) -> str:
    if isinstance(text, str):
        return text
    raise InputError(
        "text",
        f"is of type {type(text).__name__}, not a text",
        "Give a text, or make the router with features of another kind",
    )


@dataclass(frozen=True)
class WordHash:
    """Turn a text into numbers, so that a router can learn from it without a language model.

    The result has `SURFACE_FEATURES` + `size` numbers.

    Each distinct word (or digit string, or sign) adds ±1 to one of `size` places, both given by its CRC-32. The sum is
    scaled to norm 1. The surface features before it are a constant, length, shares of digits, capitals and signs,
    lines, mean word length, and marks of questions, gaps, formulas, money, short and long texts.

    Parameters
    ----------
    size : int
        Places for words.
    limit : int
        Only so many characters are read, which keeps a decision below a millisecond.
    constant : float
        The constant feature. A linear belief lets actions differ in level by `constant` times its `prior_scale`. A
        large constant and a small scale suit actions that differ in level more than in what they are good at.

    Examples
    --------
    >>> from longterm.money.choosing.text import WordHash
    >>> WordHash(8)("What is 2 + 2?").shape
    (21,)
    """

    size: int = 32
    limit: int = 4000
    constant: float = 1.0

    def __post_init__(self) -> None:
        validate.count("size", self.size)
        validate.count("limit", self.limit)
        validate.validate_fields(self, validate.positive_scalar, "constant")

    @property
    def features(self) -> int:
        """The length of the vector."""
        return SURFACE_FEATURES + self.size

    def __call__(self, text: str) -> FloatArray:
        """Return the features of one text."""
        length = len(_require_text(text))
        text = text[: self.limit]
        words = _WORD.findall(text.lower())
        return np.concatenate([self._surface(text, words, length), self._hashed(words)])

    def _hashed(self, words: list[str]) -> FloatArray:
        hashes = np.array([zlib.crc32(word.encode("utf-8", "replace")) for word in set(words)], dtype=np.int64)
        sums = np.bincount((hashes >> 1) % self.size, weights=2.0 * (hashes & 1) - 1.0, minlength=self.size)
        places = np.asarray(sums, dtype=np.float64)
        norm = float(np.sqrt(places @ places))
        return places / norm if norm > 0 else places

    def _surface(self, text: str, words: list[str], length: int) -> list[float]:
        codes = np.frombuffer(text.encode("ascii", "replace"), dtype=np.uint8)
        digits = int(np.count_nonzero((codes >= 48) & (codes <= 57)))
        capitals = int(np.count_nonzero((codes >= 65) & (codes <= 90)))
        letters = int(np.count_nonzero((codes >= 97) & (codes <= 122)))
        blanks = int(np.count_nonzero((codes == 32) | ((codes >= 9) & (codes <= 13))))
        signs = len(codes) - digits - capitals - letters - blanks
        mean_word = min(sum(map(len, words)) / len(words), 20.0) if words else 4.0
        share = 4 / max(len(text), 1)
        return [
            self.constant,
            float(np.log1p(length)) / 8 - 0.7,
            digits * share,
            capitals * share,
            signs * share,
            min(text.count("\n") / 10, 3.0),
            mean_word / 5 - 0.8,
            float("?" in text),
            float("_" in text),
            float("=" in text or "+" in text or "^" in text),
            float("$" in text),
            float(length < 150),
            float(length > 600),
        ]
