"""The sentences of /diagnose name values: never null, never a placeholder that nothing filled, whichever mistakes are combined."""
import io
import itertools
import json

import numpy as np
import pytest

import truth
from diagnosing import diagnose
from tensors import multipart, npy
from wrong_tensors import Tensor, inline, rounded

LONG = {"type": "yarn", "factor": 4, "original_max_position_embeddings": 2048}
LISTED = {"inv_freq": [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03, 0.01, 0.005]}
ROPE = {"scheme": "rope", "head_dim": 16, "len": 20}
# What may be so in the tensor, or in the belief, and is left out in the other.
ROTARY = [{"base": 500000}, {"base": 23456.7}, {"offset": 1}, {"offset": 4096}, {"offset": -3}, {"positions": [3 * p for p in range(20)]},
          {"positions": [5, 4, 9] + [0] * 17}, {"scaling": LONG}, {"scaling": {"type": "linear", "factor": 3}}, {"scaling": {**LONG, "attention_factor": 1.5}},
          {"attention_factor": 1.25}, {"direction": -1}, {"layout": "half"}, {"rotary_dim": 8}, {"rotary_dim": 8, "rotary_offset": 4}, LISTED,
          {"lens": [12, 8]}, {"grid": [4, 5]}, {"channels": "mrope", "mrope_section": [4, 2, 2], "positions": [list(range(20)), list(range(20)), list(range(0, 40, 2))]}]
BIASES = [{"bias_max": 16}, {"causal": True}, {"causal": True, "window": 5}, {"form": "key"}, {"form": "relative"}, {"slopes": [0.5, 0.3, 0.2, 0.1]},
          {"q_offset": 3}, {"key_mask": [1] * 15 + [0] * 5}]
SINUSOIDS = [{"base": 5000}, {"freq_shift": 1}, {"offset": 1}, {"offset": 77}, {"layout": "half"}, {"flip_sin_to_cos": True}, {"angle_scale": 2}, {"dim": 15},
             {"dim": 15, "odd": "pad"}, {"positions": [0.5 * p for p in range(20)]}]


def arrays_of(server, request, names):
    """f32 arrays of what /encode or /rotate gives; none if there is no such request."""
    answer = server.post("/rotate" if "q" in request else "/encode", {**request, "outputs": names, "format": "npz"})
    return dict(np.load(io.BytesIO(answer.body))) if answer.status == 200 else None


def sentences(server, belief, arrays, lang):
    body, headers = multipart(request=json.dumps({**belief, "lang": lang}), **{name: npy(a) for name, a in arrays.items()})
    answer = server.request("POST", "/diagnose", body, headers)
    if answer.status == 422:
        return []
    assert answer.status == 200, (belief, answer)
    return [(finding["code"], finding[name]) for finding in answer.json()["findings"] for name in ("detail", "detail_zh")]


def bad(text):
    return "null" in text or "{" in text or "}" in text or " -." in text or " - " in text or text.endswith(("-。", "-.")) or "  " in text


def merged(base, *changes):
    """One sequence, and one list of frequencies, at most."""
    out = {**base}
    for change in changes:
        out.update(change)
    if {"positions", "lens", "grid"} & set(out):
        out.pop("len", None)
    return out


def pairs(changes, part):
    """Each alone, and so many pairs that each is in three or more; a part of these if another case has the others."""
    both = list(itertools.combinations(changes, 2))
    return [(one,) for one in changes] + both[::len(both) // 50 + 1][part]


def complaints(server, base, changes, names, part, data=None):
    found, asked = [], 0
    for number, both in enumerate(pairs(changes, part)):
        for right, wrong in ((merged(base, *both), base), (base, merged(base, *both))) + (((merged(base, both[0]), merged(base, both[1])),) if len(both) == 2 else ()):
            arrays = arrays_of(server, {**right, **(data or {})}, names)
            if arrays is None:
                continue
            if data:
                arrays = {"q": np.array(data["q"], "f4"), "q_out": arrays["q"]}
            texts = sentences(server, wrong, arrays, ("en", "zh")[number % 2])
            asked += bool(texts)
            found += [(right, wrong, code, text) for code, text in texts if bad(text)]
    return found, asked


EVEN, ODD, ALL = slice(0, None, 2), slice(1, None, 2), slice(None)


@pytest.mark.parametrize("name, base, changes, names, part, least", [
    ("tables", ROPE, ROTARY, ["cos", "sin"], EVEN, 80), ("rotated", ROPE, ROTARY, ["q"], ODD, 90),
    ("bias", {"scheme": "alibi", "num_heads": 4, "len": 20}, BIASES, ["bias"], ALL, 90),
    ("encoding", {"scheme": "sinusoidal", "dim": 16, "len": 20}, SINUSOIDS, ["encoding"], ALL, 90)],
    ids=["tables", "rotated", "bias", "encoding"])
def test_no_sentence_has_a_hole(server, name, base, changes, names, part, least):
    data = {"q": np.random.default_rng(1).standard_normal((20, 16)).tolist()} if name == "rotated" else None
    found, asked = complaints(server, base, changes, names, part, data)
    assert not found and asked >= least, (asked, found[:12])


def test_the_offset_beside_another_base(server):
    """The value that was fitted under the base found."""
    tables = arrays_of(server, {"scheme": "rope", "base": 500000, "len": 64, "offset": 4096}, ["cos", "sin"])
    body, headers = multipart(request=json.dumps({"scheme": "rope"}), **{name: npy(a) for name, a in tables.items()})
    findings = {finding["code"]: finding for finding in server.request("POST", "/diagnose", body, headers).json()["findings"]}
    offset = findings["offset_other"]
    assert (offset["pointer"], offset["found"], offset["believed"]) == ("/offset", 4096, 0) and "position 4096" in offset["detail"]
    assert findings["base_other"]["found"] == 500000


def test_the_factor_beside_another_base(server):
    tables = arrays_of(server, {"scheme": "rope", "head_dim": 32, "base": 23456.7, "len": 64, "attention_factor": 1.25}, ["cos", "sin"])
    body, headers = multipart(request=json.dumps({"scheme": "rope"}), **{name: npy(a) for name, a in tables.items()})
    findings = {finding["code"]: finding for finding in server.request("POST", "/diagnose", body, headers).json()["findings"]}
    assert any(finding["found"] == pytest.approx(1.25) for finding in findings.values()), findings


# ---- What a factor is ---------------------------------------------------------------------------------------------------------


def turned_halves(x, r):
    """Halves of the first r channels are pairs; the others pass by."""
    angle = np.outer(np.arange(x.shape[-2]), 1e4 ** (-np.arange(0, r, 2) / r))
    return np.concatenate([truth.turned(x[..., :r], angle), x[..., r:]], -1)


OWN = 0.1 * np.log(4) + 1  # of YaRN by 4
# head_dim, rotated channels, belief, all of q_out by this, code, meaning
FACTORS = {
    "softmax scale": (64, 64, {}, 1 / 8, "scaled", "1/sqrt(head_dim)"),
    "softmax scale, partly rotated": (64, 32, {"rotary_dim": 32}, 1 / 8, "scaled", "1/sqrt(head_dim)"),
    "softmax scale by powers of two": (48, 48, {}, np.log2(np.e) / 48 ** 0.5, "scaled", "log2(e)/sqrt(head_dim)"),
    "no softmax scale": (48, 48, {}, 48 ** 0.5, "scaled", "sqrt(head_dim)"),
    "another factor": (64, 64, {}, 1.7, "attention_factor_other", None),
    "factor twice": (64, 64, {"attention_factor": OWN}, OWN ** 2, "attention_factor_other", "attention_factor"),
    "factor in scores": (64, 64, {"attention_factor": OWN}, OWN ** 3, "attention_factor_other", "attention_factor^2"),
}


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("name", FACTORS)
def test_a_factor_is_said_to_be_what_it_is(server, name, dtype):
    d, r, belief, factor, code, meaning = FACTORS[name]
    q = rounded(np.random.default_rng(4).standard_normal((40, d)), dtype)
    out = rounded(turned_halves(q, r) * factor, dtype)
    body = {"scheme": "rope", "layout": "half", "base": 10000, **belief, "q": inline(Tensor(q, dtype)), "q_out": inline(Tensor(out, dtype))}
    first = diagnose(server, body)["findings"][0]
    assert (first["code"], first["meaning"]) == (code, meaning), first
    assert code != "scaled" or meaning in first["detail"] and meaning in first["detail_zh"]


def test_turns_in_place_of_radians_and_findings_without_a_factor(server):
    w = 1e4 ** (-np.arange(0, 64, 2) / 64)
    first = diagnose(server, {"scheme": "rope", "head_dim": 64, "inv_freq": inline(Tensor(rounded(w / (2 * np.pi), "f32"), "f32"))})["findings"][0]
    assert (first["code"], first["meaning"]) == ("scaled", "1/(2*pi)")
    for sent in (w, w[::-1].copy()):
        assert diagnose(server, {"scheme": "rope", "head_dim": 64, "inv_freq": inline(Tensor(rounded(sent, "f32"), "f32"))})["findings"][0]["meaning"] is None


def test_a_mask_that_is_right_is_no_mistake(server):
    """Hidden keys have -inf, as the belief has it: no explanation, also none that is equally good, says "-inf instead of -inf"."""
    distance = np.abs(np.subtract.outer(np.arange(8), np.arange(8)))
    half = np.where(np.triu(np.ones((8, 8), bool), 1), -np.inf, 2.0 ** -np.arange(2, 10)[:, None, None] * distance)
    answer = diagnose(server, {"scheme": "alibi", "num_heads": 8, "causal": True, "bias": inline(Tensor(half, "f32"))})
    assert answer["explained"] and answer["candidates"][0]["also"]
    assert not [one for candidate in answer["candidates"] for one in (candidate, *candidate["also"]) if "mask_value" in one["codes"]]
