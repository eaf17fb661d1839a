"""POST /attention with every scheme against float64 NumPy: random shapes, masks, grouped heads, one row, one key, all
keys masked; and the shapes of a model, [1, 16, 2048, 64]."""
import numpy as np
import pytest

import truth
import truth.attention as attention_truth
import truth.bias as bias
import truth.rotary as rotary
import truth.window as window
from attention_asking import attention, bottom_right, one, qkv
from conftest import SANITIZED
from truth.absolute import seeded


def draw(*shape, seed=5, size=0.5):
    return (size * np.random.default_rng(seed).standard_normal(shape)).astype("f4").astype(float)


class Case:
    """Fields and tensors of a request, and the expected answer, for q and k at the given positions."""
    def __init__(self, fields=None, tensors=None, **expected):
        self.fields, self.tensors, self.expected = fields or {}, tensors or {}, expected


def slopes_bias(heads, q_pos, k_pos, form):
    return np.array([truth.alibi(form, s, list(q_pos), list(k_pos)) for s in truth.alibi_slopes(heads)], float)


def alibi(q, k, q_pos, k_pos):
    return Case(bias=slopes_bias(q.shape[1], q_pos, k_pos, "symmetric"))


def alibi_key(q, k, q_pos, k_pos):
    return Case({"form": "key"}, bias=slopes_bias(q.shape[1], q_pos, k_pos, "key"))


def alibi_scaled(q, k, q_pos, k_pos):
    return Case({"bias_scaled": True, "softmax_scale": 0.25}, scale=0.25, bias=0.25 * slopes_bias(q.shape[1], q_pos, k_pos, "symmetric"))


def t5(q, k, q_pos, k_pos):
    table = draw(32, q.shape[1], size=2)
    return Case(tensors={"table": table}, scale=1.0, bias=bias.t5(table, q_pos, k_pos))


def kerple(q, k, q_pos, k_pos):
    r1, r2 = [0.1 * (h + 1) for h in range(q.shape[1])], [1.0 / (h + 1) for h in range(q.shape[1])]
    return Case({"kind": "power", "r1": r1, "r2": r2}, bias=bias.kerple("power", r1, r2, q_pos, k_pos))


def fire(q, k, q_pos, k_pos):
    w = {"w1": draw(8, 1), "b1": draw(8, seed=6), "w2": draw(q.shape[1], 8, seed=7), "b2": draw(q.shape[1], seed=8)}
    return Case(tensors=w, bias=bias.fire(**w, q=q_pos, k=k_pos))


def sandwich(q, k, q_pos, k_pos):
    return Case({"bar_dim": 32}, bias=bias.sandwich(q.shape[1], q_pos, k_pos, bar_dim=32))


def shaw(q, k, q_pos, k_pos):
    d = q.shape[3]
    tables, index = {"rel_k": draw(6, d), "rel_v": draw(6, d, seed=9)}, attention_truth.shaw_index(q_pos, k_pos, -2, 3)
    return Case({"p_min": -2, "p_max": 3}, tables, terms=attention_truth.by_query(q, tables["rel_k"], index), values=tables["rel_v"][index])


def shaw_reversed(q, k, q_pos, k_pos):
    rel_k, index = draw(7, q.shape[3]), attention_truth.shaw_index(q_pos, k_pos, -3, 3, "query_minus_key")
    return Case({"max_relative": 3, "direction": "query_minus_key"}, {"rel_k": rel_k}, terms=attention_truth.by_query(q, rel_k, index))


def nezha(q, k, q_pos, k_pos):
    d = q.shape[3] + q.shape[3] % 2
    table, index = attention_truth.nezha_table(17, d), attention_truth.shaw_index(q_pos, k_pos, -8, 8)
    return Case({"table_style": "sinusoidal", "max_relative": 8}, terms=attention_truth.by_query(q, table, index), values=table[index])


def relative_key(q, k, q_pos, k_pos, both=False):
    p = int(max(np.abs(np.subtract.outer(q_pos, k_pos)).max(), 1)) + 1
    table, index = draw(2 * p - 1, q.shape[3]), np.subtract.outer(q_pos, k_pos) + p - 1
    terms = attention_truth.by_query(q, table, index) + (attention_truth.by_key(attention_truth.heads_of(k, q.shape[1]), table, index) if both else 0)
    return Case({"table_style": "relative_key_query" if both else "relative_key"}, {"rel_k": table}, terms=terms)


def relative_key_query(q, k, q_pos, k_pos):
    return relative_key(q, k, q_pos, k_pos, both=True)


def xl(scheme, q, k, q_pos, k_pos, clamp_len=-1):
    h, d = q.shape[1], q.shape[3]
    w = {"u": draw(h, d), "v_bias": draw(h, d, seed=6), "w_r": draw(h * d, 10, seed=7, size=0.3)}
    terms = attention_truth.xl_terms(scheme, q, attention_truth.heads_of(k, h), q_pos, k_pos, **w, clamp_len=clamp_len)
    return Case({"clamp_len": clamp_len}, w, terms=terms)


def transformer_xl(q, k, q_pos, k_pos):
    return xl("transformer_xl", q, k, q_pos, k_pos)


def transformer_xl_clamped(q, k, q_pos, k_pos):
    return xl("transformer_xl", q, k, q_pos, k_pos, clamp_len=3)


def xlnet(q, k, q_pos, k_pos):
    return xl("xlnet", q, k, q_pos, k_pos, clamp_len=2)


def xlnet_segments(q, k, q_pos, k_pos):
    case = xl("xlnet", q, k, q_pos, k_pos)
    if q.shape[2] > k.shape[2]:
        return case
    ids = [j * 3 // k.shape[2] for j in range(k.shape[2])]
    w = {"seg_embed": draw(2, q.shape[1], q.shape[3], seed=10), "r_s_bias": draw(q.shape[1], q.shape[3], seed=11)}
    case.expected["terms"] = case.expected["terms"] + attention_truth.xlnet_segments(q, **w, ids=ids)
    return Case({"token_type_ids": ids}, {**case.tensors, **w}, **case.expected)


def conformer(q, k, q_pos, k_pos):
    return xl("conformer", q, k, q_pos, k_pos)


def deberta(q, k, q_pos, k_pos, **fields):
    buckets, m = fields.get("position_buckets", -1), 16
    span = buckets if buckets > 0 else m
    index = attention_truth.deberta_index(q_pos, k_pos, buckets, m, fields.get("clamp_first", False))
    tables = {"pos_key": draw(q.shape[1], 2 * span, q.shape[3]), "pos_query": draw(q.shape[1], 2 * span, q.shape[3], seed=6)}
    c2p = attention_truth.by_query(q, tables["pos_key"], index)
    p2c = attention_truth.by_key(attention_truth.heads_of(k, q.shape[1]), tables["pos_query"], index)
    return Case({**fields, "max_relative_positions": m}, tables, terms=c2p + p2c, scale=(3 * q.shape[3]) ** -0.5)


def deberta_buckets(q, k, q_pos, k_pos):
    return deberta(q, k, q_pos, k_pos, position_buckets=8)


def deberta_clamped(q, k, q_pos, k_pos):
    return deberta(q, k, q_pos, k_pos, position_buckets=8, clamp_first=True)


def cope(q, k, q_pos, k_pos):
    pos_emb = draw(5, q.shape[3])
    return Case(tensors={"pos_emb": pos_emb}, last=attention_truth.cope(pos_emb, q_pos, k_pos))


NAMES = {alibi_key: "alibi", alibi_scaled: "alibi", shaw_reversed: "shaw", nezha: "shaw", relative_key: "shaw", relative_key_query: "shaw",
         transformer_xl_clamped: "transformer_xl", xlnet_segments: "xlnet", deberta_buckets: "deberta", deberta_clamped: "deberta"}
CASES = [alibi, alibi_key, alibi_scaled, t5, kerple, fire, sandwich, shaw, shaw_reversed, nezha, relative_key, relative_key_query,
         transformer_xl, transformer_xl_clamped, xlnet, xlnet_segments, conformer, deberta, deberta_buckets, deberta_clamped, cope]
SHAPES = [((2, 4, 5, 8), 2, 9), ((1, 3, 7, 4), 3, 7), ((1, 1, 1, 2), 1, 1), ((1, 6, 1, 4), 2, 30), ((1, 2, 9, 4), 1, 3), ((1, 5, 141, 6), 5, 133)]
HIDDEN = {"causal": True, "window": 4, "key_mask": None}


def compare(server, make, shape, kv_heads, k_len, mask, dtype, tolerance):
    q, k, v = (a.astype("f4").astype(float) for a in qkv(shape, kv_heads, k_len))
    q_pos, k_pos = bottom_right(shape[2], k_len)
    case = make(q, k, q_pos, k_pos)
    visible = attention_truth.seen(q_pos, k_pos, **mask) if mask else None
    expected = attention_truth.attend(q, k, v, visible=visible, **case.expected)
    request = {"scheme": NAMES.get(make, make.__name__), **case.fields, **mask, "outputs": ["probs", "output", "scores"]}
    got = attention(server, request, q=q.astype(dtype), k=k.astype(dtype), v=v.astype(dtype), **case.tensors)
    size = np.abs(expected["scores"][np.isfinite(expected["scores"])]).max(initial=1)
    assert np.abs(got["probs"] - expected["probs"]).max() <= tolerance, request
    assert np.abs(got["output"] - expected["output"]).max() <= 10 * tolerance, request
    assert np.array_equal(np.isneginf(got["scores"]), np.isneginf(expected["scores"])), request
    hidden = np.isneginf(expected["scores"])
    assert np.abs(got["scores"][~hidden] - expected["scores"][~hidden]).max(initial=0) <= 4 * size * tolerance, request
    full = ~hidden.all(-1)
    assert np.abs(got["probs"].sum(-1, dtype="f8")[full] - 1).max(initial=0) <= 1e-6


@pytest.mark.parametrize("make", CASES, ids=lambda m: m.__name__)
@pytest.mark.parametrize("dtype,tolerance", [("f8", 1e-12), ("f4", 1e-6)])
def test_random_shapes(server, make, dtype, tolerance):
    for shape, kv_heads, k_len in SHAPES:
        compare(server, make, shape, kv_heads, k_len, {}, dtype, tolerance)


@pytest.mark.parametrize("make", [alibi, shaw, relative_key_query, transformer_xl, deberta_buckets], ids=lambda m: m.__name__)
@pytest.mark.parametrize("dtype,tolerance", [("f8", 1e-12), ("f4", 1e-6)])
def test_long_rows_are_made_in_small_blocks(server, make, dtype, tolerance):
    compare(server, make, (1, 2, 40, 4), 1, 2100, {}, dtype, tolerance)
    compare(server, make, (1, 2, 40, 4), 1, 2100, {"window": 700, "causal": True}, dtype, tolerance)


@pytest.mark.parametrize("make", CASES, ids=lambda m: m.__name__)
def test_masked_and_grouped(server, make):
    for mask in ({"causal": True}, {"window": 3, "window_right": 1}, {"causal": True, "key_mask": [0, 1, 1, 0, 1, 1, 0, 1, 1]}, {"key_mask": [0] * 9}):
        for dtype, tolerance in (("f8", 1e-12), ("f4", 1e-6)):
            compare(server, make, (2, 4, 5, 8), 2, 9, mask, dtype, tolerance)


def test_a_key_mask_for_each_sequence_reaches_bloom(server):
    """alibi form key_mask: (cumsum(mask) - 1)·mask of each row's own padding."""
    q, k, _ = qkv((2, 3, 4, 8))
    mask = np.array([[0, 0, 1, 1], [1, 0, 1, 1]])
    counts = (np.cumsum(mask, -1) - 1) * mask
    biases = np.array([float(m) for m in truth.alibi_slopes(3)])[None, :, None, None] * counts[:, None, None, :]
    expected = attention_truth.attend(q, k, bias=biases, visible=attention_truth.seen(range(4), range(4), key_mask=mask, causal=True))
    request = {"scheme": "alibi", "form": "key_mask", "causal": True, "key_mask": mask.tolist()}
    for name in ("scores", "probs"):
        got, want = one(server, request, name, q=q, k=k), expected[name]
        assert np.array_equal(np.isneginf(got), np.isneginf(want))
        np.testing.assert_allclose(got[np.isfinite(want)], want[np.isfinite(want)], atol=1e-13)


@pytest.mark.parametrize("make", [alibi, t5, shaw, xlnet, deberta, conformer, relative_key_query], ids=lambda m: m.__name__)
def test_packed_sequences_keep_their_distances(server, make):
    q, k, _ = qkv((1, 2, 7, 4))
    places = [0, 1, 2, 0, 1, 2, 3]
    case = make(q, k, places, places)
    expected = attention_truth.attend(q, k, visible=attention_truth.seen(places, places, lens=[3, 4]), **{n: v for n, v in case.expected.items() if n != "values"})
    request = {"scheme": NAMES.get(make, make.__name__), **case.fields, "lens": [3, 4]}
    np.testing.assert_allclose(one(server, request, "probs", q=q, k=k, **{n: t for n, t in case.tensors.items() if n != "rel_v"}),
                               expected["probs"], atol=1e-12)


@pytest.mark.parametrize("make", [alibi, t5, kerple, fire, shaw, transformer_xl, deberta_buckets, relative_key_query], ids=lambda m: m.__name__)
def test_listed_positions(server, make):
    """Few, and so many queries that the keys are multiplied with the whole table."""
    random = np.random.default_rng(3)
    for q_pos, k_pos in (([7, 0, 30], [3, 12, 7, -4, 0]), (random.permutation(60).tolist(), random.permutation(70).tolist())):
        q, k, _ = qkv((1, 2, len(q_pos), 4), 2, len(k_pos))
        case = make(q, k, q_pos, k_pos)
        expected = attention_truth.attend(q, k, **{n: v for n, v in case.expected.items() if n != "values"})["probs"]
        request = {"scheme": NAMES.get(make, make.__name__), **case.fields, "q_positions": q_pos, "k_positions": k_pos}
        got = one(server, request, "probs", q=q, k=k, **{n: t for n, t in case.tensors.items() if n != "rel_v"})
        np.testing.assert_allclose(got, expected, atol=1e-12)


def test_so_many_distances_that_each_head_is_projected_when_it_is_used(server):
    """R of 200,001 distances for 16 heads takes more than 64 MiB once it is projected."""
    q, k, _ = qkv((1, 16, 1, 4), 16, 3)
    case = xl("transformer_xl", q, k, [5], [0, 200_000, 77])
    request = {"scheme": "transformer_xl", **case.fields, "q_positions": [5], "k_positions": [0, 200_000, 77]}
    np.testing.assert_allclose(one(server, request, "scores", q=q, k=k, **case.tensors), attention_truth.attend(q, k, **case.expected)["scores"], atol=1e-10)


def test_so_many_keys_that_their_angles_are_not_kept(server):
    """Cosines and sines of 70,000 positions and 64 pairs take more than 64 MiB; the linear kernel and the scores turn rows as they come."""
    random = np.random.default_rng(4)
    q, k = random.standard_normal((1, 1, 1, 128)), random.standard_normal((1, 1, 70_000, 128)).astype("f2")
    angles = np.arange(70_000)[:, None] * 10000.0 ** (-np.arange(64) / 64)
    z = (k[0, 0, :, :64] + 1j * k[0, 0, :, 64:].astype(float)) * np.exp(1j * angles)
    turned = np.concatenate([z.real, z.imag], -1)
    w = (q[0, 0, 0, :64] + 1j * q[0, 0, 0, 64:]) * np.exp(1j * angles[-1])
    expected = turned @ np.concatenate([w.real, w.imag]) / np.sqrt(128)
    request = {"scheme": "rope", "layout": "half", "k_len": 70_000, "q_len": 1}
    np.testing.assert_allclose(one(server, request, "scores", q=q.astype("f4"), k=k)[0, 0, 0], expected, atol=2e-4)


@pytest.mark.parametrize("after", [False, True])
def test_the_cap_before_or_after_the_bias(server, after):
    q, k, _ = qkv((1, 2, 6, 8), size=2)
    biases = slopes_bias(2, range(6), range(6), "symmetric")
    for dtype, tolerance in (("f8", 1e-13), ("f4", 1e-6)):
        expected = attention_truth.attend(q.astype(dtype), k.astype(dtype), bias=biases, softcap=1.5, cap_after_bias=after)["probs"]
        request = {"scheme": "alibi", "softcap": 1.5, "softcap_after_bias": after}
        np.testing.assert_allclose(one(server, request, "probs", q=q.astype(dtype), k=k.astype(dtype)), expected, atol=tolerance)


def test_a_bias_far_from_zero_keeps_its_digits(server):
    """Cross attention to keys 5000 positions before: all biases are near -2500, and f32 would lose 1e-4 of each."""
    q, k, _ = qkv((1, 2, 40, 16), 2, 50, dtype="f4")
    q_pos, k_pos = range(5000, 5040), range(50)
    expected = attention_truth.attend(q, k, bias=slopes_bias(2, q_pos, k_pos, "symmetric"))["probs"]
    assert np.abs(one(server, {"scheme": "alibi", "q_offset": 5000}, "probs", q=q, k=k) - expected).max() <= 1e-6
    expected = attention_truth.attend(q, k, bias=slopes_bias(2, q_pos, range(90000, 90050), "key"))["probs"]
    got = one(server, {"scheme": "alibi", "form": "key", "offset": 90000, "q_offset": 0}, "probs", q=q, k=k)
    assert np.abs(got - expected).max() <= 1e-6


# ---- Windows -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme,n", [("swin", 6), ("beit", 7)])
def test_window_tables(server, scheme, n):
    q, k, v = qkv((2, 3, n, 4))
    table = draw(window.rows(scheme, 2, 3), 3)
    expected = attention_truth.attend(q, k, v, bias=window.looked_up(scheme, table, 2, 3))
    got = attention(server, {"scheme": scheme, "grid": [2, 3], "outputs": ["probs", "output"]}, q=q, k=k, v=v, table=table)
    for name in got:
        np.testing.assert_allclose(got[name], expected[name], atol=1e-13)


@pytest.mark.parametrize("logit_scale", [None, [0.5, 2.0, 7.0]])
def test_swinv2_and_its_cosine_attention(server, logit_scale):
    q, k, _ = qkv((2, 3, 6, 4))
    w = {"w1": draw(16, 2), "b1": draw(16), "w2": draw(3, 16)}
    extra = {} if logit_scale is None else {"logit_scale": np.array(logit_scale)}
    a, b, scale = q, k, None
    if logit_scale is not None:
        unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)
        a, b, scale = unit(q) * np.exp(np.minimum(logit_scale, np.log(100)))[:, None, None], unit(k), 1.0
    expected = attention_truth.attend(a, b, scale=scale, bias=window.swinv2(2, 3, **w))["probs"]
    np.testing.assert_allclose(one(server, {"scheme": "swinv2", "grid": [2, 3]}, "probs", q=q, k=k, **w, **extra), expected, atol=1e-12)


# ---- Rotary ------------------------------------------------------------------------------------------------------------------


def rotated(x, positions, **parameters):
    return np.stack([np.stack([truth.rotate(row, positions, **parameters) for row in heads]) for heads in x])


@pytest.mark.parametrize("fields", [{}, {"layout": "half"}, {"base": 100.0, "rotary_dim": 4}, {"offset": 1000}], ids=str)
@pytest.mark.parametrize("dtype,tolerance", [("f8", 1e-12), ("f4", 1e-6)])
def test_rope_turns_queries_and_keys(server, fields, dtype, tolerance):
    q, k, v = qkv((2, 4, 5, 8), 2, 9, dtype=dtype)
    q_pos, k_pos = bottom_right(5, 9)
    parameters = {n: f for n, f in fields.items() if n != "offset"}
    shift = fields.get("offset", 0)
    expected = attention_truth.attend(rotated(q, [p + shift for p in q_pos], **parameters), rotated(k, [p + shift for p in k_pos], **parameters), v)
    got = attention(server, {"scheme": "rope", **fields, "outputs": ["probs", "output"]}, q=q, k=k, v=v)
    for name in got:
        np.testing.assert_allclose(got[name], expected[name], atol=4 * tolerance)


def test_xpos(server):
    q, k, _ = qkv((1, 2, 6, 8))
    turn = lambda x, is_key: np.stack([np.stack([rotary.xpos_rotate(h, range(6), is_key) for h in b]) for b in x])
    expected = attention_truth.attend(turn(q, False), turn(k, True), visible=attention_truth.seen(range(6), range(6), causal=True))["probs"]
    np.testing.assert_allclose(one(server, {"scheme": "xpos", "causal": True}, "probs", q=q, k=k), expected, atol=1e-12)


@pytest.mark.parametrize("mask", [{}, {"causal": True}, {"window": 2, "key_mask": [1, 0, 1, 1, 1, 1]}], ids=str)
@pytest.mark.parametrize("scheme", ["none", "rope"])
def test_linear_kernel(server, scheme, mask):
    q, k, v = qkv((2, 4, 6, 8), 2)
    turn = (lambda x, which: rotated(x, range(6))) if scheme == "rope" else (lambda x, which: x)
    expected = attention_truth.linear(q, k, v, rotate=turn, visible=attention_truth.seen(range(6), range(6), **mask))
    got = attention(server, {"scheme": scheme, "kernel": "linear", **mask, "outputs": ["weights", "output"]}, q=q, k=k, v=v)
    for name in got:
        np.testing.assert_allclose(got[name], expected[name], atol=1e-12)


# ---- Absolute ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["add", "multiply", "concat"])
def test_absolute_schemes_are_added_to_x(server, how):
    from truth.absolute import combine
    x = np.random.default_rng(1).standard_normal((2, 7, 8))
    encoding = truth.sinusoidal(range(7), 8).astype(float)
    full = combine(x, encoding, how)
    w = {"w_q": draw(8, full.shape[-1]), "w_k": draw(8, full.shape[-1], seed=3)}
    split = lambda name: (full @ w[name].T).reshape(2, 7, 2, 4).swapaxes(1, 2)
    request = {"scheme": "sinusoidal", "dim": 8, "num_heads": 2, "combine": how}
    np.testing.assert_allclose(one(server, request, "probs", x=x, **w), attention_truth.attend(split("w_q"), split("w_k"))["probs"], atol=1e-12)


def test_learned_rows_are_added_too(server):
    x, table = np.random.default_rng(1).standard_normal((5, 8)), draw(6, 8)
    w = {"w_q": draw(8, 8), "w_k": draw(8, 8, seed=3)}
    split = lambda name: ((x + table[:5]) @ w[name].T).reshape(1, 5, 2, 4).swapaxes(1, 2)
    request = {"scheme": "learned", "num_heads": 2}
    np.testing.assert_allclose(one(server, request, "probs", x=x, table=table, **w), attention_truth.attend(split("w_q"), split("w_k"))["probs"][0], atol=1e-12)


# ---- DeBERTa's projections -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [False, True, "layer_norm"])
@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("types", [["c2p", "p2c"], "p2c|c2p", ["c2p"], "p2c"], ids=str)
def test_deberta_projects_its_embeddings(server, norm, share, types):
    q, k, _ = qkv((1, 3, 9, 4))
    index = attention_truth.deberta_index(range(9), range(9), 4, 8)
    w = {"rel_embeddings": draw(8, 10), "norm_weight": draw(10, seed=2) + 1, "norm_bias": draw(10, seed=3)}
    names = ("w_q", "w_k", "b_q", "b_k") if share else ("w_pos_q", "w_pos_k", "b_pos_q", "b_pos_k")
    w |= {n: draw(*((12, 10) if n[0] == "w" else (12,)), seed=i) for i, n in enumerate(names)}
    p = attention_truth.layer_norm(w["rel_embeddings"], w["norm_weight"], w["norm_bias"]) if norm else w["rel_embeddings"]
    project = lambda i: attention_truth.split_heads(p @ w[names[i]].T + w[names[2 + i]], 3)
    c2p, p2c = attention_truth.by_query(q, project(1), index), attention_truth.by_key(k, project(0), index)
    chosen = {"c2p": c2p, "p2c": p2c}
    chosen = {n: t for n, t in chosen.items() if n in types}
    request = {"scheme": "deberta", "position_buckets": 4, "max_relative_positions": 8, "pos_att_type": types, "norm_rel_ebd": norm, "share_att_key": share}
    got = attention(server, {**request, "outputs": ["scores", *chosen]}, q=q, k=k, **w)
    np.testing.assert_allclose(got["scores"], attention_truth.attend(q, k, terms=sum(chosen.values()), scale=(4 * (1 + len(chosen))) ** -0.5)["scores"], atol=1e-12)
    for name, term in chosen.items():
        np.testing.assert_allclose(got[name], term, atol=1e-12)


def test_transformer_xl_same_length(server):
    """Transformer-XL's same_length: keys j <= i - shift are hidden too; with a full memory each query sees exactly mem_len + 1 keys."""
    q, k, _ = qkv((1, 2, 4, 4), 2, 10)
    q_pos, k_pos = bottom_right(4, 10)
    case = transformer_xl(q, k, q_pos, k_pos)
    visible = attention_truth.seen(q_pos, k_pos, causal=True) & (np.arange(10)[None] > np.arange(4)[:, None] - (4 - (10 - 6)))
    expected = attention_truth.attend(q, k, visible=visible, **case.expected)
    request = {"scheme": "transformer_xl", "causal": True, "same_length": True, "mem_len": 6}
    got = one(server, request, "scores", q=q, k=k, **case.tensors)
    assert np.array_equal(np.isneginf(got), np.isneginf(expected["scores"]))
    np.testing.assert_allclose(one(server, request, "probs", q=q, k=k, **case.tensors), expected["probs"], atol=1e-12)


# ---- A model's shape ---------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(SANITIZED, reason="minutes under a sanitizer")
@pytest.mark.parametrize("make", [relative_key_query, cope, *(
    pytest.param(make, marks=pytest.mark.slow) for make in (None, alibi, t5, kerple, sandwich, shaw, transformer_xl, xlnet, conformer, deberta_buckets))],
                         ids=lambda m: m.__name__ if m else "none")
def test_2048_positions_and_16_heads(server, make):
    """[1, 16, 2048, 64] from .npy parts; output and entropies of all rows are computed, some rows are compared."""
    q, k, v = qkv((1, 16, 2048, 64), dtype="f4")
    rows = [0, 1, 700, 2047]
    few = q[:, :, rows].astype(float)
    case = make(few, k.astype(float), rows, list(range(2048))) if make else Case()
    if make is relative_key_query:
        case = relative_key(few, k.astype(float), rows, list(range(2048)), both=True)
    expected = attention_truth.attend(few, k, v, **case.expected)
    name = NAMES.get(make, make.__name__) if make else "none"
    got = attention(server, {"scheme": name, **case.fields, "outputs": ["output", "row_entropy"]}, q=q, k=k, v=v, **case.tensors)
    assert np.abs(got["output"][:, :, rows] - expected["output"]).max() <= 1e-5
    assert np.abs(got["row_entropy"][:, :, rows] - expected["row_entropy"]).max() <= 1e-4
