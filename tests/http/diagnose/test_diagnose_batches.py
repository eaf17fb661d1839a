"""POST /diagnose of batches and of parts of a sequence: padded tables and maps, shards, tables with too few rows, levels of positions. The
tensors are made in NumPy by the rule of each mistake."""
import json

import numpy as np
import pytest

import reference
from diagnosing import codes_of
from tensors import multipart, npy

WIDTH, N = 16, 12
BELIEF = {"scheme": "rope", "head_dim": WIDTH, "layout": "half"}
MASK = np.array([[0] * 4 + [1] * 8, [1] * N, [0] * 7 + [1] * 5])


def ask(server, fields, **arrays):
    body, headers = multipart(request=json.dumps(fields), **{name: npy(array) for name, array in arrays.items()})
    response = server.post("/diagnose", body, headers)
    assert response.status == 200, response
    return response.json()


def by_tokens(mask, pad=1):
    return np.where(mask == 1, mask.cumsum(-1) - 1, pad)


def tables(positions):
    angles = np.asarray(positions, "f8")[..., None] * 10000.0 ** (-np.arange(0, WIDTH, 2) / WIDTH)
    return {"cos": np.cos(angles).astype("f4"), "sin": np.sin(angles).astype("f4")}


def rotated(positions, seed=0):
    """q [B, 2, n, d] and q_out; positions [n] or [B, n]."""
    positions = np.atleast_2d(positions)
    q = np.random.default_rng(seed).standard_normal((len(positions), 2, positions.shape[-1], WIDTH)).astype("f4")
    return {"q": q, "q_out": np.stack([reference.rotate(row, p, layout="half") for row, p in zip(q, positions)]).astype("f4")}


# ---- Padding ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions, codes", [
    (by_tokens(MASK), ["as_believed"]), (by_tokens(MASK, 77), ["as_believed"]), (np.arange(N) + 0 * MASK, ["padding_counted"])])
def test_padded_tables(server, positions, codes):
    answer = ask(server, {**BELIEF, "attention_mask": MASK.tolist()}, **tables(positions))
    assert codes_of(answer) == codes


def test_padded_encodings(server):
    belief = {"scheme": "sinusoidal", "dim": WIDTH, "attention_mask": MASK.tolist(), "padding": "counted"}
    pairs = tables(by_tokens(MASK))
    encoding = np.stack([pairs["sin"], pairs["cos"]], -1).reshape(3, N, WIDTH)
    assert codes_of(ask(server, belief, encoding=encoding)) == ["padding_skipped"]


def test_tables_by_rows_of_a_batch(server):
    positions = np.array([np.arange(N), np.arange(N) + 7])
    fields = {**BELIEF, "positions": positions.tolist(), "positions_layout": "batch"}
    assert codes_of(ask(server, fields, **tables(positions))) == ["as_believed"]
    assert codes_of(ask(server, fields, **tables(positions + 1))) == ["off_by_one"]


def scores(q, k, positions, causal=True, mask=MASK):
    maps = []
    for b in range(len(q)):
        a, c = (reference.rotate(x[b], positions[b], layout="half") for x in (q, k))
        s = a @ c.swapaxes(1, 2) / np.sqrt(WIDTH)
        away = (np.arange(N) > np.arange(N)[:, None]) & causal
        maps.append(np.where(away | (mask[b] == 0), -np.inf, s))
    return np.stack(maps)


@pytest.mark.parametrize("positions, codes", [(by_tokens(MASK), ["as_believed"]), (np.arange(N) + 0 * MASK, None)])
def test_padded_maps(server, positions, codes):
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((3, 2, N, WIDTH)) for _ in range(2))
    found = scores(q, k, positions)
    found[np.broadcast_to(MASK[:, None, None, :] == 0, found.shape)] = -1e9  # padding may hold anything
    found[np.broadcast_to(MASK[:, None, :, None] == 0, found.shape)] = 3.0
    answer = ask(server, {**BELIEF, "causal": True, "attention_mask": MASK.tolist()}, q=q, k=k, scores=found)
    if codes:
        assert codes_of(answer) == codes, answer["findings"]
    else:  # distances between tokens are the same, so the scores are: relative positions hide the offset
        assert answer["explained"]


def test_a_map_with_its_layout(server):
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((1, 2, N, WIDTH)) for _ in range(2))
    found = scores(q, k, [np.arange(N)], mask=np.ones((1, N)))
    turn = lambda x: np.ascontiguousarray(x.transpose(0, 2, 1, 3))
    answer = ask(server, {**BELIEF, "causal": True, "tensor_layout": "bnhd"}, q=turn(q), k=turn(k), scores=found)
    assert codes_of(answer) == ["as_believed"]


# ---- Parts of a sequence ------------------------------------------------------------------------------------------------------------


def zigzag(rank, of, n):
    half = n // 2
    return np.concatenate([np.arange(rank * half, (rank + 1) * half), np.arange((2 * of - 1 - rank) * half, (2 * of - rank) * half)])


@pytest.mark.parametrize("rank, of", [(1, 4), (0, 2), (2, 8)])
@pytest.mark.parametrize("make", [tables, rotated])
def test_a_shard_where_none_is_believed(server, rank, of, make):
    answer = ask(server, {**BELIEF, "len": N}, **make(zigzag(rank, of, N)))
    assert codes_of(answer) == ["positions_sharded"], answer["findings"]
    assert answer["candidates"][0]["sequence"] == {"len": N, "shard": {"rank": rank, "of": of, "split": "zigzag"}}
    first = answer["findings"][0]
    assert first["pointer"] == "/shard" and first["found"]["rank"] == rank and first["detail_zh"] != first["detail"]


def test_no_shard_where_one_is_believed(server):
    belief = {**BELIEF, "len": N, "shard": {"rank": 1, "of": 4}}
    assert codes_of(ask(server, belief, **rotated(zigzag(1, 4, N)))) == ["as_believed"]
    answer = ask(server, belief, **rotated(np.arange(N)))
    assert codes_of(answer) == ["positions_sharded"] and answer["candidates"][0]["sequence"] == {"len": N}


@pytest.mark.parametrize("positions", [zigzag(3, 4, N), np.arange(N) + 2 * N])
def test_consecutive_rows_of_a_rank_are_an_offset_first(server, positions):
    answer = ask(server, {**BELIEF, "len": N}, **rotated(positions))
    assert codes_of(answer) == ["offset_other"]
    assert "positions_sharded" in [code for also in answer["candidates"][0]["also"] for code in also["codes"]]


# ---- Tables with too few rows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [tables, rotated])
def test_clamped(server, make):
    positions = np.minimum(np.arange(2 * N), 8)
    answer = ask(server, {**BELIEF, "len": 2 * N}, **make(positions))
    assert codes_of(answer) == ["positions_clamped"], answer["findings"]
    assert answer["candidates"][0]["sequence"]["positions"] == positions.tolist()


def test_wrapped_from_0_is_a_restart_first(server):
    answer = ask(server, {**BELIEF, "len": 2 * N}, **rotated(np.arange(2 * N) % 9))
    assert codes_of(answer) == ["position_reset"]
    assert ["positions_wrapped"] in [also["codes"] for also in answer["candidates"][0]["also"]]


def test_wrapped_behind_an_offset(server):
    answer = ask(server, {**BELIEF, "len": N, "offset": 20}, **rotated((np.arange(N) + 20) % 9))
    assert codes_of(answer) == ["positions_wrapped"]


# ---- Levels of positions ------------------------------------------------------------------------------------------------------------


def test_levels_of_positions(server):
    """Three rows of a batch, and three axes: [3][n] may be either."""
    axes = {**BELIEF, "mrope_section": [4, 2, 2], "channels": "mrope"}
    ids = np.random.default_rng(4).integers(0, 40, (3, N))
    q = np.random.default_rng(5).standard_normal((3, 2, N, WIDTH)).astype("f4")
    post = lambda **fields: np.array(server.ask("/rotate", **axes, **fields, q=q.tolist(), digits=9).json()["tensors"]["q"]["data"], "f4")
    by_axes, by_batch = post(positions=ids.tolist()), post(positions=ids.tolist(), positions_layout="batch")
    assert codes_of(ask(server, {**axes, "positions": ids.tolist()}, q=q, q_out=by_batch)) == ["positions_layout_other"]
    answer = ask(server, {**axes, "positions": ids.tolist(), "positions_layout": "batch"}, q=q, q_out=by_axes)
    assert codes_of(answer) == ["positions_layout_other"] and answer["findings"][0]["pointer"] == "/positions_layout"
    both = np.random.default_rng(6).integers(0, 40, (3, 3, N))
    turned = post(positions=both.transpose(1, 0, 2).tolist(), positions_layout="axes_batch")
    for layout in ("batch_axes", "axes_batch"):
        right = both if layout == "batch_axes" else both.transpose(1, 0, 2)
        fields = {**axes, "positions": right.tolist(), "positions_layout": layout}
        assert codes_of(ask(server, fields, q=q, q_out=turned)) == ["as_believed"]
        fields["positions"] = right.transpose(1, 0, 2).tolist()
        assert codes_of(ask(server, fields, q=q, q_out=turned)) == ["positions_layout_other"]
