"""The formulas of GET /schemes/NAME are what the program computes: every line of every scheme and scaling, evaluated from its text
(truth/formula.py), at a thousand random points of valid requests, against /encode in f64 and, of terms that need queries, /attention. A table's
number is within one step of f64 of the exact one."""
import itertools
import json
import random

import numpy as np
import pytest

import truth.draw
from truth.answers import sequences, tensor
from truth.draw.rules import TENSORS
from truth.draw.sequences import OF, axes_of_positions, grid, listed, packed, run, sharded
from truth.formula import Formula, exact

POINTS, EACH = 1000, 30
OWN = {"fire": 1e-13, "recursive": 1e-12, "floater": 1e-12, "swinv2": 1e-13, "learned": 1e-14}  # sums of products in f64, of the larger of 1 and the value
OWN_ATTENTION = 1e-13
ZERO = 1e-30  # what arithmetic of 50 digits has for the sine of so many whole turns
ROUNDED = ("yarn", "longrope")  # their attention factor is a double before it multiplies
LEFT_OUT = ("causal", "window", "window_right", "key_mask", "arith", "scaling", "channels", "mrope_section", "channels_first")
LINES = [run, listed, packed, sharded]


def few(d):
    d.n = d.whole(1, 6)
    return {"len": d.n, **({"offset": d.whole(0, 2)} if d.maybe() else {})}


SEQUENCES = {**dict.fromkeys(("none", "sinusoidal", "rope"), LINES), "fourier": [listed, run, axes_of_positions], "recursive": [few], "floater": [few], "learned": [*OF["learned"][:3], lambda d: grid(d, (2,))],
             **dict.fromkeys(("swin", "swinv2", "beit"), [lambda d: grid(d, (2,))]),
             **{name: [make for make in OF[name] if make.__name__ != "masked"] for name in ("alibi", "t5", "kerple", "fire", "sandwich")}}


# ---- Requests ----------------------------------------------------------------------------------------------------------


def lists(d, pairs):
    return {name: [d.rng.uniform(0.5, 60) for _ in range(pairs)] for name in ("short_factor", "long_factor")}


def original(d):
    return {"original_max_position_embeddings": d.one_of(d.whole(16, 9000), d.whole(2, 40))}


def factor(d, low=0.3):
    return {"factor": d.rng.uniform(low, 40)}


def some(d, **more):
    return {name: value for name, value in more.items() if d.maybe(0.5)}


SCALINGS = {
    "default": lambda d, pairs: some(d, divisors=[d.rng.uniform(0.5, 60) for _ in range(pairs)]),
    "linear": lambda d, pairs: {**factor(d), **some(d, convention="tgi")},
    "ntk": lambda d, pairs: factor(d),
    "ntk_fixed": lambda d, pairs: {**factor(d), **some(d, mixed_b=d.rng.uniform(0.3, 2))},
    "dynamic": lambda d, pairs: {**factor(d, 1), "max_position_embeddings": d.whole(4, 99), **some(d, seq_len=d.whole(1, 999), convention="vllm")},
    "yarn": lambda d, pairs: {**factor(d), **original(d), **d.one_of({}, {"truncate": False}, {"truncate": False, "beta_fast": 3, "beta_slow": 3}),
                              **some(d, beta_fast=d.rng.uniform(4, 60)), **some(d, beta_slow=d.rng.uniform(0.01, 2), extrapolation_factor=d.rng.random()),
                              **d.one_of({}, {"mscale": 0.7}, {"mscale": 0.7, "mscale_all_dim": 1.3}, {"attention_factor": 1.5})},
    "longrope": lambda d, pairs: {**factor(d), **lists(d, pairs), "list": d.one_of("auto", "auto", "short", "long"),
                                  "convention": d.one_of("transformers", "vllm", "mlx"), "original_max_position_embeddings": 64,
                                  **some(d, seq_len=d.whole(62, 67), short_mscale=1.1, long_mscale=1.2)},
    "llama3": lambda d, pairs: {**factor(d), **original(d), "low_freq_factor": d.rng.uniform(0.5, 2), "high_freq_factor": d.rng.uniform(2, 9)},
    "proportional": lambda d, pairs: {**some(d, **factor(d)), "partial_rotary_factor": d.rng.random()},
    "riflex": lambda d, pairs: {"k": d.whole(1, pairs), "seq_len": d.whole(1, 999)},
}


def scaled(d, name):
    for field in ("inv_freq", "rotary_dim", "rotary_offset", *["attention_factor"] * d.maybe(0.8)):
        d.request.pop(field, None)
    if name == "yarn" and d.maybe(0.3):
        d.request["base"] = 20  # the ramp may end beyond the last pair
    d.request["scaling"] = {"type": name, **SCALINGS[name](d, d.request["head_dim"] // 2)}


def tensors_of(d):
    """A network is small, and of two layers as the formulas have them."""
    sent = TENSORS[d.row["name"]](d)
    while "w1" in sent and ("w2" not in sent or "w3" in sent or np.prod(sent["w1"]["shape"]) > 16):
        sent = TENSORS[d.row["name"]](d)
    return sent


def spread(d):
    """Coordinates of perceiver; a run or a grid it would spread over [-1, 1]."""
    d.request = {"scheme": "fourier", **axes_of_positions(d), "style": "perceiver", "num_bands": d.whole(1, 6), "concat_pos": d.maybe(0.5), "sine_only": d.maybe(0.5),
                 "max_resolution": [d.whole(2, 99) for _ in range(d.n_axes)]}


# What the rows alone seldom draw.
SELDOM = {
    "floater": lambda d: d.request.update(substeps=d.whole(1, 2)),
    "fourier": lambda d: spread(d) if d.request["style"] == "perceiver" else d.request.update(num_freqs=d.whole(1, 8)) if d.request["style"] == "nerf" else None,
    "alibi": lambda d: d.request.update(key_mask=[d.whole(0, 1) for _ in range(d.n)]) if d.request.get("form") == "key_mask" and d.maybe(0.7) else None,
    "shaw": lambda d: d.request.update(direction=d.one_of("key_minus_query", "query_minus_key")),
    "deberta": lambda d: d.request.update(clamp_first=d.maybe(0.5), max_relative_positions=d.whole(12, 40), position_buckets=d.one_of(-1, 2, 5, 8, 9)),
}


def encoded(row, rng, scaling):
    """A request of /encode, on one axis or a grid as the formula is."""
    d, name = truth.draw.Draw(row, rng), row["name"]
    d.request |= rng.choice(SEQUENCES.get(name, OF[name]))(d)
    d.parameters()
    if name in TENSORS and (name != "fourier" or d.request["style"] == "gaussian"):
        d.request.pop("seed", None)
        d.request |= tensors_of(d)
    if name == "learned" and "table" in d.request and "grid" in d.request:
        d.request = {"scheme": name, "grid": d.request["grid"], "row_table": d.normal(9, 3), "col_table": d.normal(9, 3)}
    d.request = {field: value for field, value in d.request.items() if field not in (*LEFT_OUT, "form" if row["family"] == "rotary" else "")}
    SELDOM.get(name, lambda d: None)(d)
    if scaling:
        scaled(d, scaling)
    return d.request | {"outputs": [o["name"] for o in row["outputs"] if o["name"] not in ("positions", "rope_delta") and o.get("when") in (None, "form=pairs", "weights")],
                        "dtype": "f64", **({"channels_first": False} if name == "learned" else {})}


def attended(row, rng):
    """A request of /attention with the tensors of its scheme: one batch, self-attention or with more keys."""
    d, name = truth.draw.Draw(row, rng), row["name"]
    heads, width, n, more, rows = d.whole(1, 3), 2 * d.whole(1, 3), d.whole(1, 5), d.whole(0, 3), d.whole(1, 4)
    sent = {
        "shaw": lambda: {"p_min": -2, "p_max": 1, "direction": d.one_of("key_minus_query", "query_minus_key"), "rel_k": (4, width)},
        "deberta": lambda: {"max_relative_positions": 6, **some(d, position_buckets=4), "pos_key": (heads, 12, width), "pos_query": (heads, 12, width)},
        "cope": lambda: {"causal": True, "npos_max": rows, "pos_emb": (rows, width)},
        "decomposed": lambda: {"grid": [rows, n], "rel_h": (2 * rows - 1, width), "rel_w": (2 * n - 1, width)},
        **dict.fromkeys(("transformer_xl", "xlnet", "conformer"), lambda: {
            **some(d, clamp_len=d.whole(1, 4), base=300.5), "d_model": 4, "u": (heads, width), "v_bias": (heads, width), "w_r": (heads * width, 4)})}[name]()
    if name == "xlnet" and d.maybe(0.5):
        more, sent = 0, {**sent, "token_type_ids": [d.whole(0, 1) for _ in range(n)], "seg_embed": (2, heads, width), "r_s_bias": (heads, width)}
    if sent.get("position_buckets"):
        sent |= {"pos_key": (heads, 8, width), "pos_query": (heads, 8, width)}
    n, more = (rows * n, 0) if name == "decomposed" else (n, more)
    sent |= {"q": (heads, n, width), "k": (heads, n + more, width), "v": (heads, n + more, width)}
    sent = {field: d.normal(*value, dtype="f64") if isinstance(value, tuple) else value for field, value in sent.items()}
    return {"scheme": name, **sent, "outputs": ["scores"], "dtype": "f64"}


# ---- Points ------------------------------------------------------------------------------------------------------------


def values_of(request, config):
    """Fields as the answer's config resolves them, except those that the formula itself resolves; tensors as they were sent."""
    own = request.get("scaling", {})
    fields = {**request, **own, **config, **(config.get("scaling") or {}), **{name: own[name] for name in {"list"} & set(own)}}
    fields["attention_factor"] = request.get("attention_factor", own.get("attention_factor"))
    fields |= {name: tensor(request[name], name) for name in request if isinstance(request[name], dict) and "data" in request[name]}
    return fields | {"Q": fields.get("q"), "K": fields.get("k")}


def points_of(request, name, found):
    """(symbol, the variables of each place) of a tensor of the answer."""
    scheme, is_pairwise = request["scheme"], name in ("bias", "buckets", "index", "index_h", "index_w", "scores")
    if name == "inv_freq":
        return "w'_c", lambda place: {"c": place[0]}
    if name == "slopes":
        return "m_h", lambda place: {"h": place[0]}
    if is_pairwise and "grid" in request:
        return "S" if name == "scores" else name, lambda place: {"h": place[0] if len(place) > 2 else 0, "m": place[-2], "n": place[-1]}
    if is_pairwise:
        shape = {"q_len": found.shape[-2], "k_len": found.shape[-1], **request} if name == "scores" else request
        q, k = (list(map(exact_of, axis)) for axis in sequences.pairs(shape))
        return "S" if name == "scores" else name, lambda place: {"h": place[0] if len(place) > 2 else 0, "m": place[-2], "n": place[-1], "q": q[place[-2]],
                                                                 "n_m": place[-2] + len(k) - len(q), "k": k[place[-1]], "k_last": k[-1], "delta": q[place[-2]] - k[place[-1]]}
    axes = [list(map(exact_of, axis)) for axis in sequences.axes(request)]
    common = {"N": len(axes[0]), "P": max(axes[0]), "A": len(axes)}
    symbol = {"encoding": "E" if "row_table" in request else "PE", "cos": "cos", "sin": "sin", "scale": "scale"}[name]
    return symbol, lambda place: {**common, "p": axes[0][place[0]], "j": place[-1], "c": place[-1], "x": tuple(axis[place[0]] for axis in axes)}


def exact_of(position):
    return int(position) if float(position).is_integer() else exact(float(position))


def compare(request, rules, tensors, rng, most):
    """The number of points that agree."""
    n = 0
    scheme, listed_deltas = request["scheme"], tensors.pop("distances", None)
    for name, found in tensors.items():
        found = found[0] if name == "scores" and found.ndim == 4 else found
        if listed_deltas is not None:
            symbol, point = "R", lambda place: {"delta": int(listed_deltas[place[0]]), "j": place[1]}
        else:
            symbol, point = points_of(request, name, found)
        if symbol not in rules.lines:
            continue
        places = list(itertools.product(*map(range, found.shape)))
        for place in rng.sample(places, min(len(places), -(-most // len(tensors)))):
            value, at = float(found[place]), point(place)
            if not np.isfinite(value):  # a hidden key
                continue
            right = rules.value(symbol, **at)
            own = OWN_ATTENTION if symbol == "S" else OWN.get(scheme, 0)
            steps = 2 if request.get("scaling", {}).get("type") in ROUNDED else 1
            slack = max(steps * np.spacing(abs(float(right))), own * max(1, abs(float(right))), ZERO)
            assert abs(right - value) <= slack, f"{name}{list(place)} is {value!r}, {symbol} is {float(right)!r} at {at}"
            n += 1
    return n


def tried(server, path, request, lines, rng):
    answer = server.ask(path, **request)
    assert answer.status == 200, answer
    answer = answer.json()
    tensors = {name: np.array(t["data"], float) for name, t in answer["tensors"].items()}
    rules = Formula(lines, values_of(request, answer["config"]))
    if "A" in rules.lines and "attention_factor" in answer["config"]:
        assert float(rules.value("A")) == answer["config"]["attention_factor"]
    return compare(request, rules, tensors, rng, EACH)


def check(server, name, make, path="/encode", scaling=None):
    row = server.get(f"/schemes/{name}").json()
    lines = row["formula"] + next((s["formula"] for s in row.get("scalings", []) if s["name"] == scaling), [])
    n = 0
    for i in itertools.count():
        rng = random.Random(f"{name} {scaling} {path} {i}")
        request = make(row, rng)
        try:
            n += tried(server, path, request, lines, rng)
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\n{json.dumps(request)}", pytrace=False)
        if n >= POINTS:
            return


def rotated(row, rng, scaling=None):
    """A request of /rotate: one query at one position."""
    request = encoded(row, rng, scaling)
    fields = {name: value for name, value in request.items() if name not in ("outputs", "dtype", "len", "offset", "lens", "cu_seqlens", "shard")}
    d = truth.draw.Draw(row, rng)
    return {**fields, "layout": d.one_of("interleaved", "half"), "positions": [d.whole(-99, 99)], "q": d.normal(1, request["head_dim"], dtype="f64")}


def compare_rotated(request, rules, found):
    """Both channels of every pair; the others of the head stay."""
    q, found, r, first = rules.values["q"].ravel(), found.ravel(), rules.values["rotary_dim"], rules.values["rotary_offset"]
    for c in range(r // 2):
        at = (2 * c, 2 * c + 1) if request["layout"] == "interleaved" else (c, c + r // 2)
        x = [q[first + i] for i in at]
        for symbol, i in zip(("y_1", "y_2"), at):
            right = rules.value(symbol, p=request["positions"][0], c=c, x_1=exact_of(x[0]), x_2=exact_of(x[1]))
            assert abs(right - float(found[first + i])) <= 1e-13 * max(1, abs(float(right))), f"{symbol} of pair {c}"


# ---- Tests -------------------------------------------------------------------------------------------------------------

ATTENDED = ("shaw", "deberta", "cope", "decomposed", "transformer_xl", "xlnet", "conformer")


@pytest.mark.parametrize("name", truth.draw.SCHEMES)
def test_encode(server, name):
    check(server, name, lambda row, rng: encoded(row, rng, None))


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("name", ["rope"])
def test_scalings(server, name, scaling):
    check(server, name, lambda row, rng: encoded(row, rng, scaling), scaling=scaling)


@pytest.mark.parametrize("name", ["rope", "xpos"])
def test_rotate(server, name):
    row = server.get(f"/schemes/{name}").json()
    for i in range(60):
        request = rotated(row, random.Random(f"{name} {i}"))
        answer = server.ask("/rotate", **request)
        assert answer.status == 200, answer
        answer = answer.json()
        rules = Formula(row["formula"], values_of(request, answer["config"]))
        compare_rotated(request, rules, np.array(answer["tensors"]["q"]["data"], float))


@pytest.mark.parametrize("name", ATTENDED)
def test_attention(server, name):
    check(server, name, attended, "/attention")


def test_everything_is_tried(server):
    schemes = [row["name"] for row in server.get("/schemes").json()["schemes"]]
    assert {*truth.draw.SCHEMES, *ATTENDED} == set(schemes)
    assert [s["name"] for s in server.get("/schemes/rope").json()["scalings"]] == list(SCALINGS)
