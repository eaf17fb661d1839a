"""`derive` of a finding: two addresses of /derive, whose numbers are the believed one and the found one of the first number that differs."""
import base64
import io

import numpy as np
import pytest

Q = np.random.default_rng(0).standard_normal((1, 2, 8, 64)).astype("f4")


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return {"npy": base64.b64encode(file.getvalue()).decode()}


def tables(n, base, width=64, scale=1.0, positions=None, dtype="f4"):
    angles = np.outer(np.arange(n) if positions is None else positions, base ** (-2 * np.arange(width // 2) / width) * scale)
    return {"cos": np.cos(angles).astype(dtype).tolist(), "sin": np.sin(angles).astype(dtype).tolist()}


def rotated(q, base, neighbours):
    half = q.shape[-1] // 2
    angles = np.outer(np.arange(q.shape[-2]), base ** (-np.arange(half) / half))
    first, second = (np.s_[..., ::2], np.s_[..., 1::2]) if neighbours else (np.s_[..., :half], np.s_[..., half:])
    out = np.empty_like(q)
    out[first] = q[first] * np.cos(angles) - q[second] * np.sin(angles)
    out[second] = q[second] * np.cos(angles) + q[first] * np.sin(angles)
    return out


def waves(n, width, first=0, halves=False):
    angles = np.outer(np.arange(first, first + n), 10000.0 ** (-2 * np.arange(width // 2) / width))
    parts = [np.sin(angles), np.cos(angles)]
    return (np.hstack(parts) if halves else np.stack(parts, -1).reshape(n, width)).astype("f4").tolist()


SLOPES = 2.0 ** -np.arange(1, 9)
DISTANCES = np.abs(np.subtract.outer(np.arange(16), np.arange(16)))
BIAS = (-SLOPES[:, None, None] * DISTANCES).astype("f4")
LINEAR = {"type": "linear", "factor": 4}
DYNAMIC = {"type": "dynamic", "factor": 2, "max_position_embeddings": 16}

SHOWN = {
    "base": {"scheme": "rope", "head_dim": 64, "layout": "half", "base": 500000, **tables(40, 1e4)},
    "preset": {"preset": "llama-3.1", **tables(64, 1e4, 128)},
    "scaling-missing": {"scheme": "rope", "head_dim": 64, "layout": "half", "scaling": LINEAR, **tables(40, 1e4)},
    "scaling-by-length": {"scheme": "rope", "head_dim": 64, "layout": "half", "scaling": DYNAMIC, **tables(64, 1e4)},
    "positions": {"scheme": "rope", "head_dim": 64, "layout": "half", "positions": [3, 9, 27, 81, 243], **tables(5, 1e4, positions=[4, 10, 28, 82, 244])},
    "float64": {"scheme": "rope", "head_dim": 64, "layout": "half", "base": 500000, "cos": npy(np.cos(np.outer(np.arange(12), 10000.0 ** (-np.arange(32) / 32))))},
    "offset": {"scheme": "sinusoidal", "dim": 32, "offset": 1, "encoding": waves(20, 32)},
    "halves": {"scheme": "sinusoidal", "dim": 32, "encoding": waves(20, 32, halves=True)},
    "mask": {"scheme": "alibi", "num_heads": 8, "causal": True, "bias": BIAS.tolist()},
    "queries-layout": {"scheme": "rope", "layout": "half", "q": Q.tolist(), "q_out": rotated(Q, 1e4, True).tolist()},
    "queries-base": {"scheme": "rope", "layout": "half", "base": 500000, "q": Q.tolist(), "q_out": rotated(Q, 1e4, False).tolist()},
    "keys": {"scheme": "rope", "layout": "half", "base": 500000, "k": Q.tolist(), "k_out": rotated(Q, 1e4, False).tolist()},
}
HIDDEN = {
    "negated": {"scheme": "alibi", "num_heads": 8, "bias": (-BIAS).tolist()},
    "scaled": {"scheme": "alibi", "num_heads": 8, "bias": (2 * BIAS).tolist()},
    "frequencies": {"preset": "llama-3.1", "inv_freq": (500000.0 ** (-np.arange(64) / 64)).tolist()},
    "a-table-that-was-sent": {"scheme": "learned", "offset": 1, "table": np.random.default_rng(1).standard_normal((12, 8)).tolist()},
}
TABLE = np.array(HIDDEN["a-table-that-was-sent"]["table"], "f4")
HIDDEN["a-table-that-was-sent"]["encoding"] = TABLE[:8].tolist()


def number(text):
    return float({"Infinity": "inf", "-Infinity": "-inf"}.get(text, text))


@pytest.mark.parametrize("name", SHOWN)
def test_both_addresses_give_the_numbers(server, name):
    request = dict(SHOWN[name])
    answer = server.post("/diagnose", request).json()
    bad, (first, *others) = answer["belief"]["first_bad"], answer["findings"]
    assert answer["explained"] and "derive" not in str(others)
    for address, wanted in zip(first["derive"], (bad["expected"], bad["found"])):
        assert address.startswith("/derive?") and len(address) < 4096
        derived = server.get(address).json()
        assert derived["number"]["tensor"] == bad["output"] and derived["steps"]
        if bad["output"] in ("q_out", "k_out"):
            assert derived["number"]["index"] == bad["index"][-1:]
            assert number(derived["number"]["value"]) == pytest.approx(number(wanted), rel=1e-6, abs=1e-6)
        else:
            assert derived["number"]["index"] == bad["index"]
            assert number(derived["number"]["value"]) == pytest.approx(number(wanted), rel=4e-16 if name == "float64" else 0, abs=0)
    assert bad["expected"] != bad["found"]


@pytest.mark.parametrize("name", HIDDEN)
def test_none_where_a_request_does_not_give_the_number(server, name):
    answer = server.post("/diagnose", HIDDEN[name]).json()
    assert answer["explained"] and answer["findings"] and answer["belief"]["first_bad"]
    assert all("derive" not in finding for finding in answer["findings"])


def test_none_where_the_belief_is_right(server):
    answer = server.post("/diagnose", {"scheme": "sinusoidal", "dim": 32, "encoding": waves(20, 32)}).json()
    assert [finding["code"] for finding in answer["findings"]] == ["as_believed"] and "derive" not in answer["findings"][0]


def test_check_has_them_too(server):
    answer = server.post("/check", SHOWN["base"]).json()
    assert [server.get(address).status for address in answer["findings"][0]["derive"]] == [200, 200]
