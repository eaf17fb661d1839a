"""rope's eight scalings over a socket: reference values, random objects against mpmath, pasted
Hugging Face objects, and where libraries disagree."""
import random

import mpmath
import numpy as np
import pytest

import truth
import truth.scaling as scaling_truth
from asking import check_again, refused
from tensors import encode, encode_one

LLAMA3 = {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
          "original_max_position_embeddings": 8192}
GPT_OSS = {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
           "original_max_position_embeddings": 4096}
DEEPSEEK = {"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 4096}
QWEN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}


def config_of(server, **fields):
    return server.ask("/encode", scheme="rope", len=1, **fields, data=False).json()["config"]


# ---- Reference values, 12 digits ----

PUBLISHED = [
    (dict(head_dim=128), {1: 0.86596432336, 31: 0.0115478198469, 63: 0.000115478198469}, 1),
    (dict(head_dim=128, scaling={"type": "ntk", "factor": 4}), {63: 2.88695496172e-05}, 1),
    (dict(head_dim=128, scaling={"type": "dynamic", "factor": 2, "max_position_embeddings": 4096, "seq_len": 8192}),
     {1: 0.850994291341, 63: 3.8492732823e-05}, 1),
    (dict(head_dim=128, base=500000, scaling=LLAMA3),
     {28: 0.00321144599475, 29: 0.0021665707635, 35: 9.55621235396e-05, 63: 3.06892598891e-07}, 1),
    (dict(head_dim=64, base=150000, scaling=GPT_OSS),
     {8: 0.0508132748155, 9: 0.0317056961847, 12: 0.00679495948973, 17: 0.000129318701245, 31: 3.02351142812e-07},
     1.34657359028),
    (dict(head_dim=64, base=10000, scaling=DEEPSEEK), {11: 0.0390069265671, 16: 0.0055, 31: 3.33380358041e-06}, 1),
    (dict(head_dim=128, base=1e6, scaling=QWEN), {24: 0.00537532149079, 63: 3.10234440188e-07}, 1.13862943611),
    (dict(head_dim=512, base=1e6, scaling={"type": "proportional", "partial_rotary_factor": 0.25}),
     {63: 0.0333762469429, 64: 0, 255: 0}, 1),
]


@pytest.mark.parametrize("fields,values,factor", PUBLISHED)
def test_published(server, fields, values, factor):
    inv_freq = encode_one(server, scheme="rope", len=1, outputs=["inv_freq"], **fields)
    assert inv_freq.dtype == np.float64
    for channel, value in values.items():
        assert inv_freq[channel] == pytest.approx(value, rel=5e-12), channel
    assert config_of(server, **fields)["attention_factor"] == pytest.approx(factor, rel=5e-12)


def test_deepseek_says_what_the_softmax_needs(server):
    scaling = config_of(server, head_dim=64, scaling=DEEPSEEK)["scaling"]
    assert scaling["softmax_scale_factor"] == pytest.approx(1.87385, rel=1e-5)


def test_longrope_says_which_list(server):
    short, long = [1.05] * 16, [float(2 + i) for i in range(16)]
    scaling = {"type": "longrope", "short_factor": short, "long_factor": long, "factor": 32,
               "original_max_position_embeddings": 4096}
    for n, name, divisors in [(4096, "short", short), (4097, "long", long)]:
        fields = dict(scheme="rope", head_dim=32, scaling=scaling, positions=[n - 1])
        answer = server.ask("/encode", **fields, outputs=["inv_freq"]).json()
        assert answer["config"]["scaling"]["list"] == name
        assert answer["config"]["attention_factor"] == pytest.approx(1.19023807142, rel=1e-11)
        w = 10000.0 ** (-np.arange(16) / 16)
        np.testing.assert_allclose(answer["tensors"]["inv_freq"]["data"], w / divisors, rtol=1e-14)


# ---- Random objects ----


def random_scaling(rng, pairs):
    kind = rng.choice(["default", "linear", "ntk", "dynamic", "yarn", "longrope", "llama3", "proportional"])
    factor, original = rng.choice([0.5, 1, 2, 3.7, 8, 32]), rng.choice([128, 4096, 8192])
    if kind == "default":
        return {"type": kind}
    if kind in ("linear", "ntk"):
        return {"rope_type": kind, "factor": factor}
    if kind == "dynamic":
        return {"type": kind, "factor": max(1, factor), "max_position_embeddings": original}
    if kind == "proportional":
        return {"type": kind, "partial_rotary_factor": rng.choice([0.25, 0.5, 1.0]), "factor": factor}
    if kind == "llama3":
        return {"type": kind, "factor": factor, "low_freq_factor": 1, "high_freq_factor": rng.choice([1, 4, 5.5]),
                "original_max_position_embeddings": original}
    if kind == "longrope":
        return {"type": kind, "short_factor": [rng.uniform(0.5, 3) for _ in range(pairs)], "factor": factor,
                "long_factor": [rng.uniform(1, 60) for _ in range(pairs)],
                "original_max_position_embeddings": original}
    more = rng.choice([{}, {"mscale": 0.707, "mscale_all_dim": 0.707}, {"truncate": False}, {"mscale": 1.5},
                       {"beta_fast": 20, "beta_slow": 2}, {"extrapolation_factor": 0.5}])
    return {"type": kind, "factor": factor, "original_max_position_embeddings": original, **more}


@pytest.mark.parametrize("seed", range(120))
def test_random(server, seed):
    rng = random.Random(seed)
    head_dim, base = rng.choice([8, 16, 64]), rng.choice([10000.0, 5e5, 1e6])
    scaling = random_scaling(rng, head_dim // 2)
    positions = [rng.randint(0, 20000) for _ in range(3)]
    request = dict(scheme="rope", head_dim=head_dim, base=base, scaling=scaling, positions=positions)
    tensors = encode(server, **request, outputs=["inv_freq", "cos", "sin"])
    reach = max(positions) + 1
    w = scaling_truth.inv_freq(scaling, base, head_dim, reach, head_dim)
    np.testing.assert_allclose(tensors["inv_freq"], [float(x) for x in w], rtol=3e-16, err_msg=str(request))
    factor = mpmath.mpf(float(scaling_truth.attention_factor(scaling, reach)))
    for i, p in enumerate(positions):
        for c in range(head_dim // 2):
            for name, function in (("cos", mpmath.cos), ("sin", mpmath.sin)):
                value = truth.nearest(factor * function(p * w[c]), "f32")
                assert tensors[name][i, c] == value, (request, name, i, c)
    check_again(server, {**request, "outputs": ["cos", "sin"]}, ["positions", "outputs"],
                encode(server, **request, outputs=["cos", "sin"]))


@pytest.mark.parametrize("seed", range(40))
def test_float32_recipe(server, seed):
    """The frameworks' steps in f32: frequencies to the last bit, with a correctly rounded pow."""
    rng = random.Random(1000 + seed)
    head_dim, base = rng.choice([16, 64]), rng.choice([10000.0, 5e5])
    scaling = random_scaling(rng, head_dim // 2)
    inv_freq = encode_one(server, scheme="rope", head_dim=head_dim, base=base, scaling=scaling, len=5, arith="float32",
                          outputs=["inv_freq"])
    expected = scaling_truth.inv_freq_float32(scaling, base, head_dim, 5, head_dim)
    assert np.array_equal(inv_freq, expected.astype("f8")), (scaling, inv_freq - expected)


# ---- Pasted objects, and the results of libraries for the same object ----


def test_hugging_face_objects_paste_unchanged(server):
    qwen2_vl = {"mrope_section": [16, 24, 24], "rope_type": "default", "type": "default"}
    config = config_of(server, head_dim=128, rope_scaling=qwen2_vl)
    assert (config["channels"], config["mrope_section"]) == ("mrope", [16, 24, 24])
    qwen3_vl = {"mrope_interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default", "rope_theta": 5000000}
    config = config_of(server, head_dim=128, rope_parameters=qwen3_vl)
    assert (config["channels"], config["base"]) == ("mrope_interleaved", 5e6)
    config = config_of(server, head_dim=80, rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.4})
    assert config["rotary_dim"] == 32
    gemma4 = {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6}
    config = config_of(server, head_dim=512, rope_parameters=gemma4)
    assert (config["rotary_dim"], config["base"], config["scaling"]["partial_rotary_factor"]) == (512, 1e6, 0.25)
    config = config_of(server, head_dim=128, rope_scaling={"type": "yarn", "factor": 4.0, "finetuned": True,
                                                           "original_max_position_embeddings": 4096})
    assert config["scaling"]["type"] == "yarn"


def test_where_libraries_disagree(server):
    def frequencies(scaling, n=10):
        return encode_one(server, scheme="rope", head_dim=64, scaling=scaling, len=n, outputs=["inv_freq"])
    dynamic = {"type": "dynamic", "factor": 2, "max_position_embeddings": 4096}
    plain = 10000.0 ** (-np.arange(32) / 32)
    np.testing.assert_allclose(frequencies(dynamic), plain, rtol=1e-15)  # transformers: short sequences are untouched
    long = frequencies({**dynamic, "seq_len": 8192})
    assert np.array_equal(frequencies({**dynamic, "convention": "vllm"}), long) and not np.allclose(long, plain)
    linear = {"type": "linear", "factor": 2}
    np.testing.assert_allclose(frequencies(linear), plain / 2, rtol=1e-15)
    np.testing.assert_allclose(frequencies({**linear, "convention": "tgi"}), plain, rtol=1e-15)
    alone = {**QWEN, "mscale": 2.0}
    usual, vllm = (config_of(server, scaling={**alone, "convention": c})["attention_factor"]
                   for c in ("transformers", "vllm"))
    assert usual == pytest.approx(0.1 * np.log(4) + 1) and vllm == pytest.approx(0.2 * np.log(4) + 1)
    lists = {"type": "longrope", "short_factor": [1.0] * 32, "long_factor": [2.0] * 32, "factor": 4,
             "original_max_position_embeddings": 16}
    np.testing.assert_allclose(frequencies(lists), plain, rtol=1e-15)
    np.testing.assert_allclose(frequencies({**lists, "convention": "mlx"}), plain / 2, rtol=1e-15)
    np.testing.assert_allclose(frequencies(lists, 17), plain / 2, rtol=1e-15)  # transformers: seq_len > O
    np.testing.assert_allclose(frequencies({**lists, "convention": "vllm"}, 17), plain, rtol=1e-15)  # one later


# ---- Refusals ----

BAD = [
    ("/scaling/factor", {"type": "linear"}, "factor"),
    ("/scaling/factor", {"type": "linear", "factor": 0}, "0"),
    ("/scaling/factor", {"type": "yarn", "factor": -1, "original_max_position_embeddings": 10}, "-1"),
    ("/scaling/factor", {"type": "linear", "factor": "NaN"}, "NaN"),
    ("/scaling/type", {"type": "yarrn", "factor": 2}, "yarn"),
    ("/scaling/original_max_position_embeddings", {"type": "yarn", "factor": 2}, "missing"),
    ("/scaling/max_position_embeddings", {"type": "dynamic", "factor": 2}, "missing"),
    ("/scaling/short_factor", {"type": "longrope", "short_factor": [1, 2], "long_factor": [1, 2],
                               "original_max_position_embeddings": 10, "factor": 2}, "32"),
    ("/scaling/low_freq_factor", {"type": "linear", "factor": 2, "low_freq_factor": 1}, "llama3"),
    ("/scaling/high_freq_factor", {**LLAMA3, "high_freq_factor": 0.5}, "low_freq_factor"),
    ("/scaling/faktor", {"type": "linear", "faktor": 2}, "factor"),
]


@pytest.mark.parametrize("pointer,scaling,word", BAD)
def test_refused(server, pointer, scaling, word):
    refused(server, pointer, word, scheme="rope", len=4, scaling=scaling)


def test_ntk_of_one_pair(server):
    refused(server, "/scaling/type", "divides by zero", scheme="rope", len=4, head_dim=2,
            scaling={"type": "ntk", "factor": 2})


def test_base_given_twice(server):
    refused(server, "/scaling/rope_theta", "base", scheme="rope", len=4, base=10,
            scaling={"rope_type": "default", "rope_theta": 20})
