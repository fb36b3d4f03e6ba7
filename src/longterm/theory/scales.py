"""Constants of the mixture of scales, which learners and compiled kernels share (docs/proofs/scales.md)."""

from __future__ import annotations

SCALES, RATIO = 8, 4.0

PACE = 0.5
"""c, at most 2."""

BLOCK_TOLERANCE, LONGEST_BLOCK = 0.15, 128
"""The largest move of an exponent within a block, and the most rounds of a block, a power of 2.

With a tolerance of .2 covtype in its own order loses half a per cent more.
"""
