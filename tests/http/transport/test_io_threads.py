"""Several I/O threads: connections are distributed in turn, and all counts, limits, caches and the shutdown apply to all
threads together."""
import pathlib
import subprocess
import time

import pytest

from conftest import POSENCD, start_server
from connection import MEDIUM, Client, at_once, clients, get, is_quiet, metric, post, wait_until

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


def test_the_same_bytes_from_each():
    requests = [get("/encode?scheme=rope&len=5&head_dim=8"), post(SMALL), post(MEDIUM), get("/schemes/rope")]
    with start_server("--io-threads", str(N), "--answer-cache", "0") as server, clients(server, N) as three:
        for request in requests:
            answers = [ask(client, request) for client in three]
            assert {status for status, _, _ in answers} == {200}
            assert len({body for _, _, body in answers}) == 1


def test_kept_answers_are_for_all(several):
    request = get("/encode?scheme=alibi&len=7&num_heads=3")
    with clients(several, N) as three:
        first = ask(three[0], request)
        before = metric(several, "posenc_cache_hits_total")
        assert [ask(client, request)[2] for client in three[1:]] == [first[2]] * (N - 1)
        assert metric(several, "posenc_cache_hits_total") == before + N - 1


def test_request_ids_differ(several):
    with clients(several, N) as three:
        ids = [ask(client, get("/healthz"))[1]["x-request-id"] for client in three for _ in range(50)]
    assert len(set(ids)) == len(ids)


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


@pytest.mark.parametrize("n", [1, 2, 7000])
def test_heads_in_pieces(several, n):
    """The first bytes may be few; a head of 8 KB is accepted."""
    head = get("/encode?scheme=rope&len=3&head_dim=8", "X-Long: " + "x" * 8000)
    with Client(several) as client:
        client.send(head[:n])
        time.sleep(0.05)
        client.send(head[n:])
        assert client.answer()[0] == 200


def test_many_at_once(several):
    """Clients of all kinds on all threads; nothing is left of them."""
    wrong = []

    def run(seed):
        for i in range(30):
            with Client(several) as client:
                client.send(post(MEDIUM) if (i + seed) % 3 == 0 else post(SMALL))
                if (i + seed) % 5 == 0:
                    client.reset()
                elif client.answer()[0] != 200:
                    wrong.append(i)

    at_once(run, range(8))
    assert not wrong
    assert wait_until(lambda: is_quiet(several) and metric(several, "posenc_connections") == 1)


# ---- The option --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", ["65", "-1", "two"])
def test_refused_numbers(n):
    done = subprocess.run([POSENCD, "--io-threads", n], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2 and "--io-threads" in done.stderr and "0 to 64" in done.stderr


@pytest.mark.parametrize("flags, env, n", [(("--io-threads", "5"), {}, 5), ((), {"POSENC_IO_THREADS": "2"}, 2)])
def test_as_many_as_asked_for(flags, env, n):
    with start_server(*flags, env=env) as server:
        names = [(task / "comm").read_text().strip() for task in pathlib.Path(f"/proc/{server.pid}/task").iterdir()]
        assert sorted(name for name in names if name.startswith("io-")) == [f"io-{i}" for i in range(1, n)]
