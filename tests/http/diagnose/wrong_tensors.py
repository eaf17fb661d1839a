"""Tensors that are wrong on purpose: the faults of public code, applied in NumPy to a random configuration. A family of
schemes (wrong_rotary.py, wrong_sinusoid.py, wrong_bias.py, wrong_ids.py) is a model, a frozen dataclass, whose fields say how
its numbers are computed; a fault is a copy of the model with another field. draw() makes a case for a code: what a user believes,
the tensor that the faulty code gives, and every code that explains this tensor as well. Nothing here comes from the C code."""
from typing import NamedTuple

import numpy as np

from tensors import to_bf16

LD = np.longdouble  # 64 bits: f64 tables are right to their last bit
BITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}

# Kinds and codes, in the order in which findings stand.
KINDS = {
    "layout": ["layout_swapped"],
    "sense": ["direction_reversed", "sin_cos_swapped", "negated", "transposed"],
    "positions": ["off_by_one", "offset_other", "not_rotated", "rotated_twice", "positions_reversed", "position_stride",
                  "positions_constant", "position_reset", "position_no_reset", "positions_other"],
    "width": ["rotary_dim_other", "rotary_offset_other"],
    "size": ["attention_factor_missing", "attention_factor_other", "scaled", "zero_row", "mask_value"],
    "ladder": ["scaling_missing", "ladder_width", "ladder_from_one", "ladder_reversed", "scaling_parameter", "scaling_other",
               "base_other"],
    "arithmetic": ["angles_f32", "inv_freq_bf16", "inv_freq_f16", "angles_bf16"],
    "axes": ["axes_swapped", "section_order", "channels_other"],
    "sinusoid": ["freq_shift_other", "odd_other", "style_other", "exponent_per_column", "exponent_doubled", "sine_only"],
    "bias": ["slopes_other", "slopes_order", "bias_max_other", "form_other", "alignment_other", "mask_missing", "mask_extra",
             "window_other", "bidirectional_other", "max_distance_other", "kind_other", "parameter_other"],
    "ids": ["position_style_other", "tokens_per_second_other", "merge_size_other"],
}
CODES = [code for codes in KINDS.values() for code in codes]
KIND_OF = {code: kind for kind, codes in KINDS.items() for code in codes}

# How surprising a mistake is: of explanations with the same numbers the least surprising is named.
SURPRISE = {**dict.fromkeys(CODES, 3), **dict.fromkeys("""direction_reversed sin_cos_swapped offset_other not_rotated rotated_twice position_reset
    position_no_reset rotary_dim_other ladder_width scaling_parameter scaling_other inv_freq_bf16 inv_freq_f16 angles_bf16 axes_swapped
    freq_shift_other odd_other style_other exponent_per_column exponent_doubled sine_only slopes_other bias_max_other alignment_other
    mask_extra position_style_other tokens_per_second_other merge_size_other""".split(), 2),
            **dict.fromkeys("layout_swapped off_by_one attention_factor_missing scaling_missing angles_f32 mask_missing".split(), 1),
            **dict.fromkeys("negated positions_reversed rotary_offset_other ladder_from_one ladder_reversed".split(), 4),
            "zero_row": 5, "positions_other": 8}  # attention_factor_other is 5, but where it applies, `scaled` is not tried
# A mistake that contradicts a stated field is less surprising.
FIELD = {"layout_swapped": "layout", "direction_reversed": "direction", "rotary_dim_other": "rotary_dim", "rotary_offset_other": "rotary_offset",
         "attention_factor_missing": "attention_factor", "attention_factor_other": "attention_factor", "scaling_missing": "scaling",
         "scaling_parameter": "scaling", "scaling_other": "scaling", "base_other": "base", "ladder_width": "base", "freq_shift_other": "freq_shift",
         "odd_other": "odd", "style_other": "style", "bias_max_other": "bias_max", "form_other": "form", "position_no_reset": "lens",
         "bidirectional_other": "bidirectional", "max_distance_other": "max_distance", "window_other": "window", "slopes_other": "slopes"}


class Tensor(NamedTuple):
    """Values that the dtype holds exactly, as float64 (integers: int64)."""
    values: np.ndarray
    dtype: str


class Case(NamedTuple):
    codes: tuple  # faults that were made, in the table's order
    names: frozenset  # codes that may be named: a code gives way to less surprising ones that give the same tensor; of two faults: pairs
    belief: dict  # fields of the request
    tensors: dict  # name: Tensor
    right: object  # the believed model
    wrong: object  # the model that made the tensors
    data: object  # the q that was rotated

    def body(self):
        return {**self.belief, **{name: inline(tensor) for name, tensor in self.tensors.items()}}


def unit(dtype):
    return 2.0 ** -BITS[dtype] if dtype in BITS else 0.0


def rounded(values, dtype):
    """Rounded once to the dtype, as float64."""
    if dtype not in BITS:
        return np.asarray(values, np.int64)
    if dtype == "bf16":
        return to_bf16(np.asarray(values, float)).astype(float)
    with np.errstate(over="ignore"):
        return np.asarray(values).astype({"f64": "f8", "f32": "f4", "f16": "f2"}[dtype]).astype(float)


def json_number(x):
    return x if isinstance(x, int) or np.isfinite(x) else "NaN" if x != x else "Infinity" if x > 0 else "-Infinity"


def inline(tensor):
    numbers = tensor.values.ravel().tolist()
    data = numbers if np.isfinite(tensor.values).all() else list(map(json_number, numbers))
    return {"dtype": tensor.dtype, "shape": list(tensor.values.shape), "data": data}


def send(values, dtype):
    """Real tensors in this dtype; integers stay i64."""
    return {name: Tensor(rounded(a, dtype), dtype) if a.dtype.kind == "f" else Tensor(np.asarray(a, np.int64), "i64")
            for name, a in values.items()}


def fits(tensors, model, data, exactly=False):
    """Whether the model explains the tensors: equal infinities, all else within what float32 angles cost, or exactly."""
    values = model.values(data)
    if any(values[name].shape != tensor.values.shape for name, tensor in tensors.items()):
        return False
    for name, tensor in tensors.items():
        allowed = model.tolerance(name, values, unit(tensor.dtype))
        if exactly:
            allowed = np.minimum(allowed, exact_allows(name, rounded(values[name], tensor.dtype), tensor.dtype, values))
        if not near(tensor, values[name], allowed):
            return False
    return True


def exact_allows(name, a, dtype, values):
    """One step of the dtype (f64: one more, that our own value may be off by); q_out: 12uS."""
    u = unit(dtype)
    if name == "q_out":
        return 12 * u * max(largest(v) for v in values.values())
    if dtype == "i64":
        return 0.0
    smallest = {"f16": 2.0 ** -24, "bf16": 2.0 ** -133, "f32": 2.0 ** -149, "f64": 0.0}[dtype]
    steps = 2.0 ** np.floor(np.log2(np.maximum(np.abs(np.where(np.isfinite(a), a, 0)), 1e-300))) * 2 * u
    return np.maximum(steps, smallest) * (4 if dtype == "f64" else 1) + (2.0 ** -52 if dtype == "f64" else 0)


def near(tensor, candidate, tolerance):
    candidate = rounded(candidate, tensor.dtype)
    finite = np.isfinite(candidate)
    if not np.array_equal(finite, np.isfinite(tensor.values)) or not np.array_equal(candidate[~finite], tensor.values[~finite]):
        return False
    with np.errstate(invalid="ignore"):
        return bool((np.abs(tensor.values - candidate)[finite] <= np.broadcast_to(tolerance, candidate.shape)[finite]).all())


def float32_loss(w, number):
    """What right float32 code loses of an angle, as a share of it; number: of the pair in its ladder."""
    w = np.abs(np.asarray(w, float))
    with np.errstate(divide="ignore"):
        return np.where(w == 0, 0, np.maximum(6 + 3 * np.abs(np.log(w)), 2 * np.asarray(number))) * 2.0**-24


def largest(values):
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size else 0.0


def choose(rng, *values):
    return values[int(rng.integers(len(values)))]


def families(code):
    """Modules that make this code: believe(rng, code) draws a belief, faults(model, rng, kind) lists what can be wrong with it (all
    scalings only for the kind ladder, as they are many)."""
    import wrong_bias, wrong_ids, wrong_rotary, wrong_sinusoid  # they import this module
    return [family for family in (wrong_rotary, wrong_sinusoid, wrong_bias, wrong_ids) if code in family.MAKES]


def draw(code, seed, family=None, attempts=200):
    """One fault. A belief for which the fault changes nothing that can be seen is drawn again."""
    rng = np.random.default_rng([seed, CODES.index(code)])
    for _ in range(attempts):
        chosen = family or choose(rng, *families(code))
        case = attempt(rng, code, chosen)
        if case:
            return case
    raise AssertionError(f"no belief shows {code}")


def attempt(rng, code, family):
    right = family.believe(rng, code)
    faults = family.faults(right, rng, KIND_OF[code])
    made = [model for name, model in faults if name == code]
    if not made:
        return None
    wrong = choose(rng, *made)
    data = right.data(rng)
    tensors = send(wrong.values(data), wrong.dtype)
    if fits(tensors, right, data) or any(not tensor.values.any() for tensor in tensors.values()):
        return None
    def rank(fault):
        return surprise(*fault, right, tensors), CODES.index(fault[0])
    named = names(tensors, data, [(code, wrong), *faults], rank)
    by_fit = {name for name, model in fitted(family, right, wrong) if rank((name, model)) < rank((code, wrong)) and fits(tensors, model, data)}
    return Case((code,), named | by_fit, right.request(), {**right.sent(data), **tensors}, right, wrong, data)


def surprise(code, model, right, tensors):
    usual = {1e4: 1, 5e5: 1, 1e6: 1, 1e7: 1}.get(model.base, 3) if code == "base_other" else SURPRISE[code]
    return usual + 3 * (code == "rotated_twice" and "cos" in tensors) - 2 * (FIELD.get(code) in right.request())


def names(tensors, data, faults, rank):
    """The code that should be named: the first by rank that gives the tensor exactly, or at all if none does. Values beside a bound may
    be judged either way: both are given."""
    fit = [fault for fault in faults if fits(tensors, fault[1], data)]
    exact = [fault for fault in fit if fits(tensors, fault[1], data, True)]
    return frozenset(min(some, key=rank)[0] for some in (exact, fit) if some)


def fitted(family, right, wrong):
    """Single faults whose values are fitted: those that the faulty model itself has."""
    return getattr(family, "fitted", lambda right, wrong: [])(right, wrong)


def draw_pair(seed, attempts=400):
    """Two faults of different kinds. No single fault may explain the tensor; one of the two may be replaced. A list of
    positions is left out: it takes in what another fault does to the frequencies."""
    rng = np.random.default_rng([seed, 77])
    for _ in range(attempts):
        first = choose(rng, *[c for c in CODES if KIND_OF[c] != "arithmetic" and c != "positions_other"])
        case = attempt_pair(rng, first, choose(rng, *families(first)))
        if case:
            return case
    raise AssertionError("no pair")


def attempt_pair(rng, first, family):
    right = family.believe(rng, first)
    singles = family.faults(right, rng, KIND_OF[first])
    begun = [model for name, model in singles if name == first]
    if not begun:
        return None
    begun = choose(rng, *begun)
    seconds = [pair for pair in family.faults(begun, rng, choose(rng, None, None, "ladder")) if second_of(pair[0], first)]
    if not seconds:
        return None
    second = choose(rng, *sorted({name for name, _ in seconds}))
    wrong = choose(rng, *[model for name, model in seconds if name == second])
    data = right.data(rng)
    tensors = send(wrong.values(data), wrong.dtype)
    if any(fits(tensors, model, data) for _, model in [*singles, *fitted(family, right, wrong)]) or fits(tensors, right, data):
        return None
    half_way = send(begun.values(data), begun.dtype)
    like_first = {name for name, model in [*singles, *fitted(family, right, begun)] if fits(half_way, model, data)}
    like_second = {name for name, model in [*seconds, *fitted(family, begun, wrong)] if fits(tensors, model, data)}
    codes = tuple(sorted((first, second), key=CODES.index))
    pairs = frozenset([frozenset((one, second)) for one in like_first] + [frozenset((first, one)) for one in like_second])
    return Case(codes, pairs | {frozenset(codes)}, right.request(), {**right.sent(data), **tensors}, right, wrong, data)


def second_of(code, first):
    return KIND_OF[code] not in (KIND_OF[first], "arithmetic") and code != "positions_other"
