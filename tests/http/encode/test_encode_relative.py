"""POST /encode with the relative schemes, as far as they do not depend on content: indices, distances, encodings,
refusals."""
import numpy as np
import pytest

import truth
import truth.attention as attention_truth
from asking import check_again, refused
from tensors import encode, encode_one

SEQUENCES = [(dict(len=9), range(9), range(9)), (dict(q_len=3, k_len=7), range(4, 7), range(7)), (dict(q_len=3, k_len=7, q_offset=0), range(3), range(7)),
             (dict(q_len=5, k_len=2), range(-3, 2), range(2)), (dict(q_positions=[7, -2], k_positions=[0, 30, 7]), [7, -2], [0, 30, 7]),
             (dict(positions=[5, 1, 9]), [5, 1, 9], [5, 1, 9]), (dict(len=3, offset=1000), range(3), range(3))]


@pytest.mark.parametrize("sequence,q,k", SEQUENCES)
@pytest.mark.parametrize("fields,rows", [({}, (-4, 4)), ({"max_relative": 2}, (-2, 2)), ({"p_min": -1, "p_max": 3}, (-1, 3)), ({"p_max": 0}, (-4, 0)), ({"p_min": 2, "p_max": 5}, (2, 5)), ({"p_min": -3, "p_max": -3}, (-3, -3))], ids=str)
@pytest.mark.parametrize("direction", ["key_minus_query", "query_minus_key"])
def test_shaw(server, sequence, q, k, fields, rows, direction):
    got = encode_one(server, scheme="shaw", **sequence, **fields, direction=direction)
    assert got.dtype == np.int32 and np.array_equal(got, attention_truth.shaw_index(list(q), list(k), *rows, direction))


def test_shaw_of_hugging_face(server):
    got = encode_one(server, scheme="shaw", table_style="relative_key", max_relative=511, len=512)
    assert np.array_equal(got, np.subtract.outer(range(512), range(512)) + 511)
    refused(server, "/max_relative", "does not clip", scheme="shaw", table_style="relative_key", max_relative=3, len=5)
    refused(server, "/direction", "query minus key", scheme="shaw", table_style="relative_key", direction="key_minus_query", len=2)


@pytest.mark.parametrize("sequence,q,k", SEQUENCES)
@pytest.mark.parametrize("fields", [{}, {"max_relative_positions": 4}, {"position_buckets": 4, "max_relative_positions": 8},
                                    {"position_buckets": 6, "max_relative_positions": 12, "clamp_first": True}], ids=str)
def test_deberta(server, sequence, q, k, fields):
    assert np.array_equal(encode_one(server, scheme="deberta", **sequence, **fields), attention_truth.deberta_index(list(q), list(k), **fields))


@pytest.mark.parametrize("buckets,most", [(256, 512), (32, 128), (5, 9), (3, 40), (2, 9), (9, 12),
                                          *(pytest.param(*both, marks=pytest.mark.slow) for both in [(128, 512), (64, 256), (320, 800)])])
@pytest.mark.parametrize("clamp_first", [False, True])
def test_every_distance_of_deberta(server, buckets, most, clamp_first):
    places = list(range(-most - 300, most + 300))
    fields = dict(position_buckets=buckets, max_relative_positions=most, clamp_first=clamp_first)
    got = encode_one(server, scheme="deberta", q_positions=places, k_positions=[0], **fields)
    assert np.array_equal(got, attention_truth.deberta_index(places, [0], **fields))


def test_published_buckets_of_deberta(server):
    """DeBERTa-v3: 256 buckets of 512 distances."""
    known = {128: 128, 129: 129, 130: 130, 150: 143, 200: 169, 256: 192, 300: 207, 400: 233, 500: 254, 508: 255, 511: 255}
    got = encode_one(server, scheme="deberta", position_buckets=256, q_positions=list(known), k_positions=[0, 1])[:, 0]
    assert (got - 256).tolist() == list(known.values())
    ends = lambda **f: encode_one(server, scheme="deberta", position_buckets=256, q_positions=[-600, -511, 600], k_positions=[0, 1], **f)[:, 0].tolist()
    assert ends() == [0, 1, 511] and ends(clamp_first=True) == [1, 1, 511]


DISTANCES = {
    "transformer_xl": lambda q, k, causal: range(k - 1, -1, -1),
    "xlnet": lambda q, k, causal: range(k, -1, -1) if causal else range(k, -q, -1),
    "conformer": lambda q, k, causal: range(k - 1, -q, -1),
}


@pytest.mark.parametrize("scheme", DISTANCES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sequence,q,k", [(dict(len=4), 4, 4), (dict(len=4, mem_len=3), 4, 7), (dict(q_len=2, k_len=5), 2, 5), (dict(len=1), 1, 1), (dict(len=700), 700, 700)])
def test_encodings_of_distances(server, scheme, causal, sequence, q, k):
    answer = encode(server, scheme=scheme, causal=causal, num_heads=2, head_dim=8, **sequence)
    distances = list(DISTANCES[scheme](q, k, causal))
    assert answer["distances"].dtype == np.int32 and answer["distances"].tolist() == distances
    assert answer["encoding"].shape == (len(distances), 16)
    np.testing.assert_allclose(answer["encoding"], attention_truth.sinusoid(distances, 16, scheme != "conformer"), atol=1e-7)


@pytest.mark.parametrize("scheme,expected", [("transformer_xl", range(5, -1, -1)), ("xlnet", range(6, -4, -1)), ("conformer", range(5, -4, -1))])
def test_distances_of_other_places(server, scheme, expected):
    """Queries 3, 4, 5 and keys 0 to 6, in three words: all distances that occur are listed."""
    for sequence in (dict(q_len=3, k_len=7, q_offset=3), dict(q_positions=[4, 3, 5], k_positions=[6, 0, 2])):
        assert encode_one(server, scheme=scheme, d_model=4, **sequence, outputs=["distances"]).tolist() == list(expected)


def test_words_of_released_configs(server):
    """deberta-v2's max_relative_positions -1 is 512; position_buckets 0 is none."""
    same = encode_one(server, scheme="deberta", len=600, position_buckets=256)
    assert np.array_equal(encode_one(server, scheme="deberta", len=600, position_buckets=256, max_relative_positions=-1), same)
    assert np.array_equal(encode_one(server, scheme="deberta", len=9, position_buckets=0, max_relative=3), encode_one(server, scheme="deberta", len=9, max_relative_positions=3))


@pytest.mark.parametrize("scheme", DISTANCES)
def test_encodings_are_correctly_rounded(server, scheme):
    """Against mpmath, as the sinusoidal table of the same distances; negative ones too."""
    got = encode(server, scheme=scheme, d_model=12, len=50)
    layout = "interleaved" if scheme == "conformer" else "half"
    for dtype in ("f32", "f16", "bf16"):
        table = encode(server, scheme=scheme, d_model=12, len=50, dtype=dtype, outputs=["encoding"])["encoding"]
        expected = encode_one(server, scheme="sinusoidal", dim=12, layout=layout, positions=got["distances"].tolist(), dtype=dtype)
        assert table.tobytes() == expected.tobytes()
    exact = truth.sinusoidal([int(d) for d in got["distances"][:4]], 12, layout=layout)
    assert np.array_equal(got["encoding"][:4], np.array([[truth.nearest(x, "f32") for x in row] for row in exact], "f4"))


@pytest.mark.parametrize("scheme,clamp_len,low,high", [("transformer_xl", 3, -99, 3), ("xlnet", 3, -3, 3), ("conformer", 2, -2, 2), ("xlnet", -1, -99, 99), ("xlnet", 0, -99, 99)])
def test_clamped_distances(server, scheme, clamp_len, low, high):
    answer = encode(server, scheme=scheme, d_model=8, len=9, clamp_len=clamp_len)
    expected = attention_truth.sinusoid(np.clip(answer["distances"], low, high), 8, scheme != "conformer")
    np.testing.assert_allclose(answer["encoding"], expected, atol=1e-7)
    assert len(set(answer["distances"].tolist())) == len(answer["distances"])


@pytest.mark.parametrize("request_", [dict(scheme="shaw", p_min=-2, len=5), dict(scheme="deberta", position_buckets=8, len=5), dict(scheme="xlnet", len=5, causal=True),
                                      dict(scheme="transformer_xl", len=5, mem_len=2, clamp_len=3)], ids=lambda r: r["scheme"])
def test_config_posted_again(server, request_):
    check_again(server, request_, ["len"], encode(server, **request_))


def test_a_long_table_starts_at_once(server):
    """2^30 distances of 1024 channels: 4 TiB of rows, refused only by size; shapes are told."""
    answer = server.ask("/encode", scheme="transformer_xl", len=1 << 30, data=False).json()
    assert answer["tensors"]["encoding"]["shape"] == [1 << 30, 512]


REFUSED = [
    (dict(scheme="cope", len=3), "/scheme", "/attention"), (dict(scheme="shaw", positions=[0, 0.5]), "/positions", "0.5"),
    (dict(scheme="xlnet", q_positions=[0.25], k_positions=[1]), "/q_positions", "0.25"), (dict(scheme="xlnet", len=3, d_model=7), "/d_model", "even"),
    (dict(scheme="deberta", len=3, position_buckets=1), "/position_buckets", "2"), (dict(scheme="deberta", len=3, position_buckets=64, max_relative_positions=30), "/position_buckets", "30"),
    (dict(scheme="deberta", len=3, pos_att_type=["p2p"]), "/pos_att_type", "c2p"), (dict(scheme="deberta", len=3, norm_rel_ebd="batch"), "/norm_rel_ebd", "layer_norm"),
    (dict(scheme="shaw", len=3, rel_k=[[1]]), "/rel_k", "not used"), (dict(scheme="shaw", len=3, seed=1), "/seed", "not used"),
    (dict(scheme="transformer_xl", len=3, same_length=True), "/same_length", "causal"), (dict(scheme="shaw", len=3, max_relative=2, p_min=-1), "/p_min", "max_relative"),
    (dict(scheme="shaw", len=3, p_min=5), "/p_min", "p_max 4"), (dict(scheme="transformer_xl", len=1 << 40), "/len", "2^31"),
]


@pytest.mark.parametrize("fields,pointer,word", REFUSED, ids=str)
def test_refused(server, fields, pointer, word):
    refused(server, (pointer, "/max_relative"), word, **fields)
