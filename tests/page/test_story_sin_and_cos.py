"""The story `sin-and-cos`: what its figures show and what its sentences state, against NumPy in float64."""
import json
import math

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys

from figures import Figure
from probes import post

STORY = "sin-and-cos"


# ---- the encoding, independently -----------------------------------------------------------------------------------------


def frequencies(dim=64, base=10000.0):
    return base ** (-2 * np.arange(dim // 2) / dim)


def table(cosines=None, dim=64, rows=64, base=10000.0):
    """Sines, then cosines, of these frequencies."""
    p = np.arange(rows)[:, None]
    omega = frequencies(dim, base)
    return np.hstack([np.sin(p * omega), np.cos(p * (omega if cosines is None else cosines))])


def gram(rows):
    return rows @ rows.T


def diagonals(products):
    return [np.diag(products, k) for k in range(len(products))]


def means(products):
    return np.array([diagonal.mean() for diagonal in diagonals(products)])


def spread(products):
    return max(np.ptp(diagonal) for diagonal in diagonals(products))


# ---- the page ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def story(open_page):
    return open_page(f"view=story&story={STORY}&lang=en")


def points(y):
    return list(enumerate(map(float, y)))


def test_wavelengths_and_the_sum_of_cosines(story):
    figure = Figure(story, "wavelengths")
    wavelengths = 2 * math.pi / frequencies()
    drawn = figure.lines()
    assert drawn.missing("a:default", points(wavelengths)[1:]) == []  # the first lies under the cursor
    assert figure.numbers("longest") == [pytest.approx(wavelengths[-1])]
    assert figure.numbers("value") == [np.mean(wavelengths <= 512)] == [0.5]
    figure.slide("base", 100)
    assert figure.lines().missing("a:default", points(2 * math.pi / frequencies(base=100.0))[1:]) == []
    figure.reset()
    assert figure.lines().missing("a:default", points(wavelengths)[1:]) == []

    figure = Figure(story, "cosine-sum")
    products = gram(table())
    assert spread(products) < 1e-12
    assert np.allclose(means(products), np.cos(np.arange(64)[:, None] * frequencies()).sum(1))
    assert figure.numbers("similarity") == [pytest.approx(means(products)[53])]
    assert figure.numbers("distance") == [int(means(products).argmin())] == [53]
    assert figure.lines().missing("a:similarity", points(means(products))) == []
    figure.slide("dim", 2)
    assert figure.lines().missing("a:similarity", points(np.cos(np.arange(64)))) == []
    assert figure.config() == {"scheme": "sinusoidal", "dim": 2, "len": 64}
    figure.reset()
    assert figure.numbers("similarity") == [pytest.approx(means(products)[53])]


def test_sines_alone_and_mismatched_cosines(story):
    figure = Figure(story, "sin-only")
    sines, cosines = gram(table()[:, :32]), gram(table()[:, 32:])
    assert figure.numbers("spread") == [pytest.approx(spread(sines))] and spread(sines) == pytest.approx(spread(cosines))
    assert figure.lines().missing("a:similarity", points(means(sines))[1:]) == []
    assert figure.all("[data-readout] output", "Number(e.dataset.value)") == [pytest.approx(sines[48, 48])]
    figure.pick("pairing", "paired")
    assert figure.numbers("spread")[0] < 1e-12
    figure.pick("pairing", "cos")
    assert figure.numbers("spread") == [pytest.approx(spread(cosines))]
    figure.reset()
    assert figure.numbers("spread") == [pytest.approx(spread(sines))]

    figure = Figure(story, "mismatched")
    other = gram(table(frequencies(base=500.0)))
    assert figure.numbers("spread") == [pytest.approx(spread(other))] and figure.numbers("spread", "b")[0] < 1e-12
    assert figure.lines().missing("a:similarity", points(means(other))) == []
    figure.slide("other_base", 10000)
    assert figure.numbers("spread")[0] < 1e-12 and figure.numbers("spread", "b")[0] < 1e-12
    figure.reset()
    assert figure.numbers("spread") == [pytest.approx(spread(other))]


def test_two_layouts_have_one_product(story):
    figure = Figure(story, "layouts")
    row = table(dim=32)[8]
    alternating = np.stack([row[:16], row[16:]], 1).ravel()
    figure.press(".story-place canvas[data-heat]")
    read = figure.all("[data-readout] output", "[e.dataset.config, Number(e.dataset.row), Number(e.dataset.col), Number(e.dataset.value)]")
    assert {slot for slot, *_ in read} == {"a", "b"}
    for slot, at, col, value in read:
        assert at == 8 and value == pytest.approx((alternating if slot == "a" else row)[col], abs=1e-6)
    figure.slide("base", 200)
    assert figure.config()["base"] == figure.config("b")["base"] == 200
    figure.reset()

    figure = Figure(story, "layouts-products")
    for slot in "ab":
        assert figure.numbers("similarity", slot) == [pytest.approx(means(gram(table()))[8])] and figure.numbers("spread", slot)[0] < 1e-12
    figure.slide("dim", 16)
    for slot in "ab":
        assert figure.numbers("similarity", slot) == [pytest.approx(means(gram(table(dim=16)))[8])]
    figure.reset()


def test_the_flipped_table_is_what_it_is_said_to_be(story):
    figure = Figure(story, "flipped")
    printed = table(frequencies(8)[::-1], 8, 24)
    given = np.array(figure.config()["table"])
    assert np.abs(given - printed).max() <= 0.500001e-5 and spread(gram(printed)) < 1e-12
    assert figure.numbers("spread") == [pytest.approx(spread(gram(given)), rel=1e-3)]  # tables are stored as f32
    assert figure.numbers("similarity", "a") == [pytest.approx(figure.numbers("similarity", "b")[0], abs=5e-5)]
    assert figure.numbers("similarity", "b") == [pytest.approx(means(gram(printed))[8])]
    line = story.find("#fig-flipped figure[data-config=a] canvas[data-lines]")
    line.send_keys(Keys.ARROW_RIGHT)
    story.settle()
    assert figure.numbers("similarity", "b") == [pytest.approx(means(gram(printed))[9])]
    figure.reset()
    story.hash(figure.link().split("#")[1])
    story.settle()
    assert [story.state(slot) for slot in "ab"] == ["ready", "ready"] and story.attribute("figure", "data-figure") == "distance"


def test_numbers_of_the_text(server):
    sines, paired = gram(table()[:, :32]), gram(table())
    assert (sines[0] == 0).all() and np.diag(sines).argmax() == 48 and round(sines[48, 48], 1) == 10.6
    assert (round(paired[0, 0]), round(means(paired).min(), 2)) == (32, 13.37)
    mismatched = gram(table(frequencies(base=500.0)))
    assert round(np.ptp(np.diag(mismatched)), 1) == 6.1 == round(spread(mismatched), 1)
    omega = frequencies()
    for harmless in (omega[::-1], np.roll(omega, 5)):
        assert spread(gram(table(harmless))) < 1e-12
    assert round(spread(gram(table(np.repeat(omega[:16], 2)))), 1) == 9.6
    assert round(spread(gram(table(omega / omega[0] * omega[1]))), 1) == 1.0
    p = np.arange(200)[:, None]
    even = np.linspace(0.1, 3, 32)  # distinct frequencies without geometric growth
    assert np.linalg.matrix_rank(np.hstack([np.sin(p * even), np.cos(p * even)])) == 64
    same = np.full(32, 0.5)
    assert np.linalg.matrix_rank(np.hstack([np.sin(p * same), np.cos(p * same)])) == 2
    # cosine and sine of different frequencies: a turn changes lengths
    q = json.loads(post(server, "/rotate", scheme="rope", head_dim=8, layout="vjepa2", offset=3, q=[[1, 0, 0, 0, 0, 0, 0, 0]], dtype="f64"))["tensors"]["q"]["data"]
    assert abs(np.linalg.norm(np.array(q, float)) - 1) > 0.01


def test_links_of_the_text_lead_somewhere(story):
    links = story.run("return [...document.querySelectorAll('.story-prose > p a')].map((a) => a.getAttribute('href'))")
    assert links == ["#view=rotate", "#view=story&story=designing", "#view=story&story=absolute-relative"]
    story.hash(links[0][1:])
    story.settle()
    assert story.state() == "ready" and not story.all('[data-notice="state"]')
