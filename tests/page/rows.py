"""The rows of cases/: a link or a figure, what a hand changes in it, and what is then there. README.md says what a row may hold."""
import json
import operator
import pathlib
import time

import numpy as np

from browser import until
from figures import PATHS
from lines import Lines
from probes import array, colours, json_text, readout

CASES = pathlib.Path(__file__).resolve().parent / "cases"
KINDS = {}


def rows(name, *keys):
    """[row] of a file; a key that no row may have ends the run."""
    found = [json.loads(line) for line in (CASES / f"{name}.jsonl").read_text().splitlines()]
    ids = [row["id"] for row in found]
    assert len(set(ids)) == len(ids), [one for one in ids if ids.count(one) > 1]
    for row in found:
        unknown = row.keys() - {"id", "why", "expect", "tolerance", *keys} | row["expect"].keys() - KINDS.keys()
        assert not unknown and row["why"] and row["expect"], (row["id"], unknown)
    return found


def check(shown, row, before=None):
    """All that a row expects of what is shown; before: numbers as they were before a hand changed something."""
    for name, wanted in row["expect"].items():
        KINDS[name](shown, wanted, {**row, "before": before or {}})


def patiently(check):
    """For what is not there when nothing is under way: a browser hands on what a hand does when it next draws."""
    for _ in range(25):
        try:
            return check()
        except (AssertionError, IndexError, KeyError):
            time.sleep(0.1)
    return check()


def kind(function):
    KINDS[function.__name__.rstrip("_")] = function
    return function


def near(found, wanted, row, what):
    tolerance = row.get("tolerance", 1e-6)
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, err_msg=f"{row['id']}: {what}")


def number(shown, name):
    """All numbers of "slot what"."""
    slot, what = name.split()
    return shown.numbers(what, slot)


@kind
def states(shown, wanted, row):
    for slot, state in wanted.items():
        assert set(shown.states(slot)) == {state}, (row["id"], slot, shown.states(slot))


@kind
def refused(shown, wanted, row):
    for slot, words in wanted.items():
        assert shown.states(slot)[0] == "refused" and all(word in shown.refusal(slot) for word in words), (row["id"], shown.refusal(slot))


@kind
def drawn(shown, wanted, row):
    """Each picture of these slots, or of all, has at its pixels what separate requests give."""
    shown.check_drawn([wanted] if wanted == "b-a" else wanted)


@kind
def numbers(shown, wanted, row):
    for name, value in wanted.items():
        found = number(shown, name)
        near(found[:np.size(value)], np.atleast_1d(value), row, name)


@kind
def data(shown, wanted, row):
    """Values of elements of this kind, by selector."""
    for selector, value in wanted.items():
        near(float(shown.all(selector, "e.value")[0]), value, row, selector)


@kind
def above(shown, wanted, row):
    assert all(number(shown, name)[0] > value for name, value in wanted.items()), row["id"]


@kind
def below(shown, wanted, row):
    assert all(number(shown, name)[0] < value for name, value in wanted.items()), row["id"]


@kind
def same(shown, wanted, row):
    for slot, names in wanted.items():
        for what in names:
            near(shown.numbers(what, slot), row["before"][slot, what], {**row, "tolerance": 1e-4}, what)


@kind
def differs(shown, wanted, row):
    for slot, names in wanted.items():
        assert all(abs(shown.numbers(what, slot)[0] - row["before"][slot, what][0]) > 1e-3 for what in names), row["id"]


@kind
def read(shown, wanted, row):
    """Row, column and value of the cell that is read out; null is any."""
    found = shown.readout()
    for slot, cell in wanted.items():
        for got, value in zip(found[slot], cell):
            assert value is None or abs(got - value) <= 1e-6 * max(1, abs(value)), (row["id"], slot, found[slot])


@kind
def picked(shown, wanted, row):
    for field, values in wanted.items():
        assert shown.all(f'[data-field="{field}"] [aria-pressed=true]', "e.dataset.value") == values, (row["id"], field)


@kind
def config(shown, wanted, row):
    """Fields of the configurations of its address, those within others by a path with slashes."""
    for slot, fields in wanted.items():
        for path, value in fields.items():
            found = shown.config(slot)
            for name in path.split("/"):
                found = found[int(name) if isinstance(found, list) else name]
            assert found == value or isinstance(value, float) and abs(found / value - 1) < 1e-9, (row["id"], slot, path, found)


@kind
def address(shown, wanted, row):
    """Keys of its address; null: it is not there."""
    found = shown.address()
    assert {key: found.get(key) for key in wanted} == wanted, (row["id"], found)


KINDS["keys"] = address
COMPARE = {">": operator.gt, "<": operator.lt}


@kind
def map_(shown, wanted, row):
    """Attributes of a heat map, without their data-; with > or < behind the name a bound."""
    for slot, fields in wanted.items():
        found = shown.heat(slot).attributes
        for name, value in fields.items():
            got = found[f"data-{name.rstrip('<>')}"]
            compare = COMPARE.get(name[-1], operator.eq)
            assert compare(got if isinstance(value, str) else float(got), value), (row["id"], slot, name, got)


@kind
def cells(shown, wanted, row):
    for slot, values in wanted.items():
        shown.heat(slot).check(np.float32(values))


@kind
def row_(shown, wanted, row):
    """The colours of one drawn row."""
    for slot, (at, values) in wanted.items():
        heat = shown.heat(slot)
        palette = colours(shown.page.url, heat.cmap)
        assert (heat.blocks()[at, :, :3] == palette[heat.numbers(np.float32(values).astype(float)).astype(int)]).all(), (row["id"], slot)


@kind
def colours_(shown, wanted, row):
    """So many, and nothing is transparent."""
    for slot, many in wanted.items():
        blocks = shown.heat(slot).blocks()
        assert (blocks[..., 3] == 255).all() and len(np.unique(blocks.reshape(-1, 4), axis=0)) == many, row["id"]


@kind
def alike(shown, wanted, row):
    blocks = [shown.heat(slot).blocks() for slot in wanted]
    assert all(np.array_equal(blocks[0], other) for other in blocks[1:]), row["id"]


@kind
def legend(shown, wanted, row):
    for slot, names in wanted.items():
        assert list(Lines(shown.page, slot, shown.at).legend) == [f"{slot}:{name}" for name in names], row["id"]


@kind
def lines(shown, wanted, row):
    """Values at the positions 0, 1 and so on; a steep line covers another that is near."""
    for slot in dict.fromkeys(name.split(":")[0] for name in wanted):
        own = {name: list(enumerate(values)) for name, values in wanted.items() if name.startswith(f"{slot}:")}
        Lines(shown.page, slot, shown.at).check(own)


@kind
def holds(shown, wanted, row):
    """Of the five wishes, which hold, or how many."""
    for slot, value in wanted.items():
        found = "".join("01"[one == "true"] for one in shown.all(f'figure[data-config="{slot}"] [data-wish]', "e.dataset.holds"))
        assert (found if isinstance(value, str) else found.count("1")) == value, (row["id"], slot, found)


@kind
def texts(shown, wanted, row):
    for selector, words in wanted.items():
        found = " ".join(shown.all(selector))
        assert all(word in found for word in words), (row["id"], selector, found)


@kind
def no_texts(shown, wanted, row):
    for selector, words in wanted.items():
        assert not any(word in " ".join(shown.all(selector)) for word in words), (row["id"], selector)


@kind
def all_(shown, wanted, row):
    """Every text of what matches."""
    for selector, values in wanted.items():
        assert [text.strip() for text in shown.all(selector)] == values, (row["id"], selector, shown.all(selector))


@kind
def starts(shown, wanted, row):
    for selector, values in wanted.items():
        found = [text.strip() for text in shown.all(selector)]
        assert len(found) == len(values) and [text[:len(start)] for text, start in zip(found, values)] == values, (row["id"], found)


@kind
def count(shown, wanted, row):
    for selector, many in wanted.items():
        assert len(shown.all(selector, "0")) == many, (row["id"], selector)


@kind
def findings(shown, wanted, row):
    assert shown.all("[data-finding]", "e.dataset.finding") == wanted, row["id"]


# ---- of views alone --------------------------------------------------------------------------------------------------------


@kind
def told(shown, wanted, row):
    """The cell that is read out, and its value as the API's JSON writes it; of a difference what the two say."""
    until(lambda: all_told(shown, wanted), what=f"{row['id']}: {wanted}, not {readout(shown.page)},")
    found, keys = readout(shown.page), shown.address()
    for slot in wanted:
        if slot == "b-a":
            continue
        heat = shown.heat(slot)
        text = json_text(shown.page, keys[slot], heat.output, (*heat.at, *wanted[slot]), PATHS.get(keys["view"], "/encode"))
        assert found[slot] == (*wanted[slot], text), (row["id"], found[slot], text)


def all_told(shown, wanted):
    found = readout(shown.page)
    return all(found.get(slot, (None, None, None))[:2] == tuple(cell) and found[slot][2] is not None for slot, cell in wanted.items())


@kind
def range_(shown, wanted, row):
    """The colours of these figures end at the least and the largest value of all of their outputs, also of what is not shown; so do bar and caption."""
    keys, heats = shown.address(), [shown.heat(slot) for slot in wanted]
    wholes = [array(shown.page, keys[slot], heat.output, dtype="f32") for slot, heat in zip(wanted, heats)]
    finite = np.concatenate([whole[np.isfinite(whole)].ravel() for whole in wholes])
    ends = float(finite.min()), float(finite.max())
    for slot, heat in zip(wanted, heats):
        bar = shown.all(f'figure[data-config="{slot}"] [data-colorbar]', "[Number(e.dataset.min), Number(e.dataset.max), e.dataset.cmap]")
        caption = (*shown.numbers("min", slot), *shown.numbers("max", slot))
        assert (heat.min, heat.max) == ends == caption and bar == [[*ends, heat.cmap]], (row["id"], slot, ends, caption, bar)


@kind
def one_scale(shown, wanted, row):
    pictures = [Lines(shown.page, slot, shown.at) for slot in wanted]
    assert all((one.x_range, one.y_range) == (pictures[0].x_range, pictures[0].y_range) for one in pictures), row["id"]


@kind
def attributes_(shown, wanted, row):
    for selector, values in wanted.items():
        found = {name: shown.all(selector, f"e.getAttribute('{name}')")[0] for name in values}
        assert found == values, (row["id"], found)


@kind
def labels(shown, wanted, row):
    """Words in the name that a map has for who does not see it."""
    for slot, words in wanted.items():
        found = shown.heat(slot).attributes["aria-label"].replace(",", "").replace("\u202f", "")
        assert all(word in found for word in words), (row["id"], found)


@kind
def ticks(shown, wanted, row):
    for side, values in wanted.items():
        found = [float(text) for text in shown.all(f"figure .heat-{side} > span")]
        assert set(values) <= set(found), (row["id"], found)


@kind
def shown_(shown, wanted, row):
    for selector, is_shown in wanted.items():
        assert (True in shown.page.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.checkVisibility())", selector)) == is_shown, (row["id"], selector)


@kind
def invalid(shown, wanted, row):
    """The control of this field has the focus and is described by the reason."""
    page = shown.page
    until(lambda: page.focused_field() == wanted, 5, f"{row['id']}: the focus on {wanted}, not {page.focused_field()},")
    field = page.field(wanted)
    ids = field.get_attribute("aria-describedby").split()
    described = page.run("return arguments[0].map((id) => document.getElementById(id).textContent)", ids)
    assert field.get_attribute("aria-invalid") == "true" and page.notice("refused").strip() in described, (row["id"], described)


@kind
def focus(shown, wanted, row):
    assert shown.page.focused_field() == wanted, row["id"]


@kind
def values(shown, wanted, row):
    for selector, value in wanted.items():
        assert shown.all(selector, "e.value")[0] == value, (row["id"], selector)


@kind
def has_key(shown, wanted, row):
    assert {key: key in shown.address() for key in wanted} == wanted, (row["id"], shown.address())


@kind
def has_config(shown, wanted, row):
    assert all(name in shown.config(slot) for slot, names in wanted.items() for name in names), (row["id"], shown.address())


@kind
def x_range(shown, wanted, row):
    for slot, ends in wanted.items():
        found = Lines(shown.page, slot, shown.at).x_range
        assert all(end is None or abs(end - got) < 1e-9 for end, got in zip(ends, found)), (row["id"], found)


@kind
def own_range(shown, wanted, row):
    """Each map's colours end at the least and the largest of its own values."""
    for slot in wanted:
        for heat in shown.heats(slot):
            values = array(shown.page, shown.config(slot), heat.output, dtype="f32")[heat.at[0]]
            finite = values[np.isfinite(values)]
            assert (heat.min, heat.max) == (finite.min(), finite.max()), (row["id"], heat.at)


@kind
def open_dialog(shown, wanted, row):
    """A dialog with this; it closes again."""
    assert shown.page.all(f"dialog[open] {wanted}"), row["id"]
    shown.page.run("document.querySelector('dialog[open]').close()")
