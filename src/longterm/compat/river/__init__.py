"""Linear models under a budget or with parity between groups, and prediction intervals, for River (extra `river`).

Rows are dictionaries, or data frames. Features may appear and disappear: a name gets a column when it is first learned,
and the number of columns is doubled when there are more names. A missing feature is 0. A round costs as much as the
dictionary has entries.
"""

from __future__ import annotations

from importlib.util import find_spec

from longterm._base.extras import missing_extra

if find_spec("river") is None:
    raise missing_extra("longterm.compat.river needs river", "river")

from longterm.compat.river.conformal import OnlineConformal
from longterm.compat.river.fair_stream import FairClassifierStream
from longterm.compat.river.linear_stream import LinearClassifierStream, LinearRegressorStream

__all__ = ["FairClassifierStream", "LinearClassifierStream", "LinearRegressorStream", "OnlineConformal"]
