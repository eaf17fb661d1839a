"""The soak of tests/soak for ten seconds (`make soak` takes minutes), and a check that each of its laws can fail: with
altered figures, and with servers that answer wrongly."""
import copy
import importlib
import json
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

from conftest import POSENCD, ROOT, SANITIZED

SOAK = ROOT / "tests/soak"
MIB = 1 << 20


def module(name):
    """A file of tests/soak, whose names are too common for the path of all tests."""
    sys.path.insert(0, str(SOAK))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(SOAK))


verdict, values, actors, wire = (module(name) for name in ("verdict", "values", "actors", "wire"))


@pytest.mark.waiting
def test_ten_seconds(tmp_path):
    """Clients of every kind against one server: nothing undeserved, nothing wrong, nothing left behind."""
    output = tmp_path / "soak.json"
    command = [sys.executable, str(SOAK), "--program", POSENCD, "--seconds", "10", "--seed", "1", "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    figures = json.loads(output.read_text())
    assert figures["violations"] == [] and figures["status"] == 0
    assert sum(n for words in figures["words"].values() for n in words.values()) > (25 if SANITIZED else 100)


# ---- Laws on figures ---------------------------------------------------------------------------------------------------------


def sample(minute, rss=50, fds=11, threads=4, peak=90):
    return {"minute": minute, "rss": rss * MIB, "fds": fds, "threads": threads, "peak": peak * MIB}


def good():
    metrics = {"posenc_rejected_total": 5.0, 'posenc_rejected_total{reason="queue"}': 5.0, "posenc_cancelled_total": 9.0}
    return {"wrong": [], "sanitized": False, "before": sample(0), "after": sample(3), "calm": [sample(i / 4, 50 + i % 3) for i in range(2, 13)],
            "n_clients": 10, "metrics_before": {}, "metrics_after": metrics,
            "words": {"small": {"right": 900, "busy": 4}, "leaving": {"left": 20}}, "expected": ["small", "leaving"], "status": 0, "reports": []}


def test_good_figures_pass():
    assert verdict.violations(good()) == []


def change(path, value):
    def apply(figures):
        at = figures
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
    return apply


BROKEN = [
    ("wrong values", ["wrong"], ["small: 1 at 2"], "small: 1"),
    ("a leak", ["calm"], [sample(i / 4, 50 + i / 2) for i in range(2, 13)], "MiB a minute"),
    ("a step in a short run", ["calm"], [sample(0.1, 50), sample(0.3, 90)], "memory grew"),
    ("a peak", ["calm"], [sample(i / 4, 50, peak=900) for i in range(2, 13)], "peak memory"),
    ("no samples", ["calm"], [], "no calm"),
    ("lost descriptors", ["after", "fds"], 12, "12 file descriptors"),
    ("many descriptors", ["calm", 3, "fds"], 400, "400 file descriptors"),
    ("a lost thread", ["after", "threads"], 3, "3 threads"),
    ("threads without end", ["after", "threads"], 15, "15 threads"),
    ("503 without a limit", ["words", "small"], {"right": 9, "busy": 6}, "6 answers 503 or 429"),
    ("leaving not counted", ["metrics_after", "posenc_cancelled_total"], 0.0, "none counted"),
    ("an idle actor", ["expected"], ["small", "oip"], "nothing was asked by oip"),
    ("a bad end", ["status"], -6, "status after SIGTERM is -6"),
    ("a sanitizer", ["reports"], ["ERROR: AddressSanitizer: heap-use-after-free"], "AddressSanitizer"),
    ("a dead server", ["after"], None, "gone before the end"),
]


@pytest.mark.parametrize("path,value,words", [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_each_law_can_be_broken(path, value, words):
    figures = copy.deepcopy(good())
    change(path, value)(figures)
    found = verdict.violations(figures)
    assert any(words in text for text in found), found


# ---- Servers that lie ----------------------------------------------------------------------------------------------------------


class Liar:
    """Answers every request with these bytes and closes."""

    def __init__(self, answer):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.answer = self.listener.getsockname()[1], answer
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        try:
            while True:
                client, _ = self.listener.accept()
                client.recv(1 << 16)
                client.sendall(self.answer)
                client.close()
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def answered(body, length=None, status="200 OK", kind="application/octet-stream", more=""):
    head = f'HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body) if length is None else length}\r\n{more}\r\n'
    return head.encode() + body


TENSORS = 'Posenc-Tensors: encoding;dtype="f32";shape="3,4";offset=0\r\n'
RIGHT = values.sinusoidal(range(3), 4).astype("<f4")
WRONG = RIGHT.copy()
WRONG[2, 3] = np.nextafter(WRONG[2, 3], np.float32(2)) + np.float32(2e-7)


def asked(answer):
    fields = {"scheme": "sinusoidal", "dim": 4, "len": 3, "format": "raw"}
    with Liar(answer) as liar:
        ask = values.posted(fields, {"encoding": values.sinusoidal(range(3), 4)}, values.NEAR["f32"])
        return actors.perform(actors.Client(liar.port, 1, "test"), ask)


def test_the_right_answer_is_right():
    assert asked(answered(RIGHT.tobytes(), more=TENSORS)) == "right"


def test_a_busy_answer_is_one():
    problem = b'{"status":503,"detail":"64 requests wait; the limit is --max-queue"}'
    assert asked(answered(problem, status="503 Service Unavailable", more="Retry-After: 1\r\n")) == "busy"


@pytest.mark.parametrize("answer,words", [
    (answered(WRONG.tobytes(), more=TENSORS), "1 of 12 values"),
    (answered(RIGHT.tobytes()[:-4], 48, more=TENSORS), "cut after 44 bytes of 48"),
    (answered(RIGHT.tobytes()[:-4], more=TENSORS), ""),
    (answered(b'{"status":503,"detail":"busy"}', status="503 Service Unavailable"), "without Retry-After"),
    (answered(b"{}", status="500 Internal Server Error"), "<500"),
    (b"HTTP/1.1 200 OK\r\nContent-Le", "closed"),
    (b"", "closed"),
], ids=["a value", "cut", "short", "busy without a word", "500", "half a head", "nothing"])
def test_lies_are_found(answer, words):
    with pytest.raises(actors.Wrong, match=words):
        asked(answer)


@pytest.mark.parametrize("cut", [0, 1, 4, 5, 9])
def test_chunks_without_an_end_are_not_whole(cut):
    text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    with Liar(text[:len(text) - cut]) as liar:
        one = wire.Wire(liar.port)
        one.send(b"GET / HTTP/1.1\r\n\r\n")
        answer = one.answer()
        one.close()
    assert answer.whole == (cut == 0)


def test_a_stream_is_looked_at_element_by_element():
    data = bytearray(values.alibi(16).astype("<f4").tobytes())
    look = values.AlibiBytes(16, skip=10)
    look(b"h" * 7)
    for block in (b"hhh" + bytes(data[:101]), bytes(data[101:5001]), bytes(data[5001:])):
        look(block)
    assert look.at == 8 * 16 * 16
    data[4000] ^= 1
    with pytest.raises(AssertionError, match="element 1000 of the stream"):
        values.AlibiBytes(16)(bytes(data))
