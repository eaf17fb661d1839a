"""The wrong beliefs that a porter could have of a row's tensors: (the mistake in words, the belief's fields, the codes that name it).
Only those that float32 can tell from the right belief are asked; see evidence.apart."""
import truth
from truth import evidence

LLAMA3 = {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}
OF_STYLES = ("style", "normalize", "layout", "temperature", "axes_dim", "axis_order", "angle_scale", "freq_shift", "flip_sin_to_cos")
LISTED = (1.5, 2, 4, 8, 16, 32, 40)  # factors that the diagnosis tries


def without(right, *names):
    return {name: value for name, value in right.items() if name not in names}


def mistakes(right, arrays):
    """All of them, the likely ones first."""
    f = evidence.resolved(right)
    if "position_ids" in arrays:
        return [(words, belief, sorted(codes)) for words, belief, codes in ids(f)]
    if {"scores", "probs"} & set(arrays):
        return [(words, belief, sorted(codes)) for words, belief, codes in maps(f, arrays)]
    if "attention_mask" in arrays:
        return [(words, belief, sorted(codes)) for words, belief, codes in padded(f)]
    kinds = {"rope": rotary, "xpos": rotary, "sinusoidal": sinusoid, "alibi": alibi, "t5": t5, "deberta": deberta, "fourier": fourier}
    return [(words, belief, sorted(codes)) for words, belief, codes in kinds[f["scheme"]](f, arrays)]


def maps(f, arrays):
    d = arrays["q"].shape[-1]
    yield "the softmax scale forgotten", {**f, "softmax_scale": 1}, {"softmax_scale_other"}
    yield "the scale of a whole head of twice the width", {**f, "softmax_scale": (2 * d) ** -0.5}, {"softmax_scale_other"}
    yield "a cap", {**f, "softcap": 20}, {"softcap_missing"}
    yield "the mask forgotten", without(f, "causal"), {"mask_extra"}
    yield "a window", {**f, "window": 4}, {"window_other", "mask_missing"}
    if f["scheme"] != "rope":
        yield "halves that turn", {**f, "scheme": "rope", "layout": "half"}, {"scheme_other", "q_not_rotated"}
        yield "a bias", {**f, "scheme": "alibi"}, {"scheme_other", "bias_missing"}
        return
    layout = f.get("layout", "interleaved")
    yield "the other layout", {**f, "layout": "half" if layout == "interleaved" else "interleaved"}, {"layout_swapped"}
    yield "rotated the other way", {**f, "direction": -1}, {"direction_reversed"}
    yield "base 500000", {**f, "base": 500000}, {"base_other"}
    yield "linear 4 believed", {**f, "scaling": {"type": "linear", "factor": 4}}, {"scaling_missing"}
    yield "no positions", {**without(f, "layout"), "scheme": "none"}, {"scheme_other"}


def padded(f):
    yield "columns counted", {**f, "padding": "counted"}, {"padding_skipped"}
    yield "the other layout", {**f, "layout": "half" if f["layout"] == "interleaved" else "interleaved"}, {"layout_swapped"}
    yield "positions begin one later", {**f, "offset": 1}, {"off_by_one"}
    yield "rotated the other way", {**f, "direction": -1}, {"direction_reversed"}
    yield "base 500000", {**f, "base": 500000}, {"base_other"}
    yield "linear 4 believed", {**f, "scaling": {"type": "linear", "factor": 4}}, {"scaling_missing"}


def of_positions(f):
    """A run of positions that is believed to begin elsewhere."""
    if not {"positions", "grid", "lens", "segments"} & set(f):
        yield "positions begin one later", {**f, "offset": f.get("offset", 0) + 1}, {"off_by_one"}
        yield "positions begin seven later", {**f, "offset": f.get("offset", 0) + 7}, {"offset_other"}
        if f.get("offset"):
            yield "the offset of the cache forgotten", {**f, "offset": 0}, {"off_by_one" if f["offset"] == 1 else "offset_other"}


def rotary(f, arrays):
    several = "grid" in f or "segments" in f or (len(f.get("positions", [0])) in (2, 3) and isinstance(f["positions"][0], list))
    table = arrays.get("cos", arrays.get("angles"))
    shows_layout = {"q_out", "k_out"} & set(arrays) or (table is not None and table.shape[-1] == evidence.widths_of(f, table.shape[-1])[1])
    if shows_layout:
        layout = f.get("layout", "interleaved")
        yield "the other layout", {**f, "layout": "half" if layout == "interleaved" else "interleaved"}, {"layout_swapped"}
    if several:
        yield from axes(f)
    yield from scalings(f, several)
    if not {"inv_freq", "rope_freqs"} & set(arrays):
        yield from of_positions(f)
        yield "rotated the other way", {**f, "direction": -f.get("direction", 1)}, {"direction_reversed"}
    base = f.get("base", 10000)
    for other in (10000, 500000, 1000000):
        if base != other and "inv_freq" not in f:
            yield f"base {other}", {**f, "base": other}, {"base_other"}
            break
    yield from widths(f, arrays)
    if base == 10000 and f.get("head_dim") == 128 and not several and "scaling" not in f:
        yield "tables of Llama 3.1", {**f, "base": 500000, "scaling": LLAMA3}, {"scaling_missing", "base_other"}
    if (f.get("scaling") or {}).get("type") == "llama3" and base != 10000:
        yield "tables of Llama 2", {**without(f, "scaling"), "base": 10000}, {"scaling_other", "base_other"}
    if "tensor_layout" in f:
        yield "axes as they are, tensor_layout forgotten", without(f, "tensor_layout"), {"tensor_layout_other", "axes_moved"}


def scalings(f, several):
    scaling = f.get("scaling")
    if scaling and scaling["type"] != "default":
        named = {"scaling_other", "base_other"} if scaling["type"] in ("ntk", "dynamic") else {"scaling_other"}
        if scaling["type"] == "linear" and scaling["factor"] not in LISTED:
            named = {"scaling_other", "position_stride"}
        yield "scaling forgotten", without(f, "scaling"), named
        if "factor" in scaling:
            yield "another factor", {**f, "scaling": {**scaling, "factor": scaling["factor"] * 2}}, {"scaling_parameter"}
        other = {"type": "linear", "factor": scaling.get("factor", 4)} if scaling["type"] != "linear" else {"type": "ntk", "factor": scaling["factor"]}
        named = {"scaling_other", "scaling_missing", "base_other"} if scaling["type"] == "dynamic" else {"scaling_other"}  # dynamic is another base
        yield f"{other['type']} instead of {scaling['type']}", {**f, "scaling": other}, named
        if scaling["type"] == "yarn":
            if scaling.get("attention_factor") != 1 and not (scaling.get("mscale") and scaling.get("mscale") == scaling.get("mscale_all_dim")):
                yield "YaRN's attention factor forgotten", {**f, "attention_factor": 1}, {"attention_factor_other", "scaled"}
            yield "YaRN's ends truncated otherwise", {**f, "scaling": {**scaling, "truncate": not scaling.get("truncate", True)}}, {"scaling_parameter"}
            yield "another original length", {**f, "scaling": {**scaling, "original_max_position_embeddings": scaling["original_max_position_embeddings"] * 2}}, {"scaling_parameter"}
    elif "inv_freq" not in f and not several and f.get("channels") is None:
        yield "linear 4 believed", {**f, "scaling": {"type": "linear", "factor": 4}}, {"scaling_missing"}
        yield "Llama 3.1's scaling believed", {**f, "scaling": LLAMA3}, {"scaling_missing"}


def axes(f):
    if "grid" in f:
        grid = f["grid"]
        yield "the grid's sides exchanged", {**f, "grid": grid[:-2] + [grid[-1], grid[-2]]}, {"axes_swapped"}
        if "channels" not in f:
            n = len(grid)
            yield "the axes in another order", {**f, "axis_order": [*range(n - 2), n - 1, n - 2]}, {"axes_swapped", "section_order"}
        yield "the axes forgotten", {**without(f, "grid", "axis_order", "coords", "channels", "axes_dim", "ref_grid", "order", "spatial_merge_size"), "offset": 0}, {"axes_missing", "channels_other"}
        if f.get("order") == "merge":
            yield "raster order instead of merge order", without(f, "order", "spatial_merge_size"), {"positions_other", "order_other"}
    if f.get("mrope_section"):
        a, b, c = f["mrope_section"]
        yield "M-RoPE forgotten", {**without(f, "mrope_section", "channels", "positions", "segments", "position_style"), "offset": 0}, {"axes_missing", "channels_other"}
        yield "sections in another order", {**f, "mrope_section": [c, b, a] if a != c else [b, c, a]}, {"section_order"}
        yield "the other rule for channels", {**f, "channels": "mrope" if f["channels"] == "mrope_interleaved" else "mrope_interleaved"}, {"channels_other"}
        if "positions" in f:
            at = f["positions"]
            yield "height and width exchanged", {**f, "positions": [at[0], at[2], at[1]]}, {"axes_swapped"}
        else:
            yield "the ids of Qwen3-VL", {**f, "position_style": "qwen3_vl"}, {"position_style_other"}
    if f.get("axes_dim") and len(set(f["axes_dim"])) > 1:
        widths_other = f["axes_dim"][1:] + f["axes_dim"][:1]
        yield "the axes' widths in another order", {**f, "axes_dim": widths_other}, {"channels_other", "section_order"}
    if f.get("coords") and f["coords"] != "index":
        yield "coordinates counted from 0", {**without(f, "ref_grid"), "coords": "index"}, {"coords_other", "positions_other", "offset_other", "off_by_one", "position_stride"}


def ids(f):
    styles = ["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen2_5_vl_int_seconds"]
    for other in styles:
        if other != f["position_style"]:
            yield f"the style {other}", {**without(f, "tokens_per_second"), "position_style": other}, {"position_style_other", "tokens_per_second_other"}
    if f["position_style"].startswith("qwen2_5_vl"):
        for speed in (1, 4):
            yield f"{speed} ids a second", {**f, "tokens_per_second": speed}, {"tokens_per_second_other"}
    turned = [{**one, "grid": [one["grid"][0], one["grid"][2], one["grid"][1]]} if "grid" in one else one for one in f["segments"]]
    yield "the sides of the images exchanged", {**f, "segments": turned}, {"axes_swapped"}
    yield "counted as text", {"scheme": "rope"}, {"axes_missing", "position_style_other"}


def widths(f, arrays):
    turned = arrays.get("q_out", arrays.get("k_out"))
    if turned is None:
        return
    d, r = evidence.widths_of(f, evidence.to_heads(turned, f.get("tensor_layout", "bhnd")).shape[-1])
    rest = without(f, "partial_rotary_factor", "rotary_offset")
    if (f.get("scaling") or {}).get("type") == "proportional" or "axes_dim" in f or "mrope_section" in f:
        return
    if r < d:
        yield "the whole head believed rotated", {**rest, "rotary_dim": d}, {"rotary_dim_other"}
        yield "another first channel", {**f, "rotary_offset": 0 if f.get("rotary_offset") else d - r}, {"rotary_offset_other"}
    else:
        yield "half of the head believed rotated", {**rest, "rotary_dim": d // 2}, {"rotary_dim_other"}


def sinusoid(f, arrays):
    if "grid" in f:
        yield from over_a_grid(f, arrays)
        return
    layout = f.get("layout", "interleaved")
    yield "the other layout", {**f, "layout": "half" if layout == "interleaved" else "interleaved"}, {"layout_swapped"}
    yield "the other freq_shift", {**f, "freq_shift": 1 - f.get("freq_shift", 0)}, {"freq_shift_other"}
    yield from of_positions(f)
    yield "cosines first" if not f.get("flip_sin_to_cos") else "sines first", {**f, "flip_sin_to_cos": not f.get("flip_sin_to_cos", False)}, {"sin_cos_swapped"}
    yield "another base", {**f, "base": 1000 if f.get("base", 10000) == 10000 else 10000}, {"base_other"}
    if f.get("angle_scale", 1) != 1:
        yield "the angles' scale forgotten", without(f, "angle_scale"), {"position_stride", "parameter_other"}
    elif f.get("flip_sin_to_cos"):  # as time steps are
        yield "angles believed scaled by 1000", {**f, "angle_scale": 1000}, {"position_stride", "parameter_other"}
    if arrays["encoding"].shape[-1] % 2:
        yield "another rule for the odd column", {**f, "odd": "pad" if f.get("odd", "paper") != "pad" else "paper"}, {"odd_other"}


def over_a_grid(f, arrays):
    grid, style = f["grid"], f.get("style", "axial")
    first = f.get("channels_first", style == "detr")
    if not first or grid[-1] == grid[-2]:  # else the shapes say so
        yield "the grid's sides exchanged", {**f, "grid": grid[:-2] + [grid[-1], grid[-2]]}, {"axes_swapped"}
    for other in ("axial", "mae", "timm", "detr", "multidim"):
        if other != style and not (len(grid) == 3 and other in ("mae", "timm", "detr")):
            yield f"the style {other}", {**without(f, *OF_STYLES), "style": other, "channels_first": first}, {"style_other", "axes_swapped"}
    name = "temperature" if style == "detr" else "base"
    yield "another base", {**f, name: 1000 if f.get(name, 10000) == 10000 else 10000}, {"base_other"}
    if style == "axial":
        yield "the other layout", {**f, "layout": "half" if f.get("layout", "interleaved") == "interleaved" else "interleaved"}, {"layout_swapped"}
        yield "cosines first", {**f, "flip_sin_to_cos": not f.get("flip_sin_to_cos", False)}, {"sin_cos_swapped"}
    if style == "detr":
        yield "normalize the other way", {**f, "normalize": not f.get("normalize", False)}, {"parameter_other"}
    if not first:
        yield "the axes forgotten", {**without(f, "grid", "channels_first", *OF_STYLES), "offset": 0}, {"axes_missing", "style_other"}


def masks(f, Q, K):
    if f.get("causal"):
        yield "the causal mask forgotten", without(f, "causal"), {"mask_extra"}
    elif Q > 1:
        yield "a causal mask believed", {**f, "causal": True}, {"mask_missing"}
    if Q > 1:
        yield "a window believed", {**f, "window": max(2, K // 2)}, {"window_other", "mask_missing"}


def alibi(f, arrays):
    H, Q, K = arrays["bias"].shape[-3:]
    yield "bias_max 16", {**f, "bias_max": 16 if f.get("bias_max", 8) != 16 else 8}, {"bias_max_other"}
    yield "slopes that grow with the head", {**without(f, "bias_max"), "slopes": [0.5 * (h + 1) for h in range(H)]}, {"slopes_other"}
    form = f.get("form", "symmetric")
    for other in ("symmetric", "relative", "key", "key_end"):
        if other != form:
            yield f"the form {other}", {**f, "form": other}, {"form_other"}
    yield from masks(f, Q, K)
    right = [float(m) for m in truth.alibi_slopes(H, f.get("bias_max", 8))] if "slopes" not in f else f["slopes"]
    yield "slopes in the reverse order", {**without(f, "bias_max"), "slopes": right[::-1]}, {"slopes_order"}
    if Q != K:
        yield "queries aligned with the first keys", {**f, "q_offset": 0}, {"alignment_other"}
    yield "queries one later", {**f, "q_offset": f.get("q_offset", K - Q) + 1}, {"alignment_other", "off_by_one"}


def t5(f, arrays):
    Q, K = (arrays["bias"] if "bias" in arrays else arrays["buckets"]).shape[-2:]
    yield "decoder instead of encoder, or the reverse", {**f, "bidirectional": not f.get("bidirectional", True)}, {"bidirectional_other"}
    yield "another max_distance", {**f, "max_distance": 2 * f.get("max_distance", 128)}, {"max_distance_other"}
    yield "half the max_distance", {**f, "max_distance": f.get("max_distance", 128) // 2}, {"max_distance_other"}
    yield "queries one later", {**f, "q_offset": f.get("q_offset", K - Q) + 1}, {"alignment_other", "off_by_one"}
    yield "queries one earlier", {**f, "q_offset": f.get("q_offset", K - Q) - 1}, {"alignment_other", "off_by_one"}
    if "bias" in arrays:
        yield from masks(f, Q, K)


def deberta(f, arrays):
    yield "queries one later", {**f, "q_offset": f.get("q_offset", 0) + 1}, {"alignment_other", "off_by_one"}
    yield "queries one earlier", {**f, "q_offset": f.get("q_offset", 0) - 1}, {"alignment_other", "off_by_one"}
    most = f.get("max_relative_positions", 512)
    if f.get("position_buckets", -1) > 0:
        yield "half the largest distance", {**f, "max_relative_positions": most // 2}, {"max_distance_other", "parameter_other"}
        yield "buckets forgotten", {**f, "position_buckets": -1}, {"max_distance_other", "parameter_other"}
        yield "distances clamped otherwise", {**f, "clamp_first": not f.get("clamp_first", False)}, {"parameter_other"}
    else:
        yield "buckets believed", {**f, "position_buckets": 256}, {"max_distance_other", "parameter_other"}
        yield "half the largest distance", {**f, "max_relative_positions": most // 2}, {"max_distance_other", "parameter_other"}


def fourier(f, arrays):
    yield "angles with pi", {**f, "multiply_pi": not f.get("multiply_pi", False)}, {"parameter_other", "position_stride"}
    yield "the other spacing of frequencies", {**f, "log_sampling": not f.get("log_sampling", True)}, {"parameter_other"}
    at = f["positions"]
    if isinstance(at[0], list):
        yield "the axes exchanged", {**f, "positions": [at[1], at[0], *at[2:]]}, {"axes_swapped"}
        yield "positions twice as large", {**f, "positions": [[2 * x for x in a] for a in at]}, {"position_stride", "positions_other"}
