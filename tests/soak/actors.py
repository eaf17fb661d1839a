"""Owns the clients that behave: each function asks for something and judges the whole answer by value. It returns what happened
in one word (`right`, `refused`, `busy`, `left`, `cut`; several in client.more), or raises Wrong: an error nobody deserved."""
import json
import random
import time

import numpy as np

import values
from wire import Closed, Wire, request

IDLE_SECONDS = 2.0  # a kept connection idle for longer may be closed by the server at the moment we send


class Wrong(Exception):
    pass


class Client:
    """What one thread of one process has: its randomness, a connection it may keep, the name of its weights."""

    def __init__(self, port, seed, name):
        self.port, self.name, self.rng, self.kept, self.used, self.more = port, name, random.Random(seed), None, 0.0, {}

    def wire(self):
        if self.kept and time.monotonic() - self.used < IDLE_SECONDS:
            wire, self.kept = self.kept, None
            return wire
        self.drop()
        return Wire(self.port)

    def keep(self, wire):
        if wire.reusable and self.rng.random() < 0.9:
            self.kept, self.used = wire, time.monotonic()
        else:
            wire.close()

    def drop(self):
        if self.kept:
            self.kept.close()
            self.kept = None


def is_busy(answer):
    """503 and 429 must say which limit, its flag and when to come again; whether it was reached the server's counters tell."""
    if answer.status not in (429, 503):
        return False
    problem = answer.json()
    if not (answer.headers["Retry-After"] or "").isdigit() or "--" not in problem["detail"]:
        raise Wrong(f"{answer.status} without Retry-After or without the limit's flag: {answer}")
    return True


def exchange(client, ask):
    """Sends one request and reads its answer, which must come whole."""
    wire = client.wire()
    try:
        wire.send(request(ask.method, ask.path, ask.body, ask.headers))
        answer = wire.answer()
    except Closed as closed:
        wire.close()
        raise Wrong(f"{ask}: {closed}") from None
    if not answer.whole:
        wire.close()
        raise Wrong(f"{ask}: cut after {answer.n_bytes} bytes of {answer.headers['Content-Length']}")
    client.keep(wire)
    return answer


def perform(client, ask):
    answer = exchange(client, ask)
    if is_busy(answer):
        return "busy"
    if answer.status != ask.status:
        raise Wrong(f"{ask}: {answer}, not {ask.status}")
    try:
        ask.check(answer)
    except Exception as error:  # a reader of the format may stumble in any way
        raise Wrong(f"{ask}: {type(error).__name__}: {str(error)[:300]}") from None
    return "right"


def of(*asks):
    return lambda client: perform(client, client.rng.choice(asks)(client.rng))


def conditional(client):
    """A tag given back is answered 304 without a body."""
    ask = values.ask_cached(client.rng)
    answer = exchange(client, ask)
    if is_busy(answer):
        return "busy"
    ask.check(answer)
    again = exchange(client, values.Ask("GET", ask.path, None, headers={"If-None-Match": answer.headers["ETag"]}))
    if again.status != 304 and not is_busy(again):
        raise Wrong(f"{ask} with its own tag: {again}, not 304")
    return "right"


def weights(client):
    for i, ask in enumerate(values.weights_steps(client.rng, client.name)):
        if perform(client, ask) == "busy":
            take_away(client, 404 if i in (0, 4) else 204)
            return "busy"
    return "right"


def take_away(client, status, seconds=20):
    """After a refusal on the way: what was refused changed nothing, so the name is stored (204) or not (404)."""
    end = time.monotonic() + seconds
    answer = exchange(client, values.Ask("DELETE", f"/weights/{client.name}", None))
    while is_busy(answer) and time.monotonic() < end:
        time.sleep(0.1)
        answer = exchange(client, values.Ask("DELETE", f"/weights/{client.name}", None))
    if answer.status != status:
        raise Wrong(f"DELETE /weights/{client.name} after a step that was refused: {answer}, not {status}")


def header_bytes(answer, format_):
    """Of npy and safetensors: what stands before [8, n, n] float32 is the rest of the length."""
    return int(answer.headers["Content-Length"]) % 4096 if format_ != "raw" else 0


def stream(client):
    """Tens of MiB in every binary format, each element looked at as it comes."""
    n, format_ = client.rng.choice([512, 1024]), client.rng.choice(["raw", "npy", "safetensors"])
    blocks, looks = [], []

    def look(block):
        (looks[0] if looks else blocks.append)(block)

    wire = client.wire()
    try:
        wire.send(request("POST", "/encode", json.dumps(values.stream_fields(n, format_)).encode()))
        answer = wire.head()
        if answer.status == 200:
            looks.append(values.AlibiBytes(n, header_bytes(answer, format_)))
        answer.whole = wire.read_body(answer, look)
    except (Closed, ConnectionResetError, AssertionError) as error:
        wire.close()
        raise Wrong(f"stream of {format_}, n {n}: {error}") from None
    answer.body = b"".join(blocks)
    wire.reusable = answer.whole
    client.keep(wire)
    if is_busy(answer):
        return "busy"
    if answer.status != 200 or not answer.whole or looks[0].at != 8 * n * n:
        raise Wrong(f"stream of {format_}, n {n}: {answer}")
    return "right"


def whole_map(client):
    """npz and JSON of millions of bytes, read as a whole."""
    n, format_ = client.rng.choice([128, 256]), client.rng.choice(["npz", "json"])
    return perform(client, values.posted(values.stream_fields(n, format_), {"bias": values.alibi(n).reshape(8, n, n)}, 0))


def burst(client):
    """More requests at once than --max-queue holds: each is right or told to come again."""
    n = 2500
    body = json.dumps({"scheme": "sinusoidal", "dim": 2, "positions": [10000 + i % 7 for i in range(n)], "format": "raw"}).encode()
    text = request("POST", "/encode", body + b" " * 20000)  # over 16 KiB: a worker's
    want = values.sinusoidal([10000 + i % 7 for i in range(n)], 2)
    wires, busy = [Wire(client.port) for _ in range(100)], 0
    try:
        for wire in wires:
            wire.send(text)
        for wire in wires:
            busy += burst_answer(wire.answer(), want)
    except (Closed, AssertionError) as error:
        raise Wrong(f"burst: {error}") from None
    finally:
        for wire in wires:
            wire.close()
    client.more = {"busy": busy, "right": len(wires) - busy}
    return "burst"


def burst_answer(answer, want):
    if is_busy(answer):
        return 1
    assert answer.status == 200 and answer.whole, answer
    values.near(np.frombuffer(answer.body, "<f4").reshape(want.shape), want, values.NEAR["f32"])
    return 0


SMALL = values.rows("encode", "*_by_hand", "formats")
# name, weight among the well-behaved, function
ACTORS = [
    ("small", 60, of(SMALL, SMALL, values.ask_cached, values.ask_range, values.ask_probe)),
    ("conditional", 6, conditional), ("stream", 3, stream), ("map", 2, whole_map),
    ("rotate", 12, of(values.rows("rotate"))), ("upload", 1, of(values.ask_upload)), ("weights", 4, weights),
    ("attention", 5, of(values.rows("attention"))), ("analysis", 3, of(values.rows("analyze"))),
    ("diagnosis", 1, of(values.rows("diagnose_tables", "diagnose_heads"))), ("picture", 4, of(values.ask_picture)), ("oip", 6, of(values.rows("oip"))),
]
