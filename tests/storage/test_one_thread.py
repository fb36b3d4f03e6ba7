"""Objects for one thread refuse a second one, or serve it; no state or file is torn. The threads are real."""

import os
import pickle
import subprocess
import sys
import threading
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

import longterm
from longterm import AOGD, Fleet, observe
from longterm.errors import InUseError
from longterm.linear_model import BudgetLinearClassifier, BudgetLinearLearner, BudgetLinearRegressor, BudgetPath
from longterm.money import DualMirrorDescent, Outcome
from longterm.problems import two_dimensional
from longterm.storage.one_thread import OneThread, exclusive, serialised

PROBLEM = two_dimensional()
RNG = np.random.default_rng(0)
ROWS, LABELS = RNG.standard_normal((400, 12)), np.sign(RNG.standard_normal(400))


@pytest.fixture(autouse=True)
def threads_that_change_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(works, most=2000):
    """Run them at once, 30 times each and on until one was refused; how often each was.

    Anything else that is raised fails the test. Whether threads meet is for the machine to say.
    """
    refused, failures, ready = [0] * len(works), [], threading.Barrier(len(works))

    def run(k, work):
        ready.wait()
        for turn in range(most):
            if turn >= 30 and sum(refused) > 0:
                return
            try:
                work()
            except InUseError as error:
                assert "is in use by another thread" in str(error)  # noqa: PT017
                refused[k] += 1
            except BaseException as error:
                failures.append(error)
                raise

    threads = [threading.Thread(target=run, args=(k, work)) for k, work in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    return refused


@pytest.mark.parametrize("sparse", [False, True])
def test_a_linear_learner(tmp_path, sparse):
    learner = BudgetLinearLearner(12, 1.0, sparse=sparse)
    learner.learn(ROWS, LABELS)
    learned, path = [400], tmp_path / "state"

    def learn():
        learner.learn(ROWS, LABELS)
        learned.append(400)

    def step():
        learner.step_dense(ROWS[0], 1.0)
        learned.append(1)

    def save():
        learner.save(path)
        rounds.append(BudgetLinearLearner.load(path).rounds)

    rounds = []
    refused = together([learn, learn, step, save])
    assert sum(refused) > 0
    assert learner.rounds == sum(learned)
    sums = np.cumsum([0, *learned])
    assert set(rounds) <= set(sums.tolist())  # what was saved is a state between two calls, not inside of one
    again = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(again.weights, learner.weights)
    again.learn(ROWS, LABELS)


@pytest.mark.parametrize("model", [BudgetLinearClassifier(), BudgetLinearRegressor()], ids=lambda m: type(m).__name__)
def test_estimators(model):
    learned = []

    def learn():
        model.partial_fit(ROWS, LABELS, **({"classes": [-1, 1]} if isinstance(model, BudgetLinearClassifier) else {}))
        learned.append(400)

    learn()
    together([learn, learn, learn], most=30)
    assert model.n_rounds_ == sum(learned)
    assert pickle.loads(pickle.dumps(model)).partial_fit(ROWS, LABELS).n_rounds_ == sum(learned) + 400


@pytest.mark.parametrize(
    "model",
    [BudgetLinearClassifier(passes=1), BudgetLinearRegressor(passes=1)],
    ids=lambda m: type(m).__name__,
)
def test_predictions_and_copies_beside_learning(model):
    """Those that predict are served, and see no model half-way; copies are of a state between two calls."""
    model.fit(ROWS, LABELS)
    found = []

    def fit():
        model.fit(ROWS, LABELS)

    def predict():
        found.append(model.predict(ROWS).shape)
        assert model.coef_.shape[-1] == model.average_coef_.shape[-1] == 12

    def copy():
        assert deepcopy(model).n_rounds_ == pickle.loads(pickle.dumps(model)).n_rounds_ == 400

    refused = together([fit, predict, predict, copy], most=30)
    assert refused[1] == refused[2] == 0
    assert set(found) == {(400,)}


def test_a_path_of_budgets():
    path, learned = BudgetPath(12, [0.1, 1.0], n_jobs=1), []

    def learn():
        path.learn(ROWS, LABELS)
        learned.append(400)

    def look():
        assert len({point.rounds for point in path.points}) == 1

    def copy():
        assert len({learner.rounds for learner in deepcopy(path).learners}) == 1

    together([learn, learn, look, copy], most=40)
    assert {learner.rounds for learner in path.learners} == {sum(learned)}


def test_a_fleet(tmp_path):
    fleet, learner = Fleet(AOGD.for_problem(PROBLEM), 300), AOGD.for_problem(PROBLEM)
    told = observe(PROBLEM, fleet.ask(), [RNG.uniform(-0.6, 0.6, (300, 2))])
    told = told._replace(pullback=None, pushforward=None, constraint_at=None, constraint_values=None)
    counted, path = [], tmp_path / "fleet"

    def tell():
        fleet.tell(told)
        counted.append(1)

    def save():
        fleet.save(path)
        found = Fleet.load(path, learner).rounds
        assert (found == found[0]).all()

    refused = together([tell, tell, save])
    assert sum(refused) > 0
    assert (fleet.rounds == 1 + len(counted)).all()


def test_a_pacer_serves_any_number_of_threads():
    """It has no state of its own: every thread gets what it would get alone."""
    pacer = DualMirrorDescent(budget=1000.0, horizon=100, step=0.01, start=0.25)
    alone = pacer.init()
    for _ in range(30):
        alone = pacer.settle(alone, Outcome(3.0))
    states = [pacer.init() for _ in range(4)]

    def work(k):
        def settle():
            states[k] = pacer.settle(states[k], Outcome(3.0))

        return settle

    assert together([work(k) for k in range(4)], most=30) == [0] * 4
    assert {float(state.price) for state in states} == {float(alone.price)}


def test_the_turn_of_a_thread():
    turn = OneThread("thing")
    with turn():
        with pytest.raises(InUseError, match="this thing is in use by another thread"):
            turn()
        for made in (deepcopy(turn), pickle.loads(pickle.dumps(turn))):
            with made():  # a copy is nobody's
                pass
    with turn():
        pass


FORKED = """
import os, sys
from longterm.storage.one_thread import OneThread
turn = OneThread("fleet")
with turn():  # as if another thread were in the middle of a call
    child = os.fork()
    if child == 0:
        with turn():
            os._exit(7)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_not_refused_for_a_thread_that_it_has_not():
    environment = os.environ | {"PYTHONPATH": str(Path(longterm.__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", FORKED], env=environment, check=False).returncode == 7


def test_a_look_from_within_a_call_does_not_wait_for_itself():
    """A signal handler that predicts, in the thread whose `fit` it interrupted."""

    class Model:
        @exclusive
        def learn(self):
            return self.look()

        @serialised
        def look(self):
            return 1

    model = Model()
    assert model.look() == 1
    with pytest.raises(InUseError, match="in the middle of another call in this thread"):
        model.learn()
    assert model.look() == 1
