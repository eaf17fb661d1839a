"""A proxy between browser and posencd that delays, slows down, refuses or goes away, and counts what is asked."""
import contextlib
import http.client
import json
import socket
import threading
import time
import urllib.parse

from passing import Listener, PassingHandler

ASKED = ("/encode", "/attention", "/rotate", "/analyze", "/diagnose", "/experiments")  # what `rules` is about; the page's files and /schemes pass


class RoughProxy:
    """Change `delay` (seconds before an answer), `rate` (bytes a second) and `refuse` (status, Retry-After) at any time."""

    def __init__(self, server):
        self.back = server
        self.delay, self.rate, self.refuse = 0, None, None
        self.log, self.lock = [], threading.Lock()
        handler = type("Handler", (Handler,), {"proxy": self})
        self.listener = Listener(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.listener.server_port}"
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()

    def note(self, what, path):
        with self.lock:
            self.log.append((time.monotonic(), what, path))

    def take(self, what):
        """[(seconds, path)] of "asked", "answered" or "left" since the last clear()."""
        with self.lock:
            return [(at, path) for at, kind, path in self.log if kind == what]

    def clear(self):
        with self.lock:
            self.log.clear()


class Handler(PassingHandler):
    def pass_on(self, body):
        asked = urllib.parse.urlsplit(self.path).path in ASKED
        if asked:
            self.proxy.note("asked", self.path if body is None else f"{self.path} {body.decode(errors='replace')}")
            if self.refusal() or self.leaves(self.proxy.delay):
                return
        self.answer(body, self.proxy.rate if asked else None)
        if asked:
            self.proxy.note("answered", self.path)

    def refusal(self):
        if not self.proxy.refuse:
            return False
        status, retry_after = self.proxy.refuse
        text = json.dumps({"status": status, "title": "Refused", "detail": f"refused with {status} by a test"}).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/problem+json", "Retry-After": retry_after, "Content-Length": len(text)}.items():
            if value is not None:
                self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(text)
        return True

    def leaves(self, seconds):
        """Waits; True if the browser closes the connection meanwhile."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.is_closed():
                self.proxy.note("left", self.path)
                self.close_connection = True
                return True
            time.sleep(0.005)
        return False

    def is_closed(self):
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def answer(self, body, rate):
        back = http.client.HTTPConnection(self.proxy.back.host, self.proxy.back.port, timeout=60)
        with contextlib.closing(back):
            headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
            back.request(self.command, self.path, body, headers)
            answer = back.getresponse()
            data = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.write(data, rate)

    def write(self, data, rate):
        step = max(1, int(rate / 20)) if rate else len(data) or 1
        for at in range(0, len(data), step):
            if rate and self.leaves(0.05):
                return
            self.wfile.write(data[at:at + step])


@contextlib.contextmanager
def rough_proxy(server):
    proxy = RoughProxy(server)
    try:
        yield proxy
    finally:
        proxy.listener.shutdown()
        proxy.listener.server_close()
