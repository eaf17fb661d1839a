"""Clients that are slow in each way, over TCP and over a Unix socket: they are sent away, and others are served meanwhile. Who only waits for
the server, or reads with pauses, is not slow. Limits of seconds are waited for side by side, each on a server of its own."""
import contextlib
import os
import signal
import socket
import tempfile
import time

from conftest import SANITIZED, Stopwatch, start_server
from connection import HUGE, SMALL, SMALL_BYTES, Client, at_once, get, is_quiet, metric, post, running, wait_until

N_SLOW = 50
LONG = {"raw": HUGE, "json": HUGE.replace(b',"format":"raw"', b"")}  # of known length, and in chunks, which are sent without the HTTP library
CUT = 'posenc_cancelled_total{stage="slow"}'


def upload(n=100_000):
    return b"POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % n


def dribble(clients, data, stop, seconds=0.5):
    """A byte to each now and then, until they are all closed or stop is set."""
    at = 0
    while not stop.wait(seconds):
        for client in clients:
            with contextlib.suppress(OSError):
                client.socket.sendall(data[at % len(data):][:1])
        at += 1


def dribbled(clients, data):
    return running(lambda stop: dribble(clients, data, stop))


def sip(clients, stop, seconds=0.5):
    """As slow readers: 64 bytes at a time."""
    while not stop.wait(seconds):
        for client in clients:
            with contextlib.suppress(OSError):
                client.socket.recv(64, socket.MSG_DONTWAIT)


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


@contextlib.contextmanager
def serving(over, *flags):
    with tempfile.TemporaryDirectory() as folder:
        with start_server(*(("--socket", f"{folder}/s") if over == "unix" else ()), *flags) as server:
            yield server


# ---- Who is cut ------------------------------------------------------------------------------------------------------------------


def slow_clients_of_four_kinds(over):
    """They are sent away while others are served."""
    flags = ["--header-timeout", "2", "--min-rate", "1KiB", "--send-timeout", "60", "--connection-timeout", "60", "--io-threads", "2"]
    with serving(over, *flags) as server:
        silent, heads, bodies = ([Client(server) for _ in range(N_SLOW)] for _ in range(3))
        readers = [Client(server, receive_buffer=4096) for _ in range(N_SLOW)]
        for client in heads:
            client.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
        for client in bodies:
            client.send(upload())
        for client in readers:
            client.send(post(HUGE))
        clock = Stopwatch(server)
        with dribbled(heads, b"a"), dribbled(bodies, b" "), running(lambda stop: sip(readers, stop)):
            worst = serve_normally(server, 3)
            for client in silent + heads:
                status, _, text = client.answer()
                assert status == 408 and b"--header-timeout" in text
            assert clock.seconds() < 6
            worst = max(worst, serve_normally(server, 8))
            for client in bodies:
                status, _, text = client.answer()
                assert status == 408 and b"--min-rate" in text and b" bytes in 10 s; needed: 1024 a second" in text
            assert clock.seconds() < 20
            assert wait_until(lambda: is_quiet(server), 12)
        assert SANITIZED or worst < 0.5, f"a normal client waited {worst:.3f} s"
        assert metric(server, CUT) == N_SLOW and metric(server, 'posenc_rejected_total{reason="timeout"}') == 3 * N_SLOW
        for client in silent + heads + bodies + readers:
            client.reset()


def an_upload_below_the_rate(over):
    with serving(over, "--min-rate", "64KiB") as server, Client(server) as client:
        client.send(upload())
        with dribbled([client], b" "):
            status, _, text = client.answer()
        assert status == 408 and b"--min-rate" in text


def a_body_that_takes_too_long_in_all(over):
    with serving(over, "--body-timeout", "2", "--min-rate", "0") as server, Client(server) as client:
        client.send(upload())
        begun, clock = time.monotonic(), Stopwatch(server)
        with dribbled([client], b" "):
            status, _, text = client.answer()
        assert status == 408 and b"longer than 2 s (--body-timeout)" in text and b"bytes of it have arrived" in text
        assert 1.9 < time.monotonic() - begun and clock.seconds() < 4


def silence_on_each_kind_of_connection(over):
    """In a body it is 408; a connection that is kept is closed without a word."""
    with serving(over, "--connection-timeout", "2", "--io-threads", "1") as server, Client(server) as body, Client(server) as kept:
        body.send(post(SMALL)[:-5])
        kept.send(get("/healthz"))
        assert kept.answer()[0] == 200
        clock = Stopwatch(server)
        status, headers, _ = body.answer()
        assert status == 408 and headers["content-type"] == "application/problem+json"
        assert kept.is_closed() and clock.seconds() < 5


def a_head_whose_first_line_has_come(over):
    """It gets no more time by that."""
    with serving(over, "--header-timeout", "4") as server, Client(server) as client:
        clock = Stopwatch(server)
        time.sleep(2.2)
        with contextlib.suppress(OSError):  # on a busy machine it may be cut by then
            client.send(b"GET /healthz HTTP/1.1\r\n")
            time.sleep(0.5)
            client.send(b"Host: localhost\r\n")
        assert client.answer()[0] == 408
        assert clock.seconds() < 5.7


def an_answer_that_is_not_read(over, form):
    """Cut after --send-timeout, and others are answered meanwhile."""
    with serving(over, "--send-timeout", "2", "--io-threads", "1") as server, Client(server, receive_buffer=4096) as client:
        client.send(post(LONG[form]))
        assert client.head()[0] == 200 and metric(server, "posenc_streams") == 1
        assert serve_normally(server, 1) < 1
        assert wait_until(lambda: metric(server, CUT) == 1, 12) and wait_until(lambda: is_quiet(server))


def an_answer_that_is_read_too_slowly(over, form):
    """Some 30 KB/s while 1 MiB/s is required: the seconds without a byte are never reached."""
    with serving(over, "--min-rate", "1MiB", "--send-timeout", "60") as server:
        assert read_for(server, 30, form, 0.5, 16384) < 0
        assert metric(server, CUT) == 1


def read_for(server, seconds, form, pause, n_bytes):
    """How many bytes a reader gets that takes so many at a time; negative if it is cut before the time is over."""
    got, end = 0, time.monotonic() + seconds
    with Client(server, receive_buffer=65536) as client:
        client.send(post(LONG[form]))
        while time.monotonic() < end:
            try:
                part = client.socket.recv(n_bytes)
            except ConnectionResetError:
                part = b""
            if not part:
                return -got
            got += len(part)
            time.sleep(pause)
    return got


# ---- Who is not ------------------------------------------------------------------------------------------------------------------


def a_steady_reader(over, form):
    """TCP reports how much the peer has received, a Unix socket does not; the rate is measured over windows of 10 s."""
    with serving(over, "--send-timeout", "3", "--connection-timeout", "3") as server:
        assert read_for(server, 13, form, 0.01, 65536) > 13 * 10_000
        assert metric(server, CUT) == 0


def readers_that_pause_or_wait_for_us(over):
    """One reads a megabyte and pauses for less than --send-timeout; another's answer takes long to make."""
    with serving(over, "--send-timeout", "3", "--connection-timeout", "3") as server, Client(server) as client, Client(server) as patient:
        n = 120 if SANITIZED else 1800  # some seconds of one worker, more on a machine that has other work
        patient.socket.settimeout(300)
        patient.send(post(b'{"scheme":"floater","len":%d,"dim":512,"seed":0,"slice":[[%d,null,1],[0,null,1]],"format":"raw"}' % (n, n - 1)))
        client.send(post(HUGE))
        client.head()
        for _ in range(4):
            assert len(client.file.read(1 << 20)) == 1 << 20
            time.sleep(1.5)
        assert metric(server, CUT) == 0
        assert len(patient.answer()[2]) == 512 * 4


def clients_of_a_process_that_stood_still(over):
    with serving(over, "--header-timeout", "4", "--body-timeout", "4") as server, Client(server) as client:
        client.send(post(SMALL)[:-10])
        time.sleep(0.6)
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(7)
        client.send(post(SMALL)[-10:-5])
        os.kill(server.pid, signal.SIGCONT)
        time.sleep(0.8)
        client.send(post(SMALL)[-5:])
        assert client.answer()[0] == 200


KINDS = [(an_upload_below_the_rate,), (a_body_that_takes_too_long_in_all,), (silence_on_each_kind_of_connection,), (a_head_whose_first_line_has_come,),
         *((reader, form) for reader in (an_answer_that_is_not_read, an_answer_that_is_read_too_slowly, a_steady_reader) for form in LONG),
         (readers_that_pause_or_wait_for_us,), (clients_of_a_process_that_stood_still,)]


def test_slow_clients_harm_only_themselves():
    def run(kind):
        check, *options = kind
        check(*options)

    both = [(check, over, *form) for check, *form in KINDS for over in ("tcp", "unix")]
    at_once(run, [(slow_clients_of_four_kinds, "tcp"), *both])
