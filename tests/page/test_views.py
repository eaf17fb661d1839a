"""The rows of cases/views.jsonl: what a link shows, its pictures against separate requests, and what a hand changes in it."""
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import rows
from browser import CHOOSE, DROP, PASTE, PUT, fragment
from figures import Shown

ROWS = rows.rows("views", "view", "configs", "keys", "hand", "undo")
CANVAS = 'figure[data-config="a"] canvas[tabindex]'


def put(page, fields, hand):
    for selector, value in fields.items():
        page.run(PUT, selector, value, "input")
        page.settle()


def click(page, selectors, hand):
    for selector in selectors:
        page.do(selector)


def choose(page, fields, hand):
    for field, value in fields:
        assert page.run(CHOOSE, page.field(field), value), f"{field} does not offer {value}"
        page.settle()


def drag(page, by, hand):
    ActionChains(page.driver).click_and_hold(page.find(hand.get("on", CANVAS))).move_by_offset(*by).release().perform()


def press(page, keys, hand):
    """Names of selenium's keys in capitals, else what is typed."""
    page.run("arguments[0].focus()", page.find(hand.get("on", CANVAS)))
    chain = ActionChains(page.driver)
    if "held" in hand:
        chain.key_down(getattr(Keys, hand["held"]))
    chain.send_keys(*(getattr(Keys, key, key) if len(key) > 1 else key for key in keys))
    if "held" in hand:
        chain.key_up(getattr(Keys, hand["held"]))
    chain.perform()


def paste(page, text, hand):
    page.run(PASTE, text)


def drop(page, text, hand):
    page.run(DROP, "dropped.txt", text)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_link(visit, row):
    page = visit(fragment(row["view"], *row.get("configs", ()), **{"lang": "en", **row.get("keys", {})}))
    shown, hand = Shown(page), row.get("hand", {})
    before, address = shown.snapshot(row), shown.address() if "undo" in row else None
    for gesture in (put, choose, drag, click, press, paste, drop):
        if gesture.__name__ in hand:
            gesture(page, hand[gesture.__name__], hand)
            page.settle()
    # The sentence of where two part comes when nothing else is to be done.
    (rows.patiently if hand or row["id"].startswith("parting/") else lambda check: check())(lambda: rows.check(shown, row, before))
    if row.get("undo"):
        assert shown.address() != address
        for _ in range(row["undo"]):
            page.do("[data-action=undo]")
        page.comes(lambda: configs(shown.address()) == configs(address), f"{row['id']}: {address} again, not {shown.address()},", 5)
        if row["undo"] > 1:
            shown.check_drawn()


def configs(address):
    return {key: value for key, value in address.items() if key not in ("lang", "theme", "cur")}
