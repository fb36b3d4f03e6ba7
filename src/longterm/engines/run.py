"""The loop: learners × a problem × a stream × seeds → traces."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from longterm import _validate as validate
from longterm.constraints import CustomConstraint
from longterm.engines.comparison import Comparison
from longterm.engines.reference import Player, Recorder
from longterm.engines.trace import SeedsPlayed, StateUnknown, Trace
from longterm.errors import InputError, StreamEndedError, kind_of
from longterm.learners.base import Learner, require_learner
from longterm.learners.feedback_check import OnBrokenBound, require_known
from longterm.losses import CustomLoss
from longterm.problems import Problem
from longterm.progress import Progress, reporter
from longterm.streams import Block, Seeds, Stream
from longterm.streams.base import checked_seeds

if TYPE_CHECKING:
    from longterm.engines.compiled import CompiledPlayer
    from longterm.engines.device_rounds import DrawnBlock

Engine = Literal["numpy", "jax"]
"""The reference engine, and the compiled one (extra `jax`)."""
ROUNDS_WORTH_COMPILING = 50_000
"""A round takes NumPy about 100 µs and JAX 3, which first compiles for seconds."""
logger = logging.getLogger("longterm.engines")


def run(
    problem: Problem,
    learner: Learner[Any],
    stream: Stream,
    rounds: int | None = None,
    *,
    seeds: Seeds = 0,
    record: Sequence[int] | None = None,
    resume: Trace | None = None,
    on_broken_bound: OnBrokenBound = "raise",
    progress: Progress = "auto",
    engine: Engine | Literal["auto"] = "numpy",
    xp: Any = np,
    dtype: Any = None,
) -> Trace:
    """Let one learner play `rounds` rounds of a stream.

    Parameters
    ----------
    problem : Problem
        The set, the loss and the constraint.
    learner : Learner
        One learner, or a grid of them: hyper-parameters that are arrays.
    stream : Stream
        The parameters of f_1, f_2, … and of g_1, g_2, …
    rounds : int, optional
        T, counted from the start of the stream even when resuming. By default a finite stream is played to its end.
    seeds : int or sequence of int
        One seed for a single run; a sequence, ``range(10)``, for a batch: its i-th row is the single run with the
        i-th seed. A grid of hyper-parameters of shape (3,) and ten seeds give a (3, 10) batch.
    record : sequence of int, optional
        The rounds to keep in the trace; by default log-spaced ones. The last round is always kept.
    resume : Trace, optional
        An earlier run of the same learner, problem, stream and seeds, to be continued. The two together equal one
        uninterrupted run bit for bit.
    on_broken_bound : {"raise", "warn"}
        "raise" stops at the first gradient or constraint above its declared bound; "warn" goes on and notes it in
        ``trace.warnings``. NaN and infinity always stop the run.
    progress : {"auto"} or callable or None
        "auto" shows a bar on a terminal; a function is called with (rounds done, rounds in all).
    engine : {"numpy", "jax", "auto"}
        "numpy" is the reference; "jax" compiles the same learner, problem and stream (extra `jax`) and is more than
        ten times faster for one learner. Both give the same trace, to rounding, in NumPy arrays. "auto" takes "jax"
        where it is known to pay (JAX is installed, the run is long, and every part is of this library), and says which
        it took on the progress bar and to the logger ``longterm.engines``. It is not the default, because the engines
        agree to rounding only: the numbers of a run must not depend on what else is installed, nor on how long it is,
        and a run that is continued must equal the whole bit for bit. A long run that would be compiled is named once
        to the logger.
    xp : namespace
        The array library of the learner's state, for the reference engine only.
    dtype : dtype, optional
        The dtype of the learner's state; float64 by default.

    Returns
    -------
    Trace
        What happened, at the recorded rounds.

    Raises
    ------
    InputError
        Naming the argument, the round and the remedy. The ``trace`` of whatever exception stops a run, an interrupt
        included, holds the run up to the round before, ready for ``resume``.

    Examples
    --------
    >>> from longterm import AOGD, run
    >>> from longterm.problems import doubly_stochastic
    >>> from longterm.streams import RandomPermutations
    >>> problem = doubly_stochastic(4)
    >>> trace = run(problem, AOGD.for_problem(problem), RandomPermutations(4), rounds=100, seeds=range(3))
    >>> trace.rounds[-1], trace.cumulative_loss.shape
    (np.int64(100), (30, 3))
    """
    options: dict[str, Any] = {
        "seeds": seeds,
        "record": record,
        "on_broken_bound": on_broken_bound,
        "progress": progress,
        "engine": engine,
        "xp": xp,
        "dtype": dtype,
    }
    earlier = None if resume is None else {"": resume}
    try:
        return compare(problem, {"": learner}, stream, rounds, resume=earlier, **options)[""]
    except BaseException as error:
        if isinstance(getattr(error, "trace", None), dict):
            error.trace = error.trace[""]  # type: ignore[attr-defined]
        raise


def compare(
    problem: Problem,
    learners: Mapping[str, Learner[Any]],
    stream: Stream,
    rounds: int | None = None,
    *,
    seeds: Seeds = 0,
    record: Sequence[int] | None = None,
    resume: Mapping[str, Trace] | None = None,
    on_broken_bound: OnBrokenBound = "raise",
    progress: Progress = "auto",
    engine: Engine | Literal["auto"] = "numpy",
    xp: Any = np,
    dtype: Any = None,
) -> Comparison:
    """Let several learners, by name, play the same rounds of a stream.

    Parameters
    ----------
    problem : Problem
        The set, the loss and the constraint.
    learners : mapping of str to Learner
        The learners, by name.
    stream : Stream
        The rounds that all of them play.
    rounds : int, optional
        T, as for `run`.
    seeds : int or sequence of int
        As for `run`.
    record : sequence of int, optional
        As for `run`.
    resume : mapping of str to Trace, optional
        Earlier traces, by the same names.
    on_broken_bound : {"raise", "warn"}
        As for `run`.
    progress : {"auto"} or callable or None
        As for `run`.
    engine : {"numpy", "jax", "auto"}
        As for `run`.
    xp : namespace
        As for `run`.
    dtype : dtype, optional
        As for `run`.

    Returns
    -------
    Comparison
        A trace for each name, as a mapping, with `plot`, `summary` and `to_frame`.

    Raises
    ------
    InputError
        As for `run`; its ``trace`` is a dictionary of the traces so far.

    Examples
    --------
    >>> from longterm import AOGD, compare
    >>> from longterm.problems import doubly_stochastic
    >>> from longterm.streams import RandomPermutations
    >>> problem = doubly_stochastic(4)
    >>> learners = {"slow": AOGD.for_problem(problem, beta=0.5), "fast": AOGD.for_problem(problem, beta=0.8)}
    >>> traces = compare(problem, learners, RandomPermutations(4), rounds=100)
    >>> {name: int(trace.last_round) for name, trace in traces.items()}
    {'slow': 100, 'fast': 100}
    """
    _require_kinds(problem, learners, stream)
    if rounds is not None:
        validate.count("rounds", rounds)
    chosen = engine
    faster: Engine = "numpy"
    if xp is np and resume is None:
        faster = faster_engine(rounds or stream.length, (problem.loss, problem.constraint, *learners.values()))
    if chosen == "auto":
        chosen = faster
        logger.info("engine %s was chosen", chosen)
    elif chosen == "numpy" and faster == "jax":
        _say_once("this run is long enough to be compiled: engine='auto' would, for the same numbers to rounding")
    make_player = _engine(chosen, xp)
    require_known(on_broken_bound)
    if not learners:
        raise InputError("learners", "is empty", "Give at least one learner, by name")
    seeds = checked_seeds(seeds)
    seed_axes = () if isinstance(seeds, int) else (len(seeds),)
    total = rounds if rounds is not None else stream.length
    players: dict[str, Player | CompiledPlayer] = {}
    for name, learner in learners.items():
        learner.check(problem)
        earlier = None if resume is None else _continued(resume, name, learner.batch_shape + seed_axes, seeds, rounds)
        players[name] = make_player(
            problem,
            learner.with_trailing_axes(len(seed_axes)),
            batch_shape=learner.batch_shape + seed_axes,
            recorder=Recorder(record, earlier, seeds, rounds=total, problem=problem, stream=stream),
            on_broken_bound=on_broken_bound,
            resume=earlier,
            dtype=dtype,
        )
    start = done = min(player.played for player in players.values())
    title = ", ".join(name for name in players if name) or problem.name
    if engine == "auto":
        title = f"{title} ({chosen})"
    with reporter(progress, title) as report:
        try:
            for first, block in _blocks(chosen, stream, seeds, start, rounds):
                if isinstance(block, Block):
                    require_fit(problem, block, seed_axes, first)
                elif done == start:  # what a device draws has one shape: look once, at a round of one seed
                    require_fit(problem, next(stream.blocks(_first_of(seeds), start, start + 1)), (), first)
                for player in players.values():
                    player.play(block, first)  # type: ignore[arg-type]
                done = first - 1 + block.rounds
                report(done, total)
            if done == 0 or (rounds is not None and done < rounds):
                what = "is empty" if done == 0 else f"ended after round {done}, {rounds} were asked for"
                raise StreamEndedError("stream", what, "Give a longer stream or fewer rounds", round=done + 1)
        except BaseException as error:
            # Whatever stopped the run (bad data, a user's function, Ctrl-C): what was played is not lost.
            error.trace = {name: player.trace() for name, player in players.items()}  # type: ignore[attr-defined]
            raise
    return Comparison({name: player.trace() for name, player in players.items()})


@cache
def _say_once(message: str) -> None:
    logger.info(message)


def _first_of(seeds: SeedsPlayed) -> int:
    return seeds if isinstance(seeds, int) else seeds[0]


def _blocks(
    engine: Engine, stream: Stream, seeds: Seeds, start: int, stop: int | None
) -> Iterator[tuple[int, Block | DrawnBlock]]:
    """The rounds start + 1 … stop, in blocks with the number of their first round; drawn where they are played."""
    if engine == "jax" and stop is not None:
        from longterm.engines import device_rounds

        if device_rounds.can_draw(stream, seeds):
            last = stop if stream.length is None else min(stop, stream.length)
            yield from device_rounds.drawn_blocks(stream, seeds, start, last)  # type: ignore[arg-type]
            return
    first = start + 1
    for block in stream.blocks(seeds, start, stop):
        yield first, block
        first += block.rounds


def faster_engine(rounds: int | None, parts: Iterable[Any]) -> Engine:
    """JAX where it is known to pay: it is installed, the run is long, and no function of a user's has to be compiled.

    Parameters
    ----------
    rounds : int, optional
        None where the stream does not say.
    parts : iterable
        What would be compiled: losses, constraints and learners, or what builds them.

    Returns
    -------
    {"numpy", "jax"}

    Examples
    --------
    >>> from longterm import AOGD
    >>> from longterm.engines.run import faster_engine
    >>> from longterm.problems import doubly_stochastic
    >>> problem = doubly_stochastic(3)
    >>> faster_engine(1000, [problem.loss, problem.constraint, AOGD.for_problem(problem)])
    'numpy'
    """
    if rounds is None or rounds < ROUNDS_WORTH_COMPILING or find_spec("jax") is None:
        return "numpy"
    ours = all(
        one.__module__.partition(".")[0] == "longterm" and not isinstance(one, (CustomLoss, CustomConstraint))
        for one in parts
    )
    return "jax" if ours else "numpy"


def _require_kinds(problem: Any, learners: Any, stream: Any) -> None:
    """Refuse arguments of another kind, in words that say what to write instead."""
    if not isinstance(problem, Problem):
        swapped = " (are the arguments in the order problem, learner, stream?)" if _is_part(problem) else ""
        what = f"is {kind_of(problem)}, not a Problem{swapped}"
        raise InputError("problem", what, "Make one with longterm.Problem(set, loss, constraint), or longterm.problems")
    if not isinstance(learners, Mapping):
        what = f"is {kind_of(learners)}, not a mapping of learners by name"
        raise InputError("learners", what, 'Give {"a name": learner, …}')
    for name, learner in learners.items():
        argument = f"learners[{name!r}]" if name else "learner"
        swapped = " (are the arguments in the order problem, learner, stream?)" if _is_part(learner) else ""
        require_learner(learner, argument, swapped)
    if not isinstance(stream, Stream):
        swapped = " (are the arguments in the order problem, learner, stream?)" if _is_part(stream) else ""
        what = f"is {kind_of(stream)}, not a stream{swapped}"
        remedy = "Wrap arrays with one row a round: longterm.streams.Replay([array, …]); an iterable: FromIterable(…)"
        raise InputError("stream", what, remedy)


def _is_part(value: Any) -> bool:
    """Whether it is one of the three, and so may stand in another's place."""
    return isinstance(value, (Problem, Learner, Stream))


def require_fit(problem: Problem, block: Block, seed_axes: tuple[int, ...], first: int) -> None:
    """A stream's arrays must be the parameters that the problem's loss and constraint ask for, in their shapes."""
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


def _continued(
    resume: Mapping[str, Trace], name: str, batch_shape: tuple[int, ...], seeds: SeedsPlayed, rounds: int | None
) -> Trace:
    """The earlier trace of this learner, if it can be continued as asked."""
    if name not in resume:
        raise InputError("resume", f"has no trace of {name!r}", "Give the traces of all the learners")
    earlier = resume[name]
    if isinstance(earlier.state, StateUnknown):
        what = "was loaded without its learner, so its state is not known"
        raise InputError("resume", what, "Load it with Trace.load(path, learner)")
    if earlier.seeds != seeds or tuple(earlier.sums.loss.shape) != batch_shape:
        what = f"has seeds {earlier.seeds} and a batch of shape {tuple(earlier.sums.loss.shape)}"
        raise InputError("resume", what, f"This run has seeds {seeds} and a batch of shape {batch_shape}: use the same")
    if rounds is not None and rounds < earlier.last_round:
        what = f"has played {earlier.last_round} rounds, {rounds} were asked for"
        raise InputError("resume", what, "Ask for as many rounds in all, or more")
    return earlier


def _engine(engine: Engine, xp: Any) -> Callable[..., Player | CompiledPlayer]:
    """What plays the rounds."""
    if engine == "numpy":
        return partial(Player, xp=xp)
    if engine != "jax":
        raise InputError("engine", f"{engine!r} is not known", "Choose 'numpy', 'jax' or 'auto'")
    if xp is not np:
        raise InputError("xp", "is for the reference engine", "Leave it out with engine='jax'")
    from longterm.engines.compiled import CompiledPlayer

    return CompiledPlayer
