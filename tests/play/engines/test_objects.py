"""Reprs, figures, files and wrong arguments of runs and comparisons."""

import re
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest

from longterm import AOGD, Comparison, Fleet, Ledger, LiveLearner, Trace, compare, hindsight, run
from longterm._base.display import TextTable
from longterm._base.progress import reporter
from longterm.catalogue import scenarios
from longterm.errors import InputError, SnapshotError
from longterm.learners import ProjectedOGD, Restarted
from longterm.play.engines.selection import faster_engine
from longterm.problems import doubly_stochastic
from longterm.problems.losses import CustomLoss
from longterm.problems.streams import RandomPermutations, Replay

mpl.use("Agg")
PROBLEM = doubly_stochastic(3)
LEARNER = AOGD.for_problem(PROBLEM)
STREAM = RandomPermutations(3)
GRID = AOGD.for_problem(PROBLEM, beta=np.array([0.4, 0.6]))


@pytest.fixture(scope="module")
def played():
    return compare(PROBLEM, {"a": LEARNER, "grid": GRID}, STREAM, 50, seeds=range(3), progress=None)


def test_reprs_are_one_line(played):
    live = LiveLearner(LEARNER, PROBLEM)
    live.ask()
    things = [PROBLEM, LEARNER, GRID, STREAM, Replay([np.zeros((100, 2))]), played["grid"], live, Fleet(LEARNER, 7)]
    scenario = scenarios.doubly_stochastic(3)
    things += [scenario, live.state, LEARNER.bound(PROBLEM, [10, 100]), hindsight.best(PROBLEM, STREAM, [10, 50])]
    for thing in things:
        assert len(repr(thing)) <= 300, thing
        assert "\n" not in repr(thing)
        assert " at 0x" not in repr(thing)
        assert type(thing).__name__ in repr(thing)
    assert "asked=1" in repr(live)
    assert "7 × AOGD" in repr(Fleet(LEARNER, 7))
    assert "beta=[0.4, 0.6]" in repr(GRID)


def test_notebooks_get_tables(played, tmp_path):
    for thing in (PROBLEM, LEARNER, played, played["a"], LiveLearner(LEARNER, PROBLEM)):
        assert re.match(r"<table>.*</table>$", thing._repr_html_(), flags=re.DOTALL)
    best = hindsight.best(PROBLEM, STREAM, range(1, 51))
    assert best._repr_html_().count("<tr>") == 1 + 10  # the rows in the middle are left out
    assert '<td style="text-align:right">50</td>' not in best._repr_html_()
    assert Fleet(LEARNER, 7)._repr_html_().count("<tr>") == 5
    with Ledger.open(tmp_path / "s.db") as money:
        money.add_account("team", 1_000)
        money.hold("team", 30, "a")
        assert '<td style="text-align:left">team</td><td style="text-align:right">1,000</td>' in money._repr_html_()
        assert ">970</td>" in money.balance("team")._repr_html_()


def test_a_comparison_is_a_mapping_that_plots_and_tabulates(played):
    best = hindsight.best(played)
    assert isinstance(played, Comparison)
    assert list(played) == ["a", "grid"]
    with pytest.raises(KeyError, match="is not a learner of this comparison; there are"):
        played["b"]
    assert "regret" in str(played.summary(best)).splitlines()[0]
    assert str(played) == str(played.summary())
    frame = played.to_frame(best)
    assert len(frame) == len(played["a"].rounds) * (3 + 6)
    last = frame[(frame.learner == "grid") & (frame["round"] == 50) & (frame.grid == 1) & (frame.seed == 2)]
    assert last.signed_violation.item() == played["grid"].signed_violation[-1, 1, 2]
    assert last.regret.item() == played["grid"].regret(best)[-1, 1, 2]
    assert "learner" not in played["a"].to_frame()


def test_a_figure_has_a_named_line_for_each_learner_and_member(played):
    left, right = played.plot(hindsight.best(played)).axes
    assert left.get_ylabel() == "regret"
    assert [line.get_label() for line in left.lines[:3]] == ["a", "grid [0]", "grid [1]"] or len(left.lines) == 4
    assert right.lines[0].get_ydata()[-1] == pytest.approx(played["a"].signed_violation[-1].mean())
    (panel, _) = played["a"].plot(axes=(left, right)).axes
    assert panel is left


@pytest.mark.parametrize("learner", [LEARNER, Restarted(LEARNER, every=7)], ids=["plain", "nested state"])
def test_a_saved_trace_can_be_read_and_continued(tmp_path, learner):
    path = tmp_path / "run.trace"
    first = run(PROBLEM, learner, STREAM, 20, seeds=range(2), progress=None)
    first.save(path)
    read = Trace.load(path)
    assert np.array_equal(read.cumulative_loss, first.cumulative_loss)
    assert read.last_round == 20
    assert np.array_equal(read.regret(hindsight.best(first)), first.regret(hindsight.best(first)))
    with pytest.raises(InputError, match="loaded without its learner"):
        run(PROBLEM, learner, STREAM, 30, seeds=range(2), resume=read, progress=None)
    resumed = run(PROBLEM, learner, STREAM, 30, seeds=range(2), resume=Trace.load(path, learner), progress=None)
    whole = run(PROBLEM, learner, STREAM, 30, seeds=range(2), progress=None)
    assert np.array_equal(resumed.cumulative_loss[-1], whole.cumulative_loss[-1])
    with pytest.raises(SnapshotError, match="another learner"):
        Trace.load(path, ProjectedOGD.for_problem(PROBLEM))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((PROBLEM, AOGD, STREAM, 10), r"is the class AOGD, not a learner. Make one: AOGD.for_problem\(problem\)"),
        ((PROBLEM, LEARNER, [[1.0, 0.0]], 10), r"stream: is a list, not a stream.*Replay"),
        ((LEARNER, PROBLEM, STREAM, 10), "problem: is an AOGD, not a Problem .are the arguments in the order"),
        ((PROBLEM, STREAM, LEARNER, 10), "learner: is a RandomPermutations, not a learner .are the arguments"),
        ((PROBLEM, LEARNER, "permutations", 10), "stream: is a str, not a stream"),
    ],
)
def test_arguments_of_the_wrong_type_are_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        run(*arguments)


def test_best_needs_the_problem_and_the_stream(tmp_path):
    run(PROBLEM, LEARNER, STREAM, 5, progress=None).save(tmp_path / "t")
    with pytest.raises(InputError, match="no problem or stream"):
        hindsight.best(Trace.load(tmp_path / "t"))
    with pytest.raises(InputError, match="stream: is missing"):
        hindsight.best(PROBLEM)


def test_the_faster_engine_is_chosen_where_it_is_known(monkeypatch, caplog):
    monkeypatch.setattr("longterm.play.engines.selection.find_spec", lambda name: object())
    parts = (PROBLEM.loss, PROBLEM.constraint, LEARNER)
    assert faster_engine(10**6, parts) == "jax"
    assert faster_engine(1000, parts) == "numpy"  # compiling takes longer
    assert faster_engine(None, parts) == "numpy"
    own = CustomLoss(9, lambda x: x[..., 0], lambda x: x, gradient_bound=1.0, value_range=1.0)
    assert faster_engine(10**6, (own, *parts)) == "numpy"
    assert (
        faster_engine(10**6, (test_best_needs_the_problem_and_the_stream, *parts)) == "numpy"
    )  # a builder of one's own
    monkeypatch.setattr("longterm.play.engines.selection.find_spec", lambda name: None)
    assert faster_engine(10**6, parts) == "numpy"
    with caplog.at_level("INFO", logger="longterm.play.engines"):
        chosen = run(PROBLEM, LEARNER, STREAM, 20, engine="auto", progress=None)
    assert caplog.messages == ["engine numpy was chosen"]
    plain = run(PROBLEM, LEARNER, STREAM, 20, progress=None)
    np.testing.assert_array_equal(chosen.cumulative_loss, plain.cumulative_loss)


@pytest.mark.parametrize("kernel", [True, False])
def test_progress_is_a_bar_in_a_notebook(monkeypatch, kernel):
    shell = SimpleNamespace(kernel=object()) if kernel else None
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    bars = []
    monkeypatch.setattr(
        "longterm._base.progress._bar",
        lambda title, unit, start: nullcontext(bars.append((title, unit, start)) or print),
    )
    monkeypatch.setattr("longterm._base.progress.find_spec", lambda name: name)
    with reporter("auto", "mine"):
        pass
    assert bars == ([("mine", "rounds", 0)] if kernel else [])


@pytest.mark.parametrize("made", [lambda: LiveLearner(AOGD, PROBLEM), lambda: Fleet(AOGD, 7)])
def test_services_refuse_a_class(made):
    with pytest.raises(InputError, match=r"learner: is the class AOGD, not a learner[.] Make one: AOGD[.]for_problem"):
        made()


def test_swapped_arguments_of_a_service_are_refused():
    with pytest.raises(InputError, match="learner: is a Problem, not a learner"):
        LiveLearner(PROBLEM, LEARNER)


def test_seeds_are_drawn_as_quantiles_as_the_range_or_at_the_end_only(played):
    values = played["grid"].signed_violation[:, 0]  # the first member: rounds, then seeds

    def extent(**options):
        panel = played["grid"].plot(**options).axes[1]
        found = panel.collections[0].get_paths()[0].get_extents()
        return [found.y0, found.y1], [found.x0, found.x1]

    low, high = np.quantile(values, (0.1, 0.9), axis=-1)
    assert extent()[0] == pytest.approx([low.min(), high.max()])  # few curves: quantiles
    assert extent(band="range")[0] == pytest.approx([values.min(), values.max()])
    heights, places = extent(band="ends")
    mean, std = values[-1].mean(), values[-1].std()
    assert heights == pytest.approx([mean - std, mean + std])
    assert places == [50, 50]
    drawn = played.plot(band="none", size=(5.0, 2.0))
    assert len(drawn.axes[0].collections) == 0
    assert drawn.get_size_inches().tolist() == [5.0, 2.0]
    with pytest.raises(InputError, match="band: 'all' is not known"):
        played.plot(band="all")


def test_many_curves_are_marked_at_their_ends(played):
    many = Comparison({f"a{n}": played["a"] for n in range(5)})
    assert all(len(one.get_paths()[0].vertices) == 2 for one in many.plot().axes[0].collections)


def test_bounds_are_drawn_above_the_curves(played):
    best = hindsight.best(played)
    plain, drawn = played.plot(best), played.plot(best, bounds=True)
    (left, right), curves = drawn.axes, len(plain.axes[0].lines)
    assert len(left.lines) > curves
    assert left.get_xscale() == "log"
    for panel, before in zip((left, right), plain.axes, strict=True):
        dotted = [line for line in panel.lines if line.get_linestyle() == ":" and line.get_linewidth() == 1.0]
        assert all(line.get_ydata()[-1] > before.lines[0].get_ydata()[-1] for line in dotted)
    loss_only = played.plot(bounds=True)
    assert loss_only.axes[0].get_xscale() == "linear"  # a bound on the regret says nothing about the loss
    with pytest.raises(InputError, match="no learner of this comparison has a theorem"):
        Comparison({"a": played["a"]}).plot(best, bounds=True)


def test_a_wide_table_continues_below():
    table = TextTable(("learner", "regret", "violation"), [("A-OGD", "33.3", "1"), ("OGD", "168", "20")])
    assert table.to_text(20).splitlines() == [
        "learner  regret", "A-OGD      33.3", "OGD         168", "",
        "learner  violation", "A-OGD            1", "OGD             20",
    ]  # fmt: skip
    assert table.to_text(80) == str(table)
    assert table.to_text(3).count("learner") == 2  # one column at least
