"""The story `three-encodings`: what its figures show and what its sentences state, against NumPy in float64 and separate requests."""
import json
import math
import pathlib
import re

import numpy as np
import pytest

from figures import Figure
from probes import Heat, array, post
from story_texts import story_texts

STORY = "three-encodings"
STORIES = pathlib.Path(__file__).resolve().parents[2] / "server" / "page" / "stories"
TEXTS = {lang: dict(story_texts((STORIES / f"{STORY}.{lang}.md").read_text())) for lang in ("en", "zh")}

# The slopes that the printed function gives for twelve heads.
PRINTED = [0.5 * i for i in range(1, 9)] + [0.25 * i for i in range(1, 5)]


# ---- the encodings, independently ----------------------------------------------------------------------------------------


def sinusoid(rows, dim, base=10000.0):
    angles = np.arange(rows)[:, None] * base ** (-2 * np.arange(dim // 2) / dim)
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(rows, dim)


def slopes(heads):
    """The published rule: a geometric list for the power of two below, then every second one of the list for the next."""
    near = 2 ** int(math.log2(heads))
    first = [2 ** (-8 * h / near) for h in range(1, near + 1)]
    return first + [2 ** (-8 * h / (2 * near)) for h in range(1, 2 * (heads - near), 2)]


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def nearest(rows):
    distances = np.linalg.norm(rows[:, None] - rows, axis=-1) + 9e9 * np.eye(len(rows))
    return distances.min(), sorted(np.unravel_index(distances.argmin(), distances.shape))


# ---- the page ------------------------------------------------------------------------------------------------------------


def story(open_page, **keys):
    return open_page("&".join([f"view=story&story={STORY}&lang=en", *(f"{key}={value}" for key, value in keys.items())]))


def words(scheme, tokens, **more):
    return {"scheme": scheme, "dim": 96, "causal": False, "tokens": tokens, **more}


# ---- figures -------------------------------------------------------------------------------------------------------------


def test_order_is_lost_and_the_symmetric_bias_does_not_bring_it_back(open_page, server):
    figure = Figure(story(open_page), "order")
    forward = ["cat", "chases", "mouse"]
    assert figure.states() == ["ready", "ready"]  # no third map beside the two sentences
    for scheme, mirrored in {"none": True, "sinusoidal": False, "rope": False, "alibi": True}.items():
        if scheme != "none":
            figure.pick("scheme", scheme)
        a, b = (array(server, words(scheme, tokens), "probs", "/attention") for tokens in (forward, forward[::-1]))
        assert np.allclose(a, b[:, ::-1, ::-1], atol=1e-6) == mirrored, scheme
        for slot, tokens in (("a", forward), ("b", forward[::-1])):
            figure.heat(slot).check_against(server, words(scheme, tokens), (8, 3, 3), "/attention")
    figure.reset()
    figure.pick("causal", "true")
    assert (figure.heat("b").blocks()[0, 1:] == figure.heat("b").blocks()[0, 1]).all()  # the first word sees itself alone
    figure.reset()
    shown = figure.heat("b").blocks()
    figure.page.open(figure.link()[1:])
    assert (Heat(figure.page, "b").blocks() == shown).all() and not figure.page.state("none")  # without positions it is its own twin


def test_tables(open_page):
    page = story(open_page, sec=2)
    wide = Figure(page, "table-viridis")
    heat = wide.heat()
    assert (heat.rows, heat.cols, heat.cmap, heat.min, heat.max) == (100, 512, "viridis", -1, 1)
    heat.check(sinusoid(100, 512).astype(np.float32))
    wide.slide("dim", 7)
    assert wide.heat().cols == 7
    wide.reset()
    assert wide.heat().cols == 512

    cut = Figure(page, "table-50x64")
    cut.heat("b").check(sinusoid(50, 64).astype(np.float32))
    cut.heat("a").check(sinusoid(50, 512)[:, :64].astype(np.float32))
    cut.slide("base", 10000)
    assert (cut.heat("a").blocks() == cut.heat("b").blocks()).all()
    cut.reset()
    cut.heat("a").check(sinusoid(50, 512)[:, :64].astype(np.float32))

    learned = Figure(page, "learned")
    heat = learned.heat()
    heat.check(array(page, learned.config(), "encoding", dtype="f32"))
    learned.heat("b").check(sinusoid(64, 64).astype(np.float32))
    learned.slide("len", 80)
    assert learned.states() == ["refused", "ready"] and "64 rows" in learned.all('[data-notice="refused"]')[0] and learned.heat("b").rows == 80
    learned.pick("out_of_range", "clamp")
    assert learned.states() == ["ready", "ready"]
    blocks = learned.heat().blocks()
    assert (blocks[63:] == blocks[63]).all() and (blocks[62] != blocks[63]).any()
    learned.reset()
    assert learned.heat().rows == 64
    learned.page.open(learned.link()[1:])
    Heat(page).check(array(page, {"scheme": "learned", "rows": 64, "dim": 64, "len": 64, "seed": 0, "std": 1}, "encoding", dtype="f32"))


def test_properties(open_page):
    page = story(open_page, sec=3)
    sines = Figure(page, "unique-bounded")
    assert sines.numbers("unique") == [pytest.approx(nearest(sinusoid(100, 512))[0], rel=1e-9)] and sines.all("[data-wish]", "e.dataset.holds") == ["true"] * 5
    sines.slide("dim", 2)
    assert sines.numbers("unique") == [pytest.approx(nearest(sinusoid(100, 2))[0], rel=1e-9)] and sines.all("[data-wish=unique] a") == ["row 0", "row 44"]
    sines.reset()
    assert sines.numbers("unique") == [pytest.approx(3.7142703651, rel=1e-9)]

    three = Figure(page, "compare-three")
    held = lambda: [three.all(f'figure[data-config="{slot}"] [data-wish]', "e.dataset.holds").count("true") for slot in "abc"]
    assert held() == [5, 5, 3]
    three.pick("causal", "true")
    assert held() == [5, 5, 4]
    three.reset()
    assert held() == [5, 5, 3]


def test_rotation_and_the_query_that_forgets_where_it_stands(open_page, server):
    page = story(open_page, sec=5)
    norms = Figure(page, "norms")

    def products(slot):
        return [norms.numbers(what, slot)[0] for what in ("product", "q-squared", "k-squared")]

    def turned(direction, m, n):
        """q·k, q·q, k·k of the figure's vectors, turned by NumPy."""
        q, k = (array(server, {"scheme": "rope", "head_dim": 16, "positions": [0], name: {"shape": [1, 16], "seed": 186, "std": 1}}, name, "/rotate")[0] for name in "qk")
        turn = lambda v, p: (v[::2] + 1j * v[1::2]) * np.exp(1j * direction * p * 10000.0 ** (-np.arange(8) / 8))
        a, b = turn(q, m), turn(k, n)
        return [(a * b.conj()).sum().real, (abs(a) ** 2).sum(), (abs(b) ** 2).sum()]

    assert products("a") == pytest.approx(turned(-1, 9, 6), rel=1e-6) and products("b") == pytest.approx(turned(1, 9, 6), rel=1e-6)
    norms.slide("m", 30)
    assert products("b") == pytest.approx(turned(1, 30, 6), rel=1e-6)
    norms.reset()
    assert [round(products(slot)[0], 3) for slot in "ab"] == [-3.732, -5.968]

    cache = Figure(page, "cache")
    weights = lambda at: softmax(np.array([[2 * np.cos((at - n) * 10000.0 ** (-np.arange(4) / 4)).sum() for n in range(6)]]) / math.sqrt(8))
    cache.heat("a").check(weights(0).astype(np.float32))
    cache.heat("b").check(weights(5).astype(np.float32))
    cache.slide("q_offset", 2)
    cache.heat("b").check(weights(2).astype(np.float32))
    cache.reset()
    cache.page.open(cache.link()[1:])
    Heat(page, "b").check(weights(5).astype(np.float32))


def test_slopes_as_printed_and_as_defined(open_page):
    page = story(open_page, sec=6)
    heads = Figure(page, "alibi-heads")
    assert heads.numbers("slopes") == pytest.approx(slopes(8)) and slopes(8) == [2.0 ** -h for h in range(1, 9)]
    distance = np.arange(32)[:, None] - np.arange(32)
    heads.heat(nth=8).check(np.where(distance >= 0, -0.5 * distance, -np.inf))
    heads.slide("num_heads", 12)
    assert heads.numbers("slopes") == pytest.approx(slopes(12), rel=1e-6)
    heads.pick("causal", "false")
    assert np.isfinite(heads.heat(nth=12).blocks()[0, 1]).all() and heads.heat(nth=12).blocks()[0, 1, 3] == 255
    heads.reset()
    assert len(heads.numbers("slopes")) == 8

    both = Figure(page, "alibi-as-printed")
    assert both.numbers("slopes") == PRINTED and both.numbers("slopes", "b") == pytest.approx(slopes(12), rel=1e-6)
    distance = np.arange(16)[:, None] - np.arange(16)
    both.heat("a", 7).check(-4.0 * abs(distance))
    both.heat("b", 7).check(np.where(distance >= 0, -distance / 256, -np.inf))
    assert (both.heat("a", 7).min, both.heat("b", 7).min) == (-60, -60)  # one scale
    both.pick("scale", "own")
    both.heat("b", 7).check(np.where(distance >= 0, -distance / 256, -np.inf))
    assert (both.heat("a", 7).min, both.heat("b", 7).min) == (-60, -15 / 256)
    both.reset()


def test_beyond_the_trained_length(open_page, server):
    page = story(open_page, sec=8)
    figure = Figure(page, "extrapolation")
    assert figure.numbers("unseen_angles") == figure.numbers("unseen_angles", "b") and len(figure.numbers("positions_without_row", "d")) > 0
    assert figure.numbers("positions_without_row", "d")[0] == 0.5
    # The share of angles at distances 128 to 255 that no distance below 128 has, for each frequency, then on average.
    speeds = 10000.0 ** (-2 * np.arange(32) / 64)
    shares = [0 if 127 * w >= 2 * math.pi else np.mean([(d * w) % (2 * math.pi) > 127 * w for d in range(128, 256)]) for w in speeds]
    assert figure.numbers("unseen_angles")[0] == pytest.approx(np.mean(shares), rel=1e-12)
    assert figure.numbers("mass_beyond", "c")[0] == pytest.approx(0.09774, abs=1e-5)
    figure.slide("eval", 512)
    assert figure.numbers("positions_without_row", "d")[0] == 0.75
    figure.reset()
    assert figure.numbers("positions_without_row", "d")[0] == 0.5


def trained(server):
    """Trainings that were begun."""
    text = server.get("/metrics").body.decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("posenc_requests_total") and "/experiments" in line)


def test_training_waits_for_its_button(open_page, server):
    page = story(open_page, sec=8)
    before = trained(server)
    figure = Figure(page, "training", states=("empty",))
    page.click('article a[href*="sec=1"]')
    page.settle()
    figure = Figure(page, "training", states=("empty",))
    for key, value in {"steps": 2, "train": 16, "eval": 16, "seed": 3}.items():
        figure.slide(key, value)
    assert set(figure.states()) == {"empty"} and trained(server) == before
    page.click(f"{figure.at} [data-action=start]")
    page.settle()
    assert figure.states() == ["ready", "ready"] and trained(server) == before + 1
    body = {"task": "local", "steps": 2, "train_len": 16, "eval_len": 16, "seed": 3, "configs": [{"scheme": name} for name in ("sinusoidal", "rope", "alibi", "learned")]}
    done = [json.loads(line) for line in server.post("/experiments", body).body.splitlines()][-1]
    assert figure.all("tr[data-config] [data-what=rise]", "Number(e.value)") == [one["rise"] for one in done["results"]]
    figure.pick("task", "lag")
    assert "stale" in figure.states() and trained(server) == before + 2  # ours was the second
    figure.reset()
    assert figure.all("[data-field=steps]", "e.value") == ["300"] and "steps=300" in page.attribute(f"{figure.at} a[data-action=open]", "href")


# ---- sentences -----------------------------------------------------------------------------------------------------------


def stated(key, *numbers):
    """In both languages; a thousand is set apart in English only."""
    for lang, texts in TEXTS.items():
        text = re.sub(r"(?<=\d)\u00a0(?=\d{3})", "", texts[key]).replace(" %", "%")
        for number in numbers:
            assert re.search(rf"(?<![\d.]){re.escape(str(number))}(?![\d]|\.\d)", text), (lang, key, number, text)


def test_numbers_of_the_text(server):
    cat = [array(server, words("none", tokens), "probs", "/attention")[0] for tokens in (["cat", "chases", "mouse"], ["mouse", "chases", "cat"])]
    assert round(cat[0][0, 2], 3) == round(cat[1][2, 0], 3) == 0.346
    stated("fig.order", 0.346)

    wavelength = lambda pair, dim: 2 * math.pi * 10000 ** (2 * pair / dim)
    assert round(wavelength(0, 512), 2) == 6.28 and round(wavelength(255, 512), -2) == 60600 and round(wavelength(31, 512), 1) == 19.2 and round(wavelength(31, 64)) == 47117
    stated("2.1", 6.28, 60600)
    stated("2.3", 6.28, 19.2, 47117)
    assert wavelength(76, 512) < 99 < wavelength(77, 512)
    stated("fig.table-viridis", 2 * 77)
    assert round(10000 ** (1 / 8), 3) == 3.162
    stated("fig.table-50x64", 3.162)

    rows = sinusoid(100, 512)
    assert round(nearest(rows)[0], 3) == 3.714 and np.allclose(np.linalg.norm(rows, axis=1), 16)
    stated("fig.unique-bounded", 3.714, 16)
    apart, pair = nearest(sinusoid(100, 2))
    assert apart == pytest.approx(np.linalg.norm(sinusoid(45, 2)[44] - sinusoid(1, 2)[0]), rel=1e-9) and pair[1] - pair[0] == 44 and round(apart, 3) == 0.018 and abs(44 / (2 * math.pi) - 7) < 0.003
    stated("fig.unique-bounded.try", 0.018, 44)
    stated("4.2", 512 * 768)

    first = array(server, {"scheme": "rope", "q": [[1] * 8], "k": [[1] * 8] * 6, "q_offset": 0}, "probs", "/attention")[0, 0]
    assert round(first, 3) == 0.316
    stated("fig.cache", 0.316)
    assert f"{math.exp(-4):.1%}" == "1.8%" and f"{math.exp(-1 / 256):.1%}" == "99.6%" and f"{math.exp(-0.5 * 8):.1%}" == "1.8%"
    stated("6.3", "1.8%", "99.6%")
    assert PRINTED[7] / slopes(12)[7] == 1024 and [round(one, 3) for one in slopes(12)[8::3]] == [0.707, 0.088] and PRINTED[8::3] == [0.25, 1]
    stated("fig.alibi-as-printed", 1024, 0.25, 0.707, 0.088)
    stated("fig.alibi-heads.try", 0.707, 0.088)

    result = json.loads(post(server, "/analyze", metrics=["extrapolation"], outputs=[], train_len=128, eval_len=1024, configs=[{"scheme": "alibi", "len": 128, "causal": True}]))
    assert round(result["results"][0]["extrapolation"]["value"], 2) == 0.14
    stated("fig.extrapolation", "62%", "9.8%")
    stated("fig.extrapolation.try", 0.14)


@pytest.mark.slow
def test_what_training_is_said_to_give(server):
    results = {}
    for task in ("local", "lag"):
        for seed in range(3):
            body = {"task": task, "steps": 300, "train_len": 64, "eval_len": 128, "seed": seed, "configs": [{"scheme": name} for name in ("sinusoidal", "rope", "alibi", "learned")]}
            done = json.loads(server.post("/experiments", body).body.splitlines()[-1])
            results[task, seed] = [(one["inside"], one["rise"]) for one in done["results"]]
    rises = np.array([[rise for _, rise in results["local", seed]] for seed in range(3)])
    assert np.round([rises[:, 0].min(), rises[:, 0].max()], 1) == pytest.approx([0.7, 1.4]) and np.round([rises[:, 1].min(), rises[:, 1].max()], 1) == pytest.approx([0, 0.4])
    assert abs(rises[:, 2]).max() <= 0.02
    inside = np.array([[one for one, _ in results["lag", seed]] for seed in range(3)])
    assert (abs(inside[:, 2] - 1) < 0.1).all() and inside[:, 1].max() < 0.01
