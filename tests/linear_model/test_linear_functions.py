"""The elementary functions of the kernels, beside NumPy's."""

import numpy as np
import pytest

from longterm.linear_model.kernels.functions import exponential, falling_power, log1p_of_share, logarithm


@pytest.mark.slow
def test_functions_are_accurate():
    x = -np.concatenate([np.linspace(0, 40, 20001), np.geomspace(1e-12, 700, 2000)])
    made = np.array([exponential(one) for one in x])
    assert (np.abs(made / np.exp(x) - 1) <= 4e-16 * (2 - x)).all()
    s = np.concatenate([np.linspace(0, 1, 20001), np.geomspace(1e-300, 1, 2000)])
    np.testing.assert_allclose([log1p_of_share(one) for one in s], np.log1p(s), rtol=1e-15)
    assert exponential(-1e300) == 0
    assert np.isnan(exponential(np.nan))
    x = np.concatenate([np.geomspace(1e-300, 1e300, 2001), 1 + np.geomspace(1e-12, 0.5, 500)])
    np.testing.assert_allclose([logarithm(one) for one in x], np.log(x), rtol=1e-15, atol=3e-16)
    t = np.unique(np.geomspace(1, 1e15, 500).astype(np.int64))
    np.testing.assert_allclose([falling_power(logarithm(one), 2 / 3) for one in t], t ** (-2 / 3), rtol=1e-14)
