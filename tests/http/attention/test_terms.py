"""/attention's output `terms`: what the scores are the sum of, each term against NumPy's formula, their sum against `scores`."""
import json

import numpy as np
import pytest

import truth.attention as ra
from asking import inline, refused
from attention_asking import attention, bottom_right, qkv
from tensors import from_raw

RNG = np.random.default_rng(19)
H, D = 2, 6


def normal(*shape):
    return RNG.standard_normal(shape)


def names(server, request, **arrays):
    body = {**request, "outputs": ["terms"], "data": False, **{name: inline(array) for name, array in arrays.items()}}
    return server.ask("/attention", **body).json()["terms"]


def check(server, request, expected, visible=None, **arrays):
    """expected: {name: [B, H, Q, K]} in the order of the answer, scaled."""
    found = attention(server, {**request, "outputs": ["terms", "scores"]}, **arrays)
    terms, scores = found["terms"], found["scores"]
    assert names(server, request, **arrays) == list(expected) and len(terms) == len(expected)
    size = max(np.abs(term).max() for term in expected.values())
    tolerance = (1e-12 if terms.dtype == np.float64 else 4e-6) * size
    for term, (name, wanted) in zip(terms, expected.items()):
        wanted = wanted if visible is None else np.where(visible, wanted, -np.inf)
        assert term.shape == wanted.shape and (np.isneginf(term) == np.isneginf(wanted)).all(), name
        assert np.abs(np.where(np.isneginf(term), 0, term) - np.where(np.isneginf(wanted), 0, wanted)).max() <= tolerance, name
    total = terms.sum(0)
    assert (np.isneginf(total) == np.isneginf(scores)).all()
    assert np.abs(np.where(np.isneginf(total), 0, total - np.where(np.isneginf(scores), 0, scores))).max() <= 2 * len(terms) * tolerance


def dot(q, k):
    return np.einsum("bhid,bhjd->bhij", q, ra.heads_of(k, q.shape[1]))


MASKS = [{}, {"causal": True}, {"window": 3, "window_right": 1}, {"key_mask": [1, 1, 0, 1, 1, 0, 1]}]


def visible_of(masks, q_pos, k_pos):
    return ra.seen(q_pos, k_pos, **masks) if masks else None


# ---- Absolute schemes: (content + position)·(content + position) --------------------------------------------------------------


def absolute_terms(content, position, w_q, w_k, b_q, b_k, scale):
    def heads(rows, w, b):
        return (rows @ w.T + b).reshape(len(rows), -1, D).transpose(1, 0, 2)[None]
    queries = [heads(content, w_q, b_q), heads(position, w_q, 0)]
    keys = [heads(content, w_k, b_k), heads(position, w_k, 0)]
    parts = ["content", "position"]
    return {f"{parts[i]}_{parts[j]}": scale * dot(queries[i], keys[j]) for i in range(2) for j in range(2)}


def without_batch(terms):
    return {name: term[0] for name, term in terms.items()}


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_sinusoidal_multiplied_out(server, masks, dtype):
    n, dim = 7, 8
    x, w_q, w_k, b_q, b_k = (normal(*shape).astype(dtype) for shape in ((n, dim), (H * D, dim), (D, dim), (H * D,), (D,)))
    request = {"scheme": "sinusoidal", "num_heads": H, "x_scale": 2.0, "pe_scale": 0.5, **masks}
    position = 0.5 * from_raw(server.ask(scheme="sinusoidal", dim=dim, len=n, dtype="f64", format="raw"))["encoding"]
    terms = absolute_terms(2.0 * x.astype(float), position, *(w.astype(float) for w in (w_q, w_k, b_q, b_k)), D ** -0.5)
    check(server, request, without_batch(terms), visible_of(masks, range(n), range(n)), x=x, w_q=w_q, w_k=w_k, b_q=b_q, b_k=b_k)


def test_learned_and_none(server):
    n, dim = 5, 4
    x, table, w_q, w_k = normal(n, dim), normal(n, dim), normal(H * D, dim), normal(H * D, dim)
    zeros = np.zeros(H * D)
    check(server, {"scheme": "learned", "num_heads": H, "softmax_scale": 0.3}, without_batch(absolute_terms(x, table, w_q, w_k, zeros, zeros, 0.3)),
          x=x, table=table, w_q=w_q, w_k=w_k)
    check(server, {"scheme": "none", "num_heads": H}, without_batch(absolute_terms(x, 0 * x, w_q, w_k, zeros, zeros, D ** -0.5)), x=x, w_q=w_q, w_k=w_k)


def test_a_batch(server):
    x, w_q, w_k = normal(3, 5, 4), normal(H * D, 4), normal(H * D, 4)
    request = {"scheme": "sinusoidal", "num_heads": H, "outputs": ["terms"]}
    whole = attention(server, request, x=x, w_q=w_q, w_k=w_k)["terms"]
    assert whole.shape == (4, 3, H, 5, 5)
    for batch in range(3):
        assert np.abs(attention(server, request, x=x[batch], w_q=w_q, w_k=w_k)["terms"] - whole[:, batch]).max() < 1e-12


def test_the_two_dogs(server):
    """Without the terms of the position the rows of equal words are equal."""
    answer = server.ask("/attention", scheme="sinusoidal", tokens=["the", "dog", "chased", "another", "dog"], outputs=["terms", "scores"], dtype="f64").json()
    terms = np.array(answer["tensors"]["terms"]["data"])
    assert answer["terms"] == ["content_content", "content_position", "position_content", "position_position"]
    assert (terms[0][:, 1] == terms[0][:, 4]).all() and (terms[1][:, 1] == terms[1][:, 4]).all()
    assert np.abs(terms[2][:, 1] - terms[2][:, 4]).max() > 1e-3 and np.abs(terms[3][:, 1] - terms[3][:, 4]).max() > 1e-3
    assert np.abs(terms.sum(0) - np.array(answer["tensors"]["scores"]["data"])).max() < 1e-11


# ---- Relative schemes: the terms of their papers --------------------------------------------------------------------------------


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_shaw(server, masks, dtype):
    q, k, _ = qkv((2, H, 4, D), kv_heads=1, k_len=7, dtype=dtype)
    table = normal(5, D).astype(dtype)
    q_pos, k_pos = bottom_right(4, 7)
    index = ra.shaw_index(q_pos, k_pos, -2, 2)
    scale = D ** -0.5
    expected = {"content_content": scale * dot(q, k), "content_relative": scale * ra.by_query(q, table, index)}
    check(server, {"scheme": "shaw", "max_relative": 2, **masks}, expected, visible_of(masks, q_pos, k_pos), q=q, k=k, rel_k=table)


def test_bert_s_relative_key_query(server):
    q, k, _ = qkv((1, H, 5, D))
    table = normal(9, D)
    index = ra.shaw_index(range(5), range(5), -4, 4, "query_minus_key")
    expected = {"content_content": dot(q, k), "content_relative": ra.by_query(q, table, index), "relative_content": ra.by_key(k, table, index)}
    check(server, {"scheme": "shaw", "table_style": "relative_key_query", "softmax_scale": 1}, expected, q=q, k=k, rel_k=table)


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("scheme", ["transformer_xl", "xlnet", "conformer"])
def test_transformer_xl_s_four(server, scheme, masks):
    q, k, _ = qkv((2, H, 4, D), k_len=7)
    u, v_bias, w_r = normal(H, D), normal(H, D), normal(H * D, 8)
    q_pos, k_pos = bottom_right(4, 7)
    position = lambda q, v: ra.xl_terms(scheme, q, k, q_pos, k_pos, 0 * u, v, w_r)
    scale = D ** -0.5
    expected = {"content_content": scale * dot(q, k), "content_position": scale * position(q, 0 * u),
                "bias_content": scale * np.broadcast_to(np.einsum("hd,bhjd->bhj", u, k)[:, :, None], (2, H, 4, 7)),
                "bias_position": scale * position(0 * q, v_bias)}
    request, arrays = {"scheme": scheme, "d_model": 8, **masks}, {}
    if scheme == "xlnet":
        ids = [0, 0, 1, 1, 0, 1, 1]
        arrays = {"seg_embed": normal(2, H, D), "r_s_bias": normal(H, D)}
        request["token_type_ids"] = ids
        expected["content_segment"] = scale * ra.xlnet_segments(q, arrays["seg_embed"], arrays["r_s_bias"], ids)
    check(server, request, expected, visible_of(masks, q_pos, k_pos), q=q, k=k, u=u, v_bias=v_bias, w_r=w_r, **arrays)


def test_positions_that_are_no_run(server):
    q, k, _ = qkv((1, H, 3, D))
    u, v_bias, w_r = normal(H, D), normal(H, D), normal(H * D, 8)
    places = [0, 5, 6]
    position = lambda q, v: ra.xl_terms("xlnet", q, k, places, places, 0 * u, v, w_r)
    expected = {"content_content": dot(q, k), "content_position": position(q, 0 * u), "bias_content": np.broadcast_to(np.einsum("hd,bhjd->bhj", u, k)[:, :, None], (1, H, 3, 3)),
                "bias_position": position(0 * q, v_bias)}
    check(server, {"scheme": "xlnet", "d_model": 8, "positions": places, "softmax_scale": 1}, expected, q=q, k=k, u=u, v_bias=v_bias, w_r=w_r)


@pytest.mark.parametrize("terms", [["c2p", "p2c"], ["c2p"], ["p2c"]])
def test_deberta(server, terms):
    q, k, _ = qkv((1, H, 5, D))
    pos_key, pos_query = normal(H, 8, D), normal(H, 8, D)
    index = ra.deberta_index(range(5), range(5), max_relative_positions=4)
    scale = (D * (1 + len(terms))) ** -0.5
    expected = {"c2c": scale * dot(q, k)}
    arrays = {}
    if "c2p" in terms:
        expected["c2p"], arrays["pos_key"] = scale * ra.by_query(q, pos_key, index), pos_key
    if "p2c" in terms:
        expected["p2c"], arrays["pos_query"] = scale * ra.by_key(k, pos_query, index), pos_query
    check(server, {"scheme": "deberta", "max_relative_positions": 4, "pos_att_type": terms}, expected, q=q, k=k, **arrays)


@pytest.mark.parametrize("masks", [{"causal": True}, {"causal": True, "key_mask": [1, 1, 0, 1, 1, 0, 1]}, {}])
def test_cope(server, masks):
    q, k, _ = qkv((1, H, 7, D))
    table = normal(4, D)
    visible = ra.seen(range(7), range(7), **masks)
    content = D ** -0.5 * dot(q, k)
    with np.errstate(invalid="ignore"):
        position = ra.cope(table, range(7), range(7))(np.where(visible, content, -np.inf), q) - content
    check(server, {"scheme": "cope", "npos_max": 4, **masks}, {"content_content": content, "content_position": np.where(visible, position, 0)}, visible,
          q=q, k=k, pos_emb=table)


# ---- The answer ---------------------------------------------------------------------------------------------------------------


def test_parts_and_formats(server):
    request = {"scheme": "shaw", "max_relative": 3, "num_heads": 4, "q": {"shape": [2, 4, 300, 16], "seed": 1, "std": 1}, "k": {"shape": [2, 4, 300, 16], "seed": 2, "std": 1},
               "rel_k": {"shape": [7, 16], "seed": 3, "std": 1}, "causal": True, "outputs": ["terms"]}
    answer = server.ask("/attention", **request, format="raw")
    whole = from_raw(answer)["terms"]
    assert whole.shape == (2, 2, 4, 300, 300)
    part = from_raw(server.ask("/attention", **request, format="raw", slice=[1, [1, 2], [2, 4], [290, 300], [0, 300, 7]]))["terms"]
    assert part.tobytes() == np.ascontiguousarray(whole[1, 1:2, 2:4, 290:300, 0:300:7]).tobytes()
    stored = server.ask("/attention", **request, format="safetensors").body
    header = json.loads(stored[8:8 + int.from_bytes(stored[:8], "little")])
    assert header["__metadata__"]["terms"] == "content_content,content_relative"
    assert stored.endswith(answer.body)


def test_other_answers_do_not_have_it(server):
    answer = server.ask("/attention", scheme="shaw", max_relative=2, q=[[1, 2]], k=[[1, 2]], rel_k=[[0, 0]] * 5).json()
    assert "terms" not in answer and list(answer["tensors"]) == ["probs"]


def test_which_schemes_have_it(server):
    for scheme in server.get("/schemes").json()["schemes"]:
        listed = {output["name"]: output for output in scheme["attention"]["outputs"]}
        assert ("terms" in listed) == (scheme["family"] in ("absolute", "relative")), scheme["name"]
        if "terms" in listed:
            assert listed["terms"]["axes"] == ["term", "batch", "head", "query", "key"] and listed["terms"]["default"] is False
        else:
            rows = [[1.0, 2.0]] * (2 if scheme["name"] == "beit" else 1)  # a class token and one patch
            refused(server, "/outputs", "terms", path="/attention", scheme=scheme["name"], outputs=["terms"], q=rows, k=rows,
                    **({"grid": [1, 1]} if scheme["name"] in ("swin", "swinv2", "beit") else {}), **({"seed": 0} if any(row["name"] == "seed" for row in scheme["parameters"]) else {}))


@pytest.mark.parametrize("pointer, words, more", [
    ("/softcap", ["softcap"], {"softcap": 5, "x": [[1, 2]]}),
    ("/combine", ["add"], {"combine": "multiply", "x": [[1, 2]]}),
    ("/combine", ["add"], {"combine": "concat", "x": [[1, 2]]}),
    ("/outputs", ["x or tokens"], {"scheme": "none", "q": [[1, 2]], "k": [[1, 2]], "seed": None}),
    ("/outputs", ["terms"], {"kernel": "linear", "x": [[1, 2]]})], ids=str)
def test_refusals(server, pointer, words, more):
    refused(server, pointer, *words, path="/attention", **{"scheme": "sinusoidal", "num_heads": 1, "head_dim": 2, "seed": 0, "outputs": ["terms"], **more})
