import copy
import importlib.util
import pickle

import numpy as np
import pytest

from longterm import AOGD, Feedback, Fleet, InputError, observe
from longterm._base.states import state_leaves
from longterm.errors import BrokenBoundError, BrokenBoundWarning, NonFiniteError, SnapshotError
from longterm.learners import MahdaviOGD, ProjectedOGD
from longterm.play.fleet import numpy_rows as fleet_numpy
from longterm.play.fleet import row_records as fleet_records
from longterm.problems import doubly_stochastic, two_dimensional
from longterm.problems.sets import Ball, Simplex
from longterm.theory.schedules import ConvexSchedule
from zoo import learners as zoo_learners

HAS_JAX = importlib.util.find_spec("jax") is not None
ENGINES = ["numpy", *(["jax"] if HAS_JAX else [])]
N, D = 20, 3


def learner(n=N, B=None):
    rng = np.random.default_rng(0)
    return AOGD(B or Ball(D), ConvexSchedule(2.0, rng.uniform(1, 2, n), rng.uniform(0.2, 0.8, n)))


def alone(fleet_learner, k):
    arrays = fleet_learner.hyper_arrays()
    return fleet_learner.with_hyper_arrays({path: array[k] for path, array in arrays.items()})


def feedback(rng, k):
    gradient, normal = rng.standard_normal((2, k, D))
    gradient /= np.linalg.norm(gradient, axis=1, keepdims=True)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    return Feedback(gradient, rng.uniform(-1, 1, k), normal)


def row(told, i):
    return Feedback(told.loss_gradient[i], told.constraint[i], told.constraint_gradient[i])


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", ["numbers", pytest.param("mask", marks=pytest.mark.cross), "all"])
def test_every_learner_runs_as_if_alone(engine, form):
    fleet = Fleet(learner(), N, engine=engine)
    single = [alone(learner(), k) for k in range(N)]
    states = [one.init() for one in single]
    signed, hard = np.zeros(N), np.zeros(N)
    rng = np.random.default_rng(1)
    for _ in range(40):
        numbers = np.arange(N) if form == "all" else rng.permutation(N)[: rng.integers(1, N)]
        if form == "mask":
            numbers = np.sort(numbers)
        told = feedback(rng, len(numbers))
        rows = {"numbers": numbers, "mask": np.isin(np.arange(N), numbers), "all": None}[form]
        np.testing.assert_allclose(fleet.ask(rows), [states[k].x for k in numbers], atol=1e-12)
        fleet.tell(told, rows)
        for i, k in enumerate(numbers):
            states[k] = single[k].tell(states[k], row(told, i))
            signed[k] += told.constraint[i]
            hard[k] += max(told.constraint[i], 0)
    np.testing.assert_allclose(fleet.state.x, [s.x for s in states], atol=1e-10)
    np.testing.assert_allclose(fleet.state.multiplier, [s.multiplier for s in states], atol=1e-10)
    np.testing.assert_array_equal(fleet.rounds, [int(s.round) for s in states])
    np.testing.assert_allclose(fleet.signed_violation, signed, atol=1e-12)
    np.testing.assert_allclose(fleet.hard_violation, hard, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_bad_row_changes_nobody(engine):
    fleet = Fleet(learner(), N, engine=engine)
    rng = np.random.default_rng(2)
    fleet.tell(feedback(rng, N))
    before = [np.array(field) for field in fleet.state]
    bad = feedback(rng, 3)
    bad.loss_gradient[1, 0] = np.nan
    with pytest.raises(NonFiniteError, match="learner 7: loss_gradient in round 2"):
        fleet.tell(bad, rows=[4, 7, 5])
    long = feedback(rng, 3)
    long.constraint_gradient[2] *= 5
    with pytest.raises(BrokenBoundError, match="learner 5"):
        fleet.tell(long, rows=[4, 7, 5])
    for kept, field in zip(before, fleet.state, strict=True):
        np.testing.assert_array_equal(kept, field)
    fleet.tell(feedback(rng, 3), rows=[4, 7, 5])
    assert fleet.rounds[[4, 7, 5, 6]].tolist() == [3, 3, 3, 2]


class Fails(AOGD):
    """A rule that breaks down in the part that a row is in whose constraint is 0.5."""

    def update(self, state, feedback):
        after = super().update(state, feedback)
        if 0.25 in feedback.constraint:
            raise KeyboardInterrupt
        return after._replace(x=after.x / (feedback.constraint[:, None] != 0.5))


@pytest.mark.parametrize("all_of_them", [False, True])
@pytest.mark.parametrize(("bad", "error"), [(0.5, NonFiniteError), (0.25, KeyboardInterrupt), (np.nan, NonFiniteError)])
def test_blocks_already_written_are_rolled_back(monkeypatch, all_of_them, bad, error):
    monkeypatch.setattr(fleet_numpy, "BLOCK_BYTES", 4 * D * 8)
    rng = np.random.default_rng(3)
    rule = Fails(Ball(D), learner().schedule)
    fleet = Fleet(rule, N)
    rows = None if all_of_them else rng.permutation(N)
    fleet.tell(feedback(rng, N), rows)
    before = [np.array(value) for value in (*fleet.state, fleet.signed_violation, fleet.hard_violation)]
    told = feedback(rng, N)
    told.constraint[N - 2] = bad
    with pytest.raises(error):
        fleet.tell(told, rows)
    for value, was in zip((*fleet.state, fleet.signed_violation, fleet.hard_violation), before, strict=True):
        np.testing.assert_array_equal(value, was)
    told.constraint[N - 2] = 0.1
    fleet.tell(told, rows)
    assert (fleet.rounds == 3).all()


def test_a_broken_bound_may_be_warned_of():
    fleet = Fleet(learner(), N, on_broken_bound="warn")
    told = feedback(np.random.default_rng(0), 1)
    with pytest.warns(BrokenBoundWarning, match="learner 3"):
        fleet.tell(told._replace(loss_gradient=5 * told.loss_gradient), rows=[3])
    assert fleet.rounds[3] == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_asking_for_none_and_telling_none(engine):
    fleet = Fleet(learner(), N, engine=engine)
    assert fleet.ask(rows=np.zeros(N, dtype=bool)).shape == (0, D)
    fleet.tell(feedback(np.random.default_rng(0), 0), rows=np.array([], dtype=int))
    assert fleet.rounds.tolist() == [1] * N


@pytest.mark.parametrize(
    ("rows", "argument"),
    [
        ([0, 0], "rows"),
        ([N], "rows"),
        ([-1], "rows"),
        ([0.5], "rows"),
        ([[0]], "rows"),
        (np.ones(3, dtype=bool), "rows"),
    ],
)
def test_numbers_that_name_nobody(rows, argument):
    fleet = Fleet(learner(), N)
    with pytest.raises(InputError) as refused:
        fleet.ask(rows)
    assert refused.value.argument == argument


def test_impossible_fleets():
    for make, argument in (
        (lambda: Fleet(learner(3), N), "learner"),
        (lambda: Fleet(learner(), 0), "size"),
        (lambda: Fleet(learner(), N, engine="fortran"), "engine"),
        (lambda: Fleet(learner(), N).tell(feedback(np.random.default_rng(0), 2), rows=[1]), "loss_gradient"),
    ):
        with pytest.raises(InputError) as refused:
            make()
        assert refused.value.argument == argument


def test_ask_gives_copies():
    fleet = Fleet(learner(), N)
    fleet.ask()[:] = 7
    fleet.ask(rows=[1])[:] = 7
    assert not np.any(fleet.state.x == 7)


def test_shared_hyper_parameters_and_other_sets():
    fleet = Fleet(AOGD(Simplex(D), ConvexSchedule(1.5, 1.0, 0.5)), 5, dtype=np.float32)
    told = Feedback(*(np.asarray(a, dtype=np.float32) for a in feedback(np.random.default_rng(1), 2)[:3]))
    fleet.tell(told, rows=[1, 3])
    assert fleet.ask().dtype == np.float32
    np.testing.assert_allclose(fleet.ask().sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_stopped_fleet_continues_bit_for_bit(engine, dtype, tmp_path):
    def told(rng, k):
        return Feedback(*(np.asarray(a, dtype=dtype) for a in feedback(rng, k)[:3]))

    fleet = Fleet(learner(), N, engine=engine, dtype=dtype)
    rng = np.random.default_rng(3)
    for _ in range(10):
        fleet.tell(told(rng, 5), rng.permutation(N)[:5])
    fleet.save(tmp_path / "fleet")
    restored = Fleet.load(tmp_path / "fleet", learner(), engine=engine)
    for _ in range(10):
        rows, news = rng.permutation(N)[:7], told(rng, 7)
        for one in (fleet, restored):
            one.tell(news, rows)
    for mine, theirs in zip(fleet.state, restored.state, strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype
    np.testing.assert_array_equal(fleet.signed_violation, restored.signed_violation)
    np.testing.assert_array_equal(fleet.hard_violation, restored.hard_violation)


def test_a_fleet_may_change_engines(tmp_path):
    fleet = Fleet(learner(), N)
    fleet.tell(feedback(np.random.default_rng(0), N))
    fleet.save(tmp_path / "fleet")
    for engine in ("numpy", *(["jax"] if HAS_JAX else [])):
        np.testing.assert_array_equal(Fleet.load(tmp_path / "fleet", learner(), engine=engine).ask(), fleet.ask())


def test_files_that_are_not_this_fleet(tmp_path):
    path = tmp_path / "fleet"
    Fleet(learner(), N).save(path)
    other = AOGD(Ball(D), ConvexSchedule(2.0, 1.0, 0.5))
    with pytest.raises(SnapshotError, match="learner") as refused:
        Fleet.load(path, other)
    assert refused.value.reason == "another definition"
    with pytest.raises(SnapshotError):
        Fleet.load(path, AOGD(Simplex(D), learner().schedule))
    data = path.read_bytes()
    for cut in (0, 5, 100, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(SnapshotError):
            Fleet.load(path, learner())
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(data)
        damaged[rng.integers(len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(damaged))
        with pytest.raises(SnapshotError):
            Fleet.load(path, learner())


ZOO_PROBLEM = two_dimensional()


def fleets_of_the_zoo():
    """Every rule on NumPy; every sixth compiled, for a fleet asks nothing of a rule that `engines_agree` does not."""
    for i, rule in enumerate(sorted(zoo_learners(ZOO_PROBLEM))):
        for engine in ENGINES:
            yield pytest.param(engine, rule, marks=pytest.mark.cross if engine == "jax" and i % 6 else [])


@pytest.mark.parametrize(("engine", "rule"), list(fleets_of_the_zoo()))
def test_every_learner_of_the_zoo_in_a_fleet_with_rounds_of_its_own(engine, rule):
    problem = ZOO_PROBLEM
    single = zoo_learners(problem)[rule]
    if engine == "jax" and single.reads_pullback:
        with pytest.raises(InputError, match="pullback"):
            Fleet(single, 3, engine=engine)
        return
    fleet, states = Fleet(single, 3, engine=engine), [single.init() for _ in range(3)]
    rng = np.random.default_rng(0)
    for rows in (
        [1],
        [1],
        [0, 1],
        [0, 1],
        [2, 0],
        [0, 1, 2],
        [1],
        [1, 2],
        [0, 1],
    ):
        x = fleet.ask(rows)
        targets = rng.uniform(-0.5, 0.5, (len(rows), 2))
        fleet.tell(observe(problem, x, [targets]), rows)
        for i, k in enumerate(rows):
            states[k] = single.update(states[k], observe(problem, single.ask(states[k]), [targets[i]]))
    np.testing.assert_allclose(fleet.ask(), [single.ask(state) for state in states], atol=1e-10)
    singles = zip(*(state_leaves(state).values() for state in states), strict=True)
    for field, rows in zip(state_leaves(fleet.state).values(), singles, strict=True):
        np.testing.assert_allclose(field, rows, atol=1e-10)


def test_what_a_learner_needs_beyond_the_common_part_is_asked_for():
    problem = doubly_stochastic(2)
    fleet = Fleet(MahdaviOGD.for_problem(problem, horizon=1000, multipliers="each"), 2)
    told = observe(problem, fleet.ask(), [np.zeros((2, 4))])
    with pytest.raises(InputError, match="pullback"):
        fleet.tell(told._replace(pullback=None))
    values = told.constraint_values.copy()
    values[1, 3] = np.nan
    with pytest.raises(NonFiniteError, match="constraint_values"):
        fleet.tell(told._replace(constraint_values=values))
    fleet.tell(told)
    assert fleet.rounds.tolist() == [2, 2]


def test_a_bound_on_losses_alone_is_kept():
    problem = two_dimensional()
    fleet = Fleet(ProjectedOGD.for_problem(problem), 3)
    told = Feedback(np.full((3, 2), 1e6), np.zeros(3), np.zeros((3, 2)))
    with pytest.raises(BrokenBoundError, match="loss_gradient"):
        fleet.tell(told)


def test_the_state_cannot_be_written_to_from_outside():
    fleet = Fleet(learner(), N)
    with pytest.raises(ValueError, match="read-only"):
        fleet.state.x[...] = 99
    assert fleet.ask(rows=[]).shape == (0, D)
    with pytest.raises(InputError, match="wran"):
        Fleet(learner(), N, on_broken_bound="wran")


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.int8, bool, np.float32])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (0,), (2, 5), (40,)])
def test_records_take_any_field(kind, shape):
    rng = np.random.default_rng(0)
    fields = {
        "odd": rng.integers(0, 2, (N, *shape)).astype(kind),
        "number": rng.standard_normal(N),
        "wide": rng.standard_normal((N, 3)),
    }
    records = fleet_records.Records(fields)
    rows = rng.permutation(N)[:7]
    for name, values in records.gather(rows, ["wide", "odd"]).items():
        np.testing.assert_array_equal(values, fields[name][rows])
        assert values.dtype == fields[name].dtype
    new = {"odd": 1 - fields["odd"][rows].astype(np.int64), "number": np.asarray(2.0)}  # other dtype, to be broadcast
    records.put(rows, new)
    expected = {name: values.copy() for name, values in fields.items()}
    for name, values in new.items():
        expected[name][rows] = values
    for name, values in expected.items():
        np.testing.assert_array_equal(records[name], values)


@pytest.mark.parametrize("also", ["loss", "hint"])
def test_a_loss_or_hint_that_is_not_finite_is_refused(also):
    fleet = Fleet(learner(), N)
    told = feedback(np.random.default_rng(0), N)
    values = np.zeros(N) if also == "loss" else np.zeros((N, D))
    fleet.tell(told._replace(**{also: values}))
    values = values.copy()
    values[3] = np.nan
    with pytest.raises(NonFiniteError, match=f"learner 3: {also}"):
        fleet.tell(told._replace(**{also: values}))
    assert (fleet.rounds == 2).all()


def test_feedback_of_any_memory_layout():
    fleet, other = Fleet(learner(), N), Fleet(learner(), N)
    told = feedback(np.random.default_rng(0), N)
    fleet.tell(told)
    other.tell(Feedback(np.asfortranarray(told.loss_gradient), told.constraint[::-1][::-1], told.constraint_gradient))
    np.testing.assert_array_equal(fleet.ask(), other.ask())
    told.loss_gradient.flags.writeable = False
    fleet.tell(told)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda fleet: pickle.loads(pickle.dumps(fleet))])
def test_a_copy_is_independent(copied):
    rng = np.random.default_rng(0)
    fleet = Fleet(learner(), N)
    fleet.tell(feedback(rng, 5), rows=np.arange(5))
    other, told = copied(fleet), feedback(rng, 5)
    other.tell(told, rows=np.arange(5))
    assert fleet.rounds.tolist() == [2] * 5 + [1] * (N - 5)
    fleet.tell(told, rows=np.arange(5))
    for mine, theirs in zip(fleet.state, other.state, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(fleet.ask(rows=[3, 9]), other.ask(rows=[3, 9]))


def test_a_copy_in_read_only_memory():
    """joblib maps arrays into its workers read-only."""
    fleet, told = Fleet(learner(), N), feedback(np.random.default_rng(0), N)
    buffers = []
    data = pickle.dumps(fleet, protocol=5, buffer_callback=buffers.append)
    kept = [bytes(buffer) for buffer in buffers]
    other = pickle.loads(data, buffers=kept)
    other.tell(told, rows=np.arange(N))
    assert (other.rounds == 2).all()
    assert kept == [bytes(buffer) for buffer in buffers]


@pytest.mark.parametrize("count", [3, 300])
@pytest.mark.parametrize("kind", [np.uint64, np.uint8, np.int16])
def test_numbers_of_any_integer_dtype(kind, count):
    size = 4096
    fleet = Fleet(AOGD(Ball(D), ConvexSchedule(2.0, 1.0, 0.5)), size)
    rows = np.arange(min(count, 200 if kind is np.uint8 else count), dtype=kind)
    fleet.tell(feedback(np.random.default_rng(0), len(rows)), rows=rows)
    assert fleet.rounds.sum() == size + len(rows)


@pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed")
def test_a_rule_that_returns_arrays_of_another_library():
    import jax

    class Elsewhere(AOGD):
        def update(self, state, feedback):
            with jax.enable_x64(True):
                after = super().update(state, feedback)
                return after._replace(x=jax.numpy.asarray(after.x))

    fleet, other = Fleet(Elsewhere(Ball(D), learner().schedule), N), Fleet(learner(), N)
    told = feedback(np.random.default_rng(0), N)
    for one in (fleet, other):
        one.tell(told, rows=np.arange(N))
    np.testing.assert_array_equal(fleet.ask(), other.ask())
