"""Sequences of a request: each a function of the draw that returns its fields and states how many rows (n) and axes it has."""
import numpy as np

import truth.segments as segments


def run(d, low=-50, high=50):
    d.n = d.whole(1, 20)
    return {"len": d.n, **({"offset": d.whole(low, high)} if d.maybe() else {})}


def listed(d, place=None):
    d.n = d.whole(1, 9)
    return {"positions": d.places(d.n, place)}


def packed(d):
    many = [d.whole(1, 6) for _ in range(d.whole(1, 3))]
    d.n = sum(many)
    return d.one_of({"lens": many}, {"cu_seqlens": [0, *np.cumsum(many).tolist()]})


def sharded(d):
    d.n, of = 2 * d.whole(1, 6), d.whole(1, 4)
    split = d.one_of({}, {"split": "zigzag"}, {"split": "contiguous"})
    return {"len": d.n, "shard": {"rank": d.whole(0, of - 1), "of": of, **split}}


def masked(d):
    """Of a padded batch."""
    d.n = 3
    rows = [d.one_of([0, 1, 1], [1, 1, 0], [1, 1, 1], [0, 0, 1]) for _ in range(d.whole(1, 3))]
    more = d.one_of({}, {"padding": "counted"}, {"pad_position": d.whole(0, 5)}, {"offset": d.whole(0, 9)})
    return {"attention_mask": rows, **more}


def rows_of_a_batch(d):
    d.n = d.whole(1, 5)
    return {"positions": [d.places(d.n) for _ in range(d.whole(1, 3))], "positions_layout": "batch"}


def grid(d, axes=(2, 3)):
    d.n_axes = d.one_of(*axes)
    sides = [d.whole(1, 4) for _ in range(d.n_axes)]
    d.n = int(np.prod(sides))
    return {"grid": sides}


def axes_of_positions(d):
    d.n_axes, d.n = d.whole(2, 3), d.whole(1, 6)
    return {"positions": [d.places(d.n) for _ in range(d.n_axes)]}


def axes_of_a_batch(d):
    d.n_axes, d.n, layout = 3, d.whole(1, 4), d.one_of("batch_axes", "axes_batch")
    outer, inner = (d.whole(1, 3), 3) if layout == "batch_axes" else (3, d.whole(1, 3))
    return {"positions": [[d.places(d.n) for _ in range(inner)] for _ in range(outer)], "positions_layout": layout}


NUMBERS = {"qwen2_5_vl": ("tokens_per_second", 2, 4), "qwen2_5_vl_int_seconds": ("tokens_per_second", 2, 4), "videorope": ("temporal_scale", 0.5, 1),
           "qwen2_5_omni": ("seconds_per_chunk", 1, 2), "qwen3_omni": ("position_id_per_seconds", 13, 25)}


def ids_of_segments(d):
    """M-RoPE's: several kinds of segments by the rules of one model family."""
    d.n_axes, style = 3, d.one_of(*segments.STYLES)
    kinds = ["text", "image", "video"] + ["audio", "audio_in_video"] * ("omni" in style)
    more = {NUMBERS[style][0]: d.one_of(*NUMBERS[style][1:])} if style in NUMBERS and d.maybe() else {}
    return {"segments": [segment(d, d.one_of(*kinds), style) for _ in range(d.whole(1, 5))], "position_style": style, **more}


def segment(d, kind, style):
    if kind == "text":
        return {"type": kind, "len": d.whole(1, 9)}
    if kind == "audio":
        return {"type": kind, **d.one_of({"len": d.whole(1, 40)}, {"mel_frames": d.whole(20, 400)})}
    frames = 1 if style == "qwen3_vl" or kind == "image" else d.whole(1, 5)
    sound = {"audio_len": d.whole(1, 60)} if kind == "audio_in_video" else {}
    seconds = {"second_per_grid": d.one_of(0.08, 0.3, 0.5, 2.5)} if kind != "image" and d.maybe(0.6) else {}
    return {"type": kind, "grid": [frames, 2 * d.whole(1, 3), 2 * d.whole(1, 6)], **seconds, **sound}


def pairs(d, place=None):
    """Queries and keys apart."""
    d.n = d.whole(1, 12)
    if d.maybe():
        return {"q_positions": d.places(d.whole(1, 9), place), "k_positions": d.places(d.n, place)}
    more = {name: d.whole(-9, 9) for name in ("offset", "q_offset") if d.maybe()}
    return {"q_len": d.whole(1, 20), "k_len": d.n, **more}


def cache(d):
    """Of /rotate: no sequence but that of the keys, where queries are the last rows or those from q_offset on."""
    d.n = d.whole(1, 12)
    return {"offset": d.whole(0, 30)} if d.maybe() else {}


def natural(d):
    return d.whole(0, 40)


def moderate(d):
    return d.one_of(d.whole(-600, 600), d.rng.uniform(-600, 600))


def integral(d):
    return d.whole(-200, 200)


ONE_AXIS = [run, listed, packed, sharded, masked, rows_of_a_batch]
NATURAL = [lambda d: run(d, 0, 30), lambda d: listed(d, natural), packed]
PAIRS = [run, listed, pairs, pairs, packed, masked]
INTEGRAL_PAIRS = [run, lambda d: listed(d, integral), lambda d: pairs(d, integral)]
WINDOW = [lambda d: grid(d, (2,)), lambda d: {"len": d.whole(1, 9)}]
OF = {
    "none": ONE_AXIS, "integer": [run, listed], "binary": NATURAL, "recursive": NATURAL, "floater": NATURAL,
    "learned": [*NATURAL, WINDOW[0], WINDOW[0]], "sinusoidal": [*ONE_AXIS, grid, grid, axes_of_positions],
    "fourier": [listed, run, grid, axes_of_positions], "xpos": [run, lambda d: listed(d, moderate)],
    "rope": [*ONE_AXIS, *[grid] * 3, axes_of_positions, axes_of_a_batch, *[ids_of_segments] * 3],
    **dict.fromkeys(("alibi", "t5", "kerple", "fire", "sandwich"), PAIRS), **dict.fromkeys(("swin", "swinv2", "beit"), WINDOW),
    "decomposed": WINDOW[:1], **dict.fromkeys(("shaw", "deberta", "transformer_xl", "xlnet", "conformer"), INTEGRAL_PAIRS),
}
