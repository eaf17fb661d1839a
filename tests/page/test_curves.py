"""The views of line pictures: curves, scaling, distance. Each line is looked for where the server's own numbers say it is."""
import json
import urllib.parse
import urllib.request

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import fragment, until
from lines import Lines, column, post

SINUSOIDAL = {"scheme": "sinusoidal", "dim": 64, "len": 24}
ROPE = {"scheme": "rope", "head_dim": 32, "len": 24}
REAL = [i / 32 for i in range(32 * 23)]


def chart(page, view, config="a"):
    return page.find(f'figure[data-figure="{view}"][data-config="{config}"] canvas[data-lines]')


def key_of(page, name):
    """A key of the address, None where it stands at its default."""
    parts = dict(part.split("=", 1) for part in page.run("return location.hash").lstrip("#").split("&") if "=" in part)
    return urllib.parse.unquote(parts[name]) if name in parts else None


def data(page, what, config="a"):
    """The served numbers of a caption or a table, by their names."""
    return page.run("""return [...document.querySelectorAll(`figure[data-config="${arguments[1]}"] data[data-what="${arguments[0]}"]`)].map(e => e.value)""", what, config)


# ---- curves ----


@pytest.mark.parametrize("config, output, col", [
    (SINUSOIDAL, "encoding", 0), (SINUSOIDAL, "encoding", 13), ({**SINUSOIDAL, "offset": 1000}, "encoding", 1), (ROPE, "cos", 3),
    ({"scheme": "fourier", "num_freqs": 3, "len": 10}, "encoding", 2), ({"scheme": "rope", "head_dim": 32, "len": 24,
     "scaling": {"type": "dynamic", "factor": 4, "max_position_embeddings": 8}}, "cos", 2)])
def test_a_curve_runs_through_real_positions(visit, server, config, output, col):
    page = visit(fragment("curves", config, cols=col))
    lines = Lines(page, "curves")
    start = config.get("offset", 0)
    # The last position goes along, as some schemes read how long their sequence is.
    last = start + config["len"] - 1
    points = column(server.url, config, output, col, [start + x for x in REAL if x < last - start] + [last])
    assert lines.missing(f"a:{col}", points) == []
    assert lines.missing(f"a:{col}", column(server.url, config, output, col)) == []


@pytest.mark.parametrize("config, output", [({"scheme": "learned", "dim": 8, "seed": 1, "std": 1, "len": 20}, "encoding"),
                                            ({"scheme": "binary", "dim": 8, "len": 20}, "encoding"),
                                            ({"scheme": "integer", "normalize": "length", "dim": 2, "len": 9}, "encoding")])
def test_what_has_whole_positions_only_shows_those_and_says_so(visit, server, config, output):
    page = visit(fragment("curves", config, cols=1))
    assert Lines(page, "curves").missing("a:1", column(server.url, config, output, 1)) == []
    assert "whole positions only" in page.text("figure figcaption")


def test_a_grid_is_shown_by_its_rows(visit, server):
    config = {"scheme": "rope", "head_dim": 16, "grid": [4, 5]}
    page = visit(fragment("curves", config, cols=2))
    values = post(server.url, "/encode", {**config, "outputs": ["cos"], "slice": [None, 2]})["tensors"]["cos"]["data"]
    assert Lines(page, "curves").missing("a:2", list(enumerate(values))) == []


def test_several_columns_have_their_own_colours(visit, server):
    page = visit(fragment("curves", SINUSOIDAL, ROPE, cols="0,1,12"))
    first, second = Lines(page, "curves", "a"), Lines(page, "curves", "b")
    assert list(first.legend) == ["a:0", "a:1", "a:12"] and list(second.legend) == ["b:0", "b:1", "b:12"]
    assert len({color for color, _ in first.legend.values()}) == 3
    for lines, config, output in [(first, SINUSOIDAL, "encoding"), (second, ROPE, "cos")]:
        for series in lines.legend:
            points = column(server.url, config, output, int(series[2:]), REAL)
            assert len(lines.missing(series, points)) < len(points) / 4  # dashes, and one line may cover another
    assert first.y_range == second.y_range and first.x_range == second.x_range


def test_both_themes_and_a_changed_colour(visit, server):
    for theme in ["light", "dark"]:
        page = visit(fragment("curves", SINUSOIDAL, cols=5, theme=theme))
        assert Lines(page, "curves").missing("a:5", column(server.url, SINUSOIDAL, "encoding", 5, REAL)) == []
    page.click('[data-action="theme"]')
    page.settle()
    assert Lines(page, "curves").missing("a:5", column(server.url, SINUSOIDAL, "encoding", 5, REAL)) == []


def test_the_difference_is_of_doubles(visit, server):
    other = {**SINUSOIDAL, "base": 500}
    page = visit(fragment("curves", SINUSOIDAL, other, cols=20, on="b-a"))
    a, b = (column(server.url, config, "encoding", 20, REAL) for config in (SINUSOIDAL, other))
    assert Lines(page, "curves", "b-a").missing("b-a:20", [(x, v - u) for (x, u), (_, v) in zip(a, b)]) == []
    assert float(data(page, "difference", "b-a")[0]) > 0


def test_columns_are_chosen_moved_and_removed(open_page):
    page = open_page(fragment("curves", SINUSOIDAL, cols="0,8"))
    slider = page.find('[data-slider="cols"]')
    slider.send_keys(Keys.ARROW_RIGHT * 3)
    until(lambda: key_of(page, "cols") == "3,8", what="the column of the slider")
    page.settle()
    assert list(Lines(page, "curves").legend) == ["a:3", "a:8"]
    page.driver.execute_script("document.querySelectorAll('.chips > .icon')[1].click()")
    until(lambda: key_of(page, "cols") == "3,8,4", what="another column")
    page.click(".chips > .icon")
    until(lambda: key_of(page, "cols") == "3,8", what="one column less")
    page.find("body").send_keys(Keys.CONTROL, "z")
    until(lambda: key_of(page, "cols") == "3,8,4", what="undo")


def test_dragging_pans_and_the_slider_too(open_page, server):
    config = {**SINUSOIDAL, "len": 5000}
    page = open_page(fragment("curves", config, cols=3, zoom="32x1", win="100,0"))
    lines = Lines(page, "curves")
    assert abs(lines.x_range[0] - 100) < 1e-9
    ActionChains(page.driver).click_and_hold(chart(page, "curves")).move_by_offset(-160, 0).release().perform()
    page.settle()
    assert abs(lines.read().x_range[0] - 105) <= 1 and key_of(page, "win").startswith("105") or key_of(page, "win").startswith("106")
    first, last = lines.x_range
    points = column(server.url, config, "encoding", 3, [first + (last - first) * i / 300 for i in range(300)])
    assert lines.missing("a:3", points) == []
    page.find('[data-slider="win"]').send_keys(Keys.HOME)
    page.settle()
    assert lines.read().x_range[0] == 0


def test_keys_zoom_and_move(open_page):
    page = open_page(fragment("curves", SINUSOIDAL, cols="0,8"))
    canvas = chart(page, "curves")
    canvas.send_keys("]]]")
    page.settle()
    canvas.send_keys("[", Keys.ARROW_RIGHT * 3)
    until(lambda: key_of(page, "cur") == "5,0", what="the cursor five steps on")
    assert page.text("[data-readout]") and page.attribute('[data-readout] output', "data-row") == "5"
    until(lambda: "5" in (page.text("[data-live]") or ""), what="the value said")
    canvas.send_keys(Keys.ARROW_DOWN)
    until(lambda: key_of(page, "cur") == "5,8", what="the next line")
    before = Lines(page, "curves").x_range
    canvas.send_keys("+")
    page.settle()
    after = Lines(page, "curves").x_range
    assert after[1] - after[0] < before[1] - before[0]
    canvas.send_keys("0")
    page.settle()
    assert Lines(page, "curves").x_range == before
    canvas.send_keys("t")
    until(lambda: len(page.all("figure details[data-table] td")) == 2 * 24, what="the data table")


def test_a_page_is_a_window_of_the_curve(open_page):
    page = open_page(fragment("curves", {**SINUSOIDAL, "len": 4096}, cols="0", zoom="4x1", cur="3,0"))
    canvas, (first, last) = chart(page, "curves"), Lines(page, "curves").x_range
    canvas.send_keys(Keys.PAGE_DOWN)
    page.settle()
    width = last - first
    assert 0 < width < 2000 and Lines(page, "curves").x_range == pytest.approx([width, 2 * width], abs=1)
    assert int(key_of(page, "cur").split(",")[0]) == pytest.approx(3 + width, abs=1)
    canvas.send_keys(Keys.PAGE_UP)
    page.settle()
    assert Lines(page, "curves").x_range == pytest.approx([0, width]) and int(key_of(page, "cur").split(",")[0]) == pytest.approx(3, abs=1)


def test_the_value_at_the_cursor_is_the_servers(visit, server):
    page = visit(fragment("curves", SINUSOIDAL, cols=8, cur="7,8"))
    row = post(server.url, "/encode", {**SINUSOIDAL, "slice": [7, 8]})["tensors"]["encoding"]["data"]
    assert abs(float(data(page, "value")[0]) - row) < 1e-7


@pytest.mark.parametrize("config", [{"scheme": "alibi", "len": 8}, {"scheme": "shaw", "len": 6}])
def test_a_scheme_without_rows_is_told_which_have_some(visit, config):
    page = visit(fragment("curves", config))
    assert page.state() == "refused" and "sinusoidal" in page.text('figure [role="alert"]')


# ---- scaling ----

LLAMA = {"preset": "llama-3.1", "len": 128}


def test_each_rule_has_its_wavelengths(visit, server):
    page = visit(fragment("scaling", LLAMA))
    lines = Lines(page, "scaling")
    assert lines.scales == ("linear", "log")
    rules = {"linear": {}, "ntk": {}, "yarn": {"original_max_position_embeddings": 8192},
             "dynamic": {"max_position_embeddings": 8192},
             "llama3": {"low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}}
    assert {f"a:{rule}" for rule in [*rules, "default"]} <= set(lines.legend)
    waves = {}
    for rule, fields in rules.items():
        body = {"preset": "llama-3.1", "len": 1, "offset": 65535, "metrics": ["wavelengths"], "scaling": {"type": rule, "factor": 8, **fields}}
        waves[rule] = list(enumerate(map(float, post(server.url, "/analyze", body)["tensors"]["wavelength.0"]["data"])))
    body = {"preset": "llama-3.1", "len": 1, "metrics": ["wavelengths"], "scaling": {"type": "default"}}
    waves["default"] = list(enumerate(map(float, post(server.url, "/analyze", body)["tensors"]["wavelength.0"]["data"])))
    assert lines.missing("a:llama3", waves["llama3"]) == []  # the configuration's own lies on top
    for rule, points in waves.items():
        apart = [point for point in points if all(other == rule or abs(lines.pixel(*waves[other][point[0]])[1] - lines.pixel(*point)[1]) > 6
                                                  for other in waves)]
        missing = lines.missing(f"a:{rule}", apart, reach=2)
        assert len(missing) <= len(apart) / 4, rule  # gaps of dashes


def test_the_numbers_of_a_rule_are_served(visit, server):
    page = visit(fragment("scaling", LLAMA, train=8192))
    result = post(server.url, "/analyze", {"preset": "llama-3.1", "len": 1, "metrics": ["wavelengths"]})["results"][0]["wavelengths"]
    row = page.run("return [...document.querySelectorAll('tr[data-type=llama3] data')].map(e => e.value)")
    assert [float(value) for value in row] == [result["value"], result["kept"], result["longest"], result["attention_factor"]]
    assert data(page, "pair") == ["32"]


def test_lengths_are_dragged_and_restored(open_page):
    page = open_page(fragment("scaling", LLAMA))
    lines = Lines(page, "scaling")
    x0, y0, w, h = lines.box
    ratio = page.run("return devicePixelRatio")
    x, y = lines.pixel(lines.x_range[1], 8192)
    canvas = chart(page, "scaling")
    middle = page.run("const r = arguments[0].getBoundingClientRect(); return [r.width / 2, r.height / 2]", canvas)
    ActionChains(page.driver).move_to_element_with_offset(canvas, x / ratio - middle[0] - 2, y / ratio - middle[1]) \
        .click_and_hold().move_by_offset(0, 20).release().perform()
    until(lambda: key_of(page, "train") is not None, what="the training length in the address")
    trained = int(key_of(page, "train"))
    assert 1000 < trained < 8192
    page.settle()
    assert page.find('[data-field="train"]').get_property("value") == str(trained)
    page.find("body").send_keys(Keys.CONTROL, "z")
    until(lambda: key_of(page, "train") is None, what="undo")
    page = open_page(fragment("scaling", LLAMA, train=2048, eval=100000))
    assert page.find('[data-field="train"]').get_property("value") == "2048"
    assert page.find('[data-field="eval"]').get_property("value") == "100000"
    assert data(page, "train_len") == ["2048"]


def test_the_factor_is_the_configurations(open_page):
    page = open_page(fragment("scaling", {"scheme": "rope", "len": 64, "scaling": {"type": "linear", "factor": 2}}))
    assert page.find('[data-field="factor"]').get_property("value") == "2"
    field = page.find('[data-field="factor"]')
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys("16")
    until(lambda: json.loads(key_of(page, "a"))["scaling"]["factor"] == 16, what="the factor in the address")
    page.settle()
    assert page.state() == "ready"


def test_a_dragged_length_asks_once_a_picture(open_page):
    page = open_page(fragment("scaling", LLAMA))
    page.run("performance.clearResourceTimings()")
    for length in range(9000, 9400, 100):
        page.run("const s = document.querySelector('[data-field=train]'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))", length)
        page.settle()
    assert page.run("return performance.getEntriesByType('resource').filter(e => e.name.includes('/analyze')).length") == 4


@pytest.mark.parametrize("view, config", [("scaling", {"scheme": "alibi", "len": 8}), ("distance", {"scheme": "t5", "seed": 0, "len": 8}),
                                          ("distance", {"scheme": "rope", "grid": [4, 4]})])
def test_where_the_metric_does_not_apply_it_says_to_what_it_does(visit, view, config):
    page = visit(fragment(view, config))
    assert page.state() == "refused" and "one axis" in page.text('figure [role="alert"]')


def test_sinusoids_have_one_line_and_no_scaling(visit):
    page = visit(fragment("scaling", SINUSOIDAL))
    assert list(Lines(page, "scaling").legend) == ["a:default"]


# ---- distance ----


def similarity(server, config, **more):
    answer = post(server.url, "/analyze", {**config, "metrics": ["similarity"], "outputs": ["similarity", "gram"], **more})
    return answer["tensors"]["similarity.0"]["data"], answer["tensors"]["gram.0"]["data"], answer["results"][0]["similarity"]


@pytest.mark.parametrize("pairing", [None, "sin", "cos", "mismatched"])
def test_products_by_distance_for_each_pairing(visit, server, pairing):
    config = {**SINUSOIDAL, "len": 48}
    more = {} if pairing is None else {"pairing": pairing} | ({"other_base": 77} if pairing == "mismatched" else {})
    shown = {**config, **({"other_base": 77} if pairing == "mismatched" else {})}
    page = visit(fragment("distance", shown, cur="9,0", **({"pairing": pairing} if pairing else {})))
    values, gram, result = similarity(server, config, **more)
    assert Lines(page, "distance").missing("a:similarity", list(enumerate(values))) == []
    assert float(data(page, "similarity")[0]) == values[9]
    assert float(data(page, "minimum")[0]) == result["minimum"]["value"]
    assert probe_gram(page, server, gram) == []


PIXEL = """
const copy = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
copy.drawImage(document.querySelector('figure[data-figure=distance] canvas[data-heat]'), -arguments[0], -arguments[1]);
return [...copy.getImageData(0, 0, 1, 1).data];
"""


def probe_gram(page, server, gram):
    """Cells of the matrix whose pixel has another colour than its number says."""
    with urllib.request.urlopen(server.url + "/cmaps") as answer:
        maps = json.load(answer)["cmaps"]
    heat = page.run("const c = document.querySelector('figure[data-figure=distance] canvas[data-heat]'); return {...c.dataset}")
    colors = next(one["colors"] for one in maps if one["name"] == heat["cmap"])
    lo, hi = float(heat["min"]), float(heat["max"])
    wrong = []
    for row, col in [(0, 0), (5, 31), (31, 5), (20, 20), (47, 0), (3, 4)]:
        x = int(heat["x0"]) + (col - int(heat["col0"])) // int(heat["colStep"]) * int(heat["colPx"])
        y = int(heat["y0"]) + (row - int(heat["row0"])) // int(heat["rowStep"]) * int(heat["rowPx"])
        pixel = page.run(PIXEL, x, y)
        k = max(0, min(254, round(254 * (gram[row][col] - lo) / (hi - lo))))
        if f"#{pixel[0]:02x}{pixel[1]:02x}{pixel[2]:02x}" != colors[k].lower():
            wrong.append((row, col))
    return wrong


def test_pairing_and_other_base_are_chosen(open_page):
    page = open_page(fragment("distance", SINUSOIDAL))
    page.click('[data-field="pairing"] [data-value="mismatched"]')
    until(lambda: key_of(page, "pairing") == "mismatched", what="the pairing in the address")
    page.settle()
    page.find('[data-slider="other_base"]').send_keys(Keys.ARROW_RIGHT)
    until(lambda: key_of(page, "a") and "other_base" in json.loads(key_of(page, "a")), what="the other base in the configuration")
    page.settle()
    assert page.state() == "ready"


def test_the_distance_is_dragged_by_slider_key_and_handle(open_page, server):
    page = open_page(fragment("distance", SINUSOIDAL))
    values, _, _ = similarity(server, SINUSOIDAL)
    page.find('[data-slider="m"]').send_keys(Keys.ARROW_RIGHT * 4)
    until(lambda: key_of(page, "cur") == "4,0", what="the distance in the address")
    until(lambda: float(data(page, "similarity")[0]) == values[4], what="the product there")
    chart(page, "distance").send_keys(Keys.ARROW_RIGHT)
    until(lambda: key_of(page, "cur") == "5,0", what="one more")
    lines = Lines(page, "distance")
    ratio = page.run("return devicePixelRatio")
    x, _ = lines.pixel(5, 0)
    to, _ = lines.pixel(15, 0)
    canvas = chart(page, "distance")
    middle = page.run("return arguments[0].getBoundingClientRect().width / 2", canvas)
    ActionChains(page.driver).move_to_element_with_offset(canvas, x / ratio - middle, 0).click_and_hold() \
        .move_by_offset((to - x) / ratio, 0).release().perform()
    until(lambda: key_of(page, "cur") == "15,0", what="the handle at 15")
    until(lambda: float(data(page, "similarity")[0]) == values[15], what="the product at 15")


def test_two_schemes_lie_over_each_other(visit, server):
    other = {"scheme": "rope", "head_dim": 64, "len": 24, "base": 100}
    page = visit(fragment("distance", SINUSOIDAL, other, on="b-a"))
    ours, theirs = similarity(server, SINUSOIDAL)[0], similarity(server, other)[0]
    a, b = Lines(page, "distance", "a"), Lines(page, "distance", "b")
    assert list(a.legend) == ["a:similarity", "b:similarity"] and a.y_range == b.y_range
    assert a.missing("a:similarity", list(enumerate(ours))) == []
    assert b.missing("b:similarity", list(enumerate(theirs))) == []
    difference = [(m, v - u) for m, (u, v) in enumerate(zip(ours, theirs))]
    assert Lines(page, "distance", "b-a").missing("b-a:similarity", difference) == []
