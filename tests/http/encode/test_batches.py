"""Batches whose rows have positions of their own in /attention. Those of /encode and /rotate are rows of ../../cases/encode.jsonl and
rotate.jsonl, and drawn by test_random.py."""
import numpy as np
import pytest

import truth
import truth.attention
import truth.answers.sequences
from attention_asking import attention

MASK = np.array([[0, 0, 1, 1], [1, 1, 1, 0]])
SKIPPED = [[1, 1, 0, 1], [0, 1, 2, 1]]


def hidden(mask, q_len, causal=False, window=None):
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
    request = {"scheme": "rope", "layout": "half", **masks, **rule, "attention_mask": MASK.tolist(), "dtype": "f64", "outputs": ["scores", "probs"]}
    found = attention(server, request, q=q, k=k)
    rows = [np.array(row["positions"]) for row in truth.answers.sequences.batch(request)]
    turned = [np.stack([truth.rotate(x[b], rows[b][4 - x.shape[2]:], layout="half") for b in range(2)]) for x in (q, k)]
    right = truth.attention.attend(*turned, visible=~hidden(MASK, q_len, **masks))
    for name in ("scores", "probs"):
        np.testing.assert_allclose(found[name], right[name], atol=1e-12)


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
