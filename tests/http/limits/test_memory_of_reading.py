"""Memory for reading a request and planning its answer also counts for --max-memory: the resident set stays
within it for the largest requests of each kind."""
import json
import struct

import numpy as np
import pytest

from conftest import SANITIZED, start_server
import stated_work
from tensors import multipart, npy
from test_npz_in import savez

MIB = 1 << 20
MAX = 64 * MIB
NUMBERS = b"0," * (24 * MIB) + b"0"  # a body may have four fifths
SOME_NUMBERS = b"0," * 1310720 + b"0"


def inference(document, tail=b""):
    head = document if isinstance(document, bytes) else json.dumps(document).encode()
    return head + tail, {"Inference-Header-Content-Length": str(len(head))}


def stored(n):
    """A safetensors file of n tensors with short names."""
    head = ("{" + ",".join(f'"{i:x}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for i in range(n)) + "}").encode()
    return struct.pack("<Q", len(head)) + head


def as_json(scheme, members):
    return b'{"scheme":"' + scheme + b'",' + members + b"}"


BIG = np.zeros((1, 36 * MIB // 4 // 64, 64), ">f4")  # 36 MiB, to be copied as it is read
WORDS = b"\0\0\0\0" * (MIB // 4)

REQUESTS = {  # built by the test that sends it: some take seconds and half a gigabyte
    "numbers": lambda: ("/encode", as_json(b"sinusoidal", b'"positions":[' + NUMBERS + b"]"), {}),
    "numbers, inference": lambda: ("/v2/models/sinusoidal/infer", b'{"inputs":[{"name":"positions","datatype":"FP64","shape":[4],"data":[' + NUMBERS + b"]}]}", {}),
    "numbers, inference with a header": lambda: ("/v2/models/sinusoidal/infer", *inference(
        b'{"inputs":[{"name":"positions","datatype":"FP64","shape":[4],"data":[' + NUMBERS + b"]}]}", b"\0" * 8)),
    "numbers that fit": lambda: ("/encode", as_json(b"sinusoidal", b'"dim":2,"format":"raw","positions":[' + SOME_NUMBERS + b"]"), {}),
    "numbers of another dtype": lambda: ("/rotate", as_json(b"rope", b'"q":{"dtype":"f64","shape":[1,20480,64],"data":[' + SOME_NUMBERS[:-2] + b"]}"), {}),
    "numbers of another dtype, inference": lambda: ("/v2/models/rope/infer", b'{"inputs":[{"name":"q","datatype":"FP64","shape":[1,1,20480,64],"data":['
                                            + SOME_NUMBERS[:-2] + b'],"parameters":{}}]}', {}),
    "words": lambda: ("/attention", as_json(b"none", b'"tokens":[' + b'"",' * 349000 + b'""]'), {}),
    "words, inference": lambda: ("/v2/models/none/infer", *inference(
        {"inputs": [{"name": "tokens", "datatype": "BYTES", "shape": [len(WORDS) // 4], "parameters": {"binary_data_size": len(WORDS)}}]}, WORDS)),
    "words beside numbers, inference": lambda: ("/v2/models/none/infer", *inference(
        b'{"inputs":[{"name":"tokens","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":%d}},{"name":"key_mask","shape":[1],"datatype":'
        b'"FP64","data":[' % len(WORDS) + b"0," * (6 * MIB) + b"0]}]}", WORDS)),
    "empty lists": lambda: ("/encode", as_json(b"sinusoidal", b'"a":[' + b"[]," * 20000 + b"[]]"), {}),
    "objects": lambda: ("/encode", as_json(b"sinusoidal", b'"a":[' + b'{"":1},' * 149000 + b"{}]"), {}),
    "objects, inference": lambda: ("/v2/models/rope/infer", b'{"inputs":[' + b'{"":1},' * 149000 + b"{}]}", {}),
    "truths, inference": lambda: ("/v2/models/alibi/infer", b'{"inputs":[{"name":"key_mask","datatype":"BOOL","shape":[1],"data":[' + b"true," * 209000 + b"true]}]}", {}),
    "segments": lambda: ("/encode", as_json(b"rope", b'"segments":[' + b'{"len":1},' * 60000 + b'{"len":1}]'), {}),
    "parameters that are JSON": lambda: ("/v2/models/rope/infer", json.dumps({"inputs": [], "parameters": {"a": "[" + "0," * 520000 + "0]"}}).encode(), {}),
    "a config that repeats a list": lambda: ("/encode", as_json(b"alibi", b'"num_heads":1,"len":%d,"data":false,"key_mask":[' % 1310720 + SOME_NUMBERS[:-2] + b"]"), {}),
    "a tensor with its bytes swapped": lambda: ("/rotate?scheme=rope&format=raw", npy(BIG), {"Content-Type": "application/x-npy"}),
    "a tensor by columns": lambda: ("/rotate?scheme=rope&format=raw", npy(np.asfortranarray(BIG, "f4")), {"Content-Type": "application/x-npy"}),
    "an archive of small files": lambda: ("/rotate?scheme=rope", savez(**{f"t{i}": np.zeros(1, "f4") for i in range(60000)}), {"Content-Type": "application/zip"}),
    "a safetensors head": lambda: ("/rotate?scheme=rope", stored(18000), {"Content-Type": "application/vnd.safetensors"}),
    "many parts": lambda: ("/rotate", *multipart(request='{"scheme":"rope"}', **{f"t{i}": npy(np.zeros(MIB // 8, ">f8")) for i in range(40)})),
    "stored weights": lambda: ("PUT /weights/w", stored(18000), {}),
    "numbers beside bytes, inference": lambda: ("/v2/models/rope/infer", json.dumps(
        {"inputs": [], "parameters": {"len": 20000, "head_dim": 200}, "outputs": [{"name": "cos"}, {"name": "sin", "parameters": {"binary_data": True}}]}).encode(), {}),
    "an index with a body": lambda: ("/v2/repository/index", b'{"ready":true' + b" " * (40 * MIB) + b"}", {}),
    "the description": lambda: ("GET /openapi.json", b"", {}), "the catalogue": lambda: ("GET /schemes", b"", {}),
}


@pytest.mark.skipif(SANITIZED, reason="measures memory")
@pytest.mark.parametrize("name", REQUESTS)
def test_reading_keeps_to_max_memory(name):
    path, body, headers = REQUESTS[name]()
    method, _, path = path.rpartition(" ")
    with start_server("--max-memory", "64MiB", "--workers", "2", "--io-threads", "1") as server:
        for _ in range(3):
            server.request("POST", "/encode", b'{"scheme":"rope","len":8}')
        idle, answer = server.memory("VmRSS"), server.request(method or "POST", path, body, headers)
        over = server.memory("VmHWM") - idle
        assert over <= 1.2 * MAX, f"{over / MIB:.0f} MiB over idle, {answer!r}"
        assert answer.status in (200, 201, 400, 413, 422), answer  # no other request runs, so waiting would not help


EMPTY = b"[" + b"{}," * MIB + b"{}]"
METHODS = "initialize", "ping", "tools/list", "resources/list", "resources/read", "prompts/list", "prompts/get", "notifications/initialized"


def everywhere(server):
    """(name, method, path, body) of every row that takes a body, every tool and every kind of message, each with a long list of nothing."""
    for path, methods in stated_work.routes(server).items():
        for method in {"POST", "PUT"} & set(methods):
            yield f"{method} {path}", method, stated_work.named(path), b'{"a":' + EMPTY + b"}"
    own = {"picture": "of", "presets": "query", "schemes": "name"}
    named = [("tools/call", tool, own.get(tool, "values")) for tool in stated_work.tools(server)]
    for method, name, field in named + [(method, "teach_scheme", "audience") for method in METHODS]:
        head = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": name, "uri": "posenc://schemes/rope", "arguments": {field: 0}}})
        yield f"{method} {name} {field}", "POST", "/mcp", head.replace("0}}", "%s}}").encode() % EMPTY


@pytest.mark.skipif(SANITIZED, reason="measures memory")
def test_every_row_keeps_to_max_memory():
    with start_server("--max-memory", "96MiB", "--workers", "2", "--io-threads", "1") as server:
        server.request("POST", "/encode", b'{"scheme":"rope","len":8}')
        idle = server.memory("VmRSS")
        for name, method, path, body in everywhere(server):
            answer = server.request(method, path, body, {"Content-Type": "application/json"})
            over = server.memory("VmHWM") - idle
            assert over <= 1.2 * 96 * MIB, f"{name}: {over / MIB:.0f} MiB over idle, {answer!r}"
            assert answer.status not in (500, 503), (name, answer)
