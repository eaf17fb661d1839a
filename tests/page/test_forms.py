"""Forms: a card for each configuration, made from /schemes alone, that changes the request while it is used."""
import json

import pytest
from selenium.webdriver.common.keys import Keys

from altered_proxy import altered_proxy
from browser import CHOOSE, Page, fragment, until
from rows import CASES

ROPE = {"scheme": "rope", "len": 32}
LABEL = {"en": "label", "zh": "label_zh"}


@pytest.fixture(scope="module")
def reference(server):
    return server.get("/schemes").json()


def request_of(page, config="a"):
    """The configuration as its card shows it."""
    return json.loads(page.run("return document.querySelector(`[data-field=json][data-config=${arguments[0]}]`).value", config))


def becomes(page, expected, config="a"):
    until(lambda: page.config(config) == expected, 5, f"{expected}, not {page.config(config)},")
    assert request_of(page, config) == expected


def choose(page, field, value):
    assert page.run(CHOOSE, page.field(field), value), f"{field} does not offer {value}"


def open_details(page):
    page.run("document.querySelectorAll('[data-card] details').forEach((details) => { details.open = true; })")


# ---- made from the rows -------------------------------------------------------------------------------------------------

LABELS = """
const labels = {}, card = document.querySelector(`[data-card=${arguments[0]}]`);
for (const control of card.querySelectorAll('[data-field]')) {
  const label = document.querySelector(`label[for="${control.id}"]`);
  labels[control.dataset.field] = label ? label.firstChild.textContent : control.getAttribute('aria-label');
}
return labels;
"""
# The schemes of the cards, and the language.
AT = """return [[...document.querySelectorAll('[data-card]')].map((card) => {
  const { scheme } = JSON.parse(card.querySelector('[data-field=json]').value);
  return scheme === card.querySelector('[data-field=scheme]').value ? scheme : null;
}), document.documentElement.lang.slice(0, 2)];"""


def expected_labels(rows, lang, prefix=""):
    labels = {}
    for row in rows:
        if row["type"] == "object":
            labels.update(expected_labels(row["parameters"], lang, f"{row['name']}."))
        else:
            labels[prefix + row["name"]] = row[LABEL[lang]]
    return labels


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_row_of_every_scheme_has_a_control_with_its_label(walked, reference, lang):
    for scheme in reference["schemes"]:
        labels = walked[scheme["name"]][lang]
        assert expected_labels(scheme["parameters"], lang).items() <= labels.items(), scheme["name"]
        assert all(labels.values()), scheme["name"]


def test_attention_has_its_own_rows_too(visit, reference):
    page = visit(fragment("attention", {"scheme": "alibi", "tokens": ["a", "b"]}))
    alibi = next(scheme for scheme in reference["schemes"] if scheme["name"] == "alibi")
    assert expected_labels(alibi["parameters"] + alibi["attention"]["parameters"], "en").items() <= page.run(LABELS, "a").items()


# A control is changed as its user does, by an event; gives [its value, whether the request has it, whether it left again].
CHANGE = """
const [row, value, slot] = arguments, card = document.querySelector(`[data-card=${slot}]`);
const json = () => JSON.parse(card.querySelector('[data-field=json]').value);
const control = () => card.querySelector(`[data-field="${row.name}"]`);
const put = (value) => {
  const one = control();
  if (one.type === 'checkbox') one.checked = value; else one.value = value;
  one.dispatchEvent(new Event(one.tagName === 'SELECT' || one.type === 'checkbox' ? 'change' : 'input', { bubbles: true }));
};
if (control().closest('[hidden]')) return null;
put(value);
const has = json()[row.name];
put(row.default ?? '');
return [has, row.name in json()];
"""


def another(row):
    """A value that is not the default."""
    if row["type"] == "boolean":
        return not row["default"]
    if "values" in row:
        return next(value for value in row["values"] if value != row["default"])
    if row["type"] in ("integer", "number"):
        return row["usual"][1] if row["usual"][1] != row["default"] else row["usual"][0]
    return [1, 2]


@pytest.fixture(scope="module")
def walked(driver, server, reference):
    """{scheme: {"en": labels, "zh": labels, "changed": {row: (value, its answer)}}}, in one walk through all schemes, four at a time."""
    found, page = {}, Page(driver, server.url).open(fragment("table", ROPE, lang="en"))
    for first in range(0, len(reference["schemes"]), 4):
        schemes = reference["schemes"][first:first + 4]
        names = [scheme["name"] for scheme in schemes]
        for lang in ("zh", "en"):
            page.hash(fragment("table", *({"scheme": name, "len": 8} for name in names), lang=lang))
            until(lambda: page.run(AT) == [names, lang], 5, f"{names} in {lang}")
            for slot, name in zip("abcd", names):
                found.setdefault(name, {})[lang] = page.run(LABELS, slot)
        for slot, scheme in zip("abcd", schemes):
            rows = [row for row in scheme["parameters"] if row["level"] == "basic" and row["type"] != "object"]
            values = {row["name"]: another(row) for row in rows}
            found[scheme["name"]]["changed"] = {row["name"]: (values[row["name"]], page.run(CHANGE, row, text_of(values[row["name"]]), slot)) for row in rows}
    page.settle()
    return found


def text_of(value):
    return json.dumps(value) if isinstance(value, list) else value


def test_each_basic_control_changes_the_request_and_its_default_leaves_it(walked):
    tried = 0
    for scheme, of in walked.items():
        for row, (value, answer) in of["changed"].items():
            if answer is not None:
                tried += 1
                assert answer == [value, False], (scheme, row)
    assert tried > 60


NEW = json.loads((CASES / "imagined.json").read_text())


def test_a_scheme_that_the_page_has_never_heard_of_has_its_form(open_page, server):
    with altered_proxy(server, {"/schemes": lambda answer: {**answer, "schemes": [*answer["schemes"], NEW]}}) as url:
        page = open_page(fragment("table", ROPE), url)
        choose(page, "scheme", "imagined")
        becomes(page, {"scheme": "imagined", "len": 32})
        assert page.text("[data-card=a] h3") == "imagined encoding"
        assert page.run(LABELS, "a")["warp"] == "warp of time"
        page.type("warp", "4.5")
        becomes(page, {"scheme": "imagined", "len": 32, "warp": 4.5})
        assert not page.field("edge").is_displayed()
        open_details(page)
        choose(page, "mode", "hard")
        until(lambda: page.field("edge").is_displayed(), 5, "a control whose condition holds")
        page.type("edge", "7")
        becomes(page, {"scheme": "imagined", "len": 32, "warp": 4.5, "mode": "hard", "edge": 7})
        choose(page, "mode", "soft")
        becomes(page, {"scheme": "imagined", "len": 32, "warp": 4.5})
        page.click('[data-action="lang"]')
        page.comes(lambda: page.run(LABELS, "a")["warp"] == "时间弯曲", "the Chinese label", 5)


# ---- values ---------------------------------------------------------------------------------------------------------------


def test_focus_and_caret_stay_while_typing(open_page):
    page = open_page(fragment("table", {"scheme": "rope", "positions": [1, 2, 3]}))
    field = page.field("positions")
    page.run("arguments[0].focus(); arguments[0].setSelectionRange(2, 2)", field)
    field.send_keys("0")
    becomes(page, {"scheme": "rope", "positions": [10, 2, 3]})
    page.settle()
    caret = "return [document.activeElement === arguments[0], arguments[0].selectionStart, arguments[0].value]"
    assert page.run(caret, field) == [True, 3, "[10, 2, 3]"]
    field.send_keys("]")
    assert field.get_attribute("aria-invalid") == "true" and field.get_attribute("value") == "[10], 2, 3]"
    assert request_of(page)["positions"] == [10, 2, 3]
    field.send_keys(Keys.BACKSPACE)
    assert field.get_attribute("aria-invalid") is None


def options(page, field):
    return [value for value in page.run("return [...arguments[0].options].map((option) => option.value)", page.field(field)) if value]


def test_every_kind_of_sequence_and_of_scaling_shows_a_picture(visit):
    page = visit(fragment("table", ROPE))
    for field, last in (("sequence", "len"), ("scaling.type", "yarn")):
        for kind in [*options(page, field), last]:
            choose(page, field, kind)
            page.settle()
            if kind in ("su", "mrope"):  # names of other rules in old files
                continue
            found = request_of(page)
            assert page.state() == "ready", (kind, found, page.notice("refused"))
            assert kind in found if field == "sequence" else found.get("scaling", {"type": "default"})["type"] == kind
    assert page.field("scaling.beta_fast").get_attribute("value") == "32"
    page.type("scaling.beta_fast", "16")
    until(lambda: request_of(page)["scaling"].get("beta_fast") == 16, 5, "beta_fast")


# ---- refusals -------------------------------------------------------------------------------------------------------------


def test_a_refused_value_is_described_and_takes_the_focus_only_when_asked(open_page):
    page = open_page(fragment("table", {**ROPE, "rotary_dim": 64}))
    open_details(page)
    page.type("rotary_dim", "65")
    until(lambda: page.field("rotary_dim").get_attribute("aria-invalid") == "true", 5, "aria-invalid")
    assert "odd" in page.notice("refused")
    page.field("len").click()
    page.type("len", "40")
    page.settle()
    assert page.focused_field() == "len"
    page.field("len").send_keys(Keys.ENTER)
    assert page.focused_field() == "rotary_dim"
    page.type("rotary_dim", "32")
    page.comes(lambda: page.field("rotary_dim").get_attribute("aria-invalid") is None, "a good value", 5)
    assert page.state() == "ready"


# ---- configurations -------------------------------------------------------------------------------------------------------


def test_up_to_four_cards_and_none(open_page):
    page = open_page(fragment("table", ROPE))
    for n in (2, 3, 4):
        page.click('[data-action="add"]')
        until(lambda: len(page.all("[data-card]")) == n, 5, f"{n} cards")
    assert not page.find('[data-action="add"]').is_enabled()
    page.settle()
    page.type("base", "77", config="c")
    becomes(page, {**ROPE, "base": 77}, "c")
    assert page.config("a") == page.config("d") == ROPE
    for slot in "badc":
        page.click(f'[data-action="remove"][data-config="{slot}"]')
    page.comes(lambda: page.all('figure[data-state="empty"]'), "empty", 5)
    page.click("[data-action=undo]")
    until(lambda: page.all("[data-card]"), 5, "the card again")
    page.do("[data-action=redo]")
    where = page.run("return location.hash")
    assert where.endswith("a=null")
    page.open(where[1:])  # the address restores it
    assert len(page.all('figure[data-state="empty"] a[data-scheme]')) == 5 and not page.all("[data-card]")
    page.click('figure[data-state="empty"] a[data-scheme="rope"]')
    page.comes(lambda: page.all("[data-card]"), "a card", 5)
    assert page.state() == "ready"


MODEL = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4, "rope_theta": 500000.0, "vocab_size": 5}


def test_what_was_read_of_a_model_file_is_reported(open_page, server):
    report = {"model_type": "llama", "certainty": "a test's", "ignored": ["vocab_size", "torch_dtype"],
              "defaults": {"max_position_embeddings": 2048}, "first_position": 2}
    with altered_proxy(server, {"/encode": lambda answer: {**answer, "hf_config": report}}) as url:
        page = open_page(fragment("table", {"hf_config": MODEL, "len": 16}), url)
        text = page.text("[data-card=a] [data-read]")
        for part in ("llama", "a test's", "vocab_size", "torch_dtype", "max_position_embeddings: 2048"):
            assert part in text
        assert page.text("[data-card=a] [data-first_position] p").strip() == "2"
        assert page.field("head_dim").get_attribute("value") == "64" and page.field("scheme").get_attribute("value") == "rope"
        page.click('[data-card=a] [data-read] button')
        until(lambda: "hf_config" not in request_of(page), 5, "parameters in place of the file")
        assert request_of(page)["base"] == 500000 and request_of(page)["head_dim"] == 64
        page.settle()
        assert page.state() == "ready"
