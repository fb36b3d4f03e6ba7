"""Names, formulas and descriptions of measures and facts in figures, tables and pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longterm.lab.experiments.remarks import LABELS
from longterm.lab.experiments.result import LOGGED, Role
from longterm.lab.report.formats import format_value

MEASURE_NAMES = {measure: label.capitalize() for measure, label in LABELS.items()}
MEASURE_FORMULAS = {
    "regret": "Σ fₜ(xₜ) − min over X of Σ fₜ(x)",
    "signed_violation": "Σ g(xₜ), where g is the largest of the gⱼ",
    "hard_violation": "Σ [g(xₜ)]₊",
    "squared_violation": "Σ [g(xₜ)]₊²",
    "long_term_violation": "the largest of the Σ gⱼ(xₜ)",
    "largest_violation": "the largest g(xₜ)",
    LOGGED: "Σ g(xₜ) over t = 8, 16, 32, …, T",
}
MEASURE_LATEX = {
    "regret": r"$\Sigma\, f_t(x_t) - \mathrm{min}_X\, \Sigma\, f_t(x)$",
    "signed_violation": r"$\Sigma\, \mathrm{max}_j\, g_j(x_t)$",
    "hard_violation": r"$\Sigma\, [\mathrm{max}_j\, g_j(x_t)]_+$",
    "squared_violation": r"$\Sigma\, [\mathrm{max}_j\, g_j(x_t)]_+^2$",
    "long_term_violation": r"$\mathrm{max}_j\, \Sigma\, g_j(x_t)$",
    LOGGED: r"$\Sigma_{t = 8, 16, 32, \ldots, T}\, \mathrm{max}_j\, g_j(x_t)$",
}
MEASURE_DESCRIPTIONS = {
    "regret": "The loss beyond that of the best fixed decision in hindsight.",
    "signed_violation": "Slack in one round offsets violation in another.",
    "hard_violation": "Slack does not offset violation: only positive values are summed.",
    "squared_violation": "Like the hard violation, with more weight on large values.",
    "long_term_violation": "The long-term constraint itself, for the worst of the constraints.",
    LOGGED: "As in the paper's Figure 4: g summed only over the rounds at which it was logged.",
}
ROLE_NAMES: dict[Role, str] = {
    "paper": "as in the paper",
    "fair": "the same method with fair constants",
    "own": "not in the paper",
}
FACT_NAMES = {
    "name": "Problem",
    "dimension": "Dimension d",
    "constraints": "Constraints m",
    "radius": "R, radius of the enclosing set",
    "diameter": "Δ, diameter of the enclosing set",
    "loss_gradient_bound": "bound on the losses' gradients",
    "constraint_gradient_bound": "bound on the constraints' gradients",
    "gradient_bound": "G, bound on all gradients",
    "constraint_bound": "D, bound on |g|",
    "loss_range": "F, range of a loss",
    "strong_convexity": "σ, strong convexity of a loss",
    "budget": "ρ, the budget",
    "data": "Data",
}


def problem_facts(problem: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the names and values of a problem's facts, nested tables flattened."""
    facts: list[tuple[str, str]] = []
    for key, value in problem.items():
        if isinstance(value, Mapping):
            facts += problem_facts(value)
        else:
            facts.append((FACT_NAMES.get(key, key.replace("_", " ")), format_value(value)))
    return facts
