"""Tensors by the names of other people's code: parts of a form, members of files and of the object `tensors`. Truth is NumPy."""
import io
import json

import numpy as np
import pytest

import safetensors_reader
from diagnosing import codes_of, diagnose
from tensors import multipart, npy

N, D, BASE = 24, 16, 500.0
W = BASE ** (-2 * np.arange(D // 2) / D)
ANGLES = np.arange(N)[:, None] * W
COS, SIN = np.cos(ANGLES).astype("f4"), np.sin(ANGLES).astype("f4")
BELIEF = {"scheme": "rope", "head_dim": D, "base": BASE, "layout": "half"}
Q = np.random.default_rng(8).normal(size=(1, 2, N, D)).astype("f4")
A, B = Q[..., :D // 2].astype(float), Q[..., D // 2:].astype(float)
TURNED = np.concatenate([A * np.cos(ANGLES) - B * np.sin(ANGLES), B * np.cos(ANGLES) + A * np.sin(ANGLES)], -1).astype("f4")


def asked(server, belief, **tensors):
    return diagnose(server, *multipart(request=json.dumps(belief), **{name: npy(x) for name, x in tensors.items()}))


def taken(answer):
    return {one["name"]: one["as"] for one in answer["taken"]}


@pytest.mark.parametrize("tensors, kinds", [
    ({"rope_cos_cache": COS, "rope_sin_cache": SIN}, ["cos", "sin"]),
    ({"cos_cached": COS, "sin_cached": SIN}, ["cos", "sin"]),
    ({"my_cos": COS, "my_sine": SIN}, ["cos", "sin"]),
    ({"rotary_emb.cos_sin_cache": np.concatenate([COS, SIN], -1)}, ["cos_sin"]),
    ({"q_before": Q, "q_rotated": TURNED}, ["q", "q_out"]),
    ({"query_states": Q, "q_embed": TURNED}, ["q", "q_out"]),
    ({"layers.0.key_pre": Q, "layers.0.key_rotated": TURNED}, ["k", "k_out"]),
    ({"model.rotary_emb.inv_freq": W.astype("f4")}, ["inv_freq"]),
    ({"t1": COS, "t2": SIN}, ["cos", "sin"]),
    ({"t": W.astype("f4")}, ["inv_freq"]),
    ({"t": np.stack([COS, SIN], -1)}, ["freqs_cis"]),
], ids=str)
def test_a_name_or_numbers_tell_the_kind(server, tensors, kinds):
    answer = asked(server, BELIEF, **tensors)
    assert codes_of(answer) == ["as_believed"], answer["findings"]
    assert list(taken(answer)) == list(tensors) and list(taken(answer).values()) == kinds
    assert all(one["why"] for one in answer["taken"])


def test_members_of_files_and_of_json(server):
    npz = io.BytesIO()
    np.savez(npz, rope_cos=COS, rope_sin=SIN)
    answer = diagnose(server, npz.getvalue(), {"Content-Type": "application/zip"})
    assert codes_of(answer)[0] == "identified" and taken(answer) == {"rope_cos": "cos", "rope_sin": "sin"}
    body = safetensors_reader.dumps({"rope_cos": COS, "rope_sin": SIN}, {"request": json.dumps(BELIEF)})
    assert codes_of(diagnose(server, body, {"Content-Type": "application/vnd.safetensors"})) == ["as_believed"]
    answer = diagnose(server, {**BELIEF, "tensors": {"rope_cos": COS.tolist(), "rope_sin": SIN.tolist()}})
    assert codes_of(answer) == ["as_believed"] and taken(answer) == {"rope_cos": "cos", "rope_sin": "sin"}


def test_several_kinds_are_tried_in_order(server):
    """A sinusoidal table whose name says nothing is within ±1: cosines and sines of one tensor are tried before."""
    angles = np.arange(N)[:, None] * 10000.0 ** (-2 * np.arange(D // 2) / D)
    table = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(N, D).astype("f4")
    answer = asked(server, {}, buffer=table)
    assert codes_of(answer) == ["identified"] and taken(answer) == {"buffer": "encoding"}
    assert answer["candidates"][0]["config"]["scheme"] == "sinusoidal"
    alone = diagnose(server, npy(table[None]), {"Content-Type": "application/x-npy"})  # no bias of one head
    assert codes_of(alone) == ["identified"] and alone["candidates"][0]["config"]["scheme"] == "sinusoidal"


def test_the_kind_may_be_stated(server):
    answer = asked(server, {**BELIEF, "kind": {"hidden": "q", "after": "q_out"}}, hidden=Q, after=TURNED)
    assert codes_of(answer) == ["as_believed"] and taken(answer) == {"hidden": "q", "after": "q_out"}
    response = server.post("/diagnose", *multipart(request=json.dumps({**BELIEF, "kind": {"hidden": "q_in"}}), hidden=npy(Q)))
    assert response.status == 422 and response.json()["pointer"] == "/kind/hidden"


def test_what_is_no_evidence_stays_aside(server):
    answer = asked(server, BELIEF, cos=COS, sin=SIN, cosine_similarity=COS, attn_mask=COS, sin_grad=SIN)
    assert codes_of(answer) == ["as_believed"] and set(taken(answer).values()) == {None}
    answer = asked(server, BELIEF, cos=COS, sin=SIN, other_cos=COS)
    assert codes_of(answer) == ["as_believed"] and taken(answer) == {"other_cos": None}


def test_a_misspelt_field_is_still_refused(server):
    response = server.post("/diagnose", {**BELIEF, "cos": COS.tolist(), "sin": SIN.tolist(), "positons": [1, 2]})
    assert response.status == 422 and response.json()["pointer"] == "/positons" and "positions" in response.json()["detail"]
    response = server.post("/diagnose", {**BELIEF, "tensors": [1]})
    assert response.status == 422 and response.json()["pointer"] == "/tensors"
    response = server.post("/diagnose", {**BELIEF, "tensors": {"cos": 5}})
    assert response.status == 422 and response.json()["pointer"] == "/tensors/cos"


def test_check_and_text(server, client, posenc):
    tensors = {"rope_cos": npy(COS), "rope_sin": npy(SIN)}
    checked = server.post("/check", *multipart(request=json.dumps(BELIEF), **tensors)).json()
    assert checked["fits"] is True and taken(checked) == {"rope_cos": "cos", "rope_sin": "sin"}
    zh = server.post("/diagnose", *multipart(request=json.dumps({**BELIEF, "format": "text", "lang": "zh"}), **tensors))
    assert "rope_cos 视为 cos" in zh.body.decode()
    assert client.check(rope_cos=COS, rope_sin=SIN, **BELIEF).fits
    with pytest.raises(posenc.Mismatch):
        client.check(rope_cos=COS, rope_sin=-SIN, **BELIEF)
