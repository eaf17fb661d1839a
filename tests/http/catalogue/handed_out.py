"""The client libraries as the server hands them out, and a server that answers with given bytes: for test_clients*.py."""
import base64
import itertools
import shutil
import socketserver
import threading

import numpy as np
import pytest

import run
import safetensors_reader
from truth import gguf_writer as gguf

NODE = shutil.which("node")
TYPES = {"posenc.py": "text/x-python; charset=utf-8", "posenc.js": "text/javascript; charset=utf-8"}


def lying_heads():
    """The files of ../../cases/gguf.jsonl that no converter writes."""
    return [base64.b64decode(row["base64"]) for row in run.every("gguf") if row["id"].startswith("lie-")]


@pytest.fixture(scope="module")
def folder(session_server, tmp_path_factory):
    """As `curl -O` leaves them; node takes a module by its ending."""
    folder = tmp_path_factory.mktemp("clients")
    for name in TYPES:
        (folder / name).write_bytes(session_server.get(f"/clients/{name}").body)
    shutil.copy(folder / "posenc.js", folder / "posenc.mjs")
    return folder


def rotary(n, width, base=10000.0):
    return np.outer(np.arange(n), base ** (-np.arange(0, width, 2) / width))


LYING = [gguf.lying(np.random.default_rng(seed)) for seed in range(300)]


class Stalled(bytes):
    """An answer after which the connection stays open."""


class Rough(socketserver.ThreadingTCPServer):
    """Answers the connections one after the other with these bytes, then closes them."""

    allow_reuse_address, daemon_threads = True, True

    def __init__(self, *answers):
        self.answers, self.asked, self.heads, self.over = list(answers), 0, [], threading.Event()
        super().__init__(("127.0.0.1", 0), Rough.Talk)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __exit__(self, *what):
        self.over.set()
        self.shutdown()
        super().__exit__(*what)

    class Talk(socketserver.StreamRequestHandler):
        def handle(self):
            head = b"".join(itertools.takewhile(lambda line: line not in (b"\r\n", b""), self.rfile))
            if not head:  # the client connected and left
                return
            size = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0)
            self.rfile.read(size)
            self.server.asked += 1
            self.server.heads.append(head)
            answer = self.server.answers.pop(0) if len(self.server.answers) > 1 else self.server.answers[0]
            self.wfile.write(answer)
            self.wfile.flush()
            if isinstance(answer, Stalled):
                self.server.over.wait(60)


def bare(status, body=b"{}", *headers, length=None):
    return b"\r\n".join([b"HTTP/1.1 %d X" % status, b"Content-Length: %d" % (len(body) if length is None else length), *headers, b"", body])


GOOD = bare(200, safetensors_reader.dumps({"cos": np.ones((2, 2), "f4")}))
WHOLE = safetensors_reader.dumps({"cos": np.ones((2, 2), "f4")})


def without_length(body, *headers):
    return b"\r\n".join([b"HTTP/1.1 200 X", b"Connection: close", *headers, b"", body])


CHUNKED = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n"
