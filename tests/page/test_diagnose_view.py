"""The view `diagnose`: what it says of a file against /diagnose asked by ourselves; the files are made with NumPy alone."""
import io
import json
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request

import numpy as np
import pytest

from browser import fragment, until
from conftest import start_server
from probes import Heat, attributes, post

FREQUENCIES = 10000.0 ** (-np.arange(32) / 32)
ANGLES = np.arange(2048)[:, None] * FREQUENCIES
YARN = {"scheme": "rope", "head_dim": 64, "scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}}


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


def yarn_angles():
    """Peng et al. 2023, section 3.2: below 1 turn in the original length interpolated, beyond 32 kept."""
    dims = [32 * np.log(4096 / (turns * 2 * np.pi)) / np.log(10000.0) for turns in (32, 1)]
    low, high = np.floor(dims[0]), np.ceil(dims[1])
    ramp = np.clip((np.arange(32) - low) / (high - low), 0, 1)
    return np.arange(64)[:, None] * (FREQUENCIES / 4 * ramp + FREQUENCIES * (1 - ramp))


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


def dropped(page, **files):
    """Files dropped at once, by name with _ for the dot before their kind."""
    page.run(DROP_FILES, [[".".join(name.rsplit("_", 1)), list(data)] for name, data in files.items()])
    page.settle()


def drop(page, **arrays):
    dropped(page, **{f"{name}_npy": npy(array) for name, array in arrays.items()})


def shows(page, name):
    page.comes(lambda: name in page.text(".view .hint"), name)


def findings(page):
    return page.run("return [...document.querySelectorAll('[data-finding]')].map(one => [one.dataset.finding, one.textContent])")


def agrees(page, answer):
    """Findings and candidates are those of the answer."""
    shown = findings(page)
    assert [code for code, _ in shown] == [row["code"] for row in answer["findings"]]
    assert all(row["detail"] in text for row, (_, text) in zip(answer["findings"], shown))
    cards = page.run("return [...document.querySelectorAll('[data-candidate]')].map(one => [one.dataset.candidate, one.dataset.scheme, one.dataset.verdict, "
                     "...[...one.querySelectorAll('data')].map(data => data.value)])")
    wanted = [[i, row["config"]["scheme"], row["verdict"], row["max_error"], row["equal"]] for i, row in enumerate(answer["candidates"])]
    assert [[int(i), scheme, verdict, float(error), float(equal)] for i, scheme, verdict, error, equal in cards] == wanted
    assert float(page.attribute("figcaption data[data-what=searched]", "value")) == answer["searched"]


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


@pytest.mark.parametrize("code, config, tensors", [
    ("angles_f32", None, lambda: table(np.arange(2048, dtype="f4")[:, None] * FREQUENCIES.astype("f4"))),
    ("layout_swapped", {"scheme": "rope", "layout": "interleaved"}, lambda: table(ANGLES[:64], lambda half: np.concatenate([half, half], axis=1))),
    ("attention_factor_missing", YARN, lambda: table(yarn_angles()))])
def test_errors_of_files_are_named(open_page, server, tmp_path, code, config, tensors):
    page, data = open_page(fragment("diagnose", {**config, "len": 8}) if config else "view=table"), npz(tensors())
    if config is None:   # chosen elsewhere, a file leads to the view
        page.click("[data-action=paste]")
    choose(page, tmp_path, "some.npz", data, *(() if config else ("dialog input[type=file][data-drop]",)))
    assert page.text("h1") == "Diagnose"
    agrees(page, diagnose(server, data, **(config or {})))
    assert code in dict(findings(page))


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


def test_what_it_holds_can_be_chosen_and_expected_configurations_left_out(open_page, server, tmp_path):
    page = open_page(fragment("diagnose", {"scheme": "alibi", "num_heads": 4, "len": 8}))
    slopes = 2.0 ** -(2 * np.arange(1, 5))
    bias = (-np.abs(np.subtract.outer(np.arange(16), np.arange(16))) * slopes[:, None, None]).astype("f4")
    choose(page, tmp_path, "other.npz", npz({"other": bias}))
    assert page.state("none") == "refused" and "there is no tensor to explain" in page.text("figure [role=alert]")
    page.do("[data-field=holds] [data-value=bias]")
    agrees(page, diagnose(server, npz({"bias": bias}), scheme="alibi", num_heads=4))
    page.do("[data-field=belief] [data-value=none]")
    agrees(page, diagnose(server, npz({"bias": bias})))
    choose(page, tmp_path, "lone.npy", npy(bias))
    assert page.attribute("[data-field=holds] [aria-pressed=true]", "data-value") == "bias"
    assert attributes(page, page.find("figure[data-config=file] canvas"))["data-output"] == "bias"


DROP_FILES = """const data = new DataTransfer();
for (const [name, bytes] of arguments[0]) data.items.add(new File([Uint8Array.from(bytes)], name));
document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));"""
ROPE = {"scheme": "rope", "layout": "half", "len": 8}


def rotated():
    """q and what the interleaved layout makes of it."""
    q = np.random.default_rng(5).standard_normal((8, 64)).astype("f4")
    z = (q[:, 0::2] + 1j * q[:, 1::2]) * np.exp(1j * ANGLES[:8])
    return {"q": q, "q_out": np.stack([z.real, z.imag], axis=-1).reshape(8, 64).astype("f4")}


TURNS = np.exp(1j * ANGLES[:16])
PAIRED = np.stack([TURNS.real, TURNS.imag], axis=-1)
KINDS = {
    "inv_freq": {"inv_freq": FREQUENCIES}, "rope_freqs": {"rope_freqs": np.ones(32)}, "angles": {"angles": ANGLES[:16]}, "freqs": {"freqs": ANGLES[:16]},
    "freqs_cis": {"freqs_cis": PAIRED}, "cos_sin": {"cos_sin": np.concatenate([TURNS.real, TURNS.imag], axis=1)},
    "matrix": {"matrix": np.stack([TURNS.real, -TURNS.imag, TURNS.imag, TURNS.real], axis=-1).reshape(16, 32, 2, 2)},
}
DRAWN = {"inv_freq", "freqs_cis", "cos_sin", "matrix"}   # what /encode gives too, so that the candidate is beside it


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_evidence_may_be_dropped(open_page, server, kind):
    """In an archive, or alone and called as what it is."""
    belief = {"scheme": "rope", "head_dim": 64, **({"scaling": {"type": "linear", "factor": 2}} if kind == "rope_freqs" else {"base": 500000})}
    page = open_page(fragment("diagnose", {**belief, "len": 8}))
    arrays = {name: array.astype("f4") for name, array in KINDS[kind].items()}
    answer = diagnose(server, npz(arrays), **belief)
    assert [row["code"] for row in answer["findings"]] == ["scaling_missing" if kind == "rope_freqs" else "base_other"]
    for name, data in (("file_npz", npz(arrays)), (f"{kind}_npy", npy(arrays[kind]))):
        dropped(page, **{name: data})
        shows(page, ".".join(name.rsplit("_", 1)))
        agrees(page, answer)
        assert page.state("file") == "ready" and len(page.all("figure[data-config=candidate]")) == (kind in DRAWN)


def test_complex_numbers_are_read_and_keys_are_rotated(open_page, server):
    page = open_page(fragment("diagnose", {**ROPE, "head_dim": 64}))
    pair, q = {"freqs_cis": PAIRED.astype("f4")}, rotated()
    keys = {"k": q["q"], "k_out": q["q_out"]}
    for name, data, tensors in (("turns_npy", npy(TURNS.astype("c8")), pair), ("turns_npz", npz({"freqs_cis": TURNS.astype("c8")}), pair), ("keys_npz", npz(keys), keys)):
        dropped(page, **{name: data})
        shows(page, name.replace("_", "."))
        agrees(page, diagnose(server, npz(tensors), scheme="rope", layout="half", head_dim=64))
        assert page.state("candidate") == "ready"
    assert dict(findings(page)).keys() == {"layout_swapped"}


def test_a_file_that_is_as_expected_says_what_it_does_not_show(open_page, server, tmp_path):
    page, file = open_page(fragment("diagnose", {"scheme": "rope", "head_dim": 64, "len": 8})), npz(table(ANGLES[:16]))
    choose(page, tmp_path, "pairs.npz", file)
    unseen = diagnose(server, file, scheme="rope", head_dim=64)["unseen"]
    shown = page.run("return [...document.querySelectorAll('[data-unseen]')].map(one => [one.dataset.unseen, one.textContent])")
    with urllib.request.urlopen(f"{server.url}/schemes") as answer:
        labels = {row["code"]: row for row in json.load(answer)["faults"]}
    assert "layout_swapped" in unseen and shown == [[code, f"{labels[code]['label']} {code}"] for code in unseen]
    page.go(fragment("diagnose", {"scheme": "rope", "head_dim": 64, "len": 8}, lang="zh"))
    shown = page.run("return [...document.querySelectorAll('[data-unseen]')].map(one => one.textContent)")
    assert shown == [f"{labels[code]['label_zh']} {code}" for code in unseen]
    choose(page, tmp_path, "other.npz", npz(table(ANGLES[:16] * 2)))
    assert not page.all("[data-unseen]")


def copies_agree(page, server, folder, codes, tools):
    """The request's texts, run beside the files, find the same."""
    page.settle()
    if all(shutil.which(tool) for tool in tools):
        answer = json.loads(subprocess.run(["sh", "-ec", page.copied("curl")], cwd=folder, capture_output=True, check=True).stdout)
        assert [row["code"] for row in answer["findings"]] == codes
    said = subprocess.run([sys.executable, "-c", page.copied("python")], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert all(f"'code': '{code}'" in said for code in codes)


@pytest.mark.fresh
def test_arrays_that_come_together_are_one_question(open_page, server, tmp_path):
    """Each is called as its file, as in the lines for curl; where that says nothing, what they hold can be chosen."""
    page, tensors = open_page(fragment("diagnose", ROPE)), rotated()
    answer = diagnose(server, npz(tensors), scheme="rope", layout="half")
    assert [row["code"] for row in answer["findings"]] == ["layout_swapped"]
    files = {f"{name}.npy": npy(array) for name, array in tensors.items()}
    drop(page, **dict(reversed(tensors.items())))
    page.comes(lambda: page.state("none") == "ready", "the answer")
    agrees(page, answer)
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        (tmp_path / f"my {name}").write_bytes(data)
    assert "-F q=@q.npy" in page.copied("curl")
    copies_agree(page, server, tmp_path, ["layout_swapped"], ["curl"])
    page.find(".view input[type=file][data-drop]").send_keys("\n".join(str(tmp_path / f"my {name}") for name in files))
    until(lambda: page.state("none") == "refused", what="the refusal of names that say nothing")
    page.do("[data-field=holds] [data-value='q,q_out']")
    agrees(page, answer)
    copies_agree(page, server, tmp_path, ["layout_swapped"], ["curl"])


@pytest.mark.fresh
def test_texts_of_an_archive_that_was_compressed_and_streamed_take_its_arrays_out(open_page, server, tmp_path):
    page = open_page(fragment("diagnose", ROPE))
    choose(page, tmp_path, "small.npz", npz(rotated(), np.savez_compressed, Streamed()))
    assert [code for code, _ in findings(page)] == ["layout_swapped"]
    copies_agree(page, server, tmp_path, ["layout_swapped"], ["curl", "unzip"])


def test_blocks_of_a_file_are_those_of_the_server(open_page, tmp_path):
    """Zoomed out, file, candidate and difference show the reduction that the address names."""
    angles = np.arange(2048)[:, None] * 10000.0 ** (-np.arange(32) / 32)
    sines = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(2048, 64).astype("f4")
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


def test_a_configuration_that_does_not_explain_the_file_is_left_out(open_page, server):
    """Nobody has said that it is expected: cosines dropped on a sinusoidal table are those of a rotation all the same."""
    page = open_page(fragment("table", {"scheme": "sinusoidal", "dim": 64, "len": 8}))
    tensors = table(ANGLES[:16])
    dropped(page, turns_npz=npz(tensors))
    page.comes(lambda: page.text("h1") == "Diagnose", "the view of files")
    assert page.state("none") == "ready" and page.attribute("[data-field=belief] [aria-pressed=true]", "data-value") == "none"
    agrees(page, diagnose(server, npz(tensors)))
    page.click("[data-field=belief] [data-value=a]")   # who says so hears why not
    until(lambda: page.state("none") == "refused", what="the refusal")
    assert "does not rotate" in page.text("figure [role=alert]")


@pytest.mark.parametrize("first, then", [("q_out", "q"), ("q", "q_out"), ("sin", "cos")])
def test_one_of_two_tensors_asks_for_the_other(open_page, server, first, then):
    page = open_page("view=diagnose")
    tensors = {**rotated(), **table(ANGLES[:16])}
    drop(page, **{first: tensors[first]})
    assert page.state("none") == "refused" and f"Drop {then} too" in page.text("figure [role=alert]")
    drop(page, **{then: tensors[then]})
    page.comes(lambda: page.state("none") == "ready", "the answer")
    agrees(page, diagnose(server, npz({name: tensors[name] for name in (first, then)})))
    assert page.find("figure[data-config=file] canvas").get_attribute("data-output") in (first, then)
    if "q" in (first, then):
        assert "q_out" in page.text("figure[data-config=file] figcaption")


# ---- Numbers instead of a file ----------------------------------------------------------------------------------------------


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


def test_two_checkpoints_may_be_dropped(open_page, tmp_path):
    """Names of the file's tensors say what it is; of the configuration only its heads are believed."""
    page = open_page(fragment("diagnose", {"scheme": "alibi", "num_heads": 4}))
    w = np.random.default_rng(5).normal(size=(32, 6)).astype("f4")
    rows = (np.arange(4)[:, None] * 8 + np.array([0, 2, 4, 6, 1, 3, 5, 7])).ravel()
    choose(page, tmp_path, "weights.npz", npz({"w_believed": w, "w_found": w[rows]}))
    until(lambda: findings(page))
    assert [code for code, _ in findings(page)] == ["rows_permuted"]
    assert page.run("return document.querySelector('[data-candidate] [data-action=paste]')") is None


def test_a_map_may_be_dropped_with_its_queries_and_keys(open_page, server):
    """The page draws the map alone, because no request of a table gives it."""
    page = open_page(fragment("diagnose", ROPE))
    random = np.random.default_rng(6)
    q, k = (random.normal(size=(1, 1, 8, 64)) for _ in range(2))
    turned = lambda x: np.concatenate([x[..., :32] * np.cos(ANGLES[:8]) - x[..., 32:] * np.sin(ANGLES[:8]), x[..., :32] * np.sin(ANGLES[:8]) + x[..., 32:] * np.cos(ANGLES[:8])], -1)
    data = npz({name: x.astype("f4") for name, x in {"scores": turned(q) @ turned(k).swapaxes(-1, -2), "q": q, "k": k}.items()})
    dropped(page, map_npz=data)
    shows(page, "map.npz")
    answer = diagnose(server, data, scheme="rope", layout="half")
    assert [row["code"] for row in answer["findings"]] == ["softmax_scale_missing"]
    agrees(page, answer)
    assert page.state("file") == "ready"
