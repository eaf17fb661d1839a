"""A client over a plain socket, which sees the bytes on the wire and disconnects as it likes, requests whose contents do not
matter, and what tests of connections wait for."""
import concurrent.futures
import contextlib
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import threading
import time

from conftest import POSENCD, SANITIZED, START_SECONDS, without_posenc

SMALL = b'{"scheme":"alibi","num_heads":2,"len":4,"outputs":["bias"],"format":"raw"}'
SMALL_BYTES = 2 * 4 * 4 * 4
MEDIUM = b'{"scheme":"alibi","num_heads":8,"len":1024,"outputs":["bias"],"format":"raw"}'
MEDIUM_BYTES = 8 * 1024 * 1024 * 4
HUGE = b'{"scheme":"alibi","num_heads":32,"len":8192,"outputs":["bias"],"format":"raw"}'

UNHURRIED = ["--min-rate", "0", "--send-timeout", "300"]  # clients that do not read are not cut off, however long the test takes


def at_once(run, items, most=None):
    """What run(item) gives for each item, all of them at the same time, or so many; what one of them raises is raised."""
    items = list(items)
    with concurrent.futures.ThreadPoolExecutor(most or len(items)) as pool:
        return list(pool.map(run, items))


@contextlib.contextmanager
def running(work, n=1):
    """work(stop) in n threads, until the block is left; what goes wrong before that is raised."""
    stop, failures = threading.Event(), []

    def run():
        try:
            work(stop)
        except Exception as failure:  # noqa: BLE001: of whichever kind, the test fails
            if not stop.is_set():
                failures.append(failure)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(n)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert not failures, failures


def large_request(n):
    """A request of two bytes a position, answered by four."""
    head = b'{"scheme":"rope","head_dim":2,"outputs":["cos"],"format":"raw","positions":['
    return head + b"0," * (n - 1) + b"0]}"


class Client:
    """One connection; requests as bytes, answers as (status, headers, body)."""

    def __init__(self, server, receive_buffer=None, source=None):
        self.socket = socket.socket(socket.AF_INET if server.port else socket.AF_UNIX)
        if source:
            self.socket.bind((source, 0))
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(90)
        self.socket.connect((server.host, server.port) if server.port else server.host)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def head(self):
        line = self.file.readline()
        assert line, "the server closed without an answer"
        headers = {}
        for line_ in iter(self.file.readline, b"\r\n"):
            assert line_, "the server closed within the headers"
            name, _, value = line_.partition(b":")
            headers[name.decode().lower()] = value.strip().decode()
        return int(line.split()[1]), headers

    def answer(self):
        status, headers = self.head()
        while status == 100:
            status, headers = self.head()
        if "content-length" in headers:
            n = int(headers["content-length"])
            body = self.file.read(n)
            assert len(body) == n
        elif headers.get("transfer-encoding") == "chunked":
            body = bytearray()
            while n := int(self.file.readline(), 16):
                body += self.file.read(n)
                self.file.readline()
            self.file.readline()
            body = bytes(body)
        else:
            body = self.file.read()
        return status, headers, body

    def is_closed(self):
        """Whether the server ends the connection without another byte."""
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.__exit__()


@contextlib.contextmanager
def clients(server, n, **options):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Client(server, **options)) for _ in range(n)]


def asked(server, request, **options):
    """The answer to one request on a connection of its own."""
    with Client(server, **options) as client:
        client.send(request)
        return client.answer()


def certificate(folder, name="a"):
    """A certificate of this machine and its key, as files."""
    crt, key = pathlib.Path(folder, f"{name}.crt"), pathlib.Path(folder, f"{name}.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(crt)], check=True, capture_output=True)
    return crt, key


def ended(*flags):
    """Status and log of a posencd that does not start."""
    run = subprocess.run([POSENCD, "--port", "0", *flags], capture_output=True, text=True, timeout=START_SECONDS, env=without_posenc(None))
    return run.returncode, run.stderr


def hang_up(server, words):
    """SIGHUP, until the log has one line more with these words."""
    before = server.stderr_text().count(words)
    server.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: server.stderr_text().count(words) > before), server.stderr_text()[-2000:]


def get(path, *headers):
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def post(body, path="/encode", *headers):
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def metrics(server, *names):
    """These numbers of one answer of /metrics."""
    with Client(server) as client:
        client.send(get("/metrics"))
        text = client.answer()[2].decode()
    found = [re.search(rf"^{re.escape(name)} (\S+)$", text, re.M) for name in names]
    assert all(found), f"not all of {names} in /metrics"
    return [float(one[1]) for one in found]


def metric(server, name):
    return metrics(server, name)[0]


def least_loop_ms(server, request, enough=0, tries=9):
    """The loop's processor time for a request and a small one behind it, the least of some tries, until one is short enough; and the answer."""
    least = float("inf")
    with Client(server) as client:
        while tries > 0 and least > enough:
            tries, begun = tries - 1, server.loop_ms()
            client.send(request)
            answer = client.answer()
            client.send(get("/healthz"))
            client.answer()
            least = min(least, server.loop_ms() - begun)
    return least, answer


def n_descriptors(server):
    return len(os.listdir(f"/proc/{server.pid}/fd"))


PAUSE = 0.02


def wait_until(condition, seconds=10):
    """Whether it comes true. What counts is the time between tries: where others have the processors, a try takes longer, and all it waits for does too."""
    for _ in range(round(seconds / PAUSE)):
        if condition():
            return True
        time.sleep(PAUSE)
    return condition()


def within(seconds, condition):
    assert wait_until(condition, seconds * (5 if SANITIZED else 1)), f"not within {seconds} s"


def is_quiet(server):
    """No stream, job, experiment or request is left except the one that queries the metrics."""
    gauges = "posenc_streams", "posenc_in_flight_requests", "posenc_queued_jobs", "posenc_busy_workers", "posenc_experiments"
    return metrics(server, *gauges) == [0, 1, 0, 0, 0]


def is_asleep(server):
    """Every thread waits: what the server had to do for what has arrived is done."""
    return all(stat.read_text().rpartition(")")[2].split()[0] == "S" for stat in pathlib.Path(f"/proc/{server.pid}/task").glob("*/stat"))


def ports_of(pid):
    """Those of this machine that a process listens on, by the kernel's table of sockets."""
    try:
        own = {os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:  # it has ended
        return set()
    rows = (line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:])
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own}
