"""The story `introduction`: what its figures show, and the numbers of its text, against NumPy and requests of the test's own."""
import json
import math

import numpy as np
import pytest

from browser import until
from conftest import ROOT
from figures import Figure
from probes import Heat, array, post
from story_texts import story_texts

STORY = "view=story&story=introduction"
FIGURES = ["order", "five-by-five", "first-indices", "later-indices", "dims", "rows-20", "rows-40000", "learned-2d", "rope-turn", "rope-distance", "m-rope"]


def sines(rows, dim, base=10000.0):
    """The table by its definition: sin and cos in turn of p / base^(2i/d); of an odd last pair only the sine."""
    angle = np.asarray(rows, float)[:, None] / base ** (2 * (np.arange(dim) // 2) / dim)
    return np.where(np.arange(dim) % 2, np.cos(angle), np.sin(angle))


def check_columns(figure, cols, values, slot="a", apart=0.08):
    """values [rows, cols]: a dot of each column's colour at each whole position, but where another may lie above it."""
    lines = figure.lines(slot)
    assert list(lines.legend) == [f"{slot}:{col}" for col in cols]
    for i, col in enumerate(cols):
        alone = abs(np.delete(values, i, 1) - values[:, [i]]).min(1) > apart
        missing = lines.missing(f"{slot}:{col}", [(row, values[row, i]) for row in np.flatnonzero(alone)], reach=2)
        assert len(missing) <= 1, (col, missing)  # the mark of the cursor


# ---- figures -------------------------------------------------------------------------------------------------------------------


def test_words_without_positions_and_the_table_that_was_printed_wrong(open_page, server):
    page = open_page(STORY)
    order = Figure(page, "order")
    request = order.address()["a"]
    assert order.numbers("difference", "none")[0] == 0 and order.numbers("difference")[0] > 0.01
    for slot, scheme in (("a", "sinusoidal"), ("none", "none")):
        output = array(server, {**request, "scheme": scheme}, "output", "/attention")
        assert order.numbers("difference", slot)[0] == pytest.approx(max(abs(output[:, i] - output[:, 5 - i]).max() for i in range(3)), rel=1e-9)
        order.heat(slot).check_against(server, {**request, "scheme": scheme}, (8, 6, 6), "/attention")
    order.pick("scheme", "none")
    assert order.numbers("difference")[0] == 0 and order.picked("scheme") == ["none"]
    order.reset()
    assert order.numbers("difference")[0] > 0.01 and order.picked("scheme") == ["sinusoidal"]

    table = Figure(page, "five-by-five")
    assert table.readout()["a"] == (1, 0, 0.001) and table.readout()["b"] == (1, 0, pytest.approx(math.sin(1), abs=1e-7))
    printed = np.full((5, 5), np.nan)
    printed[:2] = [[0, 1, 0, 1, 0], [0.001, 0.999, 0.001, 0.999, 0.001]]
    table.heat("a").check(np.float32(printed))
    table.heat("b").check(array(server, {"scheme": "sinusoidal", "dim": 5, "len": 5}, "encoding", dtype="f32"), sines(range(5), 5))
    table.slide("base", 100)
    assert table.readout()["b"][2] == pytest.approx(math.sin(1), abs=1e-7)  # no base changes columns 0 and 1
    table.heat("b").check(array(server, table.address()["b"], "encoding", dtype="f32"), sines(range(5), 5, 100.0))
    assert table.address()["view"] == "table" and table.address()["a"]["table"][1] == [0.001, 0.999, 0.001, 0.999, 0.001]
    table.reset()
    assert table.address()["b"]["base"] == 10000


def test_columns_early_and_late_and_the_width(open_page):
    page = open_page(STORY)
    first = Figure(page, "first-indices")
    check_columns(first, [0, 1, 2, 3], sines(range(33), 50)[:, :4])
    first.pick("layout", "half")
    check_columns(first, [0, 1, 2, 3], sines(range(33), 50)[:, 0:8:2])
    first.reset()
    check_columns(first, [0, 1, 2, 3], sines(range(33), 50)[:, :4])

    later = Figure(page, "later-indices")
    positions = 1000 * np.arange(65)
    printed = np.stack([np.sin(positions / 10000), np.cos(positions / 10000)], -1)
    check_columns(later, [48, 49], printed, "a")
    check_columns(later, [48, 49], sines(positions, 50)[:, 48:], "b")
    assert later.numbers("value", "b")[0] == pytest.approx(math.sin(43000 / 10000 ** 0.96), abs=1e-6)
    later.slide("angle_scale", 1)
    assert later.numbers("value", "b")[0] == pytest.approx(math.sin(43 / 10000 ** 0.96), abs=1e-6)
    assert {later.address()[slot]["angle_scale"] for slot in "ab"} == {1}
    later.reset()

    dims = Figure(page, "dims")
    for slot, dim in (("a", 50), ("b", 20)):
        check_columns(dims, [0, 1, 2, 3], sines(range(33), dim)[:, :4], slot)
    dims.slide("dim", 50)
    check_columns(dims, [0, 1, 2, 3], sines(range(33), 50)[:, :4], "b")
    assert dims.address()["a"]["dim"] == dims.address()["b"]["dim"] == 50
    dims.reset()
    assert dims.address()["b"]["dim"] == 20


def test_the_table_near_and_far_and_a_learned_one(open_page, server):
    page = open_page(STORY)
    near = Figure(page, "rows-20")
    near.heat().check(array(server, near.address()["a"], "encoding", dtype="f32"), sines(range(20), 50))
    near.slide("len", 2000)
    assert near.heat().row_step > 1
    near.reset()
    assert near.heat().row_step == 1 and near.heat().rows == 20

    far = Figure(page, "rows-40000")
    request = far.address()["a"]
    heat = far.heat()
    assert request["len"] == 40000 and heat.row_step > 40 and heat.reduce == "mean"
    heat.check_against(server, request, (40000, 50))
    step = heat.row_step
    blocks = sines(range(step * 40), 50).reshape(40, step, 50).mean(1)
    assert abs(blocks[:, :8]).max() < 0.2 and abs(blocks[:, 24:]).max() > 0.9  # what the mean leaves of fast and slow columns
    far.slide("red", "sample", "change")
    sample = far.heat()
    assert sample.reduce == "sample" and f"{step} rows a pixel" in page.text(f"{far.at} .heat-scale")
    sample.check_against(server, request, (40000, 50))
    assert far.address()["red"] == "sample"
    far.reset()
    assert far.heat().reduce == "mean"

    learned = Figure(page, "learned-2d")
    values = array(server, learned.address()["a"], "encoding", dtype="f32")
    learned.heat().check(values)
    grid = values.reshape(6, 8, 16)
    assert (grid[:, :, :8] == grid[:1, :, :8]).all() and (grid[:, :, 8:] == grid[:, :1, 8:]).all() and learned.readout()["a"] == (9, 0, pytest.approx(grid[1, 1, 0], rel=1e-7))
    assert learned.picked("grid") == ["6,8"]
    learned.pick("grid", "4,12")
    wide = array(server, learned.address()["a"], "encoding", dtype="f32")
    assert learned.picked("grid") == ["4,12"] and learned.address()["a"]["grid"] == [4, 12] and (wide[:36, :8] == wide[12:, :8]).all() and (wide != values).any()
    learned.heat().check(wide)
    learned.reset()
    learned.heat().check(values)


def turned(vector, angles):
    """Neighbouring channels turned, in float64."""
    pairs = vector.reshape(-1, 2) @ [1, 1j] * np.exp(1j * angles)
    return np.stack([pairs.real, pairs.imag], -1).ravel()


def test_rotation_its_distance_and_three_axes(open_page, server):
    page = open_page(STORY)
    turn = Figure(page, "rope-turn")
    drawn = {"shape": [1, 16], "seed": 186, "std": 1}
    plain = {"scheme": "rope", "head_dim": 16, "q": drawn, "k": drawn, "q_positions": [0], "k_positions": [0]}
    q, k = (array(server, plain, name, "/rotate")[0] for name in "qk")
    frequencies = 10000.0 ** (-2 * np.arange(8) / 16)
    product = {(m, n): turned(q, m * frequencies) @ turned(k, n * frequencies) for m, n in ((9, 6), (6, 9))}

    def stated(what):
        return [turn.all(f'[data-config="{slot}"] .products data[data-what="{what}"]', "Number(e.value)")[0] for slot in "ab"]

    shown = stated("product")
    assert shown == [pytest.approx(product[6, 9], rel=1e-6), pytest.approx(product[9, 6], rel=1e-6)] and abs(shown[0] - shown[1]) > 1
    for name, vector in (("q-squared", q), ("k-squared", k)):
        assert stated(name) == [pytest.approx(vector @ vector, rel=1e-6)] * 2
    turn.slide("m", 20).slide("n", 17)
    assert stated("product")[1] == pytest.approx(product[9, 6], rel=1e-5) and turn.address()["m"] == "20"
    turn.reset()
    assert turn.address()["m"] == "9"

    distance = Figure(page, "rope-distance")
    cosines = np.cos(np.arange(128)[:, None] * 10000.0 ** (-2 * np.arange(64) / 128)).sum(1)
    assert distance.numbers("similarity")[0] == pytest.approx(cosines[12], rel=1e-5)
    assert not distance.lines().missing("a:similarity", list(enumerate(cosines)), reach=2)
    gram = np.array(distance.readout()["a"][2])
    assert gram == pytest.approx(cosines[12], rel=1e-9)
    distance.pick("base", "500000")
    slower = np.cos(np.arange(128)[:, None] * 500000.0 ** (-2 * np.arange(64) / 128)).sum(1)
    assert distance.numbers("similarity")[0] == pytest.approx(slower[12], rel=1e-5) and (slower[1:] > cosines[1:]).all()
    distance.reset()
    assert distance.picked("base") == ["10000"]

    axes = Figure(page, "m-rope")
    # By the rules: text counts on all axes; an image of 4 x 4 keeps its time; frames a second apart are two numbers apart.
    patches = lambda start, side: [(start + i // side, start + i % side) for i in range(side * side)]  # noqa: E731
    ids = [(i, i, i) for i in range(4)] + [(4, h, w) for h, w in patches(4, 4)]
    ids += [(8 + 2 * frame, h, w) for frame in range(3) for h, w in patches(8, 2)] + [(13 + i,) * 3 for i in range(4)]
    check_columns(axes, ["temporal", "height", "width"], np.array(ids), apart=0.5)
    assert axes.numbers("rope_delta")[0] == ids[-1][0] + 1 - len(ids) == -19
    axes.pick("position_style", "qwen2_5_omni")
    answer = json.loads(post(server, "/encode", **axes.address()["a"], outputs=["positions"]))["tensors"]["positions"]["data"]
    assert sorted(set(answer[0][20:32])) == [8, 33, 58]  # 25 numbers a second
    assert axes.numbers("rope_delta")[0] == 27
    axes.reset()
    assert axes.numbers("rope_delta")[0] == -19


def test_what_a_figure_opens_shows_the_same(open_page):
    page = open_page(STORY)
    table = Figure(page, "five-by-five")
    table.slide("base", 100)
    before = [table.heat(slot).blocks().tolist() for slot in "ab"]
    page.click("#fig-five-by-five [data-action=open]")
    page.settle()
    until(lambda: page.run("return document.querySelector('article') === null"), what="the view")
    page.settle()
    assert [Heat(page, slot).blocks().tolist() for slot in "ab"] == before
    assert "0.84147096" in page.text('figure[data-config="b"] [data-readout]')


FIGURE_IDS = "return [...document.querySelectorAll('article[data-story=introduction] .story-figure')].map((f) => f.id)"


@pytest.mark.fresh  # hidden parts of other views would be read too
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_all_is_said(open_page, lang):
    page = open_page(f"{STORY}&lang={lang}&theme=dark")
    assert page.run(FIGURE_IDS) == [f"fig-{name}" for name in FIGURES] and page.run("return document.querySelectorAll('nav[data-toc] a').length") == 9
    assert "introduction." not in page.text("main") and "\\" not in page.text("main")
    texts = story_texts((ROOT / f"server/page/stories/introduction.{lang}.md").read_text())
    shown = page.run("return document.querySelectorAll('.story-text > section > h2, .story-prose > p, .story-figure > figcaption > p').length")
    assert len(texts) == shown + 3  # names of controls: none is left over


# ---- numbers of the text -----------------------------------------------------------------------------------------------------------


def test_numbers_of_the_text():
    assert [round(value, 3) for value in (math.sin(1), math.cos(1), 0.001 ** 2 + 0.999 ** 2)] == [0.841, 0.540, 0.998]
    divisor = 10000 ** (48 / 50)
    assert round(divisor) == 6918 and round(2 * math.pi * divisor) == 43469 and round(20000 * math.pi) == 62832
    assert [round(2 * math.pi * 10000 ** (2 / dim), 1) for dim in (50, 20)] == [9.1, 15.8]
    assert np.ptp(sines(range(20), 50)[:, 30:], axis=0).max() < 0.08 < np.ptp(sines(range(20), 50)[:, 28])
    rows_a_pixel = 40000 / 670
    shorter = [col for col in range(50) if 2 * math.pi * 10000 ** (2 * (col // 2) / 50) < rows_a_pixel]
    assert round(rows_a_pixel) == 60 and shorter == list(range(14))


def test_a_fixed_distance_fixes_length_and_product_but_no_vector():
    table = sines(range(200), 50)
    steps = table[7:] - table[:-7]
    products = (table[7:] * table[:-7]).sum(1)
    assert np.ptp(np.linalg.norm(steps, axis=1)) < 1e-12 and np.ptp(products) < 1e-12 and np.ptp(steps, axis=0).max() > 1
    odd = sines(range(200), 5)
    assert np.ptp((odd[7:] * odd[:-7]).sum(1)) > 1e-3  # a sine without its cosine
