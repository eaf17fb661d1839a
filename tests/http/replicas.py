"""Several posencd on ports that they keep when they are restarted, and clients that notice every failure."""
import contextlib
import http.client
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

from conftest import POSENCD, Server, without_posenc
from proxies import held_port

DRAIN_DELAY = 3  # more than a balancer's two checks


class Replica:
    def __init__(self, folder, port, flags, env=None):
        self.folder, self.port, self.env, self.n_started = folder, port, env, 0
        own = pathlib.Path(folder, str(self.port))
        own.mkdir()
        self.flags = [flag.replace("{folder}", str(own)) for flag in flags]
        self.start()

    def start(self):
        self.n_started += 1
        log = pathlib.Path(self.folder, f"{self.port}-{self.n_started}.log")
        with open(log, "w") as out:
            process = subprocess.Popen([POSENCD, "--port", str(self.port), *self.flags], stderr=out, stdout=subprocess.DEVNULL, env=without_posenc(self.env))
        self.server = Server(process, str(log))

    def end(self, signum=signal.SIGTERM, seconds=60):
        self.server.process.send_signal(signum)
        return self.server.process.wait(seconds)

    def metric(self, name):
        text = self.server.get("/metrics").body.decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{")))

    def kill(self):
        if self.server.is_alive():
            self.server.process.send_signal(signal.SIGCONT)
            self.end(signal.SIGKILL)


@contextlib.contextmanager
def replicas(*flags, n=3, env=None):
    """{folder} in a flag is each server's own folder, which it finds again when it is restarted."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ports:
        started = []
        try:
            for _ in range(n):
                started.append(Replica(folder, ports.enter_context(held_port()), flags, env))
            yield started
        finally:
            for replica in started:
                replica.kill()


class Load:
    """Clients on kept connections that send these requests, (method, path, body), in turn. Nothing is tried twice: failures are answers
    other than the right ones, broken connections and answers that took longer than `seconds`."""

    def __init__(self, port, requests, n_clients=6, seconds=30):
        self.port, self.requests, self.seconds = port, requests, seconds
        self.failures, self.n_right, self.longest, self.stopped = [], 0, 0, threading.Event()
        self.lock = threading.Lock()
        self.right = [self.ask(self.connection(), *request)[1] for request in requests]
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(n_clients)]

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.seconds)

    @staticmethod
    def ask(connection, method, path, body):
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def run(self, i):
        connection = self.connection()
        while not self.stopped.is_set():
            i = (i + 1) % len(self.requests)
            begun = time.monotonic()
            try:
                status, body = self.ask(connection, *self.requests[i])
                failure = None if (status, body) == (200, self.right[i]) else (status, body[:200])
            except (OSError, http.client.HTTPException) as error:
                failure = repr(error)
                connection.close()
                connection = self.connection()
            with self.lock:
                self.longest = max(self.longest, time.monotonic() - begun)
                self.n_right += failure is None
                if failure:
                    self.failures.append((self.requests[i], failure))
            time.sleep(0.02)  # the tests share the machine
        connection.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join(self.seconds + 10)
            assert not thread.is_alive()
