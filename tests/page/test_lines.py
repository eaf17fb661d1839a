"""Lines: curves, scaling and distance, pixel by pixel against values asked for by the test itself."""
import json

import numpy as np
import pytest

from browser import fragment, until
from probes import Lines, array, attributes, post

pytestmark = pytest.mark.slow  # every pixel of a curve; test_curves.py looks for lines at some values each time

SINUSOIDAL = {"scheme": "sinusoidal", "dim": 64, "len": 48}


def at(server, request, output, positions):
    """[positions, columns] at any real positions."""
    asked = {key: value for key, value in request.items() if key not in ("len", "offset")}
    return array(server, {**asked, "positions": list(map(float, positions))}, output)


# ---- Curves ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("request_, column", [(SINUSOIDAL, 0), (SINUSOIDAL, 11), (SINUSOIDAL, 63), ({**SINUSOIDAL, "base": 50, "layout": "half"}, 5), ({"scheme": "rope", "head_dim": 32, "len": 48}, 3),
                                              ({**SINUSOIDAL, "offset": 1000}, 20)], ids=lambda value: value["scheme"] if isinstance(value, dict) else None)
def test_a_curve_runs_through_its_values_and_nowhere_else(open_page, server, request_, column):
    page = open_page(fragment("curves", request_, cols=column))
    lines = Lines(page)
    assert list(lines.series) == [f"a:{column}"] and lines.x_scale == lines.y_scale == "linear"
    output = "cos" if request_["scheme"] == "rope" else "encoding"
    first, last = int(np.ceil(lines.x_min)), int(np.floor(lines.x_max))
    assert first <= request_.get("offset", 0) and last >= request_.get("offset", 0) + 47
    fine = np.linspace(max(lines.x_min, request_.get("offset", 0)), min(lines.x_max, request_.get("offset", 0) + 47), 4 * lines.w)
    values = at(server, request_, output, fine)[:, column]
    lines.check_line(f"a:{column}", fine, values)
    whole = np.arange(request_.get("offset", 0), request_.get("offset", 0) + 48)
    lines.check_dots(f"a:{column}", whole, at(server, request_, output, whole)[:, column])


def test_each_series_has_its_colour_and_its_dash(open_page, server):
    page = open_page(fragment("curves", SINUSOIDAL, cols="0,8,16,24"))
    lines = Lines(page)
    assert list(lines.series) == ["a:0", "a:8", "a:16", "a:24"] and len(set(lines.series.values())) == 4
    values = at(server, SINUSOIDAL, "encoding", np.arange(48))
    for column in (0, 8, 16, 24):
        lines.check_dots(f"a:{column}", np.arange(1, 47), values[1:47, column], others=[values[1:47, other] for other in (0, 8, 16, 24) if other != column])


def test_configurations_stand_side_by_side_on_one_scale(open_page, server):
    requests = [SINUSOIDAL, {**SINUSOIDAL, "base": 100}]
    page = open_page(fragment("curves", *requests, cols="6"))
    pictures = [Lines(page, slot) for slot in "ab"]
    assert [(p.y_min, p.y_max, p.x_min, p.x_max) for p in pictures][0] == [(p.y_min, p.y_max, p.x_min, p.x_max) for p in pictures][1]
    for picture, slot, request in zip(pictures, "ab", requests):
        assert list(picture.series) == [f"{slot}:6"]
        picture.check_dots(f"{slot}:6", np.arange(48), at(server, request, "encoding", np.arange(48))[:, 6])


def test_a_difference_of_curves(open_page, server):
    a, b = SINUSOIDAL, {**SINUSOIDAL, "base": 9000}
    page = open_page(fragment("curves", a, b, on="b-a", cols="20"))
    lines = Lines(page, "b-a")
    where = np.arange(48)
    (name,) = lines.series
    lines.check_dots(name, where, (at(server, b, "encoding", where) - at(server, a, "encoding", where))[:, 20])


def test_schemes_without_real_positions_have_dots_alone(open_page, server):
    request = {"scheme": "binary", "bits": 6, "len": 40}
    page = open_page(fragment("curves", request, cols="2"))
    lines = Lines(page)
    lines.check_dots("a:2", np.arange(40), array(server, request, "encoding")[:, 2])


def test_the_figure_keeps_its_promises(open_page, server):
    page = open_page(fragment("curves", SINUSOIDAL, cols="3"))
    canvas = attributes(page, Lines(page).canvas)
    assert canvas["tabindex"] == "0" and canvas["role"] == "application" and "sinusoidal" in canvas["aria-label"] + page.text("figure figcaption")
    assert page.text("figure figcaption[data-caption]").strip() and page.state() == "ready"
    page.click("figure details[data-table] > summary")
    until(lambda: page.all("figure details[data-table] td[data-row][data-col]"), what="the data table")
    page.settle()
    values = array(server, SINUSOIDAL, "encoding", dtype="f32")
    for row, col, text in page.run("return [...document.querySelectorAll('figure details[data-table] td[data-row][data-col]')].map((td) => [td.dataset.row, td.dataset.col, td.textContent.trim()])"):
        assert float(text.replace("\u2212", "-")) == pytest.approx(values[int(row), int(col)], rel=1e-6), (row, col, text)  # as short as in captions


# ---- Numbers in captions and tables ------------------------------------------------------------------------------------------------------


def analysis(server, request, **asked):
    return json.loads(post(server, "/analyze", **request, **asked))


def data(page, what):
    return [float(value) for value in page.run("return [...document.querySelectorAll(`figure data[data-what=\"${arguments[0]}\"]`)].map((d) => d.getAttribute('value'))", what)]


@pytest.mark.parametrize("scaling", [{"type": "default"}, {"type": "linear", "factor": 8}, {"type": "yarn", "factor": 8, "original_max_position_embeddings": 8192}])
def test_wavelengths_under_a_scaling(open_page, server, scaling):
    request = {"scheme": "rope", "head_dim": 64, "base": 500000, "len": 64, "scaling": scaling}
    page = open_page(fragment("scaling", request, train=8192, eval=65536))
    lines = Lines(page)
    assert (lines.x_scale, lines.y_scale) == ("linear", "log") and f"a:{scaling['type']}" in lines.series
    answer = analysis(server, request, metrics=["wavelengths"], train_len=8192, outputs=["wavelength"], digits=17)
    tensors = answer["tensors"] if "tensors" in answer else answer["entries"][0]["tensors"]
    wavelength = np.array(next(iter(tensors.values()))["data"], float)
    lines.check_dots(f"a:{scaling['type']}", np.arange(32), wavelength, others=None, radius=2, least=0.9)
    assert data(page, "longest")[0] == pytest.approx(wavelength.max(), rel=1e-12) and data(page, "train_len")[0] == 8192


def test_products_against_distance(open_page, server):
    request = {"scheme": "sinusoidal", "dim": 64, "len": 50}
    page = open_page(fragment("distance", request))
    lines = Lines(page)
    rows = array(server, request, "encoding")
    products = np.array([np.mean([rows[j] @ rows[j + d] for j in range(50 - d)]) for d in range(50)])  # the test's own
    lines.check_dots("a:similarity", np.arange(50), products, radius=2)
    assert data(page, "minimum")[0] == pytest.approx(products.min(), rel=1e-12) and data(page, "similarity")[0] == pytest.approx(32)
    gram = next(heat for heat in page.all('figure[data-figure="distance"] canvas[data-heat]'))
    assert attributes(page, gram)["data-rows"] == attributes(page, gram)["data-cols"] == "50"


@pytest.mark.parametrize("lang, name", [("en", "products of rows"), ("zh", "行的点积")])
def test_the_matrix_of_products_has_a_name_for_readers(visit, lang, name):
    page = visit(fragment("distance", {"scheme": "sinusoidal", "dim": 8, "len": 9}, lang=lang))
    figure = 'figure:has(canvas[data-heat])'
    assert page.text(f"{figure} .colorbar-title") == name and name in page.attribute(f"{figure} canvas[data-heat]", "aria-label")
    page.run("for (const part of document.querySelectorAll('main details')) part.open = true")
    page.settle()
    assert "gram" not in page.run("return document.querySelector(arguments[0]).innerText", figure)
    assert "9 × 9" in page.text(f"{figure} figcaption")


def test_dragging_a_length_changes_what_is_said(open_page):
    page = open_page("view=scaling")
    before = page.text("figure figcaption")
    page.run("const s = document.querySelector('[data-slider=train]'); s.value = Number(s.min) + (Number(s.max) - Number(s.min)) * 0.3; s.dispatchEvent(new Event('input', { bubbles: true })); s.dispatchEvent(new Event('change', { bubbles: true }))")
    until(lambda: page.text("figure figcaption") != before, what="another caption")
    page.settle()
    assert "train=" in page.run("return location.hash") and page.state() == "ready"
