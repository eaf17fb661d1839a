"""/golden: a few exact tensors of a configuration. The truth is mpmath: frequencies, cosines and rotations in 200 bits, rounded once; queries
and keys from the generator of tests/truth."""
import json

import mpmath
import numpy as np
import pytest

import truth.scaling as scalings
import safetensors_reader
from conftest import start_server
from truth import nearest
from truth.absolute import seeded
from tensors import from_json, from_safetensors

MOST = 64 << 10
LLAMA = {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}
LONGROPE = {"type": "longrope", "factor": 4, "original_max_position_embeddings": 64, "short_factor": [1, 1.5, 2, 3], "long_factor": [1, 4, 8, 16]}


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


def test_the_same_as_rotate(server):
    """q, k and positions of the file, sent to /rotate in f64."""
    found, _ = golden(server, "/golden/llama-3.1")
    again = from_safetensors(server.ask("/rotate", preset="llama-3.1", positions=found["position_ids"].tolist(), dtype="f64", format="safetensors",
                                        **{name: {"dtype": "f64", "shape": list(found[name].shape), "data": found[name].astype("f8").ravel().tolist()} for name in "qk"}))
    for name in "qk":
        assert np.array_equal(again[name].astype("f4"), found[f"{name}_out"])
    assert np.allclose(found["inv_freq"], [float(w) for w in scalings.inv_freq(LLAMA, 500000, 128, 8192)], rtol=1e-15, atol=0)


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f64"])
def test_dtypes(server, dtype):
    """Queries are rounded first, then rotated; inv_freq and positions keep their dtype."""
    found, _ = golden(server, scheme="rope", layout="half", head_dim=8, dtype=dtype, positions=[0, 3, 1000])
    w = ladder(10000, 8)
    q = seeded("q", (1, 2, 3, 8), 0, 1).astype("f8")
    rounded = np.vectorize(lambda x: nearest(mpmath.mpf(float(x)), dtype))(q)
    assert np.array_equal(found["q"].astype("f8"), rounded)
    with mpmath.workprec(200):
        for place in np.ndindex(1, 2, 3):
            for c in range(4):
                angle = mpmath.mpf([0, 3, 1000][place[-1]]) * w[c]
                truth = mpmath.mpf(rounded[place][c]) * mpmath.cos(angle) - mpmath.mpf(rounded[place][c + 4]) * mpmath.sin(angle)
                assert abs(float(found["q_out"][place][c]) - float(truth)) <= (2.0 ** -51 if dtype == "f64" else abs(nearest(truth, dtype) - float(found["q_out"][place][c])) + 1e-2)
                if dtype != "f64":
                    assert float(found["q_out"][place][c]) == nearest(truth, dtype)
    assert found["inv_freq"].dtype == np.float64 and found["position_ids"].dtype == np.int64


def test_two_lengths(server):
    """A scaling that reads the length has two ladders."""
    found, meta = golden(server, scheme="rope", layout="half", head_dim=8, scaling=LONGROPE)
    assert found["position_ids"].tolist() == [0, 1, 2, 3, 17, 63, 64, 65, 255] and list(meta["configs"]) == ["short", "long"]
    for kind, divisors, length in (("short", LONGROPE["short_factor"], 64), ("long", LONGROPE["long_factor"], 256)):
        assert meta["configs"][kind]["scaling"]["seq_len"] == length
        assert np.allclose(found[f"inv_freq.{kind}"], [10000 ** (-c / 4) / divisor for c, divisor in enumerate(divisors)], rtol=1e-15, atol=0)
        factor = meta["configs"][kind]["attention_factor"]
        assert np.allclose(found[f"cos.{kind}"], factor * np.cos(np.outer(found["position_ids"], found[f"inv_freq.{kind}"])), rtol=0, atol=1e-6)


@pytest.mark.parametrize("more, length", [({"attention_factor": 1.5}, 131072), ({"factor": 1}, 65),
                                          ({"factor": 1.01}, 65),
                                          ({"attention_factor": 1.5, "max_position_embeddings": 512}, 512)])
def test_two_lengths_without_a_long_one(server, more, length):
    """Without a factor above 1 the long list is still that of a length beyond the original one."""
    scaling = {name: value for name, value in LONGROPE.items() if name != "factor"}
    found, meta = golden(server, scheme="rope", layout="half", head_dim=8, scaling={**scaling, **more})
    for kind, seq_len in (("short", 64), ("long", length)):
        assert meta["configs"][kind]["scaling"]["seq_len"] == seq_len
        w = [10000 ** (-c / 4) / divisor for c, divisor in enumerate(LONGROPE[f"{kind}_factor"])]
        assert np.allclose(found[f"inv_freq.{kind}"], w, rtol=1e-15, atol=0)


def test_a_kind_for_each_stack(server):
    """T5: the decoder's buckets are of keys behind the query only, so all 32 of them are of distances up to 128."""
    keys = {"general.architecture": "t5", "t5.attention.head_count": 2, "t5.attention.relative_buckets_count": 32}
    found, meta = golden(server, gguf=keys, seed=3)
    table = seeded("table", (32, 2), 3, 0.02)
    q, k = found["q_positions"][:, None], found["k_positions"]
    assert meta["layers"] == {"encoder": ["encoder"], "decoder": ["decoder"]}
    near = np.maximum(q - k, 0)
    far = 16 + (np.log(np.maximum(near, 1) / 16) / np.log(128 / 16) * 16).astype(int)
    bucket = np.where(near < 16, near, np.minimum(far, 31))
    assert np.array_equal(found["bias.decoder"], table[bucket].transpose(2, 0, 1))
    distance = abs(k - q)
    far = 8 + (np.log(np.maximum(distance, 1) / 8) / np.log(128 / 8) * 8).astype(int)
    bucket = np.where(distance < 8, distance, np.minimum(far, 15)) + 16 * (k > q)
    assert np.array_equal(found["bias.encoder"], table[bucket].transpose(2, 0, 1))


@pytest.mark.parametrize("scale, factor", [
    ({"type": "ministral", "original_max_position_embeddings": 4096}, lambda p: 1 + 0.1 * np.log(1 + p // 4096)),
    ({"type": "llama4", "beta": 0.25}, lambda p: 1 + 0.25 * np.log(1 + (p + 1) // 8192)),
    ({"type": "logn", "original_max_position_embeddings": 2048}, lambda p: np.maximum(1, np.log(p + 1) / np.log(2048)))])
def test_scaled_queries(server, scale, factor):
    request = {"scheme": "rope", "layout": "half", "head_dim": 8, "dtype": "f64", "positions": [0, 5, 4095, 4096, 131071]}
    found, meta = golden(server, **request, query_scale=scale)
    plain, _ = golden(server, **request)
    factors = factor(np.array(request["positions"], float))
    assert np.allclose(found["q_out"], plain["q_out"] * factors[:, None], rtol=1e-15, atol=0) and factors[-1] > 1.1
    assert np.array_equal(found["k_out"], plain["k_out"]) and np.array_equal(found["cos"], plain["cos"])
    assert meta["configs"]["all"]["query_scale"].items() >= scale.items()


def test_absolute_and_bias(server):
    found, _ = golden(server, scheme="sinusoidal", dim=6)
    p = found["position_ids"].astype("f8")
    angles = np.outer(p, 10000.0 ** (-np.arange(0, 6, 2) / 6))
    assert list(found) == ["position_ids", "encoding"] and np.allclose(found["encoding"][:, 0::2], np.sin(angles), rtol=0, atol=1e-6)
    found, _ = golden(server, scheme="alibi", num_heads=2, form="symmetric")
    q, k = found["q_positions"], found["k_positions"]
    assert q.tolist() == [0, 1, 17, 1023] and k.tolist() == [0, 1, 2, 16, 17, 500, 1023]
    assert np.array_equal(found["bias"], -np.array([2.0 ** -4, 2.0 ** -8])[:, None, None] * np.abs(q[:, None] - k))


def test_several_axes(server):
    found, _ = golden(server, "/golden/qwen2.5-vl")
    assert found["position_ids"].T.tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2], [2, 2, 3], [2, 3, 2], [3, 2, 2], [5, 5, 5]] + [[p] * 3 for p in (4095, 4096, 131071)]
    w = 1e6 ** (-np.arange(64) / 64)
    axis = np.repeat([0, 1, 2], [16, 24, 24])
    assert np.allclose(found["cos"], np.cos(found["position_ids"].T[:, axis] * w), rtol=0, atol=2e-6)


def test_fractions(server):
    found, _ = golden(server, scheme="rope", head_dim=4, positions=[0.5, 2])
    assert found["position_ids"].dtype == np.float64 and found["position_ids"].tolist() == [0.5, 2]


# ---- The file ----------------------------------------------------------------------------------------------------------------


def test_layers_that_differ(server):
    found, meta = golden(server, "/golden/gemma-3-1b")
    assert found["position_ids"].tolist() == [0, 1, 2, 4095, 4096, 4097, 131071] and found["q"].shape == (1, 1, 7, 256)  # without 17 and 3
    assert meta["layers"] == {"full_attention": ["full_attention"], "sliding_attention": ["sliding_attention"]} and meta["preset"] == "gemma-3-1b"
    assert found["inv_freq.full_attention"][1] == pytest.approx(1e6 ** (-1 / 128)) and found["inv_freq.sliding_attention"][1] == pytest.approx(1e4 ** (-1 / 128))
    one, meta = golden(server, "/golden/gemma-3-1b?layer_type=sliding_attention")
    assert one["q"].shape == (1, 1, 9, 256) and one["inv_freq"].tobytes() == found["inv_freq.sliding_attention"].tobytes()


def test_layers_of_a_config(server):
    config = {"model_type": "gemma3_text", "num_attention_heads": 4, "hidden_size": 64, "head_dim": 16, "sliding_window": 4, "num_hidden_layers": 12,
              "rope_theta": 1000000, "rope_local_base_freq": 10000}
    found, meta = golden(server, hf_config=config)
    assert set(meta["configs"]) == {"full_attention", "sliding_attention"} and found["q"].shape == (1, 2, 9, 16)
    found, meta = golden(server, hf_config={**config, "rope_theta": 10000})  # alike: one kind, which both types have
    assert len(meta["configs"]) == 1 and "inv_freq" in found


def test_three_types_of_two_kinds(server):
    """DeepSeek V4: both types of compressed layers turn alike, and share their tensors."""
    slides, sparse, heavy = (f"{name}_attention" for name in ("sliding", "compressed_sparse", "heavily_compressed"))
    config = {"model_type": "deepseek_v4", "head_dim": 32, "qk_rope_head_dim": 8, "num_hidden_layers": 3,
              "compress_ratios": [0, 4, 128]}
    found, meta = golden(server, hf_config=config)
    assert meta["layers"] == {slides: [slides], sparse: [sparse, heavy]}
    for kind, base in ((slides, 1e4), (sparse, 1.6e5)):
        assert np.allclose(found[f"inv_freq.{kind}"], base ** (-np.arange(4) / 4), rtol=1e-15, atol=0)


def test_every_preset(server):
    """A file, or a refusal that says why: weights, a grid, a relative scheme."""
    for preset in server.get("/presets").json()["presets"]:
        answer = server.get(f"/golden/{preset['name']}")
        if answer.status == 200:
            assert len(answer.body) <= MOST
            assert preset["config"]["scheme"] in ("rope", "sinusoidal", "alibi", "fourier", "xpos"), preset["name"]
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


@pytest.mark.parametrize("path, fields, status, pointer, words", [
    ("/golden/llama-3.11", None, 404, "", "nearest: \"llama-3.1\""),
    ("/golden/qwertz", None, 404, "", "unknown preset"),
    ("/golden/gpt-2", None, 422, "/table", "three ways"),
    ("/golden/llama-3.1?len=4", None, 422, "/len", "positions of their own"),
    ("/golden/llama-3.1?format=npy", None, 406, "/format", "safetensors or json"),
    ("/golden/llama-3.1?preset=llama-2", None, 400, "/preset", "given twice"),
    ("/golden/gemma-3?layer_type=x", None, 422, "/layer_type", "full_attention, sliding_attention"),
    ("/golden", {"scheme": "xlnet"}, 422, "/scheme", "relative"),
    ("/golden", {"scheme": "rope", "positions": list(range(65))}, 422, "/positions", "at most 64"),
    ("/golden", {"scheme": "rope", "outputs": ["cos"]}, 422, "/outputs", "whole"),
    ("/golden", {"scheme": "rope", "positions": [[[1, 2]]]}, 422, "/positions", "[axes][n]"),
    ("/golden", {"scheme": "rope", "positions": [[1, 2]] * 9}, 422, "/positions", "at most 8 axes"),
    ("/golden", {"scheme": "rope", "head_dim": 32, "axes_dim": [8] * 4}, 422, "/positions", "no usual ones on 4 axes"),
    ("/golden", {"scheme": "rope", "head_dim": 4096, "positions": list(range(20))}, 413, "", "65536"),
    ("/golden", {"scheme": "rope", "basis": 3}, 422, "/basis", "nearest"),
    ("/golden", {"scheme": "alibi", "query_scale": {"type": "llama4"}}, 422, "/query_scale", "alibi rotates none"),
    ("/golden", {"scheme": "rope", "query_scale": {"beta": 1}}, 422, "/query_scale/type", "missing"),
    ("/golden", {"scheme": "rope", "positions": [-1, 2], "query_scale": {"type": "llama4"}}, 422, "/query_scale", "from 0 on"),
    ("/golden", {}, 422, "/scheme", "missing"),
])
def test_refusals(server, path, fields, status, pointer, words):
    answer = server.get(path) if fields is None else server.post(path, fields)
    assert answer.status == status, answer
    problem = answer.json()
    assert problem.get("pointer", "") == pointer and words in problem["detail"], problem


def test_too_wide_for_two_positions(server):
    answer = server.post("/golden", {"scheme": "rope", "head_dim": 4096})
    assert answer.status == 413 and "allowed: at most 65536" in answer.json()["detail"]


def test_the_limit_of_work():
    with start_server("--max-analysis", "1") as server:
        answer = server.post("/golden", {"scheme": "rope", "head_dim": 8})
        assert answer.status == 413
        assert all(word in answer.json()["detail"] for word in ("multiply-adds", "--max-analysis"))


def test_weights_by_seed(server):
    found, _ = golden(server, scheme="t5", num_heads=2, seed=3)
    table = seeded("table", (32, 2), 3, 0.02)
    assert found["bias"].shape == (2, 4, 7) and np.isin(found["bias"], table).all()
