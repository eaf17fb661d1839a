"""The views rotate, attention and bias under a hand, and what they give to copy; what a link of them shows are rows of cases/views.jsonl."""
import io
import json
import re

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains

from browser import fragment, until
from figures import without_positions
from lines import Hands, vectors
from probes import Heat, array, attributes, post

DOG = ["The", "dog", "chased", "another", "dog"]
ROPE = {"scheme": "rope", "head_dim": 32}
ALIBI = {"scheme": "alibi", "num_heads": 8, "len": 24}


@pytest.mark.parametrize("pair", [0, 5, 12])
def test_a_hand_follows_the_pointer(visit, pair):
    """A quarter of a turn with the pointer is a quarter of a turn of that hand, to the nearest position."""
    page = visit(fragment("rotate", ROPE, m=3, n=1))
    clocks, q = Hands(page), vectors(page, ROPE, 3, 1)[0]["q"]
    speed = 10000 ** (-2 * pair / 32)
    start = np.array([q[2 * pair], q[2 * pair + 1]]) * clocks.unit * 0.95
    dense = page.run("return devicePixelRatio")
    middle = np.array(page.run("return [arguments[0].width, arguments[0].height]", clocks.canvas)) / 2
    moves = ActionChains(page.driver, duration=15)
    for step in range(0, 33):
        turn = np.pi / 2 * step / 32
        xy = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) @ start
        point = (clocks.centres[pair] + [xy[0], -xy[1]] - middle) / dense
        moves.move_to_element_with_offset(clocks.canvas, *np.rint(point).astype(int).tolist())
        if step == 0:
            moves.click_and_hold()
    moves.release().perform()
    page.settle()
    gone = (float(page.address()["m"]) - 3) * speed
    assert abs(gone - np.pi / 2) < max(0.12, speed), gone
    assert page.address().get("n", "1") == "1"


def test_the_product_is_spoken_and_stands_in_a_table(open_page):
    page = open_page(fragment("rotate", ROPE, m=11, n=5))
    page.press("canvas[data-hands]", "[", "]")
    until(lambda: "11" in (page.text("[data-live]") or ""), what="a word about the product")
    page.press("canvas[data-hands]", "t")
    cells = page.run("return [...document.querySelectorAll('details[data-table] td[data-row=\"0\"]')].map(c => c.textContent.replace('\\u2212', '-'))")
    assert len(cells) == 4 and np.isclose(float(cells[0]), vectors(page, ROPE, 11, 5)[0]["q"][0], rtol=1e-15)


@pytest.mark.parametrize("view, config, key, more", [("rotate", ROPE, "m", {"m": 9, "n": 6}), ("trajectory", {"scheme": "sinusoidal", "dim": 16, "len": 24}, "spin", {"spin": 30})])
def test_the_player_moves_until_it_is_stopped_and_not_where_less_motion_is_asked_for(open_page, view, config, key, more):
    page = open_page(fragment(view, config, **more))
    at = lambda: float(page.address().get(key, more[key]))  # noqa: E731
    page.click("[data-action=play]")
    until(lambda: at() >= more[key] + 3, what="play")
    page.do("[data-action=stop]")
    stopped = at()
    page.settle()
    assert at() == stopped and (view != "rotate" or stopped - float(page.address()["n"]) == 3)
    with page.media(prefers_reduced_motion="reduce"):
        until(lambda: page.run("return document.querySelector('[data-action=play]').disabled"), what="a player that is off")
        page.press("figure canvas[tabindex]", "p")
        assert at() == stopped


def test_weights_have_colours_from_zero_to_the_largest_of_all_maps(visit, server):
    """Two configurations and the one without positions are compared by colour: one scale, and the bar has it."""
    configs = [{"scheme": "rope", "dim": 96, "tokens": DOG, "base": base} for base in (10000, 100)]
    page = visit(fragment("attention", *configs))
    shown = (*configs, without_positions(page, configs[0]))
    largest = max(float(array(server, one, "probs", "/attention", dtype="f32")[0].max()) for one in shown)
    assert 0.2 < largest < 0.9
    for slot in ("a", "b", "none"):
        heat, bar = Heat(page, slot), attributes(page, page.find(f'figure[data-config="{slot}"] [data-colorbar]'))
        assert (heat.min, heat.max) == (0, largest) == (float(bar["data-min"]), float(bar["data-max"])), slot


@pytest.mark.fresh
def test_a_sentence_is_in_the_address_and_the_example_speaks_the_language_in_which_it_was_opened(open_page):
    texts = "return [...document.querySelectorAll('[data-token]')].map(b => b.textContent)"
    page = open_page(fragment("attention", {"scheme": "rope", "dim": 96, "len": 9}))
    assert page.run(texts) == DOG
    page.put("[data-field=sentence]", "小狗追小狗")
    page.driver.refresh()
    page.settle()
    assert page.run(texts) == list("小狗追小狗")
    page = open_page("view=attention&lang=zh")
    assert page.run(texts) == list("狗追另一只狗") and page.data("difference")[0] > 0 and page.data("difference", "none") == [0]


def test_a_link_from_a_bias_to_a_scheme_without_one(open_page):
    """The picture that stands when the link comes, or is still on its way, does not hide the refusal."""
    page = open_page(fragment("bias", ALIBI))
    page.go(fragment("bias", {"scheme": "rope"}))
    assert page.state("a") == "refused" and "alibi" in page.text('figure[data-config="a"] [role=alert]')


def test_what_is_shown_is_copied(visit, server):
    """The request of each view is the whole output in front."""
    for view, config, path in (("rotate", ROPE, "/rotate"), ("attention", {"scheme": "rope", "dim": 96, "tokens": DOG}, "/attention"), ("bias", ALIBI, "/encode")):
        page = visit(fragment(view, config))
        until(lambda: page.copied("json"), what="a request")
        assert re.search(rf"{path}\b", page.copied("curl"))
        assert np.load(io.BytesIO(post(server, path, **{**json.loads(page.copied("json")), "format": "npy"}))).size > 0
