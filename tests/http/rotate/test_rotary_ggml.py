"""How far ggml's rotary positions and what others publish are apart, and how /analyze and /diagnose know its arithmetic. Its numbers are held
by ../encode/test_random.py and rows of ../../cases/encode.jsonl (ggml-*, imrope-*), against formulas of their own (truth/ggml.py)."""
import numpy as np
import pytest

import truth.ggml as ggml_truth
from tensors import encode, encode_one


def test_llama_31_by_its_divisors(server):
    """What llama.cpp's converter writes for Llama 3.1 is the rule llama3 but for the rounding of the divisors."""
    rule = {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}
    fields = dict(scheme="rope", head_dim=128, base=500000, outputs=["inv_freq"], len=1)
    by_rule = encode_one(server, **fields, scaling=rule)
    plain = encode_one(server, **fields)
    divisors = np.float32(plain / by_rule)
    np.testing.assert_allclose(divisors[[29, 30, 31, 32, 33, 34, 35]],
                               [1.2074839, 1.5534146, 2.0263133, 2.6945298, 3.6842525, 5.2573266, 8], rtol=6e-8)
    by_divisors = encode_one(server, **fields, scaling={"type": "default", "divisors": divisors.astype("f8").tolist()})
    assert 1e-9 < np.max(np.abs(by_divisors / by_rule - 1)) < 2.0**-24


def test_ramp_of_gpt_oss(server):
    """ggml rounds the ends 8.09 and 17.40 to 8 and 18, which transformers is told not to do."""
    oss = {"type": "yarn", "factor": 32, "original_max_position_embeddings": 4096}
    fields = dict(scheme="rope", head_dim=64, base=150000, dtype="f64", len=131072, slice=[None, [8, 18]])
    published, taken = (encode(server, **fields, scaling={**oss, **more})
                        for more in ({"truncate": False}, {"convention": "ggml"}))
    cosines, sines = (np.abs(published[name] - taken[name]).max(axis=1) for name in ("cos", "sin"))
    assert round(float(cosines.max()), 3) == 2.693
    assert int(np.argmax(np.maximum(cosines, sines) > 0.01)) == 35


def test_imrope_leaves_what_transformers_gives_to_time(server):
    fields = dict(scheme="rope", head_dim=128, base=5e6, mrope_section=[24, 20, 20], len=262144, dtype="f64")
    ours, ggml = (encode(server, **fields, channels=channels, slice=[None, [60, 63]])
                  for channels in ("mrope_interleaved", "imrope"))
    apart = {name: np.abs(ours[name] - ggml[name]) for name in ("cos", "sin")}
    assert not apart["cos"][:, 0].any() and apart["sin"][:, 1:].max(axis=0).all()
    assert round(float(apart["cos"][-1].max()), 4) == 0.0058 and round(float(apart["sin"][-1].max()), 3) == 0.108
    assert int(np.argmax(np.maximum(apart["cos"], apart["sin"]).max(axis=1) > 0.01)) == 24265


@pytest.mark.parametrize("head_dim,base,errors", [(128, 5e5, (9.5e-5, 6.6e-4, 1.21e-2)), (128, 1e6, (1.1e-4, 8.3e-4, 1.61e-2)),
                                                  (64, 1e4, (5.3e-5, 4.7e-4, 7.7e-3))])
def test_errors_of_the_arithmetic(server, head_dim, base, errors):
    """The largest of cosines over 256 positions before 2^10, 2^13, 2^17; the same by the metric, of cosines and sines."""
    for power, error in zip((10, 13, 17), errors):
        fields = dict(scheme="rope", head_dim=head_dim, base=base, offset=2**power - 256, len=256)
        found = encode(server, **fields, arith="ggml", outputs=["cos", "sin"])
        angles = np.outer(np.arange(2**power - 256, 2**power), [float(w) for w in ggml_truth.frequencies(head_dim, base)])
        apart = [np.abs(found[name].astype(float) - turn(angles)).max() for name, turn in (("cos", np.cos), ("sin", np.sin))]
        assert apart[0] == pytest.approx(error, rel=0.06)
        answer = server.ask("/analyze", configs=[{"scheme": "rope", "head_dim": head_dim, "base": base}],
                            offset=2**power - 256, len=256, metrics=["precision"], recipes=["ggml"]).json()
        assert answer["results"][0]["precision"]["value"] == pytest.approx(max(apart), rel=1e-3)


@pytest.mark.parametrize("as_q", [False, True])
def test_belief_in_its_arithmetic(server, as_q):
    """/diagnose: ggml's numbers are explained by arith ggml alone; a wrong base is found beside it."""
    positions = list(range(60000, 60048))
    cos, sin = ggml_truth.table_f32(32, 5e5, positions)
    belief = dict(scheme="rope", head_dim=32, base=5e5, layout="half", offset=60000, arith="ggml")
    sent = dict(cos=cos, sin=sin)
    if as_q:
        q = np.random.default_rng(3).standard_normal((1, 1, 48, 32)).astype("f4")
        a, b = q[..., :16], q[..., 16:]
        sent = dict(q=q, q_out=np.concatenate([a * cos - b * sin, b * cos + a * sin], -1))
    sent = {name: {"dtype": "f32", "shape": list(x.shape), "data": x.tolist()} for name, x in sent.items()}
    answer = server.ask("/diagnose", **belief, **sent).json()
    assert answer["explained"] and [f["code"] for f in answer["findings"]] == ["as_believed"]
    answer = server.ask("/diagnose", **{**belief, "base": 10000}, **sent).json()
    assert answer["explained"] and "base" in str(answer["findings"][0]["pointer"]) and answer["findings"][0]["found"] == 500000
