"""/diagnose and frequencies that are measured: scalings with random parameters under three beliefs, and frequencies that are wrong beside
positions. Truth is ../../truth/scaling.py and NumPy; angles are float32, as most code computes them."""
import numpy as np
import pytest

from diagnosing import ask, check_form, codes_of
from test_diagnose_measured import BELIEFS, f4, rotated, tables
from truth import scaling
from truth.evidence import powers

LADDER_CODES = {"scaling_other", "scaling_parameter", "base_other", "scaling_missing", "ladder_width"}


def drawn(kind, rng):
    """A scaling of the type, its parameters drawn."""
    length, factor = int(2 ** rng.integers(11, 17)), float(rng.choice([1.5, 2, 2.5, 3, 4, 6, 8, 10, 16, 20, 32, 40]))
    more = {"yarn": {"original_max_position_embeddings": length}, "linear": {}, "ntk": {},
            "dynamic": {"max_position_embeddings": length, "seq_len": int(length * rng.integers(2, 6))},
            "llama3": {"original_max_position_embeddings": length, "low_freq_factor": 1.0, "high_freq_factor": float(rng.choice([2, 4, 6, 8]))}}[kind]
    if kind == "yarn" and rng.random() < 0.4:
        more |= {"beta_fast": float(rng.choice([16, 24, 48, 64])), "beta_slow": float(rng.choice([1, 2, 3]))}
    if kind == "yarn" and rng.random() < 0.3:
        more["truncate"] = False
    return {"type": kind, "factor": factor, **more}


def another(truth, rng):
    """The same with one parameter that is another."""
    names = [name for name in truth if name not in ("type", "truncate", "max_position_embeddings")]
    name = str(rng.choice(names))
    return {**truth, name: truth[name] * (4 if name in ("seq_len", "original_max_position_embeddings") else 2)}


def ladders(n):
    rng = np.random.default_rng(7)
    for i in range(n):
        kind = ("yarn", "llama3", "linear", "ntk", "dynamic")[i % 5]
        truth, base, width = drawn(kind, rng), float(rng.choice([1e4, 5e5, 1e6, 150000, 34567])), int(rng.choice([64, 96, 128]))
        believed = ({"base": base}, {"base": base, "scaling": another(truth, rng)}, {"base": 10 * base, "scaling": truth})[i // 5 % 3]
        yield truth, base, width, believed


def test_scalings_with_random_parameters(server):
    """Nine in ten are named, the others are a list; none is unexplained."""
    rng, lists, all_of_them = np.random.default_rng(1), [], list(ladders(60))
    for truth, base, width, believed in all_of_them:
        w = np.array([float(x) for x in scaling.inv_freq(truth, base, width, 64)])
        cos, sin = tables(np.arange(64.0)[None], w, np.zeros(len(w), int))
        length = float(scaling.attention_factor(truth, 64))
        belief = {"scheme": "rope", "head_dim": width, "layout": "half", **believed}
        if rng.random() < 0.5:
            answer = ask(server, {**belief, "form": "pairs"}, cos=f4(length) * cos, sin=f4(length) * sin)
        else:
            q = rng.standard_normal((1, 2, 64, width)).astype(f4)
            answer = ask(server, belief, q=q, q_out=rotated(q, f4(length) * cos, f4(length) * sin, "half"))
        check_form(answer)
        where = (truth, base, width, believed, answer["findings"])
        assert answer["explained"], where
        named = set(codes_of(answer)) - {"angles_f32", "undecided"}
        if "inv_freq_other" in named:
            lists.append(where)
        else:
            assert named <= LADDER_CODES | {"positions_scaled", "position_stride", "rotated_twice", "attention_factor_missing", "attention_factor_other"}, where
    assert len(lists) <= len(all_of_them) / 10, lists


MOVED = {"next": lambda x: x + 1, "-3.5": lambda x: x - 3.5, "1.5 times": lambda x: 1.5 * x, "two later": lambda x: np.where(np.arange(x.shape[-1]) < 10, x, x + 17)}


@pytest.mark.parametrize("name", ["run", "video", "image"])
def test_a_base_and_positions(server, name):
    """A base that no list has and positions that are moved are both named, on one axis and on several."""
    belief, x, w, axis = ({"head_dim": 64, "layout": "half", "len": 24}, np.arange(24.0)[None], powers(1e4, 64), np.zeros(32, int)) if name == "run" else BELIEFS[name]
    base = belief.get("base", 10000.0)
    for other in (34567.0, 271.0):
        for change, move in MOVED.items():
            y = x.copy()
            y[0] = move(x[0])
            cos, sin = tables(y, w ** (np.log(other) / np.log(base)), axis)
            q = np.random.default_rng(2).standard_normal((1, 2, len(cos), 2 * len(w))).astype(f4)
            answer = ask(server, {"scheme": "rope", **belief}, q=q, q_out=rotated(q, cos, sin, belief["layout"]))
            where = (name, other, change, answer["findings"])
            check_form(answer)
            assert answer["explained"] and "base_other" in codes_of(answer) and len(set(codes_of(answer)) - {"angles_f32", "undecided"}) == 2, where
            found = next(f["found"] for f in answer["findings"] if f["code"] == "base_other")
            assert found == pytest.approx(other, rel=1e-5), where


def test_ladders_of_no_base(server):
    """All pairs alike; e^(-k·c); the base squared; another width: what happened is said."""
    n, d, w = np.arange(24.0)[None], 64, powers(1e4, 64)
    for ladder, code, text in ((np.full(32, 0.25), "frequencies_equal", "0.25"), (np.exp(-1.0 * np.arange(32)), "exponent_lost", "e^(-1·c)"),
                               (w ** 2, "base_other", "square"), (powers(3e4, 128)[:32], "ladder_width", "128"), (w * w[1], "ladder_from_one", "2/r"),
                               (np.random.default_rng(3).permutation(w), "inv_freq_other", "other pairs")):
        cos, sin = tables(n, ladder, np.zeros(32, int))
        base = 3e4 if code == "ladder_width" else 1e4
        answer = ask(server, {"scheme": "rope", "head_dim": d, "base": base, "layout": "half", "form": "pairs"}, cos=cos, sin=sin)
        check_form(answer)
        first = answer["findings"][0]
        assert answer["explained"] and first["code"] == code and text in first["detail"], (code, answer["findings"])


def test_the_numbers_of_another_kind_of_layers(server):
    config = {"model_type": "gemma3_text", "hidden_size": 3840, "head_dim": 256, "num_attention_heads": 16, "num_key_value_heads": 8, "num_hidden_layers": 48,
              "rope_local_base_freq": 10000, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "rope_theta": 1000000, "sliding_window_pattern": 6}
    kinds = {"sliding_attention": powers(1e4, 256), "full_attention": powers(1e6, 256) / 8}
    q = np.random.default_rng(1).standard_normal((1, 2, 40, 256)).astype(f4)
    for asked, other in (("sliding_attention", "full_attention"), ("full_attention", "sliding_attention")):
        cos, sin = tables(np.arange(40.0)[None], kinds[other], np.zeros(128, int))
        first = ask(server, {"hf_config": config, "layer_type": asked}, q=q, q_out=rotated(q, cos, sin, "half"))["findings"][0]
        assert (first["code"], first["pointer"], first["found"], first["believed"]) == ("layer_type_other", "/layer_type", other, asked), first
        assert other in first["detail"] and other in first["detail_zh"], first
