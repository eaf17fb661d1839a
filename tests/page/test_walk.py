"""The guided walk: ten steps by keys, links and a finger; what each shows, in both languages."""
import re

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import until
from looks import SMALL, STRAY, nameless
from test_stories import RAW, TOUCHABLE, UNREAD, both_seen, too_small

STEPS = ["words", "rows", "added", "waves", "turn", "apart", "bias", "stretch", "breaks", "yours"]
STEP = "return Number(document.querySelector('[data-step]')?.dataset.step)"
DOGS = ["The", "dog", "chased", "another", "dog"]


def arrives(page, step):
    page.comes(lambda: page.run(STEP) == step, f"step {step}, not {page.run(STEP)},")


def press(page, *keys):
    ActionChains(page.driver).send_keys(*keys).perform()


def let_go(page):
    page.run("document.activeElement.blur()")


def test_the_gallery_starts_it_and_space_leads_through_ten_steps(open_page):
    page = open_page("view=gallery&lang=en")
    page.click("main a[data-action=start]")
    arrives(page, 1)
    assert page.attribute("nav a[data-view=walk]", "aria-current") == "page" and page.run("return document.querySelectorAll('h1').length") == 1
    let_go(page)
    titles = []
    for step, name in enumerate(STEPS, 1):
        arrives(page, step)
        assert page.run("return [...document.querySelectorAll('article figure[id^=\"fig-\"]')].map((one) => one.id)") == [f"fig-{name}"]
        assert page.attribute(f"#fig-{name}", "data-state") == "ready" and page.run(TOUCHABLE, name) > 0
        assert f"Step {step} of 10" in page.text("article") and (step == 1 or f"sec={step}" in page.run("return location.hash"))
        assert page.run("return [...document.querySelectorAll('.walk [data-sec][aria-current=step]')].map((a) => Number(a.dataset.sec))") == [step]
        titles.append(page.text("article h2"))
        press(page, Keys.SPACE)
    arrives(page, 10)  # there is no eleventh
    assert len(set(titles)) == 10
    press(page, Keys.ARROW_LEFT)
    arrives(page, 9)
    press(page, Keys.ARROW_RIGHT)
    arrives(page, 10)
    page.driver.back()
    arrives(page, 9)


def test_each_step_is_a_link(visit):
    page = visit("view=walk&sec=4&lang=en")
    arrives(page, 4)
    links = page.run("return [...document.querySelectorAll('.walk-nav a')].map((a) => [a.dataset.action ?? Number(a.dataset.sec), a.hash, a.ariaLabel ?? a.textContent])")
    assert {str(name): re.search(r"sec=(\d+)", link)[1] for name, link, _ in links} == {"back": "3", "next": "5", **{str(i): str(i) for i in range(1, 11)}}
    assert all(text for *_, text in links)
    page.click("a[data-action=next]")
    arrives(page, 5)
    page.click(".walk-nav a[data-sec='2']")
    arrives(page, 2)
    for beyond, step in ((0, 1), (99, 10)):
        page.hash(f"view=walk&sec={beyond}&lang=en")
        arrives(page, step)
    assert "Once more" in page.text("a[data-action=next]") and "sec=1&" in page.attribute("a[data-action=next]", "href") + "&"


def test_keys_that_a_control_has_stay_with_it(visit):
    page = visit("view=walk&sec=1&lang=en")
    arrives(page, 1)
    page.run("document.querySelector('#fig-words canvas[tabindex]').focus()")
    press(page, Keys.ARROW_RIGHT)
    until(lambda: "key 1" in page.text("#fig-words [data-readout]"), what="the cursor moves")
    page.run("document.querySelector('#fig-words [data-field=sentence]').focus()")
    press(page, Keys.END, Keys.SPACE, "dog", Keys.ARROW_LEFT)
    page.settle()
    assert page.run(STEP) == 1
    page.run("document.querySelector('a[data-action=next]').focus()")
    press(page, Keys.SPACE)
    arrives(page, 2)
    assert page.run("return document.activeElement.dataset.action") == "next"  # Space leads on from there


def swipe(page, selector, right):
    left, top, width = page.run("const box = document.querySelector(arguments[0]).getBoundingClientRect(); return [box.left, box.top + 8, box.width]", selector)
    start = left + width * (0.2 if right > 0 else 0.8)
    touch = lambda kind, *points: page.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": top} for x in points]})  # noqa: E731
    touch("touchStart", start)
    for part in range(1, 6):
        touch("touchMove", start + right * part / 5)
    touch("touchEnd")


def test_a_finger_leads_on_and_back_on_a_phone(open_page, narrow):
    narrow(390, 844)
    page = open_page("view=walk&sec=4&lang=zh")
    page.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    try:
        arrives(page, 4)
        swipe(page, ".walk h2", -200)
        arrives(page, 5)
        swipe(page, ".walk h2", 200)
        arrives(page, 4)
        swipe(page, "#fig-waves canvas[tabindex]", -150)  # a figure keeps what is dragged in it
        page.settle()
        assert page.run(STEP) == 4
    finally:
        page.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


@pytest.mark.parametrize("step", range(1, 11))
def test_each_step_in_both_languages_and_on_a_phone(visit, narrow, step):
    name = STEPS[step - 1]
    for lang in ("en", "zh"):
        page = visit(f"view=walk&sec={step}&lang={lang}")
        arrives(page, step)
        assert page.run("return document.documentElement.lang")[:2] == lang
        assert page.run(RAW, "walk") == [] and page.run(UNREAD) == [] and page.run(STRAY, lang == "zh") == [] and nameless(page.driver) == []
        assert page.attribute(f"#fig-{name}", "data-state") == "ready"
        for width in (320, 390) if lang == "en" else (390,):
            narrow(width)
            page.settle()
            assert page.run("return document.documentElement.scrollWidth") <= width
            next_box = page.run("const { top, bottom } = document.querySelector('a[data-action=next]').getBoundingClientRect(); return [top, bottom]")
            assert 0 <= next_box[0] and next_box[1] <= 900, "the way on is on the screen"
        assert page.run(SMALL) == [] and both_seen(page, name)
        width = 1200 if lang == "en" else 1440
        narrow(width)
        page.settle()
        assert too_small(page, name) is None, width
        narrow(None)


def test_the_last_step_opens_a_configuration(visit):
    page = visit("view=walk&sec=10&lang=en")
    arrives(page, 10)
    page.click(".walk [data-action=paste]")
    assert page.run("return document.querySelector('dialog[open]') !== null")
    press(page, Keys.ARROW_LEFT)
    assert page.run(STEP) == 10  # the dialog has the keys
    press(page, Keys.ESCAPE)
    until(lambda: not page.all("dialog[open]"), what="the dialog closes")
