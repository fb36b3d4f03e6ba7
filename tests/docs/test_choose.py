"""The pages on choosing quote what benchmarks/choose.py prints, and recommend what is there."""

import importlib.util
import re
import sys
import warnings
from pathlib import Path

import pytest

import longterm
from longterm.errors import AssumptionWarning

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "benchmarks" / "choosing.md").read_text(encoding="utf-8")
ADVICE = (ROOT / "docs" / "guides" / "choose.md").read_text(encoding="utf-8")
BLOCKS = {
    text.split(":", 1)[0].strip(): [line.strip() for line in text.splitlines()]
    for text in re.findall(r"(?:^    .*\n)+", PAGE, flags=re.MULTILINE)
    if re.match(r" {4}[\w, ]+: ", text)
}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("choose", ROOT / "benchmarks" / "choose.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["choose"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["choose"]


def quoted(block: str) -> dict[str, list[float]]:
    """Learner → figures, without the last column, which is a time."""
    rows = [re.match(r"(.+?) {2,}([-\d. ]+)$", line).groups() for line in BLOCKS[block][2:]]
    return {name: [float(figure) for figure in figures.split()[:-1]] for name, figures in rows}


def test_every_scene_is_quoted_with_its_learners(script):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        scenes = {scene.name: scene for scene in (make() for make in script.SCENES)}
    assert BLOCKS.keys() == scenes.keys() | {"answer"}
    for name, scene in scenes.items():
        assert quoted(name).keys() == scene.learners.keys()
        assert all(len(figures) == 1 + len(scene.measures) for figures in quoted(name).values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        "values_only",
        "random_constraints",
        *(pytest.param(more, marks=pytest.mark.cross) for more in ("drift", "in_the_end", "fewer_experts")),
    ],
)
def test_the_figures_are_those_that_are_printed(script, make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        scene = getattr(script, make)()
        for name, figures in script.figures(scene):
            assert figures == pytest.approx(quoted(scene.name)[name], rel=0.01, abs=0.06), name


def test_every_learner_recommended_in_the_list_is_measured():
    """In the list and in what changes it, each learner stands in one of the blocks that its line points to."""
    without_rival = {"NetworkedSaddlePoint", "LiveLearner", "Fleet", "HedgedCuts"}
    printed = {re.sub(r"[^\w]+", "-", name.split(",")[0]): " ".join(lines) for name, lines in BLOCKS.items()}
    for entry in re.split(r"^(?:\d\.|   -|-) ", ADVICE, flags=re.MULTILINE)[1:]:
        anchors = set(re.findall(r"choosing\.md#([\w-]+)\)", entry)) - {
            "pacing",
            "late",
            "many",
            "what-changes-the-answer",
        }
        named = {name for name in re.findall(r"`(\w+)[.`(]", entry) if isinstance(getattr(longterm, name, None), type)}
        shown = " ".join(printed[anchor] for anchor in anchors)
        assert not anchors or named - without_rival <= set(re.findall(r"\w+", shown)), entry


def test_the_map_of_learners_is_up_to_date_and_leads_to_pages():
    spec = importlib.util.spec_from_file_location("learner_map", ROOT / "docs" / "learner_map.py")
    drawn = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawn)
    assert drawn.FILE.read_text(encoding="utf-8") == drawn.picture(), "run python docs/learner_map.py"
    links = re.findall(r'href="([^"]+)"', drawn.picture())
    classes = [link.split(".")[-2] for link in links if "longterm.learners." in link]
    assert all(hasattr(longterm.learners, name) and name in ADVICE for name in classes)
    others = [link for link in links if "longterm.learners." not in link]
    assert all((ROOT / "docs" / "guides" / link).with_suffix(".md").exists() for link in others)
    assert len(classes) >= 7
