"""Format text: colours of half blocks against the png's, characters, steps, the last line."""
import re

import numpy as np
import pytest

from pictures import HEAT, level, matrix, numbers, special
from png_reader import Picture

CELL = re.compile(r"\x1b\[([\d;]+)m|([▀▄ ])")


def cells(text):
    """Colours of a text of half blocks, [rows][columns]; None is the terminal's own. And the line below."""
    *lines, legend, end = text.split("\n")
    assert end == "" and "\x1b" not in legend
    rows = []
    for line in lines:
        ink = paper = None
        upper, lower = [], []
        assert line.endswith("\x1b[0m") and CELL.sub("", line) == ""
        for code, block in CELL.findall(line):
            if code:
                kind, *colour = code.split(";")
                assert kind in ("0", "38", "48", "39", "49") and len(colour) in (0, 4) and (not colour or colour[0] == "2")
                colour = tuple(map(int, colour[1:])) if colour else None
                ink = colour if kind in ("0", "38", "39") else ink
                paper = colour if kind in ("0", "48", "49") else paper
            else:
                upper.append(ink if block == "▀" else paper)
                lower.append(ink if block == "▄" else paper)
        rows += [upper, lower]
    return rows, legend


def as_text(server, path="/encode", **fields):
    response = server.ask(path, **fields, format="text")
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert int(response.headers["Content-Length"]) == len(response.body)
    return response.body.decode()


def seen(values, columns=80):
    height, width = values.shape
    return values[::-(-height // columns), ::-(-width // columns)]


@pytest.mark.parametrize("fields,columns", [
    (HEAT, 80), (HEAT, 64), (HEAT, 63), (HEAT, 7), (HEAT, 1),
    ({"scheme": "alibi", "len": 64, "causal": True}, 80),
    ({"scheme": "alibi", "len": 5, "causal": True}, 80),
    ({"scheme": "alibi", "num_heads": 1, "q_len": 3, "k_len": 20000}, 80),
    ({"scheme": "alibi", "num_heads": 1, "q_len": 300, "k_len": 20000}, 400),
    ({"scheme": "sinusoidal", "len": 20000, "dim": 3}, 80),
    ({"scheme": "none", "len": 1, "dim": 1}, 80),
    ({"scheme": "alibi", "num_heads": 5, "len": 1, "outputs": ["slopes"]}, 80),
])
def test_half_blocks(server, fields, columns):
    """The colours are the png's."""
    values = seen(matrix(numbers(server, **fields)), columns)
    rows, legend = cells(as_text(server, **fields, columns=columns))
    expected = level(values)
    palette = Picture(server.ask(**HEAT, format="png").body)
    opaque = palette.palette[palette.opacity == 255]
    assert len(rows) == len(expected) + len(expected) % 2
    for row, levels in zip(rows, expected):
        assert row == [None if k < 0 else tuple(opaque[k]) for k in levels]
    if len(rows) > len(expected):
        assert set(rows[-1]) == {None}


@pytest.mark.parametrize("fields,columns", [
    (HEAT, 80), (HEAT, 9), ({"scheme": "alibi", "len": 33, "causal": True}, 80), ({"scheme": "none", "len": 2, "dim": 3}, 80)])
def test_characters(server, fields, columns):
    values = seen(matrix(numbers(server, **fields)), columns)
    *lines, legend, end = as_text(server, **fields, ascii=True, columns=columns).split("\n")
    expected = level(values)
    for line, levels in zip(lines, expected, strict=True):
        assert line == "".join("/" if k < 0 else " .:-=+*#%@"[k * 10 // 255] for k in levels)


def test_nothing_finite_as_text(server):
    text = special(server, np.full((3, 4), np.nan), "text").body.decode()
    rows, legend = cells(text)
    assert legend == "rope q [3,4], f64, nothing finite" and rows == [[None] * 4] * 4
    assert special(server, np.full((3, 4), np.nan), "text", ascii=True).body.decode().startswith("////\n////\n////\n")


def test_long_tables_cost_what_is_seen(server):
    """5 GB of f32, of which 80 rows are seen; and one row of a hundred million."""
    assert as_text(server, scheme="sinusoidal", len=20_000_000, dim=64).count("\n") == 41
    assert as_text(server, scheme="alibi", num_heads=1, q_len=1, k_len=100_000_000, ascii=True).count("\n") == 2
