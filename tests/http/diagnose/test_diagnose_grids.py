"""/diagnose and tables of learned positions that were resized to a grid: by which kernel, and what float32 loses of it."""
import numpy as np
import pytest

import truth.resample as resample
from diagnosing import ask, codes_of, diagnose

RESIZED = [(kind, offset) for kind in resample.KINDS for offset in (0, 0.1) if not (kind == "bilinear_aligned" and offset)]


@pytest.mark.parametrize("found", RESIZED)
@pytest.mark.parametrize("believed", [("bicubic", 0), ("bicubic", 0.1), ("bilinear", 0)])
def test_a_table_resized_otherwise(server, found, believed):
    """The kinds of resizing, and DINO's offset in the scale; an axis becomes smaller, which shows antialias."""
    table = np.random.default_rng(5).standard_normal((1 + 8 * 8, 6)).astype(np.float32)
    whole = resample.resample_grid(found[0], table[1:].reshape(8, 8, 6), 5, 9, offset=found[1]).reshape(-1, 6)
    encoding = np.concatenate([table[:1], whole]).astype(np.float32)
    body = {"scheme": "learned", "table": table.tolist(), "table_grid": [8, 8], "grid": [5, 9], "num_prefix": 1, "encoding": encoding.tolist(),
            "interpolate": believed[0], **({"interpolate_offset": believed[1]} if believed[1] else {})}
    if found == believed:
        assert [f["code"] for f in diagnose(server, body)["findings"]] == ["as_believed"]
        return
    pointer, value = ("/interpolate", found[0]) if found[0] != believed[0] else ("/interpolate_offset", found[1])
    answer = diagnose(server, body)
    assert codes_of(answer) == ["interpolation_other"] and (answer["findings"][0]["pointer"], answer["findings"][0]["found"]) == (pointer, value)
    config = answer["candidates"][0]["config"]
    assert (config["interpolate"], config.get("interpolate_offset", 0)) == found


def test_the_parameter_of_a_cubic_kernel(server):
    """TensorFlow's a without antialias, and torch's usual one with it, are words of the configuration."""
    table = np.random.default_rng(5).standard_normal((16, 6)).astype(np.float32)
    body = {"scheme": "learned", "table": table.tolist(), "table_grid": [4, 4], "grid": [7, 9]}
    for kind, a, believed, finding, left in (("bicubic", -0.5, {}, ("/cubic_a", -0.5, -0.75), {"cubic_a": -0.5}),
                                             ("bicubic", -0.75, {"cubic_a": -0.5}, ("/cubic_a", -0.75, -0.5), {"cubic_a": -0.75}),
                                             ("bicubic", -0.6, {"interpolate": "bilinear"}, ("/interpolate", "bicubic", "bilinear"), {"cubic_a": -0.6}),
                                             ("bilinear", None, {"cubic_a": -0.5}, ("/interpolate", "bilinear", "bicubic"), {})):
        encoding = resample.resample_grid(kind, table.reshape(4, 4, 6), 7, 9, cubic_a=a).reshape(-1, 6).astype(np.float32)
        answer = diagnose(server, {**body, "interpolate": "bicubic", **believed, "encoding": encoding.tolist()})
        said, config = answer["findings"][0], answer["candidates"][0]["config"]
        assert codes_of(answer) == ["interpolation_other"] and (said["pointer"], said["found"], said["believed"]) == finding
        assert config["interpolate"] == kind and {name: config[name] for name in ("cubic_a",) if config.get(name) is not None} == left


def test_the_resizing_in_words(server):
    table = np.random.default_rng(5).standard_normal((16, 6)).astype(np.float32)
    encoding = resample.resample_grid("bicubic", table.reshape(4, 4, 6), 7, 9, offset=0.1).reshape(-1, 6).astype(np.float32)
    body = {"scheme": "learned", "table": table.tolist(), "table_grid": [4, 4], "grid": [7, 9], "encoding": encoding.tolist()}
    said = diagnose(server, body)["findings"][0]
    assert said["detail"] == "The table was resized to the grid in another way: /interpolate_offset is 0.1; the configuration has 0."
    assert said["detail_zh"] == "表以另一种方式插值到网格：/interpolate_offset 是 0.1，而配置写的是 0。"


# ---- Tables resized in float32 ------------------------------------------------------------------------------------------------

U = 2.0**-24
SQUARES = [(14, 17), (14, 20), (14, 32), (16, 14), (16, 17), (16, 20), (16, 24), (16, 32), (16, 37), (24, 14), (24, 16), (24, 27), (24, 37), (32, 14),
           (32, 24), (32, 48), (37, 14), (37, 16), (37, 24), (37, 64), (64, 14), (64, 24), (64, 37)]
RESIZES = [((n, n), (g, g)) for n, g in SQUARES] + [((16, 16), (17, 23)), ((24, 20), (31, 14)), ((14, 14), (20, 30)), ((9, 64), (37, 16))]
DIM = 4  # each channel is resized alike
TABLES = {"trained": lambda rng, h, w: 0.02 * rng.standard_normal((h, w, DIM)),  # as ViT's
          "level": lambda rng, h, w: 1 + 1e-3 * rng.standard_normal((h, w, DIM)),  # where the roundings of weights show
          "smooth": lambda rng, h, w: np.sin(0.3 * np.arange(h)[:, None, None] + 0.2 * np.arange(w)[:, None] + np.arange(DIM))}


def drawn(kind, n, seed=0):
    return TABLES[kind](np.random.default_rng(seed), *n).astype(np.float32)


def ask_resized(server, path, table, encoding, believed, n, g, **fields):
    kind, offset = believed
    fields = {"scheme": "learned", "interpolate": kind, "table_grid": n, "grid": g, **({"interpolate_offset": offset} if offset else {}), **fields}
    return ask(server, fields, path, **{name: a.reshape(-1, a.shape[-1]) for name, a in (("table", table), ("encoding", encoding))})


@pytest.mark.parametrize("way", RESIZED)
@pytest.mark.parametrize("drawing", TABLES)
def test_a_table_resized_in_float32_is_right(server, way, drawing):
    """In 27 sizes, with products contracted or not in turn: each size both ways, of other tables."""
    seen = set()
    for i, (n, g) in enumerate(RESIZES, len(drawing)):
        table = drawn(drawing, n)
        encoding = resample.resample_grid_f32(way[0], table, *g, way[1], i % 2 == 0)
        answer = ask_resized(server, "/check", table, encoding, way, n, g)
        assert answer["fits"], (n, g, i % 2 == 0, answer)
        assert answer["verdict"] in ("exact", "rounding") and len(codes_of(answer)) == 1
        seen.update(codes_of(answer))
    assert seen <= {"as_believed", "coordinates_f32"} and (drawing != "trained" or "coordinates_f32" in seen)


@pytest.mark.parametrize("believed", RESIZED)
@pytest.mark.parametrize("drawing", TABLES)
def test_another_kernel_is_no_rounding(server, believed, drawing):
    for n, g in [((16, 16), (24, 24)), ((24, 24), (14, 14)), ((37, 37), (16, 16)), ((14, 14), (20, 30))]:
        table = drawn(drawing, n)
        others = {way: resample.resample_grid(way[0], table, *g, offset=way[1]) for way in RESIZED if way != believed}
        others["a -0.5"] = resample.resample_grid("bicubic", table, *g, cubic_a=-0.5)  # TensorFlow's
        right = resample.resample_grid(believed[0], table, *g, offset=believed[1])
        for way, encoding in others.items():
            if np.abs(encoding - right).max() < 1e-12:  # antialias changes nothing of a linear kernel where a table grows
                continue
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
    table, prefix = drawn("trained", n).reshape(-1, DIM), np.zeros((1, DIM), np.float32)
    exact = np.concatenate([prefix, resample.resample_grid("bicubic", table.reshape(16, 16, DIM), *g).reshape(-1, DIM)])
    found = np.concatenate([prefix, resample.resample_grid_f32("bicubic", table.reshape(16, 16, DIM), *g).reshape(-1, DIM)])
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
