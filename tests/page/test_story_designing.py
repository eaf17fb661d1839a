"""The story `designing`: what its figures show, against NumPy in double precision and the service's own answers."""
import functools
import json
import pathlib
import re

import numpy as np
import pytest

import lines
from figures import Figure
from probes import array, get, post
from story_texts import story_texts

FIGURES = ("dogs wishes integer integer-normalized binary-252 binary-waves top-bit binary-path sine-waves sine-path shift-matrix clocks chased "
           "rotation ladder distance grid-2d p-rope").split()
STORIES = pathlib.Path(__file__).resolve().parents[2] / "server" / "page" / "stories"
WAVE = {"scheme": "sinusoidal", "dim": 16, "base": 256, "len": 64}


def frequencies(dim, base):
    return float(base) ** (-2 * np.arange(dim // 2) / dim)


def waves(dim, base, positions):
    angles = np.outer(positions, frequencies(dim, base))
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(len(positions), dim)


def shown(figure):
    """Every number that the server gave, in order."""
    return (figure.all("figure data", "e.value"), [value for value in figure.all("[data-readout] output", "e.textContent")], figure.all("canvas[data-heat]", "e.dataset"))


@pytest.fixture
def story(visit):
    """story("dogs") → Figure; the tests share a page, and each leaves its figures as they were."""
    return functools.partial(Figure, visit("view=story&story=designing"))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_it_links_to_its_article(visit, lang):
    page = visit(f"view=story&story=designing&lang={lang}")
    link = page.run("const a = document.querySelector('article .story-prose a[href^=https]'); return [a.href, a.target, a.rel, a.textContent]")
    assert link == ["https://fleetwood.dev/posts/you-could-have-designed-SOTA-positional-encoding", "_blank", "noopener noreferrer", "You could have designed SOTA positional encoding"]


def test_equal_words_have_equal_rows_until_a_position_or_a_mask_parts_them(story, server):
    dogs = story("dogs")
    sentence = {"dim": 96, "tokens": ["The", "dog", "chased", "another", "dog"]}

    def parted(**config):
        output = array(server, {**sentence, **config}, "output", "/attention")
        return abs(output[:, 1] - output[:, 4]).max()

    assert dogs.numbers("difference") == [0] == [parted(scheme="none")]
    dogs.pick("scheme", "sinusoidal")
    assert dogs.numbers("difference") == [pytest.approx(parted(scheme="sinusoidal"), rel=1e-9)] and dogs.numbers("difference")[0] > 0.1
    dogs.pick("scheme", "none").pick("causal", "true")
    assert dogs.numbers("difference") == [pytest.approx(parted(scheme="none", causal=True), rel=1e-9)] and dogs.numbers("difference")[0] > 0.1
    assert dogs.reset().numbers("difference") == [0]


def test_the_wishes_come_true_from_left_to_right(story):
    wishes = story("wishes")
    holds = {"integer": "10010", "binary": "10110", "sinusoidal": "11111", "rope": "11111"}
    for scheme in ["sinusoidal", "binary", "rope", "integer"]:
        wishes.pick("scheme", scheme)
        assert "".join("01"[wish["holds"] == "true"] for wish in wishes.all("[data-wish]", "e.dataset")) == holds[scheme], scheme
        if scheme == "sinusoidal":
            step = np.sqrt((4 * np.sin(frequencies(64, 10000) / 2) ** 2).sum())
            assert wishes.numbers("step") == [pytest.approx(step, rel=1e-12)] and wishes.numbers("unique") == [pytest.approx(step, rel=1e-12)]
    assert wishes.numbers("unique") == [8]
    wishes.slide("len", 16)
    assert wishes.all(".story-touch [data-field=len]", "e.value") == ["16"]
    assert wishes.reset().all(".story-touch [data-field=len]", "e.value") == ["64"]


def test_counting_drowns_the_embeddings_and_dividing_depends_on_the_length(story, server):
    integer = story("integer")
    config = {"scheme": "integer", "dim": 32, "len": 32, "x": {"shape": [32, 32], "seed": 7, "std": 0.02}}
    integer.heat().check_against(server, config, [32, 32])
    embeddings = array(server, config, "combined") - np.arange(32)[:, None]
    assert embeddings.std() == pytest.approx(0.02, rel=0.1) and integer.heat().max > 30.9
    integer.slide("pe_scale", 0.0001)
    assert integer.heat().max < 0.1
    integer.heat().check_against(server, {**config, "pe_scale": 0.0001}, [32, 32])
    assert integer.reset().heat().max > 30.9

    normalized = story("integer-normalized")
    assert (normalized.numbers("value", "a"), normalized.numbers("value", "b")) == ([0.5], [0.125])
    for slot, length in ("a", 10), ("b", 40):
        assert normalized.lines(slot).missing(f"{slot}:0", [(p, p / length) for p in range(length) if p != 5]) == []
    normalized.slide("len", 80)
    assert (normalized.numbers("value", "a"), normalized.numbers("value", "b")) == ([0.5], [0.0625])
    assert normalized.reset().numbers("value", "b") == [0.125]


def test_digits_of_positions(story):
    def bits(positions, order):
        return np.asarray(positions)[:, None] >> np.asarray(order) & 1

    high, low = np.arange(8)[::-1], np.arange(8)
    digits = story("binary-252")
    digits.heat().check(bits(range(248, 256), high))
    assert "".join(map(str, bits(range(248, 256), high)[4])) == "11111100" and digits.all("[data-readout] output", "e.dataset")[0]["row"] == "4"
    digits.slide("offset", 3).pick("dim", "16").pick("bit_order", "lsb")
    digits.heat().check(bits(range(3, 11), np.repeat(low, 2)))
    digits.reset().heat().check(bits(range(248, 256), high))

    square = story("binary-waves")
    square.heat().check(bits(range(64), low))
    square.slide("len", 20)
    square.heat().check(bits(range(20), low))
    square.reset()

    top = story("top-bit")
    assert top.lines("a").missing("a:0", [(p, p % 32 >> 4) for p in range(64) if p != 32]) == []
    assert top.lines("b").missing("b:0", [(p, p >> 5) for p in range(64) if p != 32]) == []
    assert (top.numbers("value", "a"), top.numbers("value", "b")) == ([0], [1])
    assert [text.split(" enc")[0] for text in top.all(".figure-title", "e.textContent.trim()")] == ["a as printed", "b as defined"]


def path_misses(figure, values):
    data = figure.page.run("return {...document.querySelector(arguments[0]).dataset}", f"{figure.at} canvas[data-path]")
    x, y = ([float(part) for part in data[axis].split(",")] for axis in "xy")
    color = [int(data["color"][at:at + 2], 16) for at in (1, 3, 5)]
    places = [[x[0] + np.dot(x[1:], row), y[0] + np.dot(y[1:], row), color] for row in values.tolist()]
    return figure.page.run(lines.FIND.replace("canvas[data-lines]", "canvas[data-path]"), figure.at, places, 1).count(False)


def test_bits_jump_and_waves_do_not(story, server):
    path = story("binary-path")
    corners = np.arange(8)[:, None] >> np.arange(3) & 1
    steps = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    assert path_misses(path, corners) <= 1  # under a name
    assert path.numbers("value") == [1, 1, 0] and path.numbers("step") == [pytest.approx(3 ** .5)] and path.numbers("mean") == [pytest.approx(steps.mean())]
    assert steps.argmax() == 3 and steps.min() == 1
    assert path.pick("lens", "4").numbers("step") == [pytest.approx(2 ** .5)]
    path.reset()

    both = story("sine-waves")
    sines = waves(16, 256, range(64))
    assert abs(array(server, WAVE, "encoding") - sines).max() < 1e-12
    both.heat("b").check_against(server, WAVE, [64, 16])
    both.heat("a").check(np.arange(64)[:, None] >> np.repeat(np.arange(8), 2) & 1)
    both.slide("base", 1000)
    both.heat("b").check_against(server, {**WAVE, "base": 1000}, [64, 16])
    both.reset()

    spiral = story("sine-path")
    assert path_misses(spiral, sines[:, [0, 1, 6]]) <= 3
    step = np.sqrt((4 * np.sin(frequencies(16, 256) / 2) ** 2).sum())
    assert spiral.numbers("step") == [pytest.approx(step, rel=1e-12)] == spiral.numbers("mean")
    spiral.slide("base", 100)
    assert spiral.numbers("step") == pytest.approx(spiral.numbers("mean"), rel=1e-12) and spiral.numbers("step")[0] > step
    assert spiral.reset().numbers("step") == [pytest.approx(step, rel=1e-12)]


def shift(k, w):
    matrix = np.zeros((2 * len(w), 2 * len(w)))
    for i, angle in enumerate(k * w):
        matrix[2 * i:2 * i + 2, 2 * i:2 * i + 2] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    return matrix


def test_a_shift_is_one_matrix_and_turns_the_hands_of_clocks(story, server):
    matrix = story("shift-matrix")
    rows, w = waves(16, 256, range(64)), frequencies(16, 256)
    for k in 3, 20:
        matrix.slide("k", k)
        assert abs(rows[:-k] @ shift(k, w).T - rows[k:]).max() < 1e-13
        heat = matrix.heat()
        assert heat.output == "shift_matrix.0" and (heat.min, heat.max, heat.cmap) == (-1, 1, "coolwarm")
        heat.check(shift(k, w))
    matrix.reset().heat().check(shift(3, w))

    clocks = story("clocks")
    product = np.cos(3 * frequencies(8, 256)).sum()
    for m in 0, 17:
        clocks.slide("both", m)
        assert clocks.numbers("product") == [pytest.approx(product, abs=1e-12)]
        data = clocks.all("canvas[data-hands]", "e.dataset")[0]
        assert (data["m"], data["n"]) == (str(m), str(m + 3))
    answer = json.loads(post(server, "/rotate", scheme="rope", head_dim=8, base=256, direction=-1, q=[[0, 1] * 4], k=[[0, 1] * 4], q_positions=[0], k_positions=[3], dtype="f64"))
    assert np.array(answer["tensors"]["k"]["data"]) == pytest.approx(waves(8, 256, [3]), abs=1e-12)  # the hands are the row
    clocks.reset()


def test_places_change_with_the_beginning_and_distances_do_not(story):
    chased = story("chased")
    places = np.arange(5)
    for first in 0, 4:
        chased.slide("offset", first)
        chased.heat("a").check(first + places[:, None])
        chased.heat("b").check(places - places[:, None])
    assert [data["value"] for data in chased.all("[data-readout] output", "e.dataset")] == ["6.0", "-2.0"]
    chased.reset()


def turned(x, angles):
    pairs = x.reshape(-1, 2)
    return np.stack([pairs[:, 0] * np.cos(angles) - pairs[:, 1] * np.sin(angles), pairs[:, 1] * np.cos(angles) + pairs[:, 0] * np.sin(angles)], -1).ravel()


def vectors(server, width):
    """The query and the key of the view, before they are rotated."""
    random = {"shape": [1, width], "seed": 186, "std": 1}
    tensors = json.loads(post(server, "/rotate", scheme="rope", head_dim=width, q=random, k=random, q_positions=[0], k_positions=[0], dtype="f64"))["tensors"]
    return [np.ravel(tensors[name]["data"]) for name in "qk"]


def test_the_printed_rotation_takes_past_for_future(story, server):
    rotation = story("rotation")
    q, k = vectors(server, 16)
    w = frequencies(16, 10000)

    def product(sign, m, n):
        return turned(q, sign * m * w) @ turned(k, sign * n * w)

    for m, n in (9, 6), (6, 9), (36, 39):
        rotation.slide("m", m).slide("n", n)
        assert rotation.numbers("product", "a") == [pytest.approx(product(-1, m, n), abs=1e-9)], "as printed"
        assert rotation.numbers("product", "b") == [pytest.approx(product(1, m, n), abs=1e-9)] == [pytest.approx(product(-1, n, m), abs=1e-9)]
    assert (f"{product(-1, 9, 6):.2f}", f"{product(1, 9, 6):.2f}") == ("-3.73", "-5.97")  # of the text
    assert rotation.numbers("q-squared", "a") == pytest.approx(rotation.numbers("q-squared", "b"))
    rotation.reset()

    ladder = story("ladder")
    x = np.arange(64)
    for slot, w in ("a", [0.1, 0.01, 0.001, 0.0001]), ("b", [1, 0.1, 0.01, 0.001]):
        found = ladder.lines(slot)
        for i in 0, 1:
            y = np.cos(x * w[i])
            near = x[:, None] + np.linspace(-1, 1, 9)  # a steep line covers what is beside it
            apart = np.all([(abs(np.cos(near * other) - y[:, None]) > 0.2).all(1) for other in w[:i]] or [x >= 0], axis=0)  # from lines that lie above it
            missing = found.missing(f"{slot}:{i}", list(zip(x[apart].tolist(), y[apart].tolist())))
            assert apart.sum() > 10 and len(missing) <= i * apart.sum() / 10, missing  # the second line is dashed
    assert 60 < ladder.lines("a").x_range[1] < 70
    ladder.slide("len", 160)
    assert ladder.lines("a").x_range[1] > 100
    ladder.reset()


def test_only_distance_counts_also_on_two_axes_and_some_pairs_may_stand_still(story, server):
    distance = story("distance")

    def cosines(base):
        return np.cos(16 * frequencies(64, base)).sum()

    assert distance.numbers("similarity") == [pytest.approx(cosines(10000), rel=1e-9)] and distance.numbers("spread")[0] < 1e-12
    distance.slide("base", 100)
    assert distance.numbers("similarity") == [pytest.approx(cosines(100), rel=1e-9)]
    distance.reset()

    grid = story("grid-2d")
    flat, axes = {"scheme": "rope", "head_dim": 32, "len": 64}, {"scheme": "rope", "head_dim": 32, "grid": [8, 8]}
    w, patch = frequencies(16, 10000), np.arange(64)
    assert abs(array(server, axes, "cos") - np.cos(np.hstack([np.outer(patch // 8, w), np.outer(patch % 8, w)]))).max() < 1e-12
    grid.heat("a").check_against(server, flat, [64, 16])
    grid.heat("b").check_against(server, axes, [64, 16])
    grid.pick("grid", "4,16").heat("b").check_against(server, {**axes, "grid": [4, 16]}, [64, 16])
    grid.reset().heat("b").check_against(server, axes, [64, 16])

    share = story("p-rope")
    q, k = vectors(server, 8)
    w = frequencies(8, 256)
    for kept in 2, 4, 0, 1:
        share.slide("scaling.partial_rotary_factor", kept / 4)
        turning = np.where(np.arange(4) < kept, w, 0)
        assert share.numbers("product", "b") == [pytest.approx(turned(q, 20 * turning) @ k, abs=1e-9)], kept
    assert share.numbers("product", "a") == [pytest.approx(turned(q, 20 * np.where(np.arange(4) < 2, 0, w)) @ k, abs=1e-9)], "as printed the slow half turns"
    share.reset()


def test_each_figure_opens_as_it_is_seen(story):
    seen = {}
    for name in "dogs wishes integer-normalized binary-path shift-matrix rotation distance".split():
        figure = story(name)
        seen[name] = (shown(figure), figure.all("a[data-action=open]", "e.hash")[0])
    page = figure.page
    assert page.run("return [...document.querySelectorAll('figure[id]')].map((f) => f.id)") == [f"fig-{name}" for name in FIGURES]
    for name, ((data, texts, maps), address) in seen.items():
        page.hash(address[1:])
        page.settle()
        assert page.run("return [...document.querySelectorAll('main figure data')].map((e) => e.value)") == data, name
        assert page.run("return [...document.querySelectorAll('main [data-readout] output')].map((e) => e.textContent)") == texts, name
        opened = page.run("return [...document.querySelectorAll('main canvas[data-heat]')].map((e) => ({ ...e.dataset }))")
        assert [(one["output"], one["min"], one["max"]) for one in opened] == [(one["output"], one["min"], one["max"]) for one in maps], name
        if name == "shift-matrix":
            copied = json.loads(page.copied("json"))
            assert (copied["metrics"], copied["k"], copied["outputs"]) == (["shift"], [3], ["shift_matrix"])


def test_numbers_of_the_text(server):
    def longest(dim):
        return 2 * np.pi * 10000 ** ((dim - 2) / dim)

    unique = get(server, "/analyze", scheme="sinusoidal", dim=64, len=16384, metrics="unique", outputs="[]")["results"][0]["unique"]
    expected = [f"{longest(64):.0f}", f"{longest(512):.0f}", f"{unique['value']:.2f}", "1.1168", "1.73", "0.125", "−3.73", "−5.97", "252", "11111100"]
    assert unique["witness"]["rows"] == [0, 1]
    assert np.sqrt((4 * np.sin(frequencies(16, 256) / 2) ** 2).sum()) == pytest.approx(1.1168, abs=5e-5)
    for lang in "en", "zh":
        text = " ".join(text for _, text in story_texts((STORIES / f"designing.{lang}.md").read_text()))
        assert [number for number in expected if number not in text] == []
        assert not re.search(r"TODO|\bTBD\b", text)
