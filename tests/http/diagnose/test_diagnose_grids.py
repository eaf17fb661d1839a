"""/diagnose and mistakes of positions on several axes: tensors are computed here in float64 by the papers' formulas, sent as float32, and the
first finding must name the mistake; the first candidate, encoded again, must give the tensor."""
import itertools

import numpy as np
import pytest

import reference.resample as resample
from diagnosing import diagnose, named
from tensors import from_safetensors

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
