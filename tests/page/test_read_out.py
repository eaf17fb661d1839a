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


# ---- Keys ------------------------------------------------------------------------------------------------------------------------


def press(page, *keys, held=None):
    chain = ActionChains(page.driver)
    if held:
        chain.key_down(held)
    for key in keys:
        chain.send_keys(key)
    if held:
        chain.key_up(held)
    chain.perform()


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


# ---- Positions -----------------------------------------------------------------------------------------------------------------


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


def test_a_strip_has_the_positions_of_its_run(visit, server):
    page = visit(fragment("table", {"scheme": "sinusoidal", "dim": 8, "len": 40, "offset": 1000}, cur="20,1"))
    first, last = until(lambda: page.run("const { xMin, xMax } = document.querySelectorAll('.strip')[1].querySelector('canvas[data-lines]').dataset; "
                                         "return xMin === undefined ? null : [+xMin, +xMax]"), what="the strip")
    assert first <= 1000 < 1039 <= last and last - first < 45
