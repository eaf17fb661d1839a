"""Several I/O threads: connections are distributed in turn, and all counts, limits, caches and the shutdown apply to all
threads together."""
import pathlib

import pytest

from conftest import start_server
from connection import Client, clients, get, metric, post, wait_until

N = 3
SMALL = b'{"scheme":"rope","len":3,"head_dim":8}'


@pytest.fixture(scope="module")
def several():
    with start_server("--io-threads", str(N)) as server:
        yield server


def io_threads(server):
    """Task ids of the I/O threads, the first one's first."""
    named = {}
    for task in pathlib.Path(f"/proc/{server.pid}/task").iterdir():
        named[(task / "comm").read_text().strip()] = int(task.name)
    return [server.pid, *(named[f"io-{i}"] for i in range(1, N))]


def worked(server, task):
    """Nanoseconds a thread has run."""
    return int(pathlib.Path(f"/proc/{server.pid}/task/{task}/schedstat").read_text().split()[0])


def ask(client, request):
    client.send(request)
    return client.answer()


def test_connections_take_turns(several):
    """Each of six connections, used in turn, is the work of one of the three threads, and each thread has two of them."""
    tasks, who = io_threads(several), []
    with clients(several, 2 * N) as six:
        for client in six:
            before = [worked(several, task) for task in tasks]
            for _ in range(100):
                assert ask(client, get("/healthz"))[0] == 200
            grown = [worked(several, task) - n for task, n in zip(tasks, before)]
            who.append(grown.index(max(grown)))
    assert sorted(who) == [0, 0, 1, 1, 2, 2] and who[:N] == who[N:]


def test_kept_answers_are_for_all(several):
    request = get("/encode?scheme=alibi&len=7&num_heads=3")
    with clients(several, N) as three:
        first = ask(three[0], request)
        before = metric(several, "posenc_cache_hits_total")
        assert [ask(client, request)[2] for client in three[1:]] == [first[2]] * (N - 1)
        assert metric(several, "posenc_cache_hits_total") == before + N - 1


def test_connections_are_limited_over_all():
    with start_server("--io-threads", str(N), "--max-connections", "4") as server:
        with clients(server, 4) as four:
            for client in four:
                assert ask(client, get("/healthz"))[0] == 200
            with Client(server) as fifth:
                fifth.send(get("/metrics"))
                assert fifth.answer()[0] == 503 and fifth.is_closed()
            four[1].__exit__()  # of a thread that is not the accepting one
            assert wait_until(lambda: b"posenc_connections 4" in server.get("/metrics").body)

        def four_are_served():
            with clients(server, 4) as four:
                return {ask(client, get("/healthz"))[0] for client in four} == {200}

        for _ in range(20):  # full again and again, and never stuck: as soon as those before have ended, four are served
            assert wait_until(four_are_served)
        assert wait_until(lambda: metric(server, "posenc_connections") == 1)


def test_large_bodies_first_and_later(several):
    """A connection is given to the daemon with much memory by its first bytes; a later large body is received all the same."""
    body = SMALL + b" " * 1_000_000
    with clients(several, 2 * N) as six:
        first = [ask(client, post(body)) for client in six[:N]]
        small = [ask(client, post(SMALL)) for client in six]
        later = [ask(client, post(body)) for client in six]
    assert {(status, answer) for status, _, answer in first + small + later} == {(200, small[0][2])}


# ---- The option --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags, env, n", [(("--io-threads", "5"), {}, 5), ((), {"POSENC_IO_THREADS": "2"}, 2)])
def test_as_many_as_asked_for(flags, env, n):
    with start_server(*flags, env=env) as server:
        names = [(task / "comm").read_text().strip() for task in pathlib.Path(f"/proc/{server.pid}/task").iterdir()]
        assert sorted(name for name in names if name.startswith("io-")) == [f"io-{i}" for i in range(1, n)]
