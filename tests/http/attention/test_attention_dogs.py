"""The textbook's experiments as requests: the two dogs, slopes, bucket edges, the sum of cosines, RoPE in linear
attention, and the properties of relative positions."""
import numpy as np
import pytest

import truth
from attention_asking import attention, one, qkv
from tensors import encode_one, from_raw

SENTENCE = "The dog chased another dog".lower().split()
FIRST, SECOND = 1, 4

# Every scheme, with weights large enough to show a difference.
SCHEMES = [
    {"scheme": "integer"}, {"scheme": "binary"}, {"scheme": "sinusoidal"}, {"scheme": "fourier", "num_heads": 3}, {"scheme": "learned", "std": 1.0},
    {"scheme": "recursive", "std": 0.2}, {"scheme": "floater", "std": 0.2}, {"scheme": "rope"}, {"scheme": "xpos"}, {"scheme": "alibi"},
    {"scheme": "t5", "std": 1.0}, {"scheme": "kerple"}, {"scheme": "fire", "std": 1.0}, {"scheme": "sandwich"}, {"scheme": "swin", "std": 1.0},
    {"scheme": "swinv2", "std": 1.0}, {"scheme": "shaw", "std": 1.0}, {"scheme": "transformer_xl", "std": 0.1}, {"scheme": "xlnet", "std": 0.1},
    {"scheme": "conformer", "std": 0.1}, {"scheme": "deberta", "std": 1.0}, {"scheme": "cope", "std": 1.0},
]


def dogs(server, **request):
    """The two dogs' rows of output, [H, head_dim] each."""
    answer = from_raw(server.ask("/attention", tokens=SENTENCE, outputs=["output"], format="raw", **request))["output"]
    assert answer.shape[1] == len(SENTENCE)
    return answer[:, FIRST], answer[:, SECOND]


@pytest.mark.parametrize("fields", [{}, {"dtype": "f64"}, {"seed": 5, "dtype": "f64"}, {"num_heads": 1, "dim": 7, "dtype": "f64"}, {"kernel": "linear", "dtype": "f64"}], ids=str)
def test_without_positions_the_two_dogs_are_the_same(server, fields):
    """To the bit: as rows, as columns, and in what comes out."""
    kind = "weights" if "kernel" in fields else "probs"
    got = from_raw(server.ask("/attention", scheme="none", tokens=SENTENCE, outputs=[kind, "output"], format="raw", **fields))
    assert got["output"][:, FIRST].tobytes() == got["output"][:, SECOND].tobytes()
    assert got[kind][:, FIRST].tobytes() == got[kind][:, SECOND].tobytes()
    assert got[kind][..., FIRST].tobytes() == got[kind][..., SECOND].tobytes()
    assert len({got["output"][:, i].tobytes() for i in range(5)}) == 4


@pytest.mark.parametrize("request_", SCHEMES, ids=lambda r: r["scheme"])
def test_with_any_scheme_they_differ(server, request_):
    first, second = dogs(server, **request_)
    assert np.abs(first - second).max() > 1e-3


@pytest.mark.parametrize("scheme", ["fourier", "integer", "rope", "t5", "shaw"])
def test_every_scheme_takes_the_seed_of_the_words(server, scheme):
    heads = {"num_heads": 3} if scheme == "fourier" else {}
    zero, one = (dogs(server, scheme=scheme, seed=seed, **heads) for seed in (0, 1))
    assert not np.array_equal(zero[0], one[0]) and np.array_equal(zero[0], dogs(server, scheme=scheme, **heads)[0])


def test_every_scheme_is_asked(server):
    known = {s["name"] for s in server.get("/schemes").json()["schemes"] if "/attention" in s["endpoints"]}
    assert {r["scheme"] for r in SCHEMES} == known - {"none", "beit"}  # beit: its class token is no word


def test_words_are_the_same_in_every_sentence(server):
    """Without positions, a permuted sentence has a permuted map."""
    ask = lambda words: from_raw(server.ask("/attention", scheme="none", tokens=words, format="raw", dtype="f64"))["probs"]
    order = [3, 0, 4, 2, 1]
    np.testing.assert_allclose(ask([SENTENCE[i] for i in order]), ask(SENTENCE)[:, order][:, :, order], atol=1e-14)


def test_a_causal_mask_alone_tells_them_apart(server):
    """Why the experiment is run without one."""
    first, second = dogs(server, scheme="none", causal=True)
    assert np.abs(first - second).max() > 0.1


def test_words_have_seed_0(server):
    ask = lambda **f: from_raw(server.ask("/attention", scheme="none", tokens=["a", "b"], dim=16, num_heads=2, format="raw", **f))["probs"]
    assert np.array_equal(ask(), ask(seed=0)) and not np.array_equal(ask(), ask(seed=1))


def test_slopes_of_each_head(server):
    """ALiBi with 6 heads, by hand: the bias at each distance."""
    q = np.zeros((1, 6, 4, 8))
    scores = one(server, {"scheme": "alibi"}, "scores", q=q, k=q)
    np.testing.assert_allclose(-scores[0, :, 0, 1], [.25, .0625, .015625, .00390625, .5, .125], atol=0)
    assert np.array_equal(scores[0, :, 0], np.outer(scores[0, :, 0, 1], range(4)))


def test_bucket_edges_of_t5(server):
    """T5: where a bias first changes. The table's row number as the bias makes them visible."""
    table = np.arange(32.0)[:, None]
    ask = lambda n, **f: one(server, {"scheme": "t5", "num_heads": 1, **f}, "scores", q=np.zeros((1, 4)), k=np.zeros((n, 4)), table=table)[0]
    before = ask(200)[::-1]  # distance 0, 1, … to the left
    assert np.flatnonzero(np.diff(before, prepend=-1)).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
    after = ask(200, q_offset=0)
    assert np.flatnonzero(np.diff(after, prepend=-1)).tolist()[1:] == [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
    assert after[1] == 17 and after[199] == 31
    causal = ask(200, bidirectional=False)[::-1]
    assert np.flatnonzero(np.diff(causal, prepend=-1)).tolist() == [*range(16), 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]


def test_products_of_sinusoids_are_sums_of_cosines(server):
    """PE(m)·PE(n) = sum of cos((m-n)·w_i), d/2 at 0, whatever m; values for d = 128."""
    pe = encode_one(server, scheme="sinusoidal", dim=128, len=600, dtype="f64")
    products = one(server, {"scheme": "none", "softmax_scale": 1}, "scores", q=pe, k=pe)
    w = 10000.0 ** (-2 * np.arange(64) / 128)
    law = np.array([np.cos(d * w).sum() for d in range(600)])
    np.testing.assert_allclose(products, law[np.abs(np.subtract.outer(range(600), range(600)))], atol=1e-11)
    for distance, value in {0: 1, 1: .9702, 2: .8966, 4: .7592, 8: .7144, 16: .6203, 64: .4769, 512: .2194}.items():
        assert abs(products[0, distance] / 64 - value) < 1e-4


def test_rope_in_linear_attention(server):
    """The denominator is not turned: weights may be negative and do not sum to 1, without RoPE they do."""
    q, k, v = qkv((1, 2, 12, 8), seed=4)
    turned = one(server, {"scheme": "rope", "kernel": "linear", "base": 10}, "weights", q=q, k=k)
    plain = one(server, {"scheme": "none", "kernel": "linear"}, "weights", q=q, k=k)
    np.testing.assert_allclose(plain.sum(-1), 1, atol=1e-13)
    assert np.abs(turned.sum(-1) - 1).max() > 0.1 and (turned < 0).any() and (plain > 0).all()
    np.testing.assert_allclose(np.einsum("bhii->bhi", turned), np.einsum("bhii->bhi", plain), atol=1e-13)  # R_m against R_m: nothing is turned


@pytest.mark.parametrize("request_", [{"scheme": s, "seed": 1, "std": 0.5} if s not in ("rope", "alibi", "kerple", "sandwich") else {"scheme": s}
                                      for s in ("rope", "alibi", "t5", "kerple", "sandwich", "shaw", "transformer_xl", "xlnet", "conformer", "deberta", "cope")],
                         ids=lambda r: r["scheme"])
def test_relative_positions_do_not_care_where_they_begin(server, request_):
    q, k, _ = qkv((1, 2, 6, 8))
    here, there = (one(server, {**request_, "offset": offset}, "probs", q=q, k=k) for offset in (0, 1000))
    np.testing.assert_allclose(here, there, atol=1e-11)


def test_absolute_positions_do_care(server):
    ask = lambda offset: from_raw(server.ask("/attention", scheme="sinusoidal", x=np.ones((4, 16)).tolist(), num_heads=2, seed=1, offset=offset, format="raw"))["probs"]
    assert np.abs(ask(0) - ask(7)).max() > 1e-3
