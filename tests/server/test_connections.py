"""The connections of a worker to PostgreSQL: few, shared by all of its objects, and given back after every call."""

import threading
import time
import tomllib

import pytest

import postgres
from longterm.errors import DatabaseError
from longterm.server.history import History
from longterm.server.settings import open_service
from longterm.storage.pool import ConnectionPool
from servers import SERVICE

pytest.importorskip("psycopg")


def test_a_pool_opens_at_most_its_size():
    pool, opened = ConnectionPool(2), []

    class Connection:
        def close(self):
            opened.remove(self)

    def connect():
        opened.append(Connection())
        return opened[-1]

    first, second = pool.acquire(connect), pool.acquire(connect)
    waiting = threading.Thread(target=lambda: opened.append(("got", pool.acquire(connect))))
    waiting.start()
    pool.release(first)
    waiting.join()
    assert opened.pop() == ("got", first)
    pool.discard(second)  # a broken one makes room
    assert pool.acquire(connect) in opened
    assert len(opened) == 2

    def fail():
        raise OSError("no server")

    pool.discard(first)
    with pytest.raises(OSError, match="no server"):
        pool.acquire(fail)
    assert pool.acquire(connect) in opened


@pytest.mark.slow
def test_every_object_of_a_worker_shares_two_connections(tmp_path, monkeypatch):
    monkeypatch.setattr("longterm.storage.pool.WAIT_SECONDS", 0.3)
    with postgres.server() as running:
        if running is None:
            pytest.skip("no server can be started here")
        import psycopg

        service = open_service(tomllib.loads(SERVICE) | {"database": running.url}, tmp_path)
        history = History(service.database, 10, service.durability)
        with psycopg.connect(running.url, autocommit=True) as other:
            count = "SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            ledger, pacer = service.objects["money"], service.objects["campaign"]
            threads = [
                threading.Thread(target=lambda n=n: [ledger.hold("team", 1, f"{n} {k}") for k in range(20)])
                for n in range(4)
            ]
            for thread in threads:
                thread.start()
            for _ in range(20):
                pacer.settle(str(pacer.bid(1.0)), 0.0)
                history.totals()
                for name in service.objects:
                    service.metrics(name)
            for thread in threads:
                thread.join()
            assert ledger.balance("team").held == 80
            assert other.execute(count).fetchone()[0] == 1 + 2
            with psycopg.connect(running.url) as locking:
                locking.execute("SELECT 1 FROM longterm_objects WHERE name IN ('images', 'models') FOR UPDATE")
                images, models = service.objects["images"].chooser, service.objects["models"]
                blocked = [threading.Thread(target=images.act, args=([1.0, 0.0], [0.5, 0.5]))]
                blocked += [threading.Thread(target=models.route, args=("x",))]
                for thread in blocked:
                    thread.start()
                blocked[0].join(0.5)
                with pytest.raises(DatabaseError, match="none of its 2 connections was free"):
                    pacer.bid(1.0)
            for thread in blocked:
                thread.join()
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            for _ in range(4):  # each broken connection is noticed once, and replaced
                try:
                    pacer.bid(0.01)
                    break
                except DatabaseError:
                    pass
            pacer.bid(0.01)
            service.close()
            history.close()
            service.pool.close()
            deadline = time.monotonic() + 10
            while other.execute(count).fetchone()[0] > 1:  # the server ends them after the client
                assert time.monotonic() < deadline
                time.sleep(0.05)
