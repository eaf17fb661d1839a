"""Heat maps under the hand: zoom, wheel, mouse and fingers, what is read out and said, the data table. Single keys and buttons are rows of
cases/views.jsonl."""
import json
import re

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.keys import Keys

from browser import fragment, until
from probes import Heat, json_text, post, readout, shape_of

SINUSOIDAL = {"scheme": "sinusoidal", "dim": 64, "len": 128}
LARGE = {"scheme": "rope", "head_dim": 512, "len": 4000}
ROPE = {"scheme": "rope", "head_dim": 64, "len": 256}
ALIBI = {"scheme": "alibi", "num_heads": 8, "len": 60, "causal": True}
CANVAS = 'figure[data-config="a"] canvas[data-heat]'


def cursor(page):
    return tuple(int(index) for index in page.address().get("cur", "0,0").split(","))


def press(page, *keys):
    page.find(CANVAS).send_keys(*keys)
    page.settle()
    return page


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


def test_a_page_is_a_window(visit, server):
    page = visit(fragment("table", LARGE, zoom="4x4", cur="5,5"))
    before = Heat(page)
    press(page, Keys.PAGE_DOWN)
    after = Heat(page)
    assert after.row0 == before.row0 + before.rows and cursor(page) == (5 + before.rows, 5)
    after.check_against(server, LARGE, shape_of(server, LARGE, "cos"))
    press(page, Keys.PAGE_UP)
    assert Heat(page).row0 == before.row0 and cursor(page) == (5, 5)


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
    press(page, "1")
    assert Heat(page).row0 <= 2000 < Heat(page).row0 + Heat(page).rows


def test_colours_by_a_key(open_page):
    page = open_page(fragment("table", SINUSOIDAL))
    seen = [Heat(page).cmap]
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
    page.go("view=weights")
    page.go(fragment("table", SINUSOIDAL, cur="9,3"))
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
    before, top = page.address(), page.run("return scrollY")
    ActionChains(page.driver).scroll_from_origin(ScrollOrigin.from_element(page.find(CANVAS)), 0, 150).perform()
    until(lambda: page.run("return scrollY") > top, what="scrolling")
    page.run("document.body.style.removeProperty('min-height')")
    assert page.address() == before


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


# ---- What is read out and said ---------------------------------------------------------------------------------------------------


@pytest.mark.fresh
def test_the_live_region_says_the_cell_once_keys_rest(open_page, server):
    page = open_page(fragment("table", ROPE, cur="0,3"))
    live = page.find("[data-live]")
    assert live.get_attribute("aria-live") == "polite"
    page.run("window.said = []; new MutationObserver(() => said.push(arguments[0].textContent)).observe(arguments[0], { childList: true, characterData: true, subtree: true });", live)
    press(page, *[Keys.ARROW_DOWN] * 8)
    value = json_text(server, ROPE, "cos", (8, 3))
    page.comes(lambda: page.run("return document.querySelector('[data-live]').textContent").strip(), "words")
    text = page.run("return document.querySelector('[data-live]').textContent")
    assert "8" in text and "3" in text and value[:4] in text.replace("\u2212", "-")
    assert len([said for said in page.run("return said") if said.strip()]) <= 3, "not every step"


# ---- The data table --------------------------------------------------------------------------------------------------------------


def cells(page):
    return {(int(row), int(col)): text for row, col, text in page.run(
        "return [...document.querySelectorAll('figure details[data-table] td[data-row][data-col]')].map((td) => [td.dataset.row, td.dataset.col, td.textContent.trim()])")}


@pytest.mark.parametrize("request_, spot, at", [(ROPE, (37, 12), ()), ({"scheme": "sinusoidal", "dim": 512, "len": 5003}, (5002, 511), ()), (ALIBI, (20, 20), (3,)), ({"scheme": "sinusoidal", "dim": 4, "len": 3}, (0, 0), ())], ids=lambda value: value["scheme"] if isinstance(value, dict) else None)
def test_the_data_table_holds_what_stands_about_the_cursor(open_page, server, request_, spot, at):
    keys = {"at": ",".join(map(str, at))} if at else {}
    page = open_page(fragment("table", request_, cur="%d,%d" % spot, **keys))
    page.click("figure details[data-table] > summary")
    page.comes(lambda: cells(page), "the data table")
    found, output = cells(page), Heat(page).output
    rows, cols = sorted({row for row, _ in found}), sorted({col for _, col in found})
    shape = shape_of(server, request_, output)[-2:]
    assert spot in found and len(rows) == min(32, shape[0]) and len(cols) == min(32, shape[1]) and len(found) == len(rows) * len(cols)
    assert rows == list(range(rows[0], rows[-1] + 1)) and cols == list(range(cols[0], cols[-1] + 1))
    asked = json.loads(post(server, "/encode", **request_, outputs=[output], slice=[*at, [rows[0], rows[-1] + 1], [cols[0], cols[-1] + 1]]))
    data = asked["tensors"][output]["data"]
    for (row, col), text in found.items():
        value = data[row - rows[0]][col - cols[0]]
        shown = text.replace("\u2212", "-").replace("\u221e", "Infinity")
        assert float(shown) == float(value), (row, col, text, value)
    scopes = page.run("return [...document.querySelectorAll('figure details[data-table] th')].map((th) => th.getAttribute('scope'))")
    assert set(scopes) == {"row", "col"} and scopes.count("col") >= len(cols) and scopes.count("row") == len(rows)


# ---- Positions -----------------------------------------------------------------------------------------------------------------


def test_one_minus_sign_is_read_and_programs_get_their_own(open_page, server):
    request = {"scheme": "sinusoidal", "dim": 8, "len": 6, "offset": -4, "base": 1e6}
    page = open_page(fragment("table", request, cur="1,0"))
    assert page.text(".readout-where").startswith("position \u22123, ") and page.text(".strip h2") == "Along position \u22123"
    value = json_text(server, request, "encoding", (1, 0))
    output = page.find("[data-readout] output[data-config=a]")
    assert value.startswith("-0.") and output.text == value.replace("-", "\u2212") and output.get_attribute("data-value") == value
    page.click("figure details[data-table] > summary")
    page.comes(lambda: cells(page), "the data table")
    text = page.run("return document.querySelector('main .view').innerText")
    assert "\u2212" in text and not re.search(r"-\d", text), re.findall(r".{9}-\d", text)
    assert '"offset": -4' in page.copied("json") or '"offset":-4' in page.copied("json")
    copied = page.run("""getSelection().selectAllChildren(document.querySelector('figure table.cells'));
      const event = new ClipboardEvent('copy', { clipboardData: new DataTransfer(), bubbles: true, cancelable: true });
      document.querySelector('figure table.cells').dispatchEvent(event);
      return event.clipboardData.getData('text/plain')""")
    assert value in copied.split() and "\u2212" not in copied
    page.run("getSelection().removeAllRanges()")


def test_a_strip_has_the_positions_of_its_run(visit, server):
    page = visit(fragment("table", {"scheme": "sinusoidal", "dim": 8, "len": 40, "offset": 1000}, cur="20,1"))
    first, last = until(lambda: page.run("const { xMin, xMax } = document.querySelectorAll('.strip')[1].querySelector('canvas[data-lines]').dataset; "
                                         "return xMin === undefined ? null : [+xMin, +xMax]"), what="the strip")
    assert first <= 1000 < 1039 <= last and last - first < 45
