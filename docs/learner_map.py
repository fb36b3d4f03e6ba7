"""Draw the map of learners: python docs/learner_map.py writes docs/_static/learner_map.svg.

The guide "Choosing a learner" shows it inside the page, so that each name leads to the page of its class.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

FILE = Path(__file__).parent / "_static" / "learner_map.svg"
ROWS = (
    ("Do you see the request", "before you act?", (("Router, Chooser, pacers", "../money.html"),)),
    ("Do you only get values of g,", "no gradients?", ("TwoPointBandit",)),
    ("Is the constraint one fixed", "ℓ1, ℓ2 or elastic-net budget?", ("PenalisedFTRL",)),
    ("Do limits return,", "or keep arriving?", (("HedgedCuts(remembered=64)", "HedgedCuts"),)),
    ("May slack rounds", "offset violations?", (("HedgedCuts(bank=0.1)", "HedgedCuts"), "DriftPlusPenalty")),
    ("Must every round be feasible,", "and projecting is cheap?", ("ProjectedOGD",)),
    ("Is the outcome late,", "and you want a theorem?", ("AOGD",)),
    ("Anything else", "", ("HedgedCuts",)),
)
"""Each question on two lines, and the learners of those who say yes: a class, or a text and its link or class."""
WIDTH, ROW, LEFT, GAP = 480, 62, 232, 8


def main() -> None:
    """Write the map."""
    FILE.write_text(picture(), encoding="utf-8")


def picture() -> str:
    """Return the map as SVG, for a page in the folder of guides."""
    height = ROW * len(ROWS)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="group"',
        f'style="max-width: {WIDTH}px; width: 100%" aria-label="Map of learners"',
        'font-family="sans-serif" font-size="13">',
        "<style>.q{fill:currentColor}.l{stroke:currentColor;opacity:.5}.b{fill:none;stroke:#2f74c0}",
        "a text{fill:currentColor} a:hover rect,a:focus rect{stroke-width:3}</style>",
    ]
    for number, (first, second, answers) in enumerate(ROWS):
        top = ROW * number
        last = number == len(ROWS) - 1
        parts.append(f'<text class="q" x="0" y="{top + (34 if last else 26)}">{escape(first)}</text>')
        parts.append(f'<text class="q" x="0" y="{top + 43}">{escape(second)}</text>')
        if not last:
            parts.append(f'<path class="l" d="M 16 {top + 49} v 17 m -4 -6 l 4 6 l 4 -6" fill="none"/>')
            parts.append(f'<text class="q" x="26" y="{top + 62}" font-size="10">no</text>')
        parts.append(f'<path class="l" d="M {LEFT - 40} {top + 31} h 30 m -6 -4 l 6 4 l -6 4" fill="none"/>')
        if not last:
            parts.append(f'<text class="q" x="{LEFT - 40}" y="{top + 25}" font-size="10">yes</text>')
        size = (44 - GAP * (len(answers) - 1)) / len(answers) if len(answers) > 1 else 32
        for place, answer in enumerate(answers):
            text, target = answer if isinstance(answer, tuple) else (answer, answer)
            link = target if target.endswith(".html") else f"../reference/api/longterm.learners.{target}.html"
            y = top + (31 - size / 2 if len(answers) == 1 else 9 + place * (size + GAP))
            box = f'<rect class="b" x="{LEFT}" y="{y:g}" width="{WIDTH - LEFT - 4}" height="{size:g}" rx="5"/>'
            words = f'<text x="{LEFT + 10}" y="{y + size / 2 + 5:g}">{escape(text)}</text>'
            parts.append(f'<a href="{link}">{box}{words}</a>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
