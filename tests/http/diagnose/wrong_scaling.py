"""Context scalings in extended precision, in the order of operations of their papers, and the scalings that a tensor may have instead
of the believed one."""
import math

import numpy as np

from wrong_tensors import LD, choose

FACTORS = [2.0, 4.0, 8.0, 16.0, 32.0, 40.0, 1.5]
LENGTHS = [2 ** k for k in range(11, 19)]
PRESET_SCALINGS = {  # rotary width: scalings of published models
    128: [{"type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
          {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, {"type": "linear", "factor": 8.0}],
    64: [{"type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
         {"type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096, "truncate": False},
         {"type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 1.0, "mscale_all_dim": 1.0}],
}

# ---- Scalings, in the order of operations of their papers ---------------------------------------------------------------------


def powers(base, width, from_one=0):
    c = np.arange(width // 2).astype(LD)
    return LD(base) ** (-2 * (c + from_one) / LD(width))


def stretched(scaling, base, width, seq_len):
    """Frequencies [C] under a scaling."""
    kind, w, s = scaling.get("type", "default"), powers(base, width), LD(scaling.get("factor", 1.0))
    if kind == "linear":
        return w / s
    if kind in ("ntk", "dynamic"):
        if kind == "dynamic":
            trained = scaling["max_position_embeddings"]
            s = s * max(LD(scaling.get("seq_len", seq_len)), LD(trained)) / trained - (s - 1)
        return powers(LD(base) * s ** (LD(width) / (width - 2)), width)
    if kind == "longrope":
        n = scaling.get("seq_len", seq_len)
        divisors = scaling["long_factor" if n > scaling["original_max_position_embeddings"] else "short_factor"]
        return w / np.array(divisors, LD)
    if kind == "llama3":
        return llama3(scaling, w, s)
    return yarn(scaling, base, width, w, s) if kind == "yarn" else w


def llama3(scaling, w, s):
    original, low, high = (LD(scaling[k]) for k in ("original_max_position_embeddings", "low_freq_factor", "high_freq_factor"))
    turns = original * w / (2 * LD(np.pi) + LD(1.2246467991473532e-16) * 2)
    t = (turns - low) / (high - low if high != low else LD(1))
    return np.where(turns < low, w / s, np.where(turns > high, w, (1 - t) * w / s + t * w))


def yarn(scaling, base, width, w, s):
    original = float(scaling["original_max_position_embeddings"])
    ends = [LD(width) * np.log(LD(original) / (2 * (LD(np.pi) + LD(1.2246467991473532e-16)) * LD(b))) / (2 * np.log(LD(base)))
            for b in (scaling.get("beta_fast") or 32.0, scaling.get("beta_slow") or 1.0)]
    if scaling.get("truncate", True):
        ends = [np.floor(ends[0]), np.ceil(ends[1])]
    low, high = max(ends[0], LD(0)), min(ends[1], LD(width - 1))
    high += LD(0.001) if low == high else LD(0)
    keep = 1 - np.clip((np.arange(width // 2) - low) / (high - low), LD(0), LD(1))
    return w / s * (1 - keep) + w * keep


def magnitude(s, k):
    return 1.0 if s <= 1 else 0.1 * k * math.log(s) + 1.0


def factor_of(scaling):
    """The attention factor that a scaling brings."""
    kind, s = scaling.get("type", "default"), scaling.get("factor", 1.0)
    if scaling.get("attention_factor") is not None:
        return scaling["attention_factor"]
    if kind == "longrope":
        return 1.0 if s <= 1 else math.sqrt(1 + math.log(s) / math.log(scaling["original_max_position_embeddings"]))
    if kind != "yarn":
        return 1.0
    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        return magnitude(s, scaling["mscale"]) / magnitude(s, scaling["mscale_all_dim"])
    return magnitude(s, 1.0)


# ---- Scalings to believe in, and others ---------------------------------------------------------------------------------------


def random_scaling(rng, width):
    length = choose(rng, 2048, 4096, 8192, 32768)
    return choose(
        rng, {"type": "linear", "factor": choose(rng, 2.0, 4.0, 8.0)}, {"type": "ntk", "factor": choose(rng, 2.0, 4.0, 8.0)},
        {"type": "yarn", "factor": choose(rng, 4.0, 8.0, 32.0), "original_max_position_embeddings": length},
        {"type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": length},
        {"type": "dynamic", "factor": 4.0, "max_position_embeddings": 2048},
        {"type": "longrope", "factor": 32.0, "original_max_position_embeddings": 4096,
         "short_factor": [1.0 + round(0.02 * i, 2) for i in range(width // 2)],
         "long_factor": [1.0 + round(0.9 * i, 1) for i in range(width // 2)]})


def other_scalings(believed, width):
    """The parameters of the believed type, then other types."""
    kind = believed.get("type")
    if kind in ("dynamic", "longrope"):
        trained = believed.get("max_position_embeddings", believed["original_max_position_embeddings"] if kind == "longrope" else None)
        for seq_len in (trained + 1, 2 * trained, 4 * trained):
            yield "scaling_parameter", {**believed, "seq_len": seq_len}
    for scaling in listed_scalings(believed):
        if scaling != believed:
            yield ("scaling_parameter" if scaling["type"] == kind else "scaling_other"), scaling
    for scaling in PRESET_SCALINGS.get(width, []):
        if scaling["type"] != kind:
            yield "scaling_other", scaling
    for name, value in single_changes(kind):
        if believed.get(name) != value:
            yield "scaling_parameter", {**believed, name: value}


def listed_scalings(believed):
    factors = [believed.get("factor", 2.0), *FACTORS]
    lengths = [believed.get("original_max_position_embeddings", 2048), *LENGTHS]
    kind = believed.get("type")
    ends = ({k: believed[k] for k in ("low_freq_factor", "high_freq_factor")} if kind == "llama3"
            else {"low_freq_factor": 1.0, "high_freq_factor": 4.0})
    for factor in factors:
        yield {"type": "linear", "factor": factor}
        yield {"type": "ntk", "factor": factor}
        for length in lengths:
            yield {"type": "yarn", "factor": factor, "original_max_position_embeddings": length}
            yield {"type": "llama3", "factor": factor, **ends, "original_max_position_embeddings": length}


def single_changes(kind):
    if kind == "yarn":
        return [("truncate", False), *[("beta_fast", x) for x in (16.0, 64.0, 128.0)], *[("beta_slow", x) for x in (2.0, 4.0)]]
    if kind == "llama3":
        return [*[("low_freq_factor", x) for x in (2.0, 4.0)], *[("high_freq_factor", x) for x in (2.0, 8.0)]]
    return []
