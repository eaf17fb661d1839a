"""Batches whose rows have positions of their own, packed sequences by their ends, shards: of /attention, against the rules in NumPy, and in addresses.
Those of /encode and /rotate are rows of ../../cases/encode.jsonl and rotate.jsonl, and drawn by test_random.py."""
import urllib.parse

import numpy as np
import pytest

import truth
from attention_asking import attention
from tensors import encode, from_raw

MASK = np.array([[0, 0, 1, 1], [1, 1, 1, 0]])
SKIPPED = [[1, 1, 0, 1], [0, 1, 2, 1]]
ROPE = {"scheme": "rope", "head_dim": 8}


def by_tokens(mask, pad=1, offset=0):
    """As transformers: position_ids = mask.cumsum(-1) - 1, masked_fill_(mask == 0, 1)."""
    return np.where(mask == 1, mask.cumsum(-1) - 1 + offset, pad)


# ---- /encode ---- --------------------------------------------------------------------------------------------------------------


def test_ranks_together_are_the_sequence(server):
    rows = [encode(server, **ROPE, len=6, shard={"rank": r, "of": 5}, outputs=["positions"])["positions"][0] for r in range(5)]
    assert sorted(np.concatenate(rows).tolist()) == list(range(30))


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


def test_same_bytes_in_any_part(server):
    query = urllib.parse.urlencode({"scheme": "alibi", "num_heads": 4, "attention_mask": str([[0] * 20 + [1] * 44, [1] * 64]), "format": "raw"})
    whole = server.get("/encode?" + query).body
    assert len(whole) == 4 * 2 * 4 * 64 * 64
    for first, last in ((0, 99), (4096, 8191), (len(whole) - 7, len(whole) - 1)):
        part = server.get("/encode?" + query, {"Range": f"bytes={first}-{last}"})
        assert part.status == 206 and part.body == whole[first:last + 1]
