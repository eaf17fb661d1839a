"""golden() and assert_matches() of posenc.py: functions that rotate right, and the line that names what is wrong with others."""
import json
import re

import numpy as np
import pytest

from truth import evidence, rotary


def llama3(base=500000.0):
    rule = {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}
    return evidence.frequencies(json.dumps(rule), base, 128, 1)[0].astype("f4")


def rope(w, layout="half", delay=0):
    """A port, whose angles are float32; axis: of positions."""

    def fn(q, positions, axis=-2):
        angles = np.outer((positions - delay).astype("f4"), w)
        return rotary.at_angles(q, angles[:, None] if axis == -3 else angles, layout).astype("f4")

    return fn


def test_golden(client):
    tensors = client.golden("llama-3.1")
    assert list(tensors.keys()) == ["position_ids", "q", "k", "q_out", "k_out", "cos", "sin", "inv_freq"] and tensors.q.shape == (1, 2, 9, 128)
    assert tensors.meta["configs"]["all"]["scaling"]["type"] == "llama3" and tensors.meta["tolerance"]["cos"] == 2.0 ** -23
    assert np.allclose(rope(llama3())(tensors.q, tensors.position_ids)[:, :, :5], tensors.q_out[:, :, :5], rtol=0, atol=2e-5)
    assert "llama-3.1" in repr(tensors)
    other = client.golden(scheme="alibi", num_heads=4, dtype="f64")
    assert other.bias.dtype == np.float64 and other.scheme == "alibi"
    assert client.golden("llama-3.1", dtype="bf16")._raw["q"].dtype == np.uint16


def test_what_is_right_passes(posenc, client):
    seen = client.assert_matches(rope(llama3()), preset="llama-3.1")
    assert isinstance(seen, posenc.Diagnosis) and [one["code"] for one in seen["findings"]] == ["angles_f32"]
    with pytest.raises(posenc.Mismatch):
        client.assert_matches(rope(llama3()), preset="llama-3.1", strict=True)
    exact = lambda q, positions: client.rotate(q=q, positions=positions.tolist(), preset="llama-3.1").q
    client.assert_matches(exact, preset="llama-3.1", strict=True)
    both = lambda q, k, positions: (rope(llama3())(q, positions), rope(llama3())(k, positions))
    assert client.assert_matches(both, preset="llama-3.1")["sides"]["k"]["codes"] == []
    client.assert_matches(rope(10000.0 ** (-np.arange(8, dtype="f4") / 8)), scheme="rope", layout="half", head_dim=16)


@pytest.mark.parametrize("fn, words", [
    (rope(500000.0 ** (-np.arange(64, dtype="f4") / 64)), "The frequencies are not scaled.*first at position 1, channel 29: 0.76"),
    (rope(llama3(), "interleaved"), "layout interleaved.*first at position 1, channel 0"),
    (rope(llama3(), delay=1), "begins at position -1, 0, 1"),
    (rope(-llama3()), "(direction|other way)"),
    (lambda q, positions: q, "Every row is computed at position 0"),
    (lambda q, k, positions: (rope(llama3())(q, positions), rope(llama3(10000.0))(k, positions)), "first at position 1, channel 1"),
])
def test_what_is_wrong_is_named_in_one_line(posenc, client, fn, words):
    with pytest.raises(posenc.Mismatch) as caught:
        client.assert_matches(fn, preset="llama-3.1")
    line = str(caught.value).splitlines()[0]
    assert re.match(rf"llama-3\.1: .*{words}", line) and len(line) <= 240, line
    assert caught.value.diagnosis["findings"] and len(str(caught.value).splitlines()) > 1


def test_layouts(posenc, client):
    fn = rope(llama3())
    client.assert_matches(lambda q, positions: fn(q, positions, axis=-3), preset="llama-3.1", tensor_layout="bnhd")
    client.assert_matches(lambda q, positions: fn(q, positions, axis=-3), preset="llama-3.1", tensor_layout="nhd")
    with pytest.raises(ValueError, match="there are: bhnd, bnhd"):
        client.assert_matches(fn, preset="llama-3.1", tensor_layout="dhnb")


def test_kinds_of_layers(posenc, client):
    sliding = rope(10000.0 ** (-np.arange(128, dtype="f4") / 128))
    with pytest.raises(ValueError, match="give layer_type, one of: full_attention, sliding_attention"):
        client.assert_matches(sliding, preset="gemma-3")
    client.assert_matches(sliding, preset="gemma-3", layer_type="sliding_attention")
    with pytest.raises(posenc.Mismatch, match="gemma-3: "):
        client.assert_matches(sliding, preset="gemma-3", layer_type="full_attention")
    longrope = {"type": "longrope", "factor": 4, "original_max_position_embeddings": 64, "short_factor": [1, 1.5, 2, 3], "long_factor": [1, 4, 8, 16], "attention_factor": 1}
    request = {"scheme": "rope", "layout": "half", "head_dim": 8, "scaling": longrope}
    for kind in ("short", "long"):
        w = 10000.0 ** (-np.arange(4, dtype="f4") / 4) / np.array(longrope[f"{kind}_factor"], "f4")
        client.assert_matches(rope(w), layer_type=kind, **request)
    with pytest.raises(ValueError, match="short, long"):
        client.assert_matches(rope(w), **request)


def test_like(posenc, client):
    kinds = []

    def make(array):
        kinds.append(array.dtype)
        return array

    client.assert_matches(rope(llama3()), preset="llama-3.1", like=make)
    assert kinds == [np.dtype("f4"), np.dtype("i8")]
    with pytest.raises(ValueError, match="like is"):
        client.assert_matches(rope(llama3()), preset="llama-3.1", like="tensorflow")
    with pytest.raises(ValueError, match="import it first"):
        client.assert_matches(rope(llama3()), preset="llama-3.1", like="mlx")
    with pytest.raises(ZeroDivisionError):
        client.assert_matches(lambda q, positions: 1 / 0, preset="llama-3.1")
    with pytest.raises(ValueError, match="rotates nothing"):
        client.assert_matches(rope(llama3()), scheme="sinusoidal")
    with pytest.raises(posenc.Refused, match="there are: llama-1"):
        client.assert_matches(rope(llama3()), preset="llama-3.11")
