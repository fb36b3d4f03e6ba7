"""Everything that can happen to a service, again and again, beside a mirror that nothing happens to.

    python tests/support/soak.py [SECONDS] [SEED]      ten minutes unless told otherwise

Processes are real: they are forked, killed, interrupted by timers, refused by locks. It prints what was tried, what was
acknowledged and what was lost, and ends with status 1 if anything was.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

import chooser_plan
from live_plan import PROBLEM, fresh, image, learner, next_call, position, step
from longterm import AOGD, Fleet, LiveLearner, observe
from longterm.decisions import Chooser
from longterm.errors import JournalError, LongtermError, SnapshotError, UnknownTokenError
from longterm.linear_model import BudgetLinearLearner
from longterm.live import journal as journals
from longterm.storage import files
from timer_signals import Alarm

TARGET = [np.array([0.3, -0.2])]
MEMORY = 8 * 2**30
"""No child may ask for more, which no honest file does."""


@dataclass
class Line:
    """One line of the table."""

    what: str
    tried: int = 0
    acknowledged: int = 0
    lost: int = 0
    crashed: int = 0
    wrong: int = 0
    words: list[str] = field(default_factory=list)

    def blame(self, kind: str, words: str) -> None:
        """Something was lost, crashed or said wrongly."""
        setattr(self, kind, getattr(self, kind) + 1)
        self.words.append(words)


class Mirror:
    """The life of the plan, undisturbed, as far as it was asked for."""

    def __init__(self) -> None:
        self._live = fresh()
        self._images = [image(self._live)]

    def at(self, place: int) -> bytes:
        while len(self._images) <= place:
            step(self._live)
            self._images.append(image(self._live))
        return self._images[place]


MIRROR = Mirror()


def opened(folder: Path, **options) -> LiveLearner:
    options = {"fsync": False, "checkpoint_after": 25, "max_in_flight": 6, "expire_after": 9} | options
    return LiveLearner.open(folder / "state", learner(), PROBLEM, journal=folder / "journal", **options)


def in_a_child(
    work: Callable[[Callable[[object], None]], None], patience: float | None = None
) -> tuple[int, list[str]]:
    """What a forked child said, and how it ended: 0, or 1 for an exception, or minus the signal that killed it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(read)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            warnings.simplefilter("ignore")
            work(lambda said: os.write(write, f"{said}\n".encode()) and None)
            status = 0
        except BaseException:
            os.write(write, ("! " + traceback.format_exc().replace("\n", " | ")[-600:] + "\n").encode())
        finally:
            os._exit(status)
    os.close(write)
    if patience is not None:
        time.sleep(patience)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    with os.fdopen(read) as pipe:
        heard = pipe.read().splitlines()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), heard


def check(line: Line, folder: Path, acknowledged: int) -> int:
    """Come up in a child: nothing acknowledged is lost, nothing is made up. Where it stands."""

    def work(say):
        with opened(folder) as live:
            say(position(live))
            say(hashlib.sha256(image(live)).hexdigest())

    status, heard = in_a_child(work)
    if status != 0:
        line.blame("crashed" if status < 0 else "wrong", f"did not come up: {heard}")
        return -1
    place = int(heard[0])
    if not acknowledged <= place <= acknowledged + 1 or hashlib.sha256(MIRROR.at(place)).hexdigest() != heard[1]:
        line.blame("lost", f"acknowledged {acknowledged}, found {place}, or another state")
    left = [
        path.name for path in folder.iterdir() if path.name.endswith(".partial") and path.name.startswith("journal")
    ]
    if left:
        line.blame("wrong", f"left behind: {left}")
    return place


class Attack:
    """One line, its folder, and the dice."""

    what = ""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.line, self.folder, self.dice = Line(self.what), folder, dice
        self.place = 0
        folder.mkdir()

    def strike(self) -> None:
        """Once."""
        raise NotImplementedError

    def writing(self, live: LiveLearner) -> list[Callable[[], None]]:
        """The calls that write a file."""
        return [partial(live.save, self.folder / "state"), live.checkpoint, partial(live.backup, self.folder / "copy")]

    def settle_on(self, heard: list[str]) -> None:
        """What a child acknowledged counts, whatever became of the child."""
        said = [int(word) for word in heard if word.isdigit()]
        self.line.acknowledged += max(0, (said[-1] if said else self.place) - self.place)
        place = check(self.line, self.folder, said[-1] if said else self.place)
        if place < 0:  # what is broken stays broken: begin again elsewhere
            shutil.rmtree(self.folder)
            self.folder.mkdir()
            place = 0
        self.place = place


class Kills(Attack):
    what = "killed at a random moment"

    def strike(self) -> None:
        dice = random.Random(self.dice.random())

        def work(say):
            with opened(self.folder, fsync=dice.random() < 0.2) as live:
                say(position(live))
                while True:
                    step(live)
                    say(position(live))
                    if dice.random() < 0.05:
                        dice.choice(self.writing(live))()

        status, heard = in_a_child(work, patience=dice.uniform(0.0, 0.3))
        self.line.tried += 1
        if status != -signal.SIGKILL:
            self.line.blame("wrong", f"ended by itself: {heard[-1:]}")
        self.settle_on(heard)


class Signals(Attack):
    what = "signal handler raised"

    def strike(self) -> None:
        dice = random.Random(self.dice.random())

        def work(say):
            alarm, hits = Alarm(), 0
            live = opened(self.folder)
            with alarm.installed():
                for _ in range(120):
                    calls = self.writing(live)
                    call = dice.choice(calls) if dice.random() < 0.2 else next_call(live)
                    hits += alarm.interrupted(call, dice.uniform(1e-6, 1e-3))
                    say(position(live))
            if dice.random() < 0.5:
                live.save(self.folder / "state")
            live.close()
            say(f"hits {hits}")

        status, heard = in_a_child(work)
        if status != 0:
            self.line.blame("crashed" if status < 0 else "wrong", f"{heard[-1:]}")
        self.line.tried += sum(int(word.split()[1]) for word in heard if word.startswith("hits"))
        self.settle_on(heard)


class Disk:
    """The os module of a disk that is full from some byte on."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __getattr__(self, name):
        return getattr(os, name)

    def write(self, descriptor, data):
        if self.room <= 0:
            raise OSError(28, "No space left on device")
        some = bytes(data)[: self.room]
        self.room -= len(some)
        return os.write(descriptor, some)


class FullDisks(Attack):
    what = "disk full, or files at their limit"

    def strike(self) -> None:
        dice = random.Random(self.dice.random())
        by_limit = dice.random() < 0.3

        def work(say):
            disk, full = Disk(10**9), 0
            files.os = journals.os = disk
            with opened(self.folder, checkpoint_after=dice.choice([5, 25, None])) as live:
                if by_limit:
                    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                    resource.setrlimit(resource.RLIMIT_FSIZE, (dice.randrange(500, 4000), resource.RLIM_INFINITY))
                for _ in range(80):
                    disk.room = dice.choice([10**9, dice.randrange(600)])
                    before = image(live)
                    calls = self.writing(live)
                    call = dice.choice(calls) if dice.random() < 0.3 else next_call(live)
                    try:
                        call()
                    except OSError:
                        full += 1
                        assert image(live) == before, "what was refused has changed something"
                    if live._recorded.checkpoints.thread is not None:
                        live._recorded.checkpoints.thread.join()
                    assert not list(self.folder.glob("*.partial")), "left behind"
                    say(position(live))
                disk.room = 10**9
            say(f"full {full}")

        status, heard = in_a_child(work)
        if status != 0:
            self.line.blame("crashed" if status < 0 else "wrong", f"{heard[-1:]}")
        self.line.tried += sum(int(word.split()[1]) for word in heard if word.startswith("full"))
        self.settle_on(heard)


class SecondProcesses(Attack):
    what = "several processes, one journal"

    def strike(self) -> None:
        seeds = [self.dice.random() for _ in range(3)]
        path = self.folder / "acknowledged"
        path.write_text("")

        def work(seed):
            dice = random.Random(seed)

            def run(say):
                stop, refused = time.monotonic() + 0.5, 0
                log = os.open(path, os.O_WRONLY | os.O_APPEND)
                while time.monotonic() < stop:
                    try:
                        live = opened(self.folder, checkpoint_after=dice.choice([3, 25]))
                    except JournalError as error:
                        assert error.reason == "in use", error  # noqa: PT017
                        refused += 1
                        continue
                    with live:
                        for _ in range(dice.randrange(4)):
                            step(live)
                            os.write(log, f"{position(live)}\n".encode())
                        if dice.random() < 0.3:
                            live.save(self.folder / "state")
                say(f"refused {refused}")

            return run

        def family(say):
            children = []
            for seed in seeds:
                child = os.fork()
                if child == 0:
                    status = 1
                    try:
                        work(seed)(say)
                        status = 0
                    finally:
                        os._exit(status)
                children.append(child)
            codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
            assert codes == [0, 0, 0], codes

        status, heard = in_a_child(family)
        if status != 0:
            self.line.blame("crashed" if status < 0 else "wrong", f"{heard[-1:]}")
        self.line.tried += sum(int(word.split()[1]) for word in heard if word.startswith("refused"))
        numbers = [int(word) for word in path.read_text().split()]
        path.unlink()
        if numbers != list(range(self.place + 1, self.place + 1 + len(numbers))):
            self.line.blame("lost", "a thing was acknowledged twice, or never")
        self.settle_on([str(number) for number in numbers[-1:]])


class Restarts(Attack):
    what = "restarts that lost something"

    def strike(self) -> None:
        """Without the journal, or with a journal that lost its end: old tokens must not reach new rounds."""
        dice = random.Random(self.dice.random())
        home = Path(tempfile.mkdtemp(dir=self.folder))

        def work(say):
            live = opened(home)
            for _ in range(dice.randrange(1, 8)):
                live.tell(live.ask(), loss_parameters=TARGET)
            live.save(home / "state")
            kept, short = str(live.ask()), (home / "journal").read_bytes()
            lost = [str(live.ask()) for _ in range(dice.randrange(1, 4))]
            live.close()
            if dice.random() < 0.5:
                (home / "journal").unlink()
                (home / "journal").write_bytes(short)
                live = opened(home)
                live.tell(kept, loss_parameters=TARGET)
            else:
                live = LiveLearner.load(home / "state", learner(), PROBLEM)
                lost.append(kept)
            for _ in range(5):
                live.ask()
            for text in lost:
                before = image(live)
                try:
                    live.tell(text, loss_parameters=TARGET)
                except UnknownTokenError:
                    say("refused")
                else:
                    say("! old feedback was taken for another round")
                assert image(live) == before
            live.close()

        status, heard = in_a_child(work)
        self.line.tried += heard.count("refused")
        for word in heard:
            if word.startswith("!"):
                self.line.blame("crashed" if status < 0 else "lost", word)
        shutil.rmtree(home)


class Hostile(Attack):
    what = "damaged and forged files"

    def __init__(self, folder: Path, dice: random.Random) -> None:
        super().__init__(folder, dice)
        with opened(folder, checkpoint_after=None) as live:
            for _ in range(20):
                step(live)
            live.checkpoint()
            live.save(folder / "state")
            for _ in range(9):
                step(live)
        fleet = Fleet(AOGD.for_problem(PROBLEM), 5)
        fleet.tell(observe(PROBLEM, fleet.ask(), [np.full((5, 2), 0.1)]))
        fleet.save(folder / "fleet")
        linear = BudgetLinearLearner(6, 1.0)
        linear.learn(np.eye(6), [1, -1, 1, -1, 1, -1])
        linear.save(folder / "linear")
        self.good = {name: (folder / name).read_bytes() for name in ("state", "journal", "fleet", "linear")}
        self.known = {hashlib.sha256(MIRROR.at(n)).hexdigest() for n in range(20, 30)}

    def damaged(self, name: str) -> bytes:
        """Bytes changed, cut or added; of snapshots sometimes with a checksum that fits."""
        data, dice = bytearray(self.good[name]), self.dice
        for _ in range(dice.choice([1, 1, 2, 5])):
            data[dice.randrange(len(data))] = dice.randrange(256)
        if dice.random() < 0.2:
            del data[dice.randrange(len(data)) :]
        if name in ("state", "fleet", "linear") and dice.random() < 0.5 and len(data) > 60:
            data[-32:] = hashlib.sha256(data[:-32]).digest()
        return bytes(data)

    def strike(self) -> None:
        name = self.dice.choice(list(self.good))
        made = [self.damaged(name) for _ in range(60)]

        def load():
            if name == "fleet":
                Fleet.load(self.folder / name, AOGD.for_problem(PROBLEM)).ask()
            elif name == "linear":
                linear = BudgetLinearLearner.load(self.folder / name)
                width = linear.settings.dimension
                linear.learn(np.eye(width)[:6], np.resize([1.0, -1.0], min(width, 6)))  # what is taken can be played on
                assert np.isfinite(linear.weights).all()
            else:
                with opened(self.folder, checkpoint_after=None) as live:
                    step(live)

        def work(say):
            for data in made:
                (self.folder / name).unlink(missing_ok=True)
                (self.folder / name).write_bytes(data)
                try:
                    load()
                except LongtermError as error:
                    say(f"refused {isinstance(error, SnapshotError)}")
                else:
                    say("taken")

        status, heard = in_a_child(work)
        self.line.tried += len(heard)
        if status != 0:
            self.line.blame("crashed" if status < 0 else "wrong", f"{name}: {heard[-1:]}")
        for which, data in self.good.items():
            (self.folder / which).unlink(missing_ok=True)
            (self.folder / which).write_bytes(data)


class Snapshots(Attack):
    what = "fleets and linear models killed as they save"

    def strike(self) -> None:
        dice = random.Random(self.dice.random())
        rng = np.random.default_rng(7)
        rows, labels = rng.standard_normal((20, 6)), np.sign(rng.standard_normal(20))
        told = observe(PROBLEM, np.zeros((5, 2)), [np.full((5, 2), 0.1)])

        def begin():
            if (self.folder / "fleet").exists():
                fleet = Fleet.load(self.folder / "fleet", AOGD.for_problem(PROBLEM))
            else:
                fleet = Fleet(AOGD.for_problem(PROBLEM), 5)
            if (self.folder / "linear").exists():
                return fleet, BudgetLinearLearner.load(self.folder / "linear")
            return fleet, BudgetLinearLearner(6, 1.0)

        def work(say):
            fleet, linear = begin()
            while True:
                fleet.tell(told)
                fleet.save(self.folder / "fleet")
                say(f"fleet {fleet.rounds[0]}")
                linear.learn(rows, labels)
                linear.save(self.folder / "linear")
                say(f"linear {linear.rounds}")

        def look(say):
            fleet, linear = begin()
            say(f"fleet {fleet.rounds[0]}")
            say(f"linear {linear.rounds}")
            mirror, other = Fleet(AOGD.for_problem(PROBLEM), 5), BudgetLinearLearner(6, 1.0)
            for _ in range(int(fleet.rounds[0]) - 1):
                mirror.tell(told)
            for _ in range(linear.rounds // 20):
                other.learn(rows, labels)
            assert (mirror.ask() == fleet.ask()).all()
            assert (other.weights == linear.weights).all()

        _, heard = in_a_child(work, patience=dice.uniform(0.0, 0.1))
        self.line.tried += 1
        self.line.acknowledged += len(heard)
        status, found = in_a_child(look)
        if status != 0:
            self.line.blame("crashed" if status < 0 else "lost", f"{found[-1:]}")
            return
        for kind, more in (("fleet", 1), ("linear", 20)):
            said = [int(word.split()[1]) for word in heard if word.startswith(kind)]
            now = next(int(word.split()[1]) for word in found if word.startswith(kind))
            if said and not said[-1] <= now <= said[-1] + more:
                self.line.blame("lost", f"{kind}: acknowledged {said[-1]}, found {now}")
        halves = list(self.folder.glob("*.partial"))  # at most of the save that was killed just now
        if len(halves) > 2:
            self.line.blame("wrong", f"left behind: {[half.name for half in halves]}")


class Choosers(Attack):
    what = "choosers killed, or their signal handlers raised"

    def strike(self) -> None:
        dice = random.Random(self.dice.random())

        def work(say):
            alarm, options = Alarm(), {"journal": self.folder / "journal", "fsync": False, "checkpoint_after": 25}
            with Chooser.open(self.folder / "state", chooser_plan.rule(), **options) as chooser, alarm.installed():
                while True:
                    files = [partial(chooser.save, self.folder / "state"), chooser.checkpoint]
                    call = dice.choice(files) if dice.random() < 0.1 else chooser_plan.next_call(chooser)
                    if alarm.interrupted(call, dice.uniform(1e-6, 2e-3)):
                        say("hit")
                    say(chooser_plan.position(chooser))

        def look(say):
            with Chooser.open(self.folder / "state", chooser_plan.rule(), journal=self.folder / "journal") as chooser:
                place = chooser_plan.position(chooser)
                mirror = Chooser(chooser_plan.rule())
                for _ in range(place):
                    chooser_plan.next_call(mirror)()
                say(place)
                assert chooser_plan.image(mirror) == chooser_plan.image(chooser)

        status, heard = in_a_child(work, patience=dice.uniform(0.0, 0.3))
        said = [int(word) for word in heard if word.isdigit()]
        self.line.tried += 1 + heard.count("hit")
        if status != -signal.SIGKILL:
            self.line.blame("wrong", f"ended by itself: {heard[-1:]}")
        before, self.place = self.place, max([self.place, *said[-1:]])
        self.line.acknowledged += self.place - before
        status, found = in_a_child(look)
        if status != 0:
            self.line.blame("crashed" if status < 0 else "lost", f"{found[-1:]}")
        elif not self.place <= int(found[0]) <= self.place + 1:
            self.line.blame("lost", f"acknowledged {self.place}, found {found[0]}")
        if status != 0 or int(found[0]) > 1000:  # what is broken stays broken, and the mirror plays all of it again
            shutil.rmtree(self.folder)
            self.folder.mkdir()
            self.place = 0
        else:
            self.place = int(found[0])


ATTACKS: tuple[type[Attack], ...] = (Kills, Signals, FullDisks, SecondProcesses, Restarts, Hostile, Snapshots, Choosers)


def soak(seconds: float, seed: int = 0) -> list[Line]:
    """Strike in turn until the time is over."""
    with tempfile.TemporaryDirectory() as name:
        attacks = [kind(Path(name) / kind.__name__, random.Random(f"{seed} {kind.__name__}")) for kind in ATTACKS]
        end = time.monotonic() + seconds  # from here on: what they need may have to be compiled first
        while time.monotonic() < end:
            for attack in attacks:
                attack.strike()
    return [attack.line for attack in attacks]


def table(lines: list[Line]) -> str:
    """For a terminal, and for docs/what_survives.md."""
    head = f"{'what was tried':<50}{'times':>9}{'acknowledged':>14}{'lost':>6}{'crashes':>9}{'wrong errors':>14}"
    rows = [
        f"{one.what:<50}{one.tried:>9,}{one.acknowledged:>14,}{one.lost:>6}{one.crashed:>9}{one.wrong:>14}"
        for one in lines
    ]
    return "\n".join([head, *rows])


def main(arguments: list[str]) -> int:
    seconds = float(arguments[0]) if arguments else 600.0
    lines = soak(seconds, int(arguments[1]) if len(arguments) > 1 else 0)
    sys.stdout.write(f"{seconds:.0f} seconds\n{table(lines)}\n")
    for line in lines:
        for words in line.words[:5]:
            sys.stdout.write(f"{line.what}: {words}\n")
    return int(any(line.words for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
