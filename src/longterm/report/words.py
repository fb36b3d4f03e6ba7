"""What figures, tables and prose show of a result: what things are called, how numbers are written, which axes and
panels there are, how fast a curve grows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.experiments.result import LOGGED, Result, Role

MEASURE_NAMES = {
    "regret": "Regret",
    "signed_violation": "Signed violation",
    "hard_violation": "Hard violation",
    "squared_violation": "Squared violation",
    "long_term_violation": "Long-term violation",
    LOGGED: "Logged rounds only",
}
MEASURE_FORMULAS = {
    "regret": "Σ fₜ(xₜ) − min over X of Σ fₜ(x)",
    "signed_violation": "Σ g(xₜ), where g is the largest of the gⱼ",
    "hard_violation": "Σ [g(xₜ)]₊",
    "squared_violation": "Σ [g(xₜ)]₊²",
    "long_term_violation": "the largest of the Σ gⱼ(xₜ)",
    LOGGED: "Σ g(xₜ) over t = 8, 16, 32, …, T",
}
MEASURE_MATHEMATICS = {
    "regret": r"$\Sigma\, f_t(x_t) - \mathrm{min}_X\, \Sigma\, f_t(x)$",
    "signed_violation": r"$\Sigma\, \mathrm{max}_j\, g_j(x_t)$",
    "hard_violation": r"$\Sigma\, [\mathrm{max}_j\, g_j(x_t)]_+$",
    "squared_violation": r"$\Sigma\, [\mathrm{max}_j\, g_j(x_t)]_+^2$",
    "long_term_violation": r"$\mathrm{max}_j\, \Sigma\, g_j(x_t)$",
    LOGGED: r"$\Sigma_{t = 8, 16, 32, \ldots, T}\, \mathrm{max}_j\, g_j(x_t)$",
}
"""The same for matplotlib."""
MEASURE_WORDS = {
    "regret": "What was lost beyond the best fixed decision in hindsight.",
    "signed_violation": "A round with slack makes up for a broken one.",
    "hard_violation": "No round makes up for another: only the broken ones are summed.",
    "squared_violation": "Like the hard violation, with large ones weighing more.",
    "long_term_violation": "The long-term constraint itself, for the worst of the constraints.",
    LOGGED: "What the paper's Figure 4 shows: g of the rounds at which it was logged, and of no other.",
}
ROLE_WORDS: dict[Role, str] = {
    "paper": "as in the paper",
    "fair": "the same method, set up fairly",
    "own": "not in the paper",
}

_PROBLEM_WORDS = {
    "name": "Problem",
    "dimension": "Dimension d",
    "constraints": "Constraints m",
    "R": "R, radius of the enclosing set",
    "G": "G, bound on all gradients",
    "D": "D, bound on |g|",
    "F": "F, range of a loss",
    "radius": "R, radius of the enclosing set",
    "diameter": "Δ, diameter of the enclosing set",
    "loss_gradient_bound": "bound on the losses' gradients",
    "constraint_gradient_bound": "bound on the constraints' gradients",
    "gradient_bound": "G, bound on all gradients",
    "constraint_bound": "D, bound on |g|",
    "loss_range": "F, range of a loss",
    "strong_convexity": "σ, strong convexity of a loss",
    "sigma": "σ, strong convexity of a loss",
    "budget": "ρ, the budget",
    "rho": "ρ, the budget",
    "data": "Data",
    "data_set": "Data",
    "beta": "β",
}


def problem_facts(problem: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was played, fact by fact; nested groups such as the constants are laid out flat."""
    facts: list[tuple[str, str]] = []
    for key, value in problem.items():
        if isinstance(value, Mapping):
            facts += problem_facts(value)
        else:
            facts.append((_PROBLEM_WORDS.get(key, key.replace("_", " ")), in_words(value)))
    return facts


def in_words(value: Any) -> str:
    """A value of a specification, short.

    Examples
    --------
    >>> in_words(2 / 3), in_words([1, 2.5]), in_words(None), in_words(50_000), in_words(True)
    ('0.666667', '1, 2.5', '–', '50,000', 'yes')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return ", ".join(in_words(part) for part in value)
    try:
        number_ = float(value)
    except (TypeError, ValueError):
        return str(value)
    return f"{int(number_):,}" if number_.is_integer() and abs(number_) < 1e15 else f"{number_:.6g}"


def number(value: float) -> str:
    """Few digits, a true minus sign, never more than the eye needs.

    Examples
    --------
    >>> number(33.2691), number(12623.5), number(-187.0), number(9.9e-7), number(0), number(math.inf)
    ('33.27', '12,624', '−187.0', '9.9e−07', '0', '∞')
    """
    size = abs(value)
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        text = "∞"
    elif size == 0:
        return "0"
    elif size >= 1e7 or size < 0.005:
        text = f"{size:.2g}".replace("-", "−")
    else:
        text = f"{size:,.0f}" if size >= 1000 else f"{size:.1f}" if size >= 100 else f"{size:.2f}"
    return f"−{text}" if value < 0 else text


def mean_and_deviation(mean: float, deviation: float) -> str:
    """Both with as many decimals as the mean asks for.

    Examples
    --------
    >>> mean_and_deviation(33.27, 0.614), mean_and_deviation(4.04, 6e-15), mean_and_deviation(-9437.4, 555.5)
    ('33.27 ± 0.61', '4.04 ± 0.00', '−9,437 ± 556')
    >>> mean_and_deviation(0, 0), mean_and_deviation(2e-4, 1e-4)
    ('0', '0.0002 ± 0.0001')
    """
    if mean == deviation == 0:
        return "0"
    if not 0.005 <= abs(mean) < 1e7:
        return f"{number(mean)} ± {number(deviation)}"
    decimals = 0 if abs(mean) >= 1000 else 1 if abs(mean) >= 100 else 2
    return f"{number(mean)} ± {deviation:,.{decimals}f}"


def share(value: float) -> str:
    """A share in per cent, with enough digits to be told from none.

    Examples
    --------
    >>> share(0.0088), share(1.2), share(3.7e-4), share(-0.5)
    ('0.9 %', '120 %', '0.04 %', '−50 %')
    """
    percent = 100 * abs(value)
    text = f"{percent:,.0f}" if percent >= 10 else f"{percent:.1f}" if percent >= 0.1 else f"{percent:.1g}"
    return f"{'−' if value < 0 else ''}{text} %"


def gap_in_words(gap: float) -> str:
    """A certified gap, as a share of the comparator's loss."""
    return "exact" if gap == 0 else f"≤ {number(gap)}" if math.isfinite(gap) else "none"


def seeds_in_words(seeds: tuple[int, ...]) -> str:
    """The seeds of the sequences.

    Examples
    --------
    >>> seeds_in_words((0, 1, 2)), seeds_in_words((7,)), seeds_in_words((3, 5))
    ('seeds 0–2', 'seed 7', 'seeds 3, 5')
    """
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds == tuple(range(seeds[0], seeds[0] + len(seeds))):
        return f"seeds {seeds[0]}–{seeds[-1]}"
    return f"seeds {', '.join(str(seed) for seed in seeds)}"


def extent(result: Result) -> str:
    """How long and how often was played."""
    count = len(result.seeds)
    T = int(result.rounds[-1])
    return f"{T:,} {'round' if T == 1 else 'rounds'}, {count} {'sequence' if count == 1 else 'sequences'}"


def counted(count: int, thing: str) -> str:
    """How many there are of a thing.

    Examples
    --------
    >>> from longterm.report.words import counted
    >>> counted(1, "learner"), counted(50, "learner")
    ('one learner', '50 learners')
    """
    return f"one {thing}" if count == 1 else f"{count:,} {thing}s"


def slug(name: str) -> str:
    """A name as part of a file's name or an address within the page.

    Examples
    --------
    >>> slug("My <b>grid</b>/β"), slug("///")
    ('my-b-grid-b-β', 'experiment')
    """
    return re.sub(r"[\W_]+", "-", name.lower()).strip("-") or "experiment"


DECADES = 4
"""At most so many powers of ten on either side of a signed axis: more would bury the curves in what is next to zero."""


FEWEST_ROUNDS = 3
"""Kept rounds in the last decade without which no line is fitted."""


class Scale(NamedTuple):
    """A vertical axis."""

    kind: Literal["log", "symlog"]
    """Logarithmic; or logarithmic on both sides of zero."""
    threshold: float
    """A signed axis is linear between ± this."""


def logarithmic_scale(values: FloatArray) -> Scale:
    """For all the values of a panel, as logarithmic as their signs allow.

    Examples
    --------
    >>> import numpy as np
    >>> logarithmic_scale(np.array([1.0, 30.0])), logarithmic_scale(np.array([-1.0, 300.0]))
    (Scale(kind='log', threshold=0.0), Scale(kind='symlog', threshold=1.0))
    """
    finite = np.abs(values[np.isfinite(values)])
    if np.all(values[np.isfinite(values)] > 0):
        return Scale("log", 0.0)
    positive = finite[finite > 0]
    if not positive.size:
        return Scale("symlog", 1.0)
    lowest, highest = np.floor(np.log10(np.quantile(positive, 0.05, method="lower"))), np.ceil(np.log10(positive.max()))
    return Scale("symlog", float(10.0 ** max(lowest, highest - DECADES)))


def scale_of(result: Result, measure: str) -> Scale:
    """For the means of all curves; a band may leave a logarithmic axis at its lower edge."""
    return logarithmic_scale(np.concatenate([curve.mean(measure) for curve in result.curves]))


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


def last_decade_slope(rounds: NDArray[np.int64], values: FloatArray) -> float | None:
    """The a of |values| ≈ c·t^a, fitted by least squares in logarithms over the rounds t ≥ T/10.

    None where that says nothing: a zero, a change of sign or a missing value among them, or fewer than three rounds.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.array([1, 10, 20, 50, 100])
    >>> round(last_decade_slope(t, -3 * t**0.75), 6), last_decade_slope(t, t - 50.0)
    (0.75, None)
    """
    last = 10 * rounds >= rounds[-1]
    t, decade = rounds[last].astype(np.float64), np.asarray(values, dtype=np.float64)[last]
    if len(t) < FEWEST_ROUNDS or not np.all(np.isfinite(decade)) or not (np.all(decade > 0) or np.all(decade < 0)):
        return None
    return float(np.polyfit(np.log(t), np.log(np.abs(decade)), 1)[0])
