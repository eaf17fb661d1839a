"""--socket: serving on a path, the file's mode, its removal, and files that already exist there."""
import concurrent.futures
import contextlib
import http.client
import os
import socket
import stat
import subprocess
import time

import pytest

from conftest import POSENCD, SANITIZED, START_SECONDS, without_posenc
from connection import wait_until


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(self.path)


def ask(path, method, target, body=None):
    connection = Connection(path)
    connection.request(method, target, body)
    answer = connection.getresponse()
    return answer.status, answer.read()


@contextlib.contextmanager
def serving(path, *flags):
    process = subprocess.Popen([POSENCD, "--socket", str(path), *flags], stderr=subprocess.PIPE, text=True, env=without_posenc(None))
    try:
        said = []
        while "listening on" not in (said or [""])[-1]:
            said.append(process.stderr.readline())
            assert said[-1], "".join(said)
        assert said[-1] == f"listening on unix:{path}\n" and "beyond this machine" not in "".join(said)
        yield process
        process.terminate()
        assert process.wait(timeout=40) == 0
    finally:
        process.kill()
        process.communicate()


def figure(path, name):
    lines = ask(path, "GET", "/metrics")[1].decode().splitlines()
    return float(next(line.split()[-1] for line in lines if line.startswith(name + " ")))


def test_who_leaves_a_short_stream_leaves_nothing_behind(tmp_path):
    """1.5 MiB are complete in the server's memory while they are sent in parts: unlike TCP, this socket accepts
    little at a time. Slow readers get the right bytes; when a client leaves, unsent bytes are released and do not
    count as sent."""
    path, target = tmp_path / "s", "/encode?scheme=sinusoidal&dim=128&len=3072&format=raw"
    with serving(path, "--log-level", "warn") as process:
        def begin():
            connection = Connection(path)
            connection.request("GET", target)
            return connection, connection.getresponse()

        def resident():
            with open(f"/proc/{process.pid}/status") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) << 10

        def leave(n):
            for _ in range(n):
                connection, answer = begin()
                assert len(answer.read(1000)) == 1000
                answer.close()
                connection.close()
        whole = ask(path, "GET", target)[1]
        assert len(whole) == 3072 * 512
        _, answer = begin()
        assert b"".join(iter(lambda: answer.read(10_007), b"")) == whole
        leave(20)
        before, sent = resident(), figure(path, "posenc_sent_bytes_total")
        leave(200)
        assert wait_until(lambda: figure(path, "posenc_streams") == 0)
        assert figure(path, "posenc_sent_bytes_total") - sent < 100 * len(whole)
        assert SANITIZED or resident() - before < 16 << 20
        assert ask(path, "GET", target) == (200, whole)


def refused(path):
    run = subprocess.run([POSENCD, "--socket", str(path)], capture_output=True, text=True, timeout=START_SECONDS, env=without_posenc(None))
    assert run.returncode != 0 and "--socket" in run.stderr
    return run.stderr


def test_served_on_a_path(tmp_path):
    path = tmp_path / "posenc.sock"
    with serving(path, "--io-threads", "2"):
        assert stat.S_ISSOCK(path.stat().st_mode) and stat.S_IMODE(path.stat().st_mode) == 0o660
        for _ in range(4):
            assert ask(path, "GET", "/healthz") == (200, b'{"status":"ok"}')
        status, body = ask(path, "GET", "/encode?scheme=sinusoidal&len=100000&dim=64&format=raw")
        assert status == 200 and len(body) == 100000 * 64 * 4
        assert ask(path, "POST", "/encode", b'{"scheme":"rope","len":2,"positions":[' + b"1," * 200000 + b"1]}")[0] == 422
        assert "somebody serves there" in refused(path)
        assert ask(path, "GET", "/healthz")[0] == 200  # the second has left the first's socket alone
    assert not path.exists()


def test_keeps_connections(tmp_path):
    path = tmp_path / "s"
    with serving(path):
        connection = Connection(path)
        for i in range(20):
            connection.request("GET", f"/encode?scheme=rope&len=4&offset={i}")
            answer = connection.getresponse()
            assert answer.status == 200 and answer.read()


def test_a_stale_socket_is_replaced(tmp_path):
    path = tmp_path / "s"
    with serving(path) as process:
        process.kill()
        process.wait()
        assert path.exists()
        with serving(path):
            assert ask(path, "GET", "/healthz")[0] == 200
        process.terminate = lambda: None
        process.wait = lambda timeout=None: 0


def test_what_is_no_socket_is_left_alone(tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    refused(path)
    assert path.read_text() == "mine"
    os.symlink(path, tmp_path / "link")
    refused(tmp_path / "link")
    assert path.read_text() == "mine" and (tmp_path / "link").is_symlink()
    assert "at most 107" in refused("/tmp/" + "x" * 120)
    assert "No such file" in refused(tmp_path / "absent" / "s")


def test_anothers_socket_is_not_removed(tmp_path):
    path = tmp_path / "s"
    with serving(path):
        path.unlink()
        other = socket.socket(socket.AF_UNIX)
        other.bind(str(path))
    assert path.exists()
    other.close()


@pytest.mark.parametrize("n", [200])
def test_many_connections_at_once(tmp_path, n):
    path = tmp_path / "s"
    with serving(path):
        connections = [Connection(path) for _ in range(n)]
        for connection in connections:
            connection.request("GET", "/encode?scheme=rope&len=4")
        assert [connection.getresponse().status for connection in connections] == [200] * n
        time.sleep(0)


LONG = "/encode?scheme=sinusoidal&dim=64&len=4000000&format="  # a gigabyte


def read_for(path, seconds, target, pause, n):
    """How many bytes a reader gets that takes n at a time; negative if it is cut before the time is over."""
    connection = Connection(path)
    connection.request("GET", target)
    end, got = time.monotonic() + seconds, 0
    with connection.getresponse() as answer:
        while time.monotonic() < end:
            try:
                part = connection.sock.recv(n)
            except ConnectionResetError:
                part = b""
            if not part:
                return -got
            got += len(part)
            time.sleep(pause)
        assert answer.status == 200
    return got


@pytest.mark.waiting
def test_a_steady_reader_is_not_cut(tmp_path):
    """TCP reports how much the peer has received, this socket does not; the rate is measured over windows of 10 s.
    One answer is of known length, the other in chunks, which are sent without the HTTP library."""
    path = tmp_path / "s"
    with serving(path, "--send-timeout", "3"), concurrent.futures.ThreadPoolExecutor() as pool:
        reads = [pool.submit(read_for, path, 13, LONG + form, 0.01, 65536) for form in ("raw", "json")]
        assert min(read.result() for read in reads) > 13 * 10_000
        assert figure(path, 'posenc_cancelled_total{stage="slow"}') == 0


@pytest.mark.waiting
def test_a_slow_reader_is_cut_by_its_rate(tmp_path):
    """Some 30 KB/s while 1 MiB/s is required: the 3 s without a byte are never reached."""
    path = tmp_path / "s"
    with serving(path, "--min-rate", "1MiB", "--send-timeout", "60"):
        assert read_for(path, 30, LONG + "raw", 0.5, 16384) < 0
        assert figure(path, 'posenc_cancelled_total{stage="slow"}') == 1


@pytest.mark.waiting
@pytest.mark.parametrize("form", ["raw", "json"])
def test_a_reader_that_stops_is_cut(tmp_path, form):
    path = tmp_path / "s"
    with serving(path, "--send-timeout", "2"):
        connection = Connection(path)
        connection.request("GET", LONG + form)
        answer = connection.getresponse()
        assert answer.status == 200 and len(answer.read(100)) == 100
        assert wait_until(lambda: figure(path, 'posenc_cancelled_total{stage="slow"}') == 1, 30)
        assert figure(path, "posenc_streams") == 0
        connection.close()


@pytest.mark.waiting
def test_a_slow_upload_is_cut_as_over_tcp(tmp_path):
    path = tmp_path / "s"
    with serving(path, "--min-rate", "64KiB"):
        connection = Connection(path)
        connection.connect()
        connection.sock.sendall(b"POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        said, end = b"", time.monotonic() + 30
        connection.sock.settimeout(0.2)
        while not said and time.monotonic() < end:
            connection.sock.sendall(b" " * 100)
            with contextlib.suppress(TimeoutError):
                said = connection.sock.recv(4096)
        connection.sock.settimeout(10)
        with contextlib.suppress(ConnectionResetError):  # what was sent meanwhile is not read any more
            while more := connection.sock.recv(4096):  # the text may come after the head
                said += more
        assert said.startswith(b"HTTP/1.1 408 ") and b"--min-rate" in said
