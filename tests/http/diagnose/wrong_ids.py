"""Position ids as public code computes them wrongly: `position_ids` [3, n] of multimodal sequences, [n] of text."""
from dataclasses import dataclass, field, replace

import numpy as np

import truth.segments
from wrong_rotary import Rotary, of_positions
from wrong_tensors import Tensor, choose

MAKES = ["off_by_one", "offset_other", "positions_reversed", "position_stride", "positions_constant", "position_reset",
         "position_no_reset", "axes_swapped", "position_style_other", "tokens_per_second_other", "merge_size_other"]
STYLES = ["qwen2_vl", "qwen2_5_vl", "qwen2_5_vl_int_seconds", "qwen2_5_omni", "qwen3_omni"]  # qwen3_vl has one frame a segment


@dataclass(frozen=True)
class Ids:
    segments: tuple
    rules: dict = field(default_factory=dict)
    swapped: bool = False
    dtype = "f64"  # of fractional ids

    def request(self):
        return {"scheme": "rope", "segments": list(self.segments), **self.rules}

    def data(self, rng):
        return None

    def sent(self, data):
        return {}

    def values(self, data):
        ids, _ = truth.segments.positions(self.segments, **self.rules)
        ids = ids[[0, 2, 1]] if self.swapped else ids
        return {"position_ids": ids.astype(np.int64) if (ids == np.rint(ids)).all() else ids}

    def tolerance(self, name, values, u):
        return 0.0


@dataclass(frozen=True)
class Heads(Ids):
    """The same ids, seen only in heads that were rotated by them."""
    dtype: str = "f32"

    def request(self):
        return {**super().request(), "head_dim": 32, "layout": "half"}

    def rotary(self):
        ids, _ = truth.segments.positions(self.segments, **self.rules)
        return Rotary("q", self.dtype, ids[[0, 2, 1]] if self.swapped else ids, {}, 32, 32, layout="half", channels="mrope", section=(4, 6, 6))

    def data(self, rng):
        return self.rotary().data(rng)

    def sent(self, q):
        return {"q": Tensor(q, self.dtype)}

    def values(self, q):
        model = self.rotary()
        return model.values(q) if q.shape[-2] == model.n else {"q_out": np.zeros((model.n, 32))}

    def tolerance(self, name, values, u):
        return self.rotary().tolerance(name, values, u)


@dataclass(frozen=True)
class TextIds:
    at: np.ndarray  # [1, n]
    sequence: dict
    dtype = "f64"
    channels = None

    @property
    def n(self):
        return self.at.shape[1]

    def request(self):
        return {"scheme": "rope", **self.sequence}

    def data(self, rng):
        return None

    def sent(self, data):
        return {}

    def values(self, data):
        return {"position_ids": self.at[0].astype(np.int64)}

    def tolerance(self, name, values, u):
        return 0.0


def believe(rng, code):
    if code in ("axes_swapped", "position_style_other", "tokens_per_second_other", "merge_size_other"):
        return believe_segments(rng, code)
    n, offset = int(rng.integers(8, 25)), choose(rng, 0, int(rng.integers(1, 500)))
    if code == "position_no_reset":
        first = int(rng.integers(2, n - 2))
        return TextIds(np.concatenate([np.arange(first), np.arange(n - first)])[None], {"lens": [first, n - first]})
    offset = 0 if code == "position_reset" else offset
    return TextIds(offset + np.arange(n)[None], {"len": n, "offset": offset} if offset else {"len": n})


def believe_segments(rng, code):
    t, h, w = int(rng.integers(2, 5)), *choose(rng, (4, 6), (6, 4), (2, 8))
    video = {"type": "video", "grid": [t, h, w], "second_per_grid": choose(rng, 0.5, 1.0, 1.5, 2.5)}
    text = {"type": "text", "len": int(rng.integers(1, 6))}
    segments = (text, video, *choose(rng, (), ({"type": "text", "len": 3},), ({"type": "image", "grid": [1, 4, 4]},)))
    styles = ["qwen2_5_vl", "qwen2_5_vl_int_seconds"] if code == "tokens_per_second_other" else STYLES
    kind = choose(rng, Ids, Heads) if code != "merge_size_other" else Ids
    return kind(segments, {"position_style": choose(rng, *styles)})


def faults(m, rng, kind):
    if isinstance(m, TextIds):
        return [pair for pair in of_positions(m, rng) if pair[1].at.min() >= 0 and pair[0] != "positions_other"]
    out = [("axes_swapped", replace(m, swapped=True))]
    out += [("position_style_other", rule(m, position_style=s)) for s in STYLES if s != m.rules["position_style"]]
    if m.rules["position_style"].startswith("qwen2_5_vl"):
        out += [("tokens_per_second_other", rule(m, tokens_per_second=x)) for x in (1, 4, 25)]
    return out + ([] if isinstance(m, Heads) else [("merge_size_other", rule(m, spatial_merge_size=1))])


def rule(m, **fields):
    return replace(m, rules={**m.rules, **fields})
