"""A soak test: kills, signals, full disks, several processes and forged files, compared with an undisturbed learner.

    python tests/support/soak.py [SECONDS] [SEED]      ten minutes by default

Processes are real: they are forked, killed, and interrupted by timers. It prints what was tried, what was acknowledged
and what was lost, and exits with status 1 if anything was.
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
from typing import Any, ClassVar

import numpy as np

import chooser_plan
import ledger_model
import one_budget
import replica_model
from live_plan import PROBLEM, fresh, image, next_call, position, start, step
from longterm import AOGD, Fleet, observe
from longterm.errors import AlreadyToldError, DatabaseError, LongtermError, StorageError, UnknownTokenError
from longterm.linear_model import BudgetLinearLearner
from longterm.money import Chooser
from postgres import server
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
        with start(folder) as live:
            say(position(live))
            say(hashlib.sha256(image(live)).hexdigest())

    status, heard = in_a_child(work)
    if status != 0:
        line.blame("crashed" if status < 0 else "wrong", f"did not come up: {heard}")
        return -1
    place = int(heard[0])
    if not acknowledged <= place <= acknowledged + 1 or hashlib.sha256(MIRROR.at(place)).hexdigest() != heard[1]:
        line.blame("lost", f"acknowledged {acknowledged}, found {place}, or another state")
    return place


class Attack:
    """One line, its folder, and the dice."""

    what = ""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.line, self.folder, self.dice = Line(self.what), folder, dice
        self.place = 0
        self.stack = contextlib.ExitStack()
        folder.mkdir()

    def strike(self) -> None:
        """Once."""
        raise NotImplementedError

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
            with start(self.folder, durability=dice.choice(["commit", "relaxed"])) as live:
                say(position(live))
                while True:
                    step(live)
                    say(position(live))
                    if dice.random() < 0.05:
                        live.backup(self.folder / "copy")

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
            live = start(self.folder)
            with alarm.installed():
                for _ in range(120):
                    call = partial(live.backup, self.folder / "copy") if dice.random() < 0.1 else next_call(live)
                    hits += alarm.interrupted(call, dice.uniform(1e-6, 1e-3))
                    say(position(live))
            live.close()
            say(f"hits {hits}")

        status, heard = in_a_child(work)
        if status != 0:
            self.line.blame("crashed" if status < 0 else "wrong", f"{heard[-1:]}")
        self.line.tried += sum(int(word.split()[1]) for word in heard if word.startswith("hits"))
        self.settle_on(heard)


class FullDisks(Attack):
    what = "files at their limit"

    def strike(self) -> None:
        dice = random.Random(self.dice.random())

        def work(say):
            full = 0
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            with start(self.folder) as live:
                for _ in range(80):
                    most = resource.RLIM_INFINITY if dice.random() < 0.5 else dice.randrange(1000, 150_000)
                    before, call = image(live), next_call(live)
                    try:
                        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
                        call()
                    except DatabaseError:
                        full += 1
                        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                        assert image(live) == before, "what was refused has changed something"
                    finally:
                        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                    say(position(live))
            say(f"full {full}")

        status, heard = in_a_child(work)
        if status != 0:
            self.line.blame("crashed" if status < 0 else "wrong", f"{heard[-1:]}")
        self.line.tried += sum(int(word.split()[1]) for word in heard if word.startswith("full"))
        self.settle_on(heard)


def crowd(work: Callable[[Callable[[object], None], random.Random], None], count: int, dice: random.Random):
    """Return what several children said before all of them were killed."""

    def family(say):
        children = []
        for _ in range(count):
            child_dice = random.Random(dice.random())
            child = os.fork()
            if child == 0:
                try:
                    work(say, child_dice)
                except BaseException:
                    say("! " + traceback.format_exc().replace("\n", " | ")[-600:])
                finally:
                    os._exit(1)
            children.append(child)
        time.sleep(dice.uniform(0.2, 0.5))
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    return in_a_child(family)


class Processes(Attack):
    what = "8 processes on one learner, killed"
    count = 8

    def strike(self) -> None:
        options = {"max_in_flight": 10**6, "expire_after": 10**6}

        def work(say, dice):
            live = start(self.folder, **options)
            while True:
                token = live.ask(key=str(dice.random()))
                live.tell(token, loss_parameters=TARGET)
                say(str(token))

        status, heard = crowd(work, self.count, random.Random(self.dice.random()))
        said = [word for word in heard if "-" in word and not word.startswith("!")]
        self.line.tried += self.count
        self.line.acknowledged += len(said)
        for word in heard:
            if word.startswith("!"):
                self.line.blame("wrong", word)

        def look(say):
            with start(self.folder, **options) as live:
                state = live.state
                assert state.asked == state.told + state.in_flight
                assert state.round == state.told + 1
                for text in said:
                    try:
                        live.skip(text)
                        say("lost")
                    except AlreadyToldError:
                        pass
                say(state.told)

        status, found = in_a_child(look)
        if status != 0 or "lost" in found:
            self.line.blame("lost", f"{found[-1:]}")
            return
        told, before = int(found[-1]), self.place
        if not before + len(said) <= told <= before + len(said) + self.count:
            self.line.blame("lost", f"{len(said)} acknowledged, {told - before} found")
        self.place = told


class Restarts(Attack):
    what = "restored backups"

    def strike(self) -> None:
        """Feedback of rounds that were lost with the backup must not reach new rounds of the same number."""
        dice = random.Random(self.dice.random())
        home = Path(tempfile.mkdtemp(dir=self.folder))

        def work(say):
            live = start(home)
            for _ in range(dice.randrange(1, 8)):
                live.tell(live.ask(), loss_parameters=TARGET)
            kept = str(live.ask())
            live.backup(home / "copy")
            lost = [str(live.ask()) for _ in range(dice.randrange(1, 4))]
            live.close()
            (home / "copy").replace(home / "service.db")
            live = start(home)
            live.tell(kept, loss_parameters=TARGET)
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
        with start(folder) as live:
            for _ in range(29):
                step(live)
        fleet = Fleet(AOGD.for_problem(PROBLEM), 5)
        fleet.tell(observe(PROBLEM, fleet.ask(), [np.full((5, 2), 0.1)]))
        fleet.save(folder / "fleet")
        linear = BudgetLinearLearner(6, 1.0)
        linear.learn(np.eye(6), [1, -1, 1, -1, 1, -1])
        linear.save(folder / "linear")
        self.good = {name: (folder / name).read_bytes() for name in ("service.db", "fleet", "linear")}

    def damaged(self, name: str) -> bytes:
        """Return the file with bytes changed, cut or added; of snapshots sometimes with a checksum that fits."""
        data, dice = bytearray(self.good[name]), self.dice
        for _ in range(dice.choice([1, 1, 2, 5])):
            data[dice.randrange(len(data))] = dice.randrange(256)
        if dice.random() < 0.2:
            del data[dice.randrange(len(data)) :]
        if name != "service.db" and dice.random() < 0.5 and len(data) > 60:
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
                linear.learn(np.eye(width)[:6], np.resize([1.0, -1.0], min(width, 6)))
                assert np.isfinite(linear.weights).all()
            else:
                with start(self.folder) as live:
                    step(live)

        def work(say):
            for data in made:
                for end in ("", "-wal", "-shm"):
                    (self.folder / f"{name}{end}").unlink(missing_ok=True)
                (self.folder / name).write_bytes(data)
                try:
                    load()
                except LongtermError as error:
                    say(f"refused {isinstance(error, StorageError)}")
                else:
                    say("taken")

        status, heard = in_a_child(work)
        self.line.tried += len(heard)
        if status != 0:
            self.line.blame("crashed" if status < 0 else "wrong", f"{name}: {heard[-1:]}")


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
    what = "4 processes on one chooser, killed or interrupted"
    count = 4

    def strike(self) -> None:
        limit = chooser_plan.rule().budget_set.limit(1)

        def work(say, dice):
            alarm, path = Alarm(), self.folder / "service.db"
            chooser = Chooser.open(path, chooser_plan.rule(), durability="relaxed")
            with alarm.installed():
                while True:
                    choice = chooser.act([1.0, dice.random()], costs=[0.0, 0.2, 0.5], bounds=[0.1, 0.3, 0.6])
                    if choice.action is None:
                        say("refused")
                        continue
                    say(f"{choice} {dice.random():.3f}")
                    settle = partial(chooser.settle, choice, 0.5, 0.1)
                    if alarm.interrupted(settle, dice.uniform(1e-6, 2e-3)):
                        say("hit")
                        with contextlib.suppress(AlreadyToldError):
                            settle()
                    say(f"settled {choice}")

        status, heard = crowd(work, self.count, random.Random(self.dice.random()))
        self.line.tried += self.count + heard.count("hit")
        settled = [word.split()[1] for word in heard if word.startswith("settled ")]
        self.line.acknowledged += len(settled)
        for word in heard:
            if word.startswith("!"):
                self.line.blame("wrong", word)

        def look(say):
            with Chooser.open(self.folder / "service.db", chooser_plan.rule(), durability="relaxed") as chooser:
                assert (chooser.committed <= limit).all(), "over the cap"
                assert (chooser.spent <= chooser.committed + 1e-9).all()
                pending = {str(choice) for choice in chooser.pending.values()}
                assert not pending & set(settled), "a settled choice is open"
                say(f"{chooser.round} {len(pending)} {chooser.spent[0]}")

        status, found = in_a_child(look)
        if status != 0:
            self.line.blame("crashed" if status < 0 else "lost", f"{found[-1:]}")
        if status != 0 or int(found[0].split()[0]) > 400:
            shutil.rmtree(self.folder)
            self.folder.mkdir()


class Budgets(Attack):
    what = "8 processes on one budget, killed, clocks wrong"
    options: ClassVar[dict[str, Any]] = {"processes": 8, "kills": 8, "requests": 300}

    def strike(self) -> None:
        home = Path(tempfile.mkdtemp(dir=self.folder))
        self.count(one_budget.run(f"{home}/service.db", seed=self.dice.randrange(10**6), **self.options))
        shutil.rmtree(home)

    def count(self, found: one_budget.Found) -> None:
        """Add what a run found."""
        self.line.tried += found.kills
        self.line.acknowledged += found.acknowledged
        self.line.lost += found.lost + (found.over > 0)
        self.line.wrong += sum(words.startswith("!") for words in found.words)
        self.line.words += found.words


class Ledgers(Attack):
    what = "3 replicas of a ledger beside an exact model"

    def strike(self) -> None:
        for kind in (ledger_model.search, ledger_model.honest):
            seed = self.dice.randrange(10**9)
            try:
                kind(f"{self.folder}/{seed}.db", seed, 150)
            except replica_model.DisagreementError as error:
                self.line.blame("wrong", f"{kind.__name__}, seed {seed}: {error}".replace("\n", " | "))
            self.line.tried += 150
        shutil.rmtree(self.folder)
        self.folder.mkdir()


class Replicas(Attack):
    what = "2 to 4 replicas beside one object in memory"

    def strike(self) -> None:
        for name in replica_model.KINDS:
            seed = self.dice.randrange(10**9)
            try:
                replica_model.search(name, self.folder, seed, 150)
            except replica_model.DisagreementError as error:
                self.line.blame("wrong", f"{error}".replace("\n", " | "))
            self.line.tried += 150
        shutil.rmtree(self.folder)
        self.folder.mkdir()


class Servers(Budgets):
    what = "the same on PostgreSQL, restarted under load"
    options: ClassVar[dict[str, Any]] = {"processes": 4, "kills": 3, "requests": 60, "restarts": 1}

    def __init__(self, folder: Path, dice: random.Random) -> None:
        super().__init__(folder, dice)
        self.server = self.stack.enter_context(server())

    def strike(self) -> None:
        if self.server is None or self.server.restart is None:
            return
        self.drop_tables()
        options = {**self.options, "durability": "commit", "restart": self.server.restart}
        self.count(one_budget.run(self.server.url, seed=self.dice.randrange(10**6), **options))
        self.line.tried += self.options["restarts"]

    def drop_tables(self) -> None:
        """Begin with an empty database."""
        import psycopg

        with psycopg.connect(self.server.url, autocommit=True) as connection:
            names = connection.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'longterm%'").fetchall()
            for (name,) in names:
                connection.execute(f"DROP TABLE {name}")


ATTACKS: tuple[type[Attack], ...] = (
    *(Kills, Signals, FullDisks, Processes, Restarts, Hostile, Snapshots, Choosers),
    *(Budgets, Ledgers, Replicas, Servers),
)


def soak(seconds: float, seed: int = 0) -> list[Line]:
    """Strike in turn until the time is over."""
    with tempfile.TemporaryDirectory() as name:
        attacks = [kind(Path(name) / kind.__name__, random.Random(f"{seed} {kind.__name__}")) for kind in ATTACKS]
        end = time.monotonic() + seconds  # from here on: what they need may have to be compiled first
        while time.monotonic() < end:
            for attack in attacks:
                attack.strike()
        for attack in attacks:
            attack.stack.close()
    return [attack.line for attack in attacks]


def table(lines: list[Line]) -> str:
    """For a terminal, and for docs/benchmarks/what_survives.md."""
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
