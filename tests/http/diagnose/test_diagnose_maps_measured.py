"""/diagnose and what is no rotation: scores, biases, indices of windows and resized tables are measured, so that any number is found and several
mistakes are one reading. Truth is NumPy in float64 by the papers' formulas, rounded once to float32."""
import itertools

import numpy as np
import pytest

import truth
from believed import rounded
from diagnosing import ask, check_form, named
from truth import evidence
from truth.attention import softmax
from truth.bias import t5_bucket
from truth.resample import keys_cubic
from truth.rotary import at_positions

f4 = np.float32


def found(answer):
    """{code: what the tensor has} of an answer that explains it."""
    check_form(answer)
    assert answer["explained"], answer["findings"]
    return {one["code"]: one["found"] for one in answer["findings"] if one["code"] in named(answer)}


# ---- Scores ---------------------------------------------------------------------------------------------------------------------


def map_of(q, k, layout="half", scale=None, by=0, q_still=False, k_still=False, tiled=False, cap=None, causal=True, kind="scores"):
    """Queries and keys at 0 … n-1, the queries' rotation `by` positions further on."""
    n, m = q.shape[2], k.shape[2]
    keys = np.tile(k, (1, q.shape[1] // k.shape[1], 1, 1)) if tiled else np.repeat(k, q.shape[1] // k.shape[1], 1)
    at = np.arange(m - n, m)
    q = q if q_still else at_positions(q, at + by, layout=layout)
    s = q @ (keys if k_still else at_positions(keys, range(m), layout=layout)).swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    s = cap * np.tanh(s / cap) if cap else s
    s = np.where((np.arange(m) <= at[:, None]) | (not causal), s, -np.inf)
    return (softmax(s) if kind == "probs" else s).astype(f4)


MISTAKES = {  # what a port does, the codes, and the value that is said
    "scale": (lambda r: {"scale": round(r.uniform(0.03, 0.6), 3)}, "softmax_scale_other", "scale"),
    "unscaled": (lambda r: {"scale": 1.0}, "softmax_scale_missing", "scale"),
    "shift": (lambda r: {"by": int(r.integers(2, 3000)) * (1, -1)[int(r.integers(2))]}, "alignment_other", "by"),
    "q": (lambda r: {"q_still": True}, "q_not_rotated", None),
    "k": (lambda r: {"k_still": True}, "k_not_rotated", None),
    "heads": (lambda r: {"tiled": True}, "kv_heads_tiled", None),
    "cap": (lambda r: {"cap": float(r.integers(3, 9))}, "softcap_other", "cap"),
}
TWO = [pair for pair in itertools.combinations(MISTAKES, 2) if not {"scale", "unscaled"} >= set(pair) and len({"q", "k", "shift", "heads"} & set(pair)) < 2]


@pytest.mark.parametrize("kind", ["scores", "probs"])
@pytest.mark.parametrize("made", [(one,) for one in MISTAKES] + TWO, ids="-".join)
def test_scores(server, kind, made):
    for seed, layout in enumerate(("half", "interleaved")):
        rng = np.random.default_rng([seed, len(kind), *map(ord, "".join(made))])
        q, k = (rng.standard_normal((1, heads, n, 32)).astype(f4).astype(float) * 1.5 for heads, n in ((4, 20), (2, 24)))
        port = {}
        for one in made:
            port |= MISTAKES[one][0](rng)
        answer = ask(server, {"scheme": "rope", "layout": layout, "causal": True}, q=q.astype(f4), k=k.astype(f4),
                     **{kind: map_of(q, k, layout, **port, kind=kind)})
        got = found(answer)
        assert set(got) == {MISTAKES[one][1] for one in made}, (port, answer["findings"])
        for one in made:
            _, code, value = MISTAKES[one]
            if value:
                want = port[value] + (4 if value == "by" else 0)
                assert got[code] == pytest.approx(want, rel=2e-3 if value == "cap" else 1e-5), (port, answer["findings"])


def test_the_query_of_a_decoding_step(server):
    """Its position is the number of rows in a cache that has dropped some keys."""
    rng = np.random.default_rng(3)
    q, k = rng.standard_normal((1, 2, 1, 64)), rng.standard_normal((1, 2, 128, 64))
    kept = [*range(4), *range(40176, 40300)]
    s = at_positions(q, [128], layout="half") @ at_positions(k, kept, layout="half").swapaxes(-1, -2) / 8
    answer = ask(server, {"scheme": "rope", "layout": "half", "q_positions": [40300], "k_positions": kept}, q=q, k=k, scores=s)
    assert found(answer) == {"alignment_other": 128}
    assert answer["findings"][0]["detail"] == "The first query is rotated to position 128; the configuration has it at 40300."
    assert answer["candidates"][0]["transforms"] == [{"name": "moved", "by": -40172}]


@pytest.mark.parametrize("kind", ["scores", "probs"])
def test_scores_that_follow_no_rule(server, kind):
    """Noise, one number, a row, random numbers: no scale, shift or cap explains them, and a right map has none."""
    rng = np.random.default_rng(11)
    for n in (1, 20):
        q, k = rng.standard_normal((1, 2, n, 32)), rng.standard_normal((1, 2, 24, 32))
        right = map_of(q, k, causal=False, kind=kind)
        assert set(found(ask(server, {"scheme": "rope", "layout": "half"}, q=q, k=k, **{kind: right}))) == set()
        one, row = right.copy(), right.copy()
        one[0, 0, n // 2, 3] *= f4(1.2)
        row[0, 1, n // 2] = row[0, 1, n // 2, ::-1]
        garbage = map_of(rng.standard_normal(q.shape), k, kind=kind)
        for wrong in (right * (1 + 3e-3 * rng.standard_normal(right.shape)), one, row, garbage):
            answer = ask(server, {"scheme": "rope", "layout": "half"}, q=q, k=k, **{kind: wrong.astype(f4)})
            assert not answer["explained"], (n, answer["findings"])
        narrow = {name: rounded(x, "bf16").astype(f4) for name, x in (("q", q), ("k", k), (kind, garbage))}
        assert not ask(server, {"scheme": "rope", "layout": "half"}, **narrow)["explained"], n  # a large scale would excuse any probability


# ---- Biases ---------------------------------------------------------------------------------------------------------------------


def slopes_of(heads, bias_max=8):
    return np.array([float(x) for x in truth.alibi_slopes(heads, bias_max)])


def bucket_of(rel, both=True, count=32, far=128):
    known = {n: t5_bucket(n, count, far, both) for n in set(rel.astype(int).ravel().tolist())}
    return np.vectorize(known.get)(rel.astype(int))


@pytest.mark.parametrize("scheme", ["alibi", "t5", "kerple", "sandwich"])
def test_a_bias_is_shifted(server, scheme):
    """By any number of positions, also beside a mask that is missing."""
    rng = np.random.default_rng(5)
    table = rng.standard_normal((32, 4))
    w = evidence.powers(1e4, 64)
    bias = {"alibi": lambda r: -slopes_of(4)[:, None, None] * abs(r), "t5": lambda r: table[bucket_of(r)].transpose(2, 0, 1),
            "kerple": lambda r: np.tile(-0.6 * np.log(1 + 1.3 * abs(r)), (4, 1, 1)),
            "sandwich": lambda r: (4 / (8 * np.arange(1, 5)))[:, None, None] * np.cos(r[..., None] * w).sum(-1)}[scheme]
    belief = {"t5": {"table": table.tolist()}, "kerple": {"r1": 0.6, "r2": 1.3}, "sandwich": {"bar_dim": 64}}.get(scheme, {})
    rel = np.arange(40) - np.arange(30)[:, None] - 10.0
    for by, more in ((5, {}), (-9, {}), (14, {"causal": True})):
        answer = ask(server, {"scheme": scheme, "num_heads": 4, **belief, **more}, bias=bias((rel + by).astype(int)).astype(f4))
        want = {"alignment_other": 10 - by} | ({"mask_missing": False} if more else {})
        assert found(answer) == want, (by, answer["findings"])


@pytest.mark.parametrize("heads", [8, 6])
def test_slopes_of_alibi(server, heads):
    """The sign of the distance on either side, any bias_max, slopes of each side."""
    rel, m = (np.arange(12) - np.arange(12)[:, None])[None], slopes_of(heads)[:, None, None]
    own = np.linspace(0.1, 0.7, heads).round(3)[:, None, None]
    for bias, code, value in ((-m * rel, "bias_signed", -1), (m * rel, "bias_signed", -1),
                              (-slopes_of(heads, 11)[:, None, None] * abs(rel), "bias_max_other", 11),
                              (-np.where(rel > 0, own, m) * abs(rel), "form_other", "asymmetric")):
        answer = ask(server, {"scheme": "alibi", "num_heads": heads}, bias=bias.astype(f4))
        assert found(answer) == {code: value}, answer["findings"]
    for wrong in (np.random.default_rng(1).standard_normal((heads, 12, 12)), -m * abs(rel) * (1 + 1e-3 * (rel == 3) * (m == m[0]))):
        assert not ask(server, {"scheme": "alibi", "num_heads": heads}, bias=wrong.astype(f4))["explained"]


@pytest.mark.parametrize("sent", ["buckets", "bias"])
def test_buckets_of_t5(server, sent):
    rng = np.random.default_rng(8)
    rel = np.arange(600) - np.arange(8)[:, None] - 592
    for both, far in ((True, 77), (False, 437), (True, 250), (False, 91)):
        table = rng.standard_normal((32, 3))
        b = bucket_of(rel, both, 32, far)
        sends = {"buckets": b} if sent == "buckets" else {"bias": table[b].transpose(2, 0, 1).astype(f4)}
        answer = ask(server, {"scheme": "t5", "bidirectional": both, **({} if sent == "buckets" else {"table": table.tolist()})}, **sends)
        got = found(answer)
        assert set(got) == {"max_distance_other"} and (bucket_of(rel, both, 32, got["max_distance_other"]) == b).all(), (far, got)
    if sent == "buckets":
        answer = ask(server, {"scheme": "t5", "bidirectional": False}, buckets=bucket_of(rel, True, 48, 300))
        assert set(found(answer)) == {"bidirectional_other", "parameter_other", "max_distance_other"}, answer["findings"]
        assert not ask(server, {"scheme": "t5"}, buckets=rng.integers(0, 32, rel.shape))["explained"]


@pytest.mark.parametrize("sent", ["buckets", "bias"])
@pytest.mark.parametrize("scheme", ["swin", "beit"])
def test_the_index_of_a_window(server, sent, scheme):
    """Strides of height for width, of the wrong constant."""
    h, w, rng = 3, 5, np.random.default_rng(2)
    y, x = np.divmod(np.arange(h * w), w)
    table = rng.standard_normal(((2 * h - 1) * (2 * w - 1) + 3 * (scheme == "beit"), 4))
    for stride, one, more in ((2 * h - 1, 1, 0), (1, 2 * h - 1, 0), (2 * w - 1, 1, 2))[:2 + (sent == "buckets")]:
        index = (y[:, None] - y + h - 1) * stride + (x[:, None] - x + w - 1) * one + more
        if scheme == "beit":
            m = (2 * h - 1) * (2 * w - 1)
            index = np.block([[np.array([[m + 2]]), np.full((1, h * w), m)], [np.full((h * w, 1), m + 1), index]])
        sends = {"buckets": index} if sent == "buckets" else {"bias": table[index].transpose(2, 0, 1).astype(f4)}
        answer = ask(server, {"scheme": scheme, "grid": [h, w], "table": table.tolist()}, **sends)
        assert set(found(answer)) == {"index_strides"}, answer["findings"]


# ---- Resized tables -------------------------------------------------------------------------------------------------------------


def weights(n, g, kind, rule="half"):
    """[g, n]: how rows of g are read from n, as torch's interpolate has it, and at other coordinates."""
    step, out = n / g, np.zeros((g, n))
    for o in range(g):
        c = {"half": (o + 0.5) * step - 0.5, "corners": o * (n - 1) / max(g - 1, 1), "corner": o * step}[rule]
        if kind == "nearest":
            out[o, min(int(np.floor(c + (0.5 if rule == "half" else 0))), n - 1)] = 1
            continue
        c = c if kind == "cubic" else min(max(c, 0), n - 1)
        for j in range(int(np.floor(c)) - 2, int(np.ceil(c)) + 3):
            out[o, min(max(j, 0), n - 1)] += max(1 - abs(j - c), 0) if kind == "linear" else keys_cubic(j - c, -0.75)
    return out


KERNELS = {  # and the word of the configuration for it; the others that have one: test_diagnose_grids.py
    "bilinear": ({"kind": "linear"}, "bilinear"), "bicubic": ({"kind": "cubic"}, "bicubic"),
    "nearest": ({"kind": "nearest", "rule": "corner"}, None), "exact": ({"kind": "nearest"}, None),
    "aligned cubic": ({"kind": "cubic", "rule": "corners"}, None), "corner": ({"kind": "linear", "rule": "corner"}, None),
    "cubic corner": ({"kind": "cubic", "rule": "corner"}, None),
}


def resized(table, g, kernel, sides=(0, 1)):
    h, w = table.shape[sides[0]], table.shape[sides[1]]
    t = table.reshape(h, w, -1)
    return np.einsum("ai,bj,ijc->abc", weights(h, g[0], **kernel), weights(w, g[1], **kernel), t)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("believed", ["bilinear", "bicubic"])
def test_a_table_is_resized_otherwise(server, name, believed):
    """By any kernel, to a larger grid and a smaller one, with height for width, and column by column."""
    kernel, word = KERNELS[name]
    rng = np.random.default_rng(len(name))
    for n, g in (((6, 6), (9, 11)), ((12, 8), (5, 6)), ((4, 7), (10, 3))):
        table, prefix = rng.standard_normal((*n, 8)), rng.standard_normal((1, 8))
        belief = {"scheme": "learned", "table": np.concatenate([prefix, table.reshape(-1, 8)]).astype(f4).tolist(), "table_grid": n, "num_prefix": 1,
                  "grid": g, "interpolate": believed}
        table = table.astype(f4).astype(float)
        as_believed = np.abs(resized(table, g, kernel) - resized(table, g, KERNELS[believed][0])).max() < 1e-6
        usual = [] if as_believed else ["interpolation_other"]
        for rows, codes, say in ((resized(table, g, kernel), usual, word), (resized(table, g[::-1], kernel), usual + ["axes_swapped"], word),
                                 (resized(table, g, kernel).swapaxes(0, 1), usual + ["axes_swapped"], None)):
            answer = ask(server, belief, encoding=np.concatenate([prefix, rows.reshape(-1, 8)]).astype(f4))
            got = found(answer)
            assert set(got) == set(codes), (n, g, answer["findings"])
            assert not usual or say is None or got["interpolation_other"] == say, answer["findings"]


def test_a_table_is_not_resized_or_read_as_a_square(server):
    table = np.random.default_rng(1).standard_normal((16, 8)).astype(f4)
    belief = {"scheme": "learned", "table": table.tolist(), "table_grid": [2, 8], "grid": [4, 4], "interpolate": "bicubic"}
    assert list(found(ask(server, belief, encoding=table))) == ["not_resized"]
    square = resized(table.reshape(4, 4, 8).astype(float), (6, 5), {"kind": "cubic"}).reshape(-1, 8).astype(f4)
    said = ask(server, {**belief, "grid": [6, 5]}, encoding=square)["findings"]
    assert [(one["pointer"], one["found"]) for one in said] == [("/table_grid", [4, 4])], said
    for wrong in (table[::-1], table + 1e-3 * np.random.default_rng(2).standard_normal(table.shape)):
        assert not ask(server, belief, encoding=wrong.astype(f4))["explained"]


# ---- Sines on a grid --------------------------------------------------------------------------------------------------------------

AXES = {  # how the coordinates of one axis, or of both, are changed; what is said
    "half": (lambda y, x: (y - 0.5, x - 0.5), {"offset_other", "coords_other"}), "width": (lambda y, x: (y, x + 3), {"offset_other"}),
    "1.5": (lambda y, x: (1.5 * y, x), {"positions_scaled"}), "both": (lambda y, x: (y * 14 / 16, x * 14 / 16), {"positions_scaled"}),
    "backwards": (lambda y, x: (y, x[::-1]), {"positions_reversed"}), "index": (lambda y, x: (np.arange(len(y)), x), {"axes_missing"}),
    "changed": (lambda y, x: (x, y), {"axes_swapped", "style_other"}), "clamped": (lambda y, x: (y, np.minimum(x, 4)), {"positions_clamped"}),
}


@pytest.mark.parametrize("style", ["axial", "mae", "timm", "vjepa", "detr", "detr normalized"])
def test_coordinates_of_sines_on_a_grid(server, style):
    """Each is one finding with its axis; DETR counts from 1 and divides by the sides where it normalizes."""
    h, w, name = 5, 7, style.split()[0]
    y, x = (a.ravel().astype(float) + (name == "detr") for a in np.mgrid[:h, :w])
    belief = {"scheme": "sinusoidal", "dim": 64, "style": name}
    wanted, _ = evidence.columns({**belief, "grid": [h, w]}, h * w, 64)
    unit = (2 * np.pi / (h + 1e-6), 2 * np.pi / (w + 1e-6)) if " " in style else (1, 1)
    for change, (rule, codes) in AXES.items():
        at = np.array([a * s for a, s in zip(rule(y, x), unit)])
        encoding = evidence.waves(wanted, at.T)[0]
        answer = ask(server, {**belief, "grid": [h, w], **({"normalize": True} if " " in style else {})}, encoding=encoding.astype(f4))
        got = found(answer)
        assert len(got) == 1 and set(got) <= codes | {"positions_other"}, (change, answer["findings"])
    for wrong in (encoding + 1e-3 * np.random.default_rng(3).standard_normal(encoding.shape), np.random.default_rng(4).uniform(-1, 1, encoding.shape)):
        assert not ask(server, {**belief, "grid": [h, w]}, encoding=wrong.astype(f4))["explained"]


def test_distances_without_sign(server):
    """Conformer's encoding, from the farthest key behind to the farthest before."""
    d = np.arange(8, -9, -1.0)
    angle = d[:, None] * evidence.powers(1e4, 32)
    for sign in (1, -1):
        one = np.stack([np.sin(abs(angle) * sign), np.cos(angle)], -1).reshape(17, 32)
        answer = ask(server, {"scheme": "conformer", "num_heads": 2, "head_dim": 16, "len": 9}, encoding=one.astype(f4))
        assert list(found(answer)) == ["distances_unsigned"], answer["findings"]
