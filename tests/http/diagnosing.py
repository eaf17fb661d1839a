"""Questions to /diagnose, and its answers taken at their word: a candidate is posted to /encode or /rotate, its transforms are applied
here, and the tensor must come back."""
import json

import numpy as np

import truth.absolute
import truth.rotary
import truth.scaling
from believed import inline, rounded
from tensors import from_safetensors, multipart, npy
from truth import evidence

NO_FAULTS = {"as_believed", "identified", "undecided", "unexplained", "table_dtype", "angles_f32", "coordinates_f32"}
SEQUENCE = {"len", "offset", "positions", "grid", "lens", "segments", "tokens", "q_len", "k_len", "q_offset", "q_positions", "k_positions"}
SEQUENCES = [{"len": 6}, {"grid": [2, 3]}, {"grid": [2, 1, 3]}]  # some preset or scheme takes only the second, some only the third


def diagnose(server, body, headers=None):
    response = server.post("/diagnose", body, headers)
    assert response.status == 200, (str(body)[:600], response)
    return response.json()


def ask(server, fields, path="/diagnose", **arrays):
    """The tensors as .npy files."""
    response = server.post(path, *multipart(request=json.dumps(fields), **{name: npy(a) for name, a in arrays.items()}))
    assert response.status == 200, response
    return response.json()


def beliefs(server):
    """Every scheme by its name, and a preset for each configuration that presets have."""
    presets = {json.dumps(preset["config"], sort_keys=True): preset["name"] for preset in server.get("/presets").json()["presets"]}
    return [{"scheme": s["name"]} for s in server.get("/schemes").json()["schemes"]] + [{"preset": name} for name in presets.values()]


def codes_of(answer):
    return [finding["code"] for finding in answer["findings"]]


def finding(answer, code):
    return next(f for f in answer["findings"] if f["code"] == code)


def named(answer):
    """Faults that the findings name."""
    return set(codes_of(answer)) - NO_FAULTS


# ---- Angles in few bits, and ladders of no configuration ------------------------------------------------------------------------


def narrow(dtype):
    return lambda x: rounded(np.asarray(x, float), dtype)


def plain(x):
    return np.asarray(x, float)


RECIPES = {  # how w, the position, their product and the result are rounded
    "angles_f32": (narrow("f32"),) * 4,
    "inv_freq_bf16": (narrow("bf16"), narrow("f32"), narrow("f32"), narrow("f32")),
    "inv_freq_f16": (narrow("f16"), narrow("f32"), narrow("f32"), narrow("f32")),
    "angles_bf16": (narrow("bf16"),) * 4,
    "angles_tf32": (plain,) * 4,
    "angles_f16": (narrow("f16"),) * 4,
}


def divided(w, base):
    """1 / (base ** e) in bf16, base too."""
    return 1 / rounded(rounded(np.float64(base), "bf16") ** (-np.log(w) / np.log(base)), "bf16")


def turns(recipe, w, at, factor=1.0, direction=1):
    """cos and sin [n, C] in the steps of a recipe."""
    of_w, of_p, of_product, of_result = RECIPES[recipe]
    angle = of_product(of_p(at)[:, None] * of_w(w)) * direction
    return [of_result(f(angle)) * factor for f in (np.cos, np.sin)]


NO_ROTATIONS = {"imaginary_lost", "sign_lost", "table_layout_other"}


def no_rotation(way, q, cos, sin, layout):
    """Pairs a, b that become a·cos, b·cos; a·cos + b·sin, b·cos + a·sin; or have the columns of the other layout's expanded table."""
    width, j = q.shape[-1], np.arange(q.shape[-1])
    halves, neighbours = j % (width // 2), j // 2
    columns = halves if (layout == "half") != (way == "table_layout_other") else neighbours
    partner = (j + width // 2) % width if layout == "half" else j ^ 1
    sign = {"imaginary_lost": 0, "sign_lost": 1, "table_layout_other": np.where(j < partner, -1, 1)}[way]
    return q * cos[:, columns] + sign * q[..., partner] * sin[:, columns]


def misread(columns, way, base):
    """Columns of a sinusoid whose exponents, or functions, are those of a mistake."""
    powers = {"exponent_per_column": 1, "exponent_doubled": 2}
    one = columns[0]._replace
    if way in powers:
        return [c._replace(frequency=truth.frequency(base, powers[way] * j, len(columns))) for j, c in enumerate(columns)]
    if way == "ladder_from_one":
        step = truth.frequency(base, 2, len(columns))
        return [c._replace(frequency=c.frequency * step) for c in columns]
    return [one(function="sin", frequency=c.frequency) for c in columns]


# ---- A candidate's tensor -----------------------------------------------------------------------------------------------------


def fetch(server, path, fields, outputs):
    response = server.ask(path, **fields, outputs=outputs, format="safetensors", dtype="f64")
    return {name: np.asarray(a) for name, a in from_safetensors(response).items()}


def reproduce(server, candidate, tensors):
    """{name: values} of a candidate for the tensors that were sent, in float64."""
    fields = {**candidate["config"], **candidate["sequence"]}
    transforms = {t["name"]: t for t in candidate["transforms"]}
    rotary = "cos" in tensors or "q_out" in tensors
    if rotary and "axes" in transforms:
        at = fetch(server, "/encode", fields, ["positions"])["positions"][transforms["axes"]["order"]]
        fields = {**{name: value for name, value in fields.items() if name not in SEQUENCE | MAKE_IDS}, "positions": at.tolist()}
    out = computed(server, fields, transforms, tensors)
    for transform in candidate["transforms"]:
        if transform["name"] in AFTER and not (rotary and transform["name"] == "axes"):
            out = {name: AFTER[transform["name"]](a, {**fields, **transform}) for name, a in out.items()}
    return out


MAKE_IDS = {"position_style", "spatial_merge_size", "tokens_per_second", "position_id_per_seconds", "seconds_per_chunk", "temporal_scale"}
WAYS = {"exponent_per_column", "exponent_doubled", "ladder_from_one", "sine_only", "angles"}


def computed(server, fields, transforms, tensors):
    """Before the transforms that change a finished tensor."""
    inputs = {name: inline(tensors[name], "f64") for name in ("q", "table", "w1", "b1", "w2", "b2") if name in tensors}
    if "q_out" in tensors:
        for way in NO_ROTATIONS & set(transforms):
            return {"q_out": no_rotation(way, tensors["q"], *tables_here(server, fields, transforms, "pairs"), fields["layout"])}
        if {"sin_cos_swapped", "angles"} & set(transforms):
            cos, sin = tables_here(server, fields, transforms, "pairs")
            return {"q_out": truth.rotary.rotate(tensors["q"], cos, sin, fields["layout"], [cos.shape[-1]], fields.get("rotary_offset", 0))}
        fields = {name: value for name, value in fields.items() if name != "form"}
        return {"q_out": fetch(server, "/rotate", {**fields, **inputs}, ["q"])["q"]}
    if "cos" in tensors:
        cos, sin = tables_here(server, fields, transforms, fields.get("form", "pairs"))
        return {"cos": cos, "sin": 0 * sin if "imaginary_lost" in transforms else sin}
    if "encoding" in tensors:
        ways = WAYS & set(transforms)
        return {"encoding": sinusoid_here(fields, transforms, ways)} if ways else fetch(server, "/encode", {**fields, **inputs}, ["encoding"])
    if "position_ids" in tensors:
        ids = fetch(server, "/encode", fields, ["positions"])["positions"]
        return {"position_ids": ids[0] if tensors["position_ids"].ndim == 1 else ids}
    if "buckets" in tensors:
        output = "buckets" if fields["scheme"] == "t5" else "index"
        return {"buckets": fetch(server, "/encode", fields, [output])[output]}
    return fetch(server, "/encode", {**fields, **inputs}, ["bias"])


def tables_here(server, fields, transforms, form):
    """cos, sin, exchanged or of another recipe where a transform says so."""
    parts = fetch(server, "/encode", {**fields, "form": "pairs" if "angles" in transforms else form}, ["cos", "sin", "inv_freq", "positions"])
    cos, sin = parts["cos"], parts["sin"]
    if "angles" in transforms:
        code, w, at = code_of(transforms["angles"]["recipe"]), parts["inv_freq"], parts["positions"][0]
        w = divided(w, fields["base"]) if transforms["angles"]["recipe"].endswith("_divided") else w
        factor = fields.get("attention_factor") or float(truth.scaling.attention_factor(fields.get("scaling", {}), len(at)))
        cos, sin = turns(code, w, at, factor, fields.get("direction", 1))
        if form != "pairs":
            cos, sin = (evidence.spread(fields, x) for x in (cos, sin))
    return (sin, cos) if "sin_cos_swapped" in transforms else (cos, sin)


def code_of(recipe):
    """Frequencies that are divided in 16 bits are the same mistake as rounded ones."""
    names = {"f32": "angles_f32", "bf16_inv_freq": "inv_freq_bf16", "f16_inv_freq": "inv_freq_f16", "bf16": "angles_bf16"}
    return names[recipe.removesuffix("_divided")]


def sinusoid_here(fields, transforms, ways):
    columns, rows = evidence.columns(fields, fields.get("len"), fields["dim"])
    for way in ways - {"angles"}:
        columns = misread(columns, way, fields["base"])
    if "angles" not in ways:
        return truth.absolute.table(columns, rows)
    return by_recipe(columns, rows, code_of(transforms["angles"]["recipe"]))


def by_recipe(columns, rows, code):
    """[n, dim], a column at a time."""
    parts = [turns(code, [float(c.frequency)], rows[:, 0])[c.function == "sin"] for c in columns]
    return np.concatenate(parts, -1)


def zeroed(a, transform):
    """Rows of positions, of the batch and of heads: the axes before the last that are longer than 1."""
    a, named = a.copy(), iter([transform[name] for name in ("batch_rows", "heads", "rows") if transform[name] is not None])
    at = [np.arange(n) if n == 1 else np.concatenate([np.arange(i, j + 1) for i, j in next(named)]) for n in a.shape[:-1]]
    a[np.ix_(*at)] = 0
    return a


def axes(a, transform):
    """Rows of ids; over a grid, whose last axis is fastest, the axes of the rows."""
    if not transform.get("grid"):
        return a[transform["order"]]
    grid = transform["grid"]
    return a.reshape(*grid, -1).transpose(*transform["order"], len(grid)).reshape(a.shape)


AFTER = {
    "negated": lambda a, t: np.where(np.isfinite(a), -a, a),
    "scaled": lambda a, t: np.where(np.isfinite(a), a * t["factor"], a),
    "transposed": lambda a, t: a.swapaxes(-1, -2),
    "mask_value": lambda a, t: np.where(np.isneginf(a), t["value"], a),
    "zero_rows": zeroed,
    "axes": axes,
}


def unlike(server, candidate, tensors, dtype, may):
    """None, or why a candidate does not give the tensors back; may: {name: what each number may be off by}."""
    for name, a in reproduce(server, candidate, tensors).items():
        found, unit = tensors[name], evidence.UNIT.get(dtype, 0)
        if a.shape != found.shape:
            return f"{name}: shape {a.shape}, not {found.shape}"
        finite = np.isfinite(found)
        if not np.array_equal(a[~finite], found[~finite], equal_nan=True):
            return f"{name}: other infinities"
        most, is_exact = np.abs(found[finite]).max(initial=0), candidate["verdict"] == "exact"
        step = 12 * unit * most if name == "q_out" else 4 * unit * (np.abs(found[finite]) + 2.0**-13 if is_exact else most)
        allowed = step if is_exact else step + np.broadcast_to(may[name], found.shape)[finite]
        error = np.abs(a[finite] - found[finite])
        if (error > allowed).any():
            return f"{name}: {error.max()}"
    return None


# ---- The form of an answer ----------------------------------------------------------------------------------------------------

FOUR = {"max_error", "max_ulp", "equal", "first_bad"}
FITS = ("exact", "rounding")


def is_chinese(text):
    return any("一" <= c <= "鿿" for c in text)


def check_form(answer):
    assert {"explained", "belief", "candidates", "findings", "undecided", "ruled_out", "searched"} <= set(answer)
    assert 1 <= answer["searched"] <= 20000 and answer["explained"] <= len(answer["candidates"]) <= 5
    assert answer["belief"] is None or FOUR <= set(answer["belief"])
    for candidate in answer["candidates"]:
        assert {"config", "sequence", "transforms", "codes", "presets", "verdict"} | FOUR <= set(candidate)
        assert candidate["verdict"] in ("exact", "rounding", "near", "none") and "scheme" in candidate["config"]
        assert all("name" in t for t in candidate["transforms"]) and len(candidate["also"]) <= 8
        for other in candidate["also"]:
            assert list(other) == ["codes", "everywhere", "detail", "detail_zh", "config", "sequence", "transforms"]
            assert other["detail"] and other["detail_zh"] and (other["codes"], other["config"]) != (candidate["codes"], candidate["config"])
    assert answer["explained"] == any(c["verdict"] in FITS for c in answer["candidates"])
    check_order(answer["candidates"])
    for found in answer["findings"]:
        assert {"code", "pointer", "detail", "detail_zh", "found", "believed"} <= set(found), found
        assert found["detail"].strip() and is_chinese(found["detail_zh"]) and not is_chinese(found["detail"]), found
        assert not any(hole in found["detail"] + found["detail_zh"] for hole in ("null", "{", "}", " -.", "  ")), found
    if answer["explained"]:
        assert set(answer["candidates"][0]["codes"]) <= set(codes_of(answer))


def check_order(candidates):
    """What fits, near, none; then what costs less, three for a list that was fitted; then exact before rounding. Slopes may be a known
    list or a fitted one: left out."""
    fit = {"exact": 0, "rounding": 0, "near": 1, "none": 2}
    cost = lambda codes: sum(3 if code in ("positions_other", "inv_freq_other") else 1 for code in codes)
    keys = [(fit[c["verdict"]], cost(c["codes"]), c["verdict"] == "rounding") for c in candidates if "slopes_other" not in c["codes"]]
    assert keys == sorted(keys), [(c["verdict"], c["codes"]) for c in candidates]
