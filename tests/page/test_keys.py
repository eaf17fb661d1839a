"""Heat maps under the hand: every key, wheel, mouse and fingers, the data table, the difference of two."""
import urllib.parse

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.keys import Keys

from browser import fragment, until
from probes import Heat, array, json_text, readout, shape_of

SINUSOIDAL = {"scheme": "sinusoidal", "dim": 64, "len": 128}
MINUS = "\u2212"  # as readers have it; JSON has a hyphen
LARGE = {"scheme": "rope", "head_dim": 512, "len": 4000}
CANVAS = 'figure[data-config="a"] canvas[data-heat]'


def keys_of(page):
    """The address, parsed; keys that stand at their default are not in it."""
    page.settle()
    hash_ = page.run("return location.hash").lstrip("#")
    return {key: urllib.parse.unquote(value) for key, value in (part.split("=", 1) for part in hash_.split("&"))}


def cursor(page):
    return tuple(int(index) for index in keys_of(page).get("cur", "0,0").split(","))


def press(page, *keys):
    page.find(CANVAS).send_keys(*keys)
    page.settle()
    return page


def chord(page, modifier, key):
    page.run("arguments[0].focus()", page.find(CANVAS))
    ActionChains(page.driver).key_down(modifier).send_keys(key).key_up(modifier).perform()
    page.settle()


def pixel_of(heat, cell):
    """The middle of a drawn cell, in pixels of the canvas."""
    row, col = cell
    return (heat.y0 + (row - heat.row0) // heat.row_step * heat.row_px + heat.row_px // 2,
            heat.x0 + (col - heat.col0) // heat.col_step * heat.col_px + heat.col_px // 2)


def cell_at(heat, y, x):
    return (heat.row0 + (y - heat.y0) // heat.row_px * heat.row_step, heat.col0 + (x - heat.x0) // heat.col_px * heat.col_step)


def move_to(page, y, x):
    """The mouse over a pixel of the canvas. Selenium counts from the middle of what is in view."""
    page.run("arguments[0].scrollIntoView({ block: 'center' })", page.find(CANVAS))
    box = page.run("const { left, top } = arguments[0].getBoundingClientRect(); return [left, top]", page.find(CANVAS))
    chain = ActionChains(page.driver)
    chain.w3c_actions.pointer_action.move_to_location(round(box[0] + x), round(box[1] + y))
    return chain


# ---- Keys ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key, start, end", [
    (Keys.ARROW_RIGHT, (3, 4), (3, 5)), (Keys.ARROW_LEFT, (3, 4), (3, 3)), (Keys.ARROW_DOWN, (3, 4), (4, 4)), (Keys.ARROW_UP, (3, 4), (2, 4)),
    (Keys.ARROW_LEFT, (3, 0), (3, 0)), (Keys.ARROW_DOWN, (127, 4), (127, 4)), (Keys.HOME, (3, 4), (3, 0)), (Keys.END, (3, 4), (3, 63)),
    ("]", (3, 4), (4, 4)), ("[", (3, 4), (2, 4))])
def test_keys_move_the_cursor(visit, server, key, start, end):
    page = visit(fragment("table", SINUSOIDAL, cur="%d,%d" % start))
    press(page, key)
    assert cursor(page) == end
    assert readout(page)["a"] == (*end, json_text(server, SINUSOIDAL, "encoding", end))


def test_ctrl_goes_to_the_corners_of_the_table(visit):
    page = visit(fragment("table", SINUSOIDAL, cur="3,4"))
    chord(page, Keys.CONTROL, Keys.END)
    assert cursor(page) == (127, 63)
    chord(page, Keys.CONTROL, Keys.HOME)
    assert cursor(page) == (0, 0)


def test_a_page_is_a_window(visit, server):
    page = visit(fragment("table", LARGE, zoom="4x4", cur="5,5"))
    before = Heat(page)
    press(page, Keys.PAGE_DOWN)
    after = Heat(page)
    assert after.row0 == before.row0 + before.rows and cursor(page) == (5 + before.rows, 5)
    after.check_against(server, LARGE, shape_of(server, LARGE, "cos"))
    press(page, Keys.PAGE_UP)
    assert Heat(page).row0 == before.row0 and cursor(page) == (5, 5)


def test_the_window_follows_the_cursor(visit):
    page = visit(fragment("table", LARGE, zoom="8x8", win="100,20", cur="100,20"))
    press(page, Keys.ARROW_UP, Keys.ARROW_LEFT)
    heat = Heat(page)
    assert (heat.row0, heat.col0) == (99, 19) and cursor(page) == (99, 19)


def test_zooming_by_keys_keeps_the_cursor_where_it_is(open_page, server):
    page = open_page(fragment("table", LARGE, cur="2000,100"))
    fit = Heat(page)
    assert fit.row_step > 1
    press(page, "+", "+", "+")
    near = Heat(page)
    assert near.row_step < fit.row_step
    y, x = pixel_of(fit, (2000, 100))
    row, col = cell_at(near, y, x)
    assert abs(row - 2000) <= fit.row_step and abs(col - 100) <= fit.col_step, "it stays under the same pixel"
    near.check_against(server, LARGE, shape_of(server, LARGE, "cos"))
    press(page, "-")
    assert Heat(page).row_step > near.row_step
    press(page, "0")
    assert "zoom" not in keys_of(page) and Heat(page).rows == fit.rows
    press(page, "1")
    one = Heat(page)
    assert keys_of(page)["zoom"] == "1x1" and (one.row_px, one.row_step, one.col_px, one.col_step) == (1, 1, 1, 1)
    assert one.row0 <= 2000 < one.row0 + one.rows


def test_reductions_and_colours_by_keys(open_page, server):
    page = open_page(fragment("table", LARGE))
    for expected in ("min", "max", "absmax", "sample", "mean"):
        press(page, "r")
        heat = Heat(page)
        assert keys_of(page).get("red", "mean") == expected == heat.reduce
    heat.check_against(server, LARGE, shape_of(server, LARGE, "cos"))
    seen = [heat.cmap]
    for _ in range(4):
        press(page, "m")
        seen.append(Heat(page).cmap)
    assert seen[0] == seen[4] and len(set(seen)) == 4


def test_a_value_is_copied(open_page, driver, server):
    page = open_page(fragment("table", SINUSOIDAL, cur="7,9"))
    driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    press(page, "c")
    read = "const done = arguments[0]; navigator.clipboard.readText().then(done, (e) => done(String(e)))"
    until(lambda: driver.execute_async_script(read) == json_text(server, SINUSOIDAL, "encoding", (7, 9)), what="the value on the clipboard")


@pytest.mark.fresh
def test_keys_work_in_a_figure_only(open_page):
    page = open_page(fragment("table", SINUSOIDAL, cur="3,4"))
    before = keys_of(page)
    page.run("document.activeElement.blur()")
    ActionChains(page.driver).send_keys("r", "m", "+", "t", Keys.ARROW_RIGHT).perform()
    assert keys_of(page) == before
    page.field("len").send_keys("1")
    assert cursor(page) == (3, 4) and "zoom" not in keys_of(page)


# ---- Mouse, wheel, fingers -----------------------------------------------------------------------------------------------------


def test_a_click_puts_the_cursor(visit, server):
    page = visit(fragment("table", SINUSOIDAL))
    y, x = pixel_of(Heat(page), (60, 30))
    move_to(page, y, x).click().perform()
    until(lambda: cursor(page) == (60, 30), what="the cursor where the click was")
    assert readout(page)["a"] == (60, 30, json_text(server, SINUSOIDAL, "encoding", (60, 30)))


def test_hovering_reads_out_and_leaves_the_cursor_alone(open_page, server):
    page = open_page(fragment("table", SINUSOIDAL, cur="5,6"))
    y, x = pixel_of(Heat(page), (60, 30))
    move_to(page, y, x).perform()
    until(lambda: readout(page)["a"][:2] == (60, 30) and not page.is_busy(), what="the cell under the mouse")
    assert readout(page)["a"][2] == json_text(server, SINUSOIDAL, "encoding", (60, 30)) and cursor(page) == (5, 6)
    move_to(page, -30, x).perform()
    until(lambda: readout(page)["a"][:2] == (5, 6), what="the cursor's cell again")


def test_a_map_that_goes_from_under_the_pointer_leaves_no_cell(open_page):
    page = open_page(fragment("table", SINUSOIDAL, cur="5,6"))
    y, x = pixel_of(Heat(page), (60, 30))
    move_to(page, y, x).perform()
    until(lambda: readout(page)["a"][:2] == (60, 30), what="the cell under the mouse")
    page.hash("view=weights")
    page.settle()
    page.hash(fragment("table", SINUSOIDAL, cur="9,3"))
    page.settle()
    assert readout(page)["a"][:2] == (9, 3)


def test_a_drag_pans(visit, server):
    page = visit(fragment("table", LARGE, zoom="8x8", win="400,60"))
    before = Heat(page)
    move_to(page, 200, 200).click_and_hold().perform()
    move_to(page, 200 - 83, 200 + 40).perform()
    ActionChains(page.driver).release().perform()
    page.settle()
    after = Heat(page)
    assert (after.row0, after.col0) == (before.row0 + 10, before.col0 - 5)
    after.check_against(server, LARGE, shape_of(server, LARGE, "cos"))
    assert cursor(page) == (0, 0), "a drag is no click"


def test_ctrl_and_the_wheel_zoom_at_the_pointer(open_page, server):
    page = open_page(fragment("table", LARGE, zoom="4x4", win="400,60"))
    y, x = 101, 202
    cell = cell_at(Heat(page), y, x)
    move_to(page, y, x).perform()
    origin = ScrollOrigin.from_element(page.find(CANVAS), *offsets(page, y, x))
    chain = ActionChains(page.driver).key_down(Keys.CONTROL)
    chain.scroll_from_origin(origin, 0, -240).key_up(Keys.CONTROL).perform()
    until(lambda: Heat(page).row_px > 4, what="the wheel")  # the browser hands it on when it next draws
    page.settle()
    heat = Heat(page)
    assert cell_at(heat, y, x) == cell
    heat.check_against(server, LARGE, shape_of(server, LARGE, "cos"))


def offsets(page, y, x):
    """Of a pixel, from the middle of the canvas."""
    width, height = page.run("return [arguments[0].clientWidth, arguments[0].clientHeight]", page.find(CANVAS))
    return round(x - width // 2), round(y - height // 2)


def test_a_plain_wheel_scrolls_the_page(open_page):
    page = open_page(fragment("table", LARGE, zoom="4x4"))
    page.run("document.body.style.setProperty('min-height', '4000px')")
    before, top = keys_of(page), page.run("return scrollY")
    ActionChains(page.driver).scroll_from_origin(ScrollOrigin.from_element(page.find(CANVAS)), 0, 150).perform()
    until(lambda: page.run("return scrollY") > top, what="scrolling")
    page.run("document.body.style.removeProperty('min-height')")
    assert keys_of(page) == before


def touch(page, kind, *points):
    left, top = page.run("const { left, top } = arguments[0].getBoundingClientRect(); return [left, top]", page.find(CANVAS))
    at = [{"x": left + x, "y": top + y, "id": i} for i, (y, x) in enumerate(points)]
    page.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})


def test_two_fingers_zoom_and_pan(open_page, server):
    wide = {**LARGE, "head_dim": 1024}  # than any figure at 4 pixels a cell
    page = open_page(fragment("table", wide, zoom="4x4", win="400,60"))
    page.run("arguments[0].scrollIntoView({ block: 'center' })", page.find(CANVAS))
    touch(page, "touchStart", (100, 100), (100, 200))
    touch(page, "touchMove", (60, 100), (60, 200))
    touch(page, "touchEnd")
    page.settle()
    assert (Heat(page).row0, Heat(page).col0, Heat(page).row_px) == (410, 60, 4), "both fingers went up by 40 pixels"
    touch(page, "touchStart", (100, 100), (100, 200))
    touch(page, "touchMove", (100, 50), (100, 250))
    touch(page, "touchEnd")
    page.settle()
    heat = Heat(page)
    assert heat.row_px == 8 and heat.row_step == 1
    heat.check_against(server, wide, shape_of(server, wide, "cos"))


@pytest.mark.parametrize("action, changed", [("zoom-in", True), ("zoom-out", False), ("one", True), ("fit", False)])
def test_buttons_do_what_keys_do(visit, action, changed):
    page = visit(fragment("table", LARGE))
    page.click(f'figure[data-config="a"] [data-action="{action}"]')
    assert ("zoom" in keys_of(page)) == changed


# ---- Several figures ---------------------------------------------------------------------------------------------------------


def test_drawn_cells_are_what_the_address_asks_for_when_changed_by_hand(visit, server):
    page = visit(fragment("table", SINUSOIDAL))
    page.hash(fragment("table", SINUSOIDAL, zoom="3x1/2", win="11,7"))
    until(lambda: Heat(page).row_px == 3, what="the new zoom")
    page.settle()
    heat = Heat(page)
    assert (heat.row0, heat.col0, heat.col_step, heat.col_px) == (11, 6, 2, 1), "the first column is a multiple of the step"
    heat.check_against(server, SINUSOIDAL, (128, 64))
