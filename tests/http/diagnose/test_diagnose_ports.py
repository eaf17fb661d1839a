"""/diagnose names the mistakes of people who port checkpoints: channels in the order of another code, more than once, with other heads.
The formulas are those of Meta's model.py and Hugging Face's modeling_llama.py and conversion, written here in NumPy."""
import numpy as np
import pytest

from diagnosing import codes_of, diagnose
from wrong_tensors import Tensor, inline, rounded


def frequencies(width, base=10000.0):
    return base ** (-np.arange(0, width, 2) / width)


def by_meta(q, positions, base=10000.0):
    """Neighbours are pairs."""
    angle = positions[:, None] * frequencies(q.shape[-1], base)
    a, b, out = q[..., ::2], q[..., 1::2], np.empty_like(q)
    out[..., ::2], out[..., 1::2] = a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)
    return out


def by_hugging_face(q, positions, base=10000.0):
    """q * cos + rotate_half(q) * sin."""
    angle = np.tile(positions[:, None] * frequencies(q.shape[-1], base), 2)
    half = q.shape[-1] // 2
    return q * np.cos(angle) + np.concatenate([-q[..., half:], q[..., :half]], -1) * np.sin(angle)


def permuted(q, heads=None, times=1):
    """What Hugging Face's permute() of w_q's rows does to q [heads, n, d]: view(heads, d/2, 2).transpose(1, 2); negative: its inverse."""
    of_q, n, d = q.shape
    rows = q.transpose(1, 0, 2).reshape(n, of_q * d)
    for _ in range(abs(times)):
        shape = (n, heads or of_q, -1, 2) if times > 0 else (n, heads or of_q, 2, of_q * d // (heads or of_q) // 2)
        rows = rows.reshape(shape).swapaxes(-1, -2).reshape(n, of_q * d)
    return rows.reshape(n, of_q, d).transpose(1, 0, 2)


def drawn(heads=4, n=24, d=64, seed=7):
    return rounded(np.random.default_rng(seed).standard_normal((heads, n, d)), "f32")


def asked(server, belief, q, out, dtype="f32"):
    return diagnose(server, {**belief, "q": inline(Tensor(rounded(q, dtype), dtype)), "q_out": inline(Tensor(rounded(out, dtype), dtype))})


HALF = {"scheme": "rope", "layout": "half"}
AT = np.arange(24.0)


def test_a_forgotten_permutation_is_told_in_one_line(server):
    q = drawn()
    answer = asked(server, {"scheme": "rope", "layout": "interleaved"}, q, by_hugging_face(q, AT))
    assert codes_of(answer) == ["layout_swapped"]
    detail, chinese = answer["findings"][0]["detail"], answer["findings"][0]["detail_zh"]
    assert detail.startswith("The tensor has the layout half; the configuration says interleaved.")
    assert "Meta" in detail and "permutation" in detail and "w_q" in detail and "forgotten" in detail
    assert "Meta" in chinese and "w_q" in chinese and "重排" in chinese
    other = asked(server, HALF, q, by_meta(q, AT))
    assert codes_of(other) == ["layout_swapped"] and "permute" in other["findings"][0]["detail"]


def test_a_right_permutation_is_the_layout_of_converted_weights(server):
    q = drawn()
    answer = asked(server, HALF, q, by_hugging_face(permuted(q), AT))
    assert codes_of(answer) == ["layout_swapped"] and answer["candidates"][0]["config"]["layout"] == "interleaved_to_half"
    assert codes_of(asked(server, {"scheme": "rope", "layout": "interleaved_to_half"}, q, by_hugging_face(permuted(q), AT))) == ["as_believed"]


@pytest.mark.parametrize("layout", ["half", "interleaved_to_half"])
@pytest.mark.parametrize("times, word", [(2, "permuted twice before"), (-1, "wrong direction"), (-2, "twice in the wrong direction")])
def test_permuted_too_often_or_backwards(server, layout, times, word):
    q = drawn()
    answer = asked(server, {"scheme": "rope", "layout": layout}, q, by_hugging_face(permuted(q, times=times), AT))
    assert codes_of(answer) == ["channels_permuted"], answer["findings"]
    found = answer["findings"][0]
    assert word in found["detail"] and found["pointer"] == "/q_out" and found["heads"] == 4
    assert found["found"] == permuted(np.arange(64.0)[None, None], times=times)[0, 0].tolist()
    assert "transformers" in found["detail_zh"] and answer["candidates"][0]["config"]["layout"] == "half"
    assert answer["candidates"][0]["transforms"] == [
        {"name": "channels", "of": "q", "conversion": "interleaved_to_half" if times > 0 else "half_to_interleaved", "times": abs(times), "heads": 4}]


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_permuted_twice_in_sixteen_bits(server, dtype):
    q = rounded(drawn(), dtype)
    assert codes_of(asked(server, HALF, q, by_hugging_face(permuted(q, times=2), AT), dtype)) == ["channels_permuted"]


def test_metas_code_with_permuted_weights(server):
    q = drawn()
    answer = asked(server, {"scheme": "rope", "layout": "interleaved"}, q, by_meta(permuted(q), AT))
    assert codes_of(answer) == ["channels_permuted"] and "configuration does not say" in answer["findings"][0]["detail"]


@pytest.mark.parametrize("heads, of_q", [(8, 2), (2, 8), (1, 4)])
@pytest.mark.parametrize("layout", ["half", "interleaved_to_half"])
def test_permuted_with_the_heads_of_another_matrix(server, heads, of_q, layout):
    """The mistake with grouped queries: k has 2 heads, and its rows are permuted as if there were 8."""
    q = drawn(of_q)
    answer = asked(server, {"scheme": "rope", "layout": layout}, q, by_hugging_face(permuted(q, heads), AT))
    assert codes_of(answer) == ["channels_permuted"], answer["findings"]
    assert f"for {heads} heads" in answer["findings"][0]["detail"] and answer["findings"][0]["heads"] == heads
    assert len(answer["findings"][0]["found"]) == 64


def test_a_permutation_beside_another_mistake(server):
    """The base is measured under the permutation; so is the first position."""
    q = drawn()
    answer = asked(server, {**HALF, "base": 500000}, q, by_hugging_face(permuted(q, times=2), AT))
    assert set(codes_of(answer)) == {"channels_permuted", "base_other"}
    answer = asked(server, {**HALF, "offset": 3}, q, by_hugging_face(permuted(q, times=2), AT))
    assert set(codes_of(answer)) == {"channels_permuted", "offset_other"}


@pytest.mark.parametrize("offset", [0, 5000])
@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_an_order_without_a_name(server, layout, offset):
    q, order = drawn(), np.random.default_rng(3).permutation(64)
    turn = by_hugging_face if layout == "half" else by_meta
    answer = asked(server, {**HALF, "offset": offset}, q, turn(q[..., order], AT + offset))
    assert codes_of(answer) == ["channels_permuted"] and "no name" in answer["findings"][0]["detail"]
    assert answer["findings"][0]["found"] == order.tolist() and answer["candidates"][0]["config"]["layout"] == layout
    assert answer["candidates"][0]["transforms"] == [{"name": "channels", "of": "q", "order": order.tolist()}]


def test_an_order_after_the_rotation(server):
    q, order = drawn(), np.random.default_rng(4).permutation(64)
    answer = asked(server, HALF, q, by_hugging_face(q, AT)[..., order])
    assert codes_of(answer) == ["channels_permuted"] and "after the rotation" in answer["findings"][0]["detail"]
    assert answer["findings"][0]["found"] == order.tolist()
    assert answer["candidates"][0]["transforms"] == [{"name": "channels", "of": "q_out", "order": order.tolist()}]


def test_a_wide_order_is_cut(server):
    q = drawn(2, 24, 128)
    found = asked(server, HALF, q, by_hugging_face(permuted(q, times=2), AT))["findings"][0]
    assert found["code"] == "channels_permuted" and found["found"] == permuted(np.arange(128.0)[None, None], times=2)[0, 0, :64].tolist()


def test_other_numbers_are_no_order(server):
    """The same lengths, but not q's numbers: an order explains nothing."""
    q = drawn()
    out = by_hugging_face(permuted(q, times=2), AT)
    out[0, 5, 7] += 0.5
    assert codes_of(asked(server, HALF, q, out)) == ["unexplained"]


def test_an_order_never_passes(server):
    q = drawn(seed=9)
    for out in (by_hugging_face(permuted(q, times=2), AT), by_hugging_face(q, AT)[..., ::-1].copy()):
        answer = asked(server, HALF, q, out)
        assert answer["explained"] is True and "as_believed" not in codes_of(answer)


# ---- xPos ---------------------------------------------------------------------------------------------------------------------


def by_xpos(q, positions, center, scale_base=512.0, gamma=0.4):
    """Queries of Sun et al. 2022: rotated as by Meta's code, each pair times zeta^((p - center)/scale_base)."""
    zeta = (np.arange(0, q.shape[-1], 2) / q.shape[-1] + gamma) / (1 + gamma)
    return by_meta(q, positions) * np.repeat(zeta ** ((positions[:, None] - center) / scale_base), 2, -1)


XPOS = {"scheme": "xpos", "layout": "interleaved"}


@pytest.mark.parametrize("center, believed, found", [(12, {}, "torchscale"), (12, {"center": 3}, "torchscale"), (0, {"center": "torchscale"}, 0), (7.5, {}, 7.5)])
def test_the_centre_of_xpos(server, center, believed, found):
    q = drawn()
    answer = asked(server, {**XPOS, **believed}, q, by_xpos(q, AT, center))
    assert codes_of(answer)[0] == "center_other" and codes_of(answer)[1:] in ([], ["undecided"])
    assert answer["findings"][0]["pointer"] == "/center" and answer["findings"][0]["found"] == found
    assert answer["candidates"][0]["config"]["center"] == center


@pytest.mark.parametrize("scale_base, center", [(256, 12), (1024, 0), (700, 12), (333.5, 0)])
def test_the_scale_base_of_xpos(server, scale_base, center):
    q = drawn()
    answer = asked(server, {**XPOS, "center": "torchscale" if center else 0}, q, by_xpos(q, AT, center, scale_base))
    assert codes_of(answer) == ["scale_base_other"] and answer["findings"][0]["found"] == scale_base, answer["findings"]


def test_scale_base_and_centre_together(server):
    q = drawn()
    answer = asked(server, XPOS, q, by_xpos(q, AT, 12, 256))
    assert codes_of(answer)[:2] == ["scale_base_other", "center_other"]
    answer = asked(server, XPOS, q, by_xpos(q, AT, 9, 640))
    assert codes_of(answer)[:2] == ["scale_base_other", "center_other"] and [f["found"] for f in answer["findings"][:2]] == [640, 9]


@pytest.mark.parametrize("center", [0, 12, 5])
def test_the_scale_of_xpos_forgotten(server, center):
    q = drawn()
    answer = asked(server, {"scheme": "rope", "layout": "interleaved"}, q, by_xpos(q, AT, center))
    assert codes_of(answer)[0] == "scheme_other" and answer["findings"][0]["pointer"] == "/scheme"
    assert (answer["findings"][0]["found"], answer["findings"][0]["believed"]) == ("xpos", "rope")
    assert answer["candidates"][0]["config"]["center"] == center
    back = asked(server, {**XPOS, "center": center}, q, by_meta(q, AT))
    assert codes_of(back) == ["scheme_other"] and back["findings"][0]["found"] == "rope"


def test_rope_with_another_scale_than_any_known(server):
    q = drawn()
    answer = asked(server, {"scheme": "rope", "layout": "interleaved"}, q, by_xpos(q, AT, 4, 300))
    assert codes_of(answer) == ["scheme_other"]
    config = answer["candidates"][0]["config"]
    assert config["scheme"] == "xpos" and config["scale_base"] == 300 and abs(config["center"] - 4) < 1e-3


@pytest.mark.parametrize("offset", [1, 7])
def test_positions_of_xpos_begin_later(server, offset):
    """The centre follows the sequence, as the word says."""
    q = drawn()
    answer = asked(server, {**XPOS, "center": "torchscale", "offset": offset}, q, by_xpos(q, AT, 12))
    assert codes_of(answer)[0] == ("off_by_one" if offset == 1 else "offset_other"), answer["findings"]
    assert answer["candidates"][0]["config"]["center"] == 12


def test_xpos_is_recognised_as_it_is(server):
    q = drawn()
    for center in (0, "torchscale", "lucidrains", 5):
        number = {"torchscale": 12, "lucidrains": 12}.get(center, center)
        assert codes_of(asked(server, {**XPOS, "center": center}, q, by_xpos(q, AT, number)))[0] == "as_believed"
    assert codes_of(asked(server, {"scheme": "rope", "layout": "interleaved"}, q, by_meta(q, AT)))[0] == "as_believed"


# ---- Widths of grids ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole, believed", [(64, 32), (32, 64)])
def test_the_width_of_a_grid(server, whole, believed):
    """Two axes share the rotated channels, so their widths follow the width that is found."""
    q, out = drawn(n=24), drawn(n=24)
    rows, columns = np.divmod(np.arange(24.0), 6)
    for at, first in ((rows, 0), (columns, whole // 2)):
        out[..., first:first + whole // 2] = by_meta(q[..., first:first + whole // 2], at)
    answer = asked(server, {"scheme": "rope", "layout": "interleaved", "grid": [4, 6], "rotary_dim": believed}, q, out)
    assert codes_of(answer) == ["rotary_dim_other"] and answer["findings"][0]["found"] == whole
    assert answer["candidates"][0]["config"]["axes_dim"] == [whole // 2] * 2


# ---- ALiBi --------------------------------------------------------------------------------------------------------------------


def paper(heads):
    return 2.0 ** (-8 * np.arange(1, heads + 1) / heads)


def bias_of(form, heads=8, q_len=12, k_len=12, slopes=None, seen=None):
    """[heads, q, k]; seen [q, k]: all others are -inf."""
    rel = np.arange(k_len)[None, :] - (k_len - q_len + np.arange(q_len))[:, None]
    key = np.arange(k_len) + 0 * rel
    table = {"symmetric": -np.abs(rel), "relative": np.minimum(rel, 0), "key": key, "key_end": key - (k_len - 1)}[form]
    out = (paper(heads) if slopes is None else np.asarray(slopes))[:, None, None] * table
    return out if seen is None else np.where(seen, out, -np.inf)


def believed_of(server, belief, bias):
    return diagnose(server, {"scheme": "alibi", **belief, "bias": inline(Tensor(rounded(bias, "f32"), "f32"))})


@pytest.mark.parametrize("q_len", [12, 1])
def test_the_papers_slopes_where_a_list_is_believed(server, q_len):
    """Nothing is negated: the slopes are the paper's, and the sentence says so."""
    sizes = {"q_len": q_len, "k_len": 12}
    answer = believed_of(server, {**sizes, "form": "relative", "slopes": [0.5 * (h + 1) for h in range(8)]}, bias_of("relative", q_len=q_len))
    assert codes_of(answer)[0] == "slopes_other" and "negated" not in codes_of(answer)
    assert "paper" in answer["findings"][0]["detail"] and answer["findings"][0]["found"] == paper(8).tolist()
    back = believed_of(server, {**sizes, "form": "relative", "slopes": paper(8)[::-1].tolist()}, bias_of("relative", q_len=q_len))
    assert codes_of(back)[0] == "slopes_order" and "negated" not in codes_of(back)


@pytest.mark.parametrize("form, belief, second", [
    ("symmetric", {"form": "relative"}, "form_other"), ("symmetric", {"form": "key_end"}, "form_other"),
    ("symmetric", {"causal": True}, "mask_missing"), ("symmetric", {"window": 6}, "mask_missing")])
def test_slopes_beside_a_form_or_a_mask(server, form, belief, second):
    """OLMo's slopes for twelve heads, 2^(-8h/12), and another mistake."""
    answer = believed_of(server, {"form": form, **belief}, bias_of(form, heads=12))
    assert set(codes_of(answer)) == {"slopes_other", second}, answer["findings"]


def test_a_form_beside_a_mask(server):
    answer = believed_of(server, {"form": "key", "causal": True}, bias_of("symmetric"))
    assert set(codes_of(answer)) == {"form_other", "mask_missing"}, answer["findings"]


@pytest.mark.parametrize("window, believed", [(1, 8), (3, 8), (5, 2), (11, 4), (5, None)])
def test_windows_of_any_size(server, window, believed):
    rel = np.arange(12)[None, :] - np.arange(12)[:, None]
    seen = (rel <= 0) & (-rel < window)
    answer = believed_of(server, {"form": "relative", "causal": True, **({"window": believed} if believed else {})}, bias_of("relative", seen=seen))
    assert codes_of(answer)[0] == ("window_other" if believed else "mask_extra"), answer["findings"]
    assert answer["candidates"][0]["config"]["window"] == window


def bloom(mask, heads=8):
    """build_alibi_tensor: slope * ((cumsum(mask) - 1) * mask), [heads, 1, keys]: 0 where padding is."""
    mask = np.asarray(mask)
    return paper(heads)[:, None, None] * ((mask.cumsum() - 1) * mask)[None, None]


@pytest.mark.parametrize("mask", [[0, 0, 0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 0, 0], [0, 1, 1, 0, 1, 1, 1, 0]])
def test_blooms_padding(server, mask):
    sizes = {"q_len": 1, "k_len": 8}
    answer = believed_of(server, {**sizes, "form": "key_mask", "key_mask": mask}, bloom(mask))
    assert codes_of(answer)[0] == "mask_missing", answer["findings"]
    found = answer["findings"][0]
    assert found["found"] == 0 and "0 instead of -inf" in found["detail"] and "BLOOM" in found["detail"] and "BLOOM" in found["detail_zh"]
    assert {"name": "mask_value", "value": 0} in answer["candidates"][0]["transforms"]
    for form in ("key", "key_mask"):
        unmasked = believed_of(server, {**sizes, "form": form}, bloom(mask))
        assert codes_of(unmasked)[0] == "mask_extra" and "BLOOM" in unmasked["findings"][0]["detail"], unmasked["findings"]
        assert unmasked["candidates"][0]["config"]["key_mask"] == mask and unmasked["candidates"][0]["config"]["form"] == "key_mask"


# ---- DeBERTa ------------------------------------------------------------------------------------------------------------------


def deberta_index(n, buckets, most, clamp_first):
    """da_utils.make_log_bucket_position with abs_pos clamped first or not, plus the span."""
    delta, middle = (np.arange(n)[:, None] - np.arange(n)[None, :]).astype(float), buckets // 2
    if clamp_first:
        delta = np.clip(delta, -(most - 1), most - 1)
    far = np.maximum(np.abs(delta), middle)
    log = middle + np.ceil(np.log(far / middle) / np.log((most - 1) / middle) * (middle - 1) - 1e-9)
    return np.clip(np.where(np.abs(delta) <= middle, delta, np.sign(delta) * log).astype(int) + buckets, 0, 2 * buckets - 1)


@pytest.mark.parametrize("is_first", [False, True])
def test_where_deberta_clamps(server, is_first):
    assert (deberta_index(96, 16, 32, True) != deberta_index(96, 16, 32, False)).any()
    answer = diagnose(server, {"scheme": "deberta", "position_buckets": 16, "max_relative_positions": 32, "clamp_first": not is_first,
                               "buckets": inline(Tensor(deberta_index(96, 16, 32, is_first), "i64"))})
    assert codes_of(answer) == ["parameter_other"], answer["findings"]
    found = answer["findings"][0]
    assert (found["pointer"], found["found"], found["believed"]) == ("/clamp_first", is_first, not is_first)


# ---- Sinusoids ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("belief", [{"layout": "half", "odd": "paper"}, {"layout": "interleaved", "odd": "pad"}])
def test_fairseqs_sinusoid_of_an_odd_width(server, belief):
    """get_embedding: sines, cosines, log(10000)/(half - 1), and a column of zeros: freq_shift differs, and odd or layout."""
    half = 31
    angle = np.arange(40.0)[:, None] * 10000.0 ** (-np.arange(half) / (half - 1))
    table = np.concatenate([np.sin(angle), np.cos(angle), np.zeros((40, 1))], 1)
    answer = diagnose(server, {"scheme": "sinusoidal", **belief, "encoding": inline(Tensor(rounded(table, "f32"), "f32"))})
    assert answer["explained"], answer["findings"]
    config = answer["candidates"][0]["config"]
    assert (config["layout"], config["freq_shift"], config["odd"], config["base"]) == ("half", 1, "pad", 10000)


@pytest.mark.parametrize("base, first", [(10000.0, 0), (500000.0, 0), (10000.0, 7), (31337.0, 0)])
def test_tables_of_halves_over_neighbours(server, base, first):
    """cat((freqs, freqs)) with rotate_every_two, as in V-JEPA 2: no pair is rotated, and yet base and positions are read."""
    q, at = drawn(), AT + first
    angle = np.tile(at[:, None] * frequencies(q.shape[-1], base), 2)
    turned = np.stack([-q[..., 1::2], q[..., ::2]], -1).reshape(q.shape)
    answer = asked(server, {"scheme": "rope", "layout": "half"}, q, q * np.cos(angle) + turned * np.sin(angle))
    assert answer["explained"] and codes_of(answer)[0] == "layout_swapped" and answer["findings"][0]["found"] == "vjepa2"
    config, sequence = answer["candidates"][0]["config"], answer["candidates"][0]["sequence"]
    assert config["base"] == base and sequence.get("offset", 0) == first


# ---- Tables built in bfloat16, as torch does under a default dtype of that -----------------------------------------------------


def bf16(x):
    return rounded(np.asarray(x, float), "bf16")


def built_in_bf16(n, width, base, rounds_result):
    """1 / (base ** (arange(0, width, 2) / width)), then outer(positions, that): every step in bfloat16, base too; the cosine in float32
    unless the result is rounded as well."""
    w = bf16(1 / bf16(bf16(base) ** bf16(np.arange(0, width, 2) / width)))
    angle = bf16(np.outer(bf16(np.arange(n)), w))
    cos, sin = np.cos(angle), np.sin(angle)
    return (bf16(cos), bf16(sin)) if rounds_result else (cos, sin)


BF16_BELIEFS = {"": {}, "base_other": {"base": 5e5}, "off_by_one": {"offset": 1}, "direction_reversed": {"direction": -1}}


@pytest.mark.parametrize("code", BF16_BELIEFS)
@pytest.mark.parametrize("width", [64, 128])
@pytest.mark.parametrize("rounds_result", [False, True])
def test_tables_built_in_bf16(server, code, width, rounds_result):
    cos, sin = built_in_bf16(200, width, 1e4, rounds_result)
    tables = {"cos": inline(Tensor(rounded(cos, "f32"), "f32")), "sin": inline(Tensor(rounded(sin, "f32"), "f32"))}
    answer = diagnose(server, {"scheme": "rope", "head_dim": width, **BF16_BELIEFS[code], **tables})
    assert codes_of(answer)[0] == (code or "angles_bf16") and "angles_bf16" in codes_of(answer), answer["findings"]
    assert answer["candidates"][0]["transforms"][0]["recipe"] == "bf16_divided"


def test_an_inv_freq_built_in_bf16(server):
    w = bf16(1 / bf16(bf16(1e4) ** (np.arange(0, 64, 2) / 64)))
    answer = diagnose(server, {"scheme": "rope", "head_dim": 64, "inv_freq": inline(Tensor(w, "f32"))})
    assert codes_of(answer) == ["inv_freq_bf16"], answer["findings"]


# ---- Linear scaling by a factor that nobody lists ------------------------------------------------------------------------------

FACTORS = {"another": ({"type": "linear", "factor": 4}, "scaling_parameter"), "none": (None, "scaling_other"),
           "another rule": ({"type": "ntk", "factor": 4}, "scaling_other")}


@pytest.mark.parametrize("believed", FACTORS)
@pytest.mark.parametrize("factor", [3, 5.5, 10, 4 ** (64 / 62)])  # the last: keras-hub's "dynamic"
def test_any_linear_factor(server, believed, factor):
    scaling, code = FACTORS[believed]
    q = drawn()
    answer = asked(server, {**HALF, **({"scaling": scaling} if scaling else {})}, q, by_hugging_face(q, AT / factor))
    found = answer["candidates"][0]["config"]["scaling"]
    assert codes_of(answer)[0] == code and found["type"] == "linear" and found["factor"] == pytest.approx(factor, rel=1e-5), answer["findings"]


def test_half_of_an_odd_factor_is_no_double_rotation(server):
    q, factor = drawn(), 4 ** (64 / 62)
    answer = asked(server, {**HALF, "scaling": {"type": "linear", "factor": 2 * factor}}, q, by_hugging_face(q, AT / factor))
    assert codes_of(answer)[0] == "scaling_parameter" and answer["findings"][0]["found"] == factor


def test_a_list_of_another_base_under_a_scaling(server):
    """transformers' dynamic NTK beyond its length: neither the scaling nor the base is the believed one."""
    w = frequencies(128, 1e4 * 3 ** (128 / 126))
    answer = diagnose(server, {"scheme": "rope", "scaling": {"type": "linear", "factor": 2}, "inv_freq": inline(Tensor(rounded(w, "f32"), "f32"))})
    assert codes_of(answer)[:2] == ["scaling_missing", "base_other"] and answer["explained"]


def test_an_odd_width_as_fairseq_has_it(server):
    """63 frequencies from 1 to 1/10000, sines, cosines, and a column of zeros: three words of the configuration differ at once."""
    w = 1e4 ** (-np.arange(63) / 62)
    angle = np.outer(np.arange(48), w)
    table = np.concatenate([np.sin(angle), np.cos(angle), np.zeros((48, 1))], -1)
    answer = diagnose(server, {"encoding": inline(Tensor(rounded(table, "f32"), "f32"))})
    config = answer["candidates"][0]["config"]
    assert (config["layout"], config["freq_shift"], config["odd"], config["base"]) == ("half", 1, "pad", 1e4), config
