"""What multiplies and caps the scores of a pasted configuration. Each port is float32 NumPy written from the attention code of the class in
transformers; /check accepts its tables, rotations, scores and probabilities, and refuses the scores of one that scales, caps or weighs its
queries in the usual way. What scale is resolved, by class, file and preset: tests/cases/scores.jsonl."""
import math

import numpy as np
import pytest

from believed import inline
from truth import scaling
from truth.answers.rotate import query_factor
from truth.attention import softmax
from truth.rotary import rotate

N, HEADS = 6, 2
OF_64 = {"beta": 0.1, "original_max_position_embeddings": 64}
f4 = np.float32


def ladder(base, width, **rule):
    return np.array([float(w) for w in scaling.inv_freq(rule, base, width, N)], f4)


class Port:
    def __init__(self, config, width, scale, w=None, cap=None, factor=None, bias=None, layout="half", first=0, size=1, offset=0, **asked):
        self.offset, self.layout, self.first, self.scale, self.cap, self.bias = offset, layout, first, scale, cap, bias
        self.asked = {"hf_config": config, **asked}
        self.place = {"offset": offset} if offset else {}
        random = np.random.default_rng(width + offset)
        self.q, self.k = (size * random.normal(size=(1, HEADS, N, width)).astype(f4) for _ in "qk")
        positions = np.arange(offset, offset + N)
        self.factor = np.ones(N, f4) if factor is None else query_factor({"type": factor, **OF_64}, positions).astype(f4)
        self.turns = w is not None
        if self.turns:
            angles = positions.astype(f4)[:, None] * w
            self.cos, self.sin = np.cos(angles), np.sin(angles)

    def turned(self, x):
        return rotate(x, self.cos, self.sin, self.layout, [self.cos.shape[-1]], self.first).astype(f4) if self.turns else x

    def scores(self, scale, cap, factor):
        q = self.turned(self.q) * factor[:, None]
        s = (q @ self.turned(self.k).swapaxes(-1, -2)) * f4(scale)
        s = f4(cap) * np.tanh(s / f4(cap)) if cap else s
        return np.where(np.tri(N, dtype=bool), s if self.bias is None else s + self.bias, f4(-np.inf)).astype(f4)


YARN = {"rope_type": "yarn", "rope_theta": 1e4, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}
OF_V3 = {"rope_scaling": {**YARN, "factor": 40, "original_max_position_embeddings": 4096}, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64}
LATENT = {"w": ladder(1e4, 64, type="yarn", factor=40, original_max_position_embeddings=4096), "layout": "interleaved", "first": 128}
OF_MINISTRAL = {**YARN, "rope_theta": 1e6, "factor": 16, "original_max_position_embeddings": 64, "llama_4_scaling_beta": 0.1}
SLOPES = 2.0 ** (-8 / HEADS * np.arange(1, HEADS + 1))


PORTS = {
    "gemma3_27b": Port({"model_type": "gemma3_text", "num_hidden_layers": 62, "head_dim": 128, "query_pre_attn_scalar": 168, "rope_theta": 1e6,
                        "rope_scaling": {"rope_type": "linear", "factor": 8.0}}, 128, 168 ** -0.5, w=ladder(1e6, 128, type="linear", factor=8),
                       layer_type="full_attention"),
    "gemma4": Port({"model_type": "gemma4_text"}, 512, 1, w=ladder(1e6, 512, type="proportional", partial_rotary_factor=0.25), layer_type="full_attention"),
    "granite": Port({"model_type": "granite", "hidden_size": 128, "num_attention_heads": 2, "attention_multiplier": 0.015625}, 64, 0.015625,
                    w=ladder(1e4, 64)),
    "mpt": Port({"model_type": "mpt", "d_model": 32, "n_heads": HEADS, "attn_config": {"softmax_scale": 0.5, "alibi": True}}, 16, 0.5,
                bias=(SLOPES[:, None, None] * (np.arange(N) - (N - 1))).astype(f4)),
    "gpt2": Port({"model_type": "gpt2", "scale_attn_weights": False}, 16, 1),
    "gpt_neo": Port({"model_type": "gpt_neo", "hidden_size": 32}, 16, 1),
    "gemma2_27b": Port({"model_type": "gemma2", "head_dim": 128, "query_pre_attn_scalar": 144}, 128, 144 ** -0.5, w=ladder(1e4, 128), cap=50, size=3),
    "vaultgemma": Port({"model_type": "vaultgemma", "head_dim": 64}, 64, 256 ** -0.5, w=ladder(1e4, 64), cap=50, size=4),
    "deepseek_v3": Port({"model_type": "deepseek_v3", **OF_V3}, 192, float(scaling.magnitude(40, 1)) ** 2 * 192 ** -0.5, **LATENT),
    "zamba2": Port({"model_type": "zamba2", "hidden_size": 64, "num_attention_heads": 2, "use_mem_rope": True, "rope_theta": 1e4}, 64, 32 ** -0.5,
                   w=ladder(1e4, 64)),
    "granitemoe": Port({"model_type": "granitemoe", "hidden_size": 64, "num_attention_heads": 2, "attention_multiplier": 0.25}, 32, 0.25,
                       w=ladder(1e4, 32)),
    "dia": Port({"model_type": "dia_decoder", "head_dim": 32}, 32, 1, w=ladder(1e4, 32)),
    "ministral3": Port({"model_type": "ministral3", "head_dim": 32, "rope_parameters": OF_MINISTRAL}, 32, 32 ** -0.5,
                       w=ladder(1e6, 32, type="yarn", factor=16, original_max_position_embeddings=64), factor="ministral", offset=300),
    "llama4": Port({"model_type": "llama4_text", "attn_temperature_tuning": 4, "floor_scale": 64}, 32, 32 ** -0.5, factor="llama4", offset=300,
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
