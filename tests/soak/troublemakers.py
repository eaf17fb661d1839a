"""Owns the clients that misbehave: hostile heads and bodies, those who leave, those who dawdle. Each must get what it deserves:
a refusal of its own kind or the end of the connection, in time, and never an answer that looks whole and is not."""
import json
import time

import heads
import run
import values
from actors import Wrong, is_busy
from wire import Closed, Malformed, Wire, request

SERVED = "soak-must-not-be-served"
BEHIND = request("GET", "/version", headers={"X-Request-Id": SERVED})
HEADER_SECONDS, TIMEOUT_SECONDS = 3, 6  # as the server is started
REFUSED = {400, 404, 405, 406, 408, 411, 413, 414, 415, 416, 417, 421, 422, 431, 501, 505}
OK = b'{"scheme":"sinusoidal","dim":2,"len":1,"format":"raw"}'

# Heads of cases/heads.jsonl with the statuses deserved; behind each is a request that must not be served where the framing is in doubt.
HEADS = [(raw, {expect["status"], 408}) for _, raw, expect in heads.rows() if "status" in expect and "goes_on" not in expect]
# Requests of cases/refused_api.jsonl that are refused.
BODIES = [(*run.sent(row), row["expect"]["status"]) for row in run.every("refused_api") if row["expect"].get("status", 200) >= 400 and "head" not in row]


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
    with Wire(client.port, seconds=15) as wire:
        wire.send(text + (BEHIND if text.startswith(b"POST") else b""))
        word = finish(wire, deserved, text[:120])
        if text.startswith(b"POST"):
            check_not_served(wire, text[:120])
        return word


def hostile_body(client):
    method, path, body, headers, status = client.rng.choice(BODIES)
    with Wire(client.port, seconds=15) as wire:
        wire.send(request(method.upper(), path, body or b"", headers))
        return finish(wire, {status}, (path, headers, (body or b"")[:60]))


def half_closed(client, text, deserved, what):
    with Wire(client.port, seconds=15) as wire:
        try:
            wire.send(text)
            wire.socket.shutdown(1)
            return finish(wire, deserved, what)
        except OSError:
            return "cut"


def garbage(client):
    """Random bytes, or a right request with bytes turned; one turned in a harmless place leaves a right request."""
    text = bytearray(request("POST", "/encode", OK))
    for _ in range(client.rng.randint(1, 6)):
        text[client.rng.randrange(len(text))] = client.rng.randrange(256)
    if client.rng.random() < 0.3:
        text = bytearray(client.rng.randbytes(client.rng.randint(1, 3000)))
    return half_closed(client, bytes(text), REFUSED | {200}, bytes(text[:200]))


def wrong_length(client):
    """Fewer bytes than announced, then the end: there may be no 200."""
    return half_closed(client, request("POST", "/encode", OK + b" " * 50)[:-client.rng.randint(1, 50)], {400, 408}, "a body shorter than its length")


# ---- Those who leave -----------------------------------------------------------------------------------------------------------


def end(client, wire):
    (wire.reset if client.rng.random() < 0.5 else wire.close)()


def busy_or_wrong(wire, answer):
    parts = []
    answer.whole = wire.read_body(answer, parts.append)
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
        if wire.read_body(answer, look, int(10 ** client.rng.uniform(0, 7))):
            raise Wrong(f"8 GiB were whole after {answer.n_bytes} bytes")
    except AssertionError as error:
        raise Wrong(f"a stream that is left: {error}") from None
    except Closed as closed:
        raise Wrong(f"a stream that is to be left: {closed}") from None
    finally:
        end(client, wire)
    return "left"

WORK = {"scheme": "alibi", "num_heads": 8, "format": "raw", "outputs": ["output"],
        **dict.fromkeys("qkv", {"dtype": "f32", "shape": [8, 400, 4], "data": [0.5] * 12800})}


def upload_begun(rng):
    return request("POST", "/encode", b"{" * 3_000_000)[:int(10 ** rng.uniform(1, 6))]


def work(rng):
    """Attention that takes a worker for a while."""
    return request("POST", "/attention", json.dumps(WORK).encode())


def pipeline(rng):
    return request("POST", "/encode", OK) * rng.randint(2, 9)


def leaving(text, seconds):
    """Sends text(rng) and leaves at once or soon."""
    def leave(client):
        wire = Wire(client.port)
        wire.send(text(client.rng))
        time.sleep(client.rng.uniform(0, seconds))
        end(client, wire)
        return "left"
    return leave

# ---- Those who dawdle ----------------------------------------------------------------------------------------------------------


def silent(text, limit, what):
    """Sends text and no more. Other ways to be slow: test_slow.py."""
    def wait(client):
        with Wire(client.port, seconds=30) as wire:
            began = time.monotonic()
            wire.send(text)
            word = finish(wire, {408}, what)
            if time.monotonic() - began > limit + 6:
                raise Wrong(f"{what}: held for {time.monotonic() - began:.1f} s, the limit is {limit} s")
            return word
    return wait


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
           ("leaving a download", 4, leave_download), ("leaving an upload", 4, leaving(upload_begun, 0.1)), ("leaving work", 2, leaving(work, 0.05)),
           ("leaving a pipeline", 3, leaving(pipeline, 0.02))]
SLOW = [("half a head", 2, silent(b"GET /healthz HTTP/1.1\r\nHost: ", HEADER_SECONDS, "half a head")), ("silence", 2, silent(b"", HEADER_SECONDS, "silence")),
        ("stalled body", 2, silent(request("POST", "/encode", OK)[:-7], TIMEOUT_SECONDS, "a body that stops")),
        ("slow reader", 4, slow_reader)]
