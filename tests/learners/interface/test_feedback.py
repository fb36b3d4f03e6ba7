"""Feedback of the wrong type is refused in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from longterm import AOGD, InputError
from longterm.problems import two_dimensional


@pytest.mark.parametrize("feedback", [(np.zeros(2), 0.0, np.zeros(2)), None, np.zeros(2)])
def test_tell_names_the_type_of_feedback_it_refuses(feedback: Any) -> None:
    learner = AOGD.for_problem(two_dimensional())
    with pytest.raises(InputError, match="not a Feedback") as raised:
        learner.tell(learner.init(), feedback)
    assert raised.value.argument == "feedback"
