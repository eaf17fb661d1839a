"""The sentences of /diagnose name values: never null, never a placeholder that nothing filled, whichever mistakes are combined."""
import io
import itertools
import json

import numpy as np
import pytest

from connection import at_once
from tensors import multipart, npy

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
    """Each alone, and so many pairs that each is in one or more; a part of these if another case has the others."""
    both = list(itertools.combinations(changes, 2))
    return [(one,) for one in changes] + both[::len(both) // 24 + 1][part]


def complaints(server, base, changes, names, part, data=None):
    """What is wrong, and how many questions were answered; four are asked at the same time."""
    def asked(question):
        right, wrong, lang = question
        arrays = arrays_of(server, {**right, **(data or {})}, names)
        if arrays is None:
            return [], False
        if data:
            arrays = {"q": np.array(data["q"], "f4"), "q_out": arrays["q"]}
        texts = sentences(server, wrong, arrays, lang)
        return [(right, wrong, code, text) for code, text in texts if bad(text)], bool(texts)
    questions = []
    for number, both in enumerate(pairs(changes, part)):
        every = [(merged(base, *both), base), (base, merged(base, *both)), *([tuple(merged(base, one) for one in both)] if len(both) == 2 else [])]
        questions += [(right, wrong, ("en", "zh")[number % 2]) for right, wrong in every]
    answers = at_once(asked, questions, 4)
    return [one for found, _ in answers for one in found], sum(is_asked for _, is_asked in answers)


EVEN, ODD, ALL = slice(0, None, 2), slice(1, None, 2), slice(None)


@pytest.mark.parametrize("name, base, changes, names, part, least", [
    ("tables", ROPE, ROTARY, ["cos", "sin"], EVEN, 50), ("rotated", ROPE, ROTARY, ["q"], ODD, 50),
    ("bias", {"scheme": "alibi", "num_heads": 4, "len": 20}, BIASES, ["bias"], ALL, 50),
    ("encoding", {"scheme": "sinusoidal", "dim": 16, "len": 20}, SINUSOIDS, ["encoding"], ALL, 50)],
    ids=["tables", "rotated", "bias", "encoding"])
def test_no_sentence_has_a_hole(server, name, base, changes, names, part, least):
    data = {"q": np.random.default_rng(1).standard_normal((20, 16)).tolist()} if name == "rotated" else None
    found, asked = complaints(server, base, changes, names, part, data)
    assert not found and asked >= least, (asked, found[:12])
