"""Attention maps as evidence: scores and probabilities of q and k. Truth is float64 NumPy, every formula as in its paper."""
import json

import numpy as np
import pytest

import truth
from diagnosing import codes_of, diagnose, finding
from tensors import multipart, npy
from test_errors import check_problem
from wrong_tensors import Tensor, inline, rounded

HEADS, KV_HEADS, N, D = 4, 2, 12, 16
SCALE = D ** -0.5
ROPE = {"scheme": "rope", "layout": "half", "causal": True}
YARN = {**ROPE, "scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 2048}}
MAGNITUDE = 0.1 * np.log(4) + 1

random = np.random.default_rng(37)
Q = random.normal(size=(1, HEADS, N, D)).astype("f4").astype(float)
K = random.normal(size=(1, KV_HEADS, N, D)).astype("f4").astype(float)


def ladder(base=1e4):
    return base ** (-np.arange(0, D, 2) / D)


def yarn_ladder(base=1e4, factor=4, length=2048):
    """arXiv 2309.00071, section 3.2, with the borders rounded outwards as published."""
    def pair(turns):
        return D * np.log(length / (turns * 2 * np.pi)) / (2 * np.log(base))
    low, high = max(np.floor(pair(32)), 0), min(np.ceil(pair(1)), D - 1)
    ramp = np.clip((np.arange(D // 2) - low) / (high - low), 0, 1)
    return ladder(base) * (1 - ramp) + ladder(base) / factor * ramp


def turned(x, w, layout="half", magnitude=1.0):
    return truth.turned(x, np.outer(np.arange(x.shape[-2]), w), layout, magnitude)


def scores(scale=SCALE, w=None, layout="half", magnitude=1.0, causal=True, cap=None, tiled=False, still="", bias=0.0):
    w = ladder() if w is None else w
    q, k = (turned(x, 0 * w if name in still else w, layout, magnitude) for name, x in (("q", Q), ("k", K)))
    k = np.tile(k, (1, HEADS // KV_HEADS, 1, 1)) if tiled else np.repeat(k, HEADS // KV_HEADS, 1)
    s = scale * np.einsum("bhid,bhjd->bhij", q, k)
    s = (cap * np.tanh(s / cap) if cap else s) + bias
    return np.where(np.tri(N, dtype=bool), s, -np.inf) if causal else s


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def asked(server, kind, s, dtype="f32", **belief):
    numbers = softmax(s) if kind == "probs" else s
    return diagnose(server, {**belief, kind: inline(Tensor(numbers, dtype)), "q": inline(Tensor(Q, dtype)), "k": inline(Tensor(K, dtype))})


KINDS = ["scores", "probs"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_the_right_belief(server, kind, dtype):
    answer = asked(server, kind, scores(), dtype, **ROPE)
    assert set(codes_of(answer)) <= {"as_believed", "table_dtype"}, answer["findings"]
    assert answer["explained"] and answer["candidates"][0]["codes"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_belief(server, kind):
    answer = asked(server, kind, scores(layout="interleaved", causal=False))
    assert codes_of(answer)[0] == "identified" and answer["candidates"][0]["config"]["layout"] == "interleaved"


@pytest.mark.parametrize("kind", KINDS)
def test_yarn_of_the_belief(server, kind):
    assert codes_of(asked(server, kind, scores(w=yarn_ladder(), magnitude=MAGNITUDE), **YARN)) == ["as_believed"]


def alibi(factor=1.0):
    slopes = 2.0 ** (-8 * np.arange(1, HEADS + 1) / HEADS)
    return -factor * slopes[:, None, None] * abs(np.arange(N)[:, None] - np.arange(N)[None])


def of_alibi(factor):
    return scores(still="qk", bias=alibi(factor))


ALIBI = {"scheme": "alibi", "causal": True}
WRONG = {
    # code: (the map, the belief, pointer, found)
    "softmax_scale_missing": (scores(1.0), ROPE, "/softmax_scale", 1),
    "softmax_scale_twice": (scores(SCALE ** 2), ROPE, "/softmax_scale", SCALE ** 2),
    "softmax_scale_other": (scores(0.3), ROPE, "/softmax_scale", 0.3),
    "mscale_twice": (scores(SCALE * MAGNITUDE ** 2, yarn_ladder(), magnitude=MAGNITUDE), YARN, "/softmax_scale", SCALE * MAGNITUDE ** 2),
    "mscale_missing": (scores(SCALE, yarn_ladder()), YARN, "/softmax_scale", SCALE / MAGNITUDE ** 2),
    "mscale_once": (scores(SCALE / MAGNITUDE, yarn_ladder(), magnitude=MAGNITUDE), YARN, "/softmax_scale", SCALE / MAGNITUDE),
    "softcap_missing": (scores(2.0), {**ROPE, "softmax_scale": 2.0, "softcap": 30}, "/softcap", None),
    "softcap_other": (scores(2.0, cap=30), {**ROPE, "softmax_scale": 2.0, "softcap": 50}, "/softcap", 30),
    "bias_missing": (of_alibi(0.0), ALIBI, "/scheme", None),
    "bias_before_scale": (of_alibi(SCALE), ALIBI, "/scheme", None),
    "bias_twice": (of_alibi(2.0), ALIBI, "/scheme", None),
    "bias_unsigned": (of_alibi(-1.0), ALIBI, "/scheme", None),
    "kv_heads_tiled": (scores(tiled=True), ROPE, "/num_kv_heads", None),
    "q_not_rotated": (scores(still="q"), ROPE, "/scheme", None),
    "k_not_rotated": (scores(still="k"), ROPE, "/scheme", None),
    "mask_missing": (scores(causal=False), ROPE, "/causal", False),
    "layout_swapped": (scores(layout="interleaved"), ROPE, "/layout", "interleaved"),
    "base_other": (scores(w=ladder(5e5)), ROPE, "/base", 5e5),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", WRONG)
def test_the_mistake_is_named(server, kind, code):
    s, belief, pointer, found = WRONG[code]
    answer = asked(server, kind, s, **belief)
    assert codes_of(answer)[0] == code, answer["findings"]
    first = answer["findings"][0]
    assert first["pointer"] == pointer
    assert first["found"] == (pytest.approx(found, rel=1e-5) if isinstance(found, float) else found)


STAGES = {
    "other": ("scores", softmax(scores()), ROPE),
    "log_probs": ("scores", np.log(softmax(scores(causal=False))), {**ROPE, "causal": False}),
    "raw": ("scores", scores(1.0, causal=False), ROPE),
}


@pytest.mark.parametrize("stage", STAGES)
def test_where_the_map_was_taken(server, stage):
    kind, s, belief = STAGES[stage]
    answer = asked(server, kind, s, **belief)
    assert codes_of(answer) == ["stage_other"], answer["findings"]
    assert finding(answer, "stage_other")["found"] == stage and finding(answer, "stage_other")["pointer"] == "/scores"


def test_logits_in_place_of_probabilities(server):
    body = {**ROPE, "probs": inline(Tensor(scores(), "f32")), "q": inline(Tensor(Q, "f32")), "k": inline(Tensor(K, "f32"))}
    assert codes_of(diagnose(server, body)) == ["stage_other"]


@pytest.mark.parametrize("kind", KINDS)
def test_two_mistakes(server, kind):
    answer = asked(server, kind, scores(1.0), **{**ROPE, "layout": "interleaved"})
    assert codes_of(answer) == ["layout_swapped", "softmax_scale_missing"]


def test_the_example_of_the_contract(server):
    body = {"scheme": "rope", "q": [[[[1, 0], [1, 0]]]], "k": [[[[1, 0], [1, 0]]]]}
    right = [[[[0.70710678, 0.38205142], [0.38205142, 0.70710678]]]]
    assert codes_of(diagnose(server, {**body, "scores": right})) == ["as_believed"]
    answer = diagnose(server, {**body, "layout": "half", "scores": [[[[1, 0.54030231], [0.54030231, 1]]]]})
    assert codes_of(answer)[0] == "softmax_scale_missing"


def test_what_a_map_does_not_show(server):
    answer = asked(server, "scores", scores(), **ROPE)
    assert "off_by_one" in answer["unseen"] and "layout_swapped" not in answer["unseen"]


def test_noise_is_not_explained(server):
    answer = asked(server, "scores", random.normal(size=(1, HEADS, N, N)), **ROPE)
    assert codes_of(answer)[-1] == "unexplained" and answer["searched"] <= 4096


@pytest.mark.parametrize("kind", KINDS)
def test_a_candidate_gives_the_map_back(server, kind):
    answer = asked(server, kind, scores(0.3), **ROPE)
    config = answer["candidates"][0]["config"]
    assert config["softmax_scale"] == 0.3
    got = server.ask("/attention", **config, q=inline(Tensor(Q, "f64")), k=inline(Tensor(K, "f64")), outputs=[kind]).json()
    want = softmax(scores(0.3)) if kind == "probs" else scores(0.3)
    given = np.array([[[[-np.inf if x in (None, "-Infinity") else float(x) for x in row] for row in head] for head in batch]
                      for batch in got["tensors"][kind]["data"]])
    np.testing.assert_allclose(given, want, atol=1e-9)


@pytest.mark.parametrize("leading", [(0,), (0, 0)])
def test_leading_axes_may_be_missing(server, leading):
    s, q, k = scores()[leading], Q[leading], (np.repeat(K, 2, 1))[leading]
    body = {"scores": inline(Tensor(s, "f32")), "q": inline(Tensor(q, "f32")), "k": inline(Tensor(k, "f32"))}
    assert codes_of(diagnose(server, {**ROPE, **body})) == ["as_believed"]


def small(**more):
    return {"scheme": "rope", "q": [[1, 0], [1, 0]], "k": [[1, 0], [1, 0]], "scores": [[1, 1], [1, 1]], **more}


REFUSED = {
    # what is wrong: (request, pointer, words)
    "no q": ({k: v for k, v in small().items() if k != "q"}, "/q", ["q", "scores"]),
    "no k": ({k: v for k, v in small().items() if k != "k"}, "/k", ["k", "scores"]),
    "both maps": (small(probs=[[1, 1], [1, 1]]), "/probs", ["scores", "probs"]),
    "rotated too": (small(q_out=[[1, 0], [1, 0]]), "/q_out", ["q_out", "scores"]),
    "other sizes": (small(scores=[[1, 1, 1], [1, 1, 1]]), "/scores", ["[2,3]", "[2,2]"]),
    "one axis": (small(scores=[1, 1]), "/scores", ["[2]"]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(server, what):
    request, pointer, words = REFUSED[what]
    check_problem(server.post("/diagnose", request), 422, pointer, words)


@pytest.mark.parametrize("power, code", [(2, "as_believed"), (0, "mscale_missing"), (4, "mscale_twice")])
def test_a_scaling_that_multiplies_the_softmax_scale(server, power, code):
    """DeepSeek-V3's scores have 192^-1/2 · m^2 = 0.1352338; a belief without softmax_scale includes it."""
    q, k = (np.random.default_rng(seed).normal(size=(1, 1, 6, 192)) for seed in (0, 1))
    sent = {"q": inline(Tensor(q, "f64")), "k": inline(Tensor(k, "f64"))}
    scale = 192 ** -0.5 * (0.1 * np.log(40) + 1) ** power
    request = {"preset": "deepseek-v3", "softmax_scale": scale, "outputs": ["scores"], "dtype": "f64", **sent}
    found = np.array(server.ask("/attention", **request).json()["tensors"]["scores"]["data"])
    assert codes_of(diagnose(server, {"preset": "deepseek-v3", "scores": inline(Tensor(found, "f64")), **sent}))[0] == code


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, rows, sums", [(64, 16, "f4"), (300, 300, "f4"), (300, 300, "f8")])
def test_keys_counted_in_float32(server, kind, n, rows, sums):
    """CoPE reads its table between rows at sums of gates, which float32 loses like coordinates; torch's cumsum on a CPU adds in float64
    and rounds. A hundredth of a key more is another count."""
    rng = np.random.default_rng(4)
    q, k, table = (rng.standard_normal((m, D)).astype("f4") for m in (n, n, rows))
    s, seen = q @ k.T * np.float32(SCALE), np.tri(n, dtype=bool)
    gates = np.where(seen, 1 / (1 + np.exp(-s)), np.float32(0))
    count = np.cumsum(gates[:, ::-1], 1, dtype=sums)[:, ::-1].astype("f4")
    for more, fits in ((0, True), (0.01, False)):
        p = np.minimum(count + np.float32(more), np.float32(rows - 1))
        z, low = q @ table.T, np.floor(p).astype(int)
        part = p - low.astype("f4")
        term = np.take_along_axis(z, np.ceil(p).astype(int), 1) * part + np.take_along_axis(z, low, 1) * (1 - part)
        out = np.where(seen, s + term, -np.inf).astype("f4")[None, None]
        sent = {"q": q[None, None], "k": k[None, None], "pos_emb": table, kind: softmax(out) if kind == "probs" else out}
        body, headers = multipart(request=json.dumps({"scheme": "cope", "causal": True}), **{name: npy(a) for name, a in sent.items()})
        answer = server.request("POST", "/check", body, headers).json()
        assert answer["fits"] is fits and (not fits or set(codes_of(answer)) <= {"as_believed", "coordinates_f32"}), (more, answer)


# ---- Half precision, and far from position 0: the worst case of roundings is most of a score -----------------------------------


def in_dtype(x, dtype):
    return rounded(np.asarray(x, "f4"), dtype).astype("f4")


def of_port(dtype, n, first, base=1e4, scale=64 ** -0.5, is_still=False):
    """What a port gives that rounds after every step, as PyTorch's eager code does; angles in float32."""
    rng, r = np.random.default_rng(3), lambda x: in_dtype(x, dtype)
    q, k = (r(rng.normal(size=(1, 2, n, 64))) for _ in range(2))
    angle = (np.arange(first, first + n)[:, None].astype("f4") * (base ** (-np.arange(0, 64, 2) / 64)).astype("f4")) * (not is_still)
    c, s = r(np.cos(angle)), r(np.sin(angle))

    def turn(x):
        a, b = x[..., :32], x[..., 32:]
        return np.concatenate([r(r(a * c) - r(b * s)), r(r(b * c) + r(a * s))], -1)

    scores = np.where(np.tri(n, dtype=bool), r(r(turn(q) @ turn(k).swapaxes(-1, -2)) * np.float32(scale)), -np.inf)
    return q, k, scores, in_dtype(softmax(scores.astype(float)), dtype)


@pytest.mark.parametrize("dtype, first", [("bf16", 0), ("f16", 0), ("bf16", 100000), ("f16", 100000), ("f32", 100000)])
@pytest.mark.parametrize("wrong", [{}, {"scale": 0.16}, {"is_still": True}, {"base": 5e5}])
def test_a_wrong_port_is_no_rounding(server, dtype, first, wrong):
    """A scale of 0.16 for 0.125, no rotation and another base lay within 24 roundings of |q|·|k|, each number by itself."""
    q, k, scores, probs = of_port(dtype, 48, first, **wrong)
    for kind, numbers in (("scores", scores), ("probs", probs)):
        belief = {**ROPE, "offset": first, "q": inline(Tensor(q, dtype)), "k": inline(Tensor(k, dtype)), kind: inline(Tensor(numbers, dtype))}
        assert server.ask("/check", **belief).json()["fits"] == (not wrong), (kind, wrong)


def test_a_probability_is_at_most_one(server):
    q, k, _, probs = of_port("bf16", 48, 0)
    probs[0, 0, 0, 0] = 1.25
    answer = server.ask("/check", **ROPE, q=inline(Tensor(q, "bf16")), k=inline(Tensor(k, "bf16")), probs=inline(Tensor(probs, "bf16"))).json()
    assert not answer["fits"] and answer["findings"][0]["code"] == "unexplained"


@pytest.mark.parametrize("value, fits", [(float(np.finfo("f4").min), True), (-65504, True), (-10000, False)])
def test_a_mask_of_the_lowest_number_hides_as_infinity_does(server, value, fits):
    """transformers' eager attention adds finfo.min. The finding says so; with strict it counts."""
    s = np.where(np.isneginf(scores()), value, scores())
    body = {**ROPE, "scores": inline(Tensor(s, "f32")), "q": inline(Tensor(Q, "f32")), "k": inline(Tensor(K, "f32"))}
    answer = server.ask("/check", **body).json()
    assert codes_of(answer) == ["mask_value"] and answer["fits"] is fits and not server.ask("/check", **body, strict=True).json()["fits"]
