"""Owns the clients that misbehave: hostile heads and bodies, those who leave, those who dawdle. Each must get what it deserves:
a refusal of its own kind or the end of the connection, in time, and never an answer that looks whole and is not."""
import json
import time

import values
from actors import Wrong, is_busy
from wire import Closed, Malformed, Wire, request

SERVED = "soak-must-not-be-served"
BEHIND = request("GET", "/version", headers={"X-Request-Id": SERVED})
HEADER_SECONDS, TIMEOUT_SECONDS = 3, 6  # as the server is started
REFUSED = {400, 404, 405, 406, 408, 411, 413, 414, 415, 416, 417, 422, 431, 501, 505}
OK = b'{"scheme":"sinusoidal","dim":2,"len":1,"format":"raw"}'
P = b"POST /encode HTTP/1.1\r\nHost: localhost\r\n"
G = b"GET /healthz HTTP/1.1\r\n"

# What is sent, the statuses deserved; behind each stands a request that must not be served where the framing is in doubt.
HEADS = [
    (P + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
    (P + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", {400}),
    (P + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", {400}),
    (P + b"Content-Length: two\r\n\r\n{}", {400, 413}),
    (P + b"Content-Length: +2\r\n\r\n{}", {400, 413}),
    (P + b"Content-Length: 2, 2\r\n\r\n{}", {400, 413}),
    (P + b"Content-Length: 99999999999999999999999999\r\n\r\n{}", {400, 413}),
    (P + b"Content-Length: 999999999999\r\n\r\n{}", {413}),
    (P + b"Content-Length : 2\r\n\r\n{}", {400}),
    (P + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", {400, 501}),
    (P + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", {400, 408}),
    (P + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", {400, 413}),
    (G + b"\r\n", {400}), (G + b"Host: a\r\nHost: b\r\n\r\n", {400}),
    (b"GET /health%00z HTTP/1.1\r\nHost: a\r\n\r\n", {400}), (b"GET /healthz HTTP/2.0\r\nHost: a\r\n\r\n", {400, 505}),
    (G + b"Host: a\r\nX: " + b"y" * 70000 + b"\r\n\r\n", {400, 413, 431}),
    (b"GET /" + b"u" * 70000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", {400, 414, 431}),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xab" * 300, REFUSED),
]

BODIES = [
    ({}, b"[" * 5000, {400, 413, 422}), ({}, b'{"scheme":"rope","len":1,"len":2}', {400}), ({}, b'{"scheme":', {400}), ({}, b"\xff\xfe" * 90, {400}),
    ({"Content-Encoding": "gzip"}, b"\x1f\x8b" * 9, {415}), ({"Content-Type": "application/x-npy"}, b"\x93NUMPY\x01\x00\xff\xff{", {400, 422}),
    ({"Content-Type": "application/vnd.safetensors"}, b"\xff" * 40, {400, 413}), ({"Content-Type": "application/zip"}, b"PK\3\4" * 30, {400, 415, 422}),
    ({"Content-Type": "multipart/form-data"}, b"--x\r\n", {400, 415}), ({"Content-Type": "multipart/form-data; boundary=x"}, b"--x\r\nbroken", {400}),
    ({"Inference-Header-Content-Length": "99"}, b"{}", {400, 415, 422}),
]


def finish(wire, deserved, what):
    """The answer must be one of those deserved, or the connection ends; nothing may hang."""
    try:
        answer = wire.answer()
    except (Closed, Malformed) as error:
        if isinstance(error, Malformed) and 400 not in deserved:
            raise Wrong(f"{what!r}: {error}") from None
        return "cut"
    except TimeoutError:
        raise Wrong(f"{what!r}: neither answered nor closed") from None
    if answer.status not in deserved and not is_busy(answer):
        raise Wrong(f"{what!r}: {answer}, not one of {sorted(deserved)}")
    return "refused"


def check_not_served(wire, what):
    """Whatever else the server sends before it closes, the request behind was not taken for one."""
    seen = b""
    try:
        while len(seen) < 1 << 16 and (block := wire.file.read1(1 << 16)):
            seen += block
    except (OSError, ValueError):
        pass
    if SERVED.encode() in seen:
        raise Wrong(f"{what!r}: the request behind it was served")


def hostile_head(client):
    text, deserved = client.rng.choice(HEADS)
    wire = Wire(client.port, seconds=15)
    try:
        wire.send(text + (BEHIND if text.startswith(b"POST") else b""))
        word = finish(wire, deserved, text[:120])
        if text.startswith(b"POST"):
            check_not_served(wire, text[:120])
        return word
    finally:
        wire.close()


def hostile_body(client):
    headers, body, deserved = client.rng.choice(BODIES)
    path = "/v2/models/rope/infer" if "Inference-Header-Content-Length" in headers else "/rotate" if headers else "/encode"
    wire = Wire(client.port, seconds=15)
    try:
        wire.send(request("POST", path, body, headers))
        return finish(wire, deserved, (headers, body[:60]))
    finally:
        wire.close()


def garbage(client):
    """Random bytes, or a right request with bytes turned; then we close our sending side."""
    text = bytearray(request("POST", "/encode", OK))
    for _ in range(client.rng.randint(1, 6)):
        text[client.rng.randrange(len(text))] = client.rng.randrange(256)
    if client.rng.random() < 0.3:
        text = bytearray(client.rng.randbytes(client.rng.randint(1, 3000)))
    wire = Wire(client.port, seconds=15)
    try:
        wire.send(bytes(text))
        wire.socket.shutdown(1)
        # A byte turned in a harmless place leaves a right request.
        return finish(wire, REFUSED | {200}, bytes(text[:200]))
    except OSError:
        return "cut"
    finally:
        wire.close()


def wrong_length(client):
    """Fewer bytes than announced, then the end: there may be no 200."""
    wire = Wire(client.port, seconds=15)
    try:
        wire.send(request("POST", "/encode", OK + b" " * 50)[:-client.rng.randint(1, 50)])
        wire.socket.shutdown(1)
        return finish(wire, {400, 408}, "a body shorter than its length")
    finally:
        wire.close()


# ---- Those who leave -----------------------------------------------------------------------------------------------------------


def end(client, wire):
    (wire.reset if client.rng.random() < 0.5 else wire.close)()


def busy_or_wrong(wire, answer):
    parts = []
    answer.whole = wire.read_body(answer, parts.append, False, None)
    answer.body = b"".join(parts)
    if not is_busy(answer):
        raise Wrong(f"a stream of 8 GiB: {answer}")
    return "busy"


def leave_download(client):
    """A stream of GiB, left after some of it, which must have been right."""
    wire = Wire(client.port)
    try:
        wire.send(request("POST", "/encode", json.dumps(values.stream_fields(16384)).encode()))
        answer = wire.head()
        if answer.status != 200:
            return busy_or_wrong(wire, answer)
        look = values.AlibiBytes(16384) if client.rng.random() < 0.5 else lambda block: None
        if wire.read_body(answer, look, False, int(10 ** client.rng.uniform(0, 7))):
            raise Wrong(f"8 GiB were whole after {answer.n_bytes} bytes")
    except AssertionError as error:
        raise Wrong(f"a stream that is left: {error}") from None
    except Closed as closed:
        raise Wrong(f"a stream that is to be left: {closed}") from None
    finally:
        end(client, wire)
    return "left"


def leave_upload(client):
    wire = Wire(client.port)
    wire.send(request("POST", "/encode", b"{" * 3_000_000)[:int(10 ** client.rng.uniform(1, 6))])
    time.sleep(client.rng.uniform(0, 0.1))
    end(client, wire)
    return "left"


def leave_work(client):
    """Attention that takes a worker for a while, left at once or soon."""
    ask = {"scheme": "alibi", "num_heads": 8, "format": "raw", "outputs": ["output"], "q": {"dtype": "f32", "shape": [8, 400, 4], "data": [0.5] * 12800}}
    ask["k"] = ask["v"] = ask["q"]
    wire = Wire(client.port)
    wire.send(request("POST", "/attention", json.dumps(ask).encode()))
    time.sleep(client.rng.uniform(0, 0.05))
    end(client, wire)
    return "left"


def leave_pipeline(client):
    wire = Wire(client.port)
    wire.send(request("POST", "/encode", OK) * client.rng.randint(2, 9))
    time.sleep(client.rng.uniform(0, 0.02))
    end(client, wire)
    return "left"


# ---- Those who dawdle ----------------------------------------------------------------------------------------------------------


def in_time(began, limit, what):
    if time.monotonic() - began > limit + 6:
        raise Wrong(f"{what}: held for {time.monotonic() - began:.1f} s, the limit is {limit} s")


def dribble(client, text, pause, limit, what):
    """A byte at a time until the server has had enough."""
    wire, began = Wire(client.port, seconds=0.001), time.monotonic()
    try:
        for byte in text:
            if not wire.send(bytes([byte])):
                break
            time.sleep(pause)
            in_time(began, limit, what)
            try:
                wire.socket.recv(1, 2)  # MSG_PEEK: an answer or the end
                break
            except TimeoutError:
                continue
            except ConnectionResetError:
                break
        wire.socket.settimeout(15)
        word = finish(wire, {408}, what)
        in_time(began, limit, what)
        return word
    except OSError:
        return "cut"
    finally:
        wire.close()


def slow_head(client):
    return dribble(client, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Y: " + b"z" * 500, 0.2, HEADER_SECONDS, "a slow head")


def silence(client):
    wire, began = Wire(client.port, seconds=20), time.monotonic()
    try:
        word = finish(wire, {408}, "silence")
        in_time(began, HEADER_SECONDS, "silence")
        return word
    finally:
        wire.close()


def stalled_body(client):
    wire, began = Wire(client.port, seconds=30), time.monotonic()
    try:
        wire.send(request("POST", "/encode", OK)[:-7])
        word = finish(wire, {408}, "a body that stops")
        in_time(began, TIMEOUT_SECONDS, "a body that stops")
        return word
    finally:
        wire.close()


def patient_body(client):
    """Slow, but within every limit: answered."""
    wire, text = Wire(client.port), request("POST", "/encode", OK)
    try:
        at = len(text) - 20
        wire.send(text[:at])
        for i in range(at, len(text)):
            time.sleep(0.05)
            wire.send(text[i:i + 1])
        answer = wire.answer()
        if is_busy(answer):
            return "busy"
        if answer.status != 200 or len(answer.body) != 8:
            raise Wrong(f"a slow body within the limits: {answer}")
        return "right"
    except Closed as closed:
        raise Wrong(f"a slow body within the limits: {closed}") from None
    finally:
        wire.close()


def read_slowly(client, wire):
    """True if the server ended the stream before we left."""
    look, until = values.AlibiBytes(16384), time.monotonic() + client.rng.uniform(1, 5)
    while time.monotonic() < until:
        block = wire.file.read1(4096)
        if not block:
            return True
        look(block)
        time.sleep(0.02)
    return False


def slow_reader(client):
    """Little by little through a small window; the server may cut it, what came is right and is not the whole."""
    wire = Wire(client.port, receive_buffer=4096)
    try:
        wire.send(request("POST", "/encode", json.dumps(values.stream_fields(16384)).encode()))
        answer = wire.head()
        if answer.status != 200:
            return busy_or_wrong(wire, answer)
        return "cut" if read_slowly(client, wire) else "left"
    except ConnectionResetError:
        return "cut"
    except (Closed, AssertionError) as error:
        raise Wrong(f"a slow reader: {error}") from None
    finally:
        end(client, wire)


HOSTILE = [("hostile head", 6, hostile_head), ("hostile body", 6, hostile_body), ("garbage", 6, garbage), ("wrong length", 2, wrong_length),
           ("leaving a download", 4, leave_download), ("leaving an upload", 4, leave_upload), ("leaving work", 2, leave_work),
           ("leaving a pipeline", 3, leave_pipeline)]
SLOW = [("slow head", 2, slow_head), ("silence", 2, silence), ("stalled body", 2, stalled_body), ("slow body", 3, patient_body),
        ("slow reader", 4, slow_reader)]
