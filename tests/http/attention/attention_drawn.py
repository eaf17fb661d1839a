"""Random requests of /attention that truth/answers_attention.py knows: shapes, grouped heads, masks, places and the parameters of every scheme."""
import numpy as np

SCHEMES = {}
LARGE = [(141, 133), (1, 300), (40, 1100), (150, 70), (70, 150), (131, 131)]
ABSOLUTE = {
    "none": lambda rng: {}, "integer": lambda rng: {}, "binary": lambda rng: {"bits": 14}, "sinusoidal": lambda rng: some(rng, base=100.0, layout="half"),
    "fourier": lambda rng: {"num_freqs": 3, "combine": "concat"}, "learned": lambda rng: {"seed": 1, "std": 0.5}, "recursive": lambda rng: {"seed": 2, "std": 0.3},
    "floater": lambda rng: {"seed": 2, "std": 0.3}}
RELATIVE_TERMS = ("shaw", "transformer_xl", "xlnet", "conformer", "deberta", "cope", "decomposed")


def scheme(function):
    SCHEMES[function.__name__] = function
    return function


def some(rng, **fields):
    """Each of the fields or not."""
    return {name: value for name, value in fields.items() if rng.random() < 0.5}


def tensor(rng, *shape, size=0.5, dtype="f64"):
    data = (size * rng.standard_normal(shape)).astype("f4")
    return {"dtype": dtype, "shape": list(shape), "data": data.ravel().tolist()}


class Shape:
    def __init__(self, rng):
        self.batch, self.kv, group = (int(n) for n in rng.integers(1, 4, 3))
        self.heads, self.d = self.kv * group, 2 * int(rng.integers(1, 5))
        self.k_len = int(rng.integers(1, 12))
        self.q_len = self.k_len if rng.random() < 0.5 else int(rng.integers(1, 12))
        if rng.random() < 0.1:  # blocks of rows, and what ends inside one
            self.batch, self.heads = 1, 2 * self.kv
            self.q_len, self.k_len = LARGE[rng.integers(len(LARGE))]


# ---- Parameters of each scheme ---------------------------------------------------------------------------------------------


@scheme
def rope(rng, s):
    scaling = [{"type": "linear", "factor": 3}, {"type": "ntk", "factor": 4}, {"type": "default"}][rng.integers(3)]
    even = 2 * int(rng.integers(1, s.d // 2 + 1))
    fields = some(rng, base=100.0, layout="half", direction=-1, rotary_dim=even, attention_factor=1.5)
    return fields | ({"scaling": scaling} if even == s.d > 2 and rng.random() < 0.5 else {})


@scheme
def xpos(rng, s):
    return some(rng, scale_base=16.0, gamma=1.0, layout="half", center=4)


@scheme
def alibi(rng, s):
    form = ["symmetric", "relative", "asymmetric", "key", "key_end", "key_mask"][rng.integers(6)]
    slopes = (0.5 + rng.integers(0, 8, s.heads) / 4).tolist()
    if form == "asymmetric":
        return {"form": form, "slopes_left": slopes, "slopes_right": slopes[::-1]}
    return {"form": form, **some(rng, slopes=slopes, bias_scaled=True, softcap_after_bias=True)}


@scheme
def t5(rng, s):
    buckets, one_way = [32, 8][rng.integers(2)], some(rng, bidirectional=False)
    fields = {"num_buckets": buckets, "max_distance": [128, 9][rng.integers(2)] if buckets == 8 else 128}
    return {**fields, "table": tensor(rng, buckets, s.heads, size=2), **one_way, **some(rng, table_scale=0.5)}


@scheme
def kerple(rng, s):
    return {"kind": ["log", "power"][rng.integers(2)], "r1": [0.1 * (h + 1) for h in range(s.heads)], "r2": [1.0 / (h + 1) for h in range(s.heads)]}


@scheme
def fire(rng, s):
    return {"w1": tensor(rng, 8, 1), "b1": tensor(rng, 8), "w2": tensor(rng, s.heads, 8), "b2": tensor(rng, s.heads), **some(rng, init_l=4.0, l_mult=1.5, c=0.5)}


@scheme
def sandwich(rng, s):
    return {"bar_dim": [32, 6][rng.integers(2)], **some(rng, base=100.0)}


def grid_of(rng, s, tokens=0):
    grid = rng.integers(1, 4, 2).tolist()
    s.q_len = s.k_len = grid[0] * grid[1] + tokens
    return grid, (2 * grid[0] - 1) * (2 * grid[1] - 1)


@scheme
def swin(rng, s):
    grid, rows = grid_of(rng, s)
    return {"grid": grid, "table": tensor(rng, rows, s.heads)}


@scheme
def beit(rng, s):
    grid, rows = grid_of(rng, s, 1)
    return {"grid": grid, "table": tensor(rng, rows + 3, s.heads)}


@scheme
def swinv2(rng, s):
    grid, _ = grid_of(rng, s)
    weights = {"w1": tensor(rng, 16, 2), "b1": tensor(rng, 16), "w2": tensor(rng, s.heads, 16)}
    return {"grid": grid, **weights, **some(rng, logit_scale=rng.integers(0, 12, s.heads).astype(float).tolist())}


@scheme
def decomposed(rng, s):
    grid, _ = grid_of(rng, s)
    rows = [2 * side - 1 + int(rng.integers(0, 2)) * int(rng.integers(1, 6)) for side in grid]  # some of another length
    return {"grid": grid, "rel_h": tensor(rng, rows[0], s.d), "rel_w": tensor(rng, rows[1], s.d)}


@scheme
def shaw(rng, s):
    style = ["clipped", "sinusoidal", "relative_key", "relative_key_query"][rng.integers(4)]
    if style.startswith("relative_key"):
        return {"table_style": style, "rel_k": tensor(rng, 2 * max(64, s.q_len + s.k_len) - 1, s.d)}
    low, high = (-int(rng.integers(0, 6)), int(rng.integers(1, 6)))
    ends = {"max_relative": high} if rng.random() < 0.5 else {"p_min": low, "p_max": high}
    if style == "sinusoidal":
        return {"table_style": style, "max_relative": high, **some(rng, direction="query_minus_key")}
    rows = 2 * high + 1 if "max_relative" in ends else high - low + 1
    return {**ends, "rel_k": tensor(rng, rows, s.d), "rel_v": tensor(rng, rows, s.d), **some(rng, direction="query_minus_key")}


def xl(rng, s):
    w = {"u": tensor(rng, s.heads, s.d), "v_bias": tensor(rng, s.heads, s.d), "w_r": tensor(rng, s.heads * s.d, 10, size=0.3), "d_model": 10}
    return {**w, **some(rng, clamp_len=int(rng.integers(1, 5)), base=100.0)}


@scheme
def transformer_xl(rng, s):
    s.q_len = min(s.q_len, s.k_len)
    return xl(rng, s) | ({"same_length": True, "causal": True, "mem_len": int(rng.integers(0, 7))} if rng.random() < 0.4 else {})


@scheme
def xlnet(rng, s):
    s.q_len = min(s.q_len, s.k_len)
    segments = {"seg_embed": tensor(rng, 2, s.heads, s.d), "r_s_bias": tensor(rng, s.heads, s.d), "token_type_ids": rng.integers(0, 3, s.k_len).tolist()}
    return xl(rng, s) | (segments if rng.random() < 0.6 else {})


@scheme
def conformer(rng, s):
    return xl(rng, s)


@scheme
def deberta(rng, s):
    buckets, most = [(-1, 6), (4, 8), (8, 16)][rng.integers(3)]
    types = [["c2p", "p2c"], ["c2p"], "p2c", "p2c|c2p"][rng.integers(4)]
    rows, names = 2 * (buckets if buckets > 0 else most), {"c2p": "pos_key", "p2c": "pos_query"}
    fields = {"max_relative_positions": most, "pos_att_type": types, **({"position_buckets": buckets} if buckets > 0 else {}), **some(rng, clamp_first=True)}
    if rng.random() < 0.5:
        return fields | {name: tensor(rng, s.heads, rows, s.d) for to, name in names.items() if to in types}
    share, norm, d = bool(rng.integers(2)), [False, True, "layer_norm"][rng.integers(3)], s.heads * s.d
    ending = "" if share else "pos_"
    fields |= {"share_att_key": share, "norm_rel_ebd": norm, "rel_embeddings": tensor(rng, rows, 10)}
    if norm:
        fields |= {"norm_weight": tensor(rng, 10), "norm_bias": tensor(rng, 10)}
    return fields | {f"{kind}_{ending}{letter}": tensor(rng, *((d, 10) if kind == "w" else (d,))) for kind in "wb" for letter in "qk"}


@scheme
def cope(rng, s):
    return {"pos_emb": tensor(rng, 5, s.d)}


def none(rng, s):
    return {}


# ---- Tensors, places, masks ------------------------------------------------------------------------------------------------


def places(rng, s, name):
    """Where queries and keys are; windows have their places of the grid."""
    kind = rng.integers(5)
    if name in ("swin", "swinv2", "beit", "decomposed") or kind == 0:
        return {}
    if kind == 1 and s.q_len == s.k_len:
        lens = np.diff([0, *sorted(rng.choice(np.arange(1, s.k_len), rng.integers(0, s.k_len), replace=False).tolist()), s.k_len]).tolist()
        return {"lens": lens}
    if kind == 2 and name not in ("xlnet", "transformer_xl", "xpos", "cope"):
        n = max(40, s.q_len, s.k_len)
        return {"q_positions": rng.permutation(n)[:s.q_len].tolist(), "k_positions": rng.permutation(n)[:s.k_len].tolist()}
    return some(rng, offset=int(rng.integers(0, 50)), **({} if name in ("transformer_xl", "xlnet") else {"q_offset": int(rng.integers(-2, 12))}))


def masks(rng, s):
    fields = some(rng, causal=True) | some(rng, window=int(rng.integers(1, 5)), window_right=int(rng.integers(0, 4)))
    if rng.random() < 0.4:
        shape = (s.batch, s.k_len) if rng.random() < 0.5 else s.k_len
        fields["key_mask"] = (rng.random(shape) < 0.7).astype(int).tolist()
    return fields


def laid_out(array, layout):
    turn = {"bhnd": lambda a: a, "bnhd": lambda a: a.swapaxes(1, 2), "nbhd": lambda a: a.transpose(2, 0, 1, 3), "nhd": lambda a: a[0].swapaxes(0, 1),
            "flat": lambda a: a[0].swapaxes(0, 1).reshape(a.shape[2], -1), "bflat": lambda a: a.swapaxes(1, 2).reshape(len(a), a.shape[2], -1)}
    return turn[layout](array)


def tensors(rng, s, dtype, fields):
    """q, k, v in some layout; axes of length 1 in front may be missing."""
    layout = ["bhnd", "bhnd", "bnhd", "nbhd", "nhd", "flat", "bflat"][rng.integers(7)]
    if layout in ("nhd", "flat"):
        s.batch = 1
        fields.update({"key_mask": fields["key_mask"][0]} if np.ndim(fields.get("key_mask")) == 2 else {})
    missing = 0 if s.batch > 1 else rng.integers(0, 3 if s.heads == 1 and layout == "bhnd" else 2) if layout in ("bhnd", "bnhd") else 0
    out = {} if layout == "bhnd" else {"tensor_layout": layout}
    if layout in ("flat", "bflat"):
        out["head_dim"] = s.d
    v_dim = s.d if layout in ("flat", "bflat") or fields["scheme"] == "shaw" else s.d + int(rng.integers(0, 2))
    for name, heads, n, width in (("q", s.heads, s.q_len, s.d), ("k", s.kv, s.k_len, s.d), ("v", s.kv, s.k_len, v_dim)):
        array = laid_out(rng.standard_normal((s.batch, heads, n, width)).astype("f4"), layout)
        array = array.reshape(array.shape[missing:])
        out[name] = {"dtype": dtype, "shape": list(array.shape), "data": array.ravel().tolist()}
    return out


def seeded(rng, name, parameters):
    """The same with weights of a seed, where the scheme has them."""
    given = [key for key, value in parameters.items() if isinstance(value, dict) and "data" in value]
    if not given or "rel_embeddings" in parameters or "seg_embed" in parameters or rng.random() < 0.7 or str(parameters.get("table_style")).startswith("relative_key"):
        return parameters
    kept = {key: value for key, value in parameters.items() if key not in given}
    return {**kept, "seed": int(rng.integers(0, 100)), "std": 0.5, **({"npos_max": 4} if name == "cope" else {})}


def scaled_queries(rng, request, s):
    """query_scale, where the positions are from 0 on."""
    lowest = min(request.get("q_positions", [request.get("offset", 0) + request.get("q_offset", 0 if "lens" in request else s.k_len - s.q_len)]))
    rules = [{"type": "ministral", "original_max_position_embeddings": 8}, {"type": "llama4", "beta": 0.3}, {"type": "logn", "original_max_position_embeddings": 5}]
    return {"query_scale": rules[rng.integers(3)]} if lowest >= 0 and "kernel" not in request and rng.random() < 0.5 else {}


def drawn(rng, name, dtype):
    s = Shape(rng)
    parameters = seeded(rng, name, {**SCHEMES, "none": none}[name](rng, s))
    fields = {"scheme": name, **masks(rng, s), **parameters}
    if name in ("transformer_xl", "xlnet", "conformer") and "window" in fields:
        fields.pop("window")
    linear = name in ("none", "rope") and rng.random() < 0.3
    if linear:
        fields |= {"kernel": "linear", "outputs": ["weights", "output"]}
    else:
        terms = ["terms"] if name in RELATIVE_TERMS and "softcap" not in fields else []
        fields["outputs"] = [["scores", "probs", "output", "row_entropy", *terms][i] for i in rng.permutation(4 + len(terms))]
        if name == "shaw":
            fields["outputs"] += ["output_terms"]
        if name == "deberta":
            fields["outputs"] += [to for to in ("c2p", "p2c") if to in parameters["pos_att_type"]]
        fields |= some(rng, softmax_scale=[0.3, -0.4, 1.0][rng.integers(3)])
        if not terms and rng.random() < 0.4:
            fields["softcap"] = 1.5
        if rng.random() < 0.3 and "logit_scale" not in fields:
            fields["sinks"] = rng.integers(-2, 3, s.heads).astype(float).tolist()
    if "softcap" not in fields:
        fields.pop("softcap_after_bias", None)
    made = tensors(rng, s, dtype, fields)
    request = {**fields, **places(rng, s, name), **made}
    if "lens" in request:  # of two sequences DeBERTa's terms say nothing
        request["outputs"] = [to for to in request["outputs"] if to not in ("c2p", "p2c")]
    return request | (scaled_queries(rng, request, s) if name in ("none", "rope", "alibi") else {})


def drawn_of_x(rng, name, dtype):
    """Embeddings with weights: absolute schemes, and any other without positions of its own."""
    s = Shape(rng)
    n, dim, heads, kv, d = min(s.k_len, 90), 2 * int(rng.integers(1, 5)), s.heads, s.kv, s.d
    lead = [[], [2], [2, 3]][rng.integers(3)] if n < 40 else []
    parameters = ABSOLUTE[name](rng)
    concat = parameters.get("combine") == "concat" or rng.random() < 0.2 and name == "sinusoidal"
    width = dim + (7 if name == "fourier" else dim if concat else 0)
    request = {"scheme": name, "num_heads": heads, **parameters, **({"combine": "concat"} if concat else {}), "x": tensor(rng, *lead, n, dim, dtype=dtype)}
    for letter, h in (("q", heads), ("k", kv), ("v", kv)):
        request[f"w_{letter}"] = tensor(rng, h * d, width, dtype=dtype)
        if rng.random() < 0.5:
            request[f"b_{letter}"] = tensor(rng, h * d, dtype=dtype)
    request |= some(rng, causal=True, offset=int(rng.integers(0, 5)) if name not in ("recursive", "floater", "learned") else 0)
    request |= some(rng, x_scale=2.0, **({} if name == "fourier" else {"pe_scale": 0.5}))
    request["outputs"] = ["probs", "scores", "output", *([] if concat else ["terms"])]
    return request
