"""Ten details that implementers get wrong: each test also computes the wrong variant, and shows that it gives a
different answer."""
import numpy as np
import pytest

import truth
import truth.attention as attention_truth
import truth.bias as bias
import truth.window as window
from attention_asking import attention, bottom_right, one, qkv
from tensors import encode_one


def is_first(got, right, wrong, tolerance=1e-9):
    """The answer is the right one, and the wrong one is another."""
    assert np.abs(got - right).max() <= tolerance
    assert np.abs(right - wrong).max() > 1e-3


def draw(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape)


def test_signs(server):
    """1. T5 counts key minus query (a later key has the upper half of the buckets), ALiBi and Transformer-XL query minus key."""
    q, k, _ = qkv((1, 2, 6, 4))
    table = draw(32, 2)
    places = range(6)
    right, wrong = (attention_truth.attend(q, k, scale=1.0, bias=b)["probs"] for b in
                    (bias.t5(table, places, places), bias.t5(table, [-p for p in places], [-p for p in places])))
    is_first(one(server, {"scheme": "t5"}, "probs", q=q, k=k, table=table), right, wrong)
    w = {"u": draw(2, 4), "v_bias": draw(2, 4, seed=2), "w_r": draw(8, 8, seed=3)}
    right = attention_truth.attend(q, k, terms=attention_truth.xl_terms("transformer_xl", q, k, places, places, **w))["probs"]
    wrong = attention_truth.attend(q, k, terms=attention_truth.xl_terms("transformer_xl", q, k, [-p for p in places], [-p for p in places], **w))["probs"]
    is_first(one(server, {"scheme": "transformer_xl"}, "probs", q=q, k=k, **w), right, wrong)


def test_p2c_takes_the_row_of_c2p(server):
    """2. DeBERTa: k_j·pos_query[idx(i-j)], not [idx(j-i)] as the paper's eq. 4 has it."""
    q, k, _ = qkv((1, 2, 6, 4))
    pos_key, pos_query = draw(2, 16, 4), draw(2, 16, 4, seed=2)
    index = attention_truth.deberta_index(range(6), range(6), -1, 8)
    c2p = attention_truth.by_query(q, pos_key, index)
    right, wrong = (attention_truth.attend(q, k, scale=12 ** -0.5, terms=c2p + attention_truth.by_key(k, pos_query, i))["probs"] for i in (index, index.T))
    got = one(server, {"scheme": "deberta", "max_relative_positions": 8}, "probs", q=q, k=k, pos_key=pos_key, pos_query=pos_query)
    is_first(got, right, wrong)


def test_slopes_of_other_head_counts_are_appended(server):
    """3. Twelve heads: the eight of 2^-1 ... 2^-8, then the odd terms of sixteen; neither sorted nor interpolated."""
    expected = [.5, .25, .125, .0625, .03125, .015625, .0078125, .00390625, .7071067812, .3535533906, .1767766953, .0883883476]
    got = encode_one(server, scheme="alibi", num_heads=12, len=1, outputs=["slopes"], dtype="f64")
    np.testing.assert_allclose(got, expected, atol=1e-10)
    q, k, _ = qkv((1, 12, 5, 4))
    distance = np.abs(np.subtract.outer(range(5), range(5)))
    right, wrong = (attention_truth.attend(q, k, bias=-np.array(m)[:, None, None] * distance)["probs"] for m in (expected, sorted(expected)[::-1]))
    is_first(one(server, {"scheme": "alibi"}, "probs", q=q, k=k), right, wrong, 1e-8)


@pytest.mark.parametrize("scheme", ["shaw", "conformer"])
def test_terms_of_position_are_scaled_and_biases_are_not(server, scheme):
    """4. 1/sqrt(d) multiplies q·k and the terms of Shaw and Transformer-XL; ALiBi's bias comes after it."""
    q, k, _ = qkv((1, 2, 6, 16))
    if scheme == "shaw":
        w = {"rel_k": draw(9, 16)}
        terms = attention_truth.by_query(q, w["rel_k"], attention_truth.shaw_index(range(6), range(6), -4, 4))
    else:
        w = {"u": draw(2, 16), "v_bias": draw(2, 16, seed=2), "w_r": draw(32, 8, seed=3)}
        terms = attention_truth.xl_terms(scheme, q, k, range(6), range(6), **w)
    got = one(server, {"scheme": scheme}, "probs", q=q, k=k, **w)
    is_first(got, attention_truth.attend(q, k, terms=terms)["probs"], attention_truth.attend(q, k, bias=terms)["probs"])
    slopes = np.array([2 ** -4, 2 ** -8])[:, None, None] * -np.abs(np.subtract.outer(range(6), range(6)))
    is_first(one(server, {"scheme": "alibi"}, "scores", q=q, k=k), attention_truth.attend(q, k, bias=slopes)["scores"],
             attention_truth.attend(q, k, terms=slopes)["scores"])


@pytest.mark.parametrize("scheme,halves", [("transformer_xl", True), ("xlnet", True), ("conformer", False)])
def test_the_order_of_r(server, scheme, halves):
    """5. R is [sines, cosines] in Transformer-XL and XLNet, interleaved in Conformer."""
    got = encode_one(server, scheme=scheme, len=5, d_model=8, outputs=["encoding"], dtype="f64")
    distances = encode_one(server, scheme=scheme, len=5, d_model=8, outputs=["distances"])
    is_first(got, attention_truth.sinusoid(distances, 8, halves), attention_truth.sinusoid(distances, 8, not halves), 1e-14)
    q, k, _ = qkv((1, 1, 5, 4))
    w = {"u": draw(1, 4), "v_bias": draw(1, 4, seed=2), "w_r": draw(4, 8, seed=3)}
    other = "conformer" if halves else "transformer_xl"
    right, wrong = (attention_truth.attend(q, k, terms=attention_truth.xl_terms(s, q, k, range(5), range(5), **w))["probs"] for s in (scheme, other))
    is_first(one(server, {"scheme": scheme}, "probs", q=q, k=k, **w), right, wrong)


def cope_forward(pos_emb):
    """Wrong: gates summed from the first key to the key."""
    def add(scores, q):
        p = np.minimum(np.cumsum(1 / (1 + np.exp(-scores)), -1), len(pos_emb) - 1)
        z = np.einsum("bhid,nd->bhin", q, pos_emb)
        low, high, part = np.floor(p).astype(int), np.ceil(p).astype(int), p - np.floor(p)
        return scores + part * np.take_along_axis(z, high, -1) + (1 - part) * np.take_along_axis(z, low, -1)
    return add


def test_cope_counts_from_the_key_to_the_query(server):
    """6. A reverse cumulative sum: the oldest key has the largest position. And values by hand."""
    q, k, _ = qkv((1, 2, 7, 4))
    pos_emb, visible = draw(6, 4), attention_truth.seen(range(7), range(7), causal=True)
    right, wrong = (attention_truth.attend(q, k, visible=visible, last=f)["probs"] for f in (attention_truth.cope(pos_emb, range(7), range(7)), cope_forward(pos_emb)))
    is_first(one(server, {"scheme": "cope", "causal": True}, "probs", q=q, k=k, pos_emb=pos_emb), right, wrong)
    q = np.array([[1.0, 0], [0, 1], [1, 1]])
    k = np.array([[0.0, 0], [1, 0], [1, 1]])
    got = one(server, {"scheme": "cope", "causal": True, "softmax_scale": 1}, "scores", q=q, k=k, pos_emb=np.array([[0, 0], [1, 2], [3, 5.0]]))
    added = np.array([[.5, 0, 0], [2, 1, 0], [8, 6.059278283, 2.6423912339]])
    seen = np.tril(np.ones((3, 3), bool))
    np.testing.assert_allclose(got[seen], (q @ k.T + added)[seen], atol=1e-9)


def test_masked_stays_masked_after_cope(server):
    """7. Hidden keys count nothing and stay at -inf when the bias of position 0 has been added."""
    q, k, _ = qkv((1, 1, 5, 4))
    pos_emb = draw(4, 4) + 3
    scores = one(server, {"scheme": "cope", "causal": True, "key_mask": [1, 0, 1, 1, 1]}, "scores", q=q, k=k, pos_emb=pos_emb)
    visible = attention_truth.seen(range(5), range(5), causal=True, key_mask=[1, 0, 1, 1, 1])
    assert np.array_equal(np.isneginf(scores[0, 0]), ~visible)
    hidden_counts = attention_truth.cope(pos_emb, range(5), range(5))(attention_truth.attend(q, k)["scores"], q)
    assert np.abs(scores[0, 0] - hidden_counts[0, 0])[visible].max() > 1e-3


@pytest.mark.parametrize("scheme,tensors", [("alibi", {}), ("t5", {"table": draw(32, 2)}), ("shaw", {"rel_k": draw(9, 4)})])
def test_queries_are_the_last_of_the_keys(server, scheme, tensors):
    """8. Bottom-right: with a cache of K - Q keys the last query stands at the last key. Top-left is q_offset 0."""
    q, k, _ = qkv((1, 2, 3, 4), 2, 8)
    request = {"scheme": scheme, "causal": True}
    cached = one(server, request, "probs", q=q, k=k, **tensors)
    whole = np.concatenate([np.zeros((1, 2, 5, 4)), q], 2)
    assert np.array_equal(cached, one(server, request, "probs", q=whole, k=k, **tensors)[:, :, 5:]) or \
        np.abs(cached - one(server, request, "probs", q=whole, k=k, **tensors)[:, :, 5:]).max() < 1e-14
    top_left = one(server, {**request, "q_offset": 0}, "probs", q=q, k=k, **tensors)
    assert (top_left[:, :, 0, 1:] == 0).all() and np.abs(top_left - cached).max() > 1e-3


def test_class_token_rows(server):
    """9. BEiT: row M if the class token is the query, M+1 if it is the key, M+2 for itself, set in this order."""
    index = encode_one(server, scheme="beit", grid=[2, 2], outputs=["index"])
    assert index.tolist() == [[11, 9, 9, 9, 9], [10, 4, 3, 1, 0], [10, 5, 4, 2, 1], [10, 7, 6, 4, 3], [10, 8, 7, 5, 4]]
    q, k, _ = qkv((1, 2, 5, 4))
    table = draw(12, 2)
    swapped = table[[0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 9, 11]]
    right, wrong = (attention_truth.attend(q, k, bias=window.looked_up("beit", t, 2, 2))["probs"] for t in (table, swapped))
    is_first(one(server, {"scheme": "beit", "grid": [2, 2]}, "probs", q=q, k=k, table=table), right, wrong)


@pytest.mark.parametrize("scheme", ["none", "alibi", "rope", "cope"])
def test_rows_that_see_nothing(server, scheme):
    """10. Neither NaN (torch's -inf) nor uniform (finfo.min): probabilities, output and entropy 0, and counted."""
    q, k, v = qkv((2, 3, 4, 4))
    request = {"scheme": scheme, "causal": True, "key_mask": [[0, 0, 1, 1], [1, 1, 1, 1]]}
    tensors = {"pos_emb": draw(4, 4)} if scheme == "cope" else {}
    got = attention(server, {**request, "outputs": ["probs", "output", "row_entropy", "scores"]}, q=q, k=k, v=v, **tensors)
    for name in ("probs", "output", "row_entropy"):
        assert (got[name][0, :, :2] == 0).all() and np.isfinite(got[name]).all()
    assert np.isneginf(got["scores"][0, :, :2]).all() and (got["probs"][0, :, 2:].sum(-1) > 0.99).all()
    told = server.post("/attention", {**request, "q": q.tolist(), "k": k.tolist(), **{n: t.tolist() for n, t in tensors.items()}}).json()
    assert told["empty_rows"] == 6
