"""The choice between the NumPy engine and the JAX engine."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any, Literal

from longterm.problems.constraints import CustomConstraint
from longterm.problems.losses import CustomLoss

Engine = Literal["numpy", "jax"]
"""The reference engine, and the compiled one (extra `jax`)."""
EngineChoice = Literal["auto", "numpy", "jax"]
ROUNDS_WORTH_COMPILING = 50_000
"""A round takes about 100 µs in NumPy and 3 µs in JAX, which first compiles for seconds."""


def faster_engine(rounds: int | None, parts: Iterable[Any]) -> Engine:
    """Return "jax" if JAX is installed, the run is long and no user function has to be compiled.

    Parameters
    ----------
    rounds : int, optional
        None where the stream's length is unknown.
    parts : iterable
        The losses, constraints and learners to compile, or their builders.

    Returns
    -------
    {"numpy", "jax"}

    Examples
    --------
    >>> from longterm import AOGD
    >>> from longterm.play.engines.selection import faster_engine
    >>> from longterm.problems import doubly_stochastic
    >>> problem = doubly_stochastic(3)
    >>> faster_engine(1000, [problem.loss, problem.constraint, AOGD.for_problem(problem)])
    'numpy'
    """
    if rounds is None or rounds < ROUNDS_WORTH_COMPILING or find_spec("jax") is None:
        return "numpy"
    from_library = all(
        part.__module__.partition(".")[0] == "longterm" and not isinstance(part, (CustomLoss, CustomConstraint))
        for part in parts
    )
    return "jax" if from_library else "numpy"
