"""The view `properties`: the five wishes with the server's numbers, and links to where each can be seen."""
import json

import pytest

from browser import fragment, until
from lines import Lines, post

WISHES = ["unique", "linear", "generalises", "deterministic", "n_dimensional"]
CONFIGS = [{"scheme": "binary", "bits": 6, "len": 48}, {"scheme": "learned", "dim": 16, "len": 48, "seed": 3}, {"scheme": "alibi", "num_heads": 4, "len": 48}]
READ = """return [...document.querySelectorAll(`figure[data-config="${arguments[0]}"] [data-wish]`)].map((one) =>
  [one.dataset.wish, one.dataset.holds, one.querySelector(`data[data-what="${one.dataset.wish}"]`)?.value ?? null])"""


def links(page, wish, config="a"):
    return page.run("""return [...document.querySelectorAll(`figure[data-config="${arguments[1]}"] [data-wish="${arguments[0]}"] a[data-witness]`)]
      .map((a) => Object.fromEntries(new URLSearchParams(a.hash.slice(1))))""", wish, config)


def test_each_wish_has_the_servers_verdict_and_number(open_page, server):
    page = open_page(fragment("properties", *CONFIGS))
    for slot, config in zip("abc", CONFIGS):
        expected = post(server.url, "/analyze", {**config, "metrics": ["properties"]})["results"][0]["properties"]
        shown = page.run(READ, slot)
        assert [wish for wish, _, _ in shown] == WISHES and page.state(slot) == "ready"
        for wish, holds, value in shown:
            known = expected["wishes"][wish]
            assert holds == str(known["holds"]).lower(), (slot, wish)
            assert (value is None) == (known["value"] is None) and (value is None or float(value) == float(known["value"])), (slot, wish)
        assert page.attribute(f'figure[data-config="{slot}"] figcaption data[data-what="value"]', "value") == str(expected["value"])
    data = post(server.url, "/analyze", {**CONFIGS[1], "metrics": ["step"], "outputs": ["step"]})["tensors"]["step.0"]["data"]
    assert Lines(page, "properties", "b").missing("b:step", list(enumerate(map(float, data)))) == []


# Of each wish: what its number is called, and where on the page name and number stand.
NUMBERS = """return [...document.querySelectorAll(`figure[data-config="${arguments[0]}"] [data-wish]`)].map((one) => {
  const [name, number] = one.querySelector('.wish-number').children, box = one.getBoundingClientRect();
  const [left, right] = [name.getBoundingClientRect().left - box.left, number ? box.right - number.getBoundingClientRect().right : 0];
  return [one.dataset.wish, name.textContent, left, right, Math.round(box.top)]; })"""


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_number_has_a_name_and_stands_in_line(visit, lang):
    page = visit(fragment("properties", *CONFIGS, lang=lang))
    shown = {slot: page.run(NUMBERS, slot) for slot in "abc"}
    names = [name for _, name, *_ in shown["a"]]
    assert len(set(names)) == 5 and all(len(name) > 3 for name in names)
    for slot in "abc":
        assert [wish for wish, *_ in shown[slot]] == WISHES and [name for _, name, *_ in shown[slot]] == names
        assert all(abs(left) < 1 and abs(right) < 1 for _, _, left, right, _ in shown[slot]), shown[slot]
    tops = [[top for *_, top in rows] for rows in shown.values()]
    assert tops[0] == tops[1] == tops[2], "a wish is beside itself"


def test_witnesses_open_where_they_stand(open_page, server):
    page = open_page(fragment("properties", *CONFIGS))
    _, learned, alibi = CONFIGS
    results = post(server.url, "/analyze", {**learned, "metrics": ["unique", "shift", "bounds"]})["results"][0]
    opened = {wish: links(page, wish, "b") for wish in WISHES}
    assert [link["cur"] for link in opened["unique"] if "cur" in link] == [f"{row},0" for row in results["unique"]["witness"]["rows"]]
    shift = results["shift"]["witness"]
    assert opened["linear"][0]["view"] == "table" and opened["linear"][0]["cur"] == f"{shift['row']},{shift['column']}"
    assert json.loads(opened["linear"][0]["a"]) == learned
    near, far = links(page, "unique", "c")  # distances -1 and 1, seen from the last query and the first
    assert (near["view"], near["cur"], far["cur"]) == ("bias", "47,46", "0,1") and json.loads(near["a"]) == alibi
    page.click('figure[data-config="b"] [data-wish="linear"] a[data-witness]')
    until(lambda: page.text("h1") == "Table", what="the table")
    page.settle()
    expected = post(server.url, "/encode", learned)["tensors"]["encoding"]["data"][shift["row"]][shift["column"]]
    output = page.find("[data-readout] output[data-config=a]")
    assert (output.get_attribute("data-row"), output.get_attribute("data-col")) == (str(shift["row"]), str(shift["column"]))
    assert float(output.get_attribute("data-value")) == pytest.approx(expected)


def test_the_rows_of_a_rotation_are_cosines_then_sines(open_page, server):
    config = {"scheme": "rope", "head_dim": 8, "form": "expanded", "len": 2, "offset": 2}
    page = open_page(fragment("properties", config))
    witness = post(server.url, "/analyze", {**config, "metrics": ["bounds"]})["results"][0]["bounds"]["witness"]
    (link,) = links(page, "generalises")
    out, column = ("cos", witness["column"]) if witness["column"] < 4 else ("sin", witness["column"] - 4)
    assert (link["out"], link.get("cur", "0,0")) == (out, f"{witness['row']},{column}") and json.loads(link["a"])["form"] == "pairs"
    (grid,) = links(page, "n_dimensional")
    assert json.loads(grid["a"]) == {"scheme": "rope", "head_dim": 8, "form": "expanded", "grid": [8, 8]}


def test_one_length_for_all(open_page, server):
    page = open_page(fragment("properties", {"scheme": "sinusoidal", "dim": 4, "positions": [0, 1, 2]}, CONFIGS[0]))
    page.run("""const field = document.querySelector('.view-controls [data-field="len"]'); field.value = 1886;
      field.dispatchEvent(new Event('input', { bubbles: true }))""")
    page.settle()
    shown = {key: json.loads(page.run("return new URLSearchParams(location.hash.slice(1)).get(arguments[0])", key)) for key in "ab"}
    assert shown == {"a": {"scheme": "sinusoidal", "dim": 4, "len": 1886}, "b": {**CONFIGS[0], "len": 1886}} or page.state("b") == "refused"
    assert [link.get("cur", "0,0") for link in links(page, "unique")] == ["0,0", "1885,0"]
    assert page.run(READ, "a")[0][2].startswith("0.0444064")


def test_a_scheme_without_rows_is_refused_in_words(open_page):
    page = open_page(fragment("properties", {"scheme": "shaw", "max_relative": 4, "len": 8}))
    assert page.state() == "refused" and "absolute, rotary" in page.text("figure [role=alert]")
    page.hash(fragment("properties", {"scheme": "rope", "len": 0}))
    page.settle()
    assert page.state() == "refused" and page.attribute('[data-field="len"][data-config="a"]', "aria-invalid") == "true"
    page.hash(fragment("properties", {"scheme": "rope", "len": 8}))
    page.settle()
    assert page.state() == "ready"
