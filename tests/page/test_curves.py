"""Curves, scaling and distance under a hand; where their lines stand are rows of cases/views.jsonl."""
import base64

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import fragment, until
from lines import Lines, column, rgb
from probes import PIXELS, ask

SINUSOIDAL = {"scheme": "sinusoidal", "dim": 64, "len": 24}
LLAMA = {"preset": "llama-3.1", "len": 128}
CHART = 'figure[data-config="a"] canvas[data-lines]'


def drag(page, lines, start, end):
    """From one pixel of the bitmap to another."""
    ratio = page.run("return devicePixelRatio")
    middle = page.run("const r = arguments[0].getBoundingClientRect(); return [r.width / 2, r.height / 2]", lines.canvas)
    by = [round((b - a) / ratio) for a, b in zip(start, end)]
    chain = ActionChains(page.driver).move_to_element_with_offset(lines.canvas, start[0] / ratio - middle[0], start[1] / ratio - middle[1])
    chain.click_and_hold().move_by_offset(*by).release().perform()
    page.settle()


@pytest.mark.parametrize("config, col", [(SINUSOIDAL, 0), ({**SINUSOIDAL, "base": 50, "layout": "half"}, 5), ({**SINUSOIDAL, "offset": 1000}, 20)], ids=["first", "half", "offset"])
def test_a_curve_is_nowhere_else(visit, config, col):
    """In each column of pixels its colour stands between the values about it, but within the size of a dot or a mark."""
    page = visit(fragment("curves", config, cols=col))
    lines, slack, first = Lines(page), 5, config.get("offset", 0)
    width, height, text = page.run(PIXELS, lines.canvas)
    bitmap = np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)[..., :3].astype(int)
    coloured = np.abs(bitmap - rgb(lines.legend[f"a:{col}"][0])).sum(-1) <= 24
    fine = np.linspace(max(lines.x_range[0], first), min(lines.x_range[1], first + 23), 2 * int(lines.box[2]))
    places = np.array([lines.pixel(x, y) for x, y in column(page, config, "encoding", col, fine)])
    for at in range(int(places[:, 0].min()) + 3, int(places[:, 0].max()) - 2):
        about, rows = places[np.abs(places[:, 0] - at - 0.5) <= slack + 1, 1], np.flatnonzero(coloured[:, at])
        assert len(rows) and rows.min() >= about.min() - slack - 1 and rows.max() <= about.max() + slack + 1, at


def test_columns_are_added_and_removed(open_page):
    page = open_page(fragment("curves", SINUSOIDAL, cols="3,8"))
    page.run("document.querySelectorAll('.chips > .icon')[1].click()")
    until(lambda: page.address().get("cols") == "3,8,4", what="another column")
    page.click(".chips > .icon")
    until(lambda: page.address().get("cols") == "3,8", what="one column less")
    page.find("body").send_keys(Keys.CONTROL, "z")
    until(lambda: page.address().get("cols") == "3,8,4", what="undo")


def test_dragging_pans(open_page):
    page = open_page(fragment("curves", {**SINUSOIDAL, "len": 5000}, cols=3, zoom="32x1", win="100,0"))
    ActionChains(page.driver).click_and_hold(page.find(CHART)).move_by_offset(-160, 0).release().perform()
    page.settle()
    lines = Lines(page)
    first, last = lines.x_range
    assert abs(first - 105) <= 1 and page.address()["win"][:3] in ("105", "106")
    points = column(page, {**SINUSOIDAL, "len": 5000}, "encoding", 3, np.linspace(first, last, 300))
    assert lines.missing("a:3", points) == []


def test_keys_zoom_and_values_are_said(open_page):
    page = open_page(fragment("curves", SINUSOIDAL, cols="0,8", cur="4,0"))
    page.press(CHART, Keys.ARROW_RIGHT)
    until(lambda: "5" in (page.text("[data-live]") or ""), what="the value said")
    before = Lines(page).x_range
    page.press(CHART, "+")
    after = Lines(page).x_range
    assert after[1] - after[0] < before[1] - before[0]
    page.press(CHART, "0")
    assert Lines(page).x_range == before


def test_a_page_is_a_window_of_the_curve(open_page):
    page = open_page(fragment("curves", {**SINUSOIDAL, "len": 4096}, cols="0", zoom="4x1", cur="3,0"))
    width = np.ptp(Lines(page).x_range)
    assert 0 < width < 2000
    for key, first in ((Keys.PAGE_DOWN, width), (Keys.PAGE_UP, 0)):
        page.press(CHART, key)
        assert Lines(page).x_range == pytest.approx([first, first + width], abs=1)
        assert int(page.address()["cur"].split(",")[0]) == pytest.approx(3 + first, abs=1)


def test_each_rule_has_its_wavelengths_and_numbers(visit):
    page = visit(fragment("scaling", LLAMA, train=8192))
    lines, long = Lines(page), {"original_max_position_embeddings": 8192}
    assert lines.scales == ("linear", "log")
    rules = {"llama3": {**long, "low_freq_factor": 1, "high_freq_factor": 4}, "linear": {}, "ntk": {}, "yarn": long, "dynamic": {"max_position_embeddings": 8192}, "default": None}
    waves = {}
    for rule, fields in rules.items():
        scaling = {"type": rule} if fields is None else {"type": rule, "factor": 8, **fields}
        answer = ask(page, "/analyze", preset="llama-3.1", len=1, metrics=["wavelengths"], scaling=scaling, **({} if fields is None else {"offset": 65535}))
        waves[f"a:{rule}"] = list(enumerate(map(float, answer["tensors"]["wavelength.0"]["data"])))
    lines.check(waves)
    result = ask(page, "/analyze", preset="llama-3.1", len=1, metrics=["wavelengths"])["results"][0]["wavelengths"]
    row = page.run("return [...document.querySelectorAll('tr[data-type=llama3] data')].map(e => Number(e.value))")
    assert row == [result["value"], result["kept"], result["longest"], result["attention_factor"]]


def test_a_length_is_dragged_and_restored(open_page):
    page = open_page(fragment("scaling", LLAMA))
    lines = Lines(page)
    x, y = lines.pixel(lines.x_range[1], 8192)
    drag(page, lines, (x - 2, y), (x - 2, y + 20))
    until(lambda: "train" in page.address(), what="the training length in the address")
    trained = page.address()["train"]
    assert 1000 < int(trained) < 8192 and page.find("[data-field=train]").get_property("value") == trained
    page.find("body").send_keys(Keys.CONTROL, "z")
    until(lambda: "train" not in page.address(), what="undo")


def test_a_dragged_length_asks_once_a_picture(open_page):
    page = open_page(fragment("scaling", LLAMA))
    page.run("performance.clearResourceTimings()")
    for length in range(9000, 9400, 100):
        page.put("[data-field=train]", length)
    assert page.run("return performance.getEntriesByType('resource').filter(e => e.name.includes('/analyze')).length") == 4


def test_the_distance_is_dragged_by_its_handle(open_page):
    page = open_page(fragment("distance", SINUSOIDAL, cur="5,0"))
    values = ask(page, "/analyze", **SINUSOIDAL, metrics=["similarity"], outputs=["similarity"])["tensors"]["similarity.0"]["data"]
    lines = Lines(page)
    (x, y), (to, _) = lines.pixel(5, values[5]), lines.pixel(15, values[5])
    drag(page, lines, (x, y), (to, y))
    until(lambda: page.address().get("cur") == "15,0", what="the handle at 15")
    until(lambda: page.data("similarity")[0] == values[15], what="the product at 15")


def test_both_lengths_of_extrapolation_can_be_dragged(open_page):
    page = open_page(fragment("extrapolate", {"scheme": "rope", "head_dim": 32, "len": 64}, train=64, eval=256))
    for key, length, other in (("eval", 256, 1500), ("train", 64, 30)):
        lines = Lines(page)
        drag(page, lines, lines.pixel(length, 0.5), lines.pixel(other, 0.5))
        found = int(page.address()[key])
        assert abs(found - other) < 0.05 * other and page.data(f"{key}_len")[0] == found
        assert page.attribute(f"[data-field={key}]", "type") == "number" and int(page.find(f"[data-field={key}]").get_property("value")) == found


def test_no_two_rules_of_two_models_look_alike(visit):
    """The rule of a configuration has its colour in both charts, and no other rule has it."""
    page = visit(fragment("scaling", {"preset": "llama-3.1", "len": 64}, {"preset": "qwen2.5", "len": 64}, lang="en"))
    charts = [Lines(page, slot).legend for slot in "ab"]
    assert len(charts[0]) > 5 and charts[0]["a:llama3"][0] == charts[1]["a:llama3"][0] != charts[0]["b:default"][0]
    for legend in charts:
        colors = [color for color, _ in legend.values()]
        assert len(set(colors)) == len(colors), legend
