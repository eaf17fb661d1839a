"""Batches whose rows have positions of their own, packed sequences by their ends, shards: of /encode, /rotate and /attention, against
the rules in NumPy."""
import urllib.parse

import numpy as np
import pytest

import truth
from asking import refused
from attention_asking import attention
from tensors import encode, from_raw, rotate_files

MASK = np.array([[0, 0, 1, 1], [1, 1, 1, 0]])
SKIPPED = [[1, 1, 0, 1], [0, 1, 2, 1]]
ROPE = {"scheme": "rope", "head_dim": 8}


def by_tokens(mask, pad=1, offset=0):
    """As transformers: position_ids = mask.cumsum(-1) - 1, masked_fill_(mask == 0, 1)."""
    return np.where(mask == 1, mask.cumsum(-1) - 1 + offset, pad)


def tables(positions, rotary_dim=8):
    """Cosines and sines [..., n, C] in float64."""
    angles = np.asarray(positions, "f8")[..., None] * 10000.0 ** (-np.arange(0, rotary_dim, 2) / rotary_dim)
    return np.cos(angles), np.sin(angles)


def positions_of(server, **fields):
    return encode(server, **ROPE, outputs=["positions"], **fields)["positions"][..., 0, :].tolist()


# ---- Which positions --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields, positions", [
    ({"attention_mask": MASK.tolist()}, SKIPPED),
    ({"attention_mask": MASK.tolist(), "pad_position": 0}, [[0, 0, 0, 1], [0, 1, 2, 0]]),
    ({"attention_mask": MASK.tolist(), "padding": "counted"}, [[0, 1, 2, 3], [0, 1, 2, 3]]),
    ({"attention_mask": MASK.tolist(), "offset": 5, "len": 4}, [[1, 1, 5, 6], [5, 6, 7, 1]]),
    ({"attention_mask": [0, 0, 1, 1]}, [[1, 1, 0, 1]]),
    ({"attention_mask": [[0, 0], [1, 1]]}, [[1, 1], [0, 1]]),
    ({"positions": [[0, 1, 2], [7, 8, 9]], "positions_layout": "batch"}, [[0, 1, 2], [7, 8, 9]]),
    ({"positions": [[0, 1, 2]], "positions_layout": "batch"}, [[0, 1, 2]]),
    ({"len": 8, "shard": {"rank": 1, "of": 4}}, [4, 5, 6, 7, 24, 25, 26, 27]),
    ({"len": 8, "shard": {"rank": 3, "of": 4}}, [12, 13, 14, 15, 16, 17, 18, 19]),
    ({"len": 8, "shard": {"rank": 1, "of": 4, "split": "contiguous"}}, list(range(8, 16))),
    ({"len": 2, "offset": 100, "shard": {"rank": 0, "of": 3, "split": "zigzag"}}, [100, 105]),
    ({"len": 4, "shard": {"rank": 0, "of": 1}}, [0, 1, 2, 3]),
    ({"cu_seqlens": [0, 3, 3, 5]}, [0, 1, 2, 0, 1]),
    ({"cu_seqlens": [0, 2, 4], "offset": 3}, [3, 4, 3, 4])])
def test_positions(server, fields, positions):
    assert positions_of(server, **fields) == positions


def test_ranks_together_are_the_sequence(server):
    rows = [positions_of(server, len=6, shard={"rank": r, "of": 5}) for r in range(5)]
    assert sorted(sum(rows, [])) == list(range(30))


def test_axes_of_a_batch(server):
    """[B][axes][n], and [axes][B][n] as transformers has the ids of M-RoPE."""
    ids = np.random.default_rng(1).integers(0, 50, (2, 3, 5))
    fields = {"scheme": "rope", "head_dim": 16, "mrope_section": [4, 2, 2], "channels": "mrope"}
    found = encode(server, **fields, positions=ids.tolist(), positions_layout="batch_axes")
    again = encode(server, **fields, positions=ids.transpose(1, 0, 2).tolist(), positions_layout="axes_batch")
    assert found["cos"].shape == (2, 5, 8) and found["cos"].tobytes() == again["cos"].tobytes()
    for b in range(2):
        one = encode(server, **fields, positions=ids[b].tolist())
        assert one["sin"].tobytes() == found["sin"][b].tobytes()
    here = encode(server, **fields, positions=ids.tolist(), positions_layout="batch_axes", outputs=["positions"])["positions"]
    assert np.array_equal(here, ids)


# ---- What the outputs are ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype, tolerance", [("f64", 1e-14), ("f32", 1e-7), ("bf16", 4e-3)])
def test_tables(server, dtype, tolerance):
    found = encode(server, **ROPE, attention_mask=MASK.tolist(), dtype=dtype)
    for name, right in zip(("cos", "sin"), tables(SKIPPED)):
        assert found[name].shape == (2, 4, 4)
        assert np.abs(np.asarray(found[name], "f8") - right).max() <= tolerance


def test_one_row_has_the_axis_and_others_have_not(server):
    assert encode(server, **ROPE, attention_mask=[1, 1, 0])["cos"].shape == (1, 3, 4)
    found = encode(server, **ROPE, attention_mask=MASK.tolist(), outputs=["cos", "inv_freq", "rope_delta"])
    assert found["inv_freq"].shape == (4,) and found["rope_delta"].shape == (2,)
    assert encode(server, **ROPE, len=4, shard={"rank": 0, "of": 2})["cos"].shape == (4, 4)


def test_an_encoding_and_its_sum(server):
    x = np.random.default_rng(0).standard_normal((2, 4, 16)).astype("f4")
    fields = {"scheme": "sinusoidal", "dim": 16, "attention_mask": MASK.tolist()}
    found = encode(server, **fields)["encoding"]
    for b, positions in enumerate(SKIPPED):
        assert found[b].tobytes() == encode(server, scheme="sinusoidal", dim=16, positions=positions)["encoding"].tobytes()
    combined = encode(server, **fields, x=x.tolist())["combined"]
    assert combined.shape == x.shape and np.abs(combined - (x + found)).max() < 1e-6
    refused(server, "/attention_mask", "2 lists, but x has a batch of 3", **{**fields, "x": np.zeros((3, 4, 16)).tolist()})


def test_roberta(server):
    """Rows of the table from 2 on, padding in row 1."""
    table = np.arange(40.0).reshape(20, 2)
    found = encode(server, scheme="learned", dim=2, table=table.tolist(), row_offset=2, pad_position=-1, attention_mask=MASK.tolist())
    rows = np.where(MASK == 1, MASK.cumsum(-1) - 1 + 2, 1)
    assert np.array_equal(found["encoding"], table[rows].astype("f4"))


@pytest.mark.parametrize("scheme", ["alibi", "kerple", "sandwich", "t5"])
def test_a_bias(server, scheme):
    fields = {"scheme": scheme, "num_heads": 4, **({"seed": 3} if scheme in ("t5",) else {})}
    found = encode(server, **fields, attention_mask=MASK.tolist(), outputs=["bias"])["bias"]
    assert found.shape == (2, 4, 4, 4)
    for b, positions in enumerate(SKIPPED):
        one = encode(server, **fields, positions=positions, outputs=["bias"])["bias"]
        assert one.tobytes() == found[b].tobytes()
    part = server.ask("/encode", **fields, attention_mask=MASK.tolist(), outputs=["bias"], slice={"bias": [1, 2, None, 1]}, format="raw")
    assert from_raw(part)["bias"].tobytes() == found[1, 2, :, 1].tobytes()


def test_indices_of_tables(server):
    found = encode(server, scheme="t5", attention_mask=MASK.tolist(), outputs=["buckets"])["buckets"]
    assert found.shape == (2, 4, 4)
    assert np.array_equal(found[0], encode(server, scheme="t5", positions=SKIPPED[0], outputs=["buckets"])["buckets"])


# ---- /rotate ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["bhnd", "bnhd", "nbhd"])
def test_rotated(server, layout):
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((2, h, 4, 8)).astype("f4") for h in (3, 1))
    order = {"bhnd": (0, 1, 2, 3), "bnhd": (0, 2, 1, 3), "nbhd": (2, 0, 1, 3)}[layout]
    found = rotate_files(server, {"scheme": "rope", "layout": "half", "tensor_layout": layout, "attention_mask": MASK.tolist()},
                         q=np.ascontiguousarray(q.transpose(order)), k=np.ascontiguousarray(k.transpose(order)))
    for name, x in (("q", q), ("k", k)):
        right = np.stack([truth.rotate(row, np.array(p), layout="half") for row, p in zip(x, SKIPPED)])
        assert np.abs(found[name].transpose(np.argsort(order)) - right).max() < 1e-6


def test_fewer_queries_are_the_last(server):
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 2, 1, 8)).astype("f4"), rng.standard_normal((2, 2, 4, 8)).astype("f4")
    found = rotate_files(server, {"scheme": "rope", "layout": "half", "attention_mask": MASK.tolist()}, q=q, k=k)
    for b, positions in enumerate(SKIPPED):
        assert np.abs(found["q"][b] - truth.rotate(q[b], np.array(positions[3:]), layout="half")).max() < 1e-6
        assert np.abs(found["k"][b] - truth.rotate(k[b], np.array(positions), layout="half")).max() < 1e-6


def test_rotated_axes_of_a_batch(server):
    ids = np.random.default_rng(1).integers(0, 50, (3, 2, 5))
    q = np.random.default_rng(2).standard_normal((2, 2, 5, 16)).astype("f4")
    fields = {"scheme": "rope", "layout": "half", "mrope_section": [4, 2, 2], "channels": "mrope"}
    found = rotate_files(server, {**fields, "positions": ids.tolist(), "positions_layout": "axes_batch"}, q=q)["q"]
    for b in range(2):
        one = rotate_files(server, {**fields, "positions": ids[:, b].tolist()}, q=q[b:b + 1])["q"]
        assert one[0].tobytes() == found[b].tobytes()


def test_packed_and_sharded(server):
    q = np.random.default_rng(0).standard_normal((6, 2, 8)).astype("f4")
    fields = {"scheme": "rope", "layout": "half", "tensor_layout": "nhd"}
    found = rotate_files(server, {**fields, "cu_seqlens": [0, 4, 6]}, q=q)["q"]
    right = truth.rotate(q.transpose(1, 0, 2), np.array([0, 1, 2, 3, 0, 1]), layout="half").transpose(1, 0, 2)
    assert np.abs(found - right).max() < 1e-6
    found = rotate_files(server, {**fields, "shard": {"rank": 1, "of": 4}}, q=q)["q"]
    right = truth.rotate(q.transpose(1, 0, 2), np.array([3, 4, 5, 18, 19, 20]), layout="half").transpose(1, 0, 2)
    assert np.abs(found - right).max() < 1e-6


# ---- /attention -------------------------------------------------------------------------------------------------------------------


def hidden(mask, q_len, causal, window=None):
    """True where key column j is hidden from the query in column i: by columns, never by positions."""
    k_len = mask.shape[-1]
    i, j = np.arange(k_len - q_len, k_len)[:, None], np.arange(k_len)[None]
    away = (causal & (j > i)) | (False if window is None else i - j >= window)
    return away[None] | (mask[:, None, :] == 0)


@pytest.mark.parametrize("q_len", [4, 2])
@pytest.mark.parametrize("masks", [{}, {"causal": True}, {"causal": True, "window": 2}])
@pytest.mark.parametrize("rule", [{}, {"padding": "counted"}, {"pad_position": 0}])
def test_maps_of_rope(server, q_len, masks, rule):
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 4, q_len, 8)), rng.standard_normal((2, 2, 4, 8))
    positions = np.arange(4) + 0 * MASK if rule.get("padding") else by_tokens(MASK, rule.get("pad_position", 1))
    found = attention(server, {"scheme": "rope", "layout": "half", **masks, **rule, "attention_mask": MASK.tolist(), "dtype": "f64",
                               "outputs": ["scores", "probs"]}, q=q, k=k)
    away = hidden(MASK, q_len, masks.get("causal", False), masks.get("window"))
    for b in range(2):
        turned = truth.rotate(q[b], positions[b, 4 - q_len:], layout="half"), truth.rotate(k[b], positions[b], layout="half")
        scores = turned[0] @ np.repeat(turned[1], 2, 0).swapaxes(1, 2) / np.sqrt(8)
        scores = np.where(away[b], -np.inf, scores)
        np.testing.assert_allclose(found["scores"][b], scores, atol=1e-12)
        top = np.where(np.isfinite(scores).any(-1, keepdims=True), scores.max(-1, keepdims=True), 0)
        e = np.exp(scores - top)
        right = np.divide(e, e.sum(-1, keepdims=True), out=np.zeros_like(e), where=e.sum(-1, keepdims=True) > 0)
        np.testing.assert_allclose(found["probs"][b], right, atol=1e-12)


def test_one_mask_for_all_and_empty_rows(server):
    q = np.random.default_rng(0).standard_normal((3, 2, 4, 8)).tolist()
    answer = server.ask("/attention", scheme="rope", causal=True, q=q, k=q, attention_mask=[0, 0, 1, 1])
    assert answer.json()["empty_rows"] == 3 * 2 * 2
    by_rows = server.ask("/attention", scheme="rope", causal=True, q=q, k=q, attention_mask=[[0, 0, 1, 1]] * 3)
    assert answer.json()["tensors"] == by_rows.json()["tensors"]


@pytest.mark.parametrize("scheme", ["alibi", "t5", "kerple", "shaw", "deberta"])
def test_biases_and_relative_terms_follow_the_rows(server, scheme):
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 4, 5, 8)), rng.standard_normal((2, 4, 5, 8))
    positions = [[3, 4, 5, 6, 7], [0, 2, 3, 5, 9]]
    fields = {"scheme": scheme, "seed": 1} if scheme in ("t5", "shaw", "deberta") else {"scheme": scheme}
    found = attention(server, {**fields, "positions": positions, "positions_layout": "batch", "outputs": ["scores"]}, q=q, k=k)["scores"]
    for b in range(2):
        one = attention(server, {**fields, "positions": positions[b], "outputs": ["scores"]}, q=q[b:b + 1], k=k[b:b + 1])["scores"]
        np.testing.assert_allclose(found[b], one[0], atol=1e-12)


def test_embeddings(server):
    x = np.random.default_rng(0).standard_normal((2, 4, 16))
    for scheme in ("rope", "sinusoidal"):
        fields = {"scheme": scheme, "num_heads": 2, "seed": 4, "outputs": ["probs"], "dtype": "f64"}
        found = attention(server, {**fields, "attention_mask": MASK.tolist()}, x=x)["probs"]
        for b in range(2):
            one = attention(server, {**fields, "positions": SKIPPED[b], "key_mask": MASK[b].tolist()}, x=x[b:b + 1])["probs"]
            np.testing.assert_allclose(found[b], one[0], atol=1e-12)


def test_packed_maps(server):
    q = np.random.default_rng(0).standard_normal((1, 2, 5, 8))
    by_ends = attention(server, {"scheme": "rope", "cu_seqlens": [0, 3, 5], "outputs": ["probs"]}, q=q, k=q)["probs"]
    by_lens = attention(server, {"scheme": "rope", "lens": [3, 2], "outputs": ["probs"]}, q=q, k=q)["probs"]
    assert by_ends.tobytes() == by_lens.tobytes() and by_ends[0, 0, 4, 0] == 0


def test_shards_of_causal_maps_go_by_position(server):
    """Rank 0 of 2 has positions 0 and 3: the query at 0 does not see the key at 3."""
    q = np.random.default_rng(0).standard_normal((1, 1, 2, 8))
    found = attention(server, {"scheme": "rope", "causal": True, "shard": {"rank": 0, "of": 2}, "outputs": ["probs"]}, q=q, k=q)["probs"]
    assert found[0, 0, 0, 1] == 0 and found[0, 0, 1, 0] > 0


# ---- Ways in, refusals, limits ----------------------------------------------------------------------------------------------------


def test_queries_of_addresses(server):
    def ask(**fields):
        return from_raw(server.get("/encode?" + urllib.parse.urlencode({"scheme": "rope", "head_dim": 8, "format": "raw", **fields})))["cos"]
    assert ask(attention_mask="[[0,0,1,1],[1,1,1,0]]").tobytes() == encode(server, **ROPE, attention_mask=MASK.tolist())["cos"].tobytes()
    assert ask(attention_mask="0,0,1,1").shape == (1, 4, 4)
    assert ask(len=8, shard='{"rank":1,"of":4}').tobytes() == encode(server, **ROPE, len=8, shard={"rank": 1, "of": 4})["cos"].tobytes()
    assert ask(cu_seqlens="0,3,5").tobytes() == encode(server, **ROPE, lens=[3, 2])["cos"].tobytes()
    assert ask(positions="[[0,1],[4,5]]", positions_layout="batch").shape == (2, 2, 4)


@pytest.mark.parametrize("fields, pointer, words", [
    ({"attention_mask": [[0, 2]]}, "/attention_mask", "2"), ({"attention_mask": [[0, 0.5]]}, "/attention_mask", "0 and 1"), ({"attention_mask": [[[1]]]}, "/attention_mask", "3 axes"),
    ({"attention_mask": [1, 1], "positions": [0, 1]}, "/attention_mask", "leave it or positions out"),
    ({"attention_mask": [1, 1], "cu_seqlens": [0, 2]}, "/attention_mask", "leave it or cu_seqlens out"),
    ({"attention_mask": [1, 1], "len": 3}, "/len", "2 columns"), ({"padding": "skipped", "len": 2}, "/padding", "needs attention_mask"),
    ({"positions_layout": "batch", "len": 2}, "/positions", "two levels"), ({"positions_layout": "axes", "len": 2}, "/positions_layout", "needs positions"),
    ({"positions": [0, 1], "positions_layout": "batch"}, "/positions", "two levels"),
    ({"positions": [[0, 1]], "positions_layout": "batch_axes"}, "/positions", "[batch][axes][n]"),
    ({"positions": [[0, 1]], "positions_layout": "rows"}, "/positions_layout", "axes_batch"),
    ({"cu_seqlens": [1, 2]}, "/cu_seqlens", "begin with 0"), ({"cu_seqlens": [0, 3, 2]}, "/cu_seqlens", "index 2"),
    ({"cu_seqlens": [0, 1.5]}, "/cu_seqlens", "index 1"), ({"cu_seqlens": [0]}, "/cu_seqlens", "no sequence"),
    ({"cu_seqlens": [0, 2], "lens": [2]}, "/cu_seqlens", "2 ways"),
    ({"shard": {"rank": 0, "of": 2}}, "/len", "number of rows"), ({"shard": {}, "len": 4}, "/shard/rank", "needs rank"),
    ({"shard": {"rank": 2, "of": 2}, "len": 4}, "/shard/rank", "below of, 2"), ({"shard": {"rank": 0, "of": 4097}, "len": 4}, "/shard/of", "4096"),
    ({"shard": {"rank": 0, "of": 2}, "len": 3}, "/len", "even"), ({"shard": {"rank": 0, "of": 2, "splits": 1}, "len": 4}, "/shard/splits", "split"),
    ({"shard": {"rank": 0, "of": 4096}, "len": 1 << 30}, "/shard/of", "2^40")])
def test_refusals(server, fields, pointer, words):
    refused(server, pointer, words, **ROPE, **fields)


def test_refusals_beside_tensors(server):
    q = np.zeros((2, 1, 3, 4)).tolist()
    refused(server, "/key_mask", "attention_mask hides keys already", path="/attention", scheme="rope", q=q, k=q, attention_mask=[1, 1, 1], key_mask=[1, 1, 1])
    refused(server, "/attention_mask", "3 lists, but q has a batch of 2", path="/attention", scheme="rope", q=q, k=q, attention_mask=[[1, 1, 1]] * 3)
    refused(server, "/cu_seqlens", "the tensor q has 3", path="/rotate", scheme="rope", q=q, cu_seqlens=[0, 2])
    refused(server, "/positions", "positions_layout", scheme="alibi", positions=[[0, 1], [2, 3]])
    refused(server, "/attention_mask", "not of a batch", path="/analyze", scheme="sinusoidal", dim=4, attention_mask=[[1, 1]], metrics=["norms"])


def test_limits(server):
    columns = (1 << 18) + 1
    answer = server.post("/encode", {**ROPE, "attention_mask": [1] * columns})
    assert answer.status == 413 and answer.json()["pointer"] == "/attention_mask"
    answer = server.post("/encode", {**ROPE, "len": columns + 1, "shard": {"rank": 0, "of": 2}})
    assert answer.status == 413 and answer.json()["pointer"] == "/len"
    assert server.ask("/encode", **ROPE, len=1 << 20, shard={"rank": 1, "of": 2}, slice={"cos": [-1], "sin": [-1]}).status == 200


def test_same_bytes_in_any_part(server):
    query = urllib.parse.urlencode({"scheme": "alibi", "num_heads": 4, "attention_mask": str([[0] * 20 + [1] * 44, [1] * 64]), "format": "raw"})
    whole = server.get("/encode?" + query).body
    assert len(whole) == 4 * 2 * 4 * 64 * 64
    for first, last in ((0, 99), (4096, 8191), (len(whole) - 7, len(whole) - 1)):
        part = server.get("/encode?" + query, {"Range": f"bytes={first}-{last}"})
        assert part.status == 206 and part.body == whole[first:last + 1]
