"""/diagnose and mistakes of positions on several axes: tensors are computed here in float64 by the papers' formulas, sent as float32, and the
first finding must name the mistake; the first candidate, encoded again, must give the tensor."""
import itertools
import json

import numpy as np
import pytest

import truth.resample as resample
from diagnosing import codes_of, diagnose, named
from tensors import from_safetensors, multipart, npy

BASE = 10000.0


def ladder(width, base=BASE):
    """Frequencies of a block of channels (Su et al. 2021)."""
    return base ** (-2 * np.arange(width // 2) / width)


def grid_positions(*sides):
    """[axes, n], the last axis fastest."""
    return np.stack([a.ravel() for a in np.meshgrid(*map(np.arange, sides), indexing="ij")]).astype(float)


def blocks(positions, widths):
    """Angles of axial channels: a block of its own for each axis."""
    return np.concatenate([p[:, None] * ladder(w) for p, w in zip(positions, widths)], axis=1)


def shared(positions, axis_of, frequencies):
    """Angles of one list of frequencies, pair c of which follows axis axis_of[c]."""
    return np.stack([positions[a] * w for a, w in zip(axis_of, frequencies)], axis=1)


def mrope_axes(t, h, w):
    return [0] * t + [1] * h + [2] * w


def tables(angles):
    return {"cos": np.cos(angles).astype(np.float32).tolist(), "sin": np.sin(angles).astype(np.float32).tolist()}


def first(server, body):
    """Codes of the findings that are faults, in order; the first candidate gives what was sent."""
    answer = diagnose(server, body)
    assert answer["explained"], answer["findings"]
    candidate = answer["candidates"][0]
    transforms = {t["name"] for t in candidate["transforms"]}
    names = [name for name in ("cos", "sin", "encoding", "position_ids") if name in body]
    if not transforms:
        outputs = ["positions" if name == "position_ids" else name for name in names]
        table = {"table": body["table"]} if "table" in body else {}
        response = server.ask("/encode", **candidate["config"], **candidate["sequence"], **table, outputs=outputs, format="safetensors", dtype="f64")
        for name, got in zip(names, from_safetensors(response).values()):
            assert np.abs(np.asarray(got) - np.asarray(body[name])).max() < 1e-5
    return answer["findings"][0], named(answer)


def expect(server, body, code, pointer=None, found=None):
    finding, names = first(server, body)
    assert names == {code}, (finding, names)
    if pointer:
        assert finding["pointer"] == pointer, finding
    if found is not None:
        assert finding["found"] == found, finding
    assert "null" not in finding["detail"] and "-." not in finding["detail"], finding["detail"]
    return finding


# ---- The sides of grids -----------------------------------------------------------------------------------------------------------


def test_the_sides_of_a_grid_exchanged(server):
    sent = tables(blocks(grid_positions(7, 9), (32, 32)))
    expect(server, {"scheme": "rope", "head_dim": 64, "grid": [9, 7], **sent}, "axes_swapped", "/grid", [7, 9])


def test_columns_before_rows(server):
    """meshgrid with indexing xy where the other has ij: token r is at row r mod h and column r div h."""
    y, x = grid_positions(7, 9)
    order = np.lexsort((y, x))
    sent = tables(blocks(np.stack([y[order], x[order]]), (32, 32)))
    expect(server, {"scheme": "rope", "head_dim": 64, "grid": [7, 9], **sent}, "axes_swapped", "/positions")


def test_height_and_width_of_a_video_exchanged(server):
    sent = tables(blocks(grid_positions(3, 4, 6), (44, 42, 42)))
    expect(server, {"scheme": "rope", "head_dim": 128, "axes_dim": [44, 42, 42], "grid": [3, 6, 4], **sent}, "axes_swapped", "/grid", [3, 4, 6])


def test_the_sides_of_images_in_segments(server):
    segments = lambda h, w: [{"type": "text", "len": 3}, {"type": "image", "grid": [1, h, w]}, {"type": "text", "len": 2}]
    t, h, w = [0, 1, 2], [0, 1, 2], [0, 1, 2]
    for i, j in itertools.product(range(4), range(6)):  # 8 x 12 patches, merged by 2
        t.append(3), h.append(3 + i), w.append(3 + j)
    ids = [axis + [9, 10] for axis in (t, h, w)]
    expect(server, {"scheme": "rope", "segments": segments(12, 8), "position_ids": ids}, "axes_swapped", "/segments")
    sent = tables(shared(np.array(ids, float), mrope_axes(16, 24, 24), ladder(128)))
    expect(server, {"scheme": "rope", "head_dim": 128, "segments": segments(12, 8), **sent}, "axes_swapped", "/segments")


def test_a_grid_of_another_sinusoid_style(server):
    y, x = grid_positions(7, 9)
    w = BASE ** (-np.arange(16) / 15)  # MoCo v3, big_vision: columns first, frequencies to 1/base
    e = np.concatenate([np.sin(x[:, None] * w), np.cos(x[:, None] * w), np.sin(y[:, None] * w), np.cos(y[:, None] * w)], axis=1)
    body = {"scheme": "sinusoidal", "encoding": e.astype(np.float32).tolist()}
    for style in ("mae", "timm", "multidim"):
        expect(server, {**body, "style": style, "grid": [7, 9]}, "style_other", "/style", "axial")
    right = {**body, "style": "axial", "axis_order": [1, 0], "layout": "half", "freq_shift": 1}
    expect(server, {**right, "grid": [9, 7]}, "axes_swapped", "/grid", [7, 9])


# ---- Parameters -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("found, believed", [([16, 56, 56], [44, 42, 42]), ([44, 42, 42], [16, 56, 56])])
def test_widths_of_axes_by_value(server, found, believed):
    sent = tables(blocks(grid_positions(3, 4, 6), found))
    expect(server, {"scheme": "rope", "head_dim": 128, "axes_dim": believed, "grid": [3, 4, 6], **sent}, "parameter_other", "/axes_dim", found)


def test_widths_of_axes_in_another_order(server):
    sent = tables(blocks(grid_positions(3, 4, 6), (16, 56, 56)))
    expect(server, {"scheme": "rope", "head_dim": 128, "axes_dim": [56, 56, 16], "grid": [3, 4, 6], **sent}, "section_order", "/axes_dim", [16, 56, 56])


def test_sections_by_value(server):
    at = np.stack([np.arange(12.0), np.arange(12.0) % 5, np.arange(12.0) % 3])
    sent = tables(shared(at, mrope_axes(24, 20, 20), ladder(128)))
    belief = {"scheme": "rope", "head_dim": 128, "channels": "mrope", "mrope_section": [16, 24, 24], "positions": at.tolist()}
    expect(server, {**belief, **sent}, "parameter_other", "/mrope_section", [24, 20, 20])


def test_coordinates_resized_to_the_training_grid(server):
    sent = tables(blocks(grid_positions(8, 8) * 16 / 8, (32, 32)))
    expect(server, {"scheme": "rope", "head_dim": 64, "grid": [8, 8], **sent}, "coords_other", "/coords", "resized")
    sent = tables(blocks(grid_positions(7, 9), (32, 32)))
    expect(server, {"scheme": "rope", "head_dim": 64, "grid": [7, 9], "coords": "centered", **sent}, "coords_other", "/coords", "index")


def test_blocks_of_patches_in_raster_order(server):
    at = grid_positions(4, 6)
    merged = at.reshape(2, 2, 2, 3, 2).transpose(0, 1, 3, 2, 4).reshape(2, -1)  # blocks of 2 x 2
    belief = {"scheme": "rope", "head_dim": 64, "grid": [4, 6]}
    expect(server, {**belief, **tables(blocks(merged, (32, 32)))}, "order_other", "/order", "merge")
    expect(server, {**belief, "order": "merge", **tables(blocks(at, (32, 32)))}, "order_other", "/order", "row_major")


def test_frequencies_of_points(server):
    x = np.random.RandomState(5).standard_normal((3, 40))
    x = x.astype(np.float32).astype(float)
    e = np.concatenate([x.T] + [f(x.T * 2.0**k) for k in range(6) for f in (np.sin, np.cos)], axis=1).astype(np.float32)
    belief = {"scheme": "fourier", "num_freqs": 6, "positions": x.tolist(), "encoding": e.tolist()}
    expect(server, {**belief, "multiply_pi": True}, "parameter_other", "/multiply_pi", False)
    expect(server, {**belief, "log_sampling": False}, "parameter_other", "/log_sampling", True)
    expect(server, {**belief, "positions": x[[1, 0, 2]].tolist()}, "axes_swapped", "/positions")
    expect(server, {**belief, "positions": (2 * x).tolist()}, "position_stride", "/positions")


def test_normalized_positions_of_detr(server):
    y, x = grid_positions(5, 7) + 1
    w = BASE ** (-2 * np.arange(8) / 16)
    angles = [(p / (p.max() + 1e-6) * 2 * np.pi)[:, None] * w for p in (y, x)]
    columns = [f for a in angles for c in range(8) for f in (np.sin(a[:, c]), np.cos(a[:, c]))]
    body = {"scheme": "sinusoidal", "style": "detr", "channels_first": False, "grid": [5, 7], "encoding": np.stack(columns, 1).astype(np.float32).tolist()}
    expect(server, {**body, "normalize": False}, "parameter_other", "/normalize", True)


def test_the_scale_of_angles(server):
    at = np.arange(20.0) / 16
    angles = 1000 * at[:, None] * ladder(32)
    e = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(20, 32).astype(np.float32)
    expect(server, {"scheme": "sinusoidal", "positions": at.tolist(), "encoding": e.tolist()}, "parameter_other", "/angle_scale", 1000)


# ---- Axes forgotten ---------------------------------------------------------------------------------------------------------------


def qwen2_ids(*parts):
    """Qwen2-VL's rule: text advances all three axes; frames, rows and columns of an image count from where it begins."""
    ids, at = [], 0
    for part in parts:
        if isinstance(part, int):
            ids += [(at + i,) * 3 for i in range(part)]
        else:
            ids += [(at + t, at + y, at + x) for t, y, x in itertools.product(*map(range, part))]
        at = max(map(max, ids)) + 1
    return np.array(ids, float).T


TWO_IMAGES = (4, (1, 3, 5), 2, (1, 2, 2), 3)
VIDEO = (5, (3, 2, 4), 2)


@pytest.mark.parametrize("parts, video", [(TWO_IMAGES, False), (VIDEO, True)])
@pytest.mark.parametrize("channels, sections", [("mrope", (16, 24, 24)), ("mrope_interleaved", (24, 20, 20))])
def test_mrope_forgotten(server, parts, video, channels, sections):
    at = qwen2_ids(*parts)
    t, h, w = sections
    interleaved = [1 if c % 3 == 1 and c < 3 * h else 2 if c % 3 == 2 and c < 3 * w else 0 for c in range(64)]
    axis_of = mrope_axes(t, h, w) if channels == "mrope" else interleaved
    sent = tables(shared(at, axis_of, ladder(128, 1e6)))
    body = {"scheme": "rope", "head_dim": 128, "base": 1e6, **sent}
    expect(server, body, "axes_missing", "/channels", channels)
    segments = diagnose(server, body)["candidates"][0]["sequence"]["segments"]
    assert [one["type"] for one in segments] == (["text", "video", "text"] if video else ["text", "image", "text", "image", "text"])
    assert [one["grid"] for one in segments if "grid" in one] == [[t, 2 * y, 2 * x] for t, y, x in (p for p in parts if not isinstance(p, int))]


def test_mrope_forgotten_with_positions_of_no_rule(server):
    at = np.random.RandomState(7).randint(0, 90, (3, 24)).astype(float)
    sent = tables(shared(at, mrope_axes(16, 24, 24), ladder(128, 1e6)))
    body = {"scheme": "rope", "head_dim": 128, "base": 1e6, **sent}
    expect(server, body, "axes_missing", "/channels", "mrope")
    assert diagnose(server, body)["candidates"][0]["sequence"] == {"positions": at.tolist()}


def test_mrope_forgotten_and_the_other_layout(server):
    """Rotated heads: pairs of the two halves, believed to be neighbours."""
    random = np.random.RandomState(11)
    q = random.standard_normal((2, 20, 128)).astype(np.float32)
    angles = shared(qwen2_ids(4, (1, 3, 4), 4), mrope_axes(16, 24, 24), ladder(128))
    a, b = q[..., :64].astype(float), q[..., 64:].astype(float)
    out = np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1).astype(np.float32)
    answer = diagnose(server, {"scheme": "rope", "layout": "interleaved", "q": q.tolist(), "q_out": out.tolist()})
    assert answer["explained"] and named(answer) == {"layout_swapped", "axes_missing"}, answer["findings"]


def test_ids_counted_as_text(server):
    finding = expect(server, {"scheme": "rope", "position_ids": qwen2_ids(*TWO_IMAGES).astype(int).tolist()}, "axes_missing", "/segments")
    assert finding["detail"] == "The positions are on several axes; the configuration has one."
    expect(server, {"scheme": "rope", "position_ids": qwen2_ids(*VIDEO).astype(int).tolist()}, "axes_missing", "/segments")


def test_rows_of_text_alone_lack_no_axes(server):
    """Positions with gaps on one axis, also where they are the same on three."""
    at = np.array([0, 1, 2, 7, 8, 9, 20, 21, 3, 4, 5, 6.0])
    finding, names = first(server, {"scheme": "rope", "head_dim": 64, **tables(at[:, None] * ladder(64))})
    assert names == {"positions_other"}, finding
    answer = diagnose(server, {"scheme": "rope", "position_ids": [list(map(int, at))] * 3})
    assert "axes_missing" not in named(answer)


@pytest.mark.parametrize("at, widths, grid, coords", [
    (grid_positions(7, 9), (32, 32), [7, 9], "index"),
    (grid_positions(7, 9) + 1, (32, 32), [7, 9], "one_based"),
    (grid_positions(6, 9) - np.array([[3], [5]]), (32, 32), [6, 9], "centered"),
    (grid_positions(8, 8) * 2, (32, 32), [8, 8], "resized"),
    (grid_positions(3, 4, 6), (44, 42, 42), [3, 4, 6], "index"),
    (grid_positions(1, 6, 10), (16, 56, 56), [1, 6, 10], "index"),
])
def test_axes_of_a_grid_forgotten(server, at, widths, grid, coords):
    body = {"scheme": "rope", "head_dim": sum(widths), **tables(blocks(at, widths))}
    expect(server, body, "axes_missing", "/grid", grid)
    assert diagnose(server, body)["candidates"][0]["config"]["coords"] == coords


def test_axes_of_pixtral_and_dinov3_forgotten(server):
    at = grid_positions(6, 9)
    w = ladder(64)
    angles = np.concatenate([at[0][:, None] * w[::2], at[1][:, None] * w[1::2]], axis=1)
    expect(server, {"scheme": "rope", "head_dim": 64, **tables(angles)}, "axes_missing", "/channels", "pixtral")
    y, x = (2 * (p + 0.5) / g - 1 for p, g in zip(at, (6, 9)))
    w = 2 * np.pi * 100.0 ** (-np.arange(16) / 16)
    angles = np.concatenate([y[:, None] * w, x[:, None] * w], axis=1)
    expect(server, {"scheme": "rope", "head_dim": 64, "base": 100, **tables(angles)}, "axes_missing", "/channels", "dinov3")


@pytest.mark.parametrize("style", ["mae", "timm"])
def test_axes_of_an_encoding_forgotten(server, style):
    y, x = (p[:, None] * BASE ** (-np.arange(16) / 16) for p in grid_positions(7, 9))
    parts = [np.sin(x), np.cos(x), np.sin(y), np.cos(y)] if style == "mae" else [np.sin(y), np.sin(x), np.cos(y), np.cos(x)]
    body = {"scheme": "sinusoidal", "encoding": np.concatenate(parts, axis=1).astype(np.float32).tolist()}
    expect(server, body, "axes_missing", "/grid", [7, 9])
    assert diagnose(server, body)["candidates"][0]["config"]["style"] == style


RESIZED = [(kind, offset) for kind in resample.KINDS for offset in (0, 0.1) if not (kind == "bilinear_aligned" and offset)]


@pytest.mark.parametrize("found", RESIZED)
@pytest.mark.parametrize("believed", [("bicubic", 0), ("bicubic", 0.1), ("bilinear", 0)])
def test_a_table_resized_otherwise(server, found, believed):
    """The four kinds of resizing, and DINO's offset in the scale."""
    table = np.random.default_rng(5).standard_normal((1 + 4 * 4, 6)).astype(np.float32)
    whole = resample.resample_grid(found[0], table[1:].reshape(4, 4, 6), 7, 9, offset=found[1]).reshape(-1, 6)
    encoding = np.concatenate([table[:1], whole]).astype(np.float32)
    body = {"scheme": "learned", "table": table.tolist(), "table_grid": [4, 4], "grid": [7, 9], "num_prefix": 1, "encoding": encoding.tolist(),
            "interpolate": believed[0], **({"interpolate_offset": believed[1]} if believed[1] else {})}
    if found == believed:
        assert [f["code"] for f in diagnose(server, body)["findings"]] == ["as_believed"]
        return
    pointer, value = ("/interpolate", found[0]) if found[0] != believed[0] else ("/interpolate_offset", found[1])
    expect(server, body, "interpolation_other", pointer, value)
    config = diagnose(server, body)["candidates"][0]["config"]
    assert (config["interpolate"], config.get("interpolate_offset", 0)) == found


def test_the_resizing_in_words(server):
    table = np.random.default_rng(5).standard_normal((16, 6)).astype(np.float32)
    encoding = resample.resample_grid("bicubic", table.reshape(4, 4, 6), 7, 9, offset=0.1).reshape(-1, 6).astype(np.float32)
    body = {"scheme": "learned", "table": table.tolist(), "table_grid": [4, 4], "grid": [7, 9], "encoding": encoding.tolist()}
    said = diagnose(server, body)["findings"][0]
    assert said["detail"] == "The table was resized to the grid in another way: /interpolate_offset is 0.1; the configuration says 0."
    assert said["detail_zh"] == "表以另一种方式插值到网格：/interpolate_offset 是 0.1，而配置写的是 0。"


# ---- Tables resized in float32 ------------------------------------------------------------------------------------------------

U = 2.0**-24
SQUARES = [(14, 17), (14, 20), (14, 32), (16, 14), (16, 17), (16, 20), (16, 24), (16, 32), (16, 37), (24, 14), (24, 16), (24, 27), (24, 37), (32, 14),
           (32, 24), (32, 48), (37, 14), (37, 16), (37, 24), (37, 64), (64, 14), (64, 24), (64, 37)]
RESIZES = [((n, n), (g, g)) for n, g in SQUARES] + [((16, 16), (17, 23)), ((24, 20), (31, 14)), ((14, 14), (20, 30)), ((9, 64), (37, 16))]
TABLES = {"trained": lambda rng, h, w: 0.02 * rng.standard_normal((h, w, 8)),  # as ViT's
          "level": lambda rng, h, w: 1 + 1e-3 * rng.standard_normal((h, w, 8)),  # where the roundings of weights show
          "smooth": lambda rng, h, w: np.sin(0.3 * np.arange(h)[:, None, None] + 0.2 * np.arange(w)[:, None] + np.arange(8))}


def drawn(kind, n, seed=0):
    return TABLES[kind](np.random.default_rng(seed), *n).astype(np.float32)


def ask_resized(server, path, table, encoding, believed, n, g, **fields):
    kind, offset = believed
    fields = {"scheme": "learned", "interpolate": kind, "table_grid": n, "grid": g, **({"interpolate_offset": offset} if offset else {}), **fields}
    rows = {name: npy(a.reshape(-1, a.shape[-1])) for name, a in (("table", table), ("encoding", encoding))}
    body, headers = multipart(request=json.dumps(fields), **rows)
    answer = server.request("POST", path, body, headers)
    assert answer.status == 200, answer
    return answer.json()


@pytest.mark.parametrize("way", RESIZED)
@pytest.mark.parametrize("drawing", TABLES)
def test_a_table_resized_in_float32_is_right(server, way, drawing):
    """In 27 sizes, with products contracted or not."""
    seen = set()
    for (n, g), is_fused in itertools.product(RESIZES, (False, True)):
        table = drawn(drawing, n)
        encoding = resample.resample_grid_f32(way[0], table, *g, way[1], is_fused)
        answer = ask_resized(server, "/check", table, encoding, way, n, g)
        assert answer["fits"], (n, g, is_fused, answer)
        assert answer["verdict"] in ("exact", "rounding") and len(codes_of(answer)) == 1
        seen.update(codes_of(answer))
    assert seen <= {"as_believed", "coordinates_f32"} and (drawing != "trained" or "coordinates_f32" in seen)


def keys_half(n_in, n_out):
    """TensorFlow's bicubic: a = -0.5 without antialias."""
    rows = [resample.folded_row(x, n_in, float, lambda d: resample.keys_cubic(d, -0.5)) for x in resample.source_coordinates("bicubic", n_in, n_out, float)]
    return np.array(rows)


@pytest.mark.parametrize("believed", RESIZED)
@pytest.mark.parametrize("drawing", TABLES)
def test_another_kernel_is_no_rounding(server, believed, drawing):
    for n, g in [((16, 16), (24, 24)), ((24, 24), (14, 14)), ((37, 37), (16, 16)), ((14, 14), (20, 30))]:
        table = drawn(drawing, n)
        others = {way: resample.resample_grid(way[0], table, *g, offset=way[1]) for way in RESIZED if way != believed}
        others["a -0.5"] = np.einsum("ha,wb,abd->hwd", keys_half(n[0], g[0]), keys_half(n[1], g[1]), table)
        for way, encoding in others.items():
            answer = ask_resized(server, "/check", table, encoding.astype(np.float32), believed, n, g)
            assert not answer["fits"], (n, g, way, answer)


def neighbours(kind, n_in, n_out):
    """[n_out, 4]: the rows below and above each coordinate, and the next ones; of a cubic all that it reads."""
    x = np.array(resample.source_coordinates(kind, n_in, n_out, float))
    below = np.floor(x if kind == "bicubic" else np.maximum(x, 0)).astype(int)
    return np.clip(below[:, None] + [-1, 0, 1, 2], 0, n_in - 1)


@pytest.mark.parametrize("kind, of_coordinates, of_weights", [("bilinear", 2.0**-22, 2.0**-23), ("bicubic", 2.0**-21, 2.0**-20)])
def test_the_limit_of_coordinates(server, kind, of_coordinates, of_weights):
    """Of each number by itself, in f64: on each axis of N rows N·2^-22 or N·2^-21 of the largest difference of neighbouring rows, and
    roundings of the weights."""
    n, g = (40, 60), (30, 80)
    table = drawn("trained", n) * np.float32(50)
    table[:20] /= 100
    rows, cols = neighbours(kind, n[0], g[0]), neighbours(kind, n[1], g[1])
    read = table.astype(float)[rows[:, None, :, None], cols[None, :, None, :]]  # [h, w, 4, 4, dim]
    limit = 2 * of_weights * np.abs(read).max((2, 3))
    for axis, m in zip((2, 3), n):
        limit += of_coordinates * m * np.abs(np.diff(read, axis=axis)).max((2, 3))
    right = resample.resample_grid(kind, table, *g)
    for share, fits in ((0.97, True), (1.05, False)):
        answer = ask_resized(server, "/check", table, right + share * np.where(right < 0, -limit, limit), (kind, 0), n, g)
        assert answer["fits"] is fits, (share, answer)


def test_the_sentence_of_float32_coordinates(server):
    n, g, way = (16, 16), (37, 37), ("bicubic", 0)
    table, prefix = drawn("trained", n).reshape(-1, 8), np.zeros((1, 8), np.float32)
    exact = np.concatenate([prefix, resample.resample_grid("bicubic", table.reshape(16, 16, 8), *g).reshape(-1, 8)])
    found = np.concatenate([prefix, resample.resample_grid_f32("bicubic", table.reshape(16, 16, 8), *g).reshape(-1, 8)])
    whole = np.concatenate([prefix, table])
    answer = ask_resized(server, "/diagnose", whole, found, way, n, g, num_prefix=1)
    assert codes_of(answer) == ["coordinates_f32"] and answer["candidates"][0]["verdict"] == "rounding"
    finding, error = answer["findings"][0], np.abs(found - exact.astype(np.float32))
    assert finding["pointer"] == "/encoding" and error[finding["row"]].max() == error.max() and abs(finding["largest"] - error.max()) <= U * 0.1
    for text in (finding["detail"], finding["detail_zh"]):
        assert "float32" in text and f"{finding['largest']:.6g}" in text and str(finding["row"]) in text
    assert not ask_resized(server, "/check", whole, found, way, n, g, num_prefix=1, strict=True)["fits"]


def test_a_table_stretched_in_float32(server):
    """out_of_range: interpolate. The place between rows is a product in float32."""
    table = np.random.default_rng(1).standard_normal((512, 8)).astype(np.float32)
    at = np.arange(2000, dtype=np.float32) * (np.float32(511) / np.float32(1999))
    row = np.minimum(np.floor(at).astype(int), 510)
    t = (at - row.astype(np.float32))[:, None]
    encoding = table[row] * (1 - t) + table[row + 1] * t
    body = {"scheme": "learned", "out_of_range": "interpolate", "table": table.tolist(), "encoding": encoding.tolist()}
    answer = server.post("/check", body).json()
    assert answer["fits"] and codes_of(answer) == ["coordinates_f32"], answer
    t = np.float32(1) - np.float32(1.001) * (1 - t)
    body["encoding"] = (table[row] * (1 - t) + table[row + 1] * t).tolist()
    assert not server.post("/check", body).json()["fits"]
