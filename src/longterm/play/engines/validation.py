"""Validation of the arguments of `run` and `compare`, and of the blocks that a stream yields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longterm._base.messages import kind_of
from longterm.errors import InputError
from longterm.learners.interface.learner import Learner, require_learner
from longterm.play.engines.trace import SeedsPlayed, StateUnknown, Trace
from longterm.problems import Problem
from longterm.problems.streams import Stream
from longterm.problems.streams.base import Block


def require_kinds(problem: Any, learners: dict[str, Any], stream: Any) -> None:
    """Raise if the problem, a learner or the stream is of another type; the keys name the learners' arguments."""
    if not isinstance(problem, Problem):
        what = f"is {kind_of(problem)}, not a Problem{_order_hint(problem)}"
        raise InputError("problem", what, "Make one with longterm.Problem(set, loss, constraint), or longterm.problems")
    for argument, learner in learners.items():
        require_learner(learner, argument, _order_hint(learner))
    if not isinstance(stream, Stream):
        what = f"is {kind_of(stream)}, not a stream{_order_hint(stream)}"
        remedy = "Wrap arrays with one row a round: streams.Replay([array, …]); an iterable: FromIterable(…)"
        raise InputError("stream", what, remedy)


def require_mapping(learners: Any) -> None:
    """Raise if the learners of a comparison are not a mapping by name."""
    if not isinstance(learners, Mapping):
        what = f"is {kind_of(learners)}, not a mapping of learners by name"
        raise InputError("learners", what, 'Give {"a name": learner, …}')


def _order_hint(value: Any) -> str:
    """Return a hint at swapped arguments if the value is a problem, a learner or a stream."""
    swapped = isinstance(value, (Problem, Learner, Stream))
    return " (are the arguments in the order problem, learner, stream?)" if swapped else ""


def require_fit(problem: Problem, block: Block, seed_axes: tuple[int, ...], first: int) -> None:
    """Raise if a block's arrays are not the parameters that the problem's loss and constraint need."""
    for role, arrays, wanted in (
        ("loss", block.loss, problem.loss.parameters),
        ("constraint", block.constraint, problem.constraint.parameters),
    ):
        if len(arrays) != len(wanted):
            raise InputError(
                "stream",
                f"gives {len(arrays)} {role} parameters, {problem.name!r} needs {len(wanted)} ({', '.join(wanted)})",
                f"Make a stream whose rounds hold {tuple(wanted)}",
                round=first,
            )
        for array, (name, shape) in zip(arrays, wanted.items(), strict=True):
            if array.dtype.kind not in "fiub":
                raise InputError(name, f"has dtype {array.dtype}", "Give real numbers", round=first)
            if array.shape[1:] not in (shape, seed_axes + shape):
                raise InputError(
                    name,
                    f"has shape {array.shape[1:]} in a round, not {shape}",
                    f"Give the {name} of each round in shape {shape}",
                    round=first,
                )
    problem.loss.check_parameters(block.loss, first)


def require_resumable(earlier: Trace, batch_shape: tuple[int, ...], seeds: SeedsPlayed, rounds: int | None) -> None:
    """Raise if an earlier trace cannot be continued by a run with this batch, these seeds and this many rounds."""
    if isinstance(earlier.state, StateUnknown):
        what = "was loaded without its learner, so its state is not known"
        raise InputError("resume", what, "Load it with Trace.load(path, learner)")
    if earlier.seeds != seeds or tuple(earlier.sums.loss.shape) != batch_shape:
        what = f"has seeds {earlier.seeds} and a batch of shape {tuple(earlier.sums.loss.shape)}"
        remedy = f"Resume with the same. This run has seeds {seeds} and a batch of shape {batch_shape}"
        raise InputError("resume", what, remedy)
    if rounds is not None and rounds < earlier.last_round:
        what = f"has {earlier.last_round} rounds, but {rounds} were requested"
        raise InputError("resume", what, "Ask for as many rounds in all, or more")
