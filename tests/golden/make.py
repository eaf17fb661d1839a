"""Writes the golden answers anew: python3 tests/golden/make.py

Each case is a request and the tensors that must come back, bit for bit, computed here with mpmath at 220 bits and rounded
once. The formulas are those of tests/truth/; the C code has no part in it. The refusals' texts are written by
hand, beside their requests."""
import json
import pathlib
import sys

import mpmath
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import truth  # noqa: E402  (the path had to be set first)
import truth.absolute as absolute  # noqa: E402
import truth.answers  # noqa: E402
import truth.bias as biases  # noqa: E402
import truth.rotary as rotary  # noqa: E402
import truth.scaling as scalings  # noqa: E402
import truth.window as window  # noqa: E402

NUMPY = {"f32": "f4", "f16": "f2"}


def rounded(rows, dtype="f32"):
    def walk(x):
        return [walk(y) for y in x] if isinstance(x, list) else truth.nearest(x, dtype)
    return np.array(walk(rows), NUMPY[dtype])


def write(name, request, **tensors):
    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "request.json").write_text(json.dumps(request) + "\n")
    for tensor, array in tensors.items():
        np.save(folder / f"{tensor}.npy", array)


def answered(case, request):
    """Of tables, indices and steps in float64, as the reference answers the request; whole numbers as they are."""
    numbers = {"index": "i4", "buckets": "i4", "positions": "i8", "rope_delta": "i8"}
    found = truth.answers.OF["/encode"](request)
    write(case, request, **{name: array.astype(numbers[name]) if name in numbers else rounded(array.tolist()) for name, array in found.items()})


def sinusoidal(case, positions, dim, dtype="f32", **parameters):
    columns = truth.sinusoidal_columns(dim, **parameters)
    table = rounded([[truth.wave(column, p) for column in columns] for p in positions], dtype)
    write(f"sinusoidal/{case}", {"scheme": "sinusoidal", "dim": dim, "positions": positions, "dtype": dtype, **parameters},
          encoding=table)


def rope(case, positions, rotary_dim, dtype="f32", base=10000.0):
    angles = [[truth.rope_angle(p, c, rotary_dim, base) for c in range(rotary_dim // 2)] for p in positions]
    write(f"rope/{case}", {"scheme": "rope", "head_dim": rotary_dim, "base": base, "positions": positions, "dtype": dtype},
          cos=rounded([[mpmath.cos(a) for a in row] for row in angles], dtype),
          sin=rounded([[mpmath.sin(a) for a in row] for row in angles], dtype))


def columns_over(case, request, columns, coordinates, dtype="f32"):
    table = [[absolute.exact(column, row) for column in columns] for row in coordinates]
    write(case, {**request, "dtype": dtype, "channels_first": False}, encoding=rounded(table, dtype))


def sinusoidal_axes(case, grid, dim, columns, coordinates=None, **parameters):
    columns_over(f"sinusoidal/{case}", {"scheme": "sinusoidal", "grid": grid, "dim": dim, **parameters}, columns,
                 coordinates or absolute.grid_coordinates(grid))


def rope_axes(case, table, rows, width, **request):
    cos, sin = ([[rotary.exact(f, channel, row) for channel in table] for row in rows] for f in ("cos", "sin"))
    write(f"rope/{case}", {"scheme": "rope", "head_dim": width, **request}, cos=rounded(cos), sin=rounded(sin))


def rope_scaled(case, positions, width, base, scaling):
    reach = max(positions) + 1
    w, factor = scalings.inv_freq(scaling, base, width, reach, width), float(scalings.attention_factor(scaling, reach))
    angles = [[p * x for x in w] for p in positions]
    write(f"rope/{case}", {"scheme": "rope", "head_dim": width, "base": base, "positions": positions, "scaling": scaling},
          cos=rounded([[factor * mpmath.cos(a) for a in row] for row in angles]),
          sin=rounded([[factor * mpmath.sin(a) for a in row] for row in angles]))


def several_axes():
    sinusoidal_axes("axial", [3, 2, 2], 14, absolute.axial(14, 3))
    sinusoidal_axes("detr", [3, 4], 12, absolute.detr(12), absolute.detr_coordinates([3, 4], True), style="detr", normalize=True)
    sinusoidal_axes("mae", [2, 3], 16, absolute.mae(16), style="mae")
    sinusoidal_axes("timm", [2, 3], 16, absolute.timm(16), style="timm")
    sinusoidal_axes("multidim", [2, 2, 2], 10, absolute.multidim(10, 3), style="multidim")
    sinusoidal_axes("vjepa", [2, 2, 3], 16, absolute.vjepa(16, 3), style="vjepa")
    rope_axes("axes", rotary.axial(24, 2), rotary.coordinates([3, 4]), 24, grid=[3, 4])
    rope_axes("pixtral", rotary.pixtral(16), rotary.coordinates([3, 4]), 16, grid=[3, 4], channels="pixtral")
    rope_axes("dinov3", rotary.dinov3(16, 100.0), rotary.coordinates([3, 4], "normalized"), 16, grid=[3, 4], channels="dinov3")
    rope_axes("merge_order", rotary.axial(8, 2), rotary.coordinates([4, 4], order="merge"), 8, grid=[4, 4], order="merge")
    ids = [[0, 1, 1, 9], [0, 1, 2, 9], [0, 3, 1, 9]]
    for name in ("mrope", "mrope_interleaved", "videorope"):
        rope_axes(name, getattr(rotary, name)(16, [4, 2, 2]), list(zip(*ids)), 16, positions=ids, channels=name,
                  mrope_section=[4, 2, 2])


def fourier():
    columns_over("fourier/nerf", {"scheme": "fourier", "positions": [[0.1, -0.7], [0.25, 3.0]], "num_freqs": 4},
                 absolute.nerf(2, 4), [(0.1, 0.25), (-0.7, 3.0)])
    columns_over("fourier/perceiver", {"scheme": "fourier", "style": "perceiver", "grid": [3, 5], "num_bands": 4},
                 absolute.perceiver([3, 5], 4), absolute.perceiver_coordinates([3, 5]))
    b = [[0.5, -1.25], [3.0, 0.125], [7.5, -0.0625]]
    columns_over("fourier/gaussian", {"scheme": "fourier", "style": "gaussian", "b": b, "positions": [[0.1, -0.7], [0.25, 3.0]]},
                 absolute.gaussian(b), [(0.1, 0.25), (-0.7, 3.0)])


def scaled():
    places = [0, 1, 4095, 131071]
    rope_scaled("linear", places, 16, 10000.0, {"type": "linear", "factor": 8})
    rope_scaled("ntk", places, 16, 10000.0, {"type": "ntk", "factor": 4})
    rope_scaled("dynamic", places, 16, 10000.0, {"type": "dynamic", "factor": 2, "max_position_embeddings": 4096})
    rope_scaled("yarn", places, 64, 150000.0, {"type": "yarn", "factor": 32, "original_max_position_embeddings": 4096,
                                               "truncate": False})
    rope_scaled("llama3", places, 128, 500000.0, {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
                                                  "original_max_position_embeddings": 8192})
    rope_scaled("longrope", places, 8, 10000.0, {"type": "longrope", "short_factor": [1, 1.1, 1.2, 1.5], "factor": 32,
                                                 "long_factor": [1, 5.5, 40, 64.8], "original_max_position_embeddings": 4096})
    rope_scaled("proportional", places, 16, 1e6, {"type": "proportional", "partial_rotary_factor": 0.5})


def absolute_rows():
    positions = [0, 3, -7, 0.1]
    for case, parameters in (("scaled", {"pe_scale": 0.3}), ("length", {"normalize": "length"}),
                             ("length_minus_one", {"normalize": "length_minus_one"})):
        values = absolute.integer(positions, **parameters)
        write(f"integer/{case}", {"scheme": "integer", "dim": 3, "positions": positions, **parameters},
              encoding=rounded([[v] * 3 for v in values]))
    for case, parameters in (("msb", {}), ("lsb", {"bit_order": "lsb", "low": -1.0})):
        answered(f"binary/{case}", {"scheme": "binary", "dim": 8, "positions": [0, 1, 252, 5], **parameters})
    table = [[1.5, -2.0], [3.0, 4.25], [5.0, 6.0], [7.0, 8.5]]
    answered("learned/offset", {"scheme": "learned", "table": table, "row_offset": 2, "len": 2})
    answered("learned/resized", {"scheme": "learned", "table": table, "table_grid": [2, 2], "grid": [3, 3],
                                 "interpolate": "bilinear_aligned"})


def steps():
    weights = {"w1": [[0.5, -0.25], [0.75, 1.0]], "b1": [0.125, 0.0], "w2": [[1.0, 0.5], [-0.25, 0.5]], "b2": [0.0, -0.5]}
    answered("recursive/relu", {"scheme": "recursive", "p0": [1.0, -0.5], "activation": "relu", "len": 6, **weights})
    timed = {"w1": [[0.5, -0.25, 1.0], [0.75, 1.0, -0.5]], "b1": [0.125, 0.0], "w2": [[1.0, 0.5, 0.25], [-0.25, 0.5, 1.0]],
             "b2": [0.0, -0.5]}
    for method in ("rk4_38", "rk4", "midpoint", "euler"):
        answered(f"floater/{method}", {"scheme": "floater", "p0": [1.0, -0.5], "dt": 0.25, "substeps": 2, "method": method, "len": 5,
                                       **timed})


def xpos():
    places = [0, 100, -3, 5000]
    scale = [[rotary.xpos_exact(p, c, 16) for c in range(8)] for p in places]
    write("xpos/scale", {"scheme": "xpos", "head_dim": 16, "positions": places, "outputs": ["scale"]}, scale=rounded(scale))


def multimodal():
    parts = [{"type": "text", "len": 2}, {"type": "video", "grid": [3, 4, 4], "second_per_grid": 0.3}, {"type": "text", "len": 2}]
    for style in ("qwen2_vl", "qwen2_5_vl", "qwen2_5_omni", "videorope"):
        answered(f"rope/segments_{style}", {"scheme": "rope", "segments": parts, "position_style": style,
                                            "outputs": ["positions", "rope_delta"]})


def alibi(case, num_heads, q, k, dtype="f32"):
    slopes = truth.alibi_slopes(num_heads)
    bias = [[[-m * abs(mpmath.mpf(a) - mpmath.mpf(b)) for b in k] for a in q] for m in slopes]
    write(f"alibi/{case}", {"scheme": "alibi", "num_heads": num_heads, "q_positions": q, "k_positions": k, "dtype": dtype,
                            "outputs": ["bias", "slopes"]},
          bias=rounded(bias, dtype) + 0, slopes=rounded(slopes, dtype))


def windows():
    tables = {"swin": [[(7 * r + h) % 11 - 5.25 for h in range(2)] for r in range(15)],
              "beit": [[(5 * r + h) % 13 - 6.5 for h in range(2)] for r in range(18)]}
    for scheme, table in tables.items():
        answered(f"{scheme}/oblong", {"scheme": scheme, "grid": [2, 3], "table": table, "outputs": ["bias", "index"]})
        answered(f"{scheme}/index", {"scheme": scheme, "grid": [3, 2]})
    weights = {"w1": [[0.5, -1.25], [2.0, 0.75], [-1.0, 1.5]], "b1": [0.125, -0.5, 0.25], "w2": [[1.5, -0.75, 0.5], [-2.0, 0.25, 1.0]]}
    for case, grid, pretrained in (("window", [3, 4], None), ("pretrained", [4, 3], [12, 12]), ("line", [1, 4], None)):
        bias = window.swinv2_exact(*grid, **weights, pretrained=pretrained)
        more = {"pretrained_grid": pretrained} if pretrained else {}
        write(f"swinv2/{case}", {"scheme": "swinv2", "grid": grid, **weights, **more}, bias=rounded(bias))


def bias_case(case, request, q, k, value, dtype="f32"):
    """value(head, distance): exact, of heads 0 ... num_heads-1."""
    table = [[[value(h, biases.distance(a, b)) for b in k] for a in q] for h in range(request["num_heads"])]
    write(case, {**request, "q_positions": q, "k_positions": k, "dtype": dtype}, bias=rounded(table, dtype) + 0)


def bias_schemes():
    k = [0, 1, 3.5, 100, 4097, 10 ** 6, 2 ** 40]
    r1, r2 = [1, 0.3], [1, 12.7]
    bias_case("kerple/log", {"scheme": "kerple", "num_heads": 2, "r1": r1, "r2": r2}, [0, 0.1], k,
              lambda h, n: biases.kerple_exact("log", r1[h], r2[h], n))
    power = {"scheme": "kerple", "num_heads": 2, "kind": "power", "r1": 0.5, "r2": [1.5, 0.1]}
    bias_case("kerple/power", power, [0, 0.1], k, lambda h, n: biases.kerple_exact("power", 0.5, power["r2"][h], n))
    bias_case("kerple/half_precision", {"scheme": "kerple", "num_heads": 1}, [0, 0.1], k,
              lambda h, n: biases.kerple_exact("log", 1, 1, n), "f16")
    bias_case("sandwich/default", {"scheme": "sandwich", "num_heads": 12}, [0, 0.1], k,
              lambda h, n: biases.sandwich_exact(h, 12, n))
    bias_case("sandwich/narrow", {"scheme": "sandwich", "num_heads": 1, "bar_dim": 6, "base": 50}, [0, 7], [*range(40)],
              lambda h, n: biases.sandwich_exact(h, 1, n, 6, 50))
    for case, shape in (("encoder", {}), ("decoder", {"bidirectional": False}), ("ties", {"num_buckets": 64, "max_distance": 100})):
        answered(f"t5/{case}", {"scheme": "t5", "len": 150, **shape})
    answered("t5/table", {"scheme": "t5", "table": [[0.1, -2.5], [0.3, 4.25], [5.0, 6.0], [7.0, -0.7]], "len": 6})
    w = {"w1": [[1.0], [-0.5]], "b1": [0.0, 0.25], "w2": [[2.0, -3.0], [1.0, 0.5]], "b2": [0.25, -1.0]}
    answered("fire/small", {"scheme": "fire", "len": 5, "offset": 510, **w})


def relative_schemes():
    answered("shaw/clipped", {"scheme": "shaw", "len": 20, "max_relative": 6})
    answered("shaw/reversed", {"scheme": "shaw", "q_len": 3, "k_len": 20, "direction": "query_minus_key"})
    far = {"scheme": "deberta", "q_positions": [0, 300, 599], "k_positions": [*range(600)]}
    answered("deberta/v3", {**far, "position_buckets": 256})
    answered("deberta/v1", far)
    for scheme, layout, distances in (("transformer_xl", "half", range(6, -1, -1)), ("xlnet", "half", range(7, -4, -1)),
                                      ("conformer", "interleaved", range(6, -4, -1))):
        rows = [[truth.wave(column, p) for column in truth.sinusoidal_columns(16, layout=layout)] for p in distances]
        write(f"{scheme}/memory", {"scheme": scheme, "q_len": 4, "k_len": 7, "d_model": 16}, encoding=rounded(rows), distances=np.array(distances, "i4"))


def main():
    relative_schemes()
    sinusoidal("paper", [0, 1, 2, 3, 1000, 1048576], 64)
    sinusoidal("far", [2 ** 40, -2 ** 40, 2 ** 31 + 1, 123456789012], 32)
    sinusoidal("fractions", [0.5, -0.1, 3.14159, 1e-9], 16, layout="half")
    sinusoidal("odd_paper", [1, 7, 4096], 5)
    sinusoidal("odd_pad", [1, 7, 4096], 7, odd="pad", freq_shift=1, layout="half")
    sinusoidal("odd_truncate", [1, 7, 4096], 7, odd="truncate", flip_sin_to_cos=True)
    sinusoidal("half_precision", [0, 1, 65536, 999983], 24, "f16", angle_scale=0.25)
    rope("llama", [0, 1, 17, 4095, 131071, 1048576], 128, base=500000.0)
    rope("far", [2 ** 40 - 1, -(2 ** 39) - 5, 10 ** 12], 64)
    rope("half_precision", [0, 1, 1023, 100003], 32, "f16")
    alibi("eight_heads", 8, [0, 5, 100], [0, 1, 50, 1000])
    alibi("twelve_heads", 12, [3, 65535], [0, 2, 4097, 10 ** 6])
    alibi("fractions", 5, [0.3, 2 ** 33], [0.1, -7.75])
    windows()
    bias_schemes()
    several_axes()
    fourier()
    scaled()
    absolute_rows()
    steps()
    xpos()
    multimodal()
    write("none/small", {"scheme": "none", "len": 3, "dim": 5}, encoding=np.zeros((3, 5), "f4"))


if __name__ == "__main__":
    main()
