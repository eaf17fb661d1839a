"""A store whose bytes come slowly, or that has more than there is room for: what waits for it takes no place, no memory and no news from
others, and no byte of a file is in memory that --max-weights and --max-memory do not count."""
import contextlib
import json
import select
import time

import numpy as np
import pytest

from conftest import SANITIZED, Stopwatch, start_server
from s3_store import PREFIX, lay, n_seen, names, on, s3  # noqa: F401 - s3 is a fixture
from connection import UNHURRIED, Client, at_once, get, metric, post, within
from weights_asking import T5, TABLE, file, put, tag

MIB = 1 << 20
SLOW = 5 if SANITIZED else 1
TRICKLE = 0.002  # 10 bytes each time: 5 KiB/s at most, so that 1 MiB takes minutes, and libcurl's least of 1 KiB/s is kept under load
GONE = 4  # seconds: far from the next, also on a loaded machine
PATIENCE = 15  # seconds until a request for a name that is being read is refused
SMALL = {"scheme": "alibi", "num_heads": 1, "metrics": ["bounds"], "outputs": []}


def quiet(s3, *flags):
    """A server that asks for nothing by itself."""
    return on(s3, *flags, refresh=600)


def lay_slow(s3, name):
    path = lay(s3, name, file(x=np.full(MIB, len(s3.objects), "u1")))
    s3.fault(method="GET", path=path, trickle=TRICKLE)
    return path


def downloads(s3, path):
    return n_seen(s3, "GET", end=path)


def answered(clients):
    return [client for client in clients if select.select([client.socket], [], [], 0)[0]]


def wanting(name, i):
    return post(json.dumps({**T5, "len": 1 + i, "weights": name}).encode(), "/encode", "Content-Type: application/json")


# ---- Waiting -------------------------------------------------------------------------------------------------------------------------


def test_waiting_takes_no_place_and_ends_with_its_client(s3):
    """Some wait, the others are refused at once; other work goes on; when the clients leave, all of it ends."""
    with quiet(s3, "--workers", "2") as a:
        path = lay_slow(s3, "slow")
        clients = [Client(a, source=f"127.0.1.{1 + i // 10}") for i in range(60)]
        for i, client in enumerate(clients):
            client.send(wanting("slow", i))
        within(10, lambda: len(answered(clients)) >= 44)  # 16 wait, or fewer where the store stopped for a while
        refused = answered(clients)
        for client in refused:
            status, headers, body = client.answer()
            assert status == 503 and headers["retry-after"] and b"slow" in body, body
        assert len(refused) < 60
        within(5, lambda: metric(a, "posenc_in_flight_requests") == 61 - len(refused))  # this one asks, too
        assert metric(a, "posenc_parked_jobs") == 0 and metric(a, "posenc_busy_workers") == 0
        for i in range(5):
            watch = Stopwatch(a)
            assert a.ask("/analyze", len=2 + i, **SMALL).status == 200
            assert watch.seconds() < 2 * SLOW
        for client in clients:
            client.reset()
        within(GONE, lambda: metric(a, "posenc_in_flight_requests") == 1)
        assert downloads(s3, path) == 1  # one download for all, which goes on


def test_many_slow_names_take_no_place(s3):
    """Of one client 25 wait, if it is alone; of all at most 128."""
    with quiet(s3, "--workers", "1") as a:
        for i in range(40):
            lay_slow(s3, f"slow{i}")
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Client(a, source="127.0.1.1")) for _ in range(40)]
            for i, client in enumerate(clients):
                client.send(wanting(f"slow{i}", i))
            within(10, lambda: len(answered(clients)) == 15)
            within(5, lambda: metric(a, "posenc_in_flight_requests") == 26)
            with Client(a, source="127.0.1.2") as other:  # who has a share of its own
                other.send(wanting("slow39", 0))
                time.sleep(0.2)
                other.socket.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    other.answer()
            assert a.ask("/analyze", len=2, **SMALL).status == 200
        within(5, lambda: metric(a, "posenc_in_flight_requests") == 1)


def test_what_needs_no_download_does_not_wait_for_one(s3):
    """All readers have slow files: a name that is not there, and one whose file is wrong, are answered nevertheless."""
    with quiet(s3) as a, contextlib.ExitStack() as stack:
        lay(s3, "broken", b"x" * 1000)
        assert a.get("/weights/broken").status == 404
        for i in range(8):
            lay_slow(s3, f"slow{i}")
            stack.enter_context(Client(a, source="127.0.1.1")).send(wanting(f"slow{i}", i))
        within(5, lambda: n_seen(s3, "GET", "/blobs/") == 7)  # six of them
        watch = Stopwatch(a)
        assert a.get("/weights/unknown").status == 404 and a.get("/weights/broken").status == 404
        assert watch.seconds() < 5 * SLOW


@pytest.mark.parametrize("where", ["behind a download", "in the upload"])
def test_an_upload_s_memory_goes_with_its_client(s3, where):
    with quiet(s3, "--max-memory", "256MiB") as a, Client(a) as first:
        body = file(x=np.zeros(50 * MIB, "u1"))
        if where == "in the upload":
            s3.fault(method="PUT", path="/blobs/", hang=1)
        else:
            lay_slow(s3, "new")
            first.send(get("/weights/new"))
            within(5, lambda: metric(a, "posenc_in_flight_requests") == 2)
        with Client(a) as client:
            client.send(f"PUT /weights/new HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            within(5, lambda: metric(a, "posenc_taken_memory_bytes") > 50 * MIB)
            if where == "in the upload":
                within(5, lambda: any(method == "PUT" for method, _ in s3.seen))
        within(GONE, lambda: metric(a, "posenc_taken_memory_bytes") <= MIB)
        s3.heal()  # and the store does not count as away, because it was a client that left
        assert a.get("/weights/unknown").status == 404


def test_one_slow_blob_stops_no_replaced_file(s3):
    lay(s3, "b", file(table=TABLE))
    with on(s3) as a:
        within(10, lambda: len(names(a)) == 1)
        path = lay_slow(s3, "a-slow")
        within(10, lambda: downloads(s3, path) == 1)
        lay(s3, "b", file(table=TABLE + 1))
        within(5, lambda: a.get("/weights/b").body == file(table=TABLE + 1))


@pytest.mark.slow
def test_a_blob_has_a_time_that_fits_its_size(s3):
    """A minute, and a second for each MiB; then its place is another's."""
    with on(s3) as a:
        lay_slow(s3, "slow")
        begun, watch = time.monotonic(), Stopwatch(a)
        while "passed over" not in a.stderr_text():
            assert a.get("/weights/slow").status == 503
            assert watch.seconds() < 75
        assert time.monotonic() - begun > 60


# ---- Bytes ---------------------------------------------------------------------------------------------------------------------------


def test_a_wrong_file_is_not_read_again(s3):
    with quiet(s3) as a:
        path = lay(s3, "broken", b"x" * 100_000)
        for _ in range(3):
            assert a.get("/weights/broken").status == 404
            assert a.post("/encode", {**T5, "weights": "broken"}).status == 422
            time.sleep(0.4)  # in all more than the second for which a name that is not there is not looked for
        assert downloads(s3, path) == 1 and a.stderr_text().count("passed over") == 1
        lay(s3, "broken", file(table=TABLE))
        assert a.get("/weights/broken").status == 200


@pytest.mark.skipif(SANITIZED, reason="sanitizers take a multiple of the memory")
def test_downloads_are_counted_before_they_come(s3):
    """Twelve of 24 MiB at the same time, of which one fits."""
    paths = [lay(s3, f"n{i}", file(x=np.full(24 * MIB, i, "u1"))) for i in range(12)]
    s3.fault(method="GET", path="/blobs/", delay=0.5)
    with quiet(s3, "--max-weights", "32MiB", "--max-memory", "16MiB") as a:
        answers = at_once(lambda i: a.request("GET", f"/weights/n{i}", headers={"Range": "bytes=0-9"}), range(12))
        statuses = sorted(answer.status for answer in answers)
        assert statuses.count(206) == 1 and set(statuses) <= {206, 413, 503}, statuses
        assert all(answer.headers["Retry-After"] and "--max-weights" in answer.json()["detail"] for answer in answers if answer.status == 503)
        assert a.memory() < (16 + 32 + 64) * MIB
        assert sum(downloads(s3, path) for path in paths) == 1
        assert sorted({a.request("GET", f"/weights/n{i}", headers={"Range": "bytes=0-9"}).status for i in range(12)}) == [206, 413]


@pytest.mark.skipif(SANITIZED, reason="sanitizers take a multiple of the memory")
def test_a_larger_file_than_both_limits_can_hold_twice_is_replaced(s3):
    """There is no room for both at the same time, so the old one goes first."""
    lay(s3, "big", file(x=np.full(24 * MIB, 1, "u1")))
    with on(s3, "--max-weights", "32MiB", "--max-memory", "16MiB") as a:
        within(10, lambda: len(names(a)) == 1)
        new = file(x=np.full(24 * MIB, 2, "u1"))
        lay(s3, "big", new)
        within(10, lambda: a.request("HEAD", "/weights/big").headers.get("ETag") == tag(new))
        assert a.memory() < (16 + 32 + 64) * MIB


@pytest.mark.skipif(SANITIZED, reason="sanitizers take a multiple of the memory")
def test_replaced_files_that_are_read_count():
    """Each reader keeps what it reads, as far as the limits allow; what would pass them is refused until the readers are done."""
    bodies = [file(x=np.full(24 * MIB, i, "u1")) for i in range(2)]
    with start_server("--max-weights", "32MiB", "--max-memory", "96MiB", *UNHURRIED) as a, contextlib.ExitStack() as stack:
        answers, readers = [], []
        for i in range(12):
            answers.append(a.request("PUT", "/weights/x", bodies[i % 2]))
            readers.append(stack.enter_context(Client(a, receive_buffer=4096)))
            readers[-1].send(get("/weights/x"))
            assert readers[-1].head()[0] == 200
        statuses = [answer.status for answer in answers]
        assert statuses[:2] == [201, 200] and statuses[-1] == 503 and set(statuses[2:]) <= {200, 503}, statuses
        assert answers[-1].headers["Retry-After"] and "--max-weights" in answers[-1].json()["detail"]
        assert a.memory() < (96 + 32 + 64) * MIB
        assert a.request("PUT", "/weights/y", bodies[0]).status in (413, 503)
        for reader in readers:
            reader.reset()
        within(5, lambda: a.request("PUT", "/weights/x", bodies[0]).status == 200)
        within(5, lambda: metric(a, "posenc_taken_memory_bytes") <= MIB)


@pytest.mark.parametrize("kind", ["cut", "longer", "corrupt", "empty"])
def test_one_bad_blob_is_its_own_failure(s3, kind):
    """It is not read again at each request or comparison, nothing else is refused meanwhile, and another PUT mends it, also of two."""
    bodies = {name: file(x=np.full(MIB, i, "u1")) for i, name in enumerate(("bad", "worse"))}
    with on(s3) as a:
        within(5, lambda: metric(a, "posenc_store_reachable") == 1)
        paths = {name: lay(s3, name, body) for name, body in bodies.items()}
        for name, path in paths.items():
            if kind == "cut":
                s3.fault(method="GET", path=path, cut=MIB // 2)
            elif kind == "corrupt":
                s3.objects[PREFIX + path] = b"\0" * len(bodies[name])
            elif kind == "empty":
                s3.objects[PREFIX + path] = b""
            else:
                s3.objects[f"{PREFIX}/names/{name}"] = s3.objects[f"{PREFIX}/names/{name}"].replace(str(len(bodies[name])).encode(), b"1000")
        lists = lambda: sum("names%2F" in asked or asked == "/weights" for _, asked in s3.seen)  # noqa: E731
        before = lists()
        for i in range(6):
            for name in paths:
                assert a.get(f"/weights/{name}").status == 503
            put(a, f"good{i}", file(table=TABLE + i))
            lay(s3, f"news{i}", file(table=TABLE + 10 + i))
            assert a.get(f"/weights/news{i}").status == 200
            assert metric(a, "posenc_store_reachable") == 1
        within(10, lambda: lists() >= before + 3)
        assert max(downloads(s3, path) for path in paths.values()) <= 3  # the tries of one reading
        assert all(a.stderr_text().count(f"weights {name} of") == 1 for name in paths)
        s3.heal()
        for name, body in bodies.items():
            put(a, name, body, 200)
            assert a.get(f"/weights/{name}").body == s3.objects[PREFIX + paths[name]] == body


def test_the_end_waits_for_no_slow_name(s3):
    """Equal requests and others: at SIGTERM all get their 503, long before their patience or the drain is over."""
    with quiet(s3, "--drain-seconds", "60") as a:
        within(5, lambda: metric(a, "posenc_store_reachable") == 1)
        path = lay_slow(s3, "slow")
        clients = [Client(a) for _ in range(6)]
        for i, client in enumerate(clients):
            client.send(wanting("slow", i // 2))
        within(10, lambda: downloads(s3, path) == 1)
        watch = Stopwatch(a)
        a.process.terminate()
        assert [client.answer()[0] for client in clients] == [503] * 6
        assert watch.seconds() < PATIENCE / 2 and a.ended(PATIENCE / 2) == 0
