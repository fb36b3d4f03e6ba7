"""The routing and auction examples on small invented tables; on the real ones where they are."""

import csv
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="examples need the extra `experiments`")
pytest.importorskip("tyro", reason="examples need the extra `experiments`")

import auctions
import routing


def write_table(folder, rows=300):
    """Hard questions have the word "prove": the large model answers those, both answer the others."""
    rng = np.random.default_rng(0)
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["subject", "prompt", "small", "large"])
        for _ in range(rows):
            hard = rng.random() < 0.5
            text = "prove this lemma" if hard else "what colour is the sky?"
            writer.writerow(["logic" if hard else "common", text, int(rng.random() < (0.1 if hard else 0.9)), 1])
    (folder / "p.json").write_text(json.dumps({"small": 1.0, "large": {"input_price": 10.0}}), encoding="utf-8")
    return ["--table", str(folder / "t.csv"), "--prices", str(folder / "p.json"), "--out", str(folder / "out")]


@pytest.mark.slow
def test_the_arena_of_a_given_table(tmp_path, capsys):
    arguments = write_table(tmp_path)
    assert routing.main([*arguments, "--orders", "1", "--budgets", "0.5", "--size", "8"]) == 0
    text = capsys.readouterr().out
    for method in routing.METHODS:
        assert re.search(rf"^{method} +0\.\d{{4}} ± ", text, re.M), method
    score = {line.split()[0]: float(line.split()[1]) for line in text.splitlines()[2:-2] if "±" in line}
    assert score["thompson"] > score["mix"] + 0.02  # hard questions are found by a word
    assert float(re.search(r"largest share .*: ([\d.]+)%", text)[1]) <= 100.0
    assert (tmp_path / "out" / "routing-t.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_invented_table(tmp_path, capsys):
    """The same seed gives the same table; words tell the topics, so a router that reads them beats the mix."""
    arguments = ["--invented", "1", "--orders", "1", "--budgets", "0.25", "--size", "16", "--out", str(tmp_path)]
    assert routing.main([*arguments, "--methods", "thompson", "mix"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("invented: 3,000 requests, 4 models")
    score = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if "±" in line}
    assert score["thompson"] > score["mix"] + 0.01
    assert (tmp_path / "routing-invented.png").stat().st_size > 10_000
    first, again, other = (routing.invented(seed, 20, 8).table for seed in (1, 1, 2))
    assert np.array_equal(first.contexts, again.contexts)
    assert np.array_equal(first.rewards, again.rewards)
    assert not np.array_equal(first.rewards, other.rewards)


@pytest.mark.slow
def test_orders_and_mistakes(tmp_path, capsys):
    arguments = write_table(tmp_path, 60)
    assert (
        routing.main([*arguments, "--orders", "2", "--order", "subject", "--methods", "mix", "--budgets", "0.3"]) == 0
    )
    capsys.readouterr()
    (tmp_path / "p.json").write_text("{}", encoding="utf-8")
    assert routing.main(arguments) == 2
    assert "no price for ['small', 'large']" in capsys.readouterr().err


@pytest.mark.slow
def test_the_auctions_of_an_invented_log(tmp_path, capsys):
    assert auctions.main(["--synthetic", "3", "--rounds", "500", "--shares", "0.25", "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "seen, by value" in text
    assert "guarded" in text
    assert (tmp_path / "auctions.png").stat().st_size > 10_000


@pytest.mark.cross
@pytest.mark.skipif(
    not Path(os.environ.get("LONGTERM_DATA", "."), routing.TABLES["mmlu"]).is_file(), reason="needs the table"
)
def test_mmlu_is_routed_as_well_as_the_page_says():
    """One random order and the file's order, at one budget each; six orders are in the page."""
    prompts = routing.load(routing.find(routing.TABLES["mmlu"]), routing.PRICES, 1.0, 32)
    found = routing.run(prompts, "thompson", 0.25, "random", 0)
    assert found.quality >= 0.737
    assert 0.99 <= found.used <= 1.0
    ordered = routing.run(prompts, "thompson", 0.1, "subject", 0)
    assert ordered.quality >= 0.698
    assert ordered.used <= 1.0
