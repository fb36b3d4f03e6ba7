"""Do the rounds fit the problem: the parameters that its loss and its constraint ask for, in their shapes?"""

from __future__ import annotations

from longterm.errors import InputError
from longterm.problems import Problem
from longterm.streams import Block


def require_fit(problem: Problem, block: Block, seed_axes: tuple[int, ...], first: int) -> None:
    """The stream's arrays must be the parameters that the problem's loss and constraint ask for."""
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
