"""The analyses of frequencies: norms, wavelengths, decay, precision."""
import numpy as np

import truth.analysis_plans as plans
import truth.ggml as ggml
import truth.scaling as scalings
from truth.analysis_rows import ROUNDINGS, first_extreme, unless_noise

RECIPES = {  # roundings of w, p, the product, the result
    "f32": ("f32", "f32", "f32", "f32"),
    "f32_bf16": ("f32", "f32", "f32", "bf16"),
    "bf16_inv_freq": ("bf16", "f32", "f32", "f32"),
    "f16_inv_freq": ("f16", "f32", "f32", "f32"),
    "bf16": ("bf16", "bf16", "bf16", "bf16"),
}
RULES_OF_GGML = ("default", "linear", "yarn", "longrope")


def singular_values(plan, cos, sin):
    """[n, C, 2] of each pair's block; xpos scales queries up."""
    if plan.get("layout") == "vjepa2":
        # both members read a tiled table: member m of an axis' block has channel m mod C
        starts = np.cumsum([0, *plan.blocks[:-1]])
        first = np.concatenate([s + 2 * np.arange(n) % n for s, n in zip(starts, plan.blocks)])
        second = np.concatenate([s + (2 * np.arange(n) + 1) % n for s, n in zip(starts, plan.blocks)])
        blocks = np.stack([np.stack([cos[:, first], -sin[:, first]], -1), np.stack([sin[:, second], cos[:, second]], -1)], -2)
        return np.linalg.svd(blocks, compute_uv=False)
    return np.repeat(np.hypot(cos, sin)[..., None], 2, -1) * plan.scale()[..., None]


def norms(plan, ask):
    cos, sin = plan.tables()
    asked = ask.get("dtypes", ["f64", "f32", "f16", "bf16"])
    changed = {}
    for dtype in {"f64", *asked}:
        rounded = ROUNDINGS[dtype]
        changed[dtype] = np.abs(singular_values(plan, rounded(cos), rounded(sin)) - 1).max(-1)
    value, (row, pair) = first_extreme(changed["f64"], 1.0)
    return {"value": value, "witness": unless_noise(value, 1.0, {"row": row, "pair": pair}),
            "dtypes": {dtype: float(changed[dtype].max()) for dtype in asked}}, {}


def wavelengths(plan, ask):
    train_len = ask.get("train_len", plan.train_len)
    scaled, plain = plan.frequencies(), plan.frequencies(False)
    w, w0 = np.array([float(x) for x in scaled]), np.array([float(x) for x in plain])
    turns = train_len * w / (2 * np.pi)
    with np.errstate(divide="ignore"):
        wavelength = 2 * np.pi / w
    ratio = np.array([float(a / b) for a, b in zip(scaled, plain)])
    short = np.nonzero(turns < 1)[0]
    witness = {"pair": int(short[0]), "turns": turns[short[0]]} if len(short) else None
    return {"value": float((turns >= 1).mean()), "witness": witness, "train_len": train_len, "shortest": wavelength.min(),
            "longest": wavelength.max(), "attention_factor": plan.attention_factor, "kept": int((np.abs(ratio - 1) <= 1e-9).sum()),
            "slowest_ratio": ratio[w0.argmin()], "fastest_ratio": ratio[w0.argmax()]}, \
        {"wavelength": wavelength, "turns": turns, "ratio": ratio}


def decay(plan, ask):
    """RoFormer (arXiv 2104.09864), section 3.4.3."""
    cos, sin = plans.turned(np.arange(plan.n, dtype=float), plan.frequencies())
    sums = np.cumsum(cos + 1j * sin, 1)
    curve = np.abs(sums).mean(1)
    least, (at,) = first_extreme(curve, curve.max(), True)
    return {"value": curve[-1] / curve[0], "witness": {"distance": at, "value": least},
            "rises": int((np.diff(curve) > 1e-9 * curve[0]).sum())}, {"decay": curve}


# ---- precision -------------------------------------------------------------------------------------------------------------


def ggml_angles(plan):
    """None: ggml computes no such table."""
    rule, base = scalings.rule(plan.scaling), plan.get("base", 10000.0)
    are_integers = np.all(plan.positions == np.round(plan.positions)) and np.abs(plan.positions).max() < 2**31
    if plan.scheme != "rope" or "inv_freq" in plan.config or rule not in RULES_OF_GGML or not are_integers:
        return None
    s, divisors, ends = 1, plan.scaling.get("divisors"), None
    if rule == "longrope":
        divisors = plan.scaling["long_factor" if scalings.uses_long_list(plan.scaling, plan.seq_len) else "short_factor"]
    elif rule != "default" and not (rule == "linear" and scalings.convention(plan.scaling) == "tgi"):
        s = scalings.factor(plan.scaling)
    if rule == "yarn":
        ends = scalings.ramp_ends(plan.scaling, base, plan.width)
    return ggml.angles_f32(plan.width, base, plan.positions, s, divisors, ends,
                           plan.scaling.get("extrapolation_factor", 1)).astype(float)


def by_recipe(name, w, positions):
    """cos, sin [n, C] as the recipe has them."""
    for_w, for_p, for_product, for_result = (ROUNDINGS[dtype] for dtype in RECIPES[name])
    angle = for_product(for_p(positions)[:, None] * for_w(w))
    return for_result(np.cos(angle)), for_result(np.sin(angle))


def precision(plan, ask):
    frequencies = plan.frequencies()
    cos, sin = plans.turned(plan.positions, frequencies)
    w = np.array([float(x) for x in frequencies])
    found, curves = [], []
    chain = ggml_angles(plan)
    for name in ask.get("recipes", [*RECIPES] + ["ggml"] * (chain is not None)):
        if name == "ggml":
            c, s = (ROUNDINGS["f32"](turn(chain)) for turn in (np.cos, np.sin))
        else:
            c, s = by_recipe(name, w, plan.positions)
        error = np.maximum(np.abs(c - cos), np.abs(s - sin))
        worst, (row, pair) = first_extreme(error, 1.0)
        curve = error.max(1)
        same = np.all(c[1:] == c[:-1], 1) & np.all(s[1:] == s[:-1], 1)
        above = [{"error": e, "row": int(np.argmax(curve > e)) if (curve > e).any() else None} for e in (1e-4, 1e-3, 1e-2, 1e-1)]
        found.append({"recipe": name, "worst": worst, "witness": unless_noise(worst, 1.0, {"row": row, "pair": pair}),
                      "repeats": int(same.sum()), "above": above})
        curves.append(curve)
    return {"value": found[0]["worst"], "witness": found[0]["witness"], "recipes": found}, {"precision": np.array(curves)}
