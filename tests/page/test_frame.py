"""The frame of the page: its navigation, both languages, both themes, phones, print, a task by keyboard, and what is there without
JavaScript. What holds for every view is tested in test_every_view.py."""
import json
import urllib.request

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import DROP, PASTE, fragment, until
from looks import CHINESE, STRAY

LISTED = ["gallery", "walk", "table", "curves", "rotate", "attention", "bias", "distance", "multimodal", "trajectory", "models", "scaling", "explain", "properties", "extrapolate", "diagnose", "experiment", "docs", "server", "weights"]
VIEWS = [*LISTED, "story"]  # of stories the navigation has each by its name
ALONE = {"gallery", "walk", "weights", "docs", "server", "story"}  # no configurations beside them
ROPE = {"scheme": "rope", "head_dim": 32, "len": 64}


# ---- the frame ----------------------------------------------------------------------------------------------------------


def test_landmarks_and_one_heading(open_page):
    page = open_page("view=table")
    for selector in ("body > header", "nav[aria-label]", "main", "h1", "footer", "[data-live][aria-live=polite]"):
        assert len(page.all(selector)) == 1, selector
    assert page.text("h1") == "Table" and page.driver.title == "Table · posenc"


@pytest.mark.fresh  # where the tests before have been with keys and pointer, Tab goes on from
def test_skip_link_comes_first_and_leaves_the_address_alone(open_page):
    page = open_page("view=table")
    before = page.run("return location.hash")
    page.run("document.activeElement.blur()")
    ActionChains(page.driver).send_keys(Keys.TAB, Keys.ENTER).perform()
    assert page.run("return document.activeElement.tagName") == "MAIN"
    assert page.run("return location.hash") == before


def test_navigation_links_keep_the_configurations(open_page):
    page = open_page(fragment("table", ROPE))
    links = page.run("return [...document.querySelectorAll('nav a[data-view]')].map(a => [a.dataset.view, a.getAttribute('href')])")
    assert [view for view, _ in links] == LISTED
    assert all(href.startswith(f"#view={view}&a=%7B") for view, href in links), links
    page.do("nav a[data-view=curves]")
    assert page.run("return [...document.querySelectorAll('[aria-current=page]')].map(a => a.dataset.view)") == ["curves"]
    assert page.text("h1") == "Curves"
    page.driver.back()
    page.settle()
    assert page.text("h1") == "Table"


# Of each link of the navigation that there is room for now: does its middle show, so that a pointer hits it?
SEEN = """return [...document.querySelectorAll(arguments[0])].filter((link) => !link.hidden).map((link) => {
  const { left, right, top, bottom } = link.getBoundingClientRect();
  return left >= 0 && right <= innerWidth && link.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2)); })"""
GROUPS = {"learn": ["gallery", "walk"], "see": ["table", "curves", "rotate", "attention", "bias", "distance", "multimodal", "trajectory"], "compare": ["models", "scaling", "explain", "properties", "extrapolate"],
          "diagnose": ["diagnose"], "train": ["experiment"], "service": ["docs", "server", "weights"]}
ROW = "return [...document.querySelectorAll('.nav-views > a')].filter((link) => !link.hidden).map((link) => link.dataset.view ?? link.dataset.story)"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_link_of_the_navigation_is_seen_or_scrolled_to(visit, narrow, lang):
    page = visit(f"view=table&lang={lang}")
    for width in (320, 390, 768, 1080, 1440):
        narrow(width)
        for view in ("weights", "trajectory"):
            page.go(f"view={view}&lang={lang}")
            assert page.run(SEEN, f"nav a[data-view={view}]") == [True], f"{view} {width}"  # the current one
        high = page.run("return document.querySelector('body > header').offsetHeight")
        assert high < 150 and page.run("return document.documentElement.scrollWidth") <= width
        assert all(page.run(SEEN, "nav a[data-group]")) and len(page.run(SEEN, "nav a[data-group]")) == len(GROUPS), width
        if width >= 768:
            assert all(page.run(SEEN, ".nav-views > a")), width
            continue
        assert page.run("return getComputedStyle(document.querySelector('body > header')).position") == "static"  # a phone's screen is its own
        for view in GROUPS["see"]:
            page.run("document.querySelector(`nav a[data-view=${arguments[0]}]`).focus()", view)
            assert page.run(SEEN, f"nav a[data-view={view}]") == [True], f"{view} {width}"
        if lang == "en":   # it is seen that there is more
            ends = "const row = document.querySelector('.nav-views'); return [getComputedStyle(row).maskImage, 'before' in row.dataset, 'after' in row.dataset]"
            page.run("document.querySelector('.nav-views').scrollTo(1e4, 0); return new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))")
            mask, *more = page.run(ends)
            assert "40px" in mask and more == [True, False], width


def test_views_are_found_by_question_and_explained_by_a_story(visit):
    page = visit("view=gallery")
    for group, views in GROUPS.items():
        page.do(f"nav a[data-group={group}]")
        assert page.run("return document.querySelector('nav a[data-group][aria-current]').dataset.group") == group
        assert [one for one in page.run(ROW) if one in LISTED] == views
        assert page.attribute("nav [data-view][aria-current=page]", "data-view") == views[0]
        explained = page.run("const link = document.querySelector('.explained'); return link.hidden ? null : [link.dataset.story, link.hash]")
        assert (explained is None) == (views[0] in ALONE) and (explained is None or explained[1].endswith(f"story={explained[0]}")), group
    page = visit("view=gallery")
    stories = [one for one in page.run(ROW) if one not in LISTED]
    assert len(stories) == 5
    page.do(f"nav a[data-story={stories[2]}]")
    assert page.run("return [...document.querySelectorAll('nav[aria-label] > * > [aria-current]')].map((a) => a.dataset.group ?? a.dataset.story)") == ["learn", stories[2]]


def test_what_sticks_stands_below_the_banner(visit, narrow):
    """Its height depends on the width; what gets the focus is not covered."""
    for width in (1180, 1440, 1920):
        narrow(width)
        page = visit(fragment("table", ROPE, lang="en"))
        page.run("scrollTo(0, 400)")
        tops = page.run("return ['body > header', '.side'].map((one) => document.querySelector(one).getBoundingClientRect()).map(({ top, bottom }) => [top, bottom])")
        assert tops[0][0] == 0 and tops[0][1] <= tops[1][0] <= tops[0][1] + 20, width


DIFFERING = ["table", "curves", "attention", "bias", "distance", "trajectory"]


@pytest.mark.parametrize("view", [view for view in LISTED if view not in ALONE])
def test_a_difference_is_shown_or_it_is_said_where(visit, view):
    page = visit(fragment(view, ROPE, {**ROPE, "base": 500}, on="b-a", lang="en"))
    links = page.run("return [...document.querySelectorAll('main [data-notice=difference] a')].map((a) => [a.dataset.view, a.textContent, a.getAttribute('href')])")
    if view in DIFFERING:
        assert links == [] and page.all("figure[data-config='b-a']")
        return
    assert [able for able, *_ in links] == DIFFERING and all(text for _, text, _ in links)
    page.put("[data-field=len][data-config=b]", 32)
    page.click("main [data-notice=difference] a[data-view=table]")
    until(lambda: page.text("h1") == "Table", what="the view")  # a link is followed once the click is over
    page.settle()
    assert page.state("b-a") and page.field("len", "b").get_attribute("value") == "32"
    assert not page.all("[data-notice=difference]")


# ---- paste and drop -----------------------------------------------------------------------------------------------------

CONFIG = {"model_type": "llama", "rope_theta": 500000.0, "hidden_size": 256, "num_attention_heads": 4, "max_position_embeddings": 8192}


def test_what_is_pasted_into_a_field_stays_there(open_page):
    page = open_page(fragment("curves", ROPE))
    page.run("""const data = new DataTransfer(); data.setData('text/plain', '{"scheme":"alibi"}');
    document.querySelector('[data-field="len"]').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true }));""")
    page.settle()
    assert page.config() == ROPE


def test_a_chosen_model_configuration(open_page, tmp_path):
    page = open_page(fragment("table", ROPE))
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG))
    page.find("input[type=file][data-drop]").send_keys(str(file))
    page.comes(lambda: "hf_config" in page.config(), "hf_config")
    assert page.config()["hf_config"] == CONFIG and page.state() == "ready"


def test_a_tensor_is_diagnosed_and_nonsense_gets_a_notice(open_page):
    page = open_page(fragment("table", ROPE))
    page.run(PASTE, "the dog chased another dog")
    until(lambda: page.text("[data-notice=paste]"), what="the notice")
    assert page.config() == ROPE
    page.run(DROP, "q k.npy", "x")
    page.wait_state("refused", "none")
    page.settle()
    assert page.text("h1") == "Diagnose" and "--data-binary @'q k.npy'" in page.copied("curl")
    assert page.config() == ROPE


@pytest.mark.fresh  # whose example is made when it is first opened
def test_a_sentence_of_the_other_language_is_a_value_and_not_a_text(open_page):
    page = open_page("view=attention&lang=zh")
    page.go("view=attention&lang=en")
    assert page.run("return document.querySelector('[data-field=sentence]').value") == "狗追另一只狗"
    assert page.run(STRAY, False) == []


def test_another_language_rewrites_texts_and_draws_nothing(open_page):
    page = open_page(fragment("table", ROPE))
    page.run("""window.drawn = 0; const put = CanvasRenderingContext2D.prototype.putImageData;
    CanvasRenderingContext2D.prototype.putImageData = function (...all) { window.drawn++; return put.apply(this, all); };""")
    before = page.run("return location.hash")
    page.click("[data-action=lang]")
    page.comes(lambda: page.run("return document.documentElement.lang") == "zh-CN", "Chinese")
    assert page.driver.title == "数值表 · posenc" and page.text("h1") == "数值表"
    assert page.run("return [location.hash, window.drawn]") == [before, 0]
    page.click("[data-action=theme]")
    theme = page.attribute("html", "data-theme")
    page.driver.refresh()
    page.settle()
    assert page.text("h1") == "数值表" and page.attribute("html", "data-theme") == theme  # the last choice holds
    assert not {"lang", "theme"} & page.address().keys()
    page.hash(fragment("table", ROPE, lang="en"))
    until(lambda: page.text("h1") == "Table", what="the language of the address")
    page.run("localStorage.clear()")


# ---- themes -------------------------------------------------------------------------------------------------------------

COLOURS = """const style = getComputedStyle(document.documentElement);
return ['color-scheme', '--ink', '--paper', '--good', '--a', '--raised'].map((name) => style.getPropertyValue(name).trim());"""


@pytest.mark.fresh  # nothing is chosen
def test_a_theme_holds_whatever_the_browser_prefers(open_page):
    colours = {}
    for preferred in ("dark", "light"):
        page = open_page("view=gallery")
        with page.media(prefers_color_scheme=preferred):  # while the page is open
            for theme in ("light", "dark", None):
                page.hash("view=gallery" + (f"&theme={theme}" if theme else ""))
                until(lambda: page.attribute("html", "data-theme") == (theme or preferred), what=f"{theme} where {preferred} is preferred")
                assert colours.setdefault(theme or preferred, page.run(COLOURS)) == page.run(COLOURS), (theme, preferred)
    assert [one[0] for one in colours.values()] == ["light", "dark"] and all(light != dark for light, dark in zip(*colours.values()))


# ---- widths, targets, print ---------------------------------------------------------------------------------------------


def test_narrow_pages_show_the_figure_first(open_page, narrow):
    page = open_page(fragment("table", ROPE))
    order = "return [...document.querySelectorAll('canvas[data-heat], [data-field=len], pre[data-copy=curl]')].map(n => n.tagName)"
    assert page.run(order)[0] != "CANVAS"
    narrow(1000)
    until(lambda: page.run(order)[0] == "CANVAS", what="the figure in front")
    top = "return [...document.querySelectorAll('canvas[data-heat], [data-field=len], pre[data-copy=curl]')].map(n => n.getBoundingClientRect().top)"
    assert page.run(top)[0] == min(page.run(top))


# Once a slider has the focus: is all of it seen, and all of the picture in front, below the banner and above the tray?
TOGETHER = """const [slider, slot] = arguments, side = document.querySelector('.side');
slider.focus();
const isTray = getComputedStyle(side).position === 'fixed';
const top = Math.max(0, document.querySelector('body > header').getBoundingClientRect().bottom);
const bottom = isTray ? side.getBoundingClientRect().top : innerHeight;
const hand = slider.getBoundingClientRect(), picture = document.querySelector(`figure[data-config=${slot}] .stage`).getBoundingClientRect();
const isHit = slider.contains(document.elementFromPoint((hand.left + hand.right) / 2, (hand.top + hand.bottom) / 2));
return [isHit && hand.top >= 0 && hand.bottom <= innerHeight, picture.top >= top - 1 && picture.bottom <= bottom + 1, picture.height];"""
TRAY = "return [...document.querySelectorAll('.side input[type=range]')].filter((one) => one.checkVisibility() && !one.disabled)"
SHOWN = {"table": [{"preset": "llama-3.1", "len": 256}, {"preset": "qwen2.5", "len": 256}], "curves": [ROPE], "distance": [ROPE], "scaling": [{"preset": "llama-3.1", "len": 256}],
         "attention": [{"scheme": "rope", "tokens": ["a", "b", "a"]}], "properties": [], "trajectory": [], "multimodal": []}  # those without show their example


@pytest.mark.parametrize("view", SHOWN)
def test_a_slider_and_the_picture_that_it_changes_are_on_screen_together(visit, narrow, view):
    """720 x 450 is a window of 1440 x 900 at 200 %."""
    front = "b" if len(SHOWN[view]) > 1 else "a"
    page = visit(fragment(view, *SHOWN[view], on=front))
    for size in ((390, 844), (768, 1024), (1024, 768), (720, 450)):
        narrow(*size)
        page.settle()
        sliders = page.run(TRAY)
        assert 1 <= len(sliders) <= 6, size
        for slider in (sliders[0], sliders[-1]):
            page.run("document.activeElement.blur(); scrollTo(0, 1e5)")
            assert slider.get_attribute("data-config") == front
            hand, picture, height = page.run(TOGETHER, slider, front)
            assert hand and picture, (size, slider.get_attribute("data-slider"), hand, picture, height)


def test_the_tray_opens_into_a_sheet_with_all_parameters(visit, narrow):
    page = visit(fragment("table", ROPE, {"scheme": "alibi", "len": 16}))
    narrow(390, 844)
    seen = "return document.querySelector(arguments[0]).checkVisibility()"
    shut = [page.run(seen, one) for one in ('[data-field=base][data-config=a]', '[data-field=scheme][data-config=a]', '[data-field=json][data-config=b]', '[data-card=b]', '[data-action=add]')]
    assert shut == [True, False, False, False, False]
    button = page.find(".side .sheet")
    assert button.get_attribute("aria-expanded") == "false"
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    assert all(page.run(seen, one) for one in ('[data-field=scheme][data-config=a]', '[data-card=b]', '[data-action=add]', '[data-action=remove]'))
    button.click()
    assert not page.run(seen, '[data-card=b]')


def test_a_number_beside_a_slider_of_the_tray_is_not_cut(visit, narrow):
    page = visit("view=multimodal&lang=en")  # whose base is 1000000
    narrow(390, 844)
    assert page.field("base").get_attribute("value") == "1000000"
    cut = "return [...document.querySelectorAll('.side input[type=number]')].filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth).map((one) => one.value)"
    assert page.run(cut) == []


def test_print_is_light_with_figure_caption_request_and_address(open_page):
    page = open_page(fragment("table", ROPE, theme="dark"))
    page.run("dispatchEvent(new Event('beforeprint'))")
    with page.media("print"):
        assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        shown = "return document.querySelector(arguments[0]).checkVisibility()"
        assert all(page.run(shown, selector) for selector in ("canvas[data-heat]", "figcaption", "pre[data-copy]:not([hidden])", ".address", "h1"))
        assert not any(page.run(shown, selector) for selector in ("nav", "[data-action=help]", "[data-slider]"))
        assert page.text(".address") == page.driver.current_url.replace("%20", "")
    page.run("dispatchEvent(new Event('afterprint'))")
    assert page.run("return document.documentElement.dataset.theme") == "dark"


# ---- keyboard only ------------------------------------------------------------------------------------------------------


class Keyboard:
    """Goes by Tab to what it looks for, as someone without a mouse."""

    def __init__(self, page):
        self.page = page

    def press(self, *keys):
        ActionChains(self.page.driver).send_keys(*keys).perform()

    def chord(self, *keys):
        chain = ActionChains(self.page.driver)
        chain.key_down(Keys.CONTROL).send_keys(*keys).key_up(Keys.CONTROL).perform()
        self.page.settle()

    def to(self, selector, steps=120):
        for _ in range(steps):
            if self.page.run("return document.activeElement.matches(arguments[0])", selector):
                return
            self.press(Keys.TAB)
        raise AssertionError(f"Tab does not come to {selector}")


def test_a_whole_task_by_keyboard(open_page):
    """From the gallery to the curves of a scheme, another length, undone; a second configuration; a value; the help."""
    page = open_page("view=gallery")
    keys = Keyboard(page)
    keys.to("nav a[data-group=see]")
    keys.press(Keys.ENTER)
    page.comes(lambda: page.text("h1") == "Table", "the first view")
    keys.to("nav a[data-view=curves]")
    keys.press(Keys.ENTER)
    page.comes(lambda: page.text("h1") == "Curves", "the view")
    keys.to("[data-slider=len]")
    before = page.run("return document.activeElement.value")
    keys.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    page.settle()
    changed = page.config()["len"]
    assert page.run("return document.activeElement.value") != before
    keys.chord("z")
    assert page.field("len").get_attribute("value") != str(changed)
    page.do("[data-action=redo]")
    assert page.field("len").get_attribute("value") == str(changed)
    keys.to("figure canvas[tabindex='0']")
    keys.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    until(lambda: "cur=" in page.run("return location.hash"), what="the cursor in the address")
    until(lambda: page.text("[data-live]"), what="the spoken value")
    keys.press("?")
    until(lambda: page.run("return document.querySelector('dialog[open] kbd') !== null"), what="the help")
    keys.press(Keys.ESCAPE)
    assert page.run("return document.activeElement.tagName") == "CANVAS"


# ---- without JavaScript -------------------------------------------------------------------------------------------------


def test_without_javascript_there_are_words_lines_links_and_a_form(driver, server):
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get("about:blank")
        driver.get(f"{server.url}/")
        text = driver.find_element("tag name", "body").text
        assert CHINESE.search(text) and "Positional encodings" in text and "curl" in text
        links = {link.get_attribute("href").removeprefix(server.url) for link in driver.find_elements("css selector", "main a")}
        assert {"/schemes", "/presets", "/openapi.json"} <= links
        schemes = [option.text for option in driver.find_elements("css selector", "select[name=scheme] option")]
        driver.find_element("css selector", "form [type=submit]").click()
        until(lambda: "/encode?" in driver.current_url, what="the picture's address")
        address = driver.current_url
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        driver.get("about:blank")
    for scheme in schemes:
        with urllib.request.urlopen(address.replace(f"scheme={schemes[0]}", f"scheme={scheme}")) as answer:
            assert answer.headers["Content-Type"] == "image/png", scheme


# Where the first picture of a view is, and where the tray of sliders begins; how wide the page is.
FIRST_SCREEN = """const tray = document.querySelector('.work > .side').getBoundingClientRect();
const seen = [...document.querySelectorAll('.view :is(.heat, .chart-plot, canvas.hands)')].find((node) => node.checkVisibility() && !node.closest('.head'));
const { top, bottom } = seen.getBoundingClientRect();
return [top, bottom, tray.top, document.documentElement.scrollWidth];"""


@pytest.mark.parametrize("width, height", [(390, 844), (844, 390), (720, 450)], ids=["phone", "landscape", "200 %"])
def test_the_whole_picture_is_on_the_first_screen(open_page, narrow, width, height):
    """Nothing scrolled: above the tray of sliders, below the banner."""
    narrow(width, height)
    for view in "table curves distance multimodal trajectory scaling".split() + (["rotate", "attention", "bias", "extrapolate"] if width == 390 else []):
        page = open_page(f"view={view}&lang=en") if view == "table" else page.go(f"view={view}&lang=en") or page

        def is_whole():
            top, bottom, tray, wide = page.run(FIRST_SCREEN)
            return 0 <= top and bottom <= tray and wide <= width
        until(is_whole, what=f"the whole picture of {view}")
