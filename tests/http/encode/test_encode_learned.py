"""learned: rows looked up under each policy, tables resized to a grid, tables of rows and columns."""
import random

import numpy as np
import pytest

import truth.resample as resample
from asking import check_again, inline, refused
from truth.absolute import seeded
from tensors import encode, encode_one, from_safetensors, multipart, npy


def table_of(rows, dim, seed=1):
    return np.random.default_rng(seed).standard_normal((rows, dim)).astype("f4")


def learned(server, **fields):
    return encode_one(server, scheme="learned", **fields)


def test_rows_are_looked_up_exactly(server):
    table = table_of(10, 6)
    assert np.array_equal(learned(server, table=inline(table, "f32"), len=7), table[:7])
    assert np.array_equal(learned(server, table=inline(table, "f32"), positions=[3, 3, 0, 9]), table[[3, 3, 0, 9]])
    assert np.array_equal(learned(server, table=inline(table, "f32"), len=4, offset=2), table[2:6])
    assert np.array_equal(learned(server, table=inline(table, "f32"), len=8, row_offset=2), table[2:])  # OPT, BART
    half = learned(server, table=inline(table, "f32"), len=3, dtype="f16")
    assert np.array_equal(half, table[:3].astype("f2"))


def test_a_table_from_a_file(server):
    table = table_of(5, 4)
    body, headers = multipart(request='{"scheme":"learned","len":5,"format":"safetensors"}', table=npy(table))
    answer = server.post("/encode", body, headers)
    assert answer.status == 200 and np.array_equal(from_safetensors(answer)["encoding"], table)


POLICIES = {
    "clamp": lambda i, n: min(max(i, 0), n - 1),
    "wrap": lambda i, n: i % n,
    "zero": lambda i, n: i if 0 <= i < n else None,
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("row_offset", [0, 2, -3])
def test_policies(server, policy, row_offset):
    table, positions = table_of(6, 3), [0, 5, 6, 17, -1, -8, 10 ** 12]
    rows = [POLICIES[policy](p + row_offset, 6) for p in positions]
    expected = np.array([np.zeros(3, "f4") if r is None else table[r] for r in rows])
    request = dict(table=inline(table, "f32"), positions=positions, out_of_range=policy, row_offset=row_offset)
    answer = learned(server, **request)
    assert np.array_equal(answer, expected)
    check_again(server, {"scheme": "learned", **request}, ["table", "positions"], {"encoding": answer})


def test_stretched_to_the_sequence(server):
    table = table_of(5, 4).astype("f8")
    places = np.arange(9) * 4 / 8  # the largest position meets the last row
    expected = np.array([[np.interp(p, np.arange(5), table[:, j]) for j in range(4)] for p in places])
    answer = learned(server, table=inline(table), len=9, out_of_range="interpolate", dtype="f64")
    np.testing.assert_allclose(answer, expected, rtol=0, atol=1e-15)
    opt = learned(server, table=inline(table), len=5, row_offset=2, out_of_range="interpolate", dtype="f64")  # rows 2, 2.5, … 4
    np.testing.assert_allclose(opt, [table[2], (table[2] + table[3]) / 2, table[3], (table[3] + table[4]) / 2, table[4]], atol=1e-15)
    short = learned(server, table=inline(table), positions=[0, 1.5, 3], out_of_range="interpolate", dtype="f64")
    np.testing.assert_allclose(short, [table[0], (table[1] + table[2]) / 2, table[3]], atol=1e-15)


@pytest.mark.parametrize("kind", resample.KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_resized_to_the_grid(server, kind, seed):
    rng = random.Random(seed)
    g, w, h2, w2, prefix, dim = (rng.randint(1, 9) for _ in range(6))
    prefix %= 3
    table = np.random.default_rng(seed).standard_normal((prefix + g * w, dim))
    request = dict(table=inline(table), grid=[h2, w2], table_grid=[g, w], num_prefix=prefix, interpolate=kind, dtype="f64")
    answer = learned(server, **request)
    body = resample.resample_grid(kind, table[prefix:].reshape(g, w, dim), h2, w2).reshape(-1, dim)
    np.testing.assert_allclose(answer, np.concatenate([table[:prefix], body]), rtol=1e-12, atol=1e-13)
    check_again(server, {"scheme": "learned", **request}, ["table", "grid", "dtype"], {"encoding": answer})


@pytest.mark.parametrize("kind", [k for k in resample.KINDS if k != "bilinear_aligned"])
@pytest.mark.parametrize("sides, trained", [((7, 5), (4, 4)), ((3, 2), (9, 7)), ((16, 32), (16, 16))])
def test_an_offset_in_the_scale(server, kind, sides, trained):
    """DINO and DINOv2 resize by the scale (n + 0.1)/M: row o of n is at (o + 1/2)·M/(n + 0.1) - 1/2."""
    table = np.random.default_rng(2).standard_normal((1 + trained[0] * trained[1], 3))
    request = dict(table=inline(table), grid=list(sides), table_grid=list(trained), num_prefix=1, interpolate=kind, dtype="f64",
                   interpolate_offset=0.1)
    body = resample.resample_grid(kind, table[1:].reshape(*trained, 3), *sides, offset=0.1).reshape(-1, 3)
    answer = learned(server, **request)
    np.testing.assert_allclose(answer, np.concatenate([table[:1], body]), rtol=1e-12, atol=1e-13)
    assert np.abs(answer - learned(server, **{**request, "interpolate_offset": 0})).max() > 1e-4


def test_where_the_offset_reads(server):
    """16 rows as 32: a table of its own row numbers shows where rows are read, but for the border that cuts it."""
    at = [resample.source_coordinates("bilinear", 16, 32, float, offset) for offset in (0.1, 0)]
    assert [at[0][0], at[0][31]] == pytest.approx([-0.250779, 15.200935], abs=5e-7) and [at[1][0], at[1][31]] == [-0.25, 15.25]
    answer = learned(server, table=inline(np.arange(16.0)[:, None]), grid=[32, 1], table_grid=[16, 1], interpolate="bilinear", dtype="f64",
                     interpolate_offset=0.1)
    np.testing.assert_allclose(answer[:, 0], np.clip(at[0], 0, 15), atol=1e-14)


def test_libraries_differ_even_when_enlarging(server):
    table = table_of(16, 2)
    ask = dict(table=inline(table, "f32"), grid=[7, 7], table_grid=[4, 4])
    vit, timm = (learned(server, **ask, interpolate=k) for k in ("bicubic", "bicubic_antialias"))
    assert np.abs(vit - timm).max() > 1e-2
    assert np.array_equal(learned(server, **ask), vit)  # table_grid alone: ViT's


def test_the_same_grid_is_the_table(server):
    table = table_of(1 + 12, 3)
    for kind in resample.KINDS:
        answer = learned(server, table=inline(table, "f32"), grid=[3, 4], table_grid=[3, 4], num_prefix=1, interpolate=kind)
        np.testing.assert_allclose(answer, table, atol=1e-7)
    assert np.array_equal(learned(server, table=inline(table, "f32"), grid=[3, 4]), table[:12])


def test_merge_order(server):
    """Qwen3-VL: bilinear with aligned corners, in blocks of 2 by 2."""
    table = table_of(9, 2).astype("f8")
    answer = learned(server, table=inline(table), grid=[4, 6], table_grid=[3, 3], interpolate="bilinear_aligned", order="merge",
                     dtype="f64")
    whole = resample.resample_grid("bilinear_aligned", table.reshape(3, 3, 2), 4, 6)
    blocks = whole.reshape(2, 2, 3, 2, 2).transpose(0, 2, 1, 3, 4).reshape(-1, 2)
    np.testing.assert_allclose(answer, blocks, atol=1e-14)


def test_rows_and_columns(server):
    """DETR: the columns' channels first, and channels before the grid."""
    rows, cols = table_of(5, 3, 1), table_of(6, 3, 2)
    tables = dict(row_table=inline(rows, "f32"), col_table=inline(cols, "f32"))
    answer = learned(server, **tables, grid=[4, 6])
    assert answer.shape == (6, 4, 6)
    for y in range(4):
        for x in range(6):
            assert np.array_equal(answer[:, y, x], np.concatenate([cols[x], rows[y]]))
    flat = learned(server, **tables, grid=[4, 6], channels_first=False)
    assert np.array_equal(flat.T.reshape(6, 4, 6), answer)


def test_seeded_tables_begin_alike(server):
    whole = learned(server, len=20, dim=8, seed=3)
    assert np.array_equal(whole, seeded("table", (20, 8), 3))
    assert np.array_equal(learned(server, len=5, offset=4, dim=8, seed=3), whole[4:9])
    assert np.array_equal(learned(server, len=5, dim=8, rows=1000, seed=3), whole[:5])
    both = learned(server, grid=[3, 4], dim=6, seed=3)
    assert both.shape == (6, 3, 4)


def test_combined_with_class_rows(server):
    table, x = table_of(1 + 4, 3), table_of(1 + 6, 3, 5)
    tensors = encode(server, scheme="learned", table=inline(table, "f32"), grid=[2, 3], table_grid=[2, 2], num_prefix=1,
                     x=inline(x, "f32"), outputs=["encoding", "combined"])
    np.testing.assert_allclose(tensors["combined"], x + tensors["encoding"], atol=1e-6)


BAD = [
    ("/table", ["seed"], dict(len=3)),
    ("/table", ["2 rows", "row 2"], dict(len=3, table=[[1, 2], [3, 4]])),
    ("/table", ["row -1"], dict(positions=[-1], table=[[1, 2], [3, 4]])),
    ("/table", ["row_offset", "row 3"], dict(len=2, table=[[1, 2], [3, 4]], row_offset=2)),
    ("/positions", ["interpolate"], dict(positions=[0.5], table=[[1, 2], [3, 4]])),
    ("/dim", ["table"], dict(len=1, dim=3, table=[[1, 2]])),
    ("/table", ["axes"], dict(len=1, table=[1, 2])),
    ("/table", ["not a tensor"], dict(len=1, table="a")),
    ("/table_grid", ["table_grid"], dict(grid=[2, 2], interpolate="bicubic", table=[[1], [2]])),
    ("/table", ["num_prefix", "4"], dict(grid=[2, 2], table_grid=[2, 2], table=[[1], [2]])),
    ("/interpolate", ["grid"], dict(len=2, table_grid=[1, 2], table=[[1], [2]])),
    ("/table", ["one way"], dict(grid=[1, 1], table=[[1]], row_table=[[1]], col_table=[[1]])),
    ("/num_prefix", ["interpolate"], dict(len=1, table=[[1]], num_prefix=1)),
    ("/interpolate_offset", ["interpolate"], dict(len=1, table=[[1]], interpolate_offset=0.1)),
    ("/interpolate_offset", ["bilinear_aligned"], dict(grid=[1, 2], table_grid=[1, 1], table=[[1]], interpolate="bilinear_aligned", interpolate_offset=0.1)),
    ("/interpolate_offset", ["0.99"], dict(grid=[1, 2], table_grid=[1, 1], table=[[1]], interpolate="bilinear", interpolate_offset=1)),
    ("/out_of_range", ["not used"], dict(grid=[2, 2], table_grid=[1, 1], table=[[1]], out_of_range="clamp")),
    ("/row_table", ["two axes"], dict(len=2, row_table=[[1]], col_table=[[1]])),
    ("/row_table", ["row 1"], dict(grid=[2, 1], row_table=[[1]], col_table=[[1]])),
    ("/channels_first", ["num_prefix"], dict(grid=[1, 1], table_grid=[1, 1], num_prefix=1, table=[[1], [2]], channels_first=True)),
    ("/out_of_range", ["clamp"], dict(len=1, table=[[1]], out_of_range="clam")),
]


@pytest.mark.parametrize("pointer,words,fields", BAD)
def test_refused(server, pointer, words, fields):
    refused(server, pointer, *words, scheme="learned", **fields)
