"""The loop: learners × a problem × a stream × seeds → traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from longterm import _validate as validate
from longterm.engines.comparison import Comparison
from longterm.engines.fit import require_fit
from longterm.engines.reference import Player
from longterm.engines.trace import Recorder, SeedsPlayed, StateUnknown, Trace
from longterm.errors import InputError, StreamEndedError
from longterm.learners.base import Learner, OnBrokenBound
from longterm.problems import Problem
from longterm.progress import Progress, reporter
from longterm.streams import Seeds, Stream
from longterm.streams.base import checked_seeds

if TYPE_CHECKING:
    from longterm.engines.compiled import CompiledPlayer

Engine = Literal["numpy", "jax"]
"""The reference engine, and the compiled one (extra `jax`)."""


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
    engine: Engine = "numpy",
    xp: Any = np,
    dtype: Any = None,
) -> Trace:
    """Let one learner play `rounds` rounds of a stream.

    Parameters
    ----------
    rounds : T, counted from the start of the stream even when resuming; None plays a finite stream to its end.
    seeds : one seed for a single run; a sequence, ``range(10)``, for a batch: its i-th row is the single run with
        the i-th seed. A learner with a grid of hyper-parameters of shape (3,) and ten seeds give a (3, 10) batch.
    record : the rounds to keep in the trace; by default log-spaced ones. The last round is always kept.
    resume : the trace of an earlier run of the same learner, problem, stream and seeds, to be continued. The two
        together equal one uninterrupted run bit for bit.
    on_broken_bound : "raise" stops at the first gradient or constraint above its declared bound; "warn" goes on and
        notes it in ``trace.warnings``. NaN and infinity always stop the run.
    progress : "auto" shows a bar on a terminal; or a function of (rounds done, rounds in all); or None.
    engine : "numpy", the reference; "jax" compiles the same learner, problem and stream (extra `jax`) and is
        more than ten times faster for one learner. Both give the same trace, to rounding, in NumPy arrays.
    xp, dtype : the array library (reference engine only) and the dtype of the learner's state: NumPy and float64.

    Raises
    ------
    InputError : naming the argument, the round and the remedy. The ``trace`` of whatever exception stops a run, an
        interrupt included, holds the run up to the round before, ready for ``resume``.

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
    engine: Engine = "numpy",
    xp: Any = np,
    dtype: Any = None,
) -> Comparison:
    """Let several learners, by name, play the same rounds; arguments as for `run`.

    Returns
    -------
    Comparison
        A trace for each name, as a mapping, with `plot`, `summary` and `to_frame`.
    """
    _require_kinds(problem, learners, stream)
    make_player = _engine(engine, xp)
    if on_broken_bound not in ("raise", "warn"):
        raise InputError("on_broken_bound", f"{on_broken_bound!r} is not known", "Choose 'raise' or 'warn'")
    if rounds is not None:
        validate.count("rounds", rounds)
    if not learners:
        raise InputError("learners", "is empty", "Give at least one learner, by name")
    seeds = checked_seeds(seeds)
    seed_axes = () if isinstance(seeds, int) else (len(seeds),)
    players: dict[str, Player | CompiledPlayer] = {}
    for name, learner in learners.items():
        learner.check(problem)
        earlier = None if resume is None else _continued(resume, name, learner.batch_shape + seed_axes, seeds, rounds)
        players[name] = make_player(
            problem,
            learner.with_trailing_axes(len(seed_axes)),
            batch_shape=learner.batch_shape + seed_axes,
            recorder=Recorder(record, earlier, seeds, problem=problem, stream=stream),
            on_broken_bound=on_broken_bound,
            resume=earlier,
            dtype=dtype,
        )
    start = done = min(player.played for player in players.values())
    title = ", ".join(name for name in players if name) or problem.name
    total = rounds if rounds is not None else stream.length
    with reporter(progress, title) as report:
        try:
            for block in stream.blocks(seeds, start, rounds):
                require_fit(problem, block, seed_axes, done + 1)
                for player in players.values():
                    player.play(block, done + 1)
                done += block.rounds
                report(done, total)
            if done == 0 or (rounds is not None and done < rounds):
                what = "is empty" if done == 0 else f"ended after round {done}, {rounds} were asked for"
                raise StreamEndedError("stream", what, "Give a longer stream or fewer rounds", round=done + 1)
        except BaseException as error:
            # Whatever stopped the run (bad data, a user's function, Ctrl-C): what was played is not lost.
            error.trace = {name: player.trace() for name, player in players.items()}  # type: ignore[attr-defined]
            raise
    return Comparison({name: player.trace() for name, player in players.items()})


def _require_kinds(problem: Any, learners: Any, stream: Any) -> None:
    """Refuse arguments of another kind, in words that say what to write instead."""
    if not isinstance(problem, Problem):
        swapped = " (are the arguments in the order problem, learner, stream?)" if _is_part(problem) else ""
        what = f"is {_kind(problem)}, not a Problem{swapped}"
        raise InputError("problem", what, "Make one with longterm.Problem(set, loss, constraint), or longterm.problems")
    if not isinstance(learners, Mapping):
        what = f"is {_kind(learners)}, not a mapping of learners by name"
        raise InputError("learners", what, 'Give {"a name": learner, …}')
    for name, learner in learners.items():
        argument = f"learners[{name!r}]" if name else "learner"
        if isinstance(learner, type) and issubclass(learner, Learner):
            what = f"is the class {learner.__name__}, not a learner"
            raise InputError(argument, what, f"Make one: {learner.__name__}.for_problem(problem)")
        if not isinstance(learner, Learner):
            swapped = " (are the arguments in the order problem, learner, stream?)" if _is_part(learner) else ""
            what = f"is {_kind(learner)}, not a learner{swapped}"
            raise InputError(argument, what, "Make one from longterm.learners, AOGD.for_problem(problem) for example")
    if not isinstance(stream, Stream):
        swapped = " (are the arguments in the order problem, learner, stream?)" if _is_part(stream) else ""
        what = f"is {_kind(stream)}, not a stream{swapped}"
        remedy = "Wrap arrays with one row a round: longterm.streams.Replay([array, …]); an iterable: FromIterable(…)"
        raise InputError("stream", what, remedy)


def _is_part(value: Any) -> bool:
    """Whether it is one of the three, and so may stand in another's place."""
    return isinstance(value, (Problem, Learner, Stream))


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"{'an' if type(value).__name__[0].lower() in 'aeiou' else 'a'} {type(value).__name__}"


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
        raise InputError("engine", f"{engine!r} is not known", "Choose 'numpy' or 'jax'")
    if xp is not np:
        raise InputError("xp", "is for the reference engine", "Leave it out with engine='jax'")
    from longterm.engines.compiled import CompiledPlayer

    return CompiledPlayer
