"""The view `trajectory`: where its path stands, what its caption says and what can be turned, against values asked for by the test."""
import json
import math

import pytest
from selenium.webdriver.common.action_chains import ActionChains

from browser import fragment, until
from lines import FIND
from probes import array, post

PLAIN = {"scheme": "sinusoidal", "dim": 16, "len": 24}
PATH = 'figure[data-figure="trajectory"][data-config="{}"]'


def canvas(page, slot="a"):
    return page.run("return {...document.querySelector(arguments[0] + ' canvas[data-path]').dataset}", PATH.format(slot))


def missing(page, values, slot="a"):
    """Rows of three values at whose pixel the path's colour is not."""
    data = canvas(page, slot)
    x, y = ([float(part) for part in data[axis].split(",")] for axis in "xy")
    color = [int(data["color"][at:at + 2], 16) for at in (1, 3, 5)]
    places = [[x[0] + sum(a * b for a, b in zip(x[1:], row)), y[0] + sum(a * b for a, b in zip(y[1:], row)), color] for row in values]
    found = page.run(FIND.replace("canvas[data-lines]", "canvas[data-path]"), PATH.format(slot), places, 1)
    return [row for row, there in zip(range(len(values)), found) if not there]


def numbers(page, what, slot="a"):
    return [float(value) for value in page.run("return [...document.querySelectorAll(arguments[0])].map((d) => d.value)", f'{PATH.format(slot)} figcaption data[data-what="{what}"]')]


def test_the_path_runs_through_the_values_that_the_service_gives(open_page, server):
    page = open_page(fragment("trajectory", PLAIN, cols="2,5,7", spin=70, cur="9,0"))
    values = array(server, PLAIN, "encoding")[:, [2, 5, 7]]
    assert page.state() == "ready" and canvas(page)["cols"] == "2,5,7" and canvas(page)["spin"] == "70"
    hidden = missing(page, values)
    assert len(hidden) <= 2, hidden  # under the number of the cursor or the name of a column
    assert numbers(page, "value") == pytest.approx(list(values[9]), abs=1e-7)
    step = json.loads(post(server, "/analyze", **PLAIN, metrics=["step"], outputs=[], digits=17))["results"][0]["step"]
    assert (numbers(page, "mean"), numbers(page, "step")) == ([pytest.approx(step["mean"], rel=1e-12)], [pytest.approx(step["value"], rel=1e-12)])
    page.click(f"{PATH.format('a')} details[data-table] > summary")
    until(lambda: page.all(f"{PATH.format('a')} td[data-row]"), what="the data table")
    cells = page.run("return [...document.querySelectorAll('figure td[data-row]')].map((td) => [td.dataset.row, td.dataset.col, td.textContent])")
    columns = {"2": 0, "5": 1, "7": 2}
    assert len(cells) == 72
    for row, col, text in cells:
        assert float(text.replace("\u2212", "-")) == pytest.approx(values[int(row)][columns[col]], abs=1e-5)


def test_the_camera_turns_by_slider_drag_and_keys_and_is_in_the_address(open_page):
    page = open_page("view=trajectory")
    assert page.state() == "ready" and canvas(page)["spin"] == "30"
    page.run("const s = document.querySelector('[data-slider=spin]'); s.value = 200; s.dispatchEvent(new Event('input', { bubbles: true }))")
    page.settle()
    assert canvas(page)["spin"] == "200" and "spin=200" in page.run("return location.hash")
    stage = page.find("canvas[data-path]")
    ActionChains(page.driver).click_and_hold(stage).move_by_offset(40, 0).release().perform()
    page.settle()
    assert canvas(page)["spin"] == "220"
    page.run("arguments[0].focus()", stage)
    stage.send_keys("]]]")
    page.settle()
    assert canvas(page)["at"] == "3" and "cur=3%2C0" in page.run("return location.hash")
    data = canvas(page)
    x, y = ([float(part) for part in data[axis].split(",")] for axis in "xy")
    start = [px[0] + px[2] for px in (x, y)]  # of the values 0, 1, 0 at position 0
    size = page.run("return [arguments[0].clientWidth / 2, arguments[0].clientHeight / 2]", stage)
    ActionChains(page.driver).move_to_element_with_offset(stage, *(round(at - half) for at, half in zip(start, size))).click().perform()
    page.settle()
    assert canvas(page)["at"] == "0" and canvas(page)["spin"] == "220"
    page.run("const s = document.querySelector('[data-slider=z]'); s.value = 6; s.dispatchEvent(new Event('input', { bubbles: true }))")
    page.settle()
    assert canvas(page)["cols"] == "0,1,6"


def test_play_turns_until_it_is_stopped_or_less_motion_is_asked_for(open_page, driver):
    page = open_page("view=trajectory")
    before = float(canvas(page)["spin"])
    page.click("[data-action=play]")
    until(lambda: float(canvas(page)["spin"]) > before + 3, what="a turn")
    page.click("[data-action=stop]")
    page.settle()
    assert math.isfinite(float(canvas(page)["spin"]))
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
    try:
        until(lambda: page.run("return document.querySelector('[data-action=play]').disabled"), what="a player that is off")
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_several_configurations_their_difference_and_those_that_have_no_path(open_page, server):
    other = {**PLAIN, "base": 50}
    page = open_page(fragment("trajectory", PLAIN, other, {"scheme": "alibi"}, {"scheme": "rope", "head_dim": 4, "len": 8}, on="b-a", cur="23,0", lang="zh"))
    a, b = (array(server, one, "encoding")[:, :3] for one in (PLAIN, other))
    assert [page.state(slot) for slot in ("a", "b", "c", "d", "b-a")] == ["ready", "ready", "refused", "ready", "ready"]
    assert canvas(page, "d")["cols"] == "0,1,0"  # it has but two
    assert len(missing(page, a)) <= 2 and len(missing(page, b, "b")) <= 2  # under names
    assert {canvas(page, slot)["min"] for slot in "ab"} == {canvas(page)["min"]}
    assert numbers(page, "difference", "b-a")[0] >= abs(b - a).max() - 1e-12 and numbers(page, "value", "b-a") == pytest.approx(list((b - a)[23]), abs=1e-12)
    assert "sinusoidal" in page.notice("refused") and "trajectory." not in page.text("main")
