"""/golden: a few exact tensors of a configuration. The truth is mpmath: frequencies, cosines and rotations in 200 bits, rounded once; queries and
keys from the generator of tests/truth. Other configurations, and refusals, are rows: ../cases/golden.jsonl."""
import json

import mpmath
import numpy as np
import pytest

import safetensors_reader
from truth import nearest
from truth.absolute import seeded
from tensors import from_json, from_safetensors

MOST = 64 << 10


def golden(server, path="/golden", **fields):
    """The tensors and the metadata of a file, whose members are JSON."""
    answer = server.ask(path, **fields) if fields else server.get(path)
    assert answer.status == 200, answer
    assert len(answer.body) <= MOST
    tensors, metadata, _ = safetensors_reader.loads(answer.body)
    return tensors, {name: json.loads(text) if text[0] == "{" else text for name, text in metadata.items()}


def exact_rotation(x, positions, w, factor=1):
    """Half layout: channels c and c + C, in 200 bits; each number rounded once."""
    out = np.empty(x.shape)
    pairs = len(w)
    with mpmath.workprec(200):
        for place in np.ndindex(x.shape[:-1]):
            for c in range(pairs):
                angle = mpmath.mpf(float(positions[place[-1]])) * w[c]
                a, b = mpmath.mpf(float(x[place][c])), mpmath.mpf(float(x[place][c + pairs]))
                cos, sin = mpmath.cos(angle) * factor, mpmath.sin(angle) * factor
                out[place][c], out[place][c + pairs] = nearest(a * cos - b * sin, "f32"), nearest(b * cos + a * sin, "f32")
    return out


def ladder(base, width):
    with mpmath.workprec(200):
        return [mpmath.mpf(base) ** (-mpmath.mpf(2 * c) / width) for c in range(width // 2)]


# ---- The numbers -------------------------------------------------------------------------------------------------------------


def test_rotated_is_the_truth(server):
    """To one step of f32, of which half is the rounding: products in double lie between."""
    found, meta = golden(server, scheme="rope", layout="half", head_dim=16, base=500000.0, seed=5)
    positions = found["position_ids"]
    assert positions.dtype == np.int64 and positions.tolist() == [0, 1, 2, 3, 17, 4095, 4096, 4097, 131071]
    assert found["q"].tobytes() == seeded("q", (1, 2, 9, 16), 5, 1).tobytes() and found["k"].tobytes() == seeded("k", (1, 1, 9, 16), 5, 1).tobytes()
    w = ladder(500000, 16)
    for side in "qk":
        truth = exact_rotation(found[side], positions, w)
        assert found[f"{side}_out"].tobytes() == truth.astype("f4").tobytes()
    with mpmath.workprec(200):
        for name, function in (("cos", mpmath.cos), ("sin", mpmath.sin)):
            truth = [[nearest(function(mpmath.mpf(int(p)) * w[c]), "f32") for c in range(8)] for p in positions]
            assert found[name].tobytes() == np.array(truth, "f4").tobytes()
    assert found["inv_freq"].dtype == np.float64 and np.array_equal(found["inv_freq"], [float(x) for x in w])
    assert list(meta["configs"]) == ["all"] and meta["configs"]["all"]["base"] == 500000 and meta["golden"] == "1" and meta["format"] == "pt"
    most = max(np.abs(found["q_out"]).max(), 0)
    assert meta["tolerance"]["q_out"] == pytest.approx(12 * 2.0 ** -24 * most) and meta["tolerance"]["cos"] == 2.0 ** -23


# ---- The file ----------------------------------------------------------------------------------------------------------------


def test_every_preset(server):
    """A file, or a refusal that says why: weights, a grid, a relative scheme."""
    for preset in server.get("/presets").json()["presets"]:
        answer = server.get(f"/golden/{preset['name']}")
        if answer.status == 200:
            assert len(answer.body) <= MOST
            assert preset["config"]["scheme"] in ("none", "rope", "sinusoidal", "alibi", "fourier", "xpos"), preset["name"]
        else:
            assert answer.status == 422 and preset["config"]["scheme"] not in ("rope", "alibi"), (preset["name"], answer)


def test_order_and_json(server):
    """Tensors are in the order of the law, not sorted; JSON has the same numbers."""
    answer = server.get("/golden/llama-3.1")
    n = int.from_bytes(answer.body[:8], "little")
    head = json.loads(answer.body[8:8 + n])
    assert [name for name in head if name != "__metadata__"] == ["position_ids", "q", "k", "q_out", "k_out", "cos", "sin", "inv_freq"]
    begins = [row["data_offsets"][0] for name, row in head.items() if name != "__metadata__"]
    assert begins == sorted(begins) and len(answer.body) < 36 << 10
    text = server.get("/golden/llama-3.1?format=json")
    assert text.headers["Content-Type"] == "application/json" and text.json()["preset"] == "llama-3.1" and text.json()["golden"] == 1
    binary, written = from_safetensors(answer), from_json(text)
    assert list(binary) == list(written) and all(binary[name].tobytes() == written[name].tobytes() for name in binary)


def test_a_tag_to_pin(server):
    answer = server.get("/golden/llama-3.1", {"Accept": "application/json"})  # Accept does not matter
    assert answer.headers["Content-Type"] == "application/vnd.safetensors" and "Accept" not in (answer.headers["Vary"] or "")
    tag = answer.headers["ETag"]
    assert tag[0] == '"' and answer.headers["Cache-Control"] == "public, max-age=86400"
    again = server.get("/golden/llama-3.1", {"If-None-Match": tag})
    assert again.status == 304 and again.headers["ETag"] == tag and again.body == b""
    part = server.get("/golden/llama-3.1", {"Range": "bytes=8-99"})
    assert part.status == 206 and part.body == answer.body[8:100]
    head = server.request("HEAD", "/golden/llama-3.1")
    assert head.status == 200 and head.body == b"" and head.headers["ETag"] == tag and head.headers["Content-Length"] == str(len(answer.body))
    tags = {server.get(f"/golden/llama-3.1{query}").headers["ETag"] for query in ("", "?seed=1", "?dtype=bf16", "?positions=1,2", "?format=json", "?base=10000")}
    assert len(tags) == 6
    asked = server.request("QUERY", "/golden", json.dumps({"preset": "llama-3.1"}).encode(), {"Content-Type": "application/json"})
    assert asked.body == answer.body and asked.headers["ETag"]
    assert server.post("/golden", {"preset": "llama-3.1"}).body == answer.body
    alias = server.get("/golden/llama-3.1-8b")
    assert alias.status == 200 and alias.body == answer.body
