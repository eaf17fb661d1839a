"""A server whose system calls fail on demand (`tests/faults/`), and the requests sent to it.

`faulty_server(*flags)` yields a server with a `faults` whose fields are numbers shared with it (tests/faults/faults.h
lists them with their meaning): `server.faults.wall_offset = 3600`. With all fields zero nothing fails."""
import collections
import contextlib
import ctypes
import functools
import json
import mmap
import pathlib
import random
import re
import tempfile
import threading

import numpy as np

import oip_client
from conftest import POSENCD, ROOT, SANITIZED, start_server
from tensors import multipart, npy
from test_npz_in import savez
from connection import Client, get, post
from mcp.messages import JSON
from truth import gguf_writer
from weights_asking import TABLE, file

BUILT = pathlib.Path(POSENCD).parent / "tests/faults"
PROGRAM = str(BUILT / "posencd") if SANITIZED else POSENCD  # a sanitizer does not go together with a preloaded allocator
LIBRARY = BUILT / "faults.so"
FIELDS = re.findall(r"^ +FIELD\((\w+)\)", (ROOT / "tests/faults/faults.h").read_text(), re.M)
SHORT, INTERRUPTED, AGAIN, RESET = 1, 2, 4, 8  # net_kinds


class Faults:
    """The numbers; everything that is set is let go of by calm()."""

    def __init__(self, memory):
        object.__setattr__(self, "_all", (ctypes.c_long * len(FIELDS)).from_buffer(memory))

    def __getattr__(self, name):
        return self._all[FIELDS.index(name)]

    def __setattr__(self, name, value):
        self._all[FIELDS.index(name)] = value

    def set(self, **values):
        for name, value in values.items():
            setattr(self, name, value)

    def calm(self):
        self.set(**{name: 0 for name in FIELDS if not name.startswith("live_")})

    @contextlib.contextmanager
    def allocations(self, first, burst=1):
        self.set(alloc_count=0, alloc_failed=0, alloc_first=first, alloc_burst=burst)
        self.alloc_armed = 1
        try:
            yield
        finally:
            self.alloc_armed = 0

    @contextlib.contextmanager
    def files(self, first, burst=1, error=0):
        self.set(file_count=0, file_failed=0, file_first=first, file_burst=burst, file_errno=error)
        self.file_armed = 1
        try:
            yield
        finally:
            self.file_armed = 0


@contextlib.contextmanager
def control():
    """The path of a file of numbers, and the numbers."""
    with tempfile.NamedTemporaryFile() as shared:
        shared.truncate(mmap.PAGESIZE)
        yield shared.name, Faults(mmap.mmap(shared.fileno(), mmap.PAGESIZE))


@contextlib.contextmanager
def faulty_server(*flags, **env):
    with control() as (path, faults):
        env["FAULTS_CONTROL"] = path
        if not SANITIZED:
            env["LD_PRELOAD"] = str(LIBRARY)
        with start_server(*flags, env=env, program=PROGRAM) as server:
            server.faults = faults
            yield server
            faults.calm()


# ---- Requests: one for each way through the server ----------------------------------------------------------------------

Q, K, V = (np.random.default_rng(i).standard_normal((1, 2, 40, 8)).astype("f4") for i in range(3))
X = np.random.default_rng(9).standard_normal((6, 16)).astype("f4")


def ask(path="/encode", **fields):
    return post(json.dumps(fields).encode(), path, "Content-Type: application/json")


def send(path, body, content_type, *headers):
    return post(body, path, f"Content-Type: {content_type}", *headers)


def parts(path, request, **arrays):
    body, headers = multipart(request=json.dumps(request), **{name: npy(a) for name, a in arrays.items()})
    return send(path, body, headers["Content-Type"])


def oip():
    head, tail = oip_client.body_of([oip_client.Input("q", Q[0])], None, "7", {"layout": "half"})
    return send("/v2/models/rope/infer", head + tail, "application/octet-stream", f"Inference-Header-Content-Length: {len(head)}")


def put(name, body, folder="/weights/"):
    return post(body, folder + name).replace(b"POST", b"PUT", 1)


def tool(name, **arguments):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    return post(json.dumps(message).encode(), "/mcp", *(f"{name}: {value}" for name, value in JSON.items()))


ROPE = {"scheme": "rope", "head_dim": 8, "layout": "half"}
LLAMA = {"model_type": "llama", "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "max_position_embeddings": 64, "rope_theta": 500.0,
         "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}}
ANGLES = np.arange(6)[:, None] * 10000.0 ** (-np.arange(0, 8, 2) / 8)
COS, SIN = np.cos(ANGLES), np.sin(ANGLES)
ONES = np.ones((1, 1, 6, 8), "f4")
TURNED = np.stack([COS - SIN, COS + SIN], -1).reshape(ONES.shape).astype("f4")  # interleaved
WEIGHTS = file(table=TABLE)
REQUESTS = {
    "GET": get("/encode?scheme=sinusoidal&len=5&dim=8"),
    "HEAD": get("/encode?scheme=sinusoidal&len=5&dim=8").replace(b"GET", b"HEAD", 1),
    "json": ask(scheme="rope", head_dim=8, len=4, scaling={"type": "linear", "factor": 2.0}),
    "json of arrays": ask("/rotate", scheme="rope", layout="half", q=Q.tolist()),
    "many positions": ask(scheme="rope", head_dim=2, outputs=["cos"], format="raw", positions=list(range(9000))),
    "npy": send("/rotate?scheme=rope&layout=half&format=npy", npy(Q), "application/octet-stream"),
    "npz": send("/rotate?scheme=rope&layout=half&format=npz", savez(q=Q, k=K), "application/zip"),
    "multipart": parts("/rotate", {"scheme": "rope", "layout": "half", "format": "safetensors"}, q=Q, k=K),
    "attention": parts("/attention", {"scheme": "alibi", "num_heads": 2, "outputs": ["probs", "output"], "format": "npz"}, q=Q, k=K, v=V),
    "attention of x": parts("/attention", {"scheme": "rope", "num_heads": 2, "seed": 1, "outputs": ["output"], "format": "raw"}, x=X),
    "terms of drawn x": ask("/attention", scheme="sinusoidal", num_heads=2, seed=1, outputs=["terms"], format="raw", x={"shape": [5, 8], "seed": 1, "std": 1}),
    "oip": oip(),
    "oip metadata": get("/v2/models/rope"),
    "stream": ask(scheme="alibi", num_heads=4, len=512, outputs=["bias"], format="raw"),
    "stream of json": ask(scheme="sinusoidal", len=700, dim=64),
    "stream of npz": ask(scheme="t5", num_heads=4, len=300, seed=3, format="npz"),
    "large body": ask(scheme="rope", head_dim=2, outputs=["cos"], format="raw", positions=list(range(60000))),
    "picture": ask(scheme="alibi", num_heads=2, len=40, outputs=["bias"], format="png"),
    "text": ask(scheme="sinusoidal", len=6, dim=8, format="text"),
    "every scheme": get("/schemes"),
    "openapi": get("/openapi.json"),
    "colours": get("/cmaps"),
    "limits": get("/limits"),
    "refused": ask(scheme="rope", head_dim=7, len=4),
    "PUT of weights": put("other", file(table=TABLE + 1)),
    "GET of weights": get("/weights/t5"),
    "list of weights": get("/weights"),
    "PUT of a preset": put("team", json.dumps({"config": ROPE}).encode(), "/presets/"),
    "presets": get("/presets?query=llama"),
    "hf_config": ask(hf_config=LLAMA, len=3, data=False),
    "gguf": send("/encode?len=2&data=false", gguf_writer.file("llama"), "application/x-gguf"),
    "gguf as keys": ask(gguf={"general.architecture": "llama", "llama.attention.key_length": 8}, len=2),
    "explain": ask("/explain", hf_config=LLAMA),
    "explain as text": ask("/explain", hf_config=LLAMA, format="text"),
    "translate": ask("/translate", to="all", hf_config=LLAMA),
    "said": ask(said={"to": "llama.cpp", "text": "--rope-scaling linear --rope-scale 2 --rope-freq-base 500"}, head_dim=8, layout="half", len=2),
    "derive": ask("/derive", scheme="recursive", dim=4, seed=1, position=[2, 3], channel=1),
    "golden": ask("/golden", scheme="rope", layout="half", head_dim=8, seed=5),
    "analyze": ask("/analyze", configs=[{"scheme": "sinusoidal", "dim": 8}, {"scheme": "rope", "head_dim": 8}], len=6, metrics=["similarity", "difference"]),
    "diagnose": ask("/diagnose", **ROPE, cos=COS[1:].tolist(), sin=SIN[1:].tolist()),
    "diagnose of files": parts("/diagnose", {"scheme": "rope", "layout": "half"}, q=ONES, q_out=TURNED),
    "diagnose of maps": parts("/diagnose", {"scheme": "alibi", "num_heads": 2}, q=Q, k=K, scores=Q @ K.swapaxes(-1, -2)),
    "tool": tool("encode", scheme="rope", head_dim=8, len=2),
    "tool that explains": tool("explain", hf_config=LLAMA),
    "tool with a picture": tool("picture", of="encode", scheme="alibi", num_heads=2, len=20),
    "tool that refuses": tool("encode", scheme="rope", head_dim=7, len=2),
    "tools": post(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode(), "/mcp", *(f"{name}: {value}" for name, value in JSON.items())),
    "resource": post(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "posenc://presets/llama-3.1"}}).encode(), "/mcp", *(f"{name}: {value}" for name, value in JSON.items())),
    "stored weights": ask(scheme="t5", num_heads=2, len=9, format="raw", weights="t5"),
}

TRAINED = {"task": "local", "steps": 2, "train_len": 16, "eval_len": 24, "seed": 1, "configs": [{"scheme": "rope"}]}
EXPERIMENTS = {"lines": ask("/experiments", **TRAINED), "tool": tool("experiment", **TRAINED)}
N_PROBE = 33


def probe():
    return ask(scheme="alibi", num_heads=2, len=N_PROBE, outputs=["bias"], format="raw")


@functools.cache
def probe_answer():
    """From Press et al.: slope 2^(-8 h / H) times the distance, negative; both directions alike."""
    position = np.arange(N_PROBE)
    rel = position[None, :] - position[:, None]
    return (np.array([2.0 ** -4, 2.0 ** -8])[:, None, None] * -abs(rel)).astype("<f4")


# ---- Answers --------------------------------------------------------------------------------------------------------------

DROPPED = (None, None)
MEMORY = b"memory for this request"


def answer_of(client, request):
    """(status, body); DROPPED when the connection ended before the answer did. A timeout is a failure."""
    try:
        client.send(request)
        if request.startswith(b"HEAD"):
            return client.head()[0], b""
        status, _, body = client.answer()
        if b"/mcp " in request[:20] and MEMORY in body:
            status = 503  # by the tool's result, or by the message
        return status, re.sub(rb'"stored_at":"[^"]*"|seconds\\*":(?:[-+.0-9e]+|\[[^]]*\])|in [.0-9]+ s', b"", body)
    except TimeoutError:
        raise
    except (AssertionError, ValueError, OSError):
        return DROPPED


def answer_on_new(server, request):
    try:
        with Client(server) as client:
            return answer_of(client, request)
    except TimeoutError:
        raise
    except OSError:
        return DROPPED


def is_right(server):
    """The next request, by value."""
    status, body = answer_on_new(server, probe())
    return status == 200 and body == probe_answer().tobytes()


class Crowd:
    """Clients that send these requests on new and used connections, some of which leave, until stop() or no server answers. wrong: whole
    answers that are neither right nor 503."""

    def __init__(self, server, right, n=4, leaving=0.1):
        self.server, self.right, self.leaving = server, right, leaving
        self.wrong, self.n_of, self.stopped = [], collections.Counter(), False
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(n)]
        for thread in self.threads:
            thread.start()

    def run(self, seed):
        rng = random.Random(seed)
        while not self.stopped and not self.wrong:
            try:
                with Client(self.server) as client:
                    self.ask_some(client, rng)
            except ConnectionRefusedError:
                return
            except TimeoutError:
                self.wrong.append(("no answer", seed))
            except OSError:
                pass

    def ask_some(self, client, rng):
        for name in rng.choices(list(self.right), k=rng.randrange(1, 5)):
            if rng.random() < self.leaving:
                client.send(REQUESTS[name])
                return
            answer = answer_of(client, REQUESTS[name])
            self.n_of[answer[0]] += 1
            if answer == DROPPED:
                return
            if answer[0] != 503 and answer != self.right[name]:
                self.wrong.append((name, answer[0], answer[1][:300]))

    def stop(self):
        """How many answers of each status there were."""
        self.stopped = True
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()
        assert not self.wrong, (self.wrong, self.server.stderr_text()[-2000:])
        return self.n_of
