"""The story `absolute-relative`: what its figures show and what its sentences state, against NumPy and requests of the test's own."""
import json
import math

import numpy as np
import pytest

from figures import Figure
from probes import array, post, shape_of

STORY = "absolute-relative"
WORDS = ["cats", "chase", "dogs", ",", "dogs", "chase", "cats"]
SENTENCE = {"tokens": WORDS, "dim": 96, "num_heads": 1, "seed": 0}
DISTANCE = np.arange(24)[:, None] - np.arange(24)  # query minus key


@pytest.fixture
def story(visit):
    """Each test leaves its figures as they were."""
    return visit(f"view=story&story={STORY}&lang=en")


def values_read(figure):
    return {slot: value for slot, (_, _, value) in figure.readout().items()}


def attention(server, output, **request):
    return array(server, {**SENTENCE, **request}, output, "/attention")


# ---- absolute ------------------------------------------------------------------------------------------------------------


def test_without_positions_equal_words_are_one(story, server):
    figure = Figure(story, "order")
    plain, placed = (attention(server, "probs", scheme=scheme)[0] for scheme in ("none", "sinusoidal"))
    assert np.array_equal(plain, plain[::-1]) and np.array_equal(plain, plain[:, ::-1]) and not np.allclose(placed, placed[::-1])
    figure.shows(placed)
    figure.shows(plain, "none")
    outputs = attention(server, "output", scheme="sinusoidal")
    assert figure.numbers("difference", "none") == [0]
    assert figure.numbers("difference") == [pytest.approx(max(np.abs(outputs[:, i] - outputs[:, 6 - i]).max() for i in range(3)))]
    figure.pick("scheme", "none")
    assert figure.numbers("difference") == [0] and figure.config()["scheme"] == "none"
    figure.reset()
    figure.shows(placed)
    # outputs change places with their inputs
    order = [4, 1, 0, 3, 2, 6, 5]
    changed = attention(server, "output", scheme="none", tokens=[WORDS[i] for i in order])
    assert np.allclose(changed, attention(server, "output", scheme="none")[:, order], atol=1e-12)


def test_a_table_ends_and_a_path_does_not(story, server):
    figure = Figure(story, "learned-end")
    rows = array(server, {"scheme": "learned", "rows": 32, "dim": 48, "len": 32, "seed": 3, "std": 1}, "encoding")
    figure.shows(np.vstack([rows, np.zeros((16, 48))]))
    position = np.arange(48)[:, None] * 10000.0 ** (-np.arange(0, 48, 2) / 48)
    figure.shows(np.stack([np.sin(position), np.cos(position)], -1).reshape(48, 48), "b")
    figure.pick("out_of_range", "clamp")
    figure.shows(np.vstack([rows, np.repeat(rows[-1:], 16, 0)]))
    figure.pick("out_of_range", "error")
    assert figure.states("a") == ["refused"] and "32 rows" in figure.all('[data-config="a"] [role=alert]')[0]
    figure.slide("len", 32)
    assert figure.states("a") == ["ready"]
    figure.shows(rows)
    figure.reset()
    figure.shows(np.vstack([rows, np.zeros((16, 48))]))

    figure = Figure(story, "floater")
    request = {"scheme": "floater", "dim": 8, "hidden": 32, "len": 64, "seed": 29, "std": 1, "dt": 0.25, "activation": "tanh"}
    path = array(server, request, "encoding")
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    assert figure.numbers("value") == pytest.approx(list(path[0, :3])) and figure.numbers("mean") == [pytest.approx(steps.mean())]
    figure.slide("dt", 0.05)
    shorter = array(server, {**request, "dt": 0.05}, "encoding")
    assert np.allclose(shorter[:60:5], path[:12], rtol=0.02, atol=0.05)  # the same curve, five positions where there was one
    assert figure.numbers("mean") == [pytest.approx(np.linalg.norm(np.diff(shorter, axis=0), axis=1).mean())]
    figure.reset()
    assert figure.numbers("step") == [pytest.approx(steps.max())]


def test_a_product_with_zero_is_lost(story, server):
    figure = Figure(story, "multiply")
    request = {"scheme": "sinusoidal", "dim": 48, "layout": "half", "x": {"shape": [32, 48], "seed": 7, "std": 1}, "pe_scale": 0}
    x = array(server, request, "combined")  # nothing added
    angle = np.arange(32)[:, None] * 10000.0 ** (-np.arange(24) / 24)
    p = np.hstack([np.sin(angle), np.cos(angle)])
    for slot, values in (("a", x + p), ("b", x * p), ("c", x * (1 + p))):
        figure.shows(values, slot)
    assert (x * p)[0, :24].tolist() == [0] * 24 and np.abs((x * p)[:, 18:24]).max() < 0.15 < 0.7 < x[:, 18:24].std()
    figure.pick("layout", "interleaved")
    figure.shows(x * np.stack([np.sin(angle), np.cos(angle)], -1).reshape(32, 48), "b")
    figure.reset()
    figure.shows(x * p, "b")


# ---- the four terms ------------------------------------------------------------------------------------------------------


def test_four_terms_whose_sum_is_the_score(story, server):
    figure = Figure(story, "four-terms")
    terms = attention(server, "terms", scheme="sinusoidal")[:, 0]
    assert figure.all("figure[data-figure] .figure-title") == [f"a {name}" for name in ("content_content", "content_position", "position_content", "position_position")]
    for i in range(4):
        figure.shows(terms[i], nth=i)
    assert np.allclose(terms.sum(0), attention(server, "scores", scheme="sinusoidal")[0])
    assert np.allclose(terms[1], terms[1][::-1]) and np.allclose(terms[2], terms[2][:, ::-1])  # the sentence reads the same from either end
    assert np.allclose(terms[3], attention(server, "terms", scheme="sinusoidal", tokens=list("abcdefg"))[3, 0])
    assert max(np.ptp(np.diag(terms[3], k)) for k in range(6)) > 0.1  # no function of the distance
    figure.slide("pe_scale", 2)
    for i, factor in enumerate((1, 2, 2, 4)):
        figure.shows(terms[i] * factor, nth=i)
    figure.reset()
    figure.shows(terms[3], nth=3)
    story.hash(figure.link().split("#")[1])
    story.settle()
    assert len(story.all('figure[data-figure="attention"][data-config="a"][data-state="ready"]')) == 4


def test_terms_of_xlnet_know_only_distances(story, server):
    figure = Figure(story, "xlnet")
    request = {"scheme": "xlnet", "u": {"shape": [1, 96], "seed": 19, "std": 1}, "v_bias": {"shape": [1, 96], "seed": 19, "std": 1}, "w_r": {"shape": [96, 96], "seed": 3, "std": 0.1}}
    terms = attention(server, "terms", **request)[:, 0]
    for i in range(4):
        figure.shows(terms[i], nth=i)
    assert np.allclose(terms[2], terms[2][:1]) and all(np.ptp(np.diag(terms[3], k)) < 1e-9 for k in range(-6, 7))
    assert figure.all("figure[data-figure] .figure-title")[2:] == ["a bias_content", "a bias_position"]
    figure.slide("clamp_len", 2)
    clamped = attention(server, "terms", **request, clamp_len=2)[3, 0]
    assert np.ptp(np.diag(clamped, 2)) < 1e-9 and math.isclose(clamped[0, 2], clamped[0, 6]) and math.isclose(clamped[2, 0], clamped[6, 0])
    figure.shows(clamped, nth=3)
    figure.reset()
    figure.shows(terms[3], nth=3)


# ---- distances -----------------------------------------------------------------------------------------------------------


def bucket(distance, buckets=32, largest=128):
    """Of a key `distance` after its query, both directions, in whole numbers: the logarithm as powers."""
    side, n = buckets // 2, abs(distance)
    near = side // 2
    far = side - near
    step = n if n < near else min(side - 1, near + sum((n / near) ** far >= (largest / near) ** k * (1 - 1e-12) for k in range(1, far)))
    return step + (side if distance > 0 else 0)


def test_rows_of_shaw_and_deberta_as_printed_and_as_defined(story):
    figure = Figure(story, "shaw")
    for slot, sign in (("a", 1), ("b", -1)):
        figure.shows(np.clip(sign * DISTANCE, -4, 4) + 4, slot)
    figure.slide("p_max", 0)
    for slot, sign in (("a", 1), ("b", -1)):
        figure.shows(np.clip(sign * DISTANCE, -4, 0) + 4, slot)
    figure.reset()
    figure.shows(np.clip(DISTANCE, -4, 4) + 4)

    figure = Figure(story, "deberta")
    released = np.clip(DISTANCE + 16, 0, 31)
    figure.shows(released.T)  # the distance seen from the key
    figure.shows(released, "b")
    assert values_read(figure) == {"a": 8, "b": 24}
    figure.slide("max_relative_positions", 8)
    figure.shows(np.clip(DISTANCE + 8, 0, 15), "b")
    figure.reset()
    figure.pick("position_buckets", 8)
    assert figure.heat("b").max == 15
    figure.reset()


def test_deberta_reads_one_row_for_both_mixed_terms(server):
    ones, rows = [[1]] * 6, [[[row] for row in range(8)]]
    request = {"scheme": "deberta", "max_relative_positions": 4, "q": ones, "k": ones, "pos_key": rows, "pos_query": rows, "softmax_scale": 1}
    _, c2p, p2c = array(server, request, "terms", "/attention")  # each term is the number of its row
    assert np.array_equal(c2p, p2c) and np.array_equal(c2p, np.clip(DISTANCE[:6, :6] + 4, 0, 7))


def test_buckets_of_t5(story):
    figure = Figure(story, "t5-buckets")
    starts = [next(n for n in range(129) if bucket(-n) == i) for i in range(16)]
    assert starts == [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
    after = np.arange(120) - np.arange(120)[:, None]
    figure.shows([[bucket(d) for d in row] for row in after.tolist()])
    assert {bucket(d) for d in range(1, 200)} == set(range(17, 32))
    assert values_read(figure) == {"a": bucket(-80)}
    figure.pick("bidirectional", "false")
    heat = figure.heat()
    assert (heat.min, heat.max) == (0, 31) and figure.config()["bidirectional"] is False
    blocks = heat.blocks()
    assert (blocks[np.triu_indices(120)] == blocks[0, 0]).all()
    figure.reset()
    figure.slide("num_buckets", 16)
    figure.shows([[bucket(d, 16) for d in row] for row in after.tolist()])
    figure.reset()


# ---- rotation ------------------------------------------------------------------------------------------------------------


def test_a_shift_of_both_changes_no_product(story):
    figure = Figure(story, "rotation")
    numbers = lambda: dict(figure.all("figure[data-figure] data", "[e.dataset.what, Number(e.value)]"))  # noqa: E731
    products = numbers()
    assert len(products) == 3
    figure.slide("both", 30)
    shifted = numbers()
    assert {what: shifted[what] for what in products} == pytest.approx(products, abs=1e-4)
    assert "m=33" in figure.link() and "n=30" in figure.link()
    figure.reset()
    figure.slide("m", 20)
    moved = numbers()
    changed = [what for what, value in products.items() if abs(moved[what] - value) > 1e-3]
    assert len(changed) == 1, changed  # the product, not the lengths
    figure.reset()


def test_linear_attention_takes_what_acts_on_each_token(story, server):
    figure = Figure(story, "linear-attention")
    for slot, scheme in (("a", "rope"), ("b", "xpos"), ("none", "none")):
        figure.shows(attention(server, "weights", scheme=scheme, kernel="linear")[0], slot)
    assert abs(attention(server, "weights", scheme="rope", kernel="linear").sum(-1) - 1).max() > 0.01
    figure.pick("scheme", "alibi")
    assert figure.states("b") == ["refused"] and "no product of features" in figure.all('[data-config="b"] [role=alert]')[0] and figure.states("a") == ["ready"]
    figure.pick("scheme", "sinusoidal")
    figure.shows(attention(server, "weights", scheme="sinusoidal", kernel="linear")[0], "b")
    figure.reset()
    assert figure.config("b")["scheme"] == "xpos"
    # by the formula: features turned in the numerator only
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 9, 4))
    features = [np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k)]
    angle = np.arange(9)[:, None] * np.array([1, 0.01])
    turn = lambda x: np.stack([x[:, ::2] * np.cos(angle) - x[:, 1::2] * np.sin(angle), x[:, 1::2] * np.cos(angle) + x[:, ::2] * np.sin(angle)], -1).reshape(9, 4)  # noqa: E731
    expected = turn(features[0]) @ turn(features[1]).T / (features[0] @ features[1].T).sum(1, keepdims=True)
    found = array(server, {"scheme": "rope", "kernel": "linear", "q": q.tolist(), "k": k.tolist()}, "weights", "/attention")
    assert np.allclose(found, expected, atol=1e-6) and (expected < 0).any()


# ---- the text ------------------------------------------------------------------------------------------------------------


def test_relative_forms_do_not_see_a_shift_of_the_text(server):
    for request in ({"scheme": "shaw", "std": 0.1}, {"scheme": "deberta", "std": 0.1}, {"scheme": "xlnet", "std": 0.1}, {"scheme": "t5", "std": 1}, {"scheme": "rope"}):
        content = {"q": {"shape": [6, 8], "seed": 1, "std": 1}, "k": {"shape": [6, 8], "seed": 2, "std": 1}, "seed": 0}
        if request["scheme"] == "rope":
            content.pop("seed")
        if request["scheme"] == "deberta":
            rows = {"shape": [1, 1024, 8], "seed": 3, "std": 1}
            request, content = {"scheme": "deberta", "pos_key": rows, "pos_query": rows}, {name: content[name] for name in "qk"}
        here, there = (array(server, {**request, **content, "offset": offset}, "scores", "/attention") for offset in (0, 50))
        assert np.allclose(here, there, atol=1e-5) and not np.allclose(here, array(server, {"scheme": "none", **{name: content[name] for name in "qk"}}, "scores", "/attention"), atol=1e-3)


def test_links_of_the_text_lead_somewhere(story):
    links = story.run("return [...document.querySelectorAll('.story-prose > p a')].map((a) => a.getAttribute('href'))")
    assert links == ["#view=extrapolate", "#view=experiment", "#view=story&story=three-encodings"]


@pytest.mark.fresh
def test_chinese_has_its_own_sentence(open_page, server):
    page = open_page(f"view=story&story={STORY}&lang=zh")
    figure = Figure(page, "order")
    assert figure.config()["tokens"] == list("猫追狗，狗追猫") and figure.numbers("difference", "none") == [0]
    figure.shows(attention(server, "probs", scheme="sinusoidal", tokens=list("猫追狗，狗追猫"))[0])
    assert shape_of(server, figure.config(), "probs", "/attention") == [1, 7, 7]
    assert json.loads(post(server, "/attention", **figure.config(), data=False))["config"]["scheme"] == "sinusoidal"
