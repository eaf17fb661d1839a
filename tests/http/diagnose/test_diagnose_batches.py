"""POST /diagnose of batches and of parts of a sequence: padded tables and maps, shards, tables with too few rows, levels of positions. The
tensors are made in NumPy by the rule of each mistake."""
import json

import numpy as np
import pytest

import truth
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
    return {"q": q, "q_out": np.stack([truth.rotate(row, p, layout="half") for row, p in zip(q, positions)]).astype("f4")}


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


def forms(positions):
    """The same tables in every arrangement, [batch, n] before their own axes."""
    cos, sin = tables(positions).values()
    angles = np.asarray(positions, "f8")[..., None] * 10000.0 ** (-np.arange(0, WIDTH, 2) / WIDTH)
    twice = lambda x: np.concatenate([x, x], -1)
    return {
        "cos": {"cos": cos, "sin": sin}, "expanded": {"cos": twice(cos), "sin": twice(sin)},
        "behind the heads' axis": {"cos": cos[:, None], "sin": sin[:, None]}, "before it": {"cos": cos[:, :, None], "sin": sin[:, :, None]},
        "angles": {"angles": angles.astype("f4")}, "freqs": {"freqs": twice(angles).astype("f4")},
        "freqs_cis": {"freqs_cis": np.stack([cos, sin], -1)}, "complex": {"freqs_cis": cos + 1j * sin},
        "cos_sin": {"cos_sin": np.concatenate([cos, sin], -1)}, "stacked": {"cos_sin": np.stack([cos, sin])},
        "pairs": {"cos_sin": np.stack([cos, sin], -1)}, "matrix": {"matrix": np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)},
    }


FORMS = list(forms(MASK))


@pytest.mark.parametrize("form", FORMS)
def test_every_table_has_rows_of_a_batch(server, form):
    rows = np.array([np.arange(N), np.arange(N) + 7, np.arange(N) + 30])
    masked, listed = {**BELIEF, "attention_mask": MASK.tolist()}, {**BELIEF, "positions": rows.tolist(), "positions_layout": "batch"}
    assert codes_of(ask(server, masked, **forms(by_tokens(MASK))[form])) == ["as_believed"]
    assert codes_of(ask(server, masked, **forms(np.arange(N) + 0 * MASK)[form])) == ["padding_counted"]
    assert codes_of(ask(server, listed, **forms(rows)[form])) == ["as_believed"]
    assert codes_of(ask(server, listed, **forms(rows + 1)[form])) == ["off_by_one"]


@pytest.mark.parametrize("form", FORMS)
def test_a_table_whose_batch_shares_its_positions(server, form):
    """Without a list for each row, the sequence is that of every row; what differs are first positions."""
    common = np.arange(N) + 0 * MASK
    assert codes_of(ask(server, BELIEF, **forms(common)[form])) == ["as_believed"]
    answer = ask(server, BELIEF, **forms(common + 5)[form])
    assert codes_of(answer) == ["offset_other"] and answer["candidates"][0]["sequence"] == {"len": N, "offset": 5}
    assert codes_of(ask(server, {**BELIEF, "len": N, "attention_mask": MASK[0].tolist()}, **forms(np.broadcast_to(by_tokens(MASK[0]), MASK.shape))[form])) == ["as_believed"]
    first = np.array([0, 7, 30])
    answer = ask(server, BELIEF, **forms(np.arange(N) + first[:, None])[form])
    assert codes_of(answer) == ["offsets_by_row"] and answer["findings"][0]["found"] == first.tolist()
    assert answer["candidates"][0]["sequence"]["positions_layout"] == "batch"
    padded = by_tokens(np.array([[0] * 4 + [1] * 8, [1] * N, [0] * 5 + [1] * 7]))
    left = ask(server, BELIEF, **forms(padded)[form])
    assert codes_of(left) == ["offsets_by_row"], "what left padding is like without its mask"
    assert left["candidates"][0]["sequence"]["positions"] == padded.tolist()


def test_one_row_of_a_batch_that_is_wrong(server):
    cos, sin = tables(np.arange(N) + 0 * MASK).values()
    cos[1, 4, 3] += 1e-3
    answer = ask(server, BELIEF, cos=cos, sin=sin)
    assert not answer["explained"] and answer["belief"]["first_bad"]["index"] == [1, 4, 3]
    assert codes_of(ask(server, {"scheme": "rope", "layout": "half"}, cos_sin=np.stack([np.concatenate([c, c], -1) for c in (cos * 0 + cos[0], sin)]))) == ["as_believed"]


def test_two_rows_are_no_stack_of_two_tables(server):
    """[2, n, columns] are cosines and sines, or two rows of both: the numbers decide."""
    cos, sin = tables(np.arange(N)[None] + [[0], [3]]).values()
    assert codes_of(ask(server, BELIEF, cos_sin=np.concatenate([cos, sin], -1))) == ["offsets_by_row"]
    assert codes_of(ask(server, BELIEF, cos_sin=np.stack([cos[0], sin[0]]))) == ["as_believed"]
    assert codes_of(ask(server, BELIEF, cos_sin=np.stack([sin[0], cos[0]]))) == ["sin_cos_swapped"]
    alike = tables(np.arange(N) + np.zeros((2, 1))).values()
    assert codes_of(ask(server, BELIEF, cos_sin=np.concatenate(list(alike), -1))) == ["as_believed"]


def test_a_batch_with_another_fault(server):
    common = np.arange(N) + 0 * MASK
    cos, sin = tables(common).values()
    assert codes_of(ask(server, BELIEF, cos=sin, sin=cos)) == ["sin_cos_swapped"]
    angles = common[..., None] * 500000.0 ** (-np.arange(0, WIDTH, 2) / WIDTH)
    assert codes_of(ask(server, BELIEF, freqs_cis=np.stack([np.cos(angles), np.sin(angles)], -1).astype("f4"))) == ["base_other"]
    assert codes_of(ask(server, BELIEF, angles=common[..., None] * np.ones(8) * 10000.0 ** (-np.arange(0, WIDTH, 2) / WIDTH) * -1)) == ["direction_reversed"]


def test_batches_that_do_not_match(server):
    cos, sin = tables(np.arange(N) + 0 * MASK).values()
    for fields, words in (({"len": 5}, "[5,8]"), ({"positions": [[0] * N] * 2, "positions_layout": "batch"}, "[2,12,8]")):
        response = server.post("/diagnose", *multipart(request=json.dumps({**BELIEF, **fields}), cos=npy(cos), sin=npy(sin)))
        assert response.status == 422 and "[3,12,8]" in response.json()["detail"] and words in response.json()["detail"], response


# ---- position_ids beside the evidence ----------------------------------------------------------------------------------------------


IDS = np.array([np.arange(N), np.arange(N) + 7, np.arange(N) + 30])


@pytest.mark.parametrize("form", ["cos", "freqs_cis", "angles", "matrix"])
def test_ids_beside_tables(server, form):
    for ids, positions in ((IDS[1], IDS[1]), (IDS[1:2], IDS[1]), (IDS, IDS), (by_tokens(MASK), by_tokens(MASK))):
        assert codes_of(ask(server, BELIEF, position_ids=ids, **forms(np.atleast_2d(positions))[form])) == ["as_believed"]
        assert codes_of(ask(server, BELIEF, position_ids=ids, **forms(np.atleast_2d(positions) + 1)[form])) == ["off_by_one"]
    assert codes_of(ask(server, BELIEF, position_ids=IDS, **forms(np.arange(N) + 0 * IDS)[form]))[0] == "offsets_by_row"


def test_ids_beside_rotated_tensors(server):
    for ids in (IDS[2], IDS[2:], IDS[:1] + 5, IDS, by_tokens(MASK)):
        assert codes_of(ask(server, BELIEF, position_ids=ids, **rotated(ids))) == ["as_believed"]
        assert codes_of(ask(server, BELIEF, position_ids=ids, **rotated(ids + 1))) == ["off_by_one"]
    both = {**rotated(IDS), **dict(zip(("k", "k_out"), rotated(IDS, seed=1).values()))}
    answer = ask(server, BELIEF, position_ids=IDS, **both)
    assert codes_of(answer) == ["as_believed"] and answer["sides"]["k"]["codes"] == []


def test_ids_of_several_axes(server):
    axes = {**BELIEF, "mrope_section": [4, 2, 2], "channels": "mrope"}
    ids = np.random.default_rng(4).integers(0, 40, (3, N))
    q = np.random.default_rng(5).standard_normal((2, 2, N, WIDTH)).astype("f4")
    post = lambda **fields: np.array(server.ask("/rotate", **axes, **fields, q=q.tolist(), digits=9).json()["tensors"]["q"]["data"], "f4")
    assert codes_of(ask(server, axes, position_ids=ids, q=q, q_out=post(positions=ids.tolist()))) == ["as_believed"]
    both = np.random.default_rng(6).integers(0, 40, (3, 2, N))
    turned = post(positions=both.tolist(), positions_layout="axes_batch")
    assert codes_of(ask(server, axes, position_ids=both, q=q, q_out=turned)) == ["as_believed"]
    fields = {**axes, "positions_layout": "batch_axes"}
    assert codes_of(ask(server, fields, position_ids=both.transpose(1, 0, 2), q=q, q_out=turned)) == ["as_believed"]
    text = np.broadcast_to(both[0, :1], (3, N))
    turned = post(positions=text.tolist())
    assert codes_of(ask(server, axes, position_ids=both[0, :1], q=q, q_out=turned)) == ["as_believed"]


def test_ids_beside_a_map(server):
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((3, 2, N, WIDTH)) for _ in range(2))
    ids = rng.integers(1, 6, (3, N)).cumsum(-1)
    found = scores(q, k, ids, mask=np.ones((3, N)))
    assert codes_of(ask(server, {**BELIEF, "causal": True}, q=q, k=k, scores=found, position_ids=ids)) == ["as_believed"]


@pytest.mark.parametrize("fields, words", [
    ({"position_ids": [0] * N, "positions": [0] * N}, "leave them or positions out"), ({"position_ids": 4}, "not a tensor"),
    ({"position_ids": np.zeros((2, 2, 2, N)).tolist()}, "[2,2,2,12]"), ({"position_ids": [0] * 5}, "[12,8]")])
def test_ids_refused(server, fields, words):
    table = {name: a.tolist() for name, a in tables(np.arange(N)).items()}
    answer = server.post("/diagnose", {**BELIEF, **table, **fields})
    assert answer.status == 422 and answer.json()["pointer"] == "/position_ids" and words in answer.json()["detail"], answer
    masked = server.post("/diagnose", {**BELIEF, **table, "position_ids": [0] * N, "attention_mask": [1] * N})
    assert masked.status == 422 and "leave it or position_ids out" in masked.json()["detail"]


def scores(q, k, positions, causal=True, mask=MASK, q_positions=None):
    maps = []
    for b in range(len(q)):
        a, c = (truth.rotate(x[b], at[b], layout="half") for x, at in ((q, positions if q_positions is None else q_positions), (k, positions)))
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


def test_a_side_that_does_not_turn_in_a_padded_batch(server):
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((3, 2, N, WIDTH)) for _ in range(2))
    found = scores(q, k, by_tokens(MASK), q_positions=0 * MASK)
    answer = ask(server, {**BELIEF, "causal": True, "attention_mask": MASK.tolist()}, q=q, k=k, scores=found)
    assert codes_of(answer) == ["q_not_rotated"], answer["findings"]


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
