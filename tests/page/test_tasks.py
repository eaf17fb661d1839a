"""Ten things that newcomers want to do, from the start view on, by clicks that a hand could make: how many, and that the answer is on the screen
without scrolling. Everything is clicked where it is seen, never by script."""
import json
import re
import subprocess
import sys

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import DROP_FILES, until
from test_diagnose_view import array_of, npy
from test_requests import save

pytestmark = pytest.mark.fresh

COUNT = "window.clicked = 0; addEventListener('click', ({ isTrusted, detail }) => { clicked += isTrusted && detail > 0; }, true);"
SEEN = """const box = [...document.querySelectorAll(arguments[0])].find((one) => one.checkVisibility())?.getBoundingClientRect();
return box && box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth;"""


class Newcomer:
    def __init__(self, page):
        self.page = page
        page.run(COUNT)

    @property
    def clicks(self):
        return self.page.run("return clicked")

    def click(self, selector):
        """By the pointer, at the first that is seen."""
        found = next(one for one in self.page.all(selector) if one.is_displayed())
        self.page.run("arguments[0].scrollIntoView({ block: 'nearest', behavior: 'instant' })", found)
        ActionChains(self.page.driver).click(found).perform()
        return self

    def comes_to(self, view):
        self.page.comes(lambda: self.page.attribute("main", "data-open") == view, f"the view {view}")
        return self

    def sees(self, selector):
        until(lambda: self.page.run(SEEN, selector), what=f"{selector} on the screen")
        return self.page.run("return [...document.querySelectorAll(arguments[0])].find((one) => one.checkVisibility()).textContent", selector)


@pytest.fixture
def newcomer(open_page):
    page = open_page("lang=en")
    page.settle()
    return Newcomer(page)


def test_find_rope_and_drag_its_base(newcomer):
    page = newcomer.page
    before = page.run("return document.querySelector('.live-picture').src")
    slider = page.find(".live [data-slider=base]")
    ActionChains(page.driver).move_to_element(slider).click_and_hold().move_by_offset(60, 0).release().perform()
    until(lambda: page.run("return document.querySelector('.live-picture').src") != before, what="the picture follows")
    ActionChains(page.driver).move_to_element(page.find("input[type=search]")).click().send_keys("rope", Keys.ENTER).perform()
    newcomer.comes_to("table").sees("[data-slider=base]")
    newcomer.sees("figure canvas[data-heat]")  # hand and picture together
    assert '"scheme":"rope"' in page.run("return decodeURIComponent(location.hash)")


def test_llama_against_qwen(newcomer):
    newcomer.click("main a[href*='llama-3.1'][href*='qwen2.5']").comes_to("table")
    assert newcomer.clicks == 1
    answer = newcomer.sees(".parting")
    assert re.search(r"Llama 3\.1.*Qwen2\.5.*base.*500000.*1000000.*part by more than 0\.01", answer, re.S), answer


def test_two_dogs(newcomer):
    newcomer.click("main a[href*='view=attention']").comes_to("attention")
    assert newcomer.clicks == 1
    assert "dog" in newcomer.sees("figure[data-config=a] figcaption") and float(newcomer.page.attribute("figure[data-config=a] [data-what=difference]", "value")) > 0.01
    assert newcomer.page.attribute("figure[data-config=none] [data-what=difference]", "value") == "0"


def test_paste_a_configuration(newcomer):
    page, config = newcomer.page, {"model_type": "llama", "rope_theta": 500000.0, "hidden_size": 256, "num_attention_heads": 4, "max_position_embeddings": 8192}
    newcomer.click("main [data-action=paste]")
    ActionChains(page.driver).send_keys(json.dumps(config)).perform()
    newcomer.click("dialog [data-action=start]")
    page.comes(lambda: "hf_config" in page.run("return decodeURIComponent(location.hash)"), "the configuration")
    assert newcomer.clicks == 2 and page.state() == "ready"
    newcomer.sees("figure[data-config=a]")


def test_drop_a_pair_that_was_rotated_otherwise(newcomer):
    page, q = newcomer.page, {"$normal": [8, 64], "seed": 5, "dtype": "f32"}
    pair = {"q": q, "q_out": {"$truth": {"scheme": "rope", "layout": "interleaved", "q": q}, "tensor": "q_out"}}
    page.run(DROP_FILES, [[f"{name}.npy", list(npy(array_of(spec)))] for name, spec in pair.items()])
    newcomer.comes_to("diagnose")
    assert newcomer.clicks == 0
    newcomer.sees("[data-candidate]")


def test_train_alibi_against_sinusoids(newcomer):
    newcomer.click("nav a[data-group=train]").comes_to("experiment")
    assert newcomer.clicks == 1
    schemes = newcomer.page.run("return decodeURIComponent(location.hash) + document.querySelector('main').textContent")
    assert "alibi" in schemes and "sinusoidal" in schemes
    newcomer.sees("figure[data-output=loss] canvas[data-lines]")
    newcomer.sees("figure[data-output=excess] canvas[data-lines]")


def test_read_a_story_in_chinese_on_a_phone(newcomer, narrow):
    page = newcomer.page
    narrow(390, 844)
    newcomer.click("[data-action=lang]")
    until(lambda: page.attribute("html", "lang") == "zh-CN", what="Chinese")
    newcomer.click("main a[data-story=designing]").comes_to("story")
    assert newcomer.clicks == 2 and page.run("return document.documentElement.scrollWidth") <= 390
    assert re.search("[\u3400-\u9fff]{6}", newcomer.sees("article section h2") + newcomer.sees("article section p"))


def test_copy_and_run(newcomer, server):
    page = newcomer.click("main a[href*='view=table'][data-scheme=sinusoidal]").comes_to("table").page
    newcomer.click("#tab-python").click("[data-action=copy]")
    until(lambda: "Copied" in page.text("[data-live]"), what="that it is copied")
    assert newcomer.clicks == 3
    ended = subprocess.run([sys.executable, "-c", page.copied("python")], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0 and re.fullmatch(r"float32 \(\d+, \d+\)\n", ended.stdout), ended


def test_send_a_link(newcomer):
    page = newcomer.click("main a[href*='llama-3.1'][href*='qwen2.5']").comes_to("table").page
    newcomer.click("[data-action=link]")
    until(lambda: "Copied" in page.text("[data-live]"), what="that it is copied")
    assert newcomer.clicks == 2
    drawn = "return [...document.querySelectorAll('canvas[data-heat]')].map((one) => [one.toDataURL(), one.dataset.min, one.dataset.max])"
    before, link = page.run(drawn), page.copied("url")
    page.open(link.split("#")[1])
    assert page.run(drawn) == before


def test_save_a_picture(newcomer):
    page = newcomer.click("main a[href*='view=table'][data-scheme=sinusoidal]").comes_to("table").page
    name, data = save(page, "figure")
    assert newcomer.clicks == 2 and name.endswith(".png") and data.startswith(b"\x89PNG")
    assert page.all("button[data-action=svg]")
