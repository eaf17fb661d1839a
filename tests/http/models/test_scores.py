"""What multiplies and caps the scores of a pasted configuration. Each port is float32 NumPy written from the attention code of the class in
transformers; /check accepts its tables, rotations, scores and probabilities, and refuses the scores of one that scales, caps or weighs its
queries in the usual way."""
import math

import numpy as np
import pytest

from asking import refused
from believed import inline

N, HEADS = 6, 2
f4 = np.float32


def ladder(base, width, factor=1):
    return (1 / f4(base) ** (np.arange(0, width, 2, dtype=f4) / f4(width)) / f4(factor)).astype(f4)


def proportional(base, width, share):
    """_compute_proportional_rope_parameters: the exponents are those of the whole head, the other pairs stand still."""
    w = ladder(base, width)
    return np.where(np.arange(len(w)) < int(share * width // 2), w, f4(0))


def yarn(base, width, factor, length):
    """arXiv 2309.00071, section 3.2, with 32 and 1 turns."""
    def pair(turns):
        return width * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))
    low, high = max(math.floor(pair(32)), 0), min(math.ceil(pair(1)), width - 1)
    ramp = np.clip((np.arange(width // 2, dtype=f4) - low) / (high - low), 0, 1).astype(f4)
    return ladder(base, width) * (1 - ramp) + ladder(base, width, factor) * ramp


def magnitude(factor, k):
    return 0.1 * k * math.log(factor) + 1


def rotated(x, cos, sin, layout, first):
    r, half = 2 * cos.shape[-1], cos.shape[-1]
    pairs = (slice(first, first + half), slice(first + half, first + r)) if layout == "half" else (
        slice(first, first + r, 2), slice(first + 1, first + r, 2))
    out, (a, b) = x.copy(), (x[..., pairs[0]], x[..., pairs[1]])
    out[..., pairs[0]], out[..., pairs[1]] = a * cos - b * sin, b * cos + a * sin
    return out


class Port:
    def __init__(self, config, width, scale, w=None, cap=None, factor=None, bias=None, layout="half", first=0, size=1, offset=0, **asked):
        self.offset, self.layout, self.first, self.scale, self.cap, self.bias = offset, layout, first, scale, cap, bias
        self.asked = {"hf_config": config, **asked}
        self.place = {"offset": offset} if offset else {}
        random = np.random.default_rng(width + offset)
        self.q, self.k = (size * random.normal(size=(1, HEADS, N, width)).astype(f4) for _ in "qk")
        positions = np.arange(offset, offset + N)
        self.factor = np.ones(N, f4) if factor is None else factor(positions).astype(f4)
        self.turns = w is not None
        if self.turns:
            angles = positions.astype(f4)[:, None] * w
            self.cos, self.sin = np.cos(angles), np.sin(angles)

    def turned(self, x):
        return rotated(x, self.cos, self.sin, self.layout, self.first) if self.turns else x

    def scores(self, scale, cap, factor):
        q = self.turned(self.q) * factor[:, None]
        s = (q @ self.turned(self.k).swapaxes(-1, -2)) * f4(scale)
        s = f4(cap) * np.tanh(s / f4(cap)) if cap else s
        return np.where(np.tri(N, dtype=bool), s if self.bias is None else s + self.bias, f4(-np.inf)).astype(f4)


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


YARN = {"rope_type": "yarn", "rope_theta": 1e4, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}
OF_V3 = {"rope_scaling": {**YARN, "factor": 40, "original_max_position_embeddings": 4096}, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64}
LATENT = {"w": yarn(1e4, 64, 40, 4096), "layout": "interleaved", "first": 128}
OF_MINISTRAL = {**YARN, "rope_theta": 1e6, "factor": 16, "original_max_position_embeddings": 64, "llama_4_scaling_beta": 0.1}
SLOPES = 2.0 ** (-8 / HEADS * np.arange(1, HEADS + 1))


def ministral(p):
    return 1 + 0.1 * np.log(1 + np.floor(p / 64))


def llama4(p):
    return np.log1p(np.floor((p + 1.0) / 64)) * 0.1 + 1


PORTS = {
    "gemma3_27b": Port({"model_type": "gemma3_text", "num_hidden_layers": 62, "head_dim": 128, "query_pre_attn_scalar": 168, "rope_theta": 1e6,
                        "rope_scaling": {"rope_type": "linear", "factor": 8.0}}, 128, 168 ** -0.5, w=ladder(1e6, 128, 8),
                       layer_type="full_attention"),
    "gemma4": Port({"model_type": "gemma4_text"}, 512, 1, w=proportional(1e6, 512, 0.25), layer_type="full_attention"),
    "granite": Port({"model_type": "granite", "hidden_size": 128, "num_attention_heads": 2, "attention_multiplier": 0.015625}, 64, 0.015625,
                    w=ladder(1e4, 64)),
    "mpt": Port({"model_type": "mpt", "d_model": 32, "n_heads": HEADS, "attn_config": {"softmax_scale": 0.5, "alibi": True}}, 16, 0.5,
                bias=(SLOPES[:, None, None] * (np.arange(N) - (N - 1))).astype(f4)),
    "gpt2": Port({"model_type": "gpt2", "scale_attn_weights": False}, 16, 1),
    "gpt_neo": Port({"model_type": "gpt_neo", "hidden_size": 32}, 16, 1),
    "gemma2_27b": Port({"model_type": "gemma2", "head_dim": 128, "query_pre_attn_scalar": 144}, 128, 144 ** -0.5, w=ladder(1e4, 128), cap=50, size=3),
    "vaultgemma": Port({"model_type": "vaultgemma", "head_dim": 64}, 64, 256 ** -0.5, w=ladder(1e4, 64), cap=50, size=4),
    "deepseek_v3": Port({"model_type": "deepseek_v3", **OF_V3}, 192, magnitude(40, 1) ** 2 * 192 ** -0.5, **LATENT),
    "zamba2": Port({"model_type": "zamba2", "hidden_size": 64, "num_attention_heads": 2, "use_mem_rope": True, "rope_theta": 1e4}, 64, 32 ** -0.5,
                   w=ladder(1e4, 64)),
    "granitemoe": Port({"model_type": "granitemoe", "hidden_size": 64, "num_attention_heads": 2, "attention_multiplier": 0.25}, 32, 0.25,
                       w=ladder(1e4, 32)),
    "dia": Port({"model_type": "dia_decoder", "head_dim": 32}, 32, 1, w=ladder(1e4, 32)),
    "ministral3": Port({"model_type": "ministral3", "head_dim": 32, "rope_parameters": OF_MINISTRAL}, 32, 32 ** -0.5,
                       w=yarn(1e6, 32, 16, 64), factor=ministral, offset=300),
    "llama4": Port({"model_type": "llama4_text", "attn_temperature_tuning": 4, "floor_scale": 64}, 32, 32 ** -0.5, factor=llama4, offset=300,
                   layer_type="full_attention"),
}


def is_fit(server, port, **tensors):
    sent = {name: inline(numbers, "f32") for name, numbers in tensors.items()}
    response = server.post("/check", {**port.asked, **port.place, **sent, **({"causal": True} if {"scores", "probs"} & set(tensors) else {})})
    assert response.status == 200, response
    return response.json()


@pytest.mark.parametrize("name", PORTS)
def test_right_ports(server, name):
    port = PORTS[name]
    s = port.scores(port.scale, port.cap, port.factor)
    checks = [{"q": port.q, "k": port.k, "scores": s}, {"q": port.q, "k": port.k, "probs": softmax(s)}]
    if port.turns:
        checks += [{"cos": port.cos, "sin": port.sin}, {"q": port.q, "q_out": port.turned(port.q) * port.factor[:, None]},
                   {"k": port.k, "k_out": port.turned(port.k)}]
    for tensors in checks:
        answer = is_fit(server, port, **tensors)
        assert answer["fits"] and not answer.get("notes"), (list(tensors), answer)


@pytest.mark.parametrize("kind", ["scores", "probs"])
@pytest.mark.parametrize("name", PORTS)
def test_usual_ports_of_them(server, name, kind):
    """1/sqrt(d), no cap, queries as they are: each is refused alone and named, where it differs from the class."""
    port = PORTS[name]
    usual = port.q.shape[-1] ** -0.5
    wrong = [("softmax_scale", usual, port.cap, port.factor)] * (not math.isclose(usual, port.scale)) \
        + [("softcap", port.scale, None, port.factor)] * bool(port.cap) + [("query_scale", port.scale, port.cap, np.ones(N, f4))] * bool(port.factor[0] != 1)
    for word, *of_wrong in wrong:
        s = port.scores(*of_wrong)
        answer = is_fit(server, port, **{"q": port.q, "k": port.k, kind: softmax(s) if kind == "probs" else s})
        assert not answer["fits"], (word, answer)
        if kind == "scores" and word != "query_scale":
            assert any(f["pointer"] == f"/{word}" for f in answer["findings"]), (word, answer)
    assert wrong


def attend(server, config, width, **more):
    x = [[0.5] * width] * 2
    return server.post("/attention", {"hf_config": config, "q": x, "k": x, "outputs": ["scores"], "data": False, **more})


V2 = {"model_type": "deepseek_v2", **OF_V3, "rope_scaling": {**OF_V3["rope_scaling"], "mscale": 0.707, "mscale_all_dim": 0.707}}
V3_SCALE, V2_SCALE = 192 ** -0.5 * magnitude(40, 1) ** 2, 192 ** -0.5 * magnitude(40, 0.707) ** 2

RESOLVED = {
    "yarn's magnitude": ({"model_type": "deepseek_v3", **OF_V3}, 192, V3_SCALE),
    "not by this class": (V2, 192, 192 ** -0.5),
    "no latent attention": ({"model_type": "ministral3", "head_dim": 32, "rope_parameters": OF_MINISTRAL}, 32, 32 ** -0.5),
    "the class's default": ({"model_type": "granite", "hidden_size": 64, "num_attention_heads": 1}, 64, 1.0),
    "null": ({"model_type": "mpt", "d_model": 64, "n_heads": 1, "attn_config": {"softmax_scale": None}}, 64, 0.125),
    "null of a class that has the usual then": ({"model_type": "hyperclovax", "hidden_size": 64, "num_attention_heads": 1}, 64, 0.125),
    "buckets of another model than T5": ({"model_type": "mpnet", "hidden_size": 64, "num_attention_heads": 1}, 64, 0.125),
}


@pytest.mark.parametrize("name", RESOLVED)
def test_resolved(server, name):
    config, width, scale = RESOLVED[name]
    more = {"table": [[0.0]] * 32} if config["model_type"] == "mpnet" else {}
    answer = attend(server, config, width, **more).json()
    assert answer["config"]["softmax_scale"] == pytest.approx(scale, rel=1e-12)
    assert attend(server, config, width, softmax_scale=0.3, **more).json()["config"]["softmax_scale"] == 0.3


def test_the_vendor_of_deepseek_v2_differs(server):
    notes = attend(server, V2, 192).json()["hf_config"]["notes"]
    assert len(notes) == 1 and f"{192 ** -0.5:.6g}"[:8] in notes[0] and f"{V2_SCALE:.6g}" in notes[0]
    assert server.post("/explain", {"hf_config": V2}).json()["notes"] == notes
    x = [[0.5] * 192] * 2
    of_preset = server.post("/attention", {"preset": "deepseek-v2", "q": x, "k": x, "data": False}).json()
    assert of_preset["config"]["softmax_scale"] == pytest.approx(V2_SCALE)


UNREAD = {"model_type": "internlm2", "hidden_size": 64, "num_attention_heads": 1}
REFUSED = {
    "a layer's own scale": ({"model_type": "gpt2", "scale_attn_by_inverse_layer_idx": True}, "/hf_config/scale_attn_by_inverse_layer_idx", ["layer", "1/sqrt(head_dim)/(l + 1)"]),
    "a scale of a class not read": ({**UNREAD, "attention_multiplier": 0.1}, "/hf_config/attention_multiplier", ["was not read", "softmax_scale"]),
    "a cap of a class not read": ({**UNREAD, "attn_logit_softcapping": 30.0}, "/hf_config/attn_logit_softcapping", ["was not read", "softcap"]),
    "what no field states": ({"model_type": "timesfm", "hidden_size": 64, "num_attention_heads": 1}, "/hf_config/model_type", ["softmax_scale"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(server, name):
    """Scores only, by /attention and /check; tables of the same configuration are answered."""
    config, pointer, words = REFUSED[name]
    x = inline(np.ones((1, 2, 64)), "f32")
    check = {"hf_config": config, "q": x, "k": x, "scores": inline(np.ones((1, 2, 2)), "f32")}
    refused(server, pointer, *words, path="/check", **check)
    assert server.post("/encode", {"hf_config": config, "len": 2, **({"seed": 0} if config["model_type"] == "gpt2" else {})}).status == 200
    assert server.post("/check", {**check, "softmax_scale": 1 / 64}).json()["fits"]


def test_a_class_not_read_says_so(server):
    notes = attend(server, UNREAD, 64).json()["hf_config"]["notes"]
    assert len(notes) == 1 and "unverified" in notes[0] and "internlm2" in notes[0]
    assert server.post("/explain", {"hf_config": UNREAD}).json()["notes"] == notes
    assert "notes" not in attend(server, {**UNREAD, "model_type": "llama"}, 64).json()["hf_config"]


def test_explained(server):
    """In the kinds, and in the table of readers."""
    config = {"model_type": "gemma3_text", "num_hidden_layers": 62, "hidden_size": 5376, "num_attention_heads": 32, "head_dim": 128, "query_pre_attn_scalar": 168}
    answer = server.post("/explain", {"hf_config": config}).json()
    assert [kind["with_attention"]["softmax_scale"] for kind in answer["layers"]] == [168 ** -0.5] * 2
    posted = [*(kind["config"] for kind in answer["layers"]), *(one for tool in answer["readers"].values() for one in tool["configs"] if one)]
    assert {server.post("/encode", {**one, "len": 2}).status for one in posted} == {200}, "each is a request of /encode, also a tool's"
    [field] = [field for field in answer["fields"] if field["pointer"] == "/hf_config/query_pre_attn_scalar"]
    assert all(taken["takes"] == pytest.approx(168 ** -0.5) for taken in field["readers"].values())
    assert field["readers"]["transformers5"]["reads"] and not field["readers"]["llama.cpp"]["reads"]
    [kind] = server.post("/explain", {"hf_config": {"model_type": "gpt_oss"}}).json()["layers"][:1]
    assert kind["sinks"] == "self_attn.sinks"


def of_gemma(name, layers, heads=32, width=5376, **more):
    return {"general.architecture": name, f"{name}.block_count": layers, f"{name}.embedding_length": width, f"{name}.attention.head_count": heads,
            f"{name}.attention.key_length": 128, f"{name}.rope.freq_base": 1e4, f"{name}.context_length": 8192,
            **{f"{name}.{key.replace('__', '.')}": value for key, value in more.items()}}


FILES = {
    "gemma3 of 62 layers": (of_gemma("gemma3", 62), 168 ** -0.5, None),
    "gemma3 of 48": (of_gemma("gemma3", 48), 128 ** -0.5, None),
    "gemma2 of 46 layers": (of_gemma("gemma2", 46, width=4608), 144 ** -0.5, 50),
    "gemma2 with its cap": (of_gemma("gemma2", 42, attn_logit_softcapping=30.0), 128 ** -0.5, 30),
    "granite": (of_gemma("granite", 40, attention__scale=0.015625, rope__dimension_count=128), 0.015625, None),
    "granite without": (of_gemma("granite", 40, rope__dimension_count=128), 128 ** -0.5, None),
    "a key that others do not read": (of_gemma("qwen2", 40, attention__scale=0.015625), 128 ** -0.5, None),
}


@pytest.mark.parametrize("name", FILES)
def test_files(server, name):
    """llama.cpp, load_hparams of each architecture."""
    keys, scale, cap = FILES[name]
    x = [[0.5] * 128] * 2
    config = server.post("/attention", {"gguf": keys, "q": x, "k": x, "data": False}).json()["config"]
    assert config["softmax_scale"] == pytest.approx(scale) and config.get("softcap") == cap


PRESETS = {"gemma-3-27b": 168 ** -0.5, "gemma-4": 1, "gemma-2-27b": 144 ** -0.5, "gemma-2": 256 ** -0.5, "deepseek-v3": V3_SCALE}


@pytest.mark.parametrize("name", PRESETS)
def test_presets(server, name):
    width = server.get(f"/presets/{name}").json()["config"]["head_dim"]
    x = [[0.5] * width] * 2
    config = server.post("/attention", {"preset": name, "q": x, "k": x, "data": False}).json()["config"]
    assert config["softmax_scale"] == pytest.approx(PRESETS[name]) and config.get("softcap") == (50 if "gemma-2" in name else None)
