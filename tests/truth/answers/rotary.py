"""Rotary schemes: the frequency of each pair, its axis, the tables in every form, and the turning of q and k."""
import numpy as np
from mpmath import mpf

import truth
import truth.ggml as ggml
import truth.rotary as formulas
import truth.scaling as scalings
from truth.answers import sequences

SECTIONS = {"mrope": formulas.mrope, "mrope_interleaved": formulas.mrope_interleaved, "videorope": formulas.videorope}


def is_of_ggml(scaling):
    return scaling.get("convention") == "ggml" or "divisors" in scaling


def ggml_rules(scaling, reach):
    """The arguments of ggml's formulas, and its factor on cos and sin."""
    if scalings.rule(scaling) == "longrope":
        return {"divisors": scaling["long_factor" if reach > scaling["original_max_position_embeddings"] else "short_factor"]}, 1.0
    ext, s, factor = scaling.get("extrapolation_factor", 1), scaling.get("factor", 1), scaling.get("attn_factor", 1)
    rules = {"s": s, "divisors": scaling.get("divisors")}
    if scalings.rule(scaling) == "yarn":
        rules["yarn"] = (scaling["original_max_position_embeddings"], ext, scaling.get("beta_fast", 32), scaling.get("beta_slow", 1))
        above, below = scaling.get("mscale", 1), scaling.get("mscale_all_dim", 0)
        factor = mpf(factor) * (ggml.magnitude(s, above) / ggml.magnitude(s, below) if ext else 1)
    return rules, float(scaling.get("attention_factor", factor))


def usual_section(name, pairs):
    """Three eighths each for height and width, the rest for time; of imrope, thirds."""
    if name == "imrope":
        return [(pairs + 2 - axis) // 3 for axis in range(3)]
    return [pairs - 2 * (3 * pairs // 8), 3 * pairs // 8, 3 * pairs // 8]


class Turns:
    """What a request turns by: a Channel for each pair, rows of coordinates, the factor, the order of the channels."""

    def __init__(self, request, n=None):
        channels = request.get("channels") or ("mrope" if "segments" in request else None)
        self.request, self.head_dim = request, request.get("head_dim", 64)
        share = request.get("partial_rotary_factor")
        self.width = request.get("rotary_dim") or (self.head_dim if share is None else int(share * self.head_dim) // 2 * 2)
        self.base = request.get("base", 100.0 if channels == "dinov3" else 10000.0)
        self.axes = sequences.axes(request, n, request.get("coords", "normalized" if channels == "dinov3" else "index"))
        self.rows = list(zip(*self.axes))
        scaling = request.get("scaling") or {}
        reach = scaling.get("seq_len", max(int(max(map(max, self.axes))) + 1, 0))
        if is_of_ggml(scaling):
            self.rules, factor = ggml_rules(scaling, reach)
            self.ladder = ggml.frequencies(self.width, self.base, **self.rules)
        else:
            self.rules, factor = {}, float(scalings.attention_factor(scaling, reach))
            self.ladder = scalings.inv_freq(scaling, self.base, self.width, reach, self.head_dim)
            self.ladder_float32 = scalings.inv_freq_float32(scaling, self.base, self.width, reach, self.head_dim)
        self.factor = request.get("attention_factor", factor)
        self.layout = request.get("layout", "interleaved")
        self.set_channels(channels, request.get("mrope_section"))

    def set_channels(self, name, section):
        """The axis and the frequency of each pair, and how many pairs the blocks of the layout hold."""
        n_axes, request = len(self.axes), self.request
        self.blocks, self.is_text = (self.width // 2,), False
        if "inv_freq" in request:
            self.channels = [formulas.Channel(0, mpf(w)) for w in request["inv_freq"]]
        elif request.get("channel_axis") or name in ("alternating", "openpangu", "xdrope") or request.get("ladder"):
            self.set_list(name, section, n_axes)
        elif name in SECTIONS or name == "imrope":
            section = section or usual_section(name, self.width // 2)
            axes = [ggml.imrope_axis(c, section) for c in range(self.width // 2)] if name == "imrope" else \
                [channel.axis for channel in SECTIONS[name](self.width, section)]
            self.is_text = n_axes == 1  # a token of text is at the same place on all three axes
            self.channels = [formulas.Channel(0, mpf(0)) if axis == 3 else formulas.Channel(axis if n_axes > 1 else 0, w)
                             for axis, w in zip(axes, self.ladder)]
        elif name:
            self.channels = {"pixtral": formulas.pixtral, "dinov3": formulas.dinov3}[name](self.width, self.base)
        elif n_axes == 1:
            self.channels = [formulas.Channel(0, w) for w in self.ladder]
        else:
            widths, order = request.get("axes_dim"), request.get("axis_order")
            if request.get("coords") == "pixel":
                self.channels = formulas.pixel(self.width, n_axes, widths, request.get("max_freq", 10))
            else:
                self.channels = formulas.axial(self.width, n_axes, widths, order, self.base)
            widths = widths or formulas.default_axes_dim(self.width, n_axes)
            self.blocks = [widths[axis] // 2 for axis in order or range(n_axes)]

    def set_list(self, name, section, n_axes):
        """A list of axes, or a word for one; on one ladder, or each axis on its own."""
        request, pairs = self.request, self.width // 2
        widths = request.get("axes_dim") or formulas.default_axes_dim(self.width, n_axes)
        axes = request.get("channel_axis") or {
            "alternating": lambda: [c % max(n_axes, 2) for c in range(pairs)], "openpangu": lambda: formulas.openpangu(section),
            "xdrope": lambda: [axis for axis, n in enumerate(section) for _ in range(n)]}.get(
                name, lambda: [axis for axis in request.get("axis_order") or range(n_axes) for _ in range(widths[axis] // 2)])()
        if not name and not request.get("channel_axis"):
            self.blocks = [widths[axis] // 2 for axis in request.get("axis_order") or range(n_axes)]
        if request.get("ladder") == "own" or (not name and not request.get("channel_axis") and request.get("ladder") != "shared"):
            channels = formulas.on_own_ladders(axes, request.get("axis_base") or [self.base] * (max(axes) + 1))
        else:
            channels = [formulas.Channel(axis, w) if axis >= 0 else formulas.Channel(0, mpf(0)) for axis, w in zip(axes, self.ladder)]
        self.is_text = n_axes == 1 and max(axes) > 0  # one number counts for every axis
        self.axes = self.axes * (max(axes) + 1) if self.is_text else self.axes
        self.rows = list(zip(*self.axes))
        self.channels = channels

    def frequencies(self):
        """Of each pair, radians per position; arith ggml: the angle at position 1."""
        if self.request.get("arith") == "ggml":
            return ggml.turns_f32(self.width, self.base, [1], **self.rules)[0].astype(float)
        if self.request.get("arith") == "float32":
            return self.ladder_float32.astype(float)
        return np.array([float(c.frequency) * (np.pi if c.times_pi else 1) for c in self.channels])

    def tables(self):
        """cos and sin [n, C]; arith ggml and float32 in steps of float32."""
        if self.request.get("arith") == "float32":
            angle = self.request.get("direction", 1) * np.array(self.axes[0], "f4")[:, None] * self.ladder_float32
            return tuple(np.float32(self.factor) * turn(angle.astype(float)).astype("f4") for turn in (np.cos, np.sin))
        if self.request.get("arith") != "ggml":
            return formulas.tables(self.channels, self.rows, self.request.get("direction", 1), self.factor)
        still = [channel.frequency == 0 for channel in self.channels]
        axis_of = (lambda c: 3 if still[c] else self.channels[c].axis) if len(self.axes) > 1 or any(still) else None
        cos, sin = ggml.table_f32(self.width, self.base, self.axes, g=self.factor, axis_of=axis_of, **self.rules)
        return cos.astype(float), self.request.get("direction", 1) * sin.astype(float)

    def scale(self, length):
        """xPos's factor on q; k is divided by it."""
        request = self.request
        center = formulas.xpos_center(request.get("center", 0), length, request.get("offset", 0))
        return formulas.xpos_scale(self.axes[0], self.width, request.get("scale_base", 512.0), request.get("gamma", 0.4), center)


def form_of(turns, cos, sin):
    form = turns.request.get("form", "pairs")
    if form == "pairs":
        return {"cos": cos, "sin": sin}
    if form == "expanded":
        return {name: formulas.expand(table, turns.layout, turns.blocks) for name, table in (("cos", cos), ("sin", sin))}
    if form == "concat":
        return {"cos_sin": np.hstack([cos, sin])}
    if form == "complex":
        return {"freqs_cis": np.stack([cos, sin], -1)}
    return {"matrix": np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)}


def outputs(request):
    turns = Turns(request)
    found = form_of(turns, *turns.tables())
    if request["scheme"] == "xpos":
        found["scale"] = turns.scale(len(turns.rows))
    usual = list(found)
    found["inv_freq"] = turns.frequencies()
    positions = [[float(p) for p in axis] for axis in turns.axes]
    found["positions"] = np.array(positions * 3 if turns.is_text and len(positions) == 1 else positions)
    if "segments" in request:
        found["rope_delta"] = np.array(truth.segments.positions(request["segments"], **sequences.segment_rules(request))[1])
    else:
        last = max(request["grid"]) - 1 if "grid" in request else max(map(max, turns.axes))
        found["rope_delta"] = np.array(np.floor(last) + 1 - len(turns.rows))
    return found, usual


SCHEMES = {"rope": outputs, "xpos": outputs}
