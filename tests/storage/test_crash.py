"""A process may die at any moment, and a disk may be full: nothing acknowledged is lost, and nothing else happens."""

import os
import subprocess
import sys

import pytest

import live_plan
from live_plan import image, start, step, undisturbed
from longterm.errors import DatabaseError

STEPS = 23


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("kills", [60, pytest.param(200, marks=pytest.mark.cross)])
def test_killed_at_random_moments(tmp_path, kills):
    done = subprocess.run(
        [sys.executable, live_plan.__file__, str(tmp_path), str(kills), "1"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{kills} kills")


def test_a_call_that_found_the_disk_full_has_not_happened(tmp_path):
    with start(tmp_path, max_in_flight=10**6, expire_after=10**6) as live:
        connection = live._replica.database.engine.connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        made, error = 0, None
        while error is None:
            try:
                live.ask()
                made += 1
            except DatabaseError as refused:
                error = refused
        assert error.reason == "full"
        assert live.state.asked == made > 10
        live.skip(live.in_flight[0])  # needs no room
        connection.execute("PRAGMA max_page_count = 1000000")
        live.ask()
        expected = image(live)
    with start(tmp_path) as live:
        assert image(live) == expected
        assert live.state.asked == made + 1


def test_a_closed_learner_raises(tmp_path):
    with start(tmp_path) as live:
        step(live)
    for call in (lambda: step(live), lambda: live.backup(tmp_path / "copy"), lambda: live.state):
        with pytest.raises(DatabaseError) as refused:
            call()
        assert refused.value.reason == "closed"


@pytest.mark.parametrize("durability", ["commit", "relaxed"])
def test_every_moment_can_be_continued(tmp_path, durability):
    expected = undisturbed(STEPS)
    for done in range(STEPS):
        with start(tmp_path, durability=durability) as live:
            assert image(live) == expected[done]
            step(live)
    with start(tmp_path) as live:
        assert image(live) == expected[STEPS]
