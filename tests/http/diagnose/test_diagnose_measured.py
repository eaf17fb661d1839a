"""/diagnose and positions that are measured: one axis of several is changed, by a rule that no list of mistakes has. Truth is NumPy by the
papers' formulas, angles in float32 as most code computes them."""
import json

import numpy as np
import pytest

from diagnosing import ask, check_form, codes_of
from tensors import to_bf16
from truth import evidence, rotary

f4 = np.float32


def grid(*sides):
    return np.array(np.meshgrid(*map(np.arange, sides), indexing="ij")).reshape(len(sides), -1).astype(float)


def segments():
    """Text of 5, an image of 4×6 as Qwen2-VL counts it, text of 4."""
    text, end = np.tile(np.arange(5.0), (3, 1)), np.tile(np.arange(11.0, 15), (3, 1))
    return np.concatenate([text, 5 + grid(1, 4, 6), end], 1)


# The request, the coordinates [axes, n], the frequency and the axis of each pair.
BELIEFS = {
    "mrope": ({"head_dim": 128, "base": 1e6, "channels": "mrope", "mrope_section": [16, 24, 24], "layout": "half", "positions": segments().tolist()},
              segments(), evidence.powers(1e6, 128), np.repeat([0, 1, 2], [16, 24, 24])),
    "interleaved": ({"head_dim": 128, "base": 5e6, "channels": "mrope_interleaved", "mrope_section": [24, 20, 20], "layout": "half",
                     "positions": segments().tolist()}, segments(), evidence.powers(5e6, 128), np.where(np.arange(64) < 60, np.arange(64) % 3, 0)),
    "video": ({"axes_dim": [44, 42, 42], "head_dim": 128, "layout": "interleaved", "grid": [4, 2, 3]}, grid(4, 2, 3),
              np.concatenate([evidence.powers(1e4, n) for n in (44, 42, 42)]), np.repeat([0, 1, 2], [22, 21, 21])),
    "image": ({"axes_dim": [32, 32], "head_dim": 64, "base": 100, "layout": "interleaved", "grid": [5, 7]}, grid(5, 7),
              np.concatenate([evidence.powers(100, 32)] * 2), np.repeat([0, 1], [16, 16])),
}

# How a coordinate is changed, and what that is called.
CHANGES = {
    "24/16": (lambda x: 1.5 * x, {"positions_scaled"}),
    "8/7": (lambda x: x * 8 / 7, {"positions_scaled"}),
    "half": (lambda x: x / 2, {"positions_scaled"}),
    "twice": (lambda x: 2 * x, {"positions_scaled"}),
    "next": (lambda x: x + 1, {"off_by_one"}),
    "-3.5": (lambda x: x - 3.5, {"offset_other"}),
    "backwards": (lambda x: x[::-1], {"positions_reversed"}),
    "zero": (lambda x: 0 * x, {"positions_constant"}),
    "two": (lambda x: 0 * x + 2, {"positions_constant"}),
    "clamped": (lambda x: np.minimum(x, np.ceil(x.max() / 2)), {"positions_clamped"}),
    "linear": (lambda x: 1.5 * x + 2, {"positions_scaled"}),
    "index": (lambda x: np.arange(len(x)) * 1.0, {"axes_missing"}),
    "behind": (lambda x: np.where(np.arange(len(x)) < len(x) // 2, x, x + 17), {"positions_other"}),
    "shuffled": (lambda x: np.random.default_rng(1).permutation(x), {"positions_other"}),
}
ALSO = {"axes_swapped", "positions_wrapped", "positions_reversed", "axes_missing"}  # the same numbers on a small grid


def tables(x, w, axis):
    angles = (x[axis].T * w).astype(f4)
    return np.cos(angles), np.sin(angles)


def rotated(q, cos, sin, layout):
    return rotary.rotate(q, cos, sin, layout).astype(f4)


def asked(server, belief, cos, sin, sent):
    request = {"scheme": "rope", **belief}
    if sent == "tables":
        return ask(server, {**request, "form": "pairs"}, cos=cos, sin=sin)
    q = np.random.default_rng(len(cos)).standard_normal((1, 2, len(cos), 2 * cos.shape[1])).astype(f4)
    return ask(server, request, q=q, q_out=rotated(q, cos, sin, belief["layout"]))


@pytest.mark.parametrize("sent", ["tables", "q"])
@pytest.mark.parametrize("name", BELIEFS)
def test_one_axis_is_changed(server, name, sent):
    """Each change of each axis is named, in both languages, with the coordinates of every row in the candidate."""
    belief, x, w, axis = BELIEFS[name]
    for a in range(len(x)):
        for change, (rule, codes) in CHANGES.items():
            y = x.copy()
            y[a] = rule(x[a])
            if np.array_equal(x, y):
                continue
            answer = asked(server, belief, *tables(y, w, axis), sent)
            where = (name, a, change, answer["findings"])
            check_form(answer)
            assert answer["explained"], where
            said = [one for one in answer["findings"] if one["code"] != "angles_f32"]
            assert len(said) == 1 and (said[0]["code"] in codes or set(codes_of(answer)) & ALSO), where
            assert f"Axis {a}" in said[0]["detail"] and f"轴 {a}" in said[0]["detail_zh"], where
            got = np.array(answer["candidates"][0]["sequence"]["positions"])
            assert np.abs(got - y).max() < 1e-3, where


def test_both_values_are_said(server):
    belief, x, w, axis = BELIEFS["video"]
    said = asked(server, belief, *tables(x * [[1.5], [1], [1]], w, axis), "q")["findings"][0]
    assert (said["code"], said["found"], said["believed"], said["meaning"], said["axes"]) == ("positions_scaled", 1.5, 1, "3/2", [0])
    assert said["detail"] == "Axis 0 (time): The positions are 1.5 times (3/2) those of the configuration. It is 24/16, as frames per second of a model and of a video give it."
    assert said["detail_zh"] == "轴 0（时间）：位置是配置的 1.5 倍（3/2）。这是 24/16，即模型与视频每秒帧数之比。"


def test_other_mistakes_beside_it(server):
    """Another layout, the other direction, another base: each with an axis that is changed."""
    belief, x, w, axis = BELIEFS["video"]
    y = x * [[1.5], [1], [1]]
    cos, sin = tables(y, w, axis)
    assert set(codes_of(asked(server, {**belief, "layout": "half"}, cos, sin, "tables"))) >= {"positions_scaled"}
    q = np.random.default_rng(3).standard_normal((1, 2, len(cos), 128)).astype(f4)
    for wrong, code in (({"layout": "half"}, "layout_swapped"), ({"base": 1000}, "base_other")):
        answer = ask(server, {"scheme": "rope", **belief, **wrong}, q=q, q_out=rotated(q, cos, sin, "interleaved"))
        assert answer["explained"] and {code, "positions_scaled"} <= set(codes_of(answer)), json.dumps(answer["findings"])
    answer = ask(server, {"scheme": "rope", **belief}, q=q, q_out=rotated(q, cos, -sin, "interleaved"))
    assert answer["explained"] and {"direction_reversed", "positions_scaled"} <= set(codes_of(answer)), answer["findings"]


def test_positions_and_frequencies_are_rounded(server):
    """The product of both is float32: not all angles are rounded."""
    at, w = to_bf16(np.arange(600.0)), to_bf16(evidence.powers(1e4, 32))
    angles = np.outer(at, w).astype(f4)
    answer = ask(server, {"scheme": "rope", "head_dim": 32}, cos=np.cos(angles), sin=np.sin(angles))
    check_form(answer)
    assert answer["explained"] and set(codes_of(answer)) == {"positions_rounded", "inv_freq_bf16"}, answer["findings"]


@pytest.mark.parametrize("name", ["interleaved"])  # each is sought in vain for seconds
def test_what_is_no_rotation_stays_unexplained(server, name):
    """Random angles, an orthogonal map, noise of 1e-4, one number that is off by 0.01."""
    belief, x, w, axis = BELIEFS[name]
    rng = np.random.default_rng(5)
    cos, sin = tables(x, w, axis)
    angles = rng.uniform(-np.pi, np.pi, cos.shape).astype(f4)
    q = rng.standard_normal((1, 2, len(cos), 2 * cos.shape[1])).astype(f4)
    turned = (q @ np.linalg.qr(rng.standard_normal((q.shape[-1],) * 2))[0]).astype(f4)
    off = cos.copy()
    off[len(off) // 2, 1] += f4(0.01)
    noise = (cos + 1e-4 * rng.standard_normal(cos.shape)).astype(f4), (sin + 1e-4 * rng.standard_normal(cos.shape)).astype(f4)
    for answer in (asked(server, belief, np.cos(angles), np.sin(angles), "tables"), asked(server, belief, np.cos(angles), np.sin(angles), "q"),
                   ask(server, {"scheme": "rope", **belief}, q=q, q_out=turned), asked(server, belief, off, sin, "tables"),
                   asked(server, belief, off, sin, "q"), asked(server, belief, *noise, "tables")):
        assert not answer["explained"], answer["findings"]
