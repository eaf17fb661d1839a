"""The cursor, the read-out and the data table: values as the API's JSON writes them, reached by keys alone."""
import json
import re

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import fragment, until
from probes import Heat, attributes, json_text, post, readout, shape_of

ROPE = {"scheme": "rope", "head_dim": 64, "len": 256}
LARGE = {"scheme": "sinusoidal", "dim": 512, "len": 5003}
ALIBI = {"scheme": "alibi", "num_heads": 8, "len": 60, "causal": True}


def check(page, server, config, request, output, row, col, at=()):
    """The read-out of a configuration says this cell and its value."""
    until(lambda: readout(page).get(config, (None, None))[:2] == (row, col), what=f"read-out of {row},{col}, not {readout(page)},")
    page.settle()
    assert readout(page)[config] == (row, col, json_text(server, request, output, (*at, row, col)))


@pytest.mark.parametrize("request_, cursor, output, at", [
    (ROPE, (37, 12), "cos", ()), (LARGE, (4321, 77), "encoding", ()), (LARGE, (5002, 511), "encoding", ()), (ALIBI, (59, 3), "bias", (2,)), (ALIBI, (3, 59), "bias", (2,)),
    ({**ROPE, "dtype": "f16"}, (100, 20), "cos", ()), ({**ROPE, "dtype": "f64"}, (100, 20), "cos", ()), ({**ROPE, "dtype": "bf16"}, (100, 20), "cos", ()),
    ({"scheme": "t5", "num_heads": 4, "len": 33, "seed": 3}, (30, 1), "bias", (1,))], ids=lambda value: value["scheme"] if isinstance(value, dict) else None)
def test_the_cell_itself_in_the_figure_s_dtype(visit, server, request_, cursor, output, at):
    """Also when zoomed out, and when masked."""
    keys = {"at": ",".join(map(str, at))} if at else {}
    page = visit(fragment("table", request_, cur="%d,%d" % cursor, out=output, **keys))
    assert Heat(page).output == output
    check(page, server, "a", request_, output, *cursor, at)


def test_all_configurations_share_the_cursor(visit, server):
    requests = {"a": ROPE, "b": {**ROPE, "base": 500000}, "c": {**ROPE, "dtype": "f64"}}
    page = visit(fragment("table", *requests.values(), cur="200,9"))
    assert set(readout(page)) >= set(requests)
    for config, request in requests.items():
        check(page, server, config, request, "cos", 200, 9)


# ---- Keys ------------------------------------------------------------------------------------------------------------------------


def focus(page, config="a"):
    page.run("arguments[0].focus()", Heat(page, config).canvas)


def press(page, *keys, held=None):
    chain = ActionChains(page.driver)
    if held:
        chain.key_down(held)
    for key in keys:
        chain.send_keys(key)
    if held:
        chain.key_up(held)
    chain.perform()


def cursor(page, config="a"):
    return readout(page)[config][:2]


def test_arrows_and_ends(open_page, server):
    page = open_page(fragment("table", ROPE, cur="10,10"))
    focus(page)
    for keys, held, expected in [((Keys.ARROW_DOWN,), None, (11, 10)), ((Keys.ARROW_RIGHT, Keys.ARROW_RIGHT), None, (11, 12)), ((Keys.ARROW_UP,) * 3, None, (8, 12)), ((Keys.ARROW_LEFT,), None, (8, 11)),
                                 ((Keys.END,), None, (8, 31)), ((Keys.ARROW_RIGHT,), None, (8, 31)), ((Keys.HOME,), None, (8, 0)), ((Keys.ARROW_LEFT,), None, (8, 0)),
                                 ((Keys.END,), Keys.CONTROL, (255, 31)), ((Keys.ARROW_DOWN,), None, (255, 31)), ((Keys.HOME,), Keys.CONTROL, (0, 0)), ((Keys.ARROW_UP,), None, (0, 0))]:
        press(page, *keys, held=held)
        check(page, server, "a", ROPE, "cos", *expected)
    assert "cur=" not in page.run("return decodeURIComponent(location.hash)") or "cur=0,0" in page.run("return decodeURIComponent(location.hash)")


def test_pages_move_by_a_window(open_page, server):
    page = open_page(fragment("table", LARGE, win="100,0", zoom="8x8", cur="100,0"))
    focus(page)
    rows = Heat(page).rows
    press(page, Keys.PAGE_DOWN)
    until(lambda: cursor(page)[0] > 100, what="a window down")
    moved = cursor(page)[0] - 100
    assert rows - 2 <= moved <= rows and cursor(page)[1] == 0
    page.settle()
    heat = Heat(page)
    assert heat.row0 <= cursor(page)[0] < heat.row0 + heat.rows, "the cursor stays in sight"
    press(page, Keys.PAGE_UP)
    until(lambda: cursor(page)[0] == 100, what="a window up")


def test_the_window_follows_the_cursor(open_page, server):
    page = open_page(fragment("table", LARGE, zoom="8x8", cur="0,0"))
    focus(page)
    press(page, Keys.END, held=Keys.CONTROL)
    check(page, server, "a", LARGE, "encoding", 5002, 511)
    heat = Heat(page)
    assert heat.row0 <= 5002 < heat.row0 + heat.rows and heat.col0 <= 511 < heat.col0 + heat.cols
    heat.check_against(server, LARGE, [5003, 512])


def test_zoom_keys(open_page, server):
    page = open_page(fragment("table", LARGE, cur="2500,250"))
    focus(page)
    fitted = Heat(page)
    for key, is_right in [("1", lambda heat: heat.row_step == heat.col_step == 1), ("0", lambda heat: (heat.row_step, heat.col_step) == (fitted.row_step, fitted.col_step)),
                          ("+", lambda heat: heat.row_step < fitted.row_step), ("-", lambda heat: heat.row_step == fitted.row_step)]:
        press(page, key)
        until(lambda: is_right(Heat(page)), what=f"zoom after {key}")
        page.settle()
        heat = Heat(page)
        assert heat.row0 <= 2500 < heat.row0 + heat.rows * heat.row_step, "at the cursor"
        heat.check_against(server, LARGE, [5003, 512])


def test_letters(open_page):
    page = open_page(fragment("table", LARGE, cur="7,7"))
    focus(page)
    seen = {Heat(page).reduce}
    for _ in range(5):
        before = Heat(page).reduce
        press(page, "r")
        until(lambda: Heat(page).reduce != before, what="another reduction")
        page.settle()
        seen.add(Heat(page).reduce)
    assert seen == {"mean", "min", "max", "absmax", "sample"} and Heat(page).reduce == "mean"
    press(page, "m")
    until(lambda: Heat(page).cmap != "viridis", what="other colours")
    press(page, "t")
    until(lambda: page.attribute("figure details[data-table]", "open") is not None, what="the data table")
    page.settle()
    page.run("navigator.clipboard.writeText = (text) => { window.copiedText = text; return Promise.resolve(); }")
    focus(page)
    press(page, "c")
    until(lambda: page.run("return window.copiedText"), what="a copied value")
    assert page.run("return window.copiedText") == readout(page)["a"][2]
    press(page, "?")
    until(lambda: page.run("return document.querySelector('dialog[open]') !== null"), what="help")
    press(page, Keys.ESCAPE)


def test_keys_belong_to_the_figure_alone(open_page):
    page = open_page(fragment("table", ROPE, cur="10,10"))
    page.run("document.querySelector('h1').setAttribute('tabindex', '-1'); document.querySelector('h1').focus()")
    press(page, Keys.ARROW_DOWN, "r", "m", "0", "t")
    page.settle()
    assert cursor(page) == (10, 10) and Heat(page).cmap == "viridis" and page.attribute("figure details[data-table]", "open") is None
    page.run("arguments[0].focus()", page.field("len"))
    press(page, Keys.ARROW_LEFT, Keys.HOME)
    assert cursor(page) == (10, 10)


@pytest.mark.fresh
def test_the_live_region_says_the_cell_once_keys_rest(open_page, server):
    page = open_page(fragment("table", ROPE, cur="0,3"))
    live = page.find("[data-live]")
    assert live.get_attribute("aria-live") == "polite"
    page.run("window.said = []; new MutationObserver(() => said.push(arguments[0].textContent)).observe(arguments[0], { childList: true, characterData: true, subtree: true });", live)
    focus(page)
    press(page, *[Keys.ARROW_DOWN] * 8)
    value = json_text(server, ROPE, "cos", (8, 3))
    until(lambda: page.run("return document.querySelector('[data-live]').textContent").strip(), what="words")
    page.settle()
    text = page.run("return document.querySelector('[data-live]').textContent")
    assert "8" in text and "3" in text and value[:4] in text.replace("\u2212", "-")
    assert len([said for said in page.run("return said") if said.strip()]) <= 3, "not every step"


# ---- The data table --------------------------------------------------------------------------------------------------------------


def cells(page):
    return {(int(row), int(col)): text for row, col, text in page.run(
        "return [...document.querySelectorAll('figure details[data-table] td[data-row][data-col]')].map((td) => [td.dataset.row, td.dataset.col, td.textContent.trim()])")}


@pytest.mark.parametrize("request_, spot, at", [(ROPE, (37, 12), ()), (LARGE, (5002, 511), ()), (ALIBI, (20, 20), (3,)), ({"scheme": "sinusoidal", "dim": 4, "len": 3}, (0, 0), ())], ids=lambda value: value["scheme"] if isinstance(value, dict) else None)
def test_the_data_table_holds_what_stands_about_the_cursor(open_page, server, request_, spot, at):
    keys = {"at": ",".join(map(str, at))} if at else {}
    page = open_page(fragment("table", request_, cur="%d,%d" % spot, **keys))
    page.click("figure details[data-table] > summary")
    until(lambda: cells(page), what="the data table")
    page.settle()
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


def test_pointing_moves_the_cursor(visit, server):
    request = {**ROPE, "len": 32}
    page = visit(fragment("table", request))
    heat = Heat(page)
    width, height, ratio = page.run("const c = arguments[0]; return [c.width, c.height, c.getBoundingClientRect().width / c.width]", heat.canvas)
    x, y = heat.x0 + (20 + 0.5) * heat.col_px - width / 2, heat.y0 + (30 + 0.5) * heat.row_px - height / 2  # from the middle
    ActionChains(page.driver).move_to_element_with_offset(heat.canvas, round(x * ratio), round(y * ratio)).click().perform()
    check(page, server, "a", request, "cos", 30, 20)


def test_what_the_canvas_says_of_itself(visit):
    page = visit(fragment("table", ROPE, LARGE))
    for config, words in (("a", ("rope", "cos", "256", "32")), ("b", ("sinusoidal", "encoding", "5003", "512"))):
        label = attributes(page, Heat(page, config).canvas)["aria-label"].replace(",", "").replace("\u202f", "")
        assert all(word in label for word in words), label


# ---- Positions -----------------------------------------------------------------------------------------------------------------


def ticks(page, side):
    return [float(text) for text in page.run(f"return [...document.querySelectorAll('figure .heat-{side} > span')].map((e) => e.textContent)")]


@pytest.mark.parametrize("request_, row, position", [
    ({"scheme": "sinusoidal", "dim": 8, "len": 8, "offset": 248}, 4, 252), ({"scheme": "sinusoidal", "dim": 8, "positions": [0, 1, 131071]}, 2, 131071),
    ({"scheme": "rope", "head_dim": 8, "lens": [3, 4]}, 5, 2)], ids=["offset", "positions", "lens"])
def test_a_position_is_named_not_the_number_of_its_row(visit, server, request_, row, position):
    page = visit(fragment("table", request_, cur=f"{row},1"))
    check(page, server, "a", request_, Heat(page).output, row, 1)
    assert page.text(".readout-where") == f"position {position}, {page.text('.readout-where').split(', ')[1]}"
    assert page.text(".heat-names").split("→")[0].startswith("position ↓") and position in ticks(page, "rows")
    assert page.text(".strip h2") == f"Along position {position}"
    page.run("document.querySelector('figure details').open = true")
    page.settle()
    assert str(position) in page.run("return [...document.querySelectorAll('table.cells tbody th')].map((e) => e.textContent)")


def test_one_minus_sign_is_read_and_programs_get_their_own(open_page, server):
    request = {"scheme": "sinusoidal", "dim": 8, "len": 6, "offset": -4, "base": 1e6}
    page = open_page(fragment("table", request, cur="1,0"))
    assert page.text(".readout-where").startswith("position \u22123, ") and page.text(".strip h2") == "Along position \u22123"
    value = json_text(server, request, "encoding", (1, 0))
    output = page.find("[data-readout] output[data-config=a]")
    assert value.startswith("-0.") and output.text == value.replace("-", "\u2212") and output.get_attribute("data-value") == value
    page.click("figure details[data-table] > summary")
    until(lambda: cells(page), what="the data table")
    page.settle()
    text = page.run("return document.querySelector('main .view').innerText")
    assert "\u2212" in text and not re.search(r"-\d", text), re.findall(r".{9}-\d", text)
    assert '"offset": -4' in page.copied("json") or '"offset":-4' in page.copied("json")
    copied = page.run("""getSelection().selectAllChildren(document.querySelector('figure table.cells'));
      const event = new ClipboardEvent('copy', { clipboardData: new DataTransfer(), bubbles: true, cancelable: true });
      document.querySelector('figure table.cells').dispatchEvent(event);
      return event.clipboardData.getData('text/plain')""")
    assert value in copied.split() and "\u2212" not in copied
    page.run("getSelection().removeAllRanges()")


def test_rows_of_a_grid_are_not_called_positions(visit, server):
    request = {"scheme": "fourier", "grid": [3, 4]}
    page = visit(fragment("table", request, cur="5,1"))
    check(page, server, "a", request, Heat(page).output, 5, 1)
    assert page.text(".readout-where").startswith("row 5, ") and page.text(".heat-names").startswith("row ↓")


def test_queries_after_kept_keys_stand_at_their_positions(visit, server):
    request = {"scheme": "alibi", "num_heads": 2, "q_len": 2, "k_len": 10, "offset": 100}
    page = visit(fragment("table", request, cur="1,9", at="0"))
    check(page, server, "a", request, "bias", 1, 9, (0,))
    assert page.text(".readout-where") == "query 109, key 109"
    assert ticks(page, "rows")[-1] == 109 and ticks(page, "cols")[0] == 100


def test_a_strip_has_the_positions_of_its_run(visit, server):
    page = visit(fragment("table", {"scheme": "sinusoidal", "dim": 8, "len": 40, "offset": 1000}, cur="20,1"))
    first, last = until(lambda: page.run("const { xMin, xMax } = document.querySelectorAll('.strip')[1].querySelector('canvas[data-lines]').dataset; "
                                         "return xMin === undefined ? null : [+xMin, +xMax]"), what="the strip")
    assert first <= 1000 < 1039 <= last and last - first < 45
