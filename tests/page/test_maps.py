"""The views rotate, attention and bias: what they show against values asked separately, and against NumPy where the page
shows a product."""
import base64
import io
import json
import re

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import fragment, until
from probes import PIXELS, Heat, array, attributes, post, shape_of

DOG = ["The", "dog", "chased", "another", "dog"]
ROPE = {"scheme": "rope", "head_dim": 32}


def data(page, what, config="a"):
    """Numbers of a figure by their data-what."""
    found = page.run("return [...document.querySelectorAll(`figure[data-config=\"${arguments[0]}\"] data[data-what=\"${arguments[1]}\"]`)].map(d => d.value)", config, what)
    return [float(value) for value in found]


def slide(page, selector, value):
    page.run("const field = document.querySelector(arguments[0]); field.value = arguments[1]; field.dispatchEvent(new Event('input', {bubbles: true}))", selector, value)
    page.settle()


def own(page, key):
    """A key of the address."""
    return dict(part.split("=", 1) for part in page.run("return location.hash.slice(1)").split("&")).get(key)


def refusal(page, config):
    return page.text(f'figure[data-config="{config}"] [role=alert]')


# ---- rotate ------------------------------------------------------------------------------------------------------------------


class Clocks:
    """The canvas of clock hands: where each stands, and the colours of its pixels."""

    def __init__(self, page, config="a"):
        self.page = page
        self.canvas = page.find(f'figure[data-figure="rotate"][data-config="{config}"] canvas[data-hands]')
        found = {name[5:]: value for name, value in attributes(page, self.canvas).items() if name.startswith("data-")}
        self.pairs = [int(pair) for pair in found["pairs"].split(",")]
        self.centres = np.array([[float(x) for x in found[axis].split(",")] for axis in ("cx", "cy")]).T
        self.unit, self.radius = float(found["unit"]), float(found["radius"])
        self.positions = {"m": float(found["m"]), "n": float(found["n"])}
        self.colours = {hand: np.array([int(found[hand][i:i + 2], 16) for i in (1, 3, 5)]) for hand in "qk"}

    def tip(self, i, xy):
        return self.centres[i] + np.array([xy[0], -xy[1]]) * self.unit

    def pixels(self):
        width, height, text = self.page.run(PIXELS, self.canvas)
        return np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)

    def has(self, pixels, hand, point):
        """Is this colour near a point?"""
        x, y = np.rint(point).astype(int)
        near = pixels[max(0, y - 2):y + 3, max(0, x - 2):x + 3, :3].astype(int)
        return (np.abs(near - self.colours[hand]).sum(-1) <= 12).any()


def vectors(server, config, width, m, n):
    """q and k rotated, asked for by this test."""
    random = {"shape": [1, width], "seed": 186, "std": 1}
    request = {**config, "q": random, "k": random, "q_positions": [m], "k_positions": [n]}
    return [array(server, request, name, "/rotate")[0] for name in "qk"]


def channels(layout, count, first=0):
    return [(first + 2 * i, first + 2 * i + 1) if layout == "interleaved" else (first + i, first + i + count) for i in range(count)]


CONFIGS = [(ROPE, "interleaved", 16, 0), ({**ROPE, "layout": "half", "base": 500000}, "half", 16, 0), ({**ROPE, "rotary_dim": 16, "rotary_offset": 8}, "interleaved", 8, 8),
           ({**ROPE, "layout": "interleaved_to_half"}, "half", 16, 0), ({"scheme": "xpos", "head_dim": 32, "direction": -1}, "interleaved", 16, 0)]


@pytest.mark.parametrize("config, layout, count, first", CONFIGS, ids=lambda value: json.dumps(value) if isinstance(value, dict) else None)
def test_hands_point_where_rotate_says(visit, server, config, layout, count, first):
    page = visit(fragment("rotate", config, m=13, n=4))
    clocks = Clocks(page)
    q, k = vectors(server, config, 32, 13, 4)
    pixels, pairs = clocks.pixels(), channels(layout, count, first)
    assert clocks.pairs == list(range(count)) and clocks.positions == {"m": 13, "n": 4}
    longest = max(np.hypot(v[x], v[y]) for v in (q, k) for x, y in pairs)
    assert clocks.unit * longest < clocks.radius
    for i, (x, y) in enumerate(pairs):
        assert clocks.has(pixels, "q", clocks.tip(i, (q[x], q[y]))), f"q, pair {i}"
        assert clocks.has(pixels, "k", clocks.tip(i, 0.8 * np.array([k[x], k[y]]))) or np.hypot(k[x] - q[x], k[y] - q[y]) < 0.5, f"k, pair {i}"


@pytest.mark.parametrize("config", [config for config, *_ in CONFIGS], ids=json.dumps)
def test_products_are_those_of_the_rotated_vectors(visit, server, config):
    page = visit(fragment("rotate", config, m=40, n=-3))
    q, k = vectors(server, config, 32, 40, -3)
    for what, value in {"product": q @ k, "q-squared": q @ q, "k-squared": k @ k}.items():
        assert data(page, what) == [pytest.approx(value, rel=1e-13, abs=1e-13)], what


def test_shifting_both_leaves_the_product(visit):
    page = visit(fragment("rotate", ROPE, m=9, n=6))
    before = data(page, "product")
    for position in (7, 30, 200):
        slide(page, '[data-slider="both"]', position) if position <= 64 else slide(page, '[data-field="both"]', position)
        assert (own(page, "m"), own(page, "n")) == (str(position + 3), str(position))
    assert data(page, "product") == [pytest.approx(before[0], abs=1e-12)]
    assert data(page, "difference")[0] < 1e-12
    slide(page, '[data-slider="m"]', 12)
    assert data(page, "product") != [pytest.approx(before[0], abs=1e-3)]


@pytest.mark.parametrize("pair", [0, 5, 12])
def test_a_hand_follows_the_pointer(visit, server, pair):
    """A quarter of a turn with the pointer is a quarter of a turn of that hand, to the nearest position."""
    page = visit(fragment("rotate", ROPE, m=3, n=1))
    clocks = Clocks(page)
    q, _ = vectors(server, ROPE, 32, 3, 1)
    speed = 10000 ** (-2 * pair / 32)
    start = np.array([q[2 * pair], q[2 * pair + 1]]) * clocks.unit * 0.95
    dense = page.run("return devicePixelRatio")
    middle = np.array([page.run("return arguments[0].width", clocks.canvas), page.run("return arguments[0].height", clocks.canvas)]) / 2
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
    gone = (float(own(page, "m")) - 3) * speed
    assert abs(gone - np.pi / 2) < max(0.12, speed), gone
    assert own(page, "n") is None or own(page, "n") == "1"


def test_keys_step_positions_and_are_spoken_of(open_page):
    page = open_page(fragment("rotate", ROPE, m=9, n=6))
    canvas = page.find("canvas[data-hands]")
    canvas.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN, "]")
    page.settle()
    assert (own(page, "m"), own(page, "n")) == ("12", "6")
    canvas.send_keys("[")
    page.settle()
    assert (own(page, "m"), own(page, "n")) == ("11", "5")
    for key, m in ((Keys.PAGE_DOWN, "21"), (Keys.PAGE_UP, "11"), (Keys.END, "64"), (Keys.HOME, "0")):
        canvas.send_keys(key)
        page.settle()
        assert (own(page, "m"), own(page, "n")) == (m, "5")
    page.hash(fragment("rotate", ROPE, m=11, n=5))
    page.settle()
    canvas.send_keys("[", "]")
    page.settle()
    until(lambda: "11" in (page.text("[data-live]") or ""), what="a word about the product")
    canvas.send_keys("t")
    page.settle()
    cells = page.run("return [...document.querySelectorAll('details[data-table] td[data-row=\"0\"]')].map(c => c.textContent)")
    assert len(cells) == 4 and np.allclose([float(cell.replace("\u2212", "-")) for cell in cells][:1], [post_rotated(page)[0]], rtol=1e-15)


def post_rotated(page):
    """The first pair of q as the request of the page asks for it."""
    request = {**json.loads(page.text('pre[data-copy="json"]')), "format": "json", "dtype": "f64"}
    return json.loads(page.run("return fetch('/rotate', {method: 'POST', body: JSON.stringify(arguments[0])}).then(a => a.text())", request))["tensors"]["q"]["data"][0]


def test_the_player_shifts_both_and_stops(open_page):
    page = open_page(fragment("rotate", ROPE, m=9, n=6))
    page.click('[data-action="play"]')
    until(lambda: float(own(page, "m") or 0) >= 12, what="play")
    page.click('[data-action="stop"]')
    page.settle()
    stopped = own(page, "m")
    page.settle()
    assert own(page, "m") == stopped and float(stopped) - float(own(page, "n")) == 3


def test_who_wants_no_motion_gets_none(open_page, driver):
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
    try:
        page = open_page(fragment("rotate", ROPE, m=9, n=6))
        assert page.attribute('[data-action="play"]', "disabled") is not None
        page.find("canvas[data-hands]").send_keys("p")
        page.settle()
        assert own(page, "m") == "9"
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_of_many_pairs_sixteen_are_drawn(visit):
    assert Clocks(visit(fragment("rotate", {"scheme": "rope"}))).pairs == list(range(0, 32, 2))


def test_rotate_refuses_by_words_what_has_no_hands(visit):
    page = visit(fragment("rotate", {"scheme": "alibi"}, {"scheme": "rope", "layout": "vjepa2"}, {"preset": "llama-3.1"}, {"scheme": "rope", "head_dim": 7}))
    assert "rope" in refusal(page, "a") and "xpos" in refusal(page, "a")
    assert "vjepa2" in refusal(page, "b")
    assert page.state("c") == "ready" and Clocks(page, "c").pairs == list(range(0, 64, 4))
    assert page.state("d") == "refused" and "head_dim" in refusal(page, "d")


def test_a_models_file_is_rotated_too(visit):
    file = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 2, "rope_theta": 500000.0}
    page = visit(fragment("rotate", {"hf_config": file}))
    assert page.state() == "ready" and len(Clocks(page).pairs) == 16


# ---- attention ---------------------------------------------------------------------------------------------------------------


def largest(server, request, rows):
    out = array(server, request, "output", "/attention")[:, rows]
    return np.abs(out[:, 0] - out[:, 1]).max()


@pytest.mark.parametrize("config", [{"scheme": "rope", "dim": 96}, {"scheme": "alibi"}, {"scheme": "sinusoidal"}, {"scheme": "t5", "std": 1.0}, {"scheme": "shaw", "std": 1.0, "seed": 3}],
                         ids=lambda config: config["scheme"])
def test_two_dogs_are_one_without_positions(visit, server, config):
    config = {**config, "tokens": DOG}
    page = visit(fragment("attention", config, at=2))
    for slot, request in {"a": config, "none": twin(server, config)}.items():
        heat = Heat(page, slot)
        assert heat.output == "probs" and heat.at == [2] and (heat.rows, heat.cols) == (5, 5)
        heat.check_against(server, request, shape_of(server, request, "probs", "/attention"), "/attention")
    assert data(page, "difference", "none") == [0]
    assert data(page, "difference") == [pytest.approx(largest(server, config, [1, 4]), rel=1e-12)] and data(page, "difference")[0] > 1e-3


def twin(server, config):
    """The same without positions: what the scheme's own answer says of widths, heads, scale and seed."""
    resolved = json.loads(post(server, "/attention", **config, data=False))["config"]
    return {"scheme": "none", "tokens": config["tokens"], **{name: resolved[name] for name in ("dim", "num_heads", "head_dim", "softmax_scale", "seed") if name in resolved}}


def test_weights_have_colours_from_zero_to_the_largest_of_all_maps(visit, server):
    """Two configurations and the one without positions are compared by colour: one scale, and the bar has it."""
    configs = [{"scheme": "rope", "dim": 96, "tokens": DOG, "base": base} for base in (10000, 100)]
    page = visit(fragment("attention", *configs))
    largest = max(float(array(server, one, "probs", "/attention", dtype="f32")[0].max()) for one in (*configs, twin(server, configs[0])))
    assert 0.2 < largest < 0.9
    for slot in ("a", "b", "none"):
        heat, bar = Heat(page, slot), attributes(page, page.find(f'figure[data-config="{slot}"] [data-colorbar]'))
        assert (heat.min, heat.max) == (0, largest) == (float(bar["data-min"]), float(bar["data-max"])), slot
    request = configs[1]
    Heat(page, "b").check_against(server, request, shape_of(server, request, "probs", "/attention"), "/attention")
    own_scale = {**configs[0], "causal": True}  # whose first query sees but itself
    assert (lambda heat: (heat.min, heat.max))(Heat(visit(fragment("attention", own_scale)))) == (0, 1)


@pytest.mark.fresh
def test_a_sentence_is_split_by_words_or_characters(open_page, server):
    page = open_page(fragment("attention", {"scheme": "rope", "dim": 96, "len": 9}))
    texts = "return [...document.querySelectorAll('[data-token]')].map(b => b.textContent)"
    assert page.run(texts) == DOG
    for sentence, tokens in {"a cat's cat, a cat": ["a", "cat's", "cat", ",", "a", "cat"], "小狗追小狗": list("小狗追小狗")}.items():
        slide(page, '[data-field="sentence"]', sentence)
        assert page.run(texts) == tokens
        assert (Heat(page).rows, Heat(page, "none").cols) == (len(tokens),) * 2
        request = {"scheme": "rope", "dim": 96, "tokens": tokens}
        Heat(page).check_against(server, request, shape_of(server, request, "probs", "/attention"), "/attention")
    page.driver.refresh()  # the address has the sentence
    page.settle()
    assert page.run(texts) == list("小狗追小狗")


@pytest.mark.fresh
def test_the_example_speaks_the_language_in_which_it_was_opened(open_page):
    page = open_page("view=attention&lang=zh")
    assert page.run("return [...document.querySelectorAll('[data-token]')].map(b => b.textContent)") == list("狗追另一只狗")
    assert data(page, "difference")[0] > 0 and data(page, "difference", "none") == [0]


def test_a_token_chooses_its_row(open_page, server):
    page = open_page(fragment("attention", {"scheme": "rope", "dim": 96, "tokens": DOG}, at=1))
    page.click('[data-token="3"]')
    page.settle()
    assert own(page, "cur") == "3%2C0" and page.attribute('[data-token="3"]', "aria-pressed") == "true"
    shown = page.attribute('figure[data-config="a"] [data-readout] output', "data-value")
    assert float(shown) == pytest.approx(array(server, {"scheme": "rope", "dim": 96, "tokens": DOG}, "probs", "/attention")[1, 3, 0], rel=1e-6)


def test_one_sentence_for_all_configurations_and_their_difference(open_page, server):
    a, b = ({"scheme": "rope", "dim": 96, "tokens": DOG, "base": base} for base in (10000, 100))
    page = open_page(fragment("attention", a, b, on="b-a"))
    shape = [8, 5, 5]
    shown = Heat(page, "b-a")
    shown.check(array(server, b, "probs", "/attention", slice=shown.window(shape)) - array(server, a, "probs", "/attention", slice=shown.window(shape)))
    slide(page, '[data-field="sentence"]', "no dog twice")
    assert (Heat(page).rows, Heat(page, "b").rows, Heat(page, "none").rows) == (3, 3, 3)
    assert data(page, "difference") == [] and page.run("return JSON.parse(decodeURIComponent(location.hash.match(/b=([^&]*)/)[1])).tokens") == ["no", "dog", "twice"]


def test_attention_of_given_queries_has_no_sentence(visit, server):
    config = {"scheme": "rope", "q": [[1, 0], [0, 1]], "k": [[1, 0], [0, 1]], "head_dim": 2}
    page = visit(fragment("attention", config))
    assert not page.find('[data-field="sentence"]').is_displayed()
    Heat(page).check_against(server, config, shape_of(server, config, "probs", "/attention"), "/attention")


# ---- bias --------------------------------------------------------------------------------------------------------------------


def heads(page, config="a"):
    """The small maps, by head."""
    count = page.run("return document.querySelectorAll(`figure[data-config=\"${arguments[0]}\"] [data-head] canvas[data-heat]`).length", config)
    found = [Heat(page, config, nth, "[data-head] figure, figure") for nth in range(count)] if count else []
    return {heat.at[0]: heat for heat in found}


BIASES = [{"scheme": "alibi", "num_heads": 8, "len": 24}, {"scheme": "t5", "num_heads": 4, "len": 40, "seed": 0, "std": 1.0}, {"scheme": "kerple", "len": 16, "causal": True},
          {"scheme": "fire", "len": 20, "seed": 1}, {"scheme": "sandwich", "len": 20, "window": 5}, {"scheme": "swin", "grid": [4, 5], "seed": 2}, {"scheme": "alibi", "q_len": 3, "k_len": 30}]


@pytest.mark.parametrize("config", BIASES, ids=json.dumps)
def test_a_map_for_each_head(visit, server, config):
    page = visit(fragment("bias", config))
    whole = array(server, config, "bias", dtype="f32")
    found = heads(page)
    assert sorted(found) == list(range(len(whole)))
    finite = whole[np.isfinite(whole)]
    for head, heat in found.items():
        assert (heat.min, heat.max) == (finite.min(), finite.max()), "one scale for all heads"
        heat.check(array(server, config, "bias", dtype="f32", slice=heat.window(whole.shape), **reduced(heat)))


def reduced(heat):
    return {"reduce": heat.reduce} if heat.row_step * heat.col_step > 1 else {}


def test_each_head_in_its_own_colours(open_page, server):
    config = {**BIASES[0], "causal": True}
    page = open_page(fragment("bias", config))
    page.click('[data-field="scale"] [data-value="own"]')
    page.settle()
    assert own(page, "scale") == "own"
    whole = array(server, config, "bias", dtype="f32")
    for head, heat in heads(page).items():
        finite = whole[head][np.isfinite(whole[head])]
        assert (heat.min, heat.max) == (finite.min(), finite.max())
        heat.check(whole[head])
    large = enlarged(page)
    assert large.at == [0] and (large.min, large.max) == (whole[0][np.isfinite(whole[0])].min(), 0)
    page.driver.refresh()
    page.settle()
    assert {heat.min for heat in heads(page).values()} == {whole[head][np.isfinite(whole[head])].min() for head in range(8)}


def enlarged(page, config="a"):
    """The large map: the one whose canvas takes keys."""
    canvases = page.all(f'figure[data-config="{config}"] canvas[data-heat]')
    nth = next(i for i, canvas in enumerate(canvases) if canvas.get_attribute("role") == "application")
    return Heat(page, config, nth)


def test_a_head_is_enlarged(open_page, server):
    page = open_page(fragment("bias", BIASES[1]))
    page.find('[data-head="2"]').send_keys(Keys.ENTER)
    page.settle()
    heat = enlarged(page)
    assert own(page, "at") == "2" and heat.at == [2] and page.attribute('[data-head="2"]', "aria-pressed") == "true"
    heat.check_against(server, BIASES[1], [4, 40, 40])
    page.run("arguments[0].focus()", heat.canvas)
    heat.canvas.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    page.settle()
    shown = page.find('figure[data-config="a"] [data-readout] output')
    assert [shown.get_attribute(f"data-{name}") for name in ("row", "col")] == ["1", "2"]
    assert np.float32(shown.get_attribute("data-value")) == array(server, BIASES[1], "bias", dtype="f32")[2, 1, 2]


def test_slopes_stand_below_their_heads(visit, server):
    page = visit(fragment("bias", BIASES[0]))
    assert data(page, "slopes") == array(server, BIASES[0], "slopes").tolist()


def test_buckets_have_a_map(visit, server):
    page = visit(fragment("bias", BIASES[1]))
    canvases = page.all('figure[data-config="a"] canvas[data-heat]')
    nth = next(i for i, canvas in enumerate(canvases) if canvas.get_attribute("data-output") == "buckets")
    Heat(page, "a", nth).check(array(server, BIASES[1], "buckets", dtype="f32"))


def lines(page, config="a"):
    """{series: colour}, and the plot of a line picture."""
    canvas = page.find(f'figure[data-config="{config}"] canvas[data-lines]')
    series = dict(page.run("return [...document.querySelectorAll(`figure[data-config=\"${arguments[0]}\"] [data-series]`)].map(s => [s.dataset.series, s.dataset.color])", config))
    return canvas, attributes(page, canvas), series


def test_bias_against_distance(visit, server):
    """Each head's line goes through the values of the middle query."""
    page = visit(fragment("bias", BIASES[0], at=0))
    canvas, found, series = lines(page)
    width, height, text = page.run(PIXELS, canvas)
    pixels = np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)[..., :3].astype(int)
    box = {name: float(found[f"data-{name}"]) for name in ("x0", "y0", "w", "h", "x-min", "x-max", "y-min", "y-max")}
    row = array(server, BIASES[0], "bias", dtype="f32")[:, 12]
    assert list(series) == [f"a:{head}" for head in range(8)]
    for head in (0, 1, 2):
        colour = np.array([int(series[f"a:{head}"][i:i + 2], 16) for i in (1, 3, 5)])
        for distance in (-12, -5, 6, 11):
            x = box["x0"] + (distance - box["x-min"]) / (box["x-max"] - box["x-min"]) * box["w"]
            y = box["y0"] + (box["y-max"] - row[head, distance + 12]) / (box["y-max"] - box["y-min"]) * box["h"]
            near = pixels[int(y) - 6:int(y) + 7, int(x) - 8:int(x) + 9]
            assert (np.abs(near - colour).sum(-1) < 60).any(), (head, distance)


def test_more_than_sixteen_heads_are_turned_over(open_page, server):
    config = {"scheme": "alibi", "num_heads": 40, "len": 12}
    page = open_page(fragment("bias", config))
    assert sorted(heads(page)) == list(range(16))
    page.click('[data-field="at"] [data-value="32"]')
    page.settle()
    whole = array(server, config, "bias", dtype="f32")
    assert sorted(heads(page)) == list(range(32, 40)) and enlarged(page).at == [32]
    for head, heat in heads(page).items():
        heat.check(whole[head])
    assert np.float32(data(page, "slopes")).tolist() == array(server, config, "slopes", dtype="f32")[32:].tolist()


def test_a_long_bias_is_reduced_by_the_server(visit, server):
    config = {"scheme": "kerple", "num_heads": 3, "len": 700, "causal": True}
    page = visit(fragment("bias", config, red="max"))
    for head, heat in heads(page).items():
        assert heat.row_step > 1 and heat.reduce == "max"
        heat.check(array(server, config, "bias", dtype="f32", slice=heat.window([3, 700, 700]), reduce="max"))


def test_bias_refuses_by_words_and_gives_random_weights_where_there_are_none(open_page, server):
    page = open_page(fragment("bias", {"scheme": "rope"}, {"scheme": "t5"}, {"scheme": "alibi", "form": "slanted"}))
    assert "alibi" in refusal(page, "a") and "sandwich" in refusal(page, "a")
    assert page.state("b") == "ready" and len(heads(page, "b")) == 8
    assert page.state("c") == "refused" and "slanted" in refusal(page, "c")


def test_a_link_from_a_bias_to_a_scheme_without_one(open_page):
    """The picture that stands when the link comes, or is still on its way, does not hide the refusal."""
    page = open_page(fragment("bias", BIASES[0]))
    page.hash(fragment("bias", {"scheme": "rope"}))
    page.settle()
    assert page.state("a") == "refused" and "alibi" in refusal(page, "a")


def test_the_difference_of_two_biases(visit, server):
    a, b = {"scheme": "alibi", "len": 20}, {"scheme": "kerple", "len": 20}
    page = visit(fragment("bias", a, b, on="b-a", at=3))
    shown = Heat(page, "b-a")
    assert shown.at == [3]
    shown.check((array(server, b, "bias") - array(server, a, "bias"))[3])


def test_what_is_shown_is_copied(visit, server):
    """The request of each view is the whole output in front."""
    for view, config, path in (("rotate", ROPE, "/rotate"), ("attention", {"scheme": "rope", "dim": 96, "tokens": DOG}, "/attention"), ("bias", BIASES[0], "/encode")):
        page = visit(fragment(view, config))
        until(lambda: page.text('pre[data-copy="json"]'), what="a request")
        request = json.loads(page.text('pre[data-copy="json"]'))
        assert re.search(rf"{path}\b", page.text('pre[data-copy="curl"]'))
        assert np.load(io.BytesIO(post(server, path, **{**request, "format": "npy"}))).size > 0


def test_files_of_models_are_read_by_the_server(visit, server):
    t5 = {"model_type": "t5", "d_model": 16, "d_kv": 8, "num_heads": 2, "relative_attention_num_buckets": 8, "num_layers": 1, "d_ff": 8, "vocab_size": 4}
    bloom = {"model_type": "bloom", "hidden_size": 16, "n_head": 4}
    page = visit(fragment("bias", {"hf_config": t5, "layer_type": "encoder"}, {"hf_config": bloom}, {"hf_config": {"model_type": "llama", "hidden_size": 16, "num_attention_heads": 2}}))
    assert (len(heads(page)), len(heads(page, "b"))) == (2, 4) and "rope" in refusal(page, "c")
    page = visit(fragment("attention", {"hf_config": {**t5, "num_heads": 4}, "layer_type": "encoder", "std": 1.0}))
    assert page.state() == "ready" and data(page, "difference")[0] > 0 and data(page, "difference", "none") == [0]
    page = visit(fragment("attention", {"hf_config": bloom}))  # its bias depends on the key alone
    assert data(page, "difference") == data(page, "difference", "none") == [0]
    page = visit(fragment("rotate", {"hf_config": bloom}))
    assert page.state() == "refused" and "rope" in refusal(page, "a")


def test_undo_and_links_bring_all_back(open_page, server):
    page = open_page(fragment("rotate", ROPE, m=9, n=6))
    slide(page, '[data-slider="m"]', 20)
    page.click('[data-action="undo"]')
    page.settle()
    assert own(page, "m") == "9" and Clocks(page).positions == {"m": 9, "n": 6}
    page = open_page(fragment("attention", {"scheme": "alibi", "tokens": ["a", "b", "a"]}, at=3, cur="1,2", cmap="magma", lo="0", hi="0.5", out="scores"))
    heat = Heat(page)
    assert (heat.output, heat.at, heat.cmap, heat.min, heat.max) == ("scores", [3], "magma", 0, 0.5)
    assert page.attribute('[data-token="1"]', "aria-pressed") == "true"
    page = open_page(fragment("bias", BIASES[0], at=5, scale="own", cmap="gray", cur="7,2"))
    assert enlarged(page).at == [5] and {heat.cmap for heat in heads(page).values()} == {"gray"}


def titles_of(page):
    return page.run("return [...document.querySelectorAll('figure[data-figure] .figure-title')].map((one) => one.textContent)")


def test_titles_are_the_names_of_models(visit, server):
    """Of two models with one scheme, and of one model under two scalings."""
    for view, *pair in (("table", {"preset": "llama-3.1", "len": 8}, {"preset": "qwen2.5", "len": 8}), ("curves", {"preset": "llama-3.1", "len": 8}, {"preset": "qwen2.5", "len": 8})):
        page = visit(fragment(view, *pair))
        titles = titles_of(page)
        assert [title.split()[0] for title in titles[:2]] == ["a", "b"] and "Llama 3.1" in titles[0] and "Qwen2.5" in titles[1], titles
        assert all(len(title) < 40 for title in titles), titles   # a note on a model is no part of its name
    page = visit(fragment("table", {"scheme": "rope", "len": 8}, {"scheme": "rope", "len": 8, "scaling": {"type": "ntk", "factor": 8}}))
    titles = titles_of(page)
    assert titles[1].replace(" ntk", "") == titles[0].replace("a ", "b ", 1) and " ntk " in titles[1], titles
