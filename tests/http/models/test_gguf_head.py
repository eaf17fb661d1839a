"""Heads of GGUF files as a body and as a part, against a writer of our own (truth/gguf_writer.py): files as the
converter writes them and cut everywhere. Small files that lie, or whose keys have other types, are rows: ../../cases/gguf.jsonl."""
import json
import struct

import numpy as np
import pytest

from truth import gguf_writer as gguf
from truth.gguf_writer import head

SMALL = [("general.architecture", "string", "llama"), ("llama.attention.key_length", "u32", 8)]


def send(server, body, query="len=2&data=false", path="/encode", content_type="application/x-gguf"):
    return server.request("POST", f"{path}?{query}", body, {"Content-Type": content_type})


def answered(server, body, **more):
    response = send(server, body, **more)
    assert response.status == 200, response
    return response.json()


def refused(server, status, word, body, pointer=None, **more):
    response = send(server, body, **more)
    assert response.status == status and word in response.json()["detail"], response
    if pointer is not None:
        assert response.json()["pointer"] == pointer
    return response.json()


def parts(*named):
    body = b"".join(b'--B\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode(), data) for name, data in named)
    return body + b"--B--\r\n"


# ---- Files ----


@pytest.mark.parametrize("name", gguf.ARCHITECTURES)
def test_as_the_converter_writes_it(server, name):
    _, _, layer_type, expected = gguf.ARCHITECTURES[name]
    query = "len=2&data=false" + (f"&layer_type={layer_type}" if layer_type else "")
    for version in (2, 3):
        answer = answered(server, gguf.file(name, version=version), query=query)
        assert {**answer["config"], **expected} == answer["config"]
        assert answer["gguf"]["architecture"] == name


def test_a_file_is_its_keys(server):
    """The same bytes as the keys written as JSON."""
    for name, (keys, tensors, layer_type, _) in gguf.ARCHITECTURES.items():
        asked = {"layer_type": layer_type} if layer_type else {}
        said = {key: (bool(x) if kind == "bool" else float(np.float32(x)) if kind == "f32" else x) for key, kind, x in keys if "tokenizer" not in key}
        said["tensors"] = {tensor: [float(x) for x in numbers] for tensor, numbers in tensors}
        by_json = server.ask("/encode", gguf=said, len=3, format="raw", **asked)
        query = "len=3&format=raw" + "".join(f"&{k}={v}" for k, v in asked.items())
        by_file = send(server, gguf.file(name), query=query)
        assert by_file.status == 200 and by_file.body == by_json.body, name


def test_ways_in(server):
    file, request = head(SMALL), json.dumps({"len": 2, "data": False}).encode()
    by_body = answered(server, file)
    assert answered(server, file, content_type="application/octet-stream") == by_body
    multipart = "multipart/form-data; boundary=B"
    assert answered(server, parts(("request", request), ("gguf", file)), query="", content_type=multipart) == by_body
    assert answered(server, parts(("gguf", file), ("request", request)), query="", content_type=multipart) == by_body
    assert answered(server, file, query="len=2&data=false&base=77")["config"]["base"] == 77
    refused(server, 415, "GGUF", file, content_type="application/json")
    refused(server, 400, "does not begin", parts(("request", request), ("gguf", b"GGML" + file)), "/gguf", query="", content_type=multipart)
    assert send(server, file, path="/rotate").status == 422


def test_two_files_in_one_analysis(server):
    slow, quick = head(SMALL), head(SMALL + [("llama.rope.freq_base", "f32", 5e5)])
    request = {"configs": [{"gguf": "a"}, {"gguf": "b"}], "len": 9, "metrics": ["difference"]}
    body = parts(("a", slow), ("request", json.dumps(request).encode()), ("b", quick))
    answer = answered(server, body, query="", path="/analyze", content_type="multipart/form-data; boundary=B")
    assert [c["base"] for c in answer["configs"]] == [10000, 5e5] and answer["results"][1]["difference"]["equal"] < 1
    refused(server, 422, "name it gguf", parts(("c", slow), ("request", json.dumps(request).encode())), "/c", query="", path="/analyze",
            content_type="multipart/form-data; boundary=B")


def test_types_of_numbers(server):
    every = [(f"x.{kind}", kind, "a" if kind == "string" else 1) for kind in gguf.TYPES if kind != "array"]
    every += [(f"x.{kind}s", f"{kind}[]", ["a", "b"] if kind == "string" else [0, 1]) for kind in gguf.TYPES if kind != "array"]
    assert answered(server, head(SMALL + every))["config"]["head_dim"] == 8


def test_values_of_every_type(server):
    """Keys that are not read have no type that they must have; /explain states what they hold."""
    values = {"u8": 200, "i8": -5, "u16": 60000, "i16": -300, "u32": 4000000000, "i32": -70000, "u64": 1 << 40,
              "i64": -1 << 40, "f32": 0.5, "f64": 0.1, "bool": 1, "string": "abc"}
    keys = [(f"llama.rope.one_{kind}", kind, x) for kind, x in values.items()]
    keys += [(f"llama.rope.two_{kind}", f"{kind}[]", [x, x]) for kind, x in values.items() if kind != "string"]
    answer = answered(server, head(SMALL + keys), query="", path="/explain")
    told = {field["pointer"].rpartition(".rope.")[2]: field["value"] for field in answer["fields"]}
    for kind, x in values.items():
        assert told[f"one_{kind}"] == x and told.get(f"two_{kind}", [x, x]) == [x, x], kind
    assert told["one_bool"] is True and len(told) == 1 + len(keys)
    [off] = answered(server, head(SMALL + [("llama.rope.x", "bool", 0)]), query="", path="/explain")["fields"][1:]
    assert off["value"] is False


# ---- Cuts ----


def test_every_cut(server):
    file = head(SMALL + [("tokenizer.ggml.tokens", "string[]", ["a", "bc"])], [("rope_freqs.weight", [1, 2, 3, 4])])
    whole = answered(server, file)
    assert whole["config"]["scaling"]["divisors"] == [1, 2, 3, 4]
    end_of_keys = len(head(SMALL + [("tokenizer.ggml.tokens", "string[]", ["a", "bc"])], data=False)) // 32 * 32 - 32
    for n in range(len(file) - 16):  # behind the numbers is padding
        response = send(server, file[:n])
        assert response.status in (400, 422), n
        problem = response.json()
        if n == 0:
            continue
        if response.status == 400:
            assert f"ends at byte {n}" in problem["detail"] or "GGUF" in problem["detail"], n
        else:
            assert n > end_of_keys and problem["pointer"] == "/gguf/tensors/rope_freqs.weight" and "needs" in problem, n
    needed = refused(server, 422, "not sent", file[:-17])["needs"]
    assert needed == [[len(file) - 32, len(file) - 32 + 15]]
    first, last = needed[0]
    assert np.frombuffer(file[first:last + 1], "<f4").tolist() == [1, 2, 3, 4]
    assert refused(server, 422, "table of tensors is cut", file[:-70])["needs"] is None
    qwen = head([("general.architecture", "string", "qwen2"), ("qwen2.attention.key_length", "u32", 8)], [("rope_freqs.weight", [1, 2, 3, 4])])
    assert answered(server, qwen[:-20])["config"]["head_dim"] == 8  # uses no divisors


# ---- Lies too long for a row ----

ARCH = ("general.architecture", "string", "llama")
LARGE = [
    ("1024 bytes", head([("general.architecture", "string", "x" * 1025)])),
    ("65536 elements", head([ARCH, ("llama.rope.dimension_sections", "i32[]", [0] * 65537)])),
    ("65535 bytes", head([("k" * 65536, "u32", 1)])),
    ("ends at byte", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + gguf.text("a") + struct.pack("<IIQ", 9, 12, 1 << 40) + bytes(999)),
]


@pytest.mark.parametrize("word,file", LARGE, ids=range(len(LARGE)))
def test_large_lies(server, word, file):
    refused(server, 400, word, file)


def test_tensors_of_another_form(server):
    at = "/gguf/tensors/rope_freqs.weight"
    refused(server, 422, "one dimension", head(SMALL, [("rope_freqs.weight", (2, 2))]), at)
    refused(server, 422, "needed: 4", head(SMALL, [("rope_freqs.weight", [1, 2, 3])]), at)
    refused(server, 422, "65536 numbers", head(SMALL, [("rope_freqs.weight", (65537,))]), at)
    file = bytearray(head(SMALL, [("rope_freqs.weight", [1, 2, 3, 4])]))
    place = file.index(b"rope_freqs.weight") + len("rope_freqs.weight") + 4 + 8
    file[place] = 1
    refused(server, 422, "f32", bytes(file), at)
    file[place] = 0
    file[place + 4:place + 12] = struct.pack("<Q", (1 << 62) + 1)
    assert refused(server, 422, "", bytes(file), at)["needs"] is None
    file[place + 4:place + 12] = struct.pack("<Q", 1 << 50)
    assert refused(server, 422, "not sent", bytes(file), at)["needs"][0][1] - (1 << 50) < 1000


def test_a_large_head_is_quick_and_small(server):
    """A vocabulary of a million tokens, and colliding counts of keys about positions."""
    tokens = [("tokenizer.ggml.tokens", "string[]", ["token"] * 1000000)]
    many = [(f"llama.rope.k{i}", "u32", i) for i in range(60000)]
    for file in (head(SMALL + tokens), head(SMALL + many)):
        before, worked = server.memory("VmHWM"), server.processor()
        answered(server, file)
        assert server.processor() - worked < 5
        assert server.memory("VmHWM") - before < 3 * len(file) + (8 << 20)


def test_as_many_members_as_keys(server):
    keys = {"general.architecture": "qwen2", "qwen2.attention.key_length": 8}
    most = {**keys, **{f"a{i}": 1 for i in range(65536 - len(keys))}}
    assert server.ask("/encode", gguf=most, len=1, data=False).json()["config"]["head_dim"] == 8
    for fields in (dict(gguf={**most, "b": 1}), dict(configs=[{"gguf": {**most, "b": 1}}], metrics=["bounds"])):
        response = server.post("/analyze" if "configs" in fields else "/encode", {**fields, "len": 1})
        assert response.status == 422 and "allowed: at most 65536" in response.json()["detail"], response
        assert response.json()["pointer"].endswith("/gguf")
