"""What holds for all of the page: its frame, names and keys, both languages, both themes, phones, print, and
what is there without JavaScript."""
import json
import re
import urllib.request

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import fragment, until

LISTED = ["gallery", "walk", "table", "curves", "rotate", "attention", "bias", "distance", "multimodal", "trajectory", "scaling", "explain", "properties", "extrapolate", "diagnose", "experiment", "docs", "server", "weights"]
VIEWS = [*LISTED, "story"]  # of stories the navigation has each by its name
ALONE = {"gallery", "walk", "weights", "docs", "server", "story"}  # no configurations beside them
ROPE = {"scheme": "rope", "head_dim": 32, "len": 64}
CHINESE = re.compile(r"[\u3400-\u9fff]")


@pytest.fixture
def narrow(driver):
    """narrow(width): as a phone or a smaller window has it; None: as wide as at first."""
    def resize(width, height=900):
        if width:
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700})
        else:
            driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[0])))")  # the page has seen it

    yield resize
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


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
    page.click("nav a[data-view=curves]")
    page.settle()
    assert page.run("return [...document.querySelectorAll('[aria-current=page]')].map(a => a.dataset.view)") == ["curves"]
    assert page.text("h1") == "Curves"
    page.driver.back()
    page.settle()
    assert page.text("h1") == "Table"


# Of each link of the navigation that there is room for now: does its middle show, so that a pointer hits it?
SEEN = """return [...document.querySelectorAll(arguments[0])].filter((link) => !link.hidden).map((link) => {
  const { left, right, top, bottom } = link.getBoundingClientRect();
  return left >= 0 && right <= innerWidth && link.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2)); })"""
GROUPS = {"learn": ["gallery", "walk"], "see": ["table", "curves", "rotate", "attention", "bias", "distance", "multimodal", "trajectory"], "compare": ["scaling", "explain", "properties", "extrapolate"],
          "diagnose": ["diagnose"], "train": ["experiment"], "service": ["docs", "server", "weights"]}
ROW = "return [...document.querySelectorAll('.nav-views > a')].filter((link) => !link.hidden).map((link) => link.dataset.view ?? link.dataset.story)"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_link_of_the_navigation_is_seen_or_scrolled_to(visit, narrow, lang):
    page = visit(f"view=table&lang={lang}")
    for width in (320, 390, 768, 1080, 1440):
        narrow(width)
        for view in ("weights", "trajectory"):
            page.hash(f"view={view}&lang={lang}")
            page.settle()
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


# How many lines the visible children of an element take.
LINES = """const rows = [...document.querySelector(arguments[0]).children].filter((one) => one.checkVisibility() && one.offsetWidth)
  .map((one) => one.getBoundingClientRect()).sort((one, other) => one.top - other.top);
return rows.reduce((lines, { top, bottom }) => top >= (lines.at(-1) ?? -1) ? [...lines, bottom] : lines, []).length"""


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_at_1440_menus_and_the_tools_of_attention_take_one_line(visit, narrow, lang):
    narrow(1440)
    for views in GROUPS.values():
        assert visit(f"view={views[0]}&lang={lang}").run(LINES, ".nav-views") == 1, views[0]
    page = visit(f"view=attention&lang={lang}")
    assert page.run(LINES, "figure[data-config=a] .heat-tools") == 1
    assert page.all("[data-slider=at]"), "the head is still chosen"


def test_views_are_found_by_question_and_explained_by_a_story(visit):
    page = visit("view=gallery")
    for group, views in GROUPS.items():
        page.click(f"nav a[data-group={group}]")
        page.settle()
        assert page.run("return document.querySelector('nav a[data-group][aria-current]').dataset.group") == group
        assert [one for one in page.run(ROW) if one in LISTED] == views
        assert page.attribute("nav [data-view][aria-current=page]", "data-view") == views[0]
        explained = page.run("const link = document.querySelector('.explained'); return link.hidden ? null : [link.dataset.story, link.hash]")
        assert (explained is None) == (views[0] in ALONE) and (explained is None or explained[1].endswith(f"story={explained[0]}")), group
    page = visit("view=gallery")
    stories = [one for one in page.run(ROW) if one not in LISTED]
    assert len(stories) == 5
    page.click(f"nav a[data-story={stories[2]}]")
    page.settle()
    assert page.run("return [...document.querySelectorAll('nav[aria-label] > * > [aria-current]')].map((a) => a.dataset.group ?? a.dataset.story)") == ["learn", stories[2]]


def test_labels_of_controls_begin_alike(visit):
    """As the labels of the form do."""
    for view in ("rotate", "attention", "distance", "scaling", "extrapolate", "experiment", "trajectory", "bias"):
        page = visit(f"view={view}&lang=en")
        starts = page.run("""return [...document.querySelectorAll('.view :is(.view-controls, .controls, .heat-leads) .field')].filter((one) => one.checkVisibility())
          .map((one) => [one.firstChild.textContent.trim()[0], getComputedStyle(one.firstChild, '::first-letter').textTransform])""")
        assert starts and all(letter.isupper() or how == "uppercase" for letter, how in starts), (view, starts)


def test_what_sticks_stands_below_the_banner(visit, narrow):
    """Its height depends on the width; what gets the focus is not covered."""
    for width in (1180, 1440, 1920):
        narrow(width)
        page = visit(fragment("table", ROPE, lang="en"))
        page.run("scrollTo(0, 400)")
        tops = page.run("return ['body > header', '.side'].map((one) => document.querySelector(one).getBoundingClientRect()).map(({ top, bottom }) => [top, bottom])")
        assert tops[0][0] == 0 and tops[0][1] <= tops[1][0] <= tops[0][1] + 20, width


def test_docs_has_an_address_of_its_own(open_page, server):
    page = open_page()
    page.driver.get(f"{server.url}/docs")
    page.settle()
    assert page.attribute("[aria-current=page]", "data-view") == "docs"


def test_keys_that_cannot_be_read_are_named(open_page):
    page = open_page(fragment("curves", ROPE) + "&zoom=big&hi=x")
    notice = page.run("return [...document.querySelectorAll('[data-notice=state] code')].map(c => c.textContent)")
    assert notice == ["zoom", "hi"]
    page.hash(fragment("curves", ROPE))
    page.settle()
    assert page.text("[data-notice=state]") is None


def test_the_last_configuration_removed_leaves_five_examples(open_page):
    page = open_page(fragment("curves", ROPE))
    page.click("[data-action=remove]")
    page.settle()
    assert page.run("return location.hash").endswith("a=null")
    assert page.run("return document.querySelector('figure[data-state=empty]').checkVisibility()")
    assert len(page.all("figure[data-state=empty] a[data-scheme]")) == 5
    page.click("[data-action=undo]")
    page.settle()
    assert page.state() == "ready"
    page.click("[data-action=redo]")
    page.settle()
    page.click("figure[data-state=empty] a[data-scheme=sinusoidal]")
    page.settle()
    assert page.state() == "ready"


def test_up_to_four_configurations(open_page):
    page = open_page(fragment("curves", ROPE))
    for slots in ("ab", "abc", "abcd"):
        page.click("[data-action=add]")
        page.settle()
        assert page.run("return [...document.querySelectorAll('figure[data-config]')].map(f => f.dataset.config).join('')") == slots
    assert page.run("return document.querySelector('[data-action=add]').disabled")


DIFFERING = ["table", "curves", "attention", "bias", "distance", "trajectory"]


@pytest.mark.parametrize("view", [view for view in LISTED if view not in ALONE])
def test_a_difference_is_shown_or_it_is_said_where(visit, view):
    page = visit(fragment(view, ROPE, {**ROPE, "base": 500}, on="b-a", lang="en"))
    links = page.run("return [...document.querySelectorAll('main [data-notice=difference] a')].map((a) => [a.dataset.view, a.textContent, a.getAttribute('href')])")
    if view in DIFFERING:
        assert links == [] and page.all("figure[data-config='b-a']")
        return
    assert [able for able, *_ in links] == DIFFERING and all(text for _, text, _ in links)
    page.run("const n = document.querySelector('[data-field=len][data-config=b]'); n.value = 32; n.dispatchEvent(new Event('input', { bubbles: true }))")
    page.settle()
    page.click("main [data-notice=difference] a[data-view=table]")
    until(lambda: page.text("h1") == "Table", what="the view")  # a link is followed once the click is over
    page.settle()
    assert page.state("b-a") and page.field("len", "b").get_attribute("value") == "32"
    assert not page.all("[data-notice=difference]")


# ---- paste and drop -----------------------------------------------------------------------------------------------------

PASTE = """const data = new DataTransfer(); data.setData('text/plain', arguments[0]);
document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));"""
DROP = """const data = new DataTransfer(); data.items.add(new File([arguments[1]], arguments[0]));
document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));"""
CONFIG = {"model_type": "llama", "rope_theta": 500000.0, "hidden_size": 256, "num_attention_heads": 4, "max_position_embeddings": 8192}


def config_of(page):
    hash_ = urllib.request.unquote(page.run("return location.hash"))
    return json.loads(re.search(r"&a=(\{.*?\})(&[a-z]+=|$)", hash_)[1])


def test_a_pasted_link_request_or_curl_is_shown(open_page, server):
    page = open_page("view=gallery")
    page.run(PASTE, json.dumps(ROPE))
    until(lambda: page.text("h1") == "Table", what="a view that shows a request")
    page.settle()
    assert config_of(page) == ROPE
    page.run(PASTE, f"curl -d '{json.dumps(dict(ROPE, base=500))}' {server.url}/encode")
    until(lambda: config_of(page).get("base") == 500, what="the pasted command")
    page.run(PASTE, f"{server.url}/#{fragment('curves', ROPE)}&cols=3")
    until(lambda: page.text("h1") == "Curves", what="the pasted link")
    page.settle()
    assert page.state() == "ready"


def test_what_is_pasted_into_a_field_stays_there(open_page):
    page = open_page(fragment("curves", ROPE))
    page.run("""const data = new DataTransfer(); data.setData('text/plain', '{"scheme":"alibi"}');
    document.querySelector('[data-field="len"]').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true }));""")
    page.settle()
    assert config_of(page) == ROPE


@pytest.mark.parametrize("way", ["drop", "choose"])
def test_a_dropped_or_chosen_model_configuration(open_page, tmp_path, way):
    page = open_page(fragment("table", ROPE))
    if way == "drop":
        page.run(DROP, "config.json", json.dumps(CONFIG))
    else:
        file = tmp_path / "config.json"
        file.write_text(json.dumps(CONFIG))
        page.find("input[type=file][data-drop]").send_keys(str(file))
    until(lambda: "hf_config" in config_of(page), what="hf_config")
    page.settle()
    assert config_of(page)["hf_config"] == CONFIG and page.state() == "ready"


def test_a_tensor_is_diagnosed_and_nonsense_gets_a_notice(open_page):
    page = open_page(fragment("table", ROPE))
    page.run(PASTE, "the dog chased another dog")
    until(lambda: page.text("[data-notice=paste]"), what="the notice")
    assert config_of(page) == ROPE
    page.run(DROP, "q k.npy", "x")
    page.wait_state("refused", "none")
    page.settle()
    assert page.text("h1") == "Diagnose" and "--data-binary @'q k.npy'" in page.copied("curl")
    assert config_of(page) == ROPE


# ---- names --------------------------------------------------------------------------------------------------------------

CONTROLS = {"button", "link", "textbox", "searchbox", "slider", "spinbutton", "combobox", "checkbox", "radio", "application", "dialog"}


def nameless(driver):
    nodes = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    shown = [node for node in nodes if not node["ignored"] and node["role"]["value"] in CONTROLS]
    assert len(shown) > 20
    return [f'{node["role"]["value"]} {node["nodeId"]}' for node in shown if not node.get("name", {}).get("value", "").strip()]


# What a text of the page may not hold in a language; names of the field stand where no language translates them.
STRAY = """const chinese = arguments[0];
const apart = 'script, style, noscript, code, pre, kbd, samp, math, svg, [translate=no]';
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const wrong = [];
const bad = (text) => chinese ? /[A-Za-z]{2,} +[A-Za-z]{2,}/.test(text) : /[\\u3400-\\u9fff]/.test(text);
const foreign = (node) => { const lang = node.closest('[lang]').lang; return chinese ? lang === 'en' : lang.startsWith('zh'); };
while (walker.nextNode()) {
  const parent = walker.currentNode.parentElement;
  if (!parent.closest(apart) && !foreign(parent) && bad(walker.currentNode.data)) wrong.push(walker.currentNode.data.trim());
}
for (const node of document.querySelectorAll('[aria-label], [title], [placeholder], [alt]')) {
  for (const name of ['aria-label', 'title', 'placeholder', 'alt']) {
    const text = node.getAttribute(name);
    if (name === 'placeholder' && node.translate === false) continue;   /* a value, not a text of the page */
    if (text && !chinese && !foreign(node) && bad(text)) wrong.push(name + ': ' + text);
  }
}
return wrong;"""
KEYS = "return [...document.body.innerText.matchAll(/\\b[a-z]+\\.[a-z]+[A-Z.][\\w.]+\\b/g)].map(m => m[0])"


def speaks_one_language_and_names_every_control(page, lang):
    assert page.run("return document.documentElement.lang") == {"en": "en", "zh": "zh-CN"}[lang]
    page.run("for (const part of document.querySelectorAll('main details')) part.open = true")
    page.settle()
    assert nameless(page.driver) == []
    assert page.run(STRAY, lang == "zh") == []
    text = page.run("return document.body.innerText")
    assert "undefined" not in text and "[object" not in text and "NaN" not in text
    if lang == "zh":
        assert CHINESE.search(page.driver.title) and CHINESE.search(page.text("main"))


def test_a_sentence_of_the_other_language_is_a_value_and_not_a_text(open_page):
    page = open_page("view=attention&lang=zh")
    page.hash("view=attention&lang=en")
    page.settle()
    assert page.run("return document.querySelector('[data-field=sentence]').value") == "狗追另一只狗"
    assert page.run(STRAY, False) == []


def test_another_language_rewrites_texts_and_draws_nothing(open_page):
    page = open_page(fragment("table", ROPE))
    page.run("""window.drawn = 0; const put = CanvasRenderingContext2D.prototype.putImageData;
    CanvasRenderingContext2D.prototype.putImageData = function (...all) { window.drawn++; return put.apply(this, all); };""")
    before = page.run("return location.hash")
    page.click("[data-action=lang]")
    until(lambda: page.run("return document.documentElement.lang") == "zh-CN", what="Chinese")
    page.settle()
    assert page.driver.title == "数值表 · posenc" and page.text("h1") == "数值表"
    assert page.run("return [location.hash, window.drawn]") == [before, 0]
    page.driver.refresh()
    page.settle()
    assert page.text("h1") == "数值表"  # the last choice holds
    page.hash(fragment("table", ROPE, lang="en"))
    until(lambda: page.text("h1") == "Table", what="the language of the address")


# ---- themes -------------------------------------------------------------------------------------------------------------

# Text on its background, by WCAG's ratio; what lies over a picture or is disabled does not count.
CONTRAST = """const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const rgba = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
const over = (top, below) => top.slice(0, 3).map((value, i) => value * top[3] + below[i] * (1 - top[3]));
const light = (color) => { const [r, g, b] = color.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
function behind(node) { const layers = []; for (let at = node; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]); }
const weak = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.data.trim(), node = walker.currentNode.parentElement;
  if (!text || !node.checkVisibility({ visibilityProperty: true }) || node.closest('script, noscript, :disabled, option, .visually-hidden')) continue;
  const back = behind(node), color = over(rgba(getComputedStyle(node).color), back);
  const [hi, lo] = [light(color), light(back)].sort((a, b) => b - a);
  if ((hi + 0.05) / (lo + 0.05) < 4.5) weak.push(`${text.slice(0, 40)}: ${((hi + 0.05) / (lo + 0.05)).toFixed(2)}`);
}
return weak;"""


def texts_stand_out(page, view):
    for theme in ("light", "dark"):
        page.hash(f"view={view}&lang=en&theme={theme}")
        page.settle()
        assert page.run("return document.documentElement.dataset.theme") == theme
        assert page.run(CONTRAST) == [], theme


def test_the_theme_is_kept_and_the_address_overrules_it(open_page):
    page = open_page("view=gallery")
    paper = "return getComputedStyle(document.body).backgroundColor"
    before = page.run(paper)
    page.click("[data-action=theme]")
    chosen = page.run("return document.documentElement.dataset.theme")
    assert page.run(paper) != before and "theme" not in page.run("return location.hash")
    page.driver.refresh()
    page.settle()
    assert page.run("return document.documentElement.dataset.theme") == chosen
    page.hash("view=gallery&theme=light")
    until(lambda: page.run("return document.documentElement.dataset.theme") == "light", what="the theme of the address")


COLOURS = """const style = getComputedStyle(document.documentElement);
return ['color-scheme', '--ink', '--paper', '--good', '--a', '--raised'].map((name) => style.getPropertyValue(name).trim());"""


@pytest.mark.fresh  # nothing is chosen
def test_a_theme_holds_whatever_the_browser_prefers(open_page, driver):
    def prefer(value):
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": value}] if value else []})

    colours = {}
    try:
        for preferred in ("dark", "light"):
            prefer(preferred)
            page = open_page("view=gallery")
            for theme in ("light", "dark", None):
                page.hash("view=gallery" + (f"&theme={theme}" if theme else ""))
                until(lambda: page.run("return document.documentElement.dataset.theme") == (theme or preferred), what=f"{theme} where {preferred} is preferred")
                assert colours.setdefault(theme or preferred, page.run(COLOURS)) == page.run(COLOURS), (theme, preferred)
        prefer("dark")  # while the page is open
        until(lambda: page.run(COLOURS) == colours["dark"], what="what the browser now prefers")
        assert [one[0] for one in colours.values()] == ["light", "dark"] and all(light != dark for light, dark in zip(*colours.values()))
    finally:
        prefer(None)


# ---- widths, targets, print ---------------------------------------------------------------------------------------------

SMALL = """return [...document.querySelectorAll('button, select, input, summary, nav a, a.button, canvas[tabindex]')]
  .filter((node) => node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !node.closest('.visually-hidden'))
  .map((node) => [node.outerHTML.slice(0, 90), node.getBoundingClientRect()])
  .filter(([, box]) => box.width > 0 && (box.width < 23.9 || box.height < 23.9)).map(([text, box]) => `${text} ${box.width}x${box.height}`)"""


def no_width_scrolls_sideways_and_targets_are_large_enough(page, narrow, widths):
    page.run("for (const one of document.querySelectorAll('figure details')) one.open = true")
    page.settle()
    for width in widths:
        narrow(width)
        page.settle()
        until(lambda: page.run("return document.documentElement.scrollWidth") <= width, 5, f"a page of {width}")  # a figure is drawn again a moment later
        assert width != 390 or page.run(SMALL) == []


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view(visit, narrow, view, lang):
    """All of it on one visit, since drawing a view takes longer than looking at it."""
    page = visit(f"view={view}&lang={lang}")
    assert page.run("return document.querySelector('.side').checkVisibility()") == (view not in ALONE)
    if lang == "en":
        texts_stand_out(page, view)
    no_width_scrolls_sideways_and_targets_are_large_enough(page, narrow, [320, 390, 1080] if lang == "en" else [390])
    narrow(None)
    speaks_one_language_and_names_every_control(page, lang)


@pytest.mark.slow
@pytest.mark.parametrize("lang, widths", [("en", [768, 1440]), ("zh", [320, 768, 1080, 1440])], ids=str)
@pytest.mark.parametrize("view", VIEWS)
def test_other_widths(visit, narrow, view, lang, widths):
    no_width_scrolls_sideways_and_targets_are_large_enough(visit(f"view={view}&lang={lang}"), narrow, widths)


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


@pytest.mark.parametrize("size", [(390, 844), (768, 1024), (1024, 768), (720, 450)], ids="{0[0]}x{0[1]}".format)
def test_a_slider_and_the_picture_that_it_changes_are_on_screen_together(visit, narrow, size):
    """720 x 450 is a window of 1440 x 900 at 200 %. Views that stand here by name alone show their example."""
    llama, qwen = {"preset": "llama-3.1", "len": 256}, {"preset": "qwen2.5", "len": 256}
    for view, *configs in (("table", llama, qwen), ("curves", ROPE), ("attention", {"scheme": "rope", "tokens": ["a", "b", "a"]}), ("distance", ROPE), ("scaling", llama), ("properties",), ("trajectory",), ("multimodal",)):
        page = visit(fragment(view, *configs, on="b" if len(configs) > 1 else "a"))
        narrow(*size)
        page.settle()
        sliders = page.run(TRAY)
        assert 1 <= len(sliders) <= 6, (view, size)
        for slider in (sliders[0], sliders[-1]):
            page.run("document.activeElement.blur(); scrollTo(0, 1e5)")
            slot = slider.get_attribute("data-config")
            assert slot == ("b" if len(configs) > 1 else "a")
            hand, picture, height = page.run(TOGETHER, slider, slot)
            assert hand and picture, (view, size, slider.get_attribute("data-slider"), hand, picture, height)


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


# Of the nearest edges of two elements, one above the other.
GAP = "const [upper, lower] = [...arguments].map((one) => document.querySelector(one).getBoundingClientRect()); return lower.top - upper.bottom"


def test_no_empty_band_between_what_belongs_together(visit, narrow):
    narrow(1440)
    for view in ("extrapolate", "properties", "experiment"):  # whose forms are longer than their figures
        assert visit(f"view={view}&lang=en").run(GAP, ".view", ".inspector") <= 40, view
    assert visit("view=attention&lang=en").run(GAP, ".tokens", "figure[data-config=a]") <= 40


def test_print_is_light_with_figure_caption_request_and_address(open_page):
    page = open_page(fragment("table", ROPE, theme="dark"))
    page.run("dispatchEvent(new Event('beforeprint'))")
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        shown = "return document.querySelector(arguments[0]).checkVisibility()"
        for selector in ("canvas[data-heat]", "figcaption", "pre[data-copy]:not([hidden])", ".address", "h1"):
            assert page.run(shown, selector), selector
        for selector in ("nav", "[data-action=help]", "[data-slider]"):
            assert not page.run(shown, selector), selector
        assert page.text(".address") == page.driver.current_url.replace("%20", "")
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
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
        for key in keys[:-1]:
            chain.key_down(key)
        chain.send_keys(keys[-1])
        for key in keys[:-1]:
            chain.key_up(key)
        chain.perform()

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
    until(lambda: page.text("h1") == "Table", what="the first view")
    page.settle()
    keys.to("nav a[data-view=curves]")
    keys.press(Keys.ENTER)
    until(lambda: page.text("h1") == "Curves", what="the view")
    page.settle()
    keys.to("[data-slider=len]")
    before = page.run("return document.activeElement.value")
    keys.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    page.settle()
    changed = config_of(page)["len"]
    assert page.run("return document.activeElement.value") != before
    keys.chord(Keys.CONTROL, "z")
    page.settle()
    assert page.field("len").get_attribute("value") != str(changed)
    keys.chord(Keys.CONTROL, Keys.SHIFT, "z")
    page.settle()
    assert page.field("len").get_attribute("value") == str(changed)
    keys.to("figure canvas[tabindex='0']")
    keys.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    until(lambda: "cur=" in page.run("return location.hash"), what="the cursor in the address")
    until(lambda: page.text("[data-live]"), what="the spoken value")
    keys.press("?")
    until(lambda: page.run("return document.querySelector('dialog[open] kbd') !== null"), what="the help")
    keys.press(Keys.ESCAPE)
    assert page.run("return document.activeElement.tagName") == "CANVAS"


def test_keys_of_figures_do_nothing_outside(open_page):
    page = open_page(fragment("table", ROPE))
    before = page.run("return location.hash")
    page.run("document.activeElement.blur()")
    Keyboard(page).press("+", "0", "r", "m", "t", "?", Keys.ARROW_DOWN)
    page.settle()
    assert page.run("return [location.hash, document.querySelectorAll('dialog[open]').length]") == [before, 0]


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
