"""POST /encode with swin, swinv2, beit: indices, table look-ups, the network of v2, masks, sizes, refusals."""
import random

import numpy as np
import pytest

import truth
import truth.window as window
from asking import check_again, given, inline, refused
from truth.absolute import seeded
from tensors import encode, encode_one, from_safetensors, multipart, npy

SCHEMES = ["swin", "swinv2", "beit"]
TABLES = ["swin", "beit"]


def table_of(scheme, h, w, heads, seed=1):
    return np.random.default_rng(seed).standard_normal((window.rows(scheme, h, w), heads)).astype("f4")


def network_of(heads, hidden=512, seed=1):
    rng = np.random.default_rng(seed)
    draw = lambda *shape: rng.standard_normal(shape).astype("f4")
    return {"w1": draw(hidden, 2), "b1": draw(hidden), "w2": draw(heads, hidden) / np.float32(hidden ** 0.5)}


def tensors_of(scheme, h, w, heads, seed=1):
    arrays = network_of(heads, 24, seed) if scheme == "swinv2" else {"table": table_of(scheme, h, w, heads, seed)}
    return {name: inline(array, "f32") for name, array in arrays.items()}, arrays


def close(got, expected, rtol=1e-14):
    """swinv2 in f64: a few ulp of the largest of 512 terms."""
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=1e-13)


# ---- Without weights ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("grid", [[7, 7], [8, 8], [14, 14], [1, 1], [1, 5], [5, 1], [2, 3], [3, 2]])
def test_the_index_is_answered_without_weights(server, scheme, grid):
    answer = encode(server, scheme=scheme, grid=grid)
    assert list(answer) == ["index"] and answer["index"].dtype == np.int32
    assert np.array_equal(answer["index"], window.INDEX[scheme](*grid))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_length_is_a_line(server, scheme):
    line = encode_one(server, scheme=scheme, len=9)
    assert np.array_equal(line, window.INDEX[scheme](1, 9))
    for same in (dict(grid=[1, 9]), dict(grid=[9]), dict(len=9, offset=4), dict(tokens=list("abcdefghi"))):
        assert np.array_equal(encode_one(server, scheme=scheme, **same), line), same


def test_published_indices(server):
    """Indices by hand."""
    assert encode_one(server, scheme="swin", grid=[2, 2]).tolist() == [[4, 3, 1, 0], [5, 4, 2, 1], [7, 6, 4, 3], [8, 7, 5, 4]]
    oblong = encode_one(server, scheme="swin", grid=[2, 3])
    assert oblong[0].tolist() == [7, 6, 5, 2, 1, 0] and oblong[5].tolist() == [14, 13, 12, 9, 8, 7]
    assert encode_one(server, scheme="beit", grid=[2, 2]).tolist() == [
        [11, 9, 9, 9, 9], [10, 4, 3, 1, 0], [10, 5, 4, 2, 1], [10, 7, 6, 4, 3], [10, 8, 7, 5, 4]]


@pytest.mark.parametrize("scheme,tensor", [("swin", "/table"), ("beit", "/table"), ("swinv2", "/w1")])
def test_the_bias_needs_weights(server, scheme, tensor):
    for outputs in (["bias"], ["index", "bias"]):
        refused(server, tensor, "seed", "weights", "sent", scheme=scheme, grid=[7, 7], outputs=outputs)


# ---- Tables ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme,grid,heads,size", [
    ("swin", [7, 7], 3, 169), ("swin", [12, 12], 4, 529), ("beit", [14, 14], 12, 732), ("beit", [24, 24], 16, 2212)])
def test_published_settings(server, scheme, grid, heads, size):
    table = table_of(scheme, *grid, heads)
    assert len(table) == size
    answer = encode(server, scheme=scheme, grid=grid, table=inline(table, "f32"))
    assert list(answer) == ["bias"]
    assert answer["bias"].tobytes() == window.looked_up(scheme, table, *grid).tobytes()


@pytest.mark.parametrize("scheme", TABLES)
@pytest.mark.parametrize("seed", range(12))
def test_random_windows(server, scheme, seed):
    rng = random.Random(seed)
    h, w, heads = rng.randint(1, 9), rng.randint(1, 9), rng.randint(1, 7)
    table, n = table_of(scheme, h, w, heads, seed), h * w + (scheme == "beit")
    mask = given(causal=rng.choice([None, True]), window=rng.choice([None, rng.randint(1, n)]),
                 window_right=rng.choice([None, rng.randint(0, n)]),
                 key_mask=rng.choice([None, [rng.randint(0, 1) for _ in range(n)]]))
    request = dict(scheme=scheme, grid=[h, w], table=inline(table, "f32"), **mask)
    answer = encode(server, **request)
    assert np.array_equal(answer["bias"], window.masked(window.looked_up(scheme, table, h, w), **mask)), mask
    check_again(server, request, ["grid", "table"], answer)


@pytest.mark.parametrize("scheme", TABLES)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
def test_values_are_rounded_once(server, scheme, dtype):
    table = np.random.default_rng(0).standard_normal((window.rows(scheme, 3, 4), 2))
    got = encode_one(server, scheme=scheme, grid=[3, 4], table=inline(table), dtype=dtype)
    expected = [[truth.nearest(v, dtype) for v in row] for row in table.tolist()]
    assert np.array_equal(got, window.looked_up(scheme, np.array(expected), 3, 4))


def test_zero_is_never_negative(server):
    for dtype in ("f16", "bf16", "f32", "f64"):
        bias = encode_one(server, scheme="swin", len=2, table=[[-0.0], [-1e-30], [0.0]], dtype=dtype)
        zeros = bias == 0
        assert zeros.any() and not np.signbit(bias[zeros]).any()


def test_infinities_pass(server):
    bias = encode_one(server, scheme="swin", len=2, table=[["-Infinity"], [1.0], ["NaN"]])
    assert bias[0, 0].tolist() == [1.0, -np.inf] and np.isnan(bias[0, 1, 0]) and bias[0, 1, 1] == 1.0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_index_beside_the_bias(server, scheme):
    tensors, _ = tensors_of(scheme, 3, 4, 2)
    both = encode(server, scheme=scheme, grid=[3, 4], outputs=["index", "bias"], **tensors)
    assert list(both) == ["index", "bias"] and np.array_equal(both["index"], window.INDEX[scheme](3, 4))
    assert both["bias"].tobytes() == encode_one(server, scheme=scheme, grid=[3, 4], **tensors).tobytes()
    alone = encode(server, scheme=scheme, grid=[3, 4], outputs=["index"], **tensors)
    assert list(alone) == ["index"]


def test_a_table_from_a_file(server):
    table = table_of("swin", 7, 7, 3)
    body, headers = multipart(request='{"scheme":"swin","grid":[7,7],"format":"safetensors"}', table=npy(table))
    answer = server.post("/encode", body, headers)
    assert answer.status == 200
    assert np.array_equal(from_safetensors(answer)["bias"], window.looked_up("swin", table, 7, 7))


# ---- Seeds ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", TABLES)
def test_a_seeded_table(server, scheme):
    request = dict(scheme=scheme, grid=[4, 5], num_heads=3, seed=11)
    answer = encode(server, **request)
    table = seeded("table", (window.rows(scheme, 4, 5), 3), 11)
    assert list(answer) == ["bias"] and np.array_equal(answer["bias"], window.looked_up(scheme, table, 4, 5))
    check_again(server, request, ["grid"], answer)
    assert encode_one(server, scheme=scheme, len=2, seed=0).shape[0] == 8  # num_heads


def test_a_seeded_network(server):
    request = dict(scheme="swinv2", grid=[4, 5], num_heads=3, seed=11, std=0.5, dtype="f64")
    answer = encode(server, **request)
    w1, b1, w2 = (seeded(n, s, 11, 0.5) for n, s in (("w1", (512, 2)), ("b1", (512,)), ("w2", (3, 512))))
    close(answer["bias"], window.swinv2(4, 5, w1, b1, w2))
    check_again(server, request, ["grid", "dtype"], answer)


# ---- swinv2 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid,pretrained", [([8, 8], None), ([16, 16], None), ([16, 16], [12, 12]), ([24, 24], [12, 12]),
                                             ([12, 12], [6, 6]), ([8, 8], [0, 0])])
def test_published_windows_of_v2(server, grid, pretrained):
    weights = network_of(6)
    request = dict(scheme="swinv2", grid=grid, **given(pretrained_grid=pretrained),
                   **{name: inline(array, "f32") for name, array in weights.items()})
    answer = encode(server, **request, dtype="f64")
    close(answer["bias"], window.swinv2(*grid, **weights, pretrained=pretrained if pretrained != [0, 0] else None))
    check_again(server, {**request, "dtype": "f64"}, ["grid", "dtype", *weights], answer)
    single = encode_one(server, **request)  # f32: the same, rounded
    assert single.dtype == np.float32 and np.array_equal(single, answer["bias"].astype("f4"))


@pytest.mark.parametrize("seed", range(12))
def test_random_windows_of_v2(server, seed):
    rng = random.Random(seed)
    h, w, heads, hidden = rng.randint(1, 8), rng.randint(1, 8), rng.randint(1, 5), rng.choice([1, 2, 3, 7, 64, 512])
    pretrained = rng.choice([None, [rng.randint(1, 20), rng.randint(1, 20)]])
    mask = given(causal=rng.choice([None, True]), key_mask=rng.choice([None, [rng.randint(0, 1) for _ in range(h * w)]]))
    weights = network_of(heads, hidden, seed)
    request = dict(scheme="swinv2", grid=[h, w], dtype="f64", **given(pretrained_grid=pretrained), **mask,
                   **{name: inline(array, "f32") for name, array in weights.items()})
    answer = encode(server, **request)
    close(answer["bias"], window.masked(window.swinv2(h, w, **weights, pretrained=pretrained), **mask))
    check_again(server, request, ["grid", "dtype", *weights], answer)


def test_a_few_ulp_of_the_exact_value(server):
    weights = {name: array.tolist() for name, array in network_of(2, 16, 3).items()}
    got = encode_one(server, scheme="swinv2", grid=[3, 4], dtype="f64", pretrained_grid=[7, 5], **weights)
    exact = np.array(window.swinv2_exact(3, 4, **weights, pretrained=(7, 5)), dtype=object)
    assert max(abs(float((e - g) / e)) for e, g in zip(exact.ravel(), got.ravel().tolist())) < 2e-15


def test_published_coordinates(server):
    """Seen through a network that passes one on: the last is log2(9)/3, not 1."""
    through = dict(scheme="swinv2", b1=[0, 0], w2=[[1, -1]], dtype="f64")
    published = [0, .3665118912, .5720690113, .7156137961, .8260157656, .9157446432, .9913349305, 1.0566416671]
    logit = lambda bias: -np.log(16 / bias - 1)
    x = logit(encode_one(server, len=8, w1=[[0, 1], [0, -1]], **through)[0])
    np.testing.assert_allclose(x[7, ::-1], published, rtol=0, atol=1e-9)  # query minus key is positive
    np.testing.assert_allclose(x[0], [-c for c in published], rtol=0, atol=1e-9)
    y = logit(encode_one(server, grid=[8, 2], w1=[[1, 0], [-1, 0]], **through)[0])
    np.testing.assert_allclose(y[14, ::-2], published, rtol=0, atol=1e-9)  # w1's first column is for rows
    one = encode_one(server, grid=[1, 3], w1=[[1, 0], [-1, 0]], **through)
    assert np.all(one == 8)  # an axis of 1 has coordinate 0


def test_float32_rounds_each_step(server):
    weights = {name: array.tolist() for name, array in network_of(3, 64).items()}
    request = dict(scheme="swinv2", grid=[8, 8], **weights)
    exact = encode_one(server, **request, dtype="f64")
    rough = encode_one(server, **request, dtype="f64", arith="float32")
    assert np.array_equal(rough, rough.astype("f4").astype("f8"))
    assert 0 < np.abs(rough - exact).max() < 2e-5


def test_the_resolved_window_of_the_pretraining(server):
    config = server.ask(scheme="swinv2", grid=[8, 6]).json()["config"]
    assert config["pretrained_grid"] == [8, 6] and config["hidden"] == 512 and "seed" not in config and "std" not in config
    assert server.ask(scheme="swinv2", grid=[8, 6], pretrained_grid=[12, 0]).json()["config"]["pretrained_grid"] == [12, 6]


# ---- Large windows -------------------------------------------------------------------------------------------------------


def test_many_heads_share_the_table(server):
    """Several threads make it; 86 MB of map out of 0.6 MB."""
    n, heads = 24 * 24, 130
    answer = encode_one(server, scheme="swin", grid=[24, 24], num_heads=heads, seed=3, dtype="f16")
    table = seeded("table", (47 * 47, heads), 3).astype("f2")
    assert answer.shape == (heads, n, n)
    index = window.swin_index(24, 24)
    for head in (0, 64, heads - 1):
        assert np.array_equal(answer[head], table[:, head][index])


@pytest.mark.parametrize("fields,pointer", [
    (dict(scheme="swin", grid=[64, 64], num_heads=4096, seed=0), "/grid"),
    (dict(scheme="beit", len=2 ** 23, num_heads=1, seed=0), "/len"),
    (dict(scheme="swinv2", grid=[2 ** 20, 3], num_heads=1, seed=0), "/grid"),
    (dict(scheme="swin", grid=[2 ** 15, 2 ** 15]), "/grid"),
    (dict(scheme="beit", len=2 ** 40), "/len")])
def test_too_large(server, fields, pointer):
    response = server.post("/encode", fields)
    assert response.status == 413 and response.json()["pointer"] == pointer, response


# ---- Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields,pointer,words", [
    (dict(scheme="swin", grid=[7, 7], table=[[0.0] * 3] * 529), "/table", ["[529,3]", "[169,3]"]),
    (dict(scheme="swin", grid=[2, 2], table=[[0.0] * 9] * 3), "/table", ["[3,9]", "[9,9]"]),  # transposed
    (dict(scheme="beit", grid=[2, 2], table=[[0.0]] * 9), "/table", ["[9,1]", "[12,1]"]),
    (dict(scheme="swin", grid=[2, 2], table=[0.0] * 9), "/table", ["[9]", "[9,8]"]),
    (dict(scheme="swin", grid=[2, 2], num_heads=2, table=[[0.0]] * 9), "/num_heads", ["2", "1"]),
    (dict(scheme="swin", grid=[2, 2], table=[[0.0]] * 9, seed=1), "/seed", ["random"]),
    (dict(scheme="swin", grid=[2, 2], std=1.0), "/std", ["random"]),
    (dict(scheme="swin", grid=[2, 2], w1=[[1, 2]]), "/w1", ["w1"]),
    (dict(scheme="swin", grid=[2, 2], pretrained_grid=[2, 2]), "/pretrained_grid", []),
    (dict(scheme="swinv2", grid=[2, 2], w1=[[1, 2]], b1=[1]), "/w2", ["[8,1]", "seed"]),
    (dict(scheme="swinv2", grid=[2, 2], w1=[[1, 2, 3]], b1=[1], w2=[[1]]), "/w1", ["[1,3]", "[1,2]"]),
    (dict(scheme="swinv2", grid=[2, 2], hidden=1025), "/hidden", ["1025"]),
    (dict(scheme="swinv2", grid=[2, 2], pretrained_grid=[8, 8, 8]), "/pretrained_grid", ["3"]),
    (dict(scheme="swinv2", grid=[2, 2], pretrained_grid=[-1, 8]), "/pretrained_grid", ["-1"])])
def test_refused(server, fields, pointer, words):
    refused(server, pointer, *words, **fields)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("fields,pointer,words", [
    ({}, "/len", ["grid"]), (dict(grid=[2, 3, 4]), "/grid", ["3 axes", "[h,w]"]), (dict(positions=[0, 1, 2]), "/positions", ["grid"]),
    (dict(positions=[[0, 1], [0, 1]]), "/positions", ["grid"]), (dict(lens=[2, 3]), "/lens", ["grid"]),
    (dict(segments=[{"type": "text", "len": 3}]), "/segments", ["grid"]), (dict(grid=[4, 4], order="merge"), "/order", ["line"]),
    (dict(q_len=3), "/q_len", []), (dict(grid=[0, 3]), "/grid", ["0"]), (dict(grid=[2.5, 3]), "/grid", ["2.5"]),
    (dict(grid=[2, 2], num_heads=0), "/num_heads", ["0"]), (dict(grid=[2, 2], key_mask=[1, 1, 1]), "/key_mask", ["3"]),
    (dict(grid=[2, 2], outputs=["table"]), "/outputs/0", ["bias", "index"]), (dict(len=3, tabel=[[1]]), "/tabel", [])])
def test_refused_by_all(server, scheme, fields, pointer, words):
    refused(server, pointer, *words, scheme=scheme, **fields)
