"""Any slider can play: by its button or by p, until the other end and from the beginning again; not where the system asks for less motion."""
from selenium.webdriver.common.keys import Keys

from browser import fragment, until

ROPE = {"scheme": "rope", "head_dim": 16, "len": 12}
AT = "return Number(document.querySelector(`[data-slider=base][data-config=a]`).value)"


def test_each_slider_has_a_button_that_is_named_and_is_no_stop_of_tab(visit):
    for view in ("table", "curves", "scaling"):
        page = visit(fragment(view, ROPE, lang="en"))
        sliders, buttons = (page.run(f"return [...document.querySelectorAll('{which}')].filter((one) => one.checkVisibility()).length") for which in ("input[type=range]", "button[data-play]"))
        assert sliders == buttons > 2
        names = page.run("return [...document.querySelectorAll('button[data-play]')].map((one) => [one.ariaLabel, one.tabIndex])")
        assert all(name.startswith("Play ") and len(name) > 6 and tab == -1 for name, tab in names)


def test_it_moves_its_slider_and_the_picture_until_it_is_stopped(visit):
    page = visit(fragment("table", ROPE, lang="en"))
    before, button = page.run(AT), "button[data-play=base]"
    page.click(button)
    assert page.attribute(button, "aria-label").startswith("Stop ")
    until(lambda: page.run(AT) > before + 2, what="the slider moves")
    page.do(button)
    at = page.run(AT)
    assert page.attribute(button, "aria-label").startswith("Play ") and page.state() == "ready"
    assert f'"base":{int(page.field("base").get_property("value"))}' in page.run("return decodeURIComponent(location.hash)").replace("%20", "")
    page.do("[data-action=undo]")
    assert page.run(AT) <= before + 1 and page.run(AT) != at  # one step, however many values


def test_by_key_and_around_the_end(visit):
    page = visit(fragment("table", ROPE, lang="en"))
    page.run("const one = document.querySelector('[data-slider=base]'); one.focus(); one.value = one.max; one.dispatchEvent(new Event('input', { bubbles: true }))")
    page.find("[data-slider=base]").send_keys("p")
    until(lambda: page.run(AT) < 20, what="from the beginning again")
    page.find("[data-slider=base]").send_keys("p")
    page.settle()
    at = page.run(AT)
    page.driver.execute_async_script("setTimeout(arguments[0], 400)")
    assert page.run(AT) == at
    page.find("[data-slider=base]").send_keys(Keys.ARROW_LEFT)
    page.settle()


def test_less_motion_keeps_it_still(visit):
    page = visit(fragment("table", ROPE, lang="en"))
    with page.media(prefers_reduced_motion="reduce"):
        before = page.run(AT)
        page.click("button[data-play=base]")
        page.driver.execute_async_script("setTimeout(arguments[0], 400)")
        assert page.run(AT) == before and page.attribute("button[data-play=base]", "aria-label").startswith("Play ")
