"""The member `arithmetic` of /diagnose: tables that NumPy computes in the steps of each recipe are read as these steps; and the two
mistakes of few bits, angles_f16 and angles_tf32."""
import numpy as np
import pytest

from believed import inline, rounded
from diagnosing import ask, codes_of, diagnose

R, BASE, ROWS = 128, 500000.0, 1024
F = np.float32


def bits11(x):
    fraction, exponent = np.frexp(np.asarray(x, "f8"))
    return np.ldexp(np.rint(np.ldexp(fraction, 11)), exponent - 11)


def torch_ladder():
    """pow in double, rounded to f32: what a correct powf gives."""
    e = np.arange(0, R, 2).astype(F) / F(R)
    b = (BASE ** e.astype("f8")).astype(F)
    return b, F(1) / b


def angles(recipe, rows=ROWS):
    c, p = np.arange(0, R, 2), np.arange(rows)
    b, w = torch_ladder()
    w64 = 1 / BASE ** (c / R)
    f = p.astype(F)[:, None]
    if recipe == "f64":
        return p[:, None] * w64
    if recipe == "f32_torch":
        return f * w
    if recipe == "f32_cast":
        return f * w64.astype(F)
    if recipe == "f32_divide":
        return f / b
    if recipe == "f32_explog":
        exponent = c.astype(F) * F(F(-np.log(BASE) / R))
        return f * np.exp(exponent.astype("f8")).astype(F)
    if recipe == "f32_product":
        t, rows_ = F(BASE ** float(F(-2 / R))), [p.astype(F)]
        for _ in range(R // 2 - 1):
            rows_.append(rows_[-1] * t)
        return np.stack(rows_, 1)
    if recipe == "tf32":
        return bits11(p)[:, None].astype(F) * bits11(w).astype(F)
    if recipe == "f16_inv_freq":
        return f * w.astype("f2").astype(F)
    if recipe == "f16":
        return (p.astype("f2")[:, None] * w.astype("f2")).astype("f8")
    raise KeyError(recipe)


def tables(recipe, rows=ROWS):
    a = angles(recipe, rows).astype("f8")
    dtype = "f2" if recipe == "f16" else "f4"
    return {name: f(a).astype("f4").astype(dtype) for name, f in (("cos", np.cos), ("sin", np.sin))}


BELIEF = {"scheme": "rope", "head_dim": R, "base": BASE, "len": ROWS}


@pytest.mark.parametrize("recipe, chain", [("f64", "f64"), ("f32_torch", "f32"), ("f32_cast", "f32"), ("f32_divide", "f32_divide"),
                                           ("f32_explog", "f32_explog"), ("f32_product", "f32_product")])
def test_right_code(server, recipe, chain):
    answer = ask(server, BELIEF, **tables(recipe))
    found = answer["arithmetic"]
    assert answer["explained"] and found["angles"] == chain, found
    assert found["numbers"] == 1 << 16 and 60000 < found["informative"] <= found["numbers"]
    first = {one["recipe"]: one for one in found["likely"]}[recipe]
    assert first["bits"] > 0.99 and first["near"] == 1.0, found
    assert found["recipe"] in (recipe, None) and found["detail"] != found["detail_zh"]
    assert found["likely"] == sorted(found["likely"], key=lambda one: (-one["near"], -one["bits"]))


def test_bit_for_bit(server):
    """Cosines that are rounded once from the recipe's own angles are named."""
    for recipe in ("f64", "f32_product", "f32_divide"):
        assert ask(server, BELIEF, **tables(recipe))["arithmetic"]["recipe"] == recipe


def test_other_evidence(server):
    b, w = torch_ladder()
    found = ask(server, {"scheme": "rope", "base": BASE}, inv_freq=w)["arithmetic"]
    assert found["numbers"] == R // 2 and found["likely"][0]["recipe"] in ("f32_torch", "f32_divide")
    found = ask(server, BELIEF, angles=angles("f32_torch"))["arithmetic"]  # a quotient is within a step of the product
    assert found["likely"][0]["recipe"] == "f32_torch" and found["likely"][0]["near"] == 1.0 and found["angles"] is None
    pairs = tables("f32_torch")
    encoding = np.stack([pairs["sin"], pairs["cos"]], -1).reshape(ROWS, R)
    found = ask(server, {"scheme": "sinusoidal", "dim": R, "base": BASE}, encoding=encoding)["arithmetic"]
    assert found["angles"] == "f32"


def test_null_where_nothing_shows(server):
    few = ask(server, {**BELIEF, "len": 1}, **{k: v[:1] for k, v in tables("f32_torch").items()})["arithmetic"]
    assert few["recipe"] is None and few["angles"] is None and few["informative"] == 0
    rng = np.random.default_rng(0)
    noise = {k: v + rng.normal(0, 1e-5, v.shape).astype("f4") for k, v in tables("f32_torch").items()}
    assert (ask(server, BELIEF, **noise)["arithmetic"] or {"recipe": None})["recipe"] is None
    q = rng.standard_normal((1, 1, 4, 8)).astype("f4")
    assert ask(server, {"scheme": "rope"}, q=q, q_out=q)["arithmetic"] is None


@pytest.mark.parametrize("recipe, code", [("tf32", "angles_tf32"), ("f16", "angles_f16")])
def test_few_bits_are_a_mistake(server, recipe, code):
    answer = ask(server, BELIEF, **tables(recipe))
    assert codes_of(answer)[0] == code, answer["findings"]
    assert answer["candidates"][0]["transforms"] == [{"name": "angles", "recipe": recipe}]
    assert recipe in [one["recipe"] for one in answer["arithmetic"]["likely"]]


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
    answer = diagnose(server, {"scheme": "rope", "head_dim": width, **BF16_BELIEFS[code], "cos": inline(cos), "sin": inline(sin)})
    assert codes_of(answer)[0] == (code or "angles_bf16") and "angles_bf16" in codes_of(answer), answer["findings"]
    assert answer["candidates"][0]["transforms"][0]["recipe"] == "bf16_divided"
