"""Heads of GGUF files, written from the format's description: a writer that shares nothing with the reader under test.

`head(keys, tensors)` writes any keys; `ARCHITECTURES` has the keys about positions of ten public models, with the types
that llama.cpp reads. Which keys a converted file has is from memory, not compared with the converter line by line, nor with
files. A file also has sizes, names and the tokenizer: some of them are among the others here.
"""
import struct

import numpy as np

TYPES = {"u8": 0, "i8": 1, "u16": 2, "i16": 3, "u32": 4, "i32": 5, "f32": 6, "bool": 7, "string": 8, "array": 9, "u64": 10,
         "i64": 11, "f64": 12}
LETTERS = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "f32": "f", "bool": "B", "u64": "Q", "i64": "q",
           "f64": "d"}


def text(word):
    raw = word if isinstance(word, bytes) else word.encode()
    return struct.pack("<Q", len(raw)) + raw


def elements(kind, values):
    return b"".join(map(text, values)) if kind == "string" else struct.pack(f"<{len(values)}{LETTERS[kind]}", *values)


def value(kind, x):
    """kind: "u32", or "u32[]" for an array."""
    if kind.endswith("[]"):
        inner = kind[:-2]
        return struct.pack("<IIQ", TYPES["array"], TYPES[inner], len(x)) + elements(inner, x)
    return struct.pack("<I", TYPES[kind]) + elements(kind, [x])


def key(name, kind, x):
    return text(name) + value(kind, x)


def head(keys, tensors=(), version=3, alignment=32, data=True, n_keys=None, n_tensors=None):
    """keys: (name, kind, value); tensors: (name, numbers or a shape). The data of numbers follow, aligned."""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors) if n_tensors is None else n_tensors,
                                len(keys) if n_keys is None else n_keys)
    out += b"".join(key(*k) for k in keys)
    body = b""
    for name, numbers in tensors:
        is_shape = isinstance(numbers, tuple)
        shape = numbers if is_shape else (len(numbers),)
        out += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        out += struct.pack("<IQ", 0, len(body))
        raw = b"" if is_shape else np.asarray(numbers, "<f4").tobytes()
        body += raw + bytes(-len(raw) % alignment)
    out += bytes(-len(out) % alignment)
    return out + body if data else out


def general(architecture):
    return [("general.architecture", "string", architecture), ("general.type", "string", "model"),
            ("general.name", "string", "a model"), ("general.file_type", "u32", 1), ("general.quantization_version", "u32", 2)]


def tokenizer(n=40):
    return [("tokenizer.ggml.model", "string", "gpt2"), ("tokenizer.ggml.tokens", "string[]", [f"t{i}" for i in range(n)]),
            ("tokenizer.ggml.token_type", "i32[]", [1] * n), ("tokenizer.ggml.add_bos_token", "bool", 1)]


def model(architecture, layers, context, width, heads, kv_heads, *more):
    a = architecture
    sizes = [("block_count", "u32", layers), ("context_length", "u32", context), ("embedding_length", "u32", width),
             ("feed_forward_length", "u32", 4 * width), ("attention.head_count", "u32", heads), ("attention.head_count_kv", "u32", kv_heads)]
    return general(a) + [(f"{a}.{n}", k, x) for n, k, x in sizes] + [(f"{a}.{n}", k, x) for n, k, x in more] + tokenizer()


def llama3_divisors(base=500000.0, r=128, factor=8.0, low=1.0, high=4.0, original=8192):
    """rope_freqs of Llama 3.1: 1 for short wavelengths, factor for long ones, and between them the inverse of the blend."""
    w = base ** -(np.arange(0, r, 2) / r)
    wavelength = 2 * np.pi / w
    smooth = (original / wavelength - low) / (high - low)
    blend = 1 / ((1 - smooth) / factor + smooth)
    return np.where(wavelength < original / high, 1, np.where(wavelength > original / low, factor, blend)).astype("f4")


FREQS = [("rope_freqs.weight", llama3_divisors())]
LISTS = [("rope_factors_long.weight", np.linspace(1, 60, 48, dtype="f4")), ("rope_factors_short.weight", np.linspace(1, 3, 48, dtype="f4"))]

# name: (keys, tensors, the layer type asked for, fields of the configuration that must be answered)
ARCHITECTURES = {
    "llama": (model("llama", 32, 131072, 4096, 32, 8, ("rope.freq_base", "f32", 500000.0), ("attention.layer_norm_rms_epsilon", "f32", 1e-5),
                    ("vocab_size", "u32", 128256), ("rope.dimension_count", "u32", 128)),
              FREQS, None, {"head_dim": 128, "base": 500000, "layout": "interleaved"}),
    "qwen2": (model("qwen2", 28, 131072, 3584, 28, 4, ("rope.freq_base", "f32", 1e6), ("rope.scaling.type", "string", "yarn"),
                    ("rope.scaling.factor", "f32", 4.0), ("rope.scaling.original_context_length", "u32", 32768)),
              [], None, {"head_dim": 128, "base": 1e6, "layout": "half"}),
    "qwen3": (model("qwen3", 36, 40960, 4096, 32, 8, ("rope.freq_base", "f32", 1e6), ("attention.key_length", "u32", 128),
                    ("attention.value_length", "u32", 128)), [], None, {"head_dim": 128, "base": 1e6, "layout": "half"}),
    "gemma3": (model("gemma3", 26, 32768, 1152, 4, 1, ("attention.key_length", "u32", 256), ("attention.value_length", "u32", 256),
                     ("rope.freq_base", "f32", 1e6), ("attention.sliding_window", "u32", 512)),
               [], "sliding_attention", {"head_dim": 256, "base": 10000, "layout": "half"}),
    "deepseek2": (model("deepseek2", 61, 163840, 7168, 128, 1, ("rope.freq_base", "f32", 10000.0), ("attention.kv_lora_rank", "u32", 512),
                        ("attention.key_length", "u32", 576), ("attention.value_length", "u32", 512), ("attention.key_length_mla", "u32", 192),
                        ("attention.value_length_mla", "u32", 128), ("rope.dimension_count", "u32", 64), ("rope.scaling.type", "string", "yarn"),
                        ("rope.scaling.factor", "f32", 40.0), ("rope.scaling.original_context_length", "u32", 4096),
                        ("rope.scaling.yarn_log_multiplier", "f32", 0.1)),
                  [], None, {"head_dim": 192, "rotary_dim": 64, "rotary_offset": 128, "layout": "interleaved"}),
    "gpt-oss": (model("gpt-oss", 24, 131072, 2880, 64, 8, ("rope.freq_base", "f32", 150000.0), ("attention.key_length", "u32", 64),
                      ("attention.value_length", "u32", 64), ("attention.sliding_window", "u32", 128), ("rope.scaling.type", "string", "yarn"),
                      ("rope.scaling.factor", "f32", 32.0), ("rope.scaling.original_context_length", "u32", 4096)),
                [], None, {"head_dim": 64, "base": 150000, "layout": "half"}),
    "phi3": (model("phi3", 32, 131072, 3072, 32, 32, ("rope.scaling.original_context_length", "u32", 4096), ("rope.dimension_count", "u32", 96),
                   ("rope.freq_base", "f32", 10000.0), ("attention.sliding_window", "u32", 262144),
                   ("rope.scaling.attn_factor", "f32", 1.1902380714238083)),
             LISTS, None, {"head_dim": 96, "base": 10000, "layout": "half"}),
    "qwen2vl": (model("qwen2vl", 28, 32768, 3584, 28, 4, ("rope.freq_base", "f32", 1e6), ("rope.dimension_sections", "i32[]", [16, 24, 24, 0])),
                [], None, {"head_dim": 128, "channels": "mrope", "mrope_section": [16, 24, 24]}),
    "llama4": (model("llama4", 48, 10485760, 5120, 40, 8, ("rope.freq_base", "f32", 500000.0), ("attention.key_length", "u32", 128),
                     ("attention.value_length", "u32", 128), ("rope.dimension_count", "u32", 128)),
               FREQS, "chunked_attention", {"head_dim": 128, "base": 500000, "layout": "interleaved"}),
    "bloom": (model("bloom", 30, 2048, 4096, 32, 32), [], None, {"scheme": "alibi", "num_heads": 32}),
}


def file(name, **more):
    keys, tensors, *_ = ARCHITECTURES[name]
    return head(keys, [("token_embd.weight", (0, 1)), *tensors], **more)


def lying(rng):
    """A head of which something may be wrong: a key twice, of any type and value, bytes changed, the end cut, tensors of any form."""
    name = rng.choice(["llama", "qwen2", "gemma3", "phi3", "qwen2vl", "bloom"])
    keys, tensors, *_ = ARCHITECTURES[name]
    keys, tensors = [k for k in keys if rng.random() < 0.95], list(tensors)
    rests = [k.partition(".")[2] for k, _, _ in keys if k.startswith(name)] + ["rope.dimension_sections", "rope.scaling.finetuned", "rope.other", "attention.scale"]
    for _ in range(rng.integers(0, 4)):
        kind = rng.choice([kind for kind in TYPES if kind != "array"])
        one = {"string": ["", "yarn", "a" * 1025, b"\xff", b"a\0b"], "bool": [0, 1, 1, 2], "f32": [0.5, np.nan, np.inf, -np.inf], "f64": [0.1, np.nan, -np.inf],
               "u64": [8, 2**64 - 1], "i64": [8, -(2**63)]}.get(kind, [0, 8, 64])
        x = one[rng.integers(len(one))]
        new = f"{rng.choice([name, name, name, 'llama', 'general'])}.{rng.choice([*rests, 'architecture', 'alignment', 'name'])}"
        is_list = rng.random() < 0.3
        new = (new, f"{kind}[]", [x] * rng.choice([0, 1, 3, 4, 4 if kind == "string" else 65537])) if is_list else (new, kind, x)
        keys = [k for k in keys if k[0] != new[0] or rng.random() < 0.1]
        keys.insert(rng.integers(len(keys) + 1), new)
    if rng.random() < 0.3:
        form = [(4, 4), (65537,), (), (1, 1, 1, 1, 1), [1.0, 2.0], [np.nan] * 64, [1.0] * 64, []][rng.integers(8)]
        tensors.append((rng.choice(["", "blk.0.", "blk.1."]) + rng.choice(["rope_freqs.weight", "rope_factors_long.weight", "other"]), form))
    body = bytearray(head(keys, tensors, version=rng.choice([2, 3, 3, 3, 1, 1 << 24]) if rng.random() < 0.1 else 3))
    for _ in range(rng.integers(1, 3) if rng.random() < 0.4 else 0):
        body[rng.integers(len(body))] = rng.integers(256)
    return bytes(body[: rng.integers(len(body))] if rng.random() < 0.2 else body)


def samples():
    """Small heads of both versions and every type."""
    small = [("general.architecture", "string", "llama"), ("llama.attention.key_length", "u32", 8)]
    every = [(f"x.{kind}", kind, "a" if kind == "string" else 1) for kind in TYPES if kind != "array"]
    every += [(f"x.{kind}s", f"{kind}[]", ["a", "b"] if kind == "string" else [0, 1]) for kind in TYPES if kind != "array"]
    yield head(small)
    yield head(small, version=2)
    yield head(small + every)
    yield head(small, [("rope_freqs.weight", [1, 2, 3, 4])])
    yield head(small + [("general.alignment", "u32", 64)], [("a", (2, 3)), ("blk.0.rope_freqs.weight", [1, 2, 3, 4])], alignment=64)
    yield head(small + [("llama.rope.freq_base", "f32", 5e5), ("llama.rope.scaling.type", "string", "yarn"), ("llama.rope.scaling.factor", "f32", 4),
                        ("llama.context_length", "u32", 64)])
    yield head([("general.architecture", "string", "gemma3"), ("gemma3.attention.key_length", "u32", 8), ("gemma3.block_count", "u32", 6),
                ("gemma3.attention.sliding_window", "u32", 4), ("gemma3.attention.sliding_window_pattern", "bool[]", [1, 0, 1, 0, 1, 1])])
