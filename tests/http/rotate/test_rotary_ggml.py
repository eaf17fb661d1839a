"""ggml's rotary positions over a socket, against formulas of their own (truth/ggml.py): convention, divisors, and
the axes of imrope."""
import random

import mpmath
import numpy as np
import pytest

import truth
import truth.ggml as ggml_truth
from asking import check_again, refused
from tensors import encode, encode_one, rotate_files


def ggml_scaling(rng, pairs):
    """A scaling object, and the arguments of the formulas."""
    kind, s = rng.choice(["default", "linear", "yarn"]), rng.choice([0.5, 1, 2, 8, 40])
    divisors = [rng.choice([1, rng.uniform(0.5, 60), 1e30]) for _ in range(pairs)]
    divisors = divisors if kind == "default" or rng.random() < 0.5 else None
    given = {"divisors": divisors} if divisors else {}
    if kind == "default":
        return {"type": kind, **given}, dict(divisors=divisors)
    if kind == "linear":
        return {"type": kind, "convention": "ggml", "factor": s, **given}, dict(s=s, divisors=divisors)
    more = rng.choice([{}, {"beta_fast": 20, "beta_slow": 2}, {"beta_fast": 1, "beta_slow": 32},
                       {"extrapolation_factor": 0.5}, {"extrapolation_factor": 0}])
    yarn = (4096, more.get("extrapolation_factor", 1), more.get("beta_fast", 32), more.get("beta_slow", 1))
    return ({"type": kind, "convention": "ggml", "factor": s, "original_max_position_embeddings": 4096, **more, **given},
            dict(s=s, divisors=divisors, yarn=yarn))


@pytest.mark.parametrize("seed", range(40))
def test_random(server, seed):
    rng = random.Random(seed)
    head_dim, base = rng.choice([8, 16, 64]), rng.choice([10000.0, 5e5])
    scaling, asked = ggml_scaling(rng, head_dim // 2)
    positions = [rng.randint(0, 20000) for _ in range(3)]
    request = dict(scheme="rope", head_dim=head_dim, base=base, scaling=scaling, positions=positions)
    tensors = encode(server, **request, outputs=["inv_freq", "cos"])
    w = ggml_truth.frequencies(head_dim, base, **asked)
    np.testing.assert_allclose(tensors["inv_freq"], [float(x) for x in w], rtol=3e-16, err_msg=str(request))
    s, yarn = asked.get("s", 1), asked.get("yarn")
    g = mpmath.mpf(float(ggml_truth.magnitude(s, 1))) if yarn and yarn[1] else 1
    for i, p in enumerate(positions):
        for c in range(head_dim // 2):
            value = truth.nearest(g * mpmath.cos(p * w[c]), "f32")
            assert tensors["cos"][i, c] == value, (request, i, c)
    check_again(server, {**request, "outputs": ["cos", "sin"]}, ["positions", "outputs"],
                encode(server, **request, outputs=["cos", "sin"]))


def scaling_of(server, **fields):
    return server.ask("/encode", scheme="rope", len=1, **fields, data=False).json()["config"]["scaling"]


def test_divisors_imply_the_convention(server):
    shown = scaling_of(server, head_dim=4, scaling={"type": "default", "divisors": [1, 8]})
    assert shown == {"type": "default", "convention": "ggml", "divisors": [1.0, 8.0]}
    assert scaling_of(server, head_dim=4, scaling={"type": "default", "convention": "ggml"}) == {"type": "default"}


def test_llama_31_by_its_divisors(server):
    """What llama.cpp's converter writes for Llama 3.1 is the rule llama3 but for the rounding of the divisors."""
    rule = {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}
    fields = dict(scheme="rope", head_dim=128, base=500000, outputs=["inv_freq"], len=1)
    by_rule = encode_one(server, **fields, scaling=rule)
    plain = encode_one(server, **fields)
    divisors = np.float32(plain / by_rule)
    np.testing.assert_allclose(divisors[[29, 30, 31, 32, 33, 34, 35]],
                               [1.2074839, 1.5534146, 2.0263133, 2.6945298, 3.6842525, 5.2573266, 8], rtol=6e-8)
    by_divisors = encode_one(server, **fields, scaling={"type": "default", "divisors": divisors.astype("f8").tolist()})
    assert 1e-9 < np.max(np.abs(by_divisors / by_rule - 1)) < 2.0**-24


def test_ramp_of_gpt_oss(server):
    """ggml rounds the ends 8.09 and 17.40 to 8 and 18, which transformers is told not to do."""
    oss = {"type": "yarn", "factor": 32, "original_max_position_embeddings": 4096}
    fields = dict(scheme="rope", head_dim=64, base=150000, dtype="f64", len=131072, slice=[None, [8, 18]])
    published, taken = (encode(server, **fields, scaling={**oss, **more})
                        for more in ({"truncate": False}, {"convention": "ggml"}))
    cosines, sines = (np.abs(published[name] - taken[name]).max(axis=1) for name in ("cos", "sin"))
    assert round(float(cosines.max()), 3) == 2.693
    assert int(np.argmax(np.maximum(cosines, sines) > 0.01)) == 35


def test_attention_factor(server):
    yarn = {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "convention": "ggml"}
    def factor(**more):
        return server.ask("/encode", scheme="rope", len=1, scaling={**yarn, **more}, data=False).json()["config"]["attention_factor"]
    m = float(ggml_truth.magnitude(40, 1))
    assert factor() == pytest.approx(m, rel=1e-15)
    assert factor(mscale_all_dim=1) == 1
    assert factor(mscale=2, mscale_all_dim=0.707) == pytest.approx(float(ggml_truth.magnitude(40, 2) / ggml_truth.magnitude(40, 0.707)))
    assert factor(attn_factor=0.5) == pytest.approx(m / 2, rel=1e-15)
    assert factor(attn_factor=0.5, extrapolation_factor=0) == 0.5
    assert factor(attention_factor=3, attn_factor=0.5) == 3
    assert factor(factor=0.5) == 1


def test_longrope_has_no_factor(server):
    lists = {"type": "longrope", "convention": "ggml", "short_factor": [1, 2], "long_factor": [3, 4],
             "original_max_position_embeddings": 16, "factor": 32}
    for n, used in [(16, [1, 2]), (17, [3, 4])]:
        answer = server.ask("/encode", scheme="rope", head_dim=4, scaling=lists, len=n, outputs=["inv_freq"]).json()
        assert answer["config"]["attention_factor"] == 1
        np.testing.assert_allclose(answer["tensors"]["inv_freq"]["data"], [1 / used[0], 0.01 / used[1]], rtol=1e-15)


# ---- imrope ----


@pytest.mark.parametrize("head_dim,sections", [(128, [24, 20, 20]), (128, [24, 20, 20, 0]), (64, [11, 11, 10]),
                                               (24, [2, 3, 4, 3]), (24, [12, 0, 0])])
def test_imrope(server, head_dim, sections):
    positions = [[5, 900, 70000], [7, 31, 262143], [11, 2, 90001]]
    t = encode(server, scheme="rope", head_dim=head_dim, base=5e6, channels="imrope", mrope_section=sections,
               positions=positions, outputs=["cos", "sin", "inv_freq"])
    w = ggml_truth.frequencies(head_dim, 5e6)
    for c in range(head_dim // 2):
        axis = ggml_truth.imrope_axis(c, sections)
        assert t["inv_freq"][c] == (0 if axis == 3 else pytest.approx(float(w[c]), rel=3e-16))
        for i in range(3):
            p = 0 if axis == 3 else positions[axis][i]
            assert t["cos"][i, c] == truth.nearest(mpmath.cos(p * w[c]), "f32"), (c, i)
            assert t["sin"][i, c] == truth.nearest(mpmath.sin(p * w[c]), "f32"), (c, i)


def test_imrope_leaves_what_transformers_gives_to_time(server):
    fields = dict(scheme="rope", head_dim=128, base=5e6, mrope_section=[24, 20, 20], len=262144, dtype="f64")
    ours, ggml = (encode(server, **fields, channels=channels, slice=[None, [60, 63]])
                  for channels in ("mrope_interleaved", "imrope"))
    apart = {name: np.abs(ours[name] - ggml[name]) for name in ("cos", "sin")}
    assert not apart["cos"][:, 0].any() and apart["sin"][:, 1:].max(axis=0).all()
    assert round(float(apart["cos"][-1].max()), 4) == 0.0058 and round(float(apart["sin"][-1].max()), 3) == 0.108
    assert int(np.argmax(np.maximum(apart["cos"], apart["sin"]).max(axis=1) > 0.01)) == 24265


def test_imrope_of_thirds(server):
    """By default no pair is left."""
    for head_dim in (8, 10, 12, 128):
        config = server.ask("/encode", scheme="rope", head_dim=head_dim, channels="imrope", len=1, data=False).json()["config"]
        sections = config["mrope_section"]
        assert sum(sections) == head_dim // 2
        assert 3 not in [ggml_truth.imrope_axis(c, sections) for c in range(head_dim // 2)]


# ---- Its arithmetic, bit for bit ----


def bits(x):
    return np.ascontiguousarray(x, np.float32).view(np.uint32)


@pytest.mark.parametrize("seed", range(24))
def test_arith(server, seed):
    """The table in two forms, and q turned by it."""
    rng = random.Random(1000 + seed)
    head_dim, base = rng.choice([8, 16, 64]), rng.choice([10000.0, 5e5, 123456.7])
    scaling, asked = ggml_scaling(rng, head_dim // 2)
    factor = rng.choice([1, 1, 0.7])
    positions = [0, *(rng.choice([-1, 1]) * rng.randint(1, 2 ** rng.randint(1, 31) - 1) for _ in range(5))]
    yarn, s = asked.get("yarn"), asked.get("s", 1)
    request = dict(scheme="rope", head_dim=head_dim, base=base, scaling=scaling, positions=positions, arith="ggml")
    if factor != 1:
        request["attention_factor"] = factor
    g = factor if factor != 1 else float(ggml_truth.magnitude(s, 1)) if yarn and yarn[1] else 1
    cos, sin = ggml_truth.table_f32(head_dim, base, positions, g=g, **asked)
    found = encode(server, **request, outputs=["cos", "sin"])
    assert np.array_equal(bits(found["cos"]), bits(cos)) and np.array_equal(bits(found["sin"]), bits(sin)), request
    table = encode_one(server, **request, form="expanded", layout="half", outputs=["cos"])
    assert np.array_equal(bits(table), bits(np.concatenate([cos, cos], 1)))
    check_again(server, {**request, "outputs": ["cos", "sin"]}, ["positions", "outputs"], found)
    q = np.random.default_rng(seed).standard_normal((1, 2, len(positions), head_dim)).astype("f4")
    turned = rotate_files(server, {**request, "layout": "half"}, q=q)["q"]
    a, b = q[..., :head_dim // 2], q[..., head_dim // 2:]
    np.testing.assert_allclose(turned, np.concatenate([a * cos - b * sin, b * cos + a * sin], -1), rtol=0, atol=2e-6)


def test_arith_of_longrope(server):
    lists = {"type": "longrope", "convention": "ggml", "short_factor": [1, 1.25, 2.7, 9.1], "long_factor": [3, 4.4, 5.1, 64.3],
             "original_max_position_embeddings": 16}
    for n, used in [(16, "short_factor"), (40, "long_factor")]:
        found = encode(server, scheme="rope", head_dim=8, scaling=lists, len=n, arith="ggml", outputs=["cos", "sin"])
        cos, sin = ggml_truth.table_f32(8, 10000.0, range(n), divisors=lists[used])
        assert np.array_equal(bits(found["cos"]), bits(cos)) and np.array_equal(bits(found["sin"]), bits(sin))


@pytest.mark.parametrize("channels,sections", [("imrope", [24, 20, 20]), ("imrope", [20, 20, 20, 4]), ("mrope", [16, 24, 24])])
def test_arith_of_three_axes(server, channels, sections):
    """Every axis has its own product, which advances at every pair."""
    positions = [[5, 900, 70000, 0], [7, 31, 262143, 3], [11, 2, 90001, 1]]
    def axis_of(c):
        return ggml_truth.imrope_axis(c, sections) if channels == "imrope" else int(np.searchsorted(np.cumsum(sections), c, "right"))
    found = encode(server, scheme="rope", head_dim=128, base=5e6, channels=channels, mrope_section=sections,
                   positions=positions, arith="ggml", outputs=["cos", "sin"])
    cos, sin = ggml_truth.table_f32(128, 5e6, positions, axis_of=axis_of)
    assert np.array_equal(bits(found["cos"]), bits(cos)) and np.array_equal(bits(found["sin"]), bits(sin))


def test_arith_in_slices(server):
    """A part of a table begins its products anew."""
    fields = dict(scheme="rope", head_dim=256, base=5e5, len=9, offset=100000, arith="ggml", outputs=["cos"])
    whole = encode_one(server, **fields)
    assert np.array_equal(encode_one(server, **fields, slice=[[3, 8], [70, 101]]), whole[3:8, 70:101])
    assert np.array_equal(bits(encode_one(server, **{**fields, "offset": 100004, "len": 5})), bits(whole[4:]))


@pytest.mark.parametrize("head_dim,base,errors", [(128, 5e5, (9.5e-5, 6.6e-4, 1.21e-2)), (128, 1e6, (1.1e-4, 8.3e-4, 1.61e-2)),
                                                  (64, 1e4, (5.3e-5, 4.7e-4, 7.7e-3))])
def test_errors_of_the_arithmetic(server, head_dim, base, errors):
    """The largest of cosines over 256 positions before 2^10, 2^13, 2^17; the same by the metric, of cosines and sines."""
    for power, error in zip((10, 13, 17), errors):
        fields = dict(scheme="rope", head_dim=head_dim, base=base, offset=2**power - 256, len=256)
        found = encode(server, **fields, arith="ggml", outputs=["cos", "sin"])
        angles = np.outer(np.arange(2**power - 256, 2**power), [float(w) for w in ggml_truth.frequencies(head_dim, base)])
        apart = [np.abs(found[name].astype(float) - turn(angles)).max() for name, turn in (("cos", np.cos), ("sin", np.sin))]
        assert apart[0] == pytest.approx(error, rel=0.06)
        answer = server.ask("/analyze", configs=[{"scheme": "rope", "head_dim": head_dim, "base": base}],
                            offset=2**power - 256, len=256, metrics=["precision"], recipes=["ggml"]).json()
        assert answer["results"][0]["precision"]["value"] == pytest.approx(max(apart), rel=1e-3)


def test_recipe_of_the_metric(server):
    """By default it is there for what ggml computes; asked for elsewhere it is refused."""
    def recipes(**config):
        answer = server.ask("/analyze", configs=[config], len=64, metrics=["precision"]).json()
        return list(answer["results"][0]["precision"]["recipes"])
    usual = ["f32", "f32_bf16", "bf16_inv_freq", "f16_inv_freq", "bf16"]
    llama3 = {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}
    assert recipes(scheme="rope") == [*usual, "ggml"]
    assert recipes(scheme="rope", scaling={"type": "default", "divisors": [1, 2] * 16}) == [*usual, "ggml"]
    for other in [dict(scheme="xpos"), dict(scheme="sinusoidal"), dict(scheme="rope", scaling=llama3),
                  dict(scheme="rope", head_dim=4, inv_freq=[1, 0.1])]:
        assert recipes(**other) == usual
    refused(server, "/recipes/0", "bf16", path="/analyze", scheme="xpos", len=4, metrics=["precision"], recipes=["ggml"])


@pytest.mark.parametrize("as_q", [False, True])
def test_belief_in_its_arithmetic(server, as_q):
    """/diagnose: ggml's numbers are explained by arith ggml alone; a wrong base is found beside it."""
    positions = list(range(60000, 60048))
    cos, sin = ggml_truth.table_f32(32, 5e5, positions)
    belief = dict(scheme="rope", head_dim=32, base=5e5, layout="half", offset=60000, arith="ggml")
    sent = dict(cos=cos, sin=sin)
    if as_q:
        q = np.random.default_rng(3).standard_normal((1, 1, 48, 32)).astype("f4")
        a, b = q[..., :16], q[..., 16:]
        sent = dict(q=q, q_out=np.concatenate([a * cos - b * sin, b * cos + a * sin], -1))
    sent = {name: {"dtype": "f32", "shape": list(x.shape), "data": x.tolist()} for name, x in sent.items()}
    answer = server.ask("/diagnose", **belief, **sent).json()
    assert answer["explained"] and [f["code"] for f in answer["findings"]] == ["as_believed"]
    answer = server.ask("/diagnose", **{**belief, "base": 10000}, **sent).json()
    assert answer["explained"] and "base" in str(answer["findings"][0]["pointer"]) and answer["findings"][0]["found"] == 500000


BAD_ARITH = [
    ("/scaling/type", dict(scaling={"type": "ntk", "factor": 2}), "linear"),
    ("/scaling/type", dict(scaling={"type": "llama3", "factor": 2, "low_freq_factor": 1, "high_freq_factor": 4,
                                    "original_max_position_embeddings": 64}), "longrope"),
    ("/inv_freq", dict(inv_freq=[1, 0.5]), "base"),
    ("/arith", dict(positions=[0, 0.5]), "integer"),
    ("/arith", dict(positions=[0, 2**31]), "2^31"),
    ("/arith", dict(grid=[2, 2]), "one axis"),
    ("/arith", dict(grid=[2, 2], channels="pixtral"), "one axis"),
    ("/coords", dict(grid=[2, 2, 2], channels="imrope", mrope_section=[2, 0, 0], coords="normalized"), "integers"),
]


@pytest.mark.parametrize("pointer,fields,word", BAD_ARITH)
def test_arith_refused(server, pointer, fields, word):
    sequence = {} if "grid" in fields or "positions" in fields else {"len": 4}
    refused(server, pointer, word, scheme="rope", head_dim=4, arith="ggml", **sequence, **fields)


@pytest.mark.parametrize("scheme", ["xpos", "sinusoidal", "alibi"])
def test_arith_is_of_rope_only(server, scheme):
    refused(server, "/arith", "float32", scheme=scheme, len=4, arith="ggml")


# ---- Refusals ----

BAD = [
    ("/scaling/divisors", dict(scaling={"type": "linear", "factor": 2, "divisors": [1, 1]}), "ggml"),
    ("/scaling/divisors", dict(scaling={"type": "default", "convention": "vllm", "divisors": [1, 1]}), "ggml"),
    ("/scaling/divisors", dict(scaling={"type": "default", "divisors": [1, 1, 1]}), "needed: 2"),
    ("/scaling/divisors", dict(scaling={"type": "default", "divisors": [1, 0]}), "0"),
    ("/scaling/divisors", dict(scaling={"type": "ntk", "factor": 2, "convention": "ggml", "divisors": [1, 1]}), "yarn"),
    ("/scaling/truncate", dict(scaling={"type": "yarn", "factor": 2, "original_max_position_embeddings": 9,
                                        "convention": "ggml", "truncate": False}), "rounds"),
    ("/scaling/convention", dict(scaling={"type": "dynamic", "factor": 2, "max_position_embeddings": 9,
                                          "convention": "ggml"}), "dynamic"),
    ("/mrope_section", dict(channels="imrope", mrope_section=[1, 2]), "3 or 4"),
    ("/mrope_section", dict(channels="imrope", mrope_section=[1, 0, 0, 0]), "needed: rotary_dim/2, 2"),
]


@pytest.mark.parametrize("pointer,fields,word", BAD)
def test_refused(server, pointer, fields, word):
    refused(server, pointer, word, scheme="rope", len=4, head_dim=4, **fields)
