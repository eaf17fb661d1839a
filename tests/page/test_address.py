"""The address: every key restores what it says, bad values have their notice, Back and undo."""
import json
import re
import urllib.parse

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import Page, fragment, until
from conftest import BROWSER
from probes import Heat, readout

pytestmark = pytest.mark.fresh  # what loading does is what is tested

ROPE = {"scheme": "rope", "head_dim": 64, "len": 128}
SINUSOIDAL = {"scheme": "sinusoidal", "dim": 64, "len": 128}
ALIBI = {"scheme": "alibi", "num_heads": 8, "len": 60}
LARGE = {"scheme": "sinusoidal", "dim": 512, "len": 5003}


def address(page):
    """The hash as {key: text}, percent-decoded."""
    text = page.run("return location.hash").lstrip("#")
    return dict((key, urllib.parse.unquote(value)) for key, _, value in (part.partition("=") for part in text.split("&") if part))


def config(page, slot="a"):
    return json.loads(address(page)[slot])


def wait_for(page, **expected):
    """Until the address has these keys; configurations compared as JSON."""

    def holds():
        now = address(page)
        return all((json.loads(now[key]) if isinstance(value, dict) else now[key]) == value if key in now else value is None for key, value in expected.items())

    until(holds, what=f"the address {expected}, not {address(page)},")
    page.settle()


# ---- Every key ---------------------------------------------------------------------------------------------------------------------


def test_the_address_is_read_as_people_write_it(open_page):
    page = open_page('view=table&a={"scheme":"rope","len":128}&cur=37,12')
    assert page.attribute("figure", "data-figure") == "table" and readout(page)["a"][:2] == (37, 12)
    assert page.attribute('[data-view="table"]', "aria-current") in ("page", "true")


def test_and_written_as_programs_read_it(open_page):
    page = open_page(fragment("table", {"scheme": "alibi", "tokens": ["a&b=c", "50%", "狗", "#"], "num_heads": 4}))
    page.settle()
    page.run("arguments[0].focus()", Heat(page).canvas)
    ActionChains(page.driver).send_keys(Keys.ARROW_DOWN).perform()
    until(lambda: "cur=" in page.run("return location.hash"), what="the cursor in the address")
    written = page.run("return location.hash")[1:]
    for part in written.split("&"):
        key, _, value = part.partition("=")
        assert value == urllib.parse.quote(urllib.parse.unquote(value), safe="!'()*~-_.,/") or value == urllib.parse.quote(urllib.parse.unquote(value), safe="!'()*~-_."), part
    assert config(page)["tokens"] == ["a&b=c", "50%", "狗", "#"]
    page.open(written)
    assert config(page)["tokens"] == ["a&b=c", "50%", "狗", "#"] and readout(page)["a"][0] == 1


def test_figures_of_each_slot(open_page):
    page = open_page(fragment("table", ROPE, {**ROPE, "base": 500000}, {**ROPE, "layout": "half"}, {**ROPE, "len": 64}))
    assert [figure.get_attribute("data-config") for figure in page.all("figure[data-figure=table]")] == list("abcd")
    assert page.field("base", "b").get_attribute("value") == "500000" and page.field("len", "d").get_attribute("value") == "64"


KEYS = [("out", "sin", ROPE, lambda page, heat: heat.output == "sin"), ("at", "5", ALIBI, lambda page, heat: heat.at == [5]), ("win", "40,8", {**ROPE, "len": 400}, lambda page, heat: (heat.row0, heat.col0) == (40, 8)),
        ("cur", "37,12", ROPE, lambda page, heat: readout(page)["a"][:2] == (37, 12)), ("red", "absmax", LARGE, lambda page, heat: heat.reduce == "absmax"), ("cmap", "magma", ROPE, lambda page, heat: heat.cmap == "magma"),
        ("lo", "-0.5", ROPE, lambda page, heat: heat.min == -0.5), ("hi", "0.25", ROPE, lambda page, heat: heat.max == 0.25), ("zoom", "4x2", ROPE, lambda page, heat: (heat.row_px, heat.col_px) == (4, 2)),
        ("lang", "zh", ROPE, lambda page, heat: page.run("return document.documentElement.lang") == "zh-CN"), ("theme", "dark", ROPE, lambda page, heat: page.run("return getComputedStyle(document.body).colorScheme || getComputedStyle(document.documentElement).colorScheme").startswith("dark"))]


@pytest.mark.parametrize("key, value, request_, holds", KEYS, ids=[row[0] for row in KEYS])
def test_each_key(open_page, key, value, request_, holds):
    """At the first load, and when the address changes under an open page."""
    keys = {"zoom": "8x8"} if key == "win" else {}
    page = open_page(fragment("table", request_, **keys, **{key: value}))
    assert holds(page, Heat(page)), "loaded"
    assert not page.all("[data-notice=state]")
    page.hash(fragment("table", request_, **keys, **({"lang": "en"} if key == "lang" else {"theme": "light"} if key == "theme" else {})))
    until(lambda: not holds(page, Heat(page)), what="the default")
    page.settle()
    page.hash(fragment("table", request_, **keys, **{key: value}))
    until(lambda: holds(page, Heat(page)), what="obeying the address")
    page.settle()


def test_unknown_keys_are_ignored(open_page):
    page = open_page("view=table&nothing=1&" + fragment("table", ROPE).partition("&")[2] + "&x&=&&")
    assert page.state() == "ready" and not page.all("[data-notice=state]")


BAD = [("view", "nothing"), ("a", "{scheme"), ("a", "[1]"), ("a", "7"), ("on", "e"), ("at", "x"), ("win", "1"), ("win", "-1,0"), ("zoom", "0x0"), ("zoom", "1/0x1"), ("zoom", "big"), ("cur", "a,b"), ("cur", "-1,2"),
       ("red", "median"), ("cmap", "jet"), ("lo", "low"), ("hi", ""), ("lang", "fr"), ("theme", "pink")]


@pytest.mark.parametrize("key, value", BAD, ids=[f"{key}={value}" for key, value in BAD])
def test_a_bad_value_is_named_and_its_default_stands(visit, key, value):
    keys = {"view": "table", "a": json.dumps(ROPE), key: value}
    page = visit("&".join(f"{k}={urllib.parse.quote(v)}" for k, v in keys.items()))
    notices = page.all("[data-notice=state]")
    assert len(notices) == 1 and re.search(rf"(?<!\w){key}(?!\w)", notices[0].text), [notice.text for notice in notices]
    if key != "view":
        assert page.attribute("figure", "data-figure") == "table" and page.state() == "ready"
        heat = Heat(page)
        assert (heat.cmap, heat.min, heat.max, heat.reduce) == ("viridis", -1, 1, "mean") and readout(page)["a"][:2] == (0, 0) or key == "a"
    page.hash(fragment("table", ROPE, cur="1,1"))
    until(lambda: not page.all("[data-notice=state]"), what="no notice for a good address")


def test_several_bad_values_are_all_named(open_page):
    page = open_page(fragment("table", ROPE, cmap="jet", red="x", cur="5,5"))
    text = page.text("[data-notice=state]")
    assert "cmap" in text and "red" in text and readout(page)["a"][:2] == (5, 5)


def test_broken_percent_signs_end_nothing(open_page):
    page = open_page("view=table&a=%7B%22scheme%22%3A%22rope%22%2C%22len%22%3A8%7D&cur=%E0%A4%A&lo=%")
    assert page.state() == "ready" and page.all("[data-notice=state]")


# ---- Links ---------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def stranger(driver):
    """Another browser, whose profile nobody has used."""
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1440,900", "--lang=en"):
        options.add_argument(flag)
    other = webdriver.Chrome(options=options)
    yield other
    other.quit()


def test_a_link_shows_a_stranger_the_same(open_page, stranger):
    """The link as copied, after changes by hand."""
    page = open_page(fragment("table", LARGE, {**LARGE, "base": 5000}))
    page.run("arguments[0].focus()", Heat(page, "b").canvas)
    ActionChains(page.driver).send_keys("1", Keys.ARROW_DOWN * 3, Keys.PAGE_DOWN, "m", "r").perform()
    page.settle()
    link = page.copied("url").strip()
    assert link.startswith(page.url + "/#") and "lang=" not in link and "theme=" not in link
    here = [(Heat(page, slot).pixels(), Heat(page, slot).window([5003, 512]), readout(page)[slot]) for slot in "ab"]
    other = Page(stranger, page.url)
    stranger.get(link)
    other.settle()
    for slot, (pixels, window, cell) in zip("ab", here):
        there = Heat(other, slot)
        assert there.window([5003, 512]) == window and readout(other)[slot] == cell
        assert there.cmap == Heat(page, slot).cmap != "viridis"
        size = [min(a, b) for a, b in zip(pixels.shape, there.pixels().shape)]
        assert np.array_equal(there.pixels()[:size[0], :size[1]], pixels[:size[0], :size[1]])


def test_language_and_theme_are_kept_by_the_browser_not_by_the_link(open_page):
    page = open_page(fragment("table", ROPE))
    try:
        page.click('[data-action="lang"]')
        until(lambda: page.run("return document.documentElement.lang") == "zh-CN", what="Chinese")
        page.click('[data-action="theme"]')
        theme = page.run("return document.documentElement.dataset.theme")
        page.settle()
        assert "lang" not in address(page) and "theme" not in address(page) and "lang=" not in page.copied("url")
        page.open(fragment("table", ROPE))
        assert page.run("return [document.documentElement.lang, document.documentElement.dataset.theme]") == ["zh-CN", theme]
        page.open(fragment("table", ROPE, lang="en"))
        assert page.run("return document.documentElement.lang") == "en"
    finally:
        page.run("localStorage.clear()")


# ---- Back, forward, undo ---------------------------------------------------------------------------------------------------------------


def slide(page, field, *values, slot="a"):
    """A slider at each of these places in turn, as dragging moves it."""
    slider = page.find(f'[data-slider="{field}"][data-config="{slot}"]') if page.all(f'[data-slider="{field}"][data-config="{slot}"]') else page.find(f'[data-slider="{field}"]')
    page.run("""const [slider, values] = arguments;
        for (const value of values) { slider.value = value; slider.dispatchEvent(new Event('input', { bubbles: true })); }
        slider.dispatchEvent(new Event('change', { bubbles: true }));""", slider, list(values))


def places(page, field):
    """Values inside of a slider's range."""
    lo, hi = page.run("const s = document.querySelector(arguments[0]); return [Number(s.min || 0), Number(s.max || 100)]", f'[data-slider="{field}"]')
    return [lo + (hi - lo) * part for part in (0.3, 0.4, 0.5, 0.6, 0.7)]


def count_steps(page):
    """Steps that the page adds to the browser's history from now on."""
    page.run("""window.steps = 0;
        const push = history.pushState;
        history.pushState = function (...given) { steps += 1; return push.apply(this, given); };
        addEventListener('click', (event) => { steps += Boolean(event.target.closest?.('a[href^="#"]')) && !event.defaultPrevented; });""")


def steps(page):
    return page.run("return steps")


def test_back_never_walks_through_slider_values(open_page):
    page = open_page("view=curves&" + fragment("table", SINUSOIDAL).partition("&")[2])
    page.click('nav [data-view="table"]')
    until(lambda: page.attribute("figure", "data-figure") == "table", what="the table")
    page.settle()
    count_steps(page)
    slide(page, "len", *places(page, "len"))
    page.settle()
    assert config(page)["len"] != 128 and steps(page) == 0
    page.run("history.back()")
    until(lambda: address(page).get("view") == "curves", what="the view before")
    page.settle()
    page.run("history.forward()")
    until(lambda: page.attribute("figure", "data-figure") == "table", what="the table again")
    page.settle()
    assert config(page)["len"] != 128


def test_views_and_sets_of_configurations_are_steps_of_back(open_page):
    page = open_page(fragment("table", ROPE))
    count_steps(page)
    page.click('[data-action="add"]')
    until(lambda: "b" in address(page), what="a second configuration")
    page.settle()
    assert steps(page) == 1
    page.click('nav [data-view="curves"]')
    until(lambda: page.attribute("figure", "data-figure") == "curves", what="the curves")
    page.settle()
    assert steps(page) == 2 and "b" in address(page), "configurations stay"
    page.run("history.back()")
    until(lambda: page.attribute("figure", "data-figure") == "table", what="the table")
    page.settle()
    page.run("history.back()")
    until(lambda: "b" not in address(page), what="one configuration")
    page.settle()
    assert len(page.all("figure[data-figure=table]")) == 1


def press(page, *keys, held=(Keys.CONTROL,)):
    chain = ActionChains(page.driver)
    for key in held:
        chain.key_down(key)
    chain.send_keys(*keys)
    for key in reversed(held):
        chain.key_up(key)
    chain.perform()


def test_undo_takes_back_a_drag_as_one_step(open_page):
    page = open_page(fragment("table", SINUSOIDAL))
    slide(page, "len", *places(page, "len"))
    page.settle()
    changed = config(page)["len"]
    assert changed != 128
    page.run("document.activeElement.blur()")
    press(page, "z")
    wait_for(page, a=SINUSOIDAL)
    press(page, "z", held=(Keys.CONTROL, Keys.SHIFT))
    wait_for(page, a={**SINUSOIDAL, "len": changed})
    assert page.field("len").get_attribute("value") == str(changed)
    page.click('[data-action="undo"]')
    wait_for(page, a=SINUSOIDAL)
    page.click('[data-action="redo"]')
    wait_for(page, a={**SINUSOIDAL, "len": changed})


def test_everything_can_be_undone(open_page):
    """Adding, removing, another scheme, another view's keys: back to the first picture, step by step."""
    page = open_page(fragment("table", ROPE))
    first = Heat(page).pixels()
    page.click('[data-action="add"]')
    until(lambda: "b" in address(page), what="a second configuration")
    page.settle()
    page.click('[data-action="remove"][data-config="a"], [data-config="a"] [data-action="remove"]')
    page.settle()
    page.run("const s = document.querySelector('[data-field=cmap]'); if (s) { s.value = 'magma'; s.dispatchEvent(new Event('input', { bubbles: true })); s.dispatchEvent(new Event('change', { bubbles: true })); }")
    page.settle()
    page.run("document.activeElement.blur()")
    for _ in range(6):
        press(page, "z")
        page.settle()
    assert config(page) == ROPE and "b" not in address(page)
    assert np.array_equal(Heat(page).pixels(), first)


def test_undo_in_a_field_is_the_field_s_own(open_page):
    page = open_page(fragment("table", ROPE))
    page.type("len", "64")
    wait_for(page, a={**ROPE, "len": 64})
    page.run("document.activeElement.blur()")
    press(page, "z")
    wait_for(page, a=ROPE)


def test_the_cursor_is_no_step(open_page):
    page = open_page(fragment("table", ROPE))
    page.type("len", "64")
    wait_for(page, a={**ROPE, "len": 64})
    page.run("arguments[0].focus()", Heat(page).canvas)
    ActionChains(page.driver).send_keys(Keys.ARROW_DOWN * 5).perform()
    wait_for(page, cur="5,0")
    press(page, "z")
    wait_for(page, a=ROPE)


def test_what_equals_its_default_leaves_the_json(open_page):
    page = open_page(fragment("table", {**ROPE, "base": 500000}))
    page.type("base", "10000", enter=True)
    until(lambda: "base" not in config(page), what="JSON without the default")
    page.settle()
    assert config(page) == {key: value for key, value in ROPE.items() if key != "head_dim" or "head_dim" in config(page)}


def test_the_last_configuration_removed_leaves_five_examples(open_page):
    page = open_page(fragment("table", ROPE))
    page.click('[data-action="remove"]')
    until(lambda: page.all('[data-state="empty"]'), what="the state empty")
    page.settle()
    where = address(page)
    examples = page.all('[data-state="empty"] a, [data-state="empty"] button')
    assert len(examples) >= 5
    page.open("&".join(f"{k}={urllib.parse.quote(v, safe='')}" for k, v in where.items()))
    assert page.all('[data-state="empty"]'), "the address restores it"
    page.run("document.querySelector('[data-state=\"empty\"] a, [data-state=\"empty\"] button').click()")
    until(lambda: page.all('figure[data-state="ready"]'), what="an example")
