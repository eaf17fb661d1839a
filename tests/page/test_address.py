"""The address: every key restores what it says, loaded and under an open page; links for a stranger, Back, undo. Single values that are bad are
tested in state.test.mjs."""
import json
import urllib.parse

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import fragment, until
from conftest import forget_choices
from probes import Heat, readout

pytestmark = pytest.mark.fresh  # what loading does is what is tested

ROPE = {"scheme": "rope", "head_dim": 64, "len": 128}
SINUSOIDAL = {"scheme": "sinusoidal", "dim": 64, "len": 128}
LARGE = {"scheme": "sinusoidal", "dim": 512, "len": 5003}


def wait_for(page, **expected):
    """Until the address has these keys; None: it has not."""
    page.comes(lambda: {key: page.address().get(key) for key in expected} == expected, f"the address {expected}, not {page.address()},")


def press(page, *keys, held=(Keys.CONTROL,)):
    chain = ActionChains(page.driver)
    for key in held:
        chain.key_down(key)
    chain.send_keys(*keys)
    for key in reversed(held):
        chain.key_up(key)
    chain.perform()


# ---- Every key ---------------------------------------------------------------------------------------------------------------------


def test_the_address_is_read_as_people_write_it(open_page):
    page = open_page('view=table&a={"scheme":"rope","len":128}&nothing=1&x&=&&cur=37,12')
    assert page.attribute("figure", "data-figure") == "table" and readout(page)["a"][:2] == (37, 12)
    assert page.attribute('[data-view="table"]', "aria-current") in ("page", "true") and not page.all("[data-notice=state]")


def test_and_written_as_programs_read_it(open_page):
    tokens = ["a&b=c", "50%", "狗", "#"]
    page = open_page(fragment("table", {"scheme": "alibi", "tokens": tokens, "num_heads": 4}))
    page.press("canvas[data-heat]", Keys.ARROW_DOWN)
    until(lambda: "cur" in page.address(), what="the cursor in the address")
    written = page.run("return location.hash")[1:]
    for part in written.split("&"):
        value = part.partition("=")[2]
        assert value in [urllib.parse.quote(urllib.parse.unquote(value), safe=f"!'()*~-_.{more}") for more in ("", ",/")], part
    page.open(written)
    assert page.config()["tokens"] == tokens and readout(page)["a"][0] == 1


def test_all_keys_at_once(open_page):
    """At the first load, and when the address changes under an open page; single ones are rows of cases/views.jsonl."""
    keys = {"out": "sin", "win": "40,8", "cur": "41,12", "red": "absmax", "cmap": "magma", "lo": "-0.5", "hi": "0.25", "zoom": "4x2", "lang": "zh", "theme": "dark"}
    page = open_page(fragment("table", {**ROPE, "len": 400}, **keys))
    looks = "return [document.documentElement.lang, document.documentElement.dataset.theme]"
    for given, output, ends, look in ((keys, "sin", (-0.5, 0.25), ["zh-CN", "dark"]), ({"lang": "en", "theme": "light"}, "cos", (-1, 1), ["en", "light"]), (keys, "sin", (-0.5, 0.25), ["zh-CN", "dark"])):
        page.go(fragment("table", {**ROPE, "len": 400}, **given))
        page.comes(lambda: page.run(looks) == look and Heat(page).output == output, f"obeying {given}")
        heat = Heat(page)
        assert (heat.min, heat.max) == ends and not page.all("[data-notice=state]")
        seen = (heat.row0, heat.col0, heat.row_px, heat.col_px, heat.reduce, heat.cmap, readout(page)["a"][:2])
        assert (seen == (40, 8, 4, 2, "absmax", "magma", (41, 12))) == (given is keys), seen


def test_bad_values_are_all_named_and_their_defaults_stand(open_page):
    bad = {"on": "e", "at": "x", "win": "1", "zoom": "0x0", "cur": "a,b", "red": "median", "cmap": "jet", "lo": "low", "hi": "%", "lang": "fr", "theme": "pink"}
    page = open_page(f"view=table&a={urllib.parse.quote(json.dumps(ROPE))}&" + "&".join(f"{key}={value}" for key, value in bad.items()))
    assert set(page.run("return [...document.querySelectorAll('[data-notice=state] code')].map(c => c.textContent)")) == set(bad)
    heat = Heat(page)
    assert (heat.cmap, heat.min, heat.max, heat.reduce) == ("viridis", -1, 1, "mean") and readout(page)["a"][:2] == (0, 0)
    for address in ("view=nothing", "view=table&a={scheme", "view=table&a=[1]", "view=table&a=%7B&cur=%E0%A4%A"):
        page.hash(address)
        until(lambda: len(page.all("[data-notice=state]")) == 1, what=f"a notice for {address}")
    page.hash(fragment("table", ROPE, cur="1,1"))
    page.comes(lambda: not page.all("[data-notice=state]"), "no notice for a good address")
    assert page.state() == "ready"


# ---- Links ---------------------------------------------------------------------------------------------------------------------------


def test_a_link_shows_a_stranger_the_same(driver, server, open_page):
    """The link as copied, after changes by hand, in a browser without settings."""
    page = open_page(fragment("table", LARGE, {**LARGE, "base": 5000}))
    page.run("arguments[0].focus()", Heat(page, "b").canvas)
    ActionChains(page.driver).send_keys("1", Keys.ARROW_DOWN * 3, Keys.PAGE_DOWN, "m", "r").perform()
    page.settle()
    link = page.copied("url").strip()
    assert link.startswith(page.url + "/#") and "lang=" not in link and "theme=" not in link
    here = [(Heat(page, slot).pixels(), Heat(page, slot).window([5003, 512]), readout(page)[slot]) for slot in "ab"]
    forget_choices(driver, server)
    page.open(link.partition("#")[2])
    for slot, (pixels, window, cell) in zip("ab", here):
        there = Heat(page, slot)
        assert there.window([5003, 512]) == window and readout(page)[slot] == cell
        assert there.cmap != "viridis" and np.array_equal(there.pixels(), pixels)


# ---- Back, forward, undo ---------------------------------------------------------------------------------------------------------------

# A slider at several places in turn, as dragging moves it.
SLIDE = """const slider = document.querySelector('[data-slider="len"][data-config="a"]'), [lo, hi] = [Number(slider.min), Number(slider.max)];
for (const part of [0.3, 0.4, 0.5, 0.6, 0.7]) { slider.value = lo + (hi - lo) * part; slider.dispatchEvent(new Event('input', { bubbles: true })); }
slider.dispatchEvent(new Event('change', { bubbles: true }));"""
# Steps that the page adds to the browser's history from now on.
COUNT = """window.steps = 0;
const push = history.pushState;
history.pushState = function (...given) { steps += 1; return push.apply(this, given); };
addEventListener('click', (event) => { steps += Boolean(event.target.closest?.('a[href^="#"]')) && !event.defaultPrevented; });"""


def test_back_walks_through_views_and_sets_of_configurations_and_never_through_slider_values(open_page):
    page = open_page(fragment("curves", SINUSOIDAL))
    page.run(COUNT)
    for selector, view in (('nav [data-view="table"]', "table"), ('[data-action="add"]', "table")):
        page.click(selector)
        wait_for(page, view=view)
    page.comes(lambda: "b" in page.address(), "a second configuration")
    assert page.run("return steps") == 2
    page.run(SLIDE)
    page.settle()
    changed = page.config()["len"]
    assert changed != 128 and page.run("return steps") == 2
    for way, expected in (("back", {"view": "table", "b": None}), ("back", {"view": "curves"}), ("forward", {"view": "table"}), ("forward", {"view": "table"})):
        page.run(f"history.{way}()")
        wait_for(page, **expected)
    until(lambda: page.config()["len"] == changed, what="the last value")


def test_undo_takes_back_a_drag_as_one_step(open_page):
    page = open_page(fragment("table", SINUSOIDAL))
    page.run(SLIDE)
    page.settle()
    changed = page.config()
    assert changed["len"] != 128
    page.run("document.activeElement.blur()")
    press(page, "z")
    wait_for(page, a=SINUSOIDAL)
    press(page, "z", held=(Keys.CONTROL, Keys.SHIFT))
    wait_for(page, a=changed)
    assert page.field("len").get_attribute("value") == str(changed["len"])
    for action, config in (("undo", SINUSOIDAL), ("redo", changed)):
        page.click(f'[data-action="{action}"]')
        wait_for(page, a=config)


def test_the_cursor_is_no_step_and_a_field_s_own_undo_is_one(open_page):
    page = open_page(fragment("table", ROPE))
    page.type("len", "64")
    wait_for(page, a={**ROPE, "len": 64})
    page.press("canvas[data-heat]", Keys.ARROW_DOWN * 5)
    wait_for(page, cur="5,0")
    press(page, "z")
    wait_for(page, a=ROPE)
