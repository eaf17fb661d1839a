"""Context scalings of rotary schemes in mpmath, written from the formulas of the papers and of transformers.

`config` is the scaling object of a request (type or rope_type, factor, ...); nothing here reads posenc's answers. Numbers are
the doubles of the JSON text, taken exactly; everything after is computed with 60 digits.
"""

import numpy as np
from mpmath import ceil, floor, log, mp, mpf, pi, sqrt

mp.dps = 60

ALIASES = {"su": "longrope", "mrope": "default"}


def rule(config):
    name = config.get("rope_type", config.get("type", "default"))
    if name == "yarn" and "short_factor" in config and "long_factor" in config:
        return "longrope"  # early Phi-3
    return ALIASES.get(name, name)


def convention(config):
    return config.get("convention", "transformers")


def factor(config):
    """s: given, or the double nearest the ratio of the two lengths; None if neither."""
    if config.get("factor") is not None:
        return float(config["factor"])
    if rule(config) == "proportional":
        return 1.0
    if "max_position_embeddings" in config and "original_max_position_embeddings" in config:
        return config["max_position_embeddings"] / config["original_max_position_embeddings"]
    return None


def length_of(config, seq_len):
    return mpf(config.get("seq_len", max(seq_len, 0)))


def uses_long_list(config, seq_len):
    chosen = config.get("list", "auto")
    if chosen != "auto":
        return chosen == "long"
    n, original = length_of(config, seq_len), config["original_max_position_embeddings"]
    return {"mlx": True, "vllm": n - 1 > original}.get(convention(config), n > original)


# ---- Factors ----


def magnitude(s, k):
    """m(s, k) of YaRN."""
    return mpf(1) if s <= 1 else mpf(k) * log(mpf(s)) / 10 + 1


def attention_factor(config, seq_len):
    """The factor on cos and sin, an mpf; posenc answers the double nearest to it."""
    if config.get("attention_factor") is not None:
        return mpf(config["attention_factor"])
    name, s = rule(config), factor(config)
    if name == "longrope":
        scale = config.get("long_mscale" if uses_long_list(config, seq_len) else "short_mscale")
        if scale is not None:
            return mpf(scale)
        return mpf(1) if s <= 1 else sqrt(1 + log(mpf(s)) / log(mpf(config["original_max_position_embeddings"])))
    if name != "yarn":
        return mpf(1)
    above, below = config.get("mscale"), config.get("mscale_all_dim")
    if convention(config) == "transformers":
        return magnitude(s, above) / magnitude(s, below) if above and below else magnitude(s, 1)
    ratio = magnitude(s, 1 if above is None else above) / magnitude(s, 0 if below is None else below)
    return ratio * mpf(config.get("attn_factor", 1)) if convention(config) == "vllm" else ratio


def softmax_scale_factor(config):
    """m(s, mscale_all_dim)^2, or None."""
    if config.get("softmax_scale_factor") is not None:
        return mpf(config["softmax_scale_factor"])
    if rule(config) != "yarn" or not config.get("mscale_all_dim"):
        return None
    return magnitude(factor(config), config["mscale_all_dim"]) ** 2


# ---- Frequencies ----


def base_for(config, base, dim, seq_len):
    """base' of ntk and dynamic."""
    name = rule(config)
    if name not in ("ntk", "dynamic"):
        return mpf(base)
    s = mpf(factor(config))
    if name == "ntk":
        grown = s
    else:
        trained = mpf(config["max_position_embeddings"])
        n = s * trained if convention(config) == "vllm" else max(length_of(config, seq_len), trained)
        grown = s * n / trained - (s - 1)
    return mpf(base) * grown ** (mpf(dim) / (dim - 2))


def ramp_ends(config, base, dim):
    """low and high of YaRN, in pairs, before they are parted."""
    original = mpf(config["original_max_position_embeddings"])
    fast, slow = config.get("beta_fast") or 32, config.get("beta_slow") or 1
    if convention(config) == "tgi":
        fast, slow = 32, 1
    low, high = (dim * log(original / (2 * pi * mpf(b))) / (2 * log(mpf(base))) for b in (fast, slow))
    if config.get("truncate", True):
        low, high = floor(low), ceil(high)
    return max(low, mpf(0)), min(high, mpf(dim - 1))


def parted(low, high):
    return high + mpf(0.001) if low == high else high


def kept_pairs(config, head_dim):
    return int(config["partial_rotary_factor"] * head_dim // 2)


def inv_freq(config, base, dim, seq_len, head_dim=None):
    """The frequency of each of dim/2 pairs, mpf, radians per position."""
    name, s = rule(config), factor(config)
    pairs = range(dim // 2)
    root = base_for(config, base, dim, seq_len)
    plain = [root ** (-mpf(2 * c) / dim) for c in pairs]
    if name in ("default", "ntk", "dynamic") or (name == "linear" and convention(config) == "tgi"):
        return plain
    s = None if s is None else mpf(s)
    if name == "linear":
        return [w / s for w in plain]
    if name == "longrope":
        divisors = config["long_factor" if uses_long_list(config, seq_len) else "short_factor"]
        return [w / mpf(d) for w, d in zip(plain, divisors, strict=True)]
    if name == "proportional":
        kept = kept_pairs(config, head_dim or dim)
        return [w / s if c < kept else mpf(0) for c, w in enumerate(plain)]
    if name == "llama3":
        return [llama3(config, s, w) for w in plain]
    if name == "ntk_fixed":
        return [w / s ** ((mpf(c + 1) / (dim // 2)) ** mpf(config.get("mixed_b", 1))) for c, w in enumerate(plain)]
    if name == "riflex":
        return [mpf(9) / 10 * 2 * pi / mpf(config["seq_len"]) if c + 1 == config["k"] else w for c, w in enumerate(plain)]
    assert name == "yarn", name
    low, high = ramp_ends(config, base, dim)
    high = parted(low, high)
    out = []
    for c, w in enumerate(plain):
        ramp = min(max((c - low) / (high - low), mpf(0)), mpf(1))
        keep = (1 - ramp) * mpf(config.get("extrapolation_factor", 1))
        out.append(w / s * (1 - keep) + w * keep)
    return out


def llama3(config, s, w):
    original = mpf(config["original_max_position_embeddings"])
    slow, fast = mpf(config["low_freq_factor"]), mpf(config["high_freq_factor"])
    wavelength = 2 * pi / w
    if wavelength > original / slow:
        return w / s
    if wavelength < original / fast:
        return w
    t = (original / wavelength - slow) / (fast - slow)
    return (1 - t) * w / s + t * w


# ---- float32, in transformers' order ----


def powers_float32(base, dim):
    """base^(2c/dim): exponent and power each rounded to f32, the power correctly."""
    b = mpf(float(np.float32(float(base))))
    exponents = np.arange(0, dim, 2).astype(np.float32) / np.float32(dim)
    return np.array([nearest_float32(b ** mpf(float(e))) for e in exponents], np.float32)


def nearest_float32(x):
    """x rounded once: a double of 53 bits with the last bit set to odd keeps the information that the second rounding
    needs."""
    d = float(x)
    if mpf(d) != x and int(np.float64(d).view(np.int64)) % 2 == 0:
        d = float(np.nextafter(d, np.inf if x > mpf(d) else -np.inf))
    return np.float32(d)


def inv_freq_float32(config, base, dim, seq_len, head_dim=None):
    """The f32 frequencies as modeling_rope_utils.py computes them with a correctly rounded pow."""
    one, name, s = np.float32(1), rule(config), factor(config)
    power = powers_float32(base_for(config, base, dim, seq_len), dim)
    w = one / power
    if name in ("default", "ntk", "dynamic") or (name == "linear" and convention(config) == "tgi"):
        return w
    if name == "linear":
        return w / np.float32(s)
    if name == "longrope":
        divisors = config["long_factor" if uses_long_list(config, seq_len) else "short_factor"]
        return one / (np.array(divisors, np.float32) * power)
    if name == "proportional":
        w[kept_pairs(config, head_dim or dim):] = 0
        return w / np.float32(s)
    if name == "llama3":
        return llama3_float32(config, s, w)
    if name == "ntk_fixed":
        return ntk_fixed_float32(config, s, base, dim, w)
    if name == "riflex":
        w[config["k"] - 1] = 0.9 * 2 * np.pi / config["seq_len"]
        return w
    low, high = (float(x) for x in ramp_ends(config, base, dim))
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(dim // 2, dtype=np.float32) - np.float32(low)) / np.float32(high - low), 0, 1)
    keep = (one - ramp) * np.float32(config.get("extrapolation_factor", 1))
    return one / (np.float32(s) * power) * (one - keep) + w * keep


def ntk_fixed_float32(config, s, base, dim, w):
    """vLLM's two branches: another base and a Python number, or a tensor to the power b."""
    if "mixed_b" not in config:
        return np.float32(1) / powers_float32(float(base) * s, dim) / np.float32(s ** (2 / dim))
    b, half = config["mixed_b"], dim // 2
    a = nearest_float32(log(mpf(s))) / np.float32(half ** b)
    places = np.array([nearest_float32(mpf(c + 1) ** mpf(float(np.float32(b)))) for c in range(half)], np.float32)
    return w / np.array([nearest_float32(mp.exp(mpf(float(x)))) for x in a * places], np.float32)


def llama3_float32(config, s, w):
    one, original = np.float32(1), config["original_max_position_embeddings"]
    slow, fast = config["low_freq_factor"], config["high_freq_factor"]
    wavelength = one / w * np.float32(2 * np.pi)
    divided = np.where(wavelength > np.float32(original / slow), w / np.float32(s), w)
    if slow == fast:
        return divided
    t = (one / wavelength * np.float32(original) - np.float32(slow)) / np.float32(fast - slow)
    smooth = (one - t) * divided / np.float32(s) + t * divided
    medium = ~(wavelength < np.float32(original / fast)) & ~(wavelength > np.float32(original / slow))
    return np.where(medium, smooth, divided)
