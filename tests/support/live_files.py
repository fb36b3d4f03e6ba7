"""Files of a live learner for the tests: saved ones, interrupted ones, damaged ones."""

from live_plan import PROBLEM, learner, position, start, step, undisturbed
from longterm import LiveLearner


def put(path, data):
    """A new file: some file systems force one that is overwritten to the disk."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def saved(tmp_path):
    """A folder with a snapshot after 20 things and a journal of 9 more, and the images at every position."""
    with start(tmp_path, fsync=False) as live:
        while position(live) < 20:
            step(live)
        live.save(tmp_path / "state")
        while position(live) < 29:
            step(live)
    return tmp_path, undisturbed(29)


def load(folder, **options):
    options.setdefault("journal", folder / "journal")
    return LiveLearner.load(folder / "state", learner(), PROBLEM, fsync=False, **options)


def interrupted(tmp_path):
    """A save that was interrupted between the snapshot and the new journal; then the old journal went on."""
    with start(tmp_path, fsync=False) as live:
        while position(live) < 12:
            step(live)
        old = (tmp_path / "journal").read_bytes()
        live.save(tmp_path / "state")
    put(tmp_path / "journal", old)
    with load(tmp_path) as live:
        while position(live) < 20:
            step(live)
    return tmp_path, undisturbed(20)
