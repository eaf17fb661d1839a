"""rope over several axes, from /encode: channel tables, coordinates, orders, exactness."""
import numpy as np
import pytest

import truth
import truth.rotary as rotary
from asking import refused
from tensors import encode, encode_one, near


def rope(server, **fields):
    return encode(server, scheme="rope", **fields)


def check_table(server, table, rows, **fields):
    """cos and sin of this channel table at these coordinates."""
    tables = rope(server, dtype="f64", **fields)
    for got, expected in zip((tables["cos"], tables["sin"]), rotary.tables(table, rows)):
        near(got, expected, err_msg=str(fields))


# ---- Channel tables ----------------------------------------------------------------------------------------------------


def test_axes_by_default(server):
    """2*floor(r/(2*axes)) channels of the head for each axis, the rest for the first; a ladder each."""
    check_table(server, rotary.axial(64, 2), rotary.coordinates([3, 4]), grid=[3, 4])
    check_table(server, rotary.axial(64, 3, [24, 20, 20]), rotary.coordinates([2, 3, 4]), grid=[2, 3, 4])
    assert server.ask(scheme="rope", grid=[2, 3, 4]).json()["config"]["axes_dim"] == [24, 20, 20]


PUBLISHED = [
    ("Flux", dict(head_dim=128, axes_dim=[16, 56, 56]), lambda: rotary.axial(128, 3, [16, 56, 56])),
    ("HunyuanVideo", dict(head_dim=128, axes_dim=[16, 56, 56], base=256), lambda: rotary.axial(128, 3, [16, 56, 56], base=256)),
    ("Wan", dict(head_dim=128, axes_dim=[44, 42, 42]), lambda: rotary.axial(128, 3, [44, 42, 42])),
    ("CogVideoX", dict(head_dim=64, axes_dim=[16, 24, 24]), lambda: rotary.axial(64, 3, [16, 24, 24])),
    ("M-RoPE", dict(head_dim=128, base=1e6, channels="mrope", mrope_section=[16, 24, 24]),
     lambda: rotary.mrope(128, [16, 24, 24], 1e6)),
    ("Qwen3-VL", dict(head_dim=128, base=5e6, channels="mrope_interleaved", mrope_section=[24, 20, 20]),
     lambda: rotary.mrope_interleaved(128, [24, 20, 20], 5e6)),
    ("Qwen3.5", dict(head_dim=256, rotary_dim=64, base=1e7, channels="mrope_interleaved", mrope_section=[11, 11, 10]),
     lambda: rotary.mrope_interleaved(64, [11, 11, 10], 1e7)),
    ("VideoRoPE", dict(head_dim=128, base=1e6, channels="videorope", mrope_section=[16, 24, 24]),
     lambda: rotary.videorope(128, [16, 24, 24], 1e6)),
]


@pytest.mark.parametrize("fields,channels", [p[1:] for p in PUBLISHED], ids=[p[0] for p in PUBLISHED])
def test_published_in_three_axes(server, fields, channels):
    check_table(server, channels(), rotary.coordinates([2, 3, 4]), grid=[2, 3, 4], **fields)


def test_pixtral(server):
    """One ladder: even rungs on rows, odd on columns, rows first."""
    check_table(server, rotary.pixtral(64), rotary.coordinates([3, 5]), grid=[3, 5], channels="pixtral")
    t = rope(server, head_dim=8, channels="pixtral", grid=[2, 2], dtype="f64")  # rungs 1, 0.1, 0.01, 0.001
    near(t["sin"][1], np.sin([0, 0, 0.1, 0.001]))
    near(t["sin"][2], np.sin([1, 0.01, 0, 0]))


def test_dinov3(server):
    """w = 2 pi * 100^(-4i/head_dim), y then x, at the centres of the patches in [-1, 1]."""
    fields = dict(head_dim=64, channels="dinov3", base=100, grid=[14, 10])
    check_table(server, rotary.dinov3(64, 100), rotary.coordinates([14, 10], "normalized"), **fields)
    assert server.ask(scheme="rope", **fields).json()["config"]["coords"] == "normalized"
    t = rope(server, head_dim=4, channels="dinov3", base=100, grid=[2, 1], dtype="f64")
    near(t["cos"], np.array([[-1, 1], [-1, 1.0]]), 1e-15)  # y = -1/2 and 1/2 turn by -pi and pi, x = 0


def test_videorope_starts_with_space(server):
    t = rope(server, head_dim=12, channels="videorope", mrope_section=[2, 2, 2], positions=[[1], [0], [0]], dtype="f64")
    assert np.array_equal(t["sin"][0] != 0, [False] * 4 + [True] * 2)


def test_a_text_token_stands_on_all_three_axes(server):
    """One-axis sequences under M-RoPE are plain RoPE, to the bit."""
    plain = rope(server, head_dim=128, offset=5, len=50)
    for channels in ("mrope", "mrope_interleaved", "videorope"):
        t = rope(server, head_dim=128, offset=5, len=50, channels=channels, mrope_section=[16, 24, 24])
        assert all(t[name].tobytes() == plain[name].tobytes() for name in plain)


def test_the_section_by_default(server):
    """h and w ⌊3C/8⌋ channels, t the rest: Qwen2-VL's of 64."""
    fields = dict(head_dim=128, channels="mrope", grid=[2, 3, 4])
    assert server.ask(scheme="rope", **fields).json()["config"]["mrope_section"] == [16, 24, 24]
    check_table(server, rotary.mrope(128, [16, 24, 24]), rotary.coordinates([2, 3, 4]), **fields)


def test_an_interleaved_section_is_not_summed(server):
    """timm's (8, 12, 12) on 32 channels: slices clamp to 11, 11, 10."""
    assert [[c.axis for c in rotary.mrope_interleaved(64, [8, 12, 12])].count(a) for a in range(3)] == [11, 11, 10]
    fields = dict(head_dim=64, channels="mrope_interleaved", mrope_section=[8, 12, 12], grid=[2, 3, 2])
    check_table(server, rotary.mrope_interleaved(64, [8, 12, 12]), rotary.coordinates([2, 3, 2]), **fields)


@pytest.mark.parametrize("head_dim, section", [(256, [24, 20, 20]), (128, [16, 20, 20]), (64, [0, 1, 0]), (48, [0, 0, 0])])
def test_pairs_that_interleaved_sections_leave_are_times(server, head_dim, section):
    """freqs[0] everywhere, then every third pair overwritten by height and width as far as their sections reach (transformers, Qwen3-VL)."""
    axes = np.zeros(head_dim // 2, int)
    for axis in (1, 2):
        axes[axis:3 * section[axis]:3] = axis
    assert [c.axis for c in rotary.mrope_interleaved(head_dim, section)] == axes.tolist()
    fields = dict(head_dim=head_dim, channels="mrope_interleaved", mrope_section=section, grid=[2, 3, 2])
    check_table(server, rotary.mrope_interleaved(head_dim, section), rotary.coordinates([2, 3, 2]), **fields)
    assert server.ask(scheme="rope", **fields).json()["config"]["mrope_section"] == section


@pytest.mark.parametrize("channels, section, words", [("mrope_interleaved", [24, 21, 20], "at most rotary_dim/2, 64"), ("mrope", [24, 20, 19], "needed: rotary_dim/2, 64")])
def test_sections_that_do_not_fit(server, channels, section, words):
    refused(server, "/mrope_section", words, scheme="rope", head_dim=128, channels=channels, mrope_section=section, grid=[2, 3, 2])


# ---- Coordinates, order of the rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("coords", ["index", "one_based", "normalized", "centered", "resized", "pixel"])
def test_coordinates(server, coords):
    grid, extra = [5, 6], dict(ref_grid=[16, 16]) if coords == "resized" else {}
    channels = rotary.pixel(32, 2) if coords == "pixel" else rotary.axial(32, 2)
    rows = rotary.coordinates(grid, coords, extra.get("ref_grid"))
    check_table(server, channels, rows, head_dim=32, grid=grid, coords=coords, **extra)
    positions = encode_one(server, scheme="rope", head_dim=32, grid=grid, coords=coords, **extra, outputs=["positions"])
    near(positions.astype(float), np.array([[float(v) for v in row] for row in rows]).T, 1e-15)


def test_coordinates_by_hand(server):
    def axis(coords, n, **extra):
        return encode_one(server, scheme="rope", grid=[n, 1], coords=coords, **extra, outputs=["positions"])[0].tolist()
    assert axis("index", 4) == [0, 1, 2, 3]
    assert axis("one_based", 4) == [1, 2, 3, 4]
    assert axis("normalized", 4) == [-0.75, -0.25, 0.25, 0.75]
    assert axis("centered", 4) == [-2, -1, 0, 1] and axis("centered", 5) == [-3, -2, -1, 0, 1]
    assert axis("resized", 4, ref_grid=[16, 16]) == [0, 4, 8, 12]
    assert axis("pixel", 5) == [-1, -0.5, 0, 0.5, 1]


@pytest.mark.parametrize("grid", [[1, 4, 6], [3, 5, 2], [2, 1, 1]])
def test_centered_counts_frames_from_0(server, grid):
    """Qwen-Image: rows and columns are centered, frames are not."""
    fields = dict(head_dim=48, grid=grid, coords="centered")
    positions = encode_one(server, scheme="rope", **fields, outputs=["positions"])
    frames, rows, columns = np.meshgrid(*(np.arange(n) - shift for n, shift in zip(grid, (0, -(-grid[1] // 2), -(-grid[2] // 2)))), indexing="ij")
    assert np.array_equal(positions, np.array([frames.ravel(), rows.ravel(), columns.ravel()]))
    check_table(server, rotary.axial(48, 3), rotary.coordinates(grid, "centered"), **fields)


@pytest.mark.parametrize("grid,size", [([4, 6], 2), ([2, 4, 4], 2), ([6, 3], 3), ([3, 5], 1)])
def test_merge_order(server, grid, size):
    fields = dict(head_dim=48, grid=grid)
    plain, merged = rope(server, **fields), rope(server, order="merge", spatial_merge_size=size, **fields)
    order = rotary.merge_order(grid, size)
    assert all(np.array_equal(merged[name], plain[name][order]) for name in plain)
    assert rotary.merge_order([4, 4], 2) == [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]


def test_llama_4_vision(server):
    """x first, both coordinates + 1."""
    fields = dict(head_dim=16, axes_dim=[8, 8], axis_order=[1, 0], coords="one_based", grid=[3, 4])
    check_table(server, rotary.axial(16, 2, axis_order=[1, 0]), rotary.coordinates([3, 4], "one_based"), **fields)


# ---- Exactness ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("fields,channels,coords", [
    (dict(axes_dim=[4, 12]), lambda: rotary.axial(16, 2, [4, 12]), "index"),
    (dict(coords="pixel"), lambda: rotary.pixel(16, 2), "pixel"),
    (dict(channels="dinov3", base=100), lambda: rotary.dinov3(16, 100), "normalized"),
    (dict(channels="pixtral"), lambda: rotary.pixtral(16), "index")])
def test_every_value_is_the_nearest(server, fields, channels, coords, dtype):
    grid = [7, 6]
    tables = rope(server, head_dim=16, grid=grid, dtype=dtype, **fields)
    for i, row in enumerate(rotary.coordinates(grid, coords)):
        for c, channel in enumerate(channels()):
            for name in tables:
                assert float(tables[name][i, c]) == truth.nearest(rotary.exact(name, channel, row), dtype), (name, row, c)


# ---- Refusals ----------------------------------------------------------------------------------------------------------

M = {"head_dim": 64, "grid": [2, 2, 2], "channels": "mrope"}


@pytest.mark.parametrize("pointers,fields", [
    ("/axes_dim", dict(grid=[2, 2], head_dim=8, axes_dim=[3, 5])),
    ("/axes_dim", dict(grid=[2, 2], head_dim=8, axes_dim=[8])),
    (("/axes_dim", "/head_dim"), dict(grid=[2, 2], head_dim=8, axes_dim=[8, 8])),
    ("/axes_dim", dict(grid=[2, 2], head_dim=8, axes_dim=[0, 8, 0])),
    ("/axis_order", dict(grid=[2, 2], axis_order=[0, 0])),
    ("/axis_order", dict(grid=[2, 2], axis_order=[0])),
    ("/channels", dict(grid=[2, 2], channels="pixtrall")),
    (("/grid", "/channels"), dict(grid=[2, 2, 2], channels="pixtral")),
    (("/grid", "/channels"), dict(grid=[2, 2, 2], channels="dinov3")),
    (("/grid", "/channels"), dict(M, grid=[2, 2], mrope_section=[16, 8, 8])),
    (("/head_dim", "/rotary_dim", "/channels"), dict(grid=[2, 2], head_dim=6, channels="pixtral")),
    (("/head_dim", "/rotary_dim", "/channels"), dict(grid=[2, 2], head_dim=6, channels="dinov3")),
    ("/mrope_section", dict(M, mrope_section=[16, 8])),
    ("/mrope_section", dict(M, mrope_section=[16, 8, 9])),
    ("/mrope_section", dict(M, mrope_section=[40, -4, -4])),
    ("/mrope_section", dict(grid=[2, 2, 2], mrope_section=[16, 8, 8])),  # without channels that have sections
    (("/axes_dim", "/channels"), dict(M, mrope_section=[16, 8, 8], axes_dim=[32, 16, 16])),
    ("/ref_grid", dict(grid=[2, 2], coords="resized", ref_grid=[16])),
    ("/ref_grid", dict(grid=[2, 2], coords="index", ref_grid=[16, 16])),
    ("/coords", dict(grid=[2, 2], coords="index0")),
    (("/spatial_merge_size", "/grid", "/order"), dict(grid=[4, 5], order="merge")),
    ("/spatial_merge_size", dict(grid=[4, 4], order="merge", spatial_merge_size=0)),
    (("/order", "/grid", "/len"), dict(len=4, order="merge")),
    ("/positions", dict(positions=[[0, 1], [0, 2 ** 40 + 1]])),
    ("/positions", dict(positions=[[0, 1], [0]])),
    ("/layout", dict(grid=[2, 2], layout="half_per_head")),
])
def test_refused(server, pointers, fields):
    refused(server, pointers, scheme="rope", **fields)
