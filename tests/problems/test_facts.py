import numpy as np
import pytest

from longterm import InputError, challenge
from longterm.problems.constraints import CustomConstraint
from longterm.problems.losses import CustomLoss, SquaredDistance
from longterm.problems.sets import Ball, Box


def parabola(**changed):
    facts = {"gradient_bound": 3.2, "value_range": 1.6, "strong_convexity": 3.2, **changed}
    return CustomLoss(1, function=lambda x: 1.6 * x[..., 0] ** 2, derivative=lambda x: 3.2 * x, **facts)


LINE = Box([-1.0], [1.0])


def test_true_facts_are_not_refuted():
    assert challenge(parabola(), LINE) == []


@pytest.mark.parametrize(
    ("changed", "fact", "found"),
    [
        ({"gradient_bound": 1.0}, "gradient_bound", 3.2),
        ({"value_range": 1.0}, "value_range", 1.6),
        ({"strong_convexity": 4.0}, "convexity (σ)", None),
    ],
)
def test_wrong_facts_get_a_counterexample(changed, fact, found):
    (proof,) = challenge(parabola(**changed), LINE)
    assert proof.fact == fact
    if found is not None:
        assert proof.observed == pytest.approx(found)
        assert abs(proof.x[0]) == pytest.approx(1.0)
    assert f"your {fact} = " in str(proof)


def test_a_wrong_gradient_and_a_concave_function_are_found():
    wrong = CustomLoss(1, lambda x: x[..., 0] ** 2, lambda x: -2 * x, gradient_bound=2.0, value_range=1.0)
    concave = CustomLoss(1, lambda x: -(x[..., 0] ** 2), lambda x: -2 * x, 2.0, 1.0)
    for function in (wrong, concave):
        assert [proof.fact for proof in challenge(function, LINE)] == ["convexity (σ)"]


def test_constraints_are_challenged_too():
    g = CustomConstraint(2, lambda x: x[..., 0] - 0.5, lambda x: x * 0 + [1.0, 0.0], 1.0, value_bound=1.0)
    (proof,) = challenge(g, Ball(2))
    assert (proof.fact, proof.observed) == ("value_bound", pytest.approx(1.5))


def test_functions_that_are_not_batched_are_refused():
    flat = CustomLoss(2, function=lambda x: float(np.sum(x**2)), derivative=lambda x: 2 * x, **FACTS)
    with pytest.raises(InputError, match="returned shape"):
        challenge(flat, Ball(2))
    narrow = CustomLoss(2, function=lambda x: x[..., 0], derivative=lambda x: np.array([1.0, 0.0]), **FACTS)
    with pytest.raises(InputError, match="derivative"):
        challenge(narrow, Ball(2))


FACTS = {"gradient_bound": 2.0, "value_range": 4.0}


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: challenge(parabola(), Ball(2)), "over"),
        (lambda: challenge(parabola(), LINE, samples=0), "samples"),
        (lambda: challenge(SquaredDistance(1), LINE), "parameters"),
        (lambda: challenge(CustomConstraint(1, lambda x: 1.0, lambda x: x, 1.0, 1.0), LINE), "function"),
    ],
)
def test_impossible_challenges_are_refused(call, argument):
    with pytest.raises(InputError) as refused:
        call()
    assert refused.value.argument == argument


def test_parameters_may_be_lists():
    assert challenge(SquaredDistance(1, targets=LINE), LINE, parameters=[[0.5]]) == []
