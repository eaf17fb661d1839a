"""The makers of wrong tensors, without a server's help and with it: every code has one, a seed always makes the same case, and where a
fault is a configuration of its own, /encode and /rotate give the faulty tensor."""
import numpy as np
import pytest

import diagnosing
import wrong_rotary
from wrong_tensors import CODES, draw, draw_pair, families, fits, rounded

EXPRESSIBLE = [  # faults that a request can ask for
    "layout_swapped", "direction_reversed", "off_by_one", "offset_other", "rotated_twice", "positions_reversed", "position_stride",
    "positions_constant", "position_reset", "position_no_reset", "rotary_dim_other", "rotary_offset_other", "scaling_missing",
    "scaling_parameter", "scaling_other", "base_other", "section_order", "channels_other", "freq_shift_other", "odd_other", "style_other",
    "bias_max_other", "form_other", "alignment_other", "mask_missing", "mask_extra", "window_other", "bidirectional_other",
    "max_distance_other", "kind_other", "parameter_other", "position_style_other", "tokens_per_second_other", "merge_size_other"]


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
    assert draw(code, 5).body() == draw(code, 5).body()
    assert draw(code, 5).body() != draw(code, 6).body()


def test_pairs_are_of_two_kinds():
    for seed in range(8):
        case = draw_pair(seed)
        assert len(set(case.codes)) == 2
        assert draw_pair(seed).body() == case.body()


@pytest.mark.parametrize("code", EXPRESSIBLE)
def test_the_faulty_configuration_gives_the_faulty_tensor(server, code):
    for seed, family in enumerate(families(code) * 2):
        case = draw(code, seed, family)
        candidate = {"config": given_by(case.wrong), "sequence": {}, "transforms": [], "verdict": "rounding"}
        reason = diagnosing.unlike(server, candidate, case.tensors, case.wrong.tolerance)
        assert reason is None, (reason, case.belief, case.wrong)


def given_by(model):
    """The request of a model, with the positions written out."""
    out = model.request()
    if hasattr(model, "at") and not out.get("segments"):
        out = {name: value for name, value in out.items() if name not in diagnosing.SEQUENCE}
        style = getattr(model, "style", None)
        out["positions"] = model.at.tolist() if len(model.at) > 1 else model.at[0].tolist()
        if style:
            out["grid"] = [int(x) + 1 for x in model.at.max(1)]
            del out["positions"]
    return out


@pytest.mark.parametrize("width", [64, 128])
def test_frequencies_are_those_of_the_papers(width):
    """Against mpmath (reference_scaling.py), for each rule."""
    import reference_scaling
    for scaling in [*wrong_rotary.PRESET_SCALINGS[width], {"type": "ntk", "factor": 4.0},
                    {"type": "dynamic", "factor": 2.0, "max_position_embeddings": 4096, "seq_len": 8192}]:
        expected = [float(w) for w in reference_scaling.inv_freq(scaling, 500000.0, width, 100)]
        np.testing.assert_allclose(wrong_rotary.stretched(scaling, 500000.0, width, 100).astype(float), expected, rtol=1e-15)
        assert abs(wrong_rotary.factor_of(scaling) - float(reference_scaling.attention_factor(scaling, 100))) < 1e-15
