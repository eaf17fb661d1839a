"""The views properties, extrapolate, trajectory and multimodal under a hand, and what they give to copy; what a link of them shows are rows of
cases/views.jsonl."""
import json

import pytest
from selenium.webdriver.common.action_chains import ActionChains

from browser import fragment, until
from figures import metric
from lines import Lines, Path, floats
from probes import array, ask

WISHES = ["unique", "linear", "generalises", "deterministic", "n_dimensional"]
CONFIGS = [{"scheme": "binary", "bits": 6, "len": 48}, {"scheme": "learned", "dim": 16, "len": 48, "seed": 3}, {"scheme": "alibi", "num_heads": 4, "len": 48}]
ROPE = {"scheme": "rope", "head_dim": 32, "len": 64}
ALIBI = {"scheme": "alibi", "num_heads": 4, "len": 64, "causal": True}


# ---- properties --------------------------------------------------------------------------------------------------------------


def links(page, wish, config="a"):
    return page.run("""return [...document.querySelectorAll(`figure[data-config="${arguments[1]}"] [data-wish="${arguments[0]}"] a[data-witness]`)]
      .map((a) => Object.fromEntries(new URLSearchParams(a.hash.slice(1))))""", wish, config)


# Of each wish: what its number is called, the number, and where on the page name and number stand.
NUMBERS = """return [...document.querySelectorAll(`figure[data-config="${arguments[0]}"] [data-wish]`)].map((one) => {
  const [name, number] = one.querySelector('.wish-number').children, box = one.getBoundingClientRect();
  const [left, right] = [name.getBoundingClientRect().left - box.left, number ? box.right - number.getBoundingClientRect().right : 0];
  const value = one.querySelector(`data[data-what="${one.dataset.wish}"]`)?.value;
  return [one.dataset.wish, name.textContent, value === undefined ? null : Number(value), left, right, Math.round(box.top)]; })"""


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_number_is_the_servers_has_a_name_and_stands_in_line(visit, lang):
    page = visit(fragment("properties", *CONFIGS, lang=lang))
    shown = {slot: page.run(NUMBERS, slot) for slot in "abc"}
    names = [name for _, name, *_ in shown["a"]]
    assert len(set(names)) == 5 and all(len(name) > 3 for name in names)
    for slot, config in zip("abc", CONFIGS):
        wishes = metric(page, config, "properties")["wishes"]
        assert [(wish, name, value) for wish, name, value, *_ in shown[slot]] == [(wish, name, wishes[wish]["value"]) for wish, name in zip(WISHES, names)]
        assert all(abs(left) < 1 and abs(right) < 1 for *_, left, right, _ in shown[slot]), shown[slot]
    tops = [[top for *_, top in rows] for rows in shown.values()]
    assert tops[0] == tops[1] == tops[2], "a wish is beside itself"


def test_witnesses_open_where_they_stand(open_page):
    page = open_page(fragment("properties", *CONFIGS))
    _, learned, alibi = CONFIGS
    results = ask(page, "/analyze", **learned, metrics=["unique", "shift", "bounds"])["results"][0]
    opened = {wish: links(page, wish, "b") for wish in WISHES}
    assert [link["cur"] for link in opened["unique"] if "cur" in link] == [f"{row},0" for row in results["unique"]["witness"]["rows"]]
    row, column = (results["shift"]["witness"][name] for name in ("row", "column"))
    assert (opened["linear"][0]["view"], opened["linear"][0]["cur"]) == ("table", f"{row},{column}") and json.loads(opened["linear"][0]["a"]) == learned
    near, far = links(page, "unique", "c")  # distances -1 and 1, seen from the last query and the first
    assert (near["view"], near["cur"], far["cur"]) == ("bias", "47,46", "0,1") and json.loads(near["a"]) == alibi
    page.click('figure[data-config="b"] [data-wish="linear"] a[data-witness]')
    page.comes(lambda: page.text("h1") == "Table", "the table")
    output = page.find("[data-readout] output[data-config=a]")
    assert (output.get_attribute("data-row"), output.get_attribute("data-col")) == (str(row), str(column))
    assert float(output.get_attribute("data-value")) == pytest.approx(array(page, learned, "encoding")[row, column])


def test_the_rows_of_a_rotation_are_cosines_then_sines(open_page):
    config = {"scheme": "rope", "head_dim": 8, "form": "expanded", "len": 2, "offset": 2}
    page = open_page(fragment("properties", config))
    witness = metric(page, config, "bounds")["witness"]
    (link,) = links(page, "generalises")
    out, column = ("cos", witness["column"]) if witness["column"] < 4 else ("sin", witness["column"] - 4)
    assert (link["out"], link.get("cur", "0,0")) == (out, f"{witness['row']},{column}") and json.loads(link["a"])["form"] == "pairs"
    (grid,) = links(page, "n_dimensional")
    assert json.loads(grid["a"]) == {"scheme": "rope", "head_dim": 8, "form": "expanded", "grid": [8, 8]}


# ---- extrapolate -------------------------------------------------------------------------------------------------------------


def test_facts_and_what_is_copied_are_the_servers(open_page, server):
    page = open_page(fragment("extrapolate", ROPE, ALIBI, train=64, eval=320))
    for slot, config in (("a", ROPE), ("b", ALIBI)):
        rows = page.run("""return [...document.querySelectorAll(`figure[data-config="${arguments[0]}"] [data-fact]`)]
          .map((row) => [row.dataset.fact, [...row.querySelectorAll('data')].map((one) => Number(one.value))])""", slot)
        expected, shown = metric(page, config, "extrapolation", train_len=64, eval_len=320), dict(rows)
        assert (shown["entropy"], shown["mean_distance"]) == (expected["attention"]["entropy"], expected["attention"]["mean_distance"])
        assert shown["unseen_pairs"] == [expected["unseen_pairs"]] and shown["mass_beyond"] == [expected["attention"]["mass_beyond"]]
    assert page.data("pair") == [metric(page, ROPE, "extrapolation", train_len=64, eval_len=320)["witness"]["pair"]]
    page.go(fragment("extrapolate", ROPE, ALIBI, train=64))
    assert json.loads(page.copied("json")) == {**ROPE, "metrics": ["extrapolation"], "outputs": ["unseen"], "train_len": 64}
    assert "rope-unseen.npy" in page.copied("curl")
    page.hash(fragment("extrapolate", ROPE, ALIBI, train=64, on="b"))
    until(lambda: "alibi" in page.copied("json"), what="the request in front")
    assert ask(page, "/analyze", **json.loads(page.copied("json")))["results"][0]["extrapolation"]["train_len"] == 64
    assert "alibi.json" in page.copied("curl") and "json.load(answer)" in page.copied("python")  # no tensor comes with it


# ---- trajectory and multimodal ------------------------------------------------------------------------------------------------


def test_a_click_on_the_path_puts_the_cursor(open_page):
    page = open_page(fragment("trajectory", {"scheme": "sinusoidal", "dim": 16, "len": 24}, cur="3,0"))
    path = Path(page)
    start = [axis[0] + axis[2] for axis in (floats(path.data["x"]), floats(path.data["y"]))]  # of the values 0, 1, 0 at position 0
    size = page.run("return [arguments[0].clientWidth / 2, arguments[0].clientHeight / 2]", path.canvas)
    ActionChains(page.driver).move_to_element_with_offset(path.canvas, *(round(at - half) for at, half in zip(start, size))).click().perform()
    page.settle()
    assert Path(page).data["at"] == "0" and Path(page).data["spin"] == path.data["spin"]


IMAGE = {"preset": "qwen2.5-vl", "segments": [{"type": "text", "len": 3}, {"type": "image", "grid": [1, 4, 8]}, {"type": "text", "len": 5}]}
BLOCKS = "return [...document.querySelectorAll('figure[data-config=a] [data-segment]')].map((b) => [b.dataset.type, Number(b.dataset.count)])"


def test_blocks_and_grid_stand_where_their_tokens_do(open_page):
    page = open_page(fragment("multimodal", IMAGE, cur="0,7"))
    ids = ask(page, "/encode", **IMAGE, outputs=["positions"])["tensors"]["positions"]["data"]
    assert page.run(BLOCKS) == [["text", 3], ["image", 8], ["text", 5]]
    cells = page.run("return [...document.querySelectorAll('[data-grid] td[data-token]')].map((td) => [td.dataset.token, td.dataset.t, td.dataset.h, td.dataset.w].map(Number))")
    assert cells == [[i, *(row[i] for row in ids)] for i in range(3, 11)]
    edges = page.run("return [...document.querySelectorAll('[data-segment]')].map((b) => b.getBoundingClientRect().right)")
    left, lines = page.run("return document.querySelector('canvas[data-lines]').getBoundingClientRect().left"), Lines(page)
    assert all(abs(left + lines.pixel(end - 0.5, 0)[0] - edge) < 2 for edge, end in zip(edges, (3, 11, 16)))


def test_segments_are_stretched_moved_added_and_removed_and_the_address_has_them(open_page):
    def drag(selector, dx):
        ActionChains(page.driver).click_and_hold(page.find(selector)).move_by_offset(dx // 2, 0).move_by_offset(dx - dx // 2, 0).release().perform()
        page.settle()

    def kinds():
        return [one["type"] for one in page.config()["segments"]]

    page = open_page(fragment("multimodal", {**IMAGE, "segments": [IMAGE["segments"][0], {"type": "image", "grid": [1, 4, 12]}, IMAGE["segments"][2]]}))
    drag('[data-segment="1"] .segment-edge', -round(page.run("return document.querySelector('[data-segment=\"1\"]').getBoundingClientRect().width") / 2))
    assert page.config()["segments"][1]["grid"] == [1, 4, 6] and page.run(BLOCKS)[1] == ["image", 6]
    drag('[data-segment="1"]', round(page.run("return document.querySelector('.segments').getBoundingClientRect().width") / 2))
    assert kinds() == ["text", "text", "image"]
    page.click("[data-edit=earlier]")
    page.do("[data-edit=video]")
    assert kinds() == ["text", "image", "video", "text"]
    tensors = ask(page, "/encode", **page.config(), outputs=["positions", "rope_delta"])["tensors"]
    assert page.data("rope_delta") == [tensors["rope_delta"]["data"]] and sum(count for _, count in page.run(BLOCKS)) == len(tensors["positions"]["data"][0])
    page.do("[data-edit=drop]")
    before = page.run(BLOCKS)
    assert [kind for kind, _ in before] == ["text", "image", "text"] and '"grid"' in page.copied("json")
    page = open_page(page.run("return location.hash").lstrip("#"))
    assert page.run(BLOCKS) == before
