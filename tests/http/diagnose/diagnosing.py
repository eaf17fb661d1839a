"""Questions to /diagnose, and its answers taken at their word: a candidate is posted to /encode or /rotate, its transforms are applied
here, and the tensor must come back."""
import json

import numpy as np

import safetensors_reader
from tensors import from_safetensors, multipart, npy
from wrong_rotary import RECIPES, turned
from wrong_scaling import factor_of
from wrong_sinusoid import Sinusoid
from wrong_tensors import exact_allows, inline, rounded, unit

NAMES = {"f32": "angles_f32", "bf16_inv_freq": "inv_freq_bf16", "f16_inv_freq": "inv_freq_f16", "bf16": "angles_bf16"}
NO_FAULTS = {"as_believed", "identified", "undecided", "unexplained", "table_dtype", "angles_f32", "coordinates_f32"}
SEQUENCE = {"len", "offset", "positions", "grid", "lens", "segments", "tokens", "q_len", "k_len", "q_offset", "q_positions", "k_positions"}


def diagnose(server, body, headers=None):
    response = server.post("/diagnose", body, headers)
    assert response.status == 200, (str(body)[:600], response)
    return response.json()


SEQUENCES = [{"len": 6}, {"grid": [2, 3]}, {"grid": [2, 1, 3]}]  # some preset or scheme takes only the second, some only the third


def beliefs(server):
    """Every scheme by its name, and a preset for each configuration that presets have."""
    presets = {json.dumps(preset["config"], sort_keys=True): preset["name"] for preset in server.get("/presets").json()["presets"]}
    return [{"scheme": s["name"]} for s in server.get("/schemes").json()["schemes"]] + [{"preset": name} for name in presets.values()]


def ask(server, case, **more):
    return diagnose(server, {**case.body(), **more})


def codes_of(answer):
    return [finding["code"] for finding in answer["findings"]]


def finding(answer, code):
    return next(f for f in answer["findings"] if f["code"] == code)


def named(answer):
    """Faults that the findings name."""
    return {finding["code"] for finding in answer["findings"]} - NO_FAULTS


# ---- A candidate's tensor -----------------------------------------------------------------------------------------------------


def fetch(server, path, fields, outputs):
    response = server.ask(path, **fields, outputs=outputs, format="safetensors", dtype="f64")
    return {name: np.asarray(a) for name, a in from_safetensors(response).items()}


def reproduce(server, candidate, tensors):
    """{name: values} of a candidate for the tensors that were sent, in float64."""
    fields = {**candidate["config"], **candidate["sequence"]}
    transforms = {t["name"]: t for t in candidate["transforms"]}
    sent = {name: tensor for name, tensor in tensors.items() if name in ("q", "table")}
    rotary = "cos" in tensors or "q_out" in tensors
    if rotary and "axes" in transforms:
        fields = on_other_axes(server, fields, transforms["axes"]["order"])
    out = computed(server, fields, transforms, tensors, sent)
    for transform in candidate["transforms"]:
        if transform["name"] in AFTER and not (rotary and transform["name"] == "axes"):
            out = {name: AFTER[transform["name"]](a, {**fields, **transform}) for name, a in out.items()}
    return out


def computed(server, fields, transforms, tensors, sent):
    """Before the transforms that change a finished tensor."""
    if "q_out" in tensors:
        if {"sin_cos_swapped", "angles"} & set(transforms):
            return {"q_out": rotated_here(server, fields, transforms, sent["q"].values)}
        fields = {**fields, "q": inline(sent["q"]._replace(dtype="f64"))}
        fields.pop("form", None)
        return {"q_out": fetch(server, "/rotate", fields, ["q"])["q"]}
    if "cos" in tensors:
        cos, sin = tables_here(server, fields, transforms, fields.get("form", "pairs"))
        return {"cos": cos, "sin": sin}
    if "encoding" in tensors:
        ways = {"exponent_per_column", "exponent_doubled", "ladder_from_one", "sine_only", "angles"} & set(transforms)
        return {"encoding": sinusoid_here(fields, transforms, ways)} if ways else fetch(server, "/encode", fields, ["encoding"])
    fields = {**fields, **{name: inline(t) for name, t in sent.items()}}
    if "position_ids" in tensors:
        ids = fetch(server, "/encode", fields, ["positions"])["positions"]
        return {"position_ids": ids[0] if tensors["position_ids"].values.ndim == 1 else ids}
    if "buckets" in tensors:
        output = "buckets" if fields["scheme"] == "t5" else "index"
        return {"buckets": fetch(server, "/encode", fields, [output])[output]}
    return fetch(server, "/encode", fields, ["bias"])


MAKE_IDS = {"position_style", "spatial_merge_size", "tokens_per_second", "position_id_per_seconds", "seconds_per_chunk", "temporal_scale"}


def on_other_axes(server, fields, order):
    """The positions written out, their axes in another order."""
    at = fetch(server, "/encode", fields, ["positions"])["positions"][order]
    return {**{name: value for name, value in fields.items() if name not in SEQUENCE | MAKE_IDS}, "positions": at.tolist()}


def tables_here(server, fields, transforms, form):
    """cos, sin, exchanged or of another recipe where a transform says so."""
    if "angles" in transforms:
        cos, sin = recipe_tables(server, fields, transforms["angles"]["recipe"], form)
    else:
        parts = fetch(server, "/encode", {**fields, "form": form}, ["cos", "sin"])
        cos, sin = parts["cos"], parts["sin"]
    return (sin, cos) if "sin_cos_swapped" in transforms else (cos, sin)


def code_of(recipe):
    """Frequencies that are divided in 16 bits are the same mistake as rounded ones."""
    return NAMES[recipe.removesuffix("_divided")]


def divided(w, base):
    """1 / (base ** e) in bf16, base too."""
    return 1 / rounded(rounded(np.float64(base), "bf16") ** (-np.log(w) / np.log(base)), "bf16")


def recipe_tables(server, fields, recipe, form):
    parts = fetch(server, "/encode", {**fields, "form": "pairs"}, ["inv_freq", "positions"])
    assert parts["positions"].shape[0] == 1
    of_w, of_p, of_product, of_result = RECIPES[code_of(recipe)]
    if recipe.endswith("_divided"):
        parts["inv_freq"] = divided(parts["inv_freq"], fields["base"])
    angle = of_product(of_p(parts["positions"][0])[:, None] * of_w(parts["inv_freq"])).astype(float) * fields.get("direction", 1)
    factor = factor_of(fields.get("scaling", {})) if fields.get("attention_factor") is None else fields["attention_factor"]
    pairs = [of_result(f(angle)).astype(float) * factor for f in (np.cos, np.sin)]
    if form == "pairs":
        return pairs
    return [np.repeat(x, 2, -1) if fields["layout"] == "interleaved" else np.tile(x, 2) for x in pairs]


def rotated_here(server, fields, transforms, q):
    cos, sin = tables_here(server, fields, transforms, "pairs")
    out, start = np.array(q, float), fields.get("rotary_offset", 0)
    inside = slice(start, start + 2 * cos.shape[-1])
    blocks = [cos.shape[-1] // 2] * 2 if fields["layout"] == "half_per_axis" else [cos.shape[-1]]
    out[..., inside] = turned(out[..., inside], cos, sin, fields["layout"], blocks)
    return out


def sinusoid_here(fields, transforms, ways):
    recipe = transforms["angles"]["recipe"] if "angles" in transforms else None
    way = next(iter(ways - {"angles"}), "plain")
    at = line(fields)
    model = Sinusoid("f64", at[None], {}, fields["dim"], fields["base"], fields["layout"], fields.get("freq_shift", 0),
                     fields.get("odd", "paper"), fields.get("flip_sin_to_cos", False), way=way, direction=1 if fields.get("angle_scale", 1) > 0 else -1, recipe=recipe and code_of(recipe))
    return model.values(None)["encoding"].astype(float)


def line(fields):
    """Positions of a sequence on one axis."""
    offset = fields.get("offset") or 0
    if fields.get("positions") is not None:
        return np.array(fields["positions"], float).ravel()
    if fields.get("lens"):
        return np.concatenate([offset + np.arange(n) for n in fields["lens"]]).astype(float)
    return offset + np.arange(fields["len"], dtype=float)


def zeroed(a, transform):
    a = a.copy()
    a[..., transform["row"], :] = 0
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
    "zero_row": zeroed,
    "axes": axes,
}


def unlike(server, candidate, tensors, tolerance):
    """None, or why a candidate does not give the tensors back; tolerance(name, values, u): what the rounding verdict allows."""
    values = reproduce(server, candidate, tensors)
    for name, a in values.items():
        tensor = tensors[name]
        if a.shape != tensor.values.shape:
            return f"{name}: shape {a.shape}, not {tensor.values.shape}"
        a = rounded(a, tensor.dtype)
        finite = np.isfinite(a)
        if not np.array_equal(a[~finite], tensor.values[~finite], equal_nan=True):
            return f"{name}: other infinities"
        allowed = tolerance(name, values, unit(tensor.dtype))
        if candidate["verdict"] == "exact":
            allowed = np.minimum(allowed, exact_allows(name, a, tensor.dtype, values))
        with np.errstate(invalid="ignore"):
            wrong = np.abs(a - tensor.values) > np.where(finite, allowed, np.inf)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            return f"{name}{list(at)}: {a[at]}, not {tensor.values[at]}"
    return None


# ---- The ways in which tensors come -------------------------------------------------------------------------------------------

NUMPY = {"f32": "f4", "f64": "f8", "f16": "f2", "i64": "i8"}


def array(tensor):
    return tensor.values.astype(NUMPY[tensor.dtype])


def as_files(case):
    """multipart: the belief as JSON, a .npy part for each tensor."""
    return multipart(request=json.dumps(case.belief), **{name: npy(array(t)) for name, t in case.tensors.items()})


def as_safetensors(case):
    bf16 = [name for name, t in case.tensors.items() if t.dtype == "bf16"]
    arrays = {name: t.values.astype("f4") if t.dtype == "bf16" else array(t) for name, t in case.tensors.items()}
    body = safetensors_reader.dumps(arrays, {"request": json.dumps(case.belief)}, bf16)
    return body, {"Content-Type": "application/vnd.safetensors"}


