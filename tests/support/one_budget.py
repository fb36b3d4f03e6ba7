"""Many processes on one budget: killed at random moments, the server restarted, clocks set wrong.

    python tests/support/one_budget.py [PROCESSES] [KILLS] [REQUESTS] [sqlite|postgres] [RESTARTS]

Each process holds and settles in one ledger, half of the requests directly, some of these in groups that share a
transaction, and half through a chooser on the account.
It says what was acknowledged. Processes are killed and replaced until there were so many kills and requests. Then
everything acknowledged must be in the ledger, its sums must be those of its holds, and the spend of every account at
most its limit and reserve, after all open requests were settled at their full cost. Holds of a third account expire
while the clocks of some processes are wrong. A fourth account is spent from leases, also by processes that are idle for
longer than a lease.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from longterm import Ledger
from longterm.errors import AlreadyToldError, DatabaseError, OutOfBudgetError
from longterm.money import Budget, Chooser, EntropicDual, ExcessHold, PrimalDual, SharedAccount, ThompsonSampling
from longterm.storage.database import Database
from postgres import server

LARGEST, MEAN = 1000, 180
HOLDS = ExcessHold(share=0.2)


class Found(NamedTuple):
    """What a run found."""

    kills: int
    requests: int
    acknowledged: int
    refused: int
    lost: int
    over: int
    words: list[str]


def rule() -> PrimalDual:
    return PrimalDual(ThompsonSampling(2, 1), EntropicDual(0.2), Budget(1e6, 10.0), 10**6)


def ledger_at(url: str, durability: Any) -> Ledger:
    return Ledger.open(url, unit="cent", holds=HOLDS, durability=durability)


def cost_of(key: str) -> int:
    """Return the cost of a request, which depends on its key alone: heavy tails, at most LARGEST."""
    return min(int(random.Random(key).expovariate(1 / 100)) + (LARGEST if hash_of(key) % 12 == 0 else 0), LARGEST)


def hash_of(key: str) -> int:
    return random.Random(key + "h").randrange(10**6)


def patiently(call: Callable[[], Any]) -> Any:
    """Make a call again while the server is away. Calls have keys, so they take effect once."""
    for _ in range(2000):
        try:
            return call()
        except DatabaseError as error:
            if error.reason not in ("unavailable", "busy"):
                raise
            time.sleep(0.01)
    raise TimeoutError("the database did not come back")


def work(url: str, durability: Any, say: Callable[[str], None], dice: random.Random) -> None:
    """Make requests until killed."""
    ledger = patiently(lambda: ledger_at(url, durability))
    account = SharedAccount("chosen", units=100)
    chooser = patiently(lambda: Chooser.open(url, rule(), account=account, durability=durability, holds=HOLDS))
    offset, lease = dice.choice([0, 0, -3600, 3600]) * 10**6, None
    now = Database.now
    while True:
        key = secrets.token_hex(8)
        cost, kind = cost_of(key), dice.random()
        try:
            if kind < 0.1:
                several(ledger, [secrets.token_hex(8) for _ in range(5)], say)
            elif kind < 0.5:
                patiently(lambda key=key: ledger.hold("held", LARGEST, key, group="m"))
                say(f"held {key}")
                patiently(lambda key=key, cost=cost: ledger.settle(key, cost))
                say(f"settled {key}")
            elif kind < 0.9:
                choice = patiently(lambda key=key: chooser.act([1.0], costs=[2.0, 2.0], bounds=[10.0, 10.0], key=key))
                if choice.action is None:
                    say("refused")
                    continue
                say(f"held chooser {choice}")
                with contextlib.suppress(AlreadyToldError):  # settled by the call whose answer was lost
                    patiently(lambda choice=choice, cost=cost: chooser.settle(choice, 0.5, cost / 100))
                say(f"settled chooser {choice}")
            elif kind < 0.95:
                if lease is None or not lease.spend(cost):
                    lease = patiently(lambda: ledger.lease("leased", 3 * LARGEST, seconds=0.3))
                    time.sleep(dice.choice([0, 0, 0, 0.4]))
                    if not lease.spend(cost):
                        say("refused")
                        continue
                say(f"leased {cost}")
            else:
                Database.now = lambda self: now(self) + offset  # type: ignore[method-assign]
                try:
                    patiently(lambda key=key: ledger.hold("expiring", LARGEST, key, seconds=dice.choice([0.01, 600])))
                    say(f"held {key}")
                    patiently(lambda key=key, cost=cost: ledger.settle(key, cost))
                    say(f"settled {key}")
                finally:
                    Database.now = now  # type: ignore[method-assign]
        except OutOfBudgetError:
            say("refused")


def several(ledger: Ledger, keys: list[str], say: Callable[[str], None]) -> None:
    """Make requests in one transaction."""
    holds = [partial(ledger.hold, "held", LARGEST, key, group="m") for key in keys]
    answers = patiently(lambda: made(ledger.commit_group(holds, keys)))
    held = [key for key, answer in zip(keys, answers, strict=True) if not isinstance(answer, OutOfBudgetError)]
    for key in keys:
        say(f"held {key}" if key in held else "refused")
    settles = [partial(ledger.settle, key, cost_of(key)) for key in held]
    patiently(lambda: made(ledger.commit_group(settles, held)))
    for key in held:
        say(f"settled {key}")


def made(answers: list[Any]) -> list[Any]:
    """Return the answers of calls, or raise the error of one that has to be made again."""
    for answer in answers:
        if isinstance(answer, Exception) and not isinstance(answer, OutOfBudgetError):
            raise answer
    return answers


def run(
    url: str,
    *,
    processes: int = 8,
    kills: int = 200,
    requests: int = 100_000,
    durability: str = "relaxed",
    restart: Callable[[], object] | None = None,
    restarts: int = 0,
    seed: int = 0,
) -> Found:
    """Run processes on one budget and count what was lost and what is over the bound."""
    dice = random.Random(seed)
    with ledger_at(url, durability) as ledger:
        for name, share in (("held", 0.5), ("chosen", 0.4), ("expiring", 0.05), ("leased", 0.05)):
            ledger.add_account(name, int(0.8 * share * requests * MEAN), reserve=processes * LARGEST)
    with contextlib.suppress(DatabaseError):
        Chooser.open(url, rule(), account=SharedAccount("chosen", units=100), holds=HOLDS).close()
    read, write = os.pipe()
    heard: list[str] = []
    listener = threading.Thread(target=listen, args=(read, heard))
    listener.start()
    children = [start(url, durability, write, dice.random()) for _ in range(processes)]
    killed = restarted = 0
    begin = time.monotonic()
    while killed < kills or answered(heard) < requests:
        share = answered(heard) / requests
        time.sleep(0.02)
        if restart is not None and restarted < restarts and share >= (restarted + 1) / (restarts + 1):
            restart()
            restarted += 1
        if killed < kills * max(share, 0.01) or share >= 1:
            victim = dice.randrange(processes)
            end(children[victim])
            killed += 1
            children[victim] = start(url, durability, write, dice.random())
        if time.monotonic() - begin > 3000:
            break
    for child in children:
        end(child)
    os.close(write)
    listener.join()
    return judge(url, killed, heard)


def listen(read: int, heard: list[str]) -> None:
    with os.fdopen(read) as pipe:
        heard.extend(line.rstrip("\n") for line in pipe)


def answered(heard: list[str]) -> int:
    return len(heard) // 2


def start(url: str, durability: Any, write: int, seed: float) -> int:
    child = os.fork()
    if child == 0:
        try:
            warnings.simplefilter("ignore")
            work(url, durability, lambda said: os.write(write, f"{said}\n".encode()) and None, random.Random(seed))
        except BaseException:
            os.write(write, ("! " + traceback.format_exc().replace("\n", " | ")[-600:] + "\n").encode())
        finally:
            os._exit(1)
    return child


def end(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def judge(url: str, killed: int, heard: list[str]) -> Found:
    """Compare what was acknowledged with the rows of the ledger, then settle what is open and look for overshoots."""
    words = [word for word in heard if word.startswith("!")]
    database = Database(url, "relaxed")
    rows = database.read("SELECT key, account, amount, largest, spent, status FROM longterm_holds")
    holds = {key: row for key, *row in rows}
    lost = leased = 0
    for line in heard:
        kind, _, key = line.partition(" ")
        if kind == "held" and key not in holds:
            lost += 1
            words.append(f"lost: {line}")
        if kind == "leased":
            leased += int(key)
        if kind == "settled":
            status, spent = holds[key][4] if key in holds else None, holds[key][3] if key in holds else None
            if status != 1 or (not key.startswith("chooser") and spent != cost_of(key)):
                lost += 1
                words.append(f"lost: {line}")
    sums = database.read("SELECT name, spent, held, exposed, maximum, reserve FROM longterm_accounts")
    database.close()
    known = sum(row[3] + row[1] for row in holds.values() if row[0] == "leased")
    if leased > known:
        lost += 1
        words.append(f"{leased} were spent from leases, and the ledger knows of {known}")
    late = sum(row[3] for row in holds.values() if row[0] == "expiring" and row[4] == 1)
    over = 0
    for name, spent, held, exposed, maximum, reserve in sums:
        mine = [row for row in holds.values() if row[0] == name]
        if spent != sum(row[3] for row in mine) or held != sum(row[1] for row in mine if row[4] == 0):
            lost += 1
            words.append(f"the sums of {name!r} are not those of its holds")
        # Every open request may yet cost its largest cost; those that expired count whole.
        if spent + exposed > maximum + reserve + (late if name == "expiring" else 0):
            over += spent + exposed - maximum - reserve
            words.append(f"{name!r} is over: {spent} + {exposed} of {maximum} + {reserve}")
    settled = sum(line.startswith(("settled", "leased")) for line in heard)
    refused = heard.count("refused")
    return Found(killed, settled + refused, len(heard) - refused, refused, lost, over, words)


def main(arguments: list[str]) -> int:
    given = [int(word) for word in arguments[:3]]
    processes, kills, requests = [*given, *(8, 200, 100_000)[len(given) :]]
    kind = arguments[3] if len(arguments) > 3 else "sqlite"
    restarts = int(arguments[4]) if len(arguments) > 4 else 0
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        url, restart = f"{folder}/service.db", None
        if kind == "postgres":
            running = stack.enter_context(server())
            assert running is not None, "no PostgreSQL server can be started here"
            url, restart = running.url, running.restart
        options: dict[str, Any] = {"processes": processes, "kills": kills, "requests": requests}
        durability = "commit" if restarts else "relaxed"
        found = run(url, **options, durability=durability, restart=restart, restarts=restarts)
    seconds = time.monotonic() - begin
    sys.stdout.write(f"{processes} processes, {kind} {durability}, {restarts} restarts, {seconds:.0f} s\n")
    sys.stdout.write(
        f"kills {found.kills}, requests {found.requests:,}, acknowledged {found.acknowledged:,}, refused "
        f"{found.refused:,}, lost {found.lost}, over the bound {found.over}\n"
    )
    for words in found.words[:5]:
        sys.stdout.write(f"{words}\n")
    return int(bool(found.words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
