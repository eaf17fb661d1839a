"""The reference of /analyze itself, without a server: published values, closed forms, and the definitions evaluated naively."""
import numpy as np
import pytest

import truth.analysis_plans as plans
import truth.analysis_rows as rows
from truth.absolute import seeded
from truth.analysis import METRICS, analyze
from truth.analysis_lengths import content, saturated, steps, unseen_angles, unseen_pairs

LLAMA3 = {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}


def one(metric, configs, **ask):
    """The last configuration's result."""
    return analyze(configs, [metric], **ask)["results"][-1][metric]


def curve(tensor, config, metric, **ask):
    return analyze(config, [metric], **ask)["tensors"][f"{tensor}.0"]


# ---- unique ----------------------------------------------------------------------------------------------------------------


def test_unique():
    for n in (2, 64, 300):  # neighbours, whatever the length
        found = one("unique", {"scheme": "sinusoidal", "dim": 64, "len": n})
        assert found["value"] == pytest.approx(1.4718480481, abs=5e-11) and found["witness"] == {"rows": [0, 1]}
    found = one("unique", {"scheme": "sinusoidal", "dim": 4, "len": 4096})
    assert found["value"] == pytest.approx(0.0444064, abs=5e-8) and found["witness"] == {"rows": [0, 1885]}
    assert one("unique", {"scheme": "alibi", "len": 8}) == {"value": 0, "witness": {"distances": [-1, 1]}}
    assert one("unique", {"scheme": "none", "len": 8}) == {"value": 0, "witness": {"rows": [0, 1]}}
    assert one("unique", {"scheme": "binary", "dim": 8, "len": 64})["value"] == 1
    assert one("unique", {"scheme": "rope", "len": 1}) == {"value": None, "witness": None}


# ---- similarity, decay ----------------------------------------------------------------------------------------------------------


def test_similarity():
    sinusoid = {"scheme": "sinusoidal", "dim": 128, "len": 513}
    means = curve("similarity", sinusoid, "similarity") / 64
    published = {0: 1, 1: .9702, 2: .8966, 4: .7592, 8: .7144, 16: .6203, 32: .5575, 64: .4769, 128: .3328, 256: .3207, 512: .2194}
    for distance, value in published.items():
        assert means[distance] == pytest.approx(value, abs=5e-5)
    assert means[1] == pytest.approx(.97021, abs=5e-6)
    found = one("similarity", {**sinusoid, "len": 512})
    assert found["minimum"]["distance"] == 468 and found["witness"] is None and found["value"] < 1e-12
    assert found["peak"] == 64


def test_sines_alone_know_where_they_are():
    """Half of the products are sums of positions."""
    found = one("similarity", {"scheme": "sinusoidal", "dim": 64, "len": 200}, pairing="sin")
    assert found["value"] > 10 and found["witness"] is not None
    assert one("similarity", {"scheme": "sinusoidal", "dim": 64, "len": 50}, pairing="mismatched", other_base=10000)["value"] < 1e-12
    assert one("similarity", {"scheme": "sinusoidal", "dim": 64, "len": 50}, pairing="mismatched", other_base=500)["value"] > 1e-2


def test_xpos_is_a_product_of_distances():
    """q scaled up, k down: the formula, and rotated vectors that are the same at every position."""
    plan = plans.Plan({"scheme": "xpos", "head_dim": 8, "len": 12, "offset": 5})
    x = np.tile([1.0, 0.0], 4)
    products = plan.rotate(np.tile(x, (12, 1))) @ plan.rotate(np.tile(x, (12, 1)), True).T
    np.testing.assert_allclose(rows.decaying_products(plan), products, atol=1e-14)


def test_decay():
    values = curve("decay", {"scheme": "rope", "head_dim": 128, "len": 513}, "decay")
    for distance, value in {0: 32.5, 1: 31.538, 2: 28.956, 4: 22.604, 8: 19.817, 16: 15.775, 32: 13.384, 64: 10.090, 128: 9.273,
                            256: 6.543, 512: 5.311}.items():
        assert values[distance] == pytest.approx(value, abs=6e-4)
    assert one("decay", {"scheme": "rope", "head_dim": 128, "len": 513})["rises"] == 241
    assert one("decay", {"scheme": "sinusoidal", "dim": 128, "len": 513})["rises"] == 241


# ---- norms, precision, collisions, wavelengths ---------------------------------------------------------------------------------------


def test_norms():
    dtypes = one("norms", {"scheme": "rope", "head_dim": 128, "len": 64})["dtypes"]
    assert [f"{dtypes[d]:.1e}" for d in ("f32", "f16", "bf16")] == ["4.0e-08", "3.3e-04", "2.7e-03"]
    assert dtypes["f64"] < 1e-15
    yarn = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    found = one("norms", {"scheme": "rope", "head_dim": 128, "base": 1e6, "scaling": yarn, "len": 16})
    assert found["value"] == pytest.approx(.13862943611) and found["witness"] == {"row": 0, "pair": 0}


def test_vjepa2_is_no_rotation():
    """Norms change between 0.97 and 1.11 (reported for random vectors); the singular values bound that."""
    config = {"scheme": "rope", "head_dim": 16, "layout": "vjepa2", "len": 64}
    plan, rng = plans.Plan(config), np.random.default_rng(0)
    x = rng.standard_normal((2000, 1, 16)) * np.ones((1, 64, 1))
    pairs = plan.rotate(x).reshape(2000, 64, 8, 2), x.reshape(2000, 64, 8, 2)
    seen = np.abs(np.linalg.norm(pairs[0], axis=-1) / np.linalg.norm(pairs[1], axis=-1) - 1).max()
    assert .99 * one("norms", config)["value"] < seen <= one("norms", config)["value"] + 1e-12


@pytest.mark.parametrize("power,error", [(10, 1.76e-5), (13, 1.41e-4), (17, 2.33e-3), (20, 1.83e-2)])
def test_precision(power, error):
    found = one("precision", {"scheme": "rope", "base": 5e5, "head_dim": 128, "positions": [2 ** power]})
    assert found["value"] == pytest.approx(error, rel=3e-3)


def test_precision_of_a_library():
    """512 rows before 2^20, base 5e5: correctly rounded frequencies and float32 products (measured: 4.9e-2)."""
    rope = {"scheme": "rope", "base": 5e5, "head_dim": 128, "offset": 2 ** 20 - 511, "len": 512}
    assert one("precision", rope)["value"] == pytest.approx(4.9e-2, rel=2e-2)
    found = one("precision", {"scheme": "rope", "len": 600}, recipes=["bf16"])["recipes"][0]
    assert found["repeats"] == sum(rows.ROUNDINGS["bf16"](np.arange(1, 600.)) == rows.ROUNDINGS["bf16"](np.arange(599.)))


def test_collisions():
    found = one("collisions", {"scheme": "integer", "len": 600}, dtypes=["bf16"])
    assert found["witness"] == {"rows": [256, 257]}
    found = one("collisions", {"scheme": "alibi", "causal": True, "len": 2048}, dtypes=["bf16"])
    assert found["value"] == 1407 and found["witness"] == {"distances": [-256, -257]}


def test_wavelengths():
    llama = {"scheme": "rope", "head_dim": 128, "base": 5e5, "scaling": LLAMA3, "len": 16}
    found = one("wavelengths", llama)
    assert found["value"] == .5 and found["witness"]["pair"] == 32 and found["kept"] == 29 and found["train_len"] == 8192
    for dim, longest in ((64, 47117), (128, 54410), (512, 60611)):
        assert one("wavelengths", {"scheme": "sinusoidal", "dim": dim, "len": 9})["longest"] == pytest.approx(longest, abs=.5)
    for dim, base, length, share, first in ((128, 1e4, 2048, .64, 41), (128, 1e4, 4096, .72, 46), (128, 5e5, 8192, .55, 35),
                                            (64, 1e4, 128, .34, 11)):
        found = one("wavelengths", {"scheme": "rope", "head_dim": dim, "base": base, "len": 9}, train_len=length)
        assert found["value"] == pytest.approx(share, abs=6e-3) and found["witness"]["pair"] == first


# ---- shift -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [{"scheme": "sinusoidal", "dim": 64}, {"scheme": "sinusoidal", "dim": 64, "layout": "half"},
                                    {"scheme": "sinusoidal", "dim": 9, "odd": "pad"}, {"scheme": "rope", "direction": -1},
                                    {"scheme": "xpos"}, {"scheme": "sinusoidal", "dim": 8, "flip_sin_to_cos": True}])
def test_exact_shifts(config):
    found = one("shift", {**config, "len": 110}, k=[1, 7, 100])
    assert found["method"] == "exact" and found["value"] < 1e-13 and found["witness"] is None


def test_fitted_shifts():
    found = one("shift", {"scheme": "sinusoidal", "dim": 5, "len": 200})
    assert found["method"] == "fit" and 3e-4 < found["value"] < 3e-3  # the last sine has no cosine
    assert one("shift", {"scheme": "binary", "dim": 8, "len": 64})["value"] == pytest.approx(4 / 3)
    random = {"scheme": "learned", "dim": 64, "len": 200, "seed": 0, "std": 1.0}
    assert 2 < one("shift", random)["value"] < 8


def test_a_fit_is_the_pseudoinverse():
    table = np.random.default_rng(0).standard_normal((20, 4)) @ np.random.default_rng(1).standard_normal((4, 7))
    m = rows.fitted_shift(table, 3)
    np.testing.assert_allclose(m, (np.linalg.pinv(table[:-3:2]) @ table[3::2]).T, atol=1e-12)


# ---- receptive, extrapolation -------------------------------------------------------------------------------------------------------------


def test_receptive():
    found = one("receptive", {"scheme": "alibi", "causal": True, "len": 2048})
    assert found["ninety"] == [4, 9, 18, 36, 73, 147, 294, 588] and found["value"] == 588 and found["witness"] == {"head": 7}


def extrapolated(scheme, **ask):
    return one("extrapolation", {**scheme, "len": 16}, **{"train_len": 128, "eval_len": 1024, **ask})


def test_extrapolation():
    found = extrapolated({"scheme": "alibi", "causal": True})
    assert found["value"] == found["attention"]["mass_beyond"] == pytest.approx(.1418, abs=5e-5)
    assert found["attention"]["entropy"] == pytest.approx([3.276, 3.717], abs=5e-4)
    # rope's own attention would take a second here; its headline needs none
    assert one("extrapolation", {"scheme": "rope", "len": 128}, eval_len=1024, train_len=128)["value"] == pytest.approx(.5726, abs=5e-5)
    ntk = plans.Plan({"scheme": "rope", "scaling": {"type": "ntk", "factor": 8}, "len": 4})
    # the slowest pair is divided by 8 exactly: at the distance 8·127 it has just reached the angle of 127
    assert unseen_angles(ntk, 128, 1024).mean() == pytest.approx(.28592, abs=1e-5)
    assert unseen_angles(ntk, 128, 1024, -1e-13).mean() == pytest.approx(.2860, abs=5e-5)


@pytest.mark.parametrize("dim,train_len,scaling,share", [
    (128, 4096, None, .247), (128, 4096, "ntk", .048), (128, 4096, "linear", .0001), (64, 128, None, .616), (64, 128, "ntk", .243),
    (64, 128, "linear", .005)])
def test_unseen_angles(dim, train_len, scaling, share):
    scaled = {"scaling": {"type": scaling, "factor": 2}} if scaling else {}
    plan = plans.Plan({"scheme": "rope", "head_dim": dim, "len": 4, **scaled})
    assert unseen_angles(plan, train_len, 2 * train_len).mean() == pytest.approx(share, abs=6e-4)


def test_pairs_out_of_reach():
    """128 → 256: 25.1 % of the causal pairs, 25.2 % of all."""
    for is_causal, share in ((True, .251), (False, .252)):
        assert unseen_pairs(128, 256, is_causal) == pytest.approx(share, abs=5e-4)
        lag = np.arange(256)[:, None] - np.arange(256)[None]
        counted = (np.abs(lag) >= 128)[lag >= 0] if is_causal else np.abs(lag) >= 128
        assert unseen_pairs(128, 256, is_causal) == counted.mean()
    t5 = {"scheme": "t5", "len": 4, "seed": 0}
    one_way = plans.Plan({**t5, "bidirectional": False, "causal": True})
    for n, plan, share in ((128, one_way, .015), (256, one_way, .313), (512, one_way, .608), (1024, one_way, .792),
                           (128, plans.Plan(t5), .086), (256, plans.Plan(t5), .418)):
        assert saturated(plan, n) == pytest.approx(share, abs=6e-4)
    shaw = plans.Plan({"scheme": "shaw", "len": 4})
    assert saturated(shaw, 9) == pytest.approx(30 / 81)


def test_learned_has_rows():
    found = one("extrapolation", {"scheme": "learned", "dim": 8, "len": 128, "seed": 0})
    assert found["value"] == found["positions_without_row"] == .5 and "attention" not in found


def test_seeded_content():
    assert np.array_equal(content("q", (2, 16, 4), 3), seeded("q", (2, 16, 4), 3, 1.0))


# ---- properties, difference -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config,count", [
    ({"scheme": "sinusoidal"}, 5), ({"scheme": "rope"}, 5), ({"scheme": "binary", "dim": 8}, 2), ({"scheme": "learned", "seed": 0}, 2),
    ({"scheme": "alibi"}, 3), ({"scheme": "alibi", "causal": True}, 4)])
def test_properties(config, count):
    assert one("properties", {**config, "len": 64})["value"] == count


def test_a_count_of_the_length_changes_with_it():
    found = one("properties", {"scheme": "integer", "normalize": "length", "dim": 4, "len": 64})["wishes"]["unique"]
    assert not found["holds"] and found["length_change"] == pytest.approx(31 / 32 - 31 / 64)


def test_difference():
    rope = {"scheme": "rope", "head_dim": 8, "len": 5}
    itself = one("difference", [rope, rope])
    assert itself["value"] == 0 and itself["witness"] is None and itself["equal"] == 1 and itself["max_ulp"] == 0
    assert itself["compared"] == ["cos", "sin", "rotated"] and itself["first"] is None
    layout = one("difference", [rope, {**rope, "layout": "half"}])  # cos and sin are the same
    assert layout["witness"]["output"] == "rotated" and layout["value"] > .1 and layout["first"] == {"output": "rotated", "row": 1}
    assert one("difference", [rope, {"scheme": "alibi", "len": 5}])["value"] is None
    causal = one("difference", [{"scheme": "alibi", "len": 3}, {"scheme": "alibi", "len": 3, "causal": True}])
    assert causal["value"] == np.inf and causal["witness"] == {"output": "bias", "index": [0, 0, 1]}


def test_steps():
    for dtype, kind in (("f32", "f4"), ("f16", "f2"), ("f64", "f8")):
        x = np.array([0, 1, np.finfo(kind).max], kind)
        with np.errstate(over="ignore"):
            above = np.nextafter(x, np.array(np.inf, kind))
        assert list(steps(above, dtype) - steps(x, dtype)) == [1, 1, 1]
        assert steps(-x[:1], dtype) == steps(x[:1], dtype)
        assert list(steps(above, dtype) + steps(-above, dtype)) == [0, 0, 0]
    assert list(steps(np.array([1, 1.0078125]), "bf16")) == [16256, 16257]


# ---- All of them -------------------------------------------------------------------------------------------------------------------------


def test_every_metric_has_its_schemes():
    configs = [{"scheme": s, "len": 6, "dim": 8, "seed": 0} for s in plans.FAMILIES["absolute"]]
    configs += [{"scheme": s, "len": 6, "seed": 0} for f in ("rotary", "bias", "relative") for s in plans.FAMILIES[f]]
    found = [analyze(config)["results"][0] for config in configs]
    met = {name for result in found for name in result} | {"difference"}
    assert met == set(METRICS)
    assert all(list(result) == [name for name in METRICS if name in result] for result in found)


def test_ties():
    assert rows.first_extreme([1, 2, 2 + 1e-10, 2], 2) == (2 + 1e-10, (1,))
    assert rows.first_extreme([[0, -1], [-1, 0]], 1, True) == (-1, (0, 1))
    assert rows.unless_noise(1e-10, 1, "x") is None and rows.unless_noise(1e-8, 1, "x") == "x"
