"""A fitted linear model as a table of its largest weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from longterm._base import validate
from longterm._base.display import TextTable, format_number

INTERCEPT = "(intercept)"


class SummarisedModel:
    """Mixin: the method `summary`."""

    def summary(self: Any, top: int = 20) -> TextTable:
        """Return a table of the `top` features with the largest weights, and the share of a budget that is used."""
        check_is_fitted(self)
        top = validate.count("top", top)
        weights, intercepts = self._chosen_models()
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{k}" for k in range(weights.shape[1])]
        sizes = np.abs(weights).max(axis=0)
        listed = [k for k in np.argsort(-sizes, kind="stable")[:top] if sizes[k] > 0]
        rows = [(INTERCEPT, *map(format_number, intercepts))] if self.fit_intercept else []
        rows += [(str(names[k]), *map(format_number, weights[:, k])) for k in listed]
        hidden = int(np.count_nonzero(sizes)) - len(listed)
        if hidden > 0:
            rows.append((f"… {hidden:,} more", *("" for _ in intercepts)))
        return TextTable(("feature", *self._summary_columns()), rows, title=self._summary_title(weights))

    def _summary_columns(self: Any) -> tuple[str, ...]:
        classes = getattr(self, "classes_", None)
        if classes is None:
            return ("weight",)
        return (str(classes[1]),) if len(classes) == 2 else tuple(str(one) for one in classes)

    def _summary_title(self: Any, weights: Any) -> str:
        features = int(np.count_nonzero(np.abs(weights).max(axis=0)))
        first = f"{type(self).__name__}: {features:,} of {weights.shape[1]:,} features, {self.n_rounds_:,} rounds"
        if self.budget_ == math.inf:
            return first
        largest = max(learner.size(x) for learner, x in zip(self._learners, weights, strict=True))
        each = "" if len(weights) == 1 else " (largest of a class)"
        used = f"budget {format_number(self.budget_)}, used {format_number(largest)} ({largest / self.budget_:.1%})"
        multipliers = np.atleast_1d(getattr(self, "multiplier_", []))
        multiplier = f", multiplier {format_number(float(multipliers.max()))}" if multipliers.size else ""
        binds = "" if np.any(self.budget_binds_) else "; the budget does not bind"
        return f"{first}\n{used}{each}{multiplier}{binds}"
