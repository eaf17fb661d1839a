"""What right float32 code loses: /diagnose takes it as right, whichever steps the code takes, and no wrong belief with it. The losses
are written here once more from the law: g = max(6 + 3·|ln w|, 2c)·2^-24 of an angle, max(4, h) roundings of a bias. A pair has one
frequency and one angle in each row, so a number that is moved alone is no rounding, however far from position 0."""
import io
import json

import numpy as np
import pytest

from diagnosing import ask, codes_of
from believed import inline, rounded
from truth import evidence, rotary

U = 2.0**-24
F = np.float32


def passes(answer):
    """As the clients' check."""
    return answer["explained"] and set(codes_of(answer)) <= {"as_believed", "angles_f32", "table_dtype", "undecided"}


# ---- The limits ---------------------------------------------------------------------------------------------------------------


def waves(r, positions, base=1e4):
    """Angles, and what right float32 code may lose of each: nothing in the first pair, whose frequency is 1."""
    w, c = base ** (-np.arange(0, r, 2) / r), np.arange(r // 2)
    angle = np.asarray(positions, float)[:, None] * w
    return angle, angle * np.maximum(6 + 3 * np.abs(np.log(w)), 2 * c) * U * (c > 0)


def as_tensors(kind, r, cos, sin):
    """Fields and arrays of one kind of evidence. The vectors that are rotated are (1, 0) in each pair."""
    if kind == "complex":
        return {"scheme": "rope", "head_dim": r}, {"freqs_cis": np.stack([cos, sin], -1)}
    if kind == "tables":
        return {"scheme": "rope", "head_dim": r}, {"cos": cos, "sin": sin}
    both = np.concatenate([sin, cos], -1)
    if kind == "encoding":
        return {"scheme": "sinusoidal", "dim": r, "layout": "half"}, {"encoding": both}
    q = np.concatenate([np.ones_like(cos), np.zeros_like(cos)], -1)
    return {"scheme": "rope", "layout": "half"}, {"q": q, "q_out": np.concatenate([cos, sin], -1)}


@pytest.mark.parametrize("kind, r, positions, base", [
    ("rotated", 64, [4000, 4001], 1e4), ("tables", 64, [4000, 4001], 1e4), ("encoding", 64, [4000, 4001], 1e4), ("tables", 128, [8191, 30000, 30007], 1e4),
    ("encoding", 128, [8191, 30000, 30007], 1e4), ("rotated", 32, [1000, 1003], 5e5), ("tables", 128, [1000, 1003], 5e5), ("tables", 256, [2001, 2000], 1e4)])
def test_the_limit_of_an_angle(server, kind, r, positions, base):
    """Frequencies within 0.97 of the limit are right; beyond 1.05 they are not. Of all pairs at once, in f64."""
    angle, lost = waves(r, positions, base)
    assert lost.max() < 1 / 8
    belief = {"positions": positions, "base": base}
    for share, fits in ((0.97, True), (1.05, False)):
        fields, arrays = as_tensors(kind, r, np.cos(angle + share * lost), np.sin(angle + share * lost))
        answer = ask(server, {**fields, **belief}, **arrays)
        assert (passes(answer) and answer["candidates"][0]["codes"] == []) is fits, (share, answer["findings"])


@pytest.mark.parametrize("n, share, fits", [(1, 1.9, True), (2, 1.9, False), (1, 2.1, False)])
def test_a_few_numbers_beyond_it(server, n, share, fits):
    """Of one row one number may be off by up to twice the limit, if its pair is turned by so much. Where |sin| > 0.9 that is the cosine."""
    angle, lost = waves(64, [3000])
    turned = np.flatnonzero((np.abs(np.sin(angle[0])) > 0.9) & (lost[0] > 1e-6))[:n]
    angle[0, turned] += share * lost[0, turned]
    assert passes(ask(server, {"scheme": "rope", "head_dim": 64, "offset": 3000}, cos=np.cos(angle), sin=np.sin(angle))) is fits and len(turned) == n


# ---- One number alone ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, steps, first, pair, by", [
    ("tables", "by_pow", 100000, 0, 0.003), ("tables", "by_exp", 1000000, 1, 0.02), ("complex", "by_product", 1000000, 0, -0.02),
    ("complex", "by_division", 10000, 1, -0.003), ("encoding", "by_pow", 1000000, 0, 0.003), ("encoding", "by_product", 100000, 1, 0.02),
    ("rotated", "by_exp", 100000, 0, -0.003), ("rotated", "by_division", 1000000, 1, 0.02)])
def test_one_number_alone(server, kind, steps, first, pair, by):
    """In a tensor of right float32 code, where the cosine is nearest to 0, so that its angle is off by as much. The finding names it."""
    angle = globals()[steps](16, range(first, first + 16), 1e4)
    cos = np.cos(angle)
    row = np.abs(cos[:, pair]).argmin()
    cos[row, pair] += F(by)
    fields, arrays = as_tensors(kind, 16, cos, np.sin(angle))
    answer = ask(server, {**fields, "offset": first}, **arrays)
    assert not passes(answer), answer["findings"]
    assert one(answer, "unexplained")["worst"]["found"] == pytest.approx(float(cos[row, pair])), answer["findings"]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", ["tables", "encoding", "rotated"])
def test_one_row_alone(server, kind, sign):
    """A pair has one frequency in all rows. Each row here is within its own bound: fifteen are off by one share of their angle, and the
    last, far from them, by about the opposite, which no frequency explains. It is the one that is named."""
    positions = [*range(1000, 1015), 100000]
    share = sign * U * np.where(np.arange(16) < 15, 8, -7)
    angle, lost = waves(16, positions)
    angle[:, 1] *= 1 + share
    assert np.all(np.abs(share) * angle[:, 1] < lost[:, 1])
    fields, arrays = as_tensors(kind, 16, np.cos(angle), np.sin(angle))
    answer = ask(server, {**fields, "positions": positions}, **arrays)
    assert not passes(answer), answer["findings"]
    assert one(answer, "unexplained")["worst"]["index"][-2] == 15, answer["findings"]
    angle[15] = waves(16, positions)[0][15] * np.where(np.arange(8) == 1, 1 + share[0], 1)
    fields, arrays = as_tensors(kind, 16, np.cos(angle), np.sin(angle))
    assert passes(ask(server, {**fields, "positions": positions}, **arrays))


@pytest.mark.parametrize("dtype, by", [("f4", 0.0234375), ("f2", 96.0)])
def test_one_angle_alone(server, dtype, by):
    """The first pair's angle is the position, which float32 holds: a step of float32 is 0.0078 there, of float16 32."""
    angle = np.outer(np.arange(64000, 64016), evidence.powers(1e4, 16)).astype(dtype)
    belief = {"scheme": "rope", "head_dim": 16, "offset": 64000}
    assert passes(ask(server, belief, angles=angle))
    angle[7, 0] += by
    assert not passes(ask(server, belief, angles=angle))


def test_small_numbers_of_few_bits(server):
    """A number of float16 is rounded by a share of itself: the smallest cosine of a table is not what another one is rounded to."""
    angle = np.outer(np.arange(64), evidence.powers(1e4, 64))
    cos, sin, belief = np.cos(angle).astype("f2"), np.sin(angle).astype("f2"), {"scheme": "rope", "head_dim": 64}
    assert passes(ask(server, belief, cos=cos, sin=sin))
    cos.reshape(-1)[np.abs(cos).argmin()] += np.float16(0.0015)
    assert not passes(ask(server, belief, cos=cos, sin=sin))


@pytest.mark.parametrize("name, dtype, by", [("scores", "f4", 0.01), ("probs", "f4", 0.001)])
def test_one_number_of_a_map_alone(server, name, dtype, by):
    """Positions 0 to 10 and 1000000: what float32 loses at the last, no score of the others may lose."""
    rng, positions = np.random.default_rng(1), np.array([*range(11), 1000000.0])
    q, k = rng.standard_normal((2, 1, 1, 12, 16)).astype(dtype)
    belief = {"scheme": "rope", "layout": "half", "positions": positions.tolist(), "head_dim": 16, "causal": True}
    out = evidence.tensor(name, belief, q=q, k=k).astype(dtype)
    send = lambda: ask(server, belief, **{"q": q, "k": k, name: out})
    assert passes(send()) and send()["candidates"][0]["verdict"] == "exact"
    out[0, 0, 10, out[0, 0, 10, :11].argmin()] += by
    assert not passes(send())


@pytest.mark.parametrize("times", [1, 20])
def test_one_rounding_is_exact_and_twenty_are_not(server, times):
    """Keys in bf16, turned to a position at once, or in place from one to the next and rounded each time."""
    out = k = rounded(np.random.default_rng(2).standard_normal((2, 4, 64)) * 3, "bf16")
    for _ in range(times):
        out = rounded(rotary.at_positions(out, [20 / times] * 4, layout="half"), "bf16")
    body = {"scheme": "rope", "layout": "half", "positions": [20] * 4, "k": inline(k, "bf16"), "k_out": inline(out, "bf16")}
    answer = server.post("/diagnose", body).json()
    assert (answer["candidates"][0]["verdict"] == "exact") is (times == 1), answer["candidates"][0]


def alibi(heads, n=24):
    return evidence.tensor("bias", {"scheme": "alibi", "num_heads": heads}, (heads, n, n))


@pytest.mark.parametrize("heads, head, roundings, fits", [(16, 1, 2.8, True), (16, 1, 5.2, False), (16, 16, 14.8, True), (16, 16, 17.2, False),
                                                          (32, 9, 7.8, True), (32, 9, 10.2, False)])
def test_the_limit_of_a_bias(server, heads, head, roundings, fits):
    """max(4, h) roundings of each number of head h, and the tensor's own."""
    bias = alibi(heads)
    bias[head - 1] *= 1 + roundings * U
    assert passes(ask(server, {"scheme": "alibi", "num_heads": heads}, bias=bias.astype("f4"))) is fits


def test_a_bias_of_few_bits_loses_no_more(server):
    """Powers are computed in float32, whatever the bias is rounded to: sixteen roundings of f16 are another slope."""
    bias = alibi(16)
    bias[15] *= 1 + 8 * 2.0**-11
    assert not passes(ask(server, {"scheme": "alibi", "num_heads": 16}, bias=bias.astype("f2")))


# ---- Steps that public code takes ---------------------------------------------------------------------------------------------


def by_pow(r, positions, base):
    return np.asarray(positions, "f4")[:, None] * (F(1) / F(base) ** (np.arange(0, r, 2, dtype="f4") / F(r)))


def by_exp(r, positions, base):
    return np.asarray(positions, "f4")[:, None] * np.exp(np.arange(0, r, 2, dtype="f4") * F(-np.log(base) / r))


def by_product(r, positions, base):
    angle, step, columns = np.asarray(positions, "f4"), F(base) ** F(-2 / r), []
    for _ in range(r // 2):
        columns.append(angle)
        angle = angle * step
    return np.stack(columns, -1)


def by_division(r, positions, base):
    return np.asarray(positions, "f4")[:, None] / F(base) ** (np.arange(0, r, 2, dtype="f4") / F(r))


STEPS = [by_pow, by_exp, by_product, by_division]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("base", [1e4, 5e5, 1e7])
@pytest.mark.parametrize("first", [0, 4000, 100000])
@pytest.mark.parametrize("arith", ["exact", "float32"])
def test_public_steps_are_right(server, steps, base, first, arith):
    angle = steps(128, range(first, first + 40), base)
    for kind in ("tables", "encoding", "rotated"):
        fields, arrays = as_tensors(kind, 128, np.cos(angle), np.sin(angle))
        answer = ask(server, {**fields, "base": base, "offset": first, "arith": arith}, **arrays)
        assert passes(answer) and answer["candidates"][0]["codes"] == [], (kind, answer["findings"])


def test_public_steps_a_million_away(server):
    """Right code of every sort, at 1000000, in 16 and in 32 bits."""
    for steps in STEPS:
        angle = steps(64, range(1000000, 1000016), 5e5)
        for dtype in ("f4", "f2"):
            tables = {"cos": np.cos(angle).astype(dtype), "sin": np.sin(angle).astype(dtype)}
            answer = ask(server, {"scheme": "rope", "head_dim": 64, "base": 5e5, "offset": 1000000}, **tables)
            assert passes(answer), (steps, dtype, answer["findings"])


def test_powers_of_a_slope(server):
    """BLOOM: head h has the h-th power of a float32 slope."""
    base = F(2.0 ** -(2.0 ** -(np.log2(32) - 3)))
    slopes = np.power(base, np.arange(1, 33, dtype="f4"))
    bias = slopes[:, None, None] * np.arange(40, dtype="f4")
    assert codes_of(ask(server, {"scheme": "alibi", "num_heads": 32, "form": "key"}, bias=np.broadcast_to(bias, (32, 1, 40)).copy()))[0] == "as_believed"


RIGHT = {"scheme": "rope", "head_dim": 128, "base": 5e5, "scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
                                                                      "original_max_position_embeddings": 8192}}


def scaled(change):
    return {**RIGHT, "scaling": {**RIGHT["scaling"], **change}}


def test_keys_that_are_rotated_again_are_right(server):
    """A cache that moves: each key was rotated at its old position, then by the difference. Every row has the roundings of both
    angles, which is more than its own position loses; so none is alone."""
    rng, r, at = np.random.default_rng(7), 64, np.arange(128)
    old = np.sort(rng.choice(1000, 128, replace=False))
    w = F(5e5) ** (-np.arange(0, r, 2, dtype=F) / F(r))

    def turned(x, positions):
        return rotary.at_angles(x, positions.astype(F)[:, None] * w).astype(F)

    k = rng.standard_normal((1, 2, 128, r)).astype(F)
    twice, belief = turned(turned(k, old), at - old), {"scheme": "rope", "head_dim": r, "base": 5e5, "layout": "half"}
    assert passes(ask(server, belief, k=k, k_out=twice))
    twice[0, 1, 37, 5] += F(0.01)
    assert not passes(ask(server, belief, k=k, k_out=twice))


@pytest.mark.parametrize("wrong", [{**RIGHT, "base": 5e5 * (1 + 1e-5)}, {**RIGHT, "base": 5e5 * (1 - 2e-5)}, scaled({"factor": 8.01}), scaled({"low_freq_factor": 1.01}),
                                   scaled({"high_freq_factor": 3.99}), {**RIGHT, "offset": 7937}, {**RIGHT, "direction": -1},
                                   {**RIGHT, "scaling": None}, {**RIGHT, "layout": "half", "form": "expanded"}])
@pytest.mark.parametrize("arith", ["exact", "float32"])
def test_a_wrong_belief_is_no_rounding(server, wrong, arith):
    """256 rows from 7936 on, as float32 code computes them, and beliefs that are off by a little."""
    w, _ = evidence.frequencies(json.dumps(RIGHT["scaling"]), 5e5, 128, 8192)
    angle = np.arange(7936, 8192, dtype="f4")[:, None] * w.astype("f4")
    tables = {"cos": np.cos(angle), "sin": np.sin(angle)}
    if "form" in wrong:
        tables = {name: np.repeat(a, 2, -1) for name, a in tables.items()}
    wrong = {name: value for name, value in {"offset": 7936, **wrong, "arith": arith}.items() if value is not None}
    right = {**RIGHT, "offset": 7936, "arith": arith, **({"form": "expanded", "layout": "interleaved"} if "form" in wrong else {})}
    assert passes(ask(server, right, **tables))
    assert not passes(ask(server, wrong, **tables))


# ---- What is said of it -------------------------------------------------------------------------------------------------------


def one(answer, code):
    found = [finding for finding in answer["findings"] if finding["code"] == code]
    assert len(found) == 1, answer["findings"]
    return found[0]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_sentence_of_float32_angles(server, lang):
    """The largest difference, its row, and the field whose belief fits: which then is no finding any more."""
    angle = by_pow(64, range(8000, 8064), 5e5)
    tables, belief = {"cos": np.cos(angle), "sin": np.sin(angle)}, {"scheme": "rope", "head_dim": 64, "base": 5e5, "offset": 8000}
    answer = ask(server, {**belief, "lang": lang}, **tables)
    finding = one(answer, "angles_f32")
    exact = np.arange(8000, 8064)[:, None] * evidence.powers(5e5, 64)
    error = np.maximum(*(np.abs(tables[name] - f(exact).astype("f4")) for name, f in (("cos", np.cos), ("sin", np.sin))))
    assert finding["pointer"] == "/arith" and (finding["found"], finding["believed"]) == ("float32", "exact")
    assert finding["row"] == error.max(1).argmax() and abs(finding["largest"] - error.max()) <= U
    for text in (finding["detail"], finding["detail_zh"]):
        assert f"{finding['largest']:.6g}" in text and str(finding["row"]) in text and '"arith":"float32"' in text
    assert (finding["detail"] == finding["detail_zh"]) == (lang == "zh")
    believed = ask(server, {**belief, "arith": "float32"}, **tables)
    assert codes_of(believed) in (["as_believed"], ["angles_f32"])


def test_posencs_own_float32_is_exact(server):
    """Of every kind of waves; a recipe of other steps beside it is rounding, whose sentence says so."""
    belief = {"base": 5e5, "offset": 100000, "arith": "float32"}
    fields = {"scheme": "rope", "head_dim": 64, "len": 40, **belief}
    own = server.ask("/encode", **fields, outputs=["cos", "sin"], format="npz")
    arrays = np.load(io.BytesIO(own.body))
    answer = ask(server, fields, cos=arrays["cos"], sin=arrays["sin"])
    assert codes_of(answer) == ["as_believed"] and answer["candidates"][0]["verdict"] == "exact"
    q = np.random.default_rng(3).standard_normal((2, 40, 64)).astype("f4")
    answer = ask(server, {"scheme": "rope", **belief}, q=q, q_out=rotary.rotate(q, arrays["cos"], arrays["sin"]).astype("f4"))
    assert codes_of(answer) == ["as_believed"] and answer["candidates"][0]["verdict"] == "exact"
    angle = by_exp(64, range(100000, 100040), 5e5)
    answer = ask(server, fields, cos=np.cos(angle), sin=np.sin(angle))
    finding = one(answer, "angles_f32")
    assert finding["pointer"] == "/cos" and "other steps" in finding["detail"] and answer["candidates"][0]["verdict"] == "rounding"


def test_float32_angles_are_named_once(server):
    """As a mistake beside another, and not as a remark again."""
    angle = by_pow(64, range(60000, 60064), 1e4)
    answer = ask(server, {"scheme": "rope", "head_dim": 64, "offset": 59990, "direction": -1}, cos=np.cos(angle), sin=np.sin(angle))
    assert one(answer, "angles_f32") and "offset_other" in codes_of(answer)


def test_a_mistake_is_named_before_float32_angles(server):
    """The first finding is what somebody reads, and float32 angles are no mistake."""
    w = np.exp(-np.log(1e4) * np.arange(32) / 31).astype("f4")
    angle = np.arange(3000, 3200, dtype="f4")[:, None] * w
    answer = ask(server, {"scheme": "sinusoidal", "layout": "half", "freq_shift": 0, "offset": 3000}, encoding=np.concatenate([np.sin(angle), np.cos(angle)], 1))
    assert codes_of(answer)[:2] == ["freq_shift_other", "angles_f32"], answer["findings"]


def test_nearly_what_is_believed(server):
    """A few wrong numbers: not a list of what was tried, but where the largest error is."""
    angle = np.arange(64)[:, None] * evidence.powers(1e4, 64)
    cos = np.cos(angle).astype("f4")
    cos[17, 5] += F(0.02)
    cos[30, 6] -= F(0.01)
    finding = one(ask(server, {"scheme": "rope", "head_dim": 64}, cos=cos, sin=np.sin(angle).astype("f4")), "unexplained")
    assert "nearly what you believe" in finding["detail"] and "cos[17, 5]" in finding["detail"] and "0.02" in finding["detail"]
    assert finding["worst"]["index"] == [17, 5] and "cos[17, 5]" in finding["detail_zh"]


@pytest.mark.parametrize("steps", [16, 64, 256, 1024])
def test_numbers_of_few_steps_are_no_scheme_of_another_size(server, steps):
    """Numbers in fixed point are float16's too; the tolerance of xPos in 16 bits is not that of the largest number."""
    q = np.random.default_rng(7).normal(size=(2, 4, 96, 64)).astype("f4")
    belief = {"scheme": "rope", "head_dim": 64, "layout": "half"}
    answer = ask(server, belief, q=q, q_out=(np.round(rotary.at_positions(q, range(96), layout="half") * steps) / steps).astype("f4"))
    assert not answer["explained"] and codes_of(answer) == ["unexplained"]


def test_four_bits_are_no_single_numbers(server):
    """Every number of float8 (e4m3) is off: the sentence has the farthest, and not one that is right."""
    q = np.random.default_rng(7).normal(size=(2, 4, 96, 64)).astype("f4")
    right = rotary.at_positions(q, range(96), layout="half")
    step = 2.0 ** (np.floor(np.log2(np.maximum(abs(right), 2.0**-6))) - 3)
    said = one(ask(server, {"scheme": "rope", "head_dim": 64, "layout": "half"}, q=q, q_out=(np.round(right / step) * step).astype("f4")), "unexplained")
    assert "single numbers" not in said["detail"] and abs(said["worst"]["found"] - said["worst"]["expected"]) > 0.1, said


# ---- The believed numbers, changed as a whole -----------------------------------------------------------------------------------


def test_turns_are_exact(server):
    """Positions in turns: a factor that is cut to six digits would leave an error, and call right angles float32's."""
    angle = 2 * np.pi * np.arange(96)[:, None] * evidence.powers(1e4, 64)
    answer = ask(server, {"scheme": "rope", "head_dim": 64, "form": "pairs"}, cos=np.cos(angle).astype("f4"), sin=np.sin(angle).astype("f4"))
    assert codes_of(answer) == ["positions_scaled"] and answer["findings"][0]["found"] == 2 * np.pi
