"""TorchMultipliers in PyTorch; skipped without the extra `torch`."""

import copy
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from longterm.compat import multipliers as rules  # noqa: E402
from longterm.compat.torch import TorchMultipliers  # noqa: E402
from longterm.errors import InputError, NonFiniteError  # noqa: E402


@pytest.mark.parametrize("count", [3, 20])
@pytest.mark.parametrize("rule", [rules.Adaptive(), rules.ProportionalIntegral(0.1, 5.0, 0.9), rules.Regularised(0.1)])
def test_the_same_steps_as_in_numpy(rule, count):
    """Three constraints are moved as floats, twenty as tensors."""
    given = np.random.default_rng(0).normal(0.3, 1.0, size=(30, count))
    module = TorchMultipliers(count, rule, dtype=torch.float64)
    plain = rules.init(np.zeros(count), rule)
    for row in given:
        module.update(torch.tensor(row))
        plain = rules.update(rule, plain, row)
    np.testing.assert_allclose(module.values, plain.multiplier, rtol=1e-9)


def test_a_norm_constraint_in_a_loop():
    """min ‖x − a‖² with ‖x‖² ≤ 1 for a = (3, 4): x = a/5 and λ = 4."""
    x = torch.zeros(2, requires_grad=True)
    a, optimiser, multipliers = torch.tensor([3.0, 4.0]), torch.optim.Adam([x], lr=0.02), TorchMultipliers(1)
    for _ in range(3000):
        violations = (x**2).sum()[None] - 1
        loss = ((x - a) ** 2).sum() + multipliers.penalty(violations)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        multipliers.update(violations)
    np.testing.assert_allclose(x.detach(), a / 5, atol=0.02)
    assert multipliers.values.item() == pytest.approx(4.0, abs=0.2)


def test_an_equality_has_a_multiplier_of_either_sign():
    """min (x − 2)² with x = 3: λ = −2."""
    x = torch.zeros(1, requires_grad=True)
    optimiser, multipliers = torch.optim.SGD([x], lr=0.05), TorchMultipliers(1, equality=True)
    for _ in range(3000):
        violations = x - 3
        optimiser.zero_grad()
        (((x - 2) ** 2).sum() + multipliers.penalty(violations)).backward()
        optimiser.step()
        multipliers.update(violations)
    assert x.item() == pytest.approx(3.0, abs=0.02)
    assert multipliers.values.item() == pytest.approx(-2.0, abs=0.1)


def test_gradients_go_to_the_violations_only_and_update_may_come_first():
    module, violations = TorchMultipliers(2, rules.ascent(1.0)), torch.ones(2, requires_grad=True)
    module.update(violations)
    loss = module.penalty(violations)
    module.update(violations)
    loss.backward()
    np.testing.assert_allclose(violations.grad, [1.0, 1.0])
    assert not module.values.requires_grad


@pytest.mark.parametrize("count", [5, 30])
def test_one_multiplier_per_sample(count):
    module, batch = TorchMultipliers(count, rules.ascent(1.0)), torch.tensor([3, 1])
    module.update(torch.tensor([2.0, 5.0]), batch)
    expected = np.zeros(count)
    expected[[3, 1]] = [2.0, 5.0]
    np.testing.assert_allclose(module.values, expected)
    assert module.penalty(torch.ones(2), batch).item() == 7.0


def test_a_loaded_state_goes_on_the_same():
    one, given = TorchMultipliers(2), torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    for row in given[:10]:
        one.update(row)
    other = TorchMultipliers(2)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for row in given[10:]:
        one.update(row)
        other.update(row)
    assert torch.equal(one.values, other.values)
    assert torch.equal(one.state, other.state)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype):
    for module in (TorchMultipliers(2, dtype=dtype), TorchMultipliers(2).to(dtype)):
        module.update(torch.tensor([0.5, -0.5]))
        assert module.state.dtype == module.values.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int64])
def test_multipliers_that_would_lose_small_steps_are_refused(dtype):
    with pytest.raises(InputError, match="too coarse for small steps"):
        TorchMultipliers(2, dtype=dtype)


def test_a_module_that_was_moved_to_half_precision_is_refused():
    module = torch.nn.ModuleDict({"multipliers": TorchMultipliers(1)}).half()
    with pytest.raises(InputError, match="too coarse for small steps"):
        module["multipliers"].update(torch.ones(1))


def test_violations_in_half_precision():
    """As in mixed precision: the penalty has the dtype of the multipliers, the gradient that of the violations."""
    module, violations = TorchMultipliers(2, rules.ascent(1.0)), torch.ones(2, dtype=torch.float16, requires_grad=True)
    module.update(violations)
    loss = module.penalty(violations)
    loss.backward()
    assert (loss.item(), loss.dtype, violations.grad.dtype) == (2.0, torch.float32, torch.float16)


def test_an_equality_is_kept_in_the_state():
    module = TorchMultipliers(2, rules.ascent(1.0))
    module.load_state_dict(TorchMultipliers(2, rules.ascent(1.0), equality=[True, False]).state_dict())
    module.update(torch.tensor([-1.0, -1.0]))
    np.testing.assert_allclose(module.values, [-1.0, 0.0])


def test_another_device_takes_the_path_of_tensors():
    module = TorchMultipliers(3, device="meta")
    module.update(torch.zeros(3, device="meta"))
    assert module.values.device.type == "meta"


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler on the CPU")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch's own code, with some versions of Python
def test_compiled_steps():
    torch._dynamo.reset()
    module, plain = TorchMultipliers(2, dtype=torch.float64), TorchMultipliers(2, dtype=torch.float64)

    @torch.compile(backend="aot_eager")
    def step(violations):
        module.update(violations)
        return module.penalty(violations)

    for row in torch.randn(10, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64):
        plain.update(row)
        assert step(row).item() == pytest.approx(plain.penalty(row).item(), rel=1e-9)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: TorchMultipliers(0), "constraints"),
        (lambda: TorchMultipliers(3, equality=[True, False]), "equality"),
        (lambda: TorchMultipliers(2, rules.Entropic(0.1), equality=True), "rule"),
        (lambda: TorchMultipliers(True), "constraints"),
        (lambda: TorchMultipliers(2, "ascent"), "rule"),
    ],
)
def test_wrong_arguments_are_refused(make, match):
    with pytest.raises(InputError, match=match):
        make()


@pytest.mark.parametrize(
    "bad", [0.5, [0.5, 0.5], np.ones(2), torch.tensor(0.5), torch.ones(3), torch.ones(2, 1), torch.tensor([1, 0])]
)
def test_violations_that_are_not_one_float_each_are_refused(bad):
    module = TorchMultipliers(2)
    for method in (module.penalty, module.update):
        with pytest.raises(InputError, match=r"tensor of floats.*shape \(2,\)"):
            method(bad)


def test_values_are_a_copy_and_no_sample_is_no_step():
    module = TorchMultipliers(2, rules.ascent(1.0))
    before = module.values
    module.update(torch.ones(0), torch.tensor([], dtype=torch.long))
    module.update(torch.ones(2))
    assert (before.tolist(), module.values.tolist()) == ([0.0, 0.0], [1.0, 1.0])
    assert repr(module) == "TorchMultipliers(2, ProportionalIntegral(step=1))"


def test_a_violation_that_is_not_a_number_changes_nothing():
    module = TorchMultipliers(2)
    with pytest.raises(NonFiniteError, match="violations"):
        module.update(torch.tensor([1.0, float("nan")]))
    assert torch.equal(module.state, TorchMultipliers(2).state)
