"""The view `diagnose`: what it says of a file against /diagnose asked by ourselves. Files are rows of cases/files.jsonl, whose tensors
tests/truth predicts."""
import io
import json
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request

import numpy as np
import pytest

import believed
import rows
import run
from browser import DROP_FILES, fragment, until
from conftest import start_server
from figures import Shown
from probes import Heat, attributes, post

FREQUENCIES = 10000.0 ** (-np.arange(32) / 32)
ANGLES = np.arange(2048)[:, None] * FREQUENCIES
ROWS = rows.rows("files", "view", "configs", "keys", "belief", "files", "way", "saved", "clicks", "holds", "copies")


def table(angles, expand=lambda half: half):
    return {"cos": expand(np.cos(angles)).astype("f4"), "sin": expand(np.sin(angles)).astype("f4")}


class Streamed(io.BytesIO):
    """Of an archive that is written to it sizes stand in the directory only."""

    def seekable(self):
        return False

    def tell(self):
        raise OSError


def npz(tensors, save=np.savez, file=None):
    file = file or io.BytesIO()
    save(file, **tensors)
    return file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def saved(content, way):
    """An archive of tensors by name, or an array."""
    if not isinstance(content, dict):
        return npy(content)
    return npz(content, np.savez_compressed, Streamed()) if way == "streamed" else npz(content)


def array_of(spec):
    """As in a row of tests/cases; pairs are real and imaginary parts of {"$complex": …}."""
    if "$complex" in spec:
        return array_of(spec["$complex"]).view("c8")[..., 0]
    array = believed.tensor(spec, run.drawn) if "$truth" in spec else believed.array_of(spec, run.drawn)
    return np.ascontiguousarray(array, believed.NUMPY[spec.get("dtype", "f32")])


def diagnose(server, data, **belief):
    query = urllib.parse.urlencode({name: value if isinstance(value, str) else json.dumps(value) for name, value in belief.items()})
    request = urllib.request.Request(f"{server.url}/diagnose?{query}", data, {"Content-Type": "application/octet-stream"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def choose(page, tmp_path, name, data, selector=".view input[type=file][data-drop]"):
    path = tmp_path / name
    path.write_bytes(data)
    page.find(selector).send_keys(str(path))
    page.settle()


def give(page, folder, files, way):
    """Files that are dropped at once, or chosen; they stay in the folder, beside which the texts of the request are run."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    if way == "choose":
        page.find("input[type=file][data-drop]").send_keys("\n".join(str(folder / name) for name in files))
    else:
        page.run(DROP_FILES, [[name, list(data)] for name, data in files.items()])
    page.comes(lambda: all(name in (page.text(".diagnose-file + .hint") or "") for name in files), f"{[*files]} in the view")


def findings(page):
    return page.run("return [...document.querySelectorAll('[data-finding]')].map(one => [one.dataset.finding, one.textContent])")


def agrees(page, answer):
    """Findings and candidates are those of the answer."""
    shown = findings(page)
    assert [code for code, _ in shown] == [row["code"] for row in answer["findings"]]
    lang = "_zh" if page.attribute("html", "lang") == "zh-CN" else ""
    assert all(row["detail" + lang] in text for row, (_, text) in zip(answer["findings"], shown))
    cures = page.run("return [...document.querySelectorAll('[data-finding]')].map(one => [...one.querySelectorAll('[data-cure]')].map(lines => lines.textContent))")
    assert cures == [[*dict.fromkeys(filter(None, (row["cure"] or {}).values()))] for row in answer["findings"]]
    cards = page.run("return [...document.querySelectorAll('[data-candidate]')].map(one => [one.dataset.candidate, one.dataset.scheme, one.dataset.verdict, "
                     "...[...one.querySelectorAll('data')].map(data => data.value)])")
    wanted = [[i, row["config"]["scheme"], row["verdict"], row["max_error"], row["equal"]] for i, row in enumerate(answer["candidates"])]
    assert [[int(i), scheme, verdict, float(error), float(equal)] for i, scheme, verdict, error, equal in cards] == wanted
    assert float(page.attribute("figcaption data[data-what=searched]", "value")) == answer["searched"]
    with urllib.request.urlopen(f"{page.url}/schemes") as schemes:
        labels = {row["code"]: row["label" + lang] for row in json.load(schemes)["faults"]}
    unseen = page.run("return [...document.querySelectorAll('[data-unseen]')].map(one => [one.dataset.unseen, one.textContent])")
    assert unseen == [[code, f"{labels[code]} {code}"] for code in answer.get("unseen", ())]


def test_by_its_name_alone_it_shows_an_error_and_the_first_cell_that_has_it(open_page, server):
    page = open_page("view=diagnose")
    assert page.state("none") == page.state("file") == page.state("candidate") == "ready"
    tensors = table(ANGLES[:64], lambda half: np.repeat(half, 2, axis=1))
    answer = diagnose(server, npz(tensors), scheme="rope", head_dim=64, layout="half", form="expanded")
    agrees(page, answer)
    heat = Heat(page, "file")
    assert (heat.output, heat.rows, heat.cols) == ("cos", 64, 64)
    heat.check(tensors["cos"])
    assert answer["candidates"][0]["max_error"] == 0   # then a sentence says so, and no grey map
    assert page.state("b-a") is None and "equals that of the file" in page.text(".diagnose-beside")
    row, col = answer["belief"]["first_bad"]["index"]
    page.run("[...document.querySelectorAll('.view button')].find(one => one.textContent === 'Go to this cell').click()")
    page.settle()
    for config in ("file", "candidate"):
        shown = attributes(page, page.find(f"figure[data-config={config}] [data-readout] output"))
        assert (shown["data-row"], shown["data-col"]) == (str(row), str(col))
        assert np.float32(shown["data-value"]) == tensors["cos"][row, col]


def copies_agree(page, folder, codes, tools):
    """The request's texts, run beside the files, find the same."""
    if all(shutil.which(tool) for tool in tools):
        answer = json.loads(subprocess.run(["sh", "-ec", page.copied("curl")], cwd=folder, capture_output=True, check=True).stdout)
        assert [row["code"] for row in answer["findings"]] == codes
    said = subprocess.run([sys.executable, "-c", page.copied("python")], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert all(f"'code': '{code}'" in said for code in codes)


def numbers(array):
    """Complex ones as pairs."""
    return array.view("f4").reshape(*array.shape, 2) if array.dtype == "c8" else array


def marks(row):
    """A page keeps its file, of which another may be the missing half."""
    return [pytest.mark.fresh] if "copies" in row or "refused" in row["expect"] or len(row["files"]) > 1 else []


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"], marks=marks(row)) for row in ROWS])
def test_a_file(open_page, server, tmp_path, row):
    """What is found is what /diagnose answers for these tensors and what the configuration believes."""
    configs, tensors = row.get("configs", ()), {}
    page = open_page(fragment(row.get("view", "diagnose"), *configs, **{"lang": "en", **row.get("keys", {})}))
    for given in row["files"]:
        arrays = {name: {part: array_of(one) for part, one in spec.items()} if name.endswith(".npz") else array_of(spec) for name, spec in given.items()}
        give(page, tmp_path, {name: saved(content, row.get("saved")) for name, content in arrays.items()}, row.get("way"))
        for name, content in arrays.items():
            tensors.update(content if isinstance(content, dict) else {name.removesuffix(".npy"): content})
    for selector in row.get("clicks", ()):
        page.do(selector)
    rows.patiently(lambda: rows.check(Shown(page), row))
    belief = row.get("belief", {name: value for name, value in (configs or [{}])[0].items() if name != "len"})
    if "findings" in row["expect"] and belief is not None:
        plain = {row.get("holds", {}).get(name, name): numbers(array) for name, array in tensors.items()}
        answer = diagnose(server, npz(plain), **belief)
        rows.patiently(lambda: agrees(page, answer))
        if "copies" in row:
            rows.patiently(lambda: copies_agree(page, tmp_path, row["expect"]["findings"], row["copies"]))


def test_angles_of_float32_are_named(open_page, server, tmp_path):
    page, data = open_page("view=table"), npz(table(np.arange(2048, dtype="f4")[:, None] * FREQUENCIES.astype("f4")))
    choose(page, tmp_path, "some.npz", data, "input[type=file][data-drop]")
    agrees(page, diagnose(server, data))
    assert "angles_f32" in dict(findings(page))


@pytest.mark.fresh
def test_a_candidate_becomes_a_configuration_of_the_first_free_slot(open_page, server, tmp_path):
    page = open_page(fragment("diagnose", {"scheme": "rope", "head_dim": 64, "len": 8}))
    assert "no file" in page.text(".view") and not page.all("[data-finding]")   # a link has none
    choose(page, tmp_path, "halves.npz", npz(table(ANGLES[:64] * 2)))
    best = diagnose(server, npz(table(ANGLES[:64] * 2)), scheme="rope", head_dim=64)["candidates"][0]
    page.do("[data-candidate='0'] [data-action=paste]")
    assert page.text("h1") == "Table" and page.state("b") == "ready"
    pasted = json.loads(page.run("return decodeURIComponent(/[&]b=([^&]*)/.exec(location.hash)[1])"))
    resolved = json.loads(post(server, "/encode", **pasted, data=False))["config"]
    assert resolved == json.loads(post(server, "/encode", **best["config"], **best["sequence"], data=False))["config"]
    page.driver.back()
    page.settle()
    assert page.text("h1") == "Diagnose" and page.state("file") == "ready"   # the file is still there


def test_blocks_of_a_file_are_those_of_the_server(open_page, tmp_path):
    """Zoomed out, file, candidate and difference show the reduction that the address names."""
    angles = np.arange(2048)[:, None] * 10000.0 ** (-np.arange(32) / 32)
    sines = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(2048, 64).astype("f4")
    sines[::7] = np.nextafter(sines[::7], np.float32(2))  # whatever NumPy's sine rounds to, some numbers differ
    page = open_page(fragment("diagnose", {"scheme": "sinusoidal", "dim": 64, "len": 8}, zoom="1/8x1/2", red="max"))
    choose(page, tmp_path, "table.npy", npy(sines))
    heat = Heat(page, "file")
    heat.check(sines.reshape(256, 8, 32, 2).max(axis=(1, 3))[:heat.rows, :heat.cols])
    assert (heat.row_step, heat.col_step) == (8, 2)
    page.go(fragment("diagnose", {"scheme": "sinusoidal", "dim": 64, "len": 8}, zoom="1/8x1/2", red="absmax"))
    for config in ("file", "candidate", "b-a"):
        assert Heat(page, config).reduce == "absmax"
    heat = Heat(page, "file")
    heat.check(np.abs(sines).reshape(256, 8, 32, 2).max(axis=(1, 3))[:heat.rows, :heat.cols])


ASKED = "return performance.getEntriesByType('resource').filter(({ name }) => new URL(name).pathname === '/diagnose').length"


def test_a_file_over_the_limit_is_not_sent(open_page, tmp_path):
    with start_server("--max-body", "65536") as small:
        page = open_page("view=diagnose", url=small.url)
        asked = page.run(ASKED)
        choose(page, tmp_path, "large.npz", npz(table(ANGLES)))
        until(lambda: page.state("none") == "refused", what="the refusal")
        assert "at most 64.0 KiB (65536 B)" in page.text("figure [role=alert]") and page.run(ASKED) == asked == 1
        page.do("[data-action=open]")
        assert page.state("none") == "ready" and dict(findings(page)).keys() == {"layout_swapped"}
        page.driver.get("about:blank")


# ---- Numbers instead of a file ----------------------------------------------------------------------------------------------


@pytest.mark.fresh
def test_ten_numbers_are_typed_in_place_of_a_file(open_page):
    """The form asks for what /diagnose/probe names; what is typed is diagnosed, and fields left empty are not sent."""
    page = open_page(fragment("diagnose", {"scheme": "rope", "head_dim": 64}))
    page.click("[data-action=probe]")
    until(lambda: page.run("return document.querySelectorAll('[data-typed]').length") > 0)
    page.settle()
    asked = page.run("return [...document.querySelectorAll('[data-typed]')].map(one => one.dataset.typed)")
    assert 1 < len(asked) <= 10
    number = {"cos": np.cos, "sin": np.sin}
    for name in asked[:-1]:
        tensor, at = name.rstrip("]").split("[")
        position, channel = map(int, at.split(", "))
        page.find(f"[data-typed='{name}']").send_keys(f"{number[tensor]((position + 1) * FREQUENCIES[channel]):.4f}")
    page.click("[data-action=judge]")
    until(lambda: findings(page))
    page.settle()
    assert findings(page)[0][0] == "off_by_one"
