"""Which measures need a panel of their own."""

from __future__ import annotations

import numpy as np

from longterm.experiments.result import Result


def panels(result: Result) -> list[tuple[str, ...]]:
    """Regret, then the violations, those together that are the same numbers for every curve.

    Where g ≥ 0 everywhere the signed and the hard violation are equal; with one constraint the signed one is also
    the worst constraint's. Two equal panels would make the reader look for a difference.
    """
    regret, *violations = result.measures
    groups: list[tuple[str, ...]] = [(regret,)]
    for measure in violations:
        for k, group in enumerate(groups[1:], start=1):
            if all(np.allclose(c.measures[group[0]], c.measures[measure], rtol=1e-9, atol=1e-9) for c in result.curves):
                groups[k] = (*group, measure)
                break
        else:
            groups.append((measure,))
    return groups
