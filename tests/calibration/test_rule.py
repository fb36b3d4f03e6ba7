"""The rule: first rounds by hand, certificates against adversaries, batches, other array libraries."""

import pickle

import array_api_strict
import numpy as np
import pytest

from longterm.calibration import Calibration, published
from longterm.calibration.bases import QuantileTracker
from longterm.calibration.corrections import Bets, Correction, LinearAndBets, LinearCorrection, Sinh
from longterm.calibration.mixture import Mixture
from longterm.errors import InputError


def play(rule, scores, groups=None, delay=0):
    """Play a sequence whose labels come `delay` rounds late; return thresholds and the final state."""
    state, waiting, thresholds = rule.init(), [], []
    for t, score in enumerate(scores):
        asked = rule.ask(state, None if groups is None else groups[t], open_rounds=len(waiting))
        thresholds.append(float(asked.threshold))
        waiting.append((asked, score))
        if len(waiting) > delay:
            state = rule.tell(state, *waiting.pop(0))
    return np.array(thresholds), state


def test_aci_by_hand():
    """q_1 = 0; a miss adds η(1 − α), a cover subtracts ηα, a tie changes nothing."""
    thresholds, state = play(published.aci(0.1, step=1.0), [2.0, 0.5, 0.8, 5.0])
    np.testing.assert_allclose(thresholds, [0.0, 0.9, 0.8, 0.8], atol=1e-12)
    np.testing.assert_allclose(published.aci(0.1, step=1.0).excess(state), [2 * 0.9 - 0.1], atol=1e-12)


def test_default_rule_by_hand():
    """Before 1/α − 1 scores the threshold is infinite; with equal scores it is that score."""
    thresholds, state = play(Calibration(0.25), [3.0] * 6)
    assert np.all(np.isinf(thresholds[:3]))
    np.testing.assert_allclose(thresholds[3:], 3.0, rtol=1e-12)
    np.testing.assert_allclose(Calibration(0.25).excess(state)[0], -0.75, atol=1e-12)


def test_pogo_wealth_is_the_likelihood_ratio():
    """W = B(M + ½, n − M + ½)/(π α^M (1 − α)^(n − M)), whatever the order of the misses."""
    from scipy.special import betaln

    rng = np.random.default_rng(0)
    _, state = play(published.pogo(0.1, 1), rng.exponential(size=50))
    n, misses = float(state.counts.rounds[0]), float(state.counts.misses[0])
    expected = (
        betaln(misses + 0.5, n - misses + 0.5) - np.log(np.pi) - misses * np.log(0.1) - (n - misses) * np.log(0.9)
    )
    np.testing.assert_allclose(state.counts.log_wealth[0], expected, rtol=1e-9)


def test_equivariant_under_affine_maps():
    scores = np.random.default_rng(1).standard_t(3, 300)
    plain, _ = play(Calibration(0.1), scores)
    mapped, _ = play(Calibration(0.1), 50.0 * scores - 7.0)
    np.testing.assert_allclose(mapped[20:60], 50.0 * plain[20:60] - 7.0, rtol=1e-7)


@pytest.mark.parametrize("groups", [1, 4])
def test_a_batch_equals_its_rows(groups):
    rng = np.random.default_rng(2)
    scores, c = rng.exponential(size=(80, 3)), (rng.random((80, 3, groups)) < 0.5).astype(float)
    c[..., 0] = 1.0
    rule = Calibration(0.2, groups)
    batch = rule.init((3,))
    singles = [rule.init() for _ in range(3)]
    for t in range(80):
        asked = rule.ask(batch, c[t])
        rows = [rule.ask(state, c[t, i]) for i, state in enumerate(singles)]
        np.testing.assert_allclose(asked.threshold, [float(row.threshold) for row in rows], rtol=1e-9)
        batch = rule.tell(batch, asked, scores[t])
        singles = [rule.tell(s, row, scores[t, i]) for i, (s, row) in enumerate(zip(singles, rows, strict=True))]


@pytest.mark.parametrize("shape", [(), (2,)])
@pytest.mark.parametrize("groups", [1, 3])
def test_a_pickled_ask_changes_nothing(groups, shape):
    """Some labels come late: whether a score was told since the ask is decided by value."""
    rule, rng = Calibration(0.1, groups), np.random.default_rng(15)
    state, copied, waiting = rule.init(shape), rule.init(shape), []
    for t in range(120):
        c = np.append(1.0, rng.random(groups - 1) < 0.4)
        open_rounds = len(waiting)
        waiting.append((rule.ask(state, c, open_rounds=open_rounds), rule.ask(copied, c, open_rounds=open_rounds)))
        while waiting and not (t % 40 < 5 and len(waiting) < 4):
            asked, other = waiting.pop(0)
            score = rng.exponential(size=shape)
            state = rule.tell(state, asked, score)
            copied = rule.tell(copied, pickle.loads(pickle.dumps(other)), score)
    for one, other in (
        (state.counts, copied.counts),
        (state.evidence, copied.evidence),
        (state.base.hedge, copied.base.hedge),
    ):
        for values, others in zip(one, other, strict=True):
            np.testing.assert_array_equal(values, others)


def test_a_batch_of_which_some_rows_were_told_since_the_ask_equals_its_rows():
    rule, rng = Calibration(np.array([0.1, 0.1])), np.random.default_rng(16)
    one, batch, rows = Calibration(0.1), rule.init(), [Calibration(0.1).init() for _ in range(2)]
    for t in range(60):
        asked, singles = rule.ask(batch), [one.ask(row) for row in rows]
        if t % 3 == 0:  # a score of the second row is told before the others
            score = rng.exponential()
            rows[1] = one.tell(rows[1], one.ask(rows[1]), score)
            told = rule.tell(batch, rule.ask(batch), score)
            batch = _map(lambda new, old: np.concatenate([old[:1], new[1:]]), told, batch)
        scores = rng.exponential(size=2)
        batch = rule.tell(batch, asked, scores)
        rows = [one.tell(row, ask, score) for row, ask, score in zip(rows, singles, scores, strict=True)]
        for k in range(2):
            np.testing.assert_allclose(batch.base.hedge.gap[k], rows[k].base.hedge.gap, rtol=1e-9)
            np.testing.assert_allclose(batch.base.trackers[k], rows[k].base.trackers, rtol=1e-9)


def _map(function, *trees):
    if isinstance(trees[0], tuple):
        return type(trees[0])(*(_map(function, *parts) for parts in zip(*trees, strict=True)))
    return function(*trees)


@pytest.mark.parametrize("groups", [1, 3])
def test_array_api_strict_takes_the_same_steps(groups):
    xp, rule = array_api_strict, Calibration(0.2, groups)
    scores = np.random.default_rng(3).exponential(size=30)
    c = np.ones((30, groups))
    plain, _ = play(rule, scores, c)
    other, thresholds = rule.init(xp=xp), []
    for t, score in enumerate(scores):
        asked = rule.ask(other, xp.asarray(c[t]))
        thresholds.append(float(asked.threshold))
        other = rule.tell(other, asked, xp.asarray(score))
    np.testing.assert_allclose(thresholds, plain, rtol=1e-9)


@pytest.mark.parametrize("groups", [1, 3])
def test_single_precision_covers(groups):
    rule, rng, misses = Calibration(0.2, groups), np.random.default_rng(10), 0
    state = rule.init(dtype=np.float32)
    for score in [*np.ones(20), *rng.exponential(size=400)]:
        asked = rule.ask(state, np.ones(groups))
        misses += score > asked.threshold
        state = rule.tell(state, asked, score)
    assert asked.threshold.dtype == np.float32
    assert abs(misses - 80) < 12


@pytest.mark.parametrize("groups", [1, 3])
def test_a_compiled_scan_takes_the_same_steps(groups):
    jax = pytest.importorskip("jax")
    rule, rng = Calibration(0.2, groups), np.random.default_rng(9)
    scores, c = rng.exponential(size=30), np.ones((30, groups))
    c[:, 1:] = rng.random((30, groups - 1)) < 0.5
    plain, _ = play(rule, scores, c)

    def step(state, data):
        asked = rule.ask(state, data[1])
        return rule.tell(state, asked, data[0]), asked.threshold

    with jax.enable_x64(True):
        start = rule.init(xp=jax.numpy)
        _, compiled = jax.jit(lambda data: jax.lax.scan(step, start, data))((scores, c))
    np.testing.assert_allclose(compiled, plain, rtol=1e-9)


ADVERSARIES = ("greedy up", "greedy down", "blocks", "doubling", "ties", "random", "near")
PATTERNS = ("random", "alternating", "nested", "rare")


def adversary(kind, rng, t, threshold, size):
    """Return scores chosen after the thresholds are seen."""
    q = np.where(np.isfinite(threshold), threshold, 1.0)
    scores = {
        "greedy up": lambda: q + size,
        "greedy down": lambda: q - size,
        "blocks": lambda: np.where((t // 50) % 2 == 0, size, 0.01 * size) + 0.0 * q,
        "doubling": lambda: np.where(t % 7 == 0, 2.0 ** (t % 60), 1.0) + 0.0 * q,
        "ties": lambda: np.where(t % 3 == 0, q + 0.1 * size, q),
        "random": lambda: size * rng.standard_cauchy(q.shape),
        "near": lambda: q + size * rng.choice([-1e-3, 1e-3], q.shape),
    }[kind]()
    return np.clip(scores, -1e99, 1e99)


def pattern(kind, rng, t, shape):
    """Return the groups of a round."""
    copies, k = shape
    j = np.arange(k)
    c = {
        "random": lambda: rng.random(shape) < 0.4,
        "alternating": lambda: np.tile(j % 2 == t % 2, (copies, 1)),
        "nested": lambda: j < rng.integers(1, k + 1, (copies, 1)),
        "rare": lambda: rng.random(shape) < 0.3**j,
    }[kind]().astype(float)
    c[:, 0] = 1.0
    return c


def attack(rule, kind, rounds, seed, copies=4, delay=0, groups="random", every=50):
    """Play against an adversary and check the certificates; labels come 0 … `delay` rounds late, in any order."""
    rng = np.random.default_rng(seed)
    state, waiting = rule.init((copies,)), []
    sizes = 10.0 ** rng.uniform(-2, 2, copies)
    for t in range(rounds):
        asked = rule.ask(state, pattern(groups, rng, t, (copies, rule.groups)), open_rounds=len(waiting))
        waiting.append((asked, adversary(kind, rng, t, asked.threshold, sizes)))
        if len(waiting) > delay:
            state = rule.tell(state, *waiting.pop(int(rng.integers(len(waiting)))))
        if t % every == every - 1 or t == rounds - 1:
            require_certified(rule, state)


def require_certified(rule, state):
    excess, bound = rule.excess(state), rule.bound(state)
    assert np.all(excess <= bound.upper + 1e-7 * (1 + np.abs(bound.upper))), (excess, bound)
    assert np.all(excess >= bound.lower - 1e-7 * (1 + np.abs(bound.lower))), (excess, bound)


CERTIFIED = {
    "default": Calibration(0.1),
    "default with groups": Calibration(0.1, 4),
    "linear with groups": Calibration(0.2, 4, correction=LinearCorrection(0.1)),
    "ACI": published.aci(0.1, step=0.5),
    "PI": published.conformal_pi(0.1, step=0.5),
    "decaying": published.decaying_steps(0.1, step=0.5),
    "SF-OGD": published.scale_free_ogd(0.1, step=0.5),
    "GCACI": published.gcaci(0.1, 4, step=0.5),
    "POGO": published.pogo(0.1, 4),
    "UP-OCP": published.up_ocp(0.1),
}


@pytest.mark.parametrize("kind", ADVERSARIES)
@pytest.mark.parametrize("name", CERTIFIED)
def test_certificates_hold_against_adversaries(name, kind):
    for delay, groups in zip((0, 0, 3, 20), PATTERNS, strict=True):
        attack(CERTIFIED[name], kind, 100, seed=4, delay=delay, groups=groups)


def test_corrections_slow_down_while_labels_are_late():
    """sinh(κE/L) with L = min(√(1 + 3D), 1 + κ·max(α·told, D/3)): the root after many rounds, less after few."""
    rule = Calibration(0.1)
    counts = rule.init().counts._replace(rounds=np.full(1, 50.0), misses=np.full(1, 10.0))
    for told, delay, expected in [(0, 0, 1.0), (0, 40, 7 / 3), (300, 40, 4.0), (10**6, 40, 11.0), (10**6, 0, 1.0)]:
        shift = rule.correction(
            counts._replace(told=np.float64(told)), np.ones(1), np.float64(0.1), np.float64(1.0 + delay)
        )
        np.testing.assert_allclose(shift, np.sinh(0.1 * 5.0 / expected), rtol=1e-12)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("jump", [1.0, 5.0])
def test_labels_that_come_in_bursts_keep_the_threshold_in_the_range_of_the_scores(groups, jump):
    """The first rounds after a burst have no open round, but a sum of residuals of the whole burst."""
    rule, rng = Calibration(0.1, groups), np.random.default_rng(12)
    state, thresholds, largest = rule.init(), [], 0.0
    for burst in range(12):
        rounds = []
        for t in range(300):
            asked = rule.ask(state, None if groups == 1 else [1.0, t % 2, 1 - t % 2], open_rounds=t)
            rounds.append((asked, rng.exponential() * (jump if burst > 5 else 1.0)))
        thresholds += [float(asked.threshold) for asked, _ in rounds]
        largest = max(largest, *(score for _, score in rounds))
        for asked, score in rounds:
            state = rule.tell(state, asked, score)
    require_certified(rule, state)
    finite = np.array(thresholds)[np.isfinite(thresholds)]
    assert -largest < finite.min()
    assert finite.max() < 3 * largest


def test_single_labels_that_come_very_late_do_not_slow_the_corrections():
    """One label in 50 comes 1,000 rounds late: 20 rounds are open, and the corrections are slowed by these."""
    rule, rng = Calibration(0.1), np.random.default_rng(14)
    state, late = rule.init(), []
    for t in range(2500):
        if late and late[0][0] == t:
            state = rule.tell(state, *late.pop(0)[1:])
        asked = rule.ask(state, open_rounds=len(late))
        if t % 50 == 0:
            late.append((t + 1000, asked, rng.exponential()))
        else:
            state = rule.tell(state, asked, rng.exponential())
        assert asked.late <= 1 + 20
    require_certified(rule, state)
    assert abs(rule.excess(state)[0]) < 20


@pytest.mark.parametrize("groups", [1, 3])
def test_thresholds_stay_in_the_range_when_late_labels_become_punctual(groups):
    """A sum of residuals from the slow reaction to 100 late labels meets the fast one only when it is small."""
    rule, rng = Calibration(0.1, groups), np.random.default_rng(13)
    state, waiting, thresholds, scores = rule.init(), [], [], []
    for t in range(3000):
        scores.append(rng.exponential() * np.exp(min(t, 2000) / 150))
        asked = rule.ask(state, None if groups == 1 else [1.0, t % 2, 1 - t % 2], open_rounds=len(waiting))
        thresholds.append(float(asked.threshold))
        waiting.append((asked, scores[-1]))
        while len(waiting) > (100 if t < 2000 else 0):
            state = rule.tell(state, *waiting.pop(0))
    require_certified(rule, state)
    assert max(thresholds[2000:]) < 3 * max(scores)


@pytest.mark.parametrize("delay", [1, 7, 40])
def test_late_labels_cost_an_additive_term(delay):
    rule, rng = Calibration(0.1), np.random.default_rng(6)
    _, state = play(rule, rng.exponential(size=600), delay=delay)
    require_certified(rule, state)
    assert rule.bound(state).theorem == "Theorem 4"
    assert float(state.evidence.late) == delay


def test_late_labels_do_not_make_the_experts_oscillate():
    """With 50 late labels and independent scores, even the fastest expert loses little more than the best constant."""
    rule, scores = Calibration(0.1), np.random.default_rng(11).exponential(size=2000)
    state, waiting, losses = rule.init(), [], []
    for score in scores:
        asked = rule.ask(state, open_rounds=len(waiting))
        error = score - np.append(asked.experts, np.quantile(scores, 0.9))
        losses.append(np.maximum(0.9 * error, -0.1 * error))
        waiting.append((asked, score))
        if len(waiting) > 50:
            state = rule.tell(state, *waiting.pop(0))
    *experts, constant = np.mean(losses[300:], axis=0)
    assert max(experts) < 2.5 * constant


def test_the_certificate_is_tight_for_constant_scores():
    """ACI with η = 0.1 against the score 1: the sum rises to 10, the certificate is 10.9."""
    rule = published.aci(0.1, step=0.1)
    _, state = play(rule, [1.0] * 40)
    np.testing.assert_allclose(rule.bound(state).upper, [10.9], rtol=1e-9)
    assert 9.9 < rule.excess(state)[0] <= 10.9


def test_open_rounds_that_are_never_told():
    """A divided correction is counted although no label came late: the other open rounds are given up."""
    rule, rng = Calibration(0.1, 3), np.random.default_rng(8)
    state = rule.init()
    for t in range(600):
        asked = rule.ask(state, [1.0, float(t % 2), float(t % 5 == 0)], open_rounds=40)
        state = rule.tell(state, asked, min(float(asked.threshold) + 1.0, 1e90) if t > 100 else rng.exponential())
        require_certified(rule, state)


@pytest.mark.parametrize("groups", [1, 2])
def test_ties_are_covered_and_left_out_of_the_certified_sum(groups):
    """Equal scores: nearly every threshold is that score. The sum with ties is far below the certificate."""
    rule, rounds = Calibration(0.1, groups), 500
    thresholds, state = play(rule, [1.0] * rounds, np.ones((rounds, groups)))
    ties, misses = np.count_nonzero(thresholds == 1.0), np.count_nonzero(thresholds < 1.0)
    assert ties > 300
    np.testing.assert_array_equal(state.counts.ties, float(ties))
    np.testing.assert_allclose(rule.excess(state), misses - 0.1 * (rounds - ties))
    np.testing.assert_allclose(rule.coverage(state), 1 - misses / rounds)
    require_certified(rule, state)


@pytest.mark.parametrize("name", ["default", "ACI", "default with groups"])
def test_windows_have_few_misses_and_coverage_counts_ties(name):
    """A third of the scores are ties: a window's misses are at most αn + the range of E, and fewer by any number."""
    rule, rng = CERTIFIED[name], np.random.default_rng(17)
    state, missed, sums, tied = rule.init(), [], [0.0], 0
    for t in range(400):
        asked = rule.ask(state, np.ones(rule.groups))
        q = float(asked.threshold) if np.isfinite(asked.threshold) else 1.0
        score = q if t % 3 == 0 else rng.normal()
        missed.append(score > float(asked.threshold))
        tied += score == float(asked.threshold)
        state = rule.tell(state, asked, score)
        sums.append(float(rule.excess(state)[0]))
    assert tied > 120
    assert rule.coverage(state)[0] == pytest.approx(1 - np.mean(missed))
    reach, total = max(sums) - min(sums), np.append(0, np.cumsum(missed))
    for n in (20, 100, 400):
        assert np.max(total[n:] - total[:-n]) <= rule.miss_rate * n + reach + 1e-9


def test_scale_free_steps_may_leave_the_range_by_a_whole_step():
    """A first cover by a hair moves the threshold by η, not by ηα."""
    rule = published.scale_free_ogd(0.1, step=1.0)
    _, state = play(rule, [-1e-9])
    assert float(state.base.threshold) == pytest.approx(-1.0)
    np.testing.assert_allclose(rule.bound(state).upper, [2 * 0.1], rtol=1e-6)


def test_conformal_pi_by_hand():
    """The tracker moves by the misses of the played threshold, and the integrator is K tan(E ln(t + 1)/(C(t + 1)))."""
    thresholds, _ = play(published.conformal_pi(0.2, step=1.0, gain=2.0, saturation=3.0), [5.0, 0.5, 0.5])
    first = 0.8 + 2.0 * np.tan(0.8 * np.log(2) / (3 * 2))
    second = 0.8 - 0.2 + 2.0 * np.tan(0.6 * np.log(3) / (3 * 3))
    np.testing.assert_allclose(thresholds, [0.0, first, second], rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_group_added_while_the_latest_ask_is_open(alpha, sign):
    """The correction of the new groups is in the certificate although no score was told since the ask."""
    rule = Calibration(alpha)
    state = rule.init()
    for t in range(50):
        asked = rule.ask(state)
        known = np.isfinite(asked.threshold)
        state = rule.tell(state, asked, asked.threshold + sign * (1 + abs(asked.threshold)) if known else 0.1 * (t % 3))
    for _ in range(3):
        asked = rule.ask(state, None if rule.groups == 1 else np.ones(rule.groups))
        rule, state = rule.add_group(state)
        state = rule.tell(state, asked, asked.threshold + sign * 1e-3 * (1 + abs(asked.threshold)))
        require_certified(rule, state)


def test_groups_added_later_keep_the_certificate():
    rng, rule = np.random.default_rng(7), Calibration(0.1)
    state = rule.init()
    for t in range(400):
        if t in (50, 90, 200):
            waiting = rule.ask(state, None if rule.groups == 1 else np.eye(1, rule.groups)[0])
            rule, state = rule.add_group(state)
            state = rule.tell(state, waiting, rng.exponential())
        c = np.ones(rule.groups)
        c[1:] = rng.random(rule.groups - 1) < 0.5
        asked = rule.ask(state, c)
        state = rule.tell(state, asked, rng.exponential() * (1 + c.sum()))
        require_certified(rule, state)
    assert rule.groups == 4


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Calibration(1.5), "outside"),
        (lambda: Calibration(0.1, 0), "groups"),
        (lambda: Calibration(0.1, 3, correction=Sinh()), "not support groups"),
        (lambda: Calibration(0.1, 3, QuantileTracker(), Correction()), "Correction does not support groups"),
        (lambda: Calibration(0.1, 3).ask(Calibration(0.1, 3).init()), "missing"),
        (lambda: Calibration(0.1, 3).ask(Calibration(0.1, 3).init(), [1.0, 0.5, 0.0]), "0 and 1"),
        (lambda: Calibration(0.1, 3).ask(Calibration(0.1, 3).init(), [1.0, 0.0]), "shape"),
        (lambda: Calibration(0.1, base=Mixture(), correction=LinearAndBets(-1.0)), "gain"),
        (lambda: Calibration(0.1, correction="sinh"), "correction"),
        (lambda: Calibration(0.1, correction=0), "correction"),
        (lambda: Calibration(0.1, base="mixture"), "base"),
        (lambda: Calibration(0.1, base=QuantileTracker(steps="linear")), "steps"),
        (lambda: Calibration(0.1).ask(Calibration(0.1).init(), open_rounds=-2), "open_rounds"),
        (lambda: Calibration(0.1).ask(Calibration(0.1).init(), open_rounds=np.nan), "open_rounds"),
        (lambda: Calibration(0.1).ask(Calibration(0.1).init(), open_rounds="two"), "open_rounds"),
        (lambda: Calibration("0.1"), "miss_rate"),
        (lambda: Calibration(np.nan), "miss_rate"),
        (lambda: Calibration(0.1, True), "groups"),
        (lambda: Calibration(0.1, nested=True), "miss_rate"),
        (lambda: Calibration(np.array([0.2, 0.1]), correction=Bets(), nested=True), "nested"),
        (lambda: published.aci(0.1, step=1.0).add_group(published.aci(0.1, step=1.0).init()), "default rule"),
        (lambda: Calibration(0.1, 3).ask(Calibration(0.1, 3).init(), ["a", "b", "c"]), "groups"),
        (lambda: Calibration(0.1, 3).ask(Calibration(0.1, 3).init(), np.ones((4, 3))), "groups"),
        (lambda: Calibration(0.1, 3).ask(Calibration(0.1, 3).init(), [1.0, np.nan, 0.0]), "groups"),
    ],
)
def test_wrong_arguments_are_refused(make, match):
    with pytest.raises(InputError, match=match):
        make()


@pytest.mark.parametrize(
    "score", [np.nan, np.inf, 1e101, "1.5", "many", None, True, [1.0, 2.0], [], [[1.0], [1.0, 2.0]]]
)
def test_wrong_scores_are_refused(score):
    rule = Calibration(0.1)
    state = rule.init()
    with pytest.raises(InputError, match="score in round 1"):
        rule.tell(state, rule.ask(state), score)
