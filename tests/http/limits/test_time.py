"""Time: clients that are slow in each of the four ways while others are served, and requests with a time limit."""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from conftest import SANITIZED, Stopwatch, start_server
from test_cancel import LONG_ROW, Watch
from connection import HUGE, SMALL, SMALL_BYTES, Client, get, is_quiet, metric, post, wait_until

SLOW = 50


def dribble(clients, data, stop, seconds=0.5):
    """A byte to each now and then, until they are all closed or stop is set."""
    at = 0
    while not stop.wait(seconds):
        for client in clients:
            with contextlib.suppress(OSError):
                client.socket.sendall(data[at % len(data):][:1])
        at += 1


def sip(clients, stop, seconds=0.5):
    """As slow readers: 64 bytes at a time."""
    while not stop.wait(seconds):
        for client in clients:
            with contextlib.suppress(OSError):
                client.socket.recv(64, socket.MSG_DONTWAIT)


@contextlib.contextmanager
def in_background(target, *args):
    stop = threading.Event()
    thread = threading.Thread(target=target, args=(*args, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def serve_normally(server, seconds):
    """A normal client meanwhile: answers right and soon. The longest it has waited."""
    worst, end = 0, time.monotonic() + seconds
    with Client(server) as client:
        while time.monotonic() < end:
            watch = Stopwatch(server)
            client.send(post(SMALL))
            assert len(client.answer()[2]) == SMALL_BYTES
            worst = max(worst, watch.seconds())
            time.sleep(0.02)
    return worst


@pytest.mark.waiting
def test_slow_clients_of_four_kinds_are_sent_away_while_others_are_served():
    flags = ["--header-timeout", "2", "--min-rate", "1KiB", "--send-timeout", "60", "--connection-timeout", "60"]
    with start_server(*flags) as server:
        silent = [Client(server) for _ in range(SLOW)]
        heads = [Client(server) for _ in range(SLOW)]
        bodies = [Client(server) for _ in range(SLOW)]
        readers = [Client(server, receive_buffer=4096) for _ in range(SLOW)]
        for client in heads:
            client.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
        for client in bodies:
            client.send(b"POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
        for client in readers:
            client.send(post(HUGE))
        clock = Stopwatch(server)
        with in_background(dribble, heads, b"a"), in_background(dribble, bodies, b" "), in_background(sip, readers):
            worst = serve_normally(server, 3)
            for client in silent + heads:
                status, _, text = client.answer()
                assert status == 408 and b"--header-timeout" in text
            assert clock.seconds() < 6
            worst = max(worst, serve_normally(server, 8))
            for client in bodies:
                status, _, text = client.answer()
                assert status == 408 and b"--min-rate" in text and b" bytes in 10 s; needed: 1024 a second" in text
            worst = max(worst, serve_normally(server, 1.5))
            assert clock.seconds() < 20
            assert wait_until(lambda: is_quiet(server), 12)
        assert SANITIZED or worst < 0.5, f"a normal client waited {worst:.3f} s"
        assert metric(server, 'posenc_cancelled_total{stage="slow"}') == SLOW
        assert metric(server, 'posenc_rejected_total{reason="timeout"}') == 3 * SLOW
        for client in silent + heads + bodies + readers:
            client.reset()


@pytest.mark.waiting
def test_a_body_has_a_time_for_all_of_it():
    with start_server("--body-timeout", "2", "--min-rate", "0") as server, Client(server) as client:
        client.send(b"POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
        begun, clock = time.monotonic(), Stopwatch(server)
        with in_background(dribble, [client], b" "):
            status, _, text = client.answer()
        assert status == 408 and b"longer than 2 s (--body-timeout)" in text and b"bytes of it have come" in text
        assert 1.9 < time.monotonic() - begun and clock.seconds() < 4


@pytest.mark.waiting
def test_a_reader_that_stops():
    with start_server("--send-timeout", "1") as server, Client(server, receive_buffer=4096) as client:
        client.send(post(HUGE))
        watch = Watch(server)
        assert watch.wait(lambda w: w["posenc_streams"] == 1) is not None
        assert watch.wait(lambda w: w['posenc_cancelled_total{stage="slow"}'] == 1, 5) is not None
        with pytest.raises((ConnectionResetError, AssertionError)):
            client.answer()
        assert wait_until(lambda: is_quiet(server))


@pytest.mark.waiting
def test_readers_that_pause_or_wait_for_us_are_not_slow():
    """One reads a megabyte and pauses for less than --send-timeout; another's answer takes long to make."""
    with start_server("--send-timeout", "3", "--connection-timeout", "3") as server:
        with Client(server) as client, Client(server) as patient:
            n = 120 if SANITIZED else 1800  # some seconds of one worker, more on a machine that has other work
            patient.socket.settimeout(300)
            patient.send(post(b'{"scheme":"floater","len":%d,"dim":512,"seed":0,"slice":[[%d,null,1],[0,null,1]],"format":"raw"}' % (n, n - 1)))
            client.send(post(HUGE))
            client.head()
            for _ in range(4):
                assert len(client.file.read(1 << 20)) == 1 << 20
                time.sleep(1.5)
            assert metric(server, 'posenc_cancelled_total{stage="slow"}') == 0
            assert len(patient.answer()[2]) == 512 * 4


@pytest.mark.waiting
def test_the_first_line_gives_a_head_no_more_time():
    with start_server("--header-timeout", "2") as server, Client(server) as client:
        clock = Stopwatch(server)
        time.sleep(1.2)
        client.send(b"GET /healthz HTTP/1.1\r\n")
        time.sleep(0.5)
        client.send(b"Host: localhost\r\n")
        assert client.answer()[0] == 408
        assert clock.seconds() < 3.2


# ---- Requests that set a time ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_worker():
    with start_server("--workers", "1") as server:
        yield server


def with_time(request, seconds):
    return request.replace(b"Host: localhost\r\n", b"Host: localhost\r\nX-Request-Timeout: %s\r\n" % str(seconds).encode(), 1)


PICTURE = get("/encode?scheme=floater&len=2400&dim=512&seed=0&format=png")


@pytest.mark.parametrize("request_", [LONG_ROW(), PICTURE], ids=["opening", "working"])
def test_late_is_503_at_that_time_and_the_work_ends(one_worker, request_):
    watch = Watch(one_worker)
    before = [watch['posenc_cancelled_total{stage="late"}'], watch['posenc_rejected_total{reason="late"}']]
    with Client(one_worker) as client:
        begun, clock = time.monotonic(), Stopwatch(one_worker)
        client.send(with_time(request_, 0.3))
        status, headers, text = client.answer()
        seconds, taken = time.monotonic() - begun, clock.seconds()
        assert status == 503 and headers["retry-after"] and "0.300000 s" in json.loads(text)["detail"]
        assert 0.3 <= seconds and taken < 0.3 + (0.25 if not SANITIZED else 2)
        assert watch.wait(lambda w: w["posenc_busy_workers"] == 0) < 0.25 or SANITIZED
        client.send(get("/healthz"))  # the connection is as good as before
        assert client.answer()[0] == 200
    after = [watch['posenc_cancelled_total{stage="late"}'], watch['posenc_rejected_total{reason="late"}']]
    assert after == [n + 1 for n in before]


def test_late_in_the_queue(one_worker):
    watch, busy = Watch(one_worker), Client(one_worker)
    busy.send(LONG_ROW())
    assert watch.wait(lambda w: w["posenc_busy_workers"] == 1) is not None
    with Client(one_worker) as client:
        clock = Stopwatch(one_worker)
        client.send(with_time(PICTURE, 0.2))
        assert client.answer()[0] == 503 and clock.seconds() < 0.5
    busy.reset()
    assert wait_until(lambda: is_quiet(one_worker))


def test_who_shares_the_work_of_a_late_one_gets_an_answer(one_worker):
    request = get("/encode?scheme=floater&len=300&dim=256&seed=1&format=png")
    with Client(one_worker) as alone:
        alone.send(request)
        expected = alone.answer()[2]
    busy, late, patient = Client(one_worker), Client(one_worker), Client(one_worker)
    busy.send(LONG_ROW())
    assert wait_until(lambda: metric(one_worker, "posenc_busy_workers") == 1)
    late.send(with_time(request, 0.2))
    time.sleep(0.05)
    patient.send(request)
    assert late.answer()[0] == 503
    busy.reset()
    assert patient.answer()[2] == expected
    late.__exit__()
    patient.__exit__()
    assert wait_until(lambda: is_quiet(one_worker))


@pytest.mark.parametrize("fields", [{"format": "raw"}, {}], ids=["with a length", "chunked"])
@pytest.mark.parametrize("reads", [True, False])
def test_late_while_sending_is_cut_so_that_it_shows(one_worker, fields, reads):
    body = json.dumps({"scheme": "alibi", "num_heads": 32, "len": 8192, "outputs": ["bias"], **fields}).encode()
    before = metric(one_worker, 'posenc_cancelled_total{stage="late"}')
    with Client(one_worker, receive_buffer=65536) as client:
        clock = Stopwatch(one_worker)
        client.send(with_time(post(body), 1))
        status, headers = client.head()
        assert status == 200 and ("content-length" in headers) == bool(fields)
        n = 0
        while reads and (part := client.file.read1(1 << 20)):
            n += len(part)
            tail = part[-7:]
        if not reads:
            assert wait_until(lambda: metric(one_worker, 'posenc_cancelled_total{stage="late"}') == before + 1, 5)
        assert clock.seconds() < 2.5
        if reads and fields:
            assert 0 < n < int(headers["content-length"])
        elif reads:
            assert n > 0 and not tail.endswith(b"0\r\n\r\n")
    assert wait_until(lambda: metric(one_worker, 'posenc_cancelled_total{stage="late"}') == before + 1)
    assert wait_until(lambda: is_quiet(one_worker))


def test_the_clients_library_sees_the_cut(one_worker):
    connection = http.client.HTTPConnection(one_worker.host, one_worker.port, timeout=20)
    connection.request("POST", "/encode", HUGE, {"X-Request-Timeout": "0.1"})
    with pytest.raises(http.client.IncompleteRead):
        connection.getresponse().read()
    connection.close()


# ---- Clocks ------------------------------------------------------------------------------------------------------------

JUMPING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
static long jumps(void) { static long n; return (n++ / 7 % 3 - 1) * 1000000000L; } /* 31 years back and forth */
int clock_gettime(clockid_t id, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(id, t);
    if (id == CLOCK_REALTIME) t->tv_sec += jumps();
    return status;
}
time_t time(time_t *to)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (to) *to = t.tv_sec;
    return t.tv_sec;
}
int gettimeofday(struct timeval *t, void *zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


@pytest.mark.skipif(SANITIZED or not shutil.which("cc"), reason="needs a compiler, and no sanitizer in front of it")
def test_jumps_of_the_wall_clock_change_nothing(tmp_path):
    (tmp_path / "jump.c").write_text(JUMPING)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", "-o", tmp_path / "jump.so", tmp_path / "jump.c", "-ldl"], check=True)
    flags = ["--header-timeout", "2", "--body-timeout", "2", "--send-timeout", "2"]
    with start_server(*flags, env={"LD_PRELOAD": str(tmp_path / "jump.so")}) as server:
        assert "jump.so" in pathlib.Path(f"/proc/{server.pid}/maps").read_text()
        with Client(server) as head, Client(server) as kept, Client(server) as timed:
            begun, clock = time.monotonic(), Stopwatch(server)
            head.send(b"GET / HTTP/1.1\r\n")
            for _ in range(20):  # answers on a connection that is kept, each with a date that jumps
                kept.send(get("/healthz"))
                assert kept.answer()[0] == 200
                time.sleep(0.05)
            timed.send(with_time(LONG_ROW(), 0.5))
            at, since = time.monotonic(), Stopwatch(server)
            assert timed.answer()[0] == 503 and 0.5 <= time.monotonic() - at and since.seconds() < 1
            assert head.answer()[0] == 408 and 1.9 < time.monotonic() - begun and clock.seconds() < 3.5
        years = {line[:3] for line in server.stderr_text().splitlines() if line[:2] in ("19", "20")}
        assert len(years) > 1, "the wall clock did jump"


@pytest.mark.waiting
def test_a_process_that_stood_still_blames_nobody():
    with start_server("--header-timeout", "2", "--body-timeout", "2") as server, Client(server) as client:
        client.send(post(SMALL)[:-10])
        time.sleep(0.6)
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(4)
        client.send(post(SMALL)[-10:-5])
        os.kill(server.pid, signal.SIGCONT)
        time.sleep(0.8)
        client.send(post(SMALL)[-5:])
        assert client.answer()[0] == 200
