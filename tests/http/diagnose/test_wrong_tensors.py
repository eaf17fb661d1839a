"""The makers of wrong tensors, without a server's help and with it: every code has one, a seed always makes the same case, and where a
fault is a configuration of its own, /encode and /rotate give the faulty tensor."""
import numpy as np
import pytest

import diagnosing
import wrong_scaling
from wrong_tensors import CODES, draw, draw_pair, families, fits, rounded

@pytest.mark.parametrize("code", CODES)
def test_a_case_differs_from_its_belief(code):
    for family in families(code):
        case = draw(code, 0, family)
        assert case.codes == (code,)
        made = {name: t for name, t in case.tensors.items() if name not in ("q", "table")}
        assert not fits(made, case.right, case.data), case.belief
        assert fits(made, case.wrong, case.data)
        for name, tensor in case.tensors.items():
            assert np.array_equal(rounded(tensor.values, tensor.dtype), tensor.values, equal_nan=True), (name, tensor.dtype)


@pytest.mark.parametrize("code", CODES[::4])
def test_a_seed_makes_one_case(code):
    first = draw(code, 5).body()
    assert draw(code, 5).body() == first != draw(code, 6).body()


def test_pairs_are_of_two_kinds():
    for seed in range(8):
        case = draw_pair(seed)
        assert len(set(case.codes)) == 2
        assert draw_pair(seed).body() == case.body()


@pytest.mark.parametrize("code", CODES)
def test_the_faulty_configuration_gives_the_faulty_tensor(server, code):
    """What an answer should hold: the server's values of the faulty configuration, transformed."""
    for seed, family in enumerate(families(code) * 2):
        case = draw(code, seed, family)
        reason = diagnosing.unlike(server, candidate(case.wrong), case.tensors, case.wrong.tolerance)
        assert reason is None, (reason, case.belief, case.wrong)


def candidate(model):
    return {"config": configured(model), "sequence": {}, "transforms": list(transforms(model)), "verdict": "rounding"}


def configured(model):
    """The request of a model, with the positions written out."""
    out = model.request()
    if out.get("segments"):
        out.update({"channels": "mrope", "mrope_section": [4, 6, 6]} if "head_dim" in out else {})
    if not hasattr(model, "at") or "segments" in out:
        return out
    out = {name: value for name, value in out.items() if name not in diagnosing.SEQUENCE}
    axes = len(model.at)
    if getattr(model, "style", None):
        return {**out, "grid": [int(x) + 1 for x in model.at.max(1)]}
    return {**out, "positions": model.at.tolist() if axes > 1 else model.at[0].tolist()}


def is_in_order(model):
    """1, or -1 where the axes of a grid are exchanged: its second axis is fastest."""
    return 1 if model.at[0, 1] == 0 else -1


def transforms(model):
    """Those of a model's fields that no configuration has, in the order in which they are applied."""
    recipe, way = getattr(model, "recipe", None), getattr(model, "way", "plain")
    if recipe:
        yield {"name": "angles", "recipe": {code: name for name, code in diagnosing.NAMES.items()}[recipe]}
    if way != "plain":
        yield {"name": way}
    if getattr(model, "swapped", False):
        yield {"name": "axes", "order": [0, 2, 1]} if hasattr(model, "segments") else {"name": "sin_cos_swapped"}
    if getattr(model, "style", None) and is_in_order(model) < 0:
        yield {"name": "axes", "order": [1, 0]}
    if getattr(model, "zero", None) is not None:
        yield {"name": "zero_row", "row": model.zero}
    if getattr(model, "turned", False):
        yield {"name": "transposed"}
    if getattr(model, "factor", 1.0) != 1.0:
        yield {"name": "scaled", "factor": model.factor} if model.factor != -1 else {"name": "negated"}
    if getattr(model, "mask_number", -np.inf) != -np.inf:
        yield {"name": "mask_value", "value": model.mask_number}


@pytest.mark.parametrize("width", [64, 128])
def test_frequencies_are_those_of_the_papers(width):
    """Against mpmath (tests/truth/scaling.py), for each rule."""
    import truth.scaling
    for scaling in [*wrong_scaling.PRESET_SCALINGS[width], {"type": "ntk", "factor": 4.0},
                    {"type": "dynamic", "factor": 2.0, "max_position_embeddings": 4096, "seq_len": 8192}]:
        expected = [float(w) for w in truth.scaling.inv_freq(scaling, 500000.0, width, 100)]
        np.testing.assert_allclose(wrong_scaling.stretched(scaling, 500000.0, width, 100).astype(float), expected, rtol=1e-15)
        assert abs(wrong_scaling.factor_of(scaling) - float(truth.scaling.attention_factor(scaling, 100))) < 1e-15
