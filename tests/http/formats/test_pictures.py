"""Format png: colours against matplotlib's, numbers that are none, the legend, memory. Indices against NumPy's are rows: ../cases/pictures.jsonl."""
import json
import subprocess
import threading

import numpy as np
import pytest

from conftest import SANITIZED, start_server
from pictures import HEAT, check, matrix, numbers, picture_of, special
from png_reader import Picture
from tensors import from_raw

# Colours k/8 of the way, k = 0 … 8: rounded from matplotlib 3.6 (_cm_listed.py; coolwarm: _cm.py at the same places).
MAPS = {
    "viridis": [(68, 1, 84), (71, 45, 123), (59, 82, 139), (44, 114, 142), (33, 145, 140), (39, 173, 129), (92, 200, 99),
                (170, 220, 50), (253, 231, 37)],
    "magma": [(0, 0, 4), (29, 17, 71), (81, 18, 124), (131, 38, 129), (183, 55, 121), (229, 80, 100), (251, 135, 97),
              (254, 194, 135), (252, 253, 191)],
    "coolwarm": [(59, 76, 192), (98, 130, 234), (141, 176, 254), (184, 208, 249), (221, 221, 221), (245, 196, 173),
                 (244, 154, 123), (222, 96, 77), (180, 4, 38)],
    "gray": [(k * 255 / 8,) * 3 for k in range(9)],
}


@pytest.mark.parametrize("cmap", list(MAPS))
def test_colours_are_matplotlib_s(server, cmap):
    picture = picture_of(server, **HEAT, cmap=cmap)
    opaque = picture.palette[picture.opacity == 255].astype(float)
    assert len(opaque) == 255
    for k, colour in enumerate(MAPS[cmap]):
        at = k * 254 / 8
        between = [np.interp(at, np.arange(255), opaque[:, c]) for c in range(3)]
        assert np.abs(np.array(between) - colour).max() <= 2, (cmap, k)
    assert np.abs(np.diff(opaque, axis=0)).max() <= 6, "no leaps"


def test_nothing_finite(server):
    picture = Picture(special(server, np.full((3, 4), np.nan, "f4"), "png").body)
    assert picture.width == 512 and picture.height == 384 and (picture.opacity[picture.pixels] == 0).all()
    request = json.loads(picture.texts[b"posenc"])
    assert "vmin" not in request and "vmax" not in request
    given = Picture(special(server, np.full((3, 4), np.inf), "png", vmin=0).body)
    assert (given.opacity[given.pixels] == 0).all()


def test_nan_and_both_infinities_among_numbers(server):
    values = np.array([[1, 2, 3, 4], [np.nan, np.nan, 5, -6], [np.inf, -np.inf, 0, 9]])
    rotated = from_raw(special(server, values, "raw"))["q"].astype("f8")
    assert np.isnan(rotated[1, 0]) and rotated[2, 3] == 9
    check(Picture(special(server, values, "png", zoom=3).body), rotated, 3)


def test_huge_doubles(server):
    values = np.array([[-1.5e308, 1.5e308], [1e308, 0.0], [5e-324, -1e308]])
    picture = Picture(special(server, values, "png", zoom=1).body)
    check(picture, values / 1e10, 1)


def test_the_request_inside_has_the_numbers(server):
    """In another format it gives the picture's numbers; ../cases/pictures.jsonl sends it again."""
    for fields in (HEAT, {"scheme": "alibi", "num_heads": 3, "q_len": 4, "k_len": 9, "causal": True}, {"scheme": "rope", "positions": [0.5, 7, -3], "dtype": "f16", "outputs": ["sin"]}):
        request = json.loads(Picture(server.ask(**fields, format="png", vmin=-2.5, cmap="magma").body).texts[b"posenc"].decode("latin-1"))
        plain = {name: value for name, value in request.items() if name not in ("format", "cmap", "zoom", "vmin", "vmax", "legend")}
        first = {} if "outputs" in fields else {"outputs": request["outputs"]}
        assert numbers(server, **plain).tobytes() == numbers(server, **fields, **first).tobytes()


def test_words_inside_are_ascii(server):
    body = server.ask("/attention", scheme="none", tokens=["né", "狗", "𝄞", "a\"b"], format="png").body
    text = Picture(body).texts[b"posenc"]
    assert text.isascii() and json.loads(text)["tokens"] == ["né", "狗", "𝄞", "a\"b"]


def test_long_sequences_are_left_out(server):
    response = server.ask(scheme="sinusoidal", dim=2, positions=[k + 0.123456789 for k in range(8192)], format="png")
    assert len(json.loads(Picture(response.body).texts[b"posenc"])["positions"]) == 8192
    many = {"scheme": "alibi", "num_heads": 1, "q_positions": [0], "len": None, "causal": False}
    text = server.ask(**many, k_positions=list(range(100000)), format="text").body
    assert text.count(b"\n") == 2


@pytest.mark.skipif(SANITIZED, reason="memory means nothing")
def test_large_picture_takes_little_memory():
    with start_server() as alone:
        alone.ask(**HEAT, format="png")
        before = alone.memory("VmHWM")
        body = alone.ask(scheme="alibi", num_heads=2, len=8192, format="png").body # 512 MiB of f32, 64 MiB of pixels
        assert Picture(body).width == 8192
        assert alone.memory("VmHWM") - before < 16 << 20


def test_others_are_served_meanwhile(server):
    """A picture is drawn by a worker, not by the loop: otherwise no other client would be answered meanwhile."""
    done, n_served = [], 0
    thread = threading.Thread(target=lambda: done.append(server.ask(scheme="sinusoidal", len=4096, dim=4096, format="png")))
    thread.start()
    while thread.is_alive():
        assert server.get("/healthz").status == 200
        n_served += 1
    assert done and n_served > 20


# ---- Legend ------------------------------------------------------------------------------------------------------------

# What a reader must see: 5 by 7 dots a character, drawn by hand here once more.
FONT = {
    "0": " ### |#   #|#  ##|# # #|##  #|#   #| ### ", "1": "  #  | ##  |  #  |  #  |  #  |  #  | ### ",
    "2": " ### |#   #|    #|   # |  #  | #   |#####", "3": " ### |#   #|    #|  ## |    #|#   #| ### ",
    "4": "   # |  ## | # # |#  # |#####|   # |   # ", "5": "#####|#    |#### |    #|    #|#   #| ### ",
    "6": "  ## | #   |#    |#### |#   #|#   #| ### ", "7": "#####|    #|   # |  #  | #   | #   | #   ",
    "8": " ### |#   #|#   #| ### |#   #|#   #| ### ", "9": " ### |#   #|#   #| ####|    #|   # | ##  ",
    "-": "     |     |     | ### |     |     |     ", "+": "     |  #  |  #  |#####|  #  |  #  |     ",
    ".": "     |     |     |     |     | ##  | ##  ", "e": "     |     | ### |#   #|#####|#    | ### ",
}


def read(dots):
    """Text of a strip of 7 rows of dots whose first character begins at the left."""
    cells = ["|".join("".join(" #"[dot] for dot in row[k:k + 5]) for row in dots) for k in range(0, dots.shape[1] - 4, 6)]
    names = {art: name for name, art in FONT.items()}
    return "".join(names.get(cell, " ") for cell in cells)


@pytest.mark.parametrize("fields,zoom,low,high", [
    (HEAT, 8, "-1", "1"),
    ({**HEAT, "vmin": -12.3456, "vmax": 7.809e-5, "cmap": "gray"}, 8, "-12.35", "7.809e-05"),
    ({**HEAT, "vmin": -1e300, "vmax": 4e+300, "cmap": "coolwarm"}, 8, "-1e+300", "4e+300"),
    ({"scheme": "alibi", "num_heads": 1, "len": 20, "cmap": "magma", "zoom": 1}, 1, "-0.07422", "0"),
    ({"scheme": "sinusoidal", "len": 30, "dim": 1100}, 1, "-1", "1"),  # two pixels a dot
])
def test_legend(server, fields, zoom, low, high):
    values = matrix(numbers(server, **{k: v for k, v in fields.items() if k not in ("vmin", "vmax", "cmap", "zoom")}))
    plain, picture = picture_of(server, **fields), picture_of(server, **fields, legend=True)
    height, width = values.shape[0] * zoom, values.shape[1] * zoom
    assert (picture.pixels[:height, :width] == plain.pixels).all() and (picture.palette == plain.palette).all()
    assert (picture.pixels[:height, width:] == 0).all()
    scale = 1 + max(height, width) // 1024
    strip = picture.pixels[height:]
    assert strip.shape[0] == 21 * scale
    strip = strip[::scale]
    assert (strip[:4] == 0).all()
    bar = strip[4:12].astype(int)
    assert (bar == bar[0]).all() and bar[0, 0] == 1 and (np.diff(bar[0]) >= 0).all() and bar[0, -1] >= 255 - 255 / bar.shape[1]
    text = strip[13:20, ::scale]
    light, dark = picture.palette[strip[12, 0]].astype(int), picture.palette[text[text != strip[12, 0]][0]].astype(int)
    assert (strip[[12, 20]] == strip[12, 0]).all() and (light - dark).sum() > 250
    dots = (text != strip[12, 0]).astype(int)
    assert read(dots[:, 1:])[:len(low) + 1] == low + " "
    # from the right end, which a dot of margin and rounding of the width precede
    tail = np.concatenate([dots, np.zeros((7, 12), int)], 1)
    found = {read(tail[:, k:])[:len(high)] for k in range(dots.shape[1] - 6 * len(high) - 2, dots.shape[1] - 6 * len(high) + 2)}
    assert high in found


def test_legend_of_nothing(server):
    plain = Picture(special(server, np.full((3, 4), np.nan, "f4"), "png").body)
    legend = Picture(special(server, np.full((3, 4), np.nan, "f4"), "png", legend=True).body)
    assert (plain.pixels == legend.pixels).all()


@pytest.mark.parametrize("height, width, zoom, size", [
    (1, 1, 1, (22, 18)), (1, 1, 2, (23, 18)), (1, 8192, 1, (190, 8192)), (8003, 3, 1, (8171, 384)), (513, 1, 2, (1068, 48))])
def test_legend_of_odd_sizes(server, height, width, zoom, size):
    """21 dots high, a dot being a pixel more for each 1024 of the longer side; as wide as its two numbers at least: n
    digits of 6 dots less 1, twice, a dot of margin on both sides, 6 between."""
    request = {"scheme": "alibi", "num_heads": 1, "q_len": height, "k_len": width, "zoom": zoom, "legend": True}
    picture = Picture(server.ask(**request, format="png").body)
    assert (picture.height, picture.width) == size
    bare = Picture(server.ask(**{**request, "legend": False}, format="png").body)
    assert (picture.pixels[:bare.height, :bare.width] == bare.pixels).all()


def test_pngcheck_agrees(server, tmp_path):
    """An independent program: chunks, their order and CRCs, the compressed stream."""
    asked = [HEAT, {**HEAT, "legend": True, "cmap": "gray"}, {"scheme": "alibi", "num_heads": 2, "len": 33, "causal": True}, {"scheme": "none", "len": 1, "dim": 1},
             {"scheme": "sinusoidal", "len": 3000, "dim": 700, "zoom": 1}]
    for i, fields in enumerate(asked):
        (tmp_path / f"{i}.png").write_bytes(server.ask(**fields, format="png").body)
    files = sorted(tmp_path.iterdir())
    checked = subprocess.run(["pngcheck", "-q", *files], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0 and len(files) == len(asked), checked.stdout
    (tmp_path / "0.png").write_bytes((tmp_path / "0.png").read_bytes()[:-20])
    assert subprocess.run(["pngcheck", "-q", tmp_path / "0.png"], capture_output=True, timeout=60).returncode != 0
