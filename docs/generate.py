"""Write the table of guarantees, read off the learners, for docs/proofs/guarantees.md. `docs/conf.py` calls `write`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from longterm.learners import Learner, every_learner
from longterm.learners.interface.needs import Need
from longterm.theory.bounds import MEASURES

WORDS = dict(zip(MEASURES, ("regret", "signed", "hard", "squared", "long-term"), strict=True))
"""The measures, as the tables call them."""
INDEX = (Path(__file__).parent / "proofs" / "index.md").read_text(encoding="utf-8")
LABELS = {page: label for label, page in re.findall(r"\[(.*?)\]\((\w+)\.md\)", INDEX)}
"""The pages of proofs, as their index calls them."""
SYMBOLS = {
    "Õ": r"\tilde O",
    "√T": r"\sqrt T",
    "Σ": r"\sum ",
    "∇": r"\nabla ",
    "‖": r"\Vert ",
    "²": "^2",
    "₊": "_+",
    "β": r"\beta",
    "−": "-",
    "log": r"\log",
    "ln": r"\ln",
    "max": r"\max",
}


def write(folder: Path) -> None:
    """Write the tables that the page includes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "learners.md").write_text(table_of_learners() + "\n", encoding="utf-8")
    (folder / "needs.md").write_text(table_of_needs() + "\n", encoding="utf-8")


def table_of_learners() -> str:
    """Return one row for each learner: what it needs, what its theorem promises, and where the proof is."""
    rows = ["| learner | needs | regret | violation | proof |", "|---|---|---|---|---|"]
    return "\n".join(rows + [_row(learner) for learner in every_learner()])


def table_of_needs() -> str:
    """Return one row for each word of the column of needs."""
    rows = ["| word | `learner.needs` in full |", "|---|---|"]
    return "\n".join(rows + [f"| {_words(need)} | {need.value} |" for need in Need])


def proofs_of(learner: type[Learner[Any]]) -> list[str]:
    """Return the pages of proofs that the docstring of a learner's file names, without their ending."""
    return list(dict.fromkeys(re.findall(r"docs/proofs/(\w+)\.md", statement_of(learner))))


def statement_of(learner: type[Learner[Any]]) -> str:
    """Return the docstring of a learner's file, which states its rule, needs, guarantees and what is not promised."""
    return sys.modules[learner.__module__].__doc__ or ""


def _row(learner: type[Learner[Any]]) -> str:
    needs = ", ".join(sorted(_words(need) for need in learner.needs)) or "–"
    promises = dict(learner.promises)
    regret = promises.pop("regret", "–")
    violation = "; ".join(f"{WORDS.get(measure, measure)} {order}" for measure, order in promises.items()) or "–"
    proofs = ", ".join(f"{{doc}}`{LABELS[page]} </proofs/{page}>`" for page in proofs_of(learner))
    name = f"{{py:obj}}`~longterm.learners.{learner.__name__}`"
    return f"| {name} | {needs} | {typeset(regret)} | {typeset(violation)} | {proofs} |"


def _words(need: Need) -> str:
    return need.name.lower().replace("_", " ")


def typeset(text: str) -> str:
    """Return a promise with its orders O(…) in LaTeX. The words between them stay."""
    found, end = "", 0
    for start in (match.start() for match in re.finditer(r"[OÕ]\(", text)):
        found += text[end:start]
        end = _closing(text, start + 1) + 1
        found += f"${_latex(text[start:end])}$"
    return found + text[end:]


def _latex(order: str) -> str:
    while (start := max(order.find("√("), order.find("^("))) >= 0:
        end = _closing(order, start + 1)
        command = r"\sqrt" if order[start] == "√" else "^"
        order = f"{order[:start]}{command}{{{order[start + 2 : end]}}}{order[end + 1 :]}"
    order = re.sub(r"\^max\(([^)]*)\)", r"^{max(\1)}", order)
    order = re.sub(r"\^(\d/\d)", r"^{\1}", order)
    order = re.sub(r"√(Σ‖[^‖]*‖²)", r"\\sqrt{\1}", order)
    for symbol, command in SYMBOLS.items():
        order = order.replace(symbol, command)
    return order


def _closing(text: str, opening: int) -> int:
    """Return the index of the bracket that closes the one at `opening`."""
    depth = 0
    for index in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return index
    raise ValueError(f"brackets of {text!r} do not match")
