"""What /attention must answer, from the request's own fields: positions, masks, the scheme's part, softmax or the linear kernel, layouts."""
import numpy as np

import truth.absolute as absolute
import truth.attention as attention
from truth.analysis_plans import FAMILY
from truth.answers import absolute as encodings
from truth.answers import bias as biases
from truth.answers import of, relative, tensor
from truth.answers.rotate import in_order, query_factor, turned

MASKS = ("causal", "window", "window_right")
WINDOWS = ("swin", "swinv2", "beit", "decomposed")
XL = ("transformer_xl", "xlnet", "conformer")
# Fields of /attention alone, and tensors: the rest is a configuration.
ALONE = ("q", "k", "v", "x", "outputs", "softmax_scale", "softcap", "softcap_after_bias", "sinks", "query_scale", "rotate_values", "unrotate_output", "kernel", "tensor_layout", "bias_scaled", "q_positions",
         "k_positions", "positions", "key_mask", "lens", "len", "offset", "q_offset", "q_len", "k_len", "grid", "dtype", "format", "scores", "combine", "x_scale")


def from_heads(array, layout, lead):
    """An output of rows in the layout that came; lead: the axes before the last two that came."""
    if layout == "nbhd":
        return array.transpose(2, 0, 1, 3)
    array = array.reshape(*lead, *array.shape[-2:])
    if layout in ("bnhd", "nhd", "flat", "bflat"):
        array = array.swapaxes(-3, -2)
    return array.reshape(*array.shape[:-2], -1) if layout in ("flat", "bflat") else array


class Asked:
    """The fields of a request, and what they mean."""

    def __init__(self, request):
        self.request, self.scheme, self.layout = request, request["scheme"], request.get("tensor_layout", "bhnd")
        self.config = {name: value for name, value in request.items() if name not in ALONE}
        self.parts = None
        if "x" in request:
            self.project(tensor(request["x"], "x"))
        elif "scores" in request:  # rows of scores are their products with the unit vectors
            given = tensor(request["scores"], "scores")
            self.q, self.v = given.reshape((1,) * (4 - given.ndim) + given.shape), tensor(request["v"], "v") if "v" in request else None
            self.k = np.broadcast_to(np.eye(given.shape[-1]), (*self.q.shape[:2], *[given.shape[-1]] * 2))
            self.v = self.v if self.v is None else self.v.reshape((1,) * (4 - self.v.ndim) + self.v.shape)
            self.lead = self.q.shape[4 - given.ndim:2]
        else:
            given = {name: tensor(request[name], name) for name in "qkv" if name in request}
            q, k, v = (name in given and in_order(given[name], request)[0] for name in "qkv")
            self.q, self.k, self.v = q, k, v if "v" in given else None
            self.lead = q.shape[:2] if self.layout in ("nbhd", "bflat") else q.shape[1:2] if self.layout in ("nhd", "flat") else q.shape[4 - given["q"].ndim:2]
        self.heads, self.q_len, self.k_len, self.d = self.q.shape[1], self.q.shape[2], self.k.shape[2], self.q.shape[3]
        self.place()

    def weight(self, name, *shape, std=0.02):
        if name in self.request:
            return tensor(self.request[name], name)
        return absolute.seeded(name, shape, self.request["seed"], self.request.get("std", std)).astype(float)

    def project(self, x):
        """x, with the rows of an absolute scheme, times the weights; parts: content and position alone."""
        r, (n, width) = self.request, x.shape[-2:]
        heads = r.get("num_heads", 8)
        content, position = r.get("x_scale", 1) * x, np.zeros((n, width))
        if FAMILY[self.scheme] == "absolute":
            config = {**self.config, "dim": r.get("dim", width), "len": n, "offset": r.get("offset", 0), "pe_scale": 1}
            position = r.get("pe_scale", 1) * encodings.outputs(config)[0]["encoding"]
        whole = absolute.combine(content, position, r.get("combine", "add"))

        def heads_of(rows, letter, with_bias=True):
            w = self.weight(f"w_{letter}", width, whole.shape[-1], std=0.1)
            y = rows @ w.T + (tensor(r[f"b_{letter}"], "b") if with_bias and f"b_{letter}" in r else 0)
            return y.reshape(-1, n, len(w) // self.head_dim, self.head_dim).swapaxes(1, 2)

        self.head_dim = len(self.weight("w_q", width, whole.shape[-1], std=0.1)) // heads
        self.lead = (*x.shape[:-2], heads)
        self.q, self.k = heads_of(whole, "q"), heads_of(whole, "k")
        self.v = heads_of(whole, "v") if "output" in r.get("outputs", []) else None
        if r.get("combine", "add") == "add":
            self.parts = [[heads_of(content, letter), heads_of(position, letter, False)] for letter in "qk"]

    def place(self):
        """Positions of queries and keys, and which query sees which key."""
        r, offset = self.request, self.request.get("offset", 0)
        self.k_pos = offset + np.arange(self.k_len, dtype=float)
        self.q_pos = offset + r.get("q_offset", self.k_len - self.q_len) + np.arange(self.q_len, dtype=float)
        if "lens" in r:
            self.q_pos = self.k_pos = np.concatenate([np.arange(n, dtype=float) for n in r["lens"]])
        usual = {"q_positions": self.q_pos, "k_positions": self.k_pos}
        self.q_pos, self.k_pos = (np.array(r.get(name, r.get("positions", places)), float) for name, places in usual.items())
        if self.scheme in WINDOWS:
            self.q_pos = self.k_pos = np.arange(self.k_len, dtype=float)
        masks = {name: r[name] for name in MASKS if name in r}
        self.visible = attention.seen(self.q_pos, self.k_pos, key_mask=r.get("key_mask"), lens=r.get("lens"), **masks)
        if r.get("same_length"):  # as Transformer-XL's own code: keys j <= i - shift are hidden too
            beyond = self.k_len - r.get("mem_len", 0)
            shift = self.q_len - beyond if beyond > 0 else self.q_len
            self.visible = self.visible & (np.arange(self.k_len) > np.arange(self.q_len)[:, None] - shift)
        if self.visible.ndim == 2:
            self.visible = self.visible[None]

    @property
    def scale(self):
        usual = 1.0 if self.scheme == "t5" or "scores" in self.request else self.d ** -0.5
        if self.scheme == "deberta":
            usual = (self.d * (1 + len(self.types))) ** -0.5
        return self.request.get("softmax_scale", usual)

    @property
    def types(self):
        found = self.request.get("pos_att_type", ["c2p", "p2c"])
        return [name for name in ("c2p", "p2c") if name in (found.split("|") if isinstance(found, str) else found)]

    # ---- The scheme's part ----

    def turned(self, x, positions, is_key):
        """Rotated rows, and queries that are scaled by their positions."""
        if FAMILY.get(self.scheme) == "rotary":
            x = turned("k" if is_key else "q", x, {**self.config, "positions": positions.tolist()}, len(positions))
        return x if is_key or "query_scale" not in self.request else x * query_factor(self.request["query_scale"], positions)[:, None]

    def turned_values(self, x, positions):
        """Values or outputs over the channels that turn in the keys, however wide they are."""
        width = self.config.get("rotary_dim", int(self.d * self.config.get("partial_rotary_factor", 1)))
        return turned("k", x, {**self.config, "rotary_dim": width, "positions": positions.tolist()}, len(positions))

    def turned_back(self, output):
        factor = self.config.get("attention_factor", 1)
        return self.turned_values(output, -self.q_pos) / factor ** 2

    def bias(self):
        """[batch or 1, H, Q, K], not scaled with the products."""
        config = {**self.config, "num_heads": self.heads}
        if self.scheme in WINDOWS:
            return biases.of_windows({**config, "grid": self.request["grid"]})[0]["bias"][None]
        masks = np.atleast_2d(self.request.get("key_mask", np.ones(self.k_len)))
        made = [biases.PAIRS[self.scheme]({**config, "key_mask": mask}, self.q_pos, self.k_pos)["bias"] for mask in masks]
        return np.stack(made) * (self.scale if self.request.get("bias_scaled") else 1)

    def terms(self):
        """{name: [B, H, Q, K]} before the scale, in the order of the answer; of q and k as they come."""
        r, q, k = self.request, self.q, attention.heads_of(self.k, self.heads)
        found = {"content_content": np.einsum("bhid,bhjd->bhij", q, k)}
        if self.parts and FAMILY[self.scheme] == "absolute":
            sides, names = self.parts, ("content", "position")
            keys = [attention.heads_of(part, self.heads) for part in sides[1]]
            return {f"{names[i]}_{names[j]}": np.einsum("bhid,bhjd->bhij", sides[0][i], keys[j]) for i in range(2) for j in range(2)}
        if self.scheme == "shaw":
            index, table = self.shaw()
            found["content_relative"] = attention.by_query(q, table, index)
            if r.get("table_style") == "relative_key_query":
                found["relative_content"] = attention.by_key(k, table, index)
        elif self.scheme in XL:
            width = self.heads * self.d
            shapes = {"u": (self.heads, self.d), "v_bias": (self.heads, self.d), "w_r": (width, r.get("d_model", width))}
            w = {name: self.weight(name, *shape) for name, shape in shapes.items()}
            rest = {"clamp_len": r.get("clamp_len", -1), "base": r.get("base", 10000.0)}
            zero = np.zeros_like(w["u"])

            def part(q, u, v_bias):
                return attention.xl_terms(self.scheme, q, k, self.q_pos, self.k_pos, u, v_bias, w["w_r"], **rest)
            found |= {"content_position": part(q, zero, zero), "bias_content": part(0 * q, w["u"], zero), "bias_position": part(0 * q, zero, w["v_bias"])}
            if "token_type_ids" in r:
                found["content_segment"] = attention.xlnet_segments(q, self.weight("seg_embed"), self.weight("r_s_bias"), r["token_type_ids"])
        elif self.scheme == "decomposed":  # these are not scaled with the products
            places = relative.decomposed(r)[0]
            for name, rows, side in (("rows", "rel_h", r["grid"][0]), ("columns", "rel_w", r["grid"][1])):
                table = attention.resized_linearly(self.weight(rows, 2 * side - 1, self.d), 2 * side - 1)
                found[name] = attention.by_query(q, table, places[f"index_{rows[-1]}"]) / self.scale
        elif self.scheme == "deberta":
            found = {"c2c": found.pop("content_content"), **self.deberta(q, k)}
        return found

    def shaw(self):
        """(row of each pair, table)."""
        index, last = relative.shaw(self.request, self.q_pos, self.k_pos)
        if self.request.get("table_style") == "sinusoidal":
            return index, attention.sinusoid(np.arange(last + 1), self.d + self.d % 2, False)[:, :self.d]  # NEZHA, of the row's number
        return index, self.weight("rel_k", last + 1, self.d)

    def deberta(self, q, k):
        r, heads = self.request, self.heads
        index, last = relative.deberta(r, self.q_pos, self.k_pos)
        if "rel_embeddings" in r:
            p, ending = self.weight("rel_embeddings"), "" if r.get("share_att_key", True) else "pos_"
            if r.get("norm_rel_ebd"):
                p = attention.layer_norm(p, self.weight("norm_weight"), self.weight("norm_bias"))
            rows = {letter: p @ self.weight(f"w_{ending}{letter}").T + self.weight(f"b_{ending}{letter}") for letter in "qk"}
            table = {"c2p": attention.split_heads(rows["k"], heads), "p2c": attention.split_heads(rows["q"], heads)}
        else:
            table = {to: self.weight(name, heads, last + 1, self.d) for to, name in (("c2p", "pos_key"), ("p2c", "pos_query")) if to in self.types}
        made = {"c2p": lambda t: attention.by_query(q, t, index), "p2c": lambda t: attention.by_key(k, t, index)}
        return {name: made[name](table[name]) for name in self.types}


# ---- The answer ------------------------------------------------------------------------------------------------------------


def computed(asked):
    """Every output that the request could ask for, with all axes."""
    r, q, k, v = asked.request, asked.q, asked.k, asked.v
    if r.get("rotate_values"):
        v = asked.turned_values(v, asked.k_pos)
    out = attended(asked, r, q, k, v)
    if r.get("unrotate_output"):
        out["output"] = asked.turned_back(out["output"])
    return out


def attended(asked, r, q, k, v):
    if r.get("kernel") == "linear":
        turn = {"q": asked.q_pos, "k": asked.k_pos}
        return attention.linear(q, k, v, rotate=lambda x, which: asked.turned(x, turn[which], which == "k"), visible=asked.visible)
    rest = {"scale": asked.scale, "softcap": r.get("softcap"), "cap_after_bias": r.get("softcap_after_bias", False), "visible": asked.visible}
    out, family = {}, FAMILY.get(asked.scheme, "bias")
    if family in ("bias", "rotary") or asked.scheme == "none":
        q, k = asked.turned(q, asked.q_pos, False), asked.turned(k, asked.k_pos, True)
    if family == "bias":
        rest["bias"] = asked.bias()
    if "logit_scale" in r:  # Swin v2: cosines times a learned scale
        q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
        q, rest["scale"] = q * np.exp(np.minimum(r["logit_scale"], np.log(100)))[:, None, None], 1.0
    if family == "relative" and asked.scheme != "cope":
        terms = asked.terms()
        rest["terms"] = sum(list(terms.values())[1:])
        out.update({name: terms[name] for name in ("c2p", "p2c") if name in terms})
    if asked.scheme == "cope":
        rest["last"] = attention.cope(asked.weight("pos_emb", r.get("npos_max", 64), asked.d), asked.q_pos, asked.k_pos)
    if asked.scheme == "shaw" and v is not None and not r.get("table_style", "clipped").startswith("relative_key"):
        index, table = asked.shaw()
        rest["values"] = (table if r.get("table_style") == "sinusoidal" else asked.weight("rel_v", *table.shape))[index]
    out.update(attention.attend(q, k, v, sinks=r.get("sinks"), **rest))
    if "output_terms" in r.get("outputs", []):  # of the values, and of the distances
        own = np.einsum("bhij,ijd->bhid", out["probs"], rest["values"]) if "values" in rest else 0 * out["output"]
        out["output_terms"] = np.stack([out["output"] - own, own])
    if "terms" in r.get("outputs", []):
        out["terms"] = terms_of(asked, out["scores"])
    return out


def terms_of(asked, scores):
    """[term, B, H, Q, K]: scaled, and hidden where the scores are."""
    if asked.scheme == "cope":
        content = asked.scale * asked.terms()["content_content"]
        made = [content, np.where(np.isfinite(scores), scores, 0) - content]
    else:
        made = [asked.scale * term for term in asked.terms().values()]
    return np.where(np.isneginf(scores), -np.inf, np.stack([np.broadcast_to(term, scores.shape) for term in made]))


def told(request):
    """What stands beside the tensors: rows of queries that see nothing, and the names of the terms."""
    asked, out = Asked(request), {}
    if request.get("kernel") != "linear":
        out["empty_rows"] = asked.heads * int((~asked.visible.any(-1)).sum()) * (len(asked.q) // len(asked.visible))
    if "terms" in request["outputs"]:
        out["terms"] = {"cope": ["content_content", "content_position"], "decomposed": ["content", "rows", "columns"]}.get(asked.scheme) or list(asked.terms())
    return out


@of("/attention")
def answer(request):
    asked = Asked(request)
    found, out = computed(asked), {}
    for name in request.get("outputs", ["weights" if request.get("kernel") == "linear" else "probs"]):
        whole = found[name]
        if name == "output":
            out[name] = from_heads(whole, asked.layout, asked.lead)
        elif name in ("terms", "output_terms"):
            out[name] = whole.reshape(len(whole), *asked.lead, *whole.shape[3:])
        else:
            out[name] = whole.reshape(*asked.lead, *whole.shape[2:])
    return out
