"""The view `weights`: what it lists against /weights, uploads that overwrite nothing unasked, deleting after a question, opening."""
import io

import numpy as np
import pytest
import safetensors_reader
from selenium.webdriver.common.keys import Keys

from browser import DROP, until
from token_files import LINES, READER, token_server

TABLE = np.arange(96, dtype="<f4").reshape(12, 8)


def stored(server):
    return {one["name"]: one for one in server.get("/weights").json()["weights"]}


def listed(page):
    """{name: [sha256, bytes, {tensor: text}]} of the rows."""
    return page.run("""return Object.fromEntries([...document.querySelectorAll('tr[data-weights]')].map((row) => [row.dataset.weights,
    [row.dataset.sha256, row.querySelector('data[data-what=bytes]').value, Object.fromEntries([...row.querySelectorAll('[data-tensor]')].map((t) => [t.dataset.tensor, t.textContent]))]]))""")


@pytest.fixture
def weights(open_page, server):
    yield open_page("view=weights")
    for name in stored(server):
        server.request("DELETE", f"/weights/{name}")


def drop(page, name, data):
    page.run(DROP, name, list(data))


def shows(page, server, *names):
    page.comes(lambda: set(listed(page)) == set(names), f"{names} in the list")
    files = stored(server)
    assert set(files) == set(names)
    for name, (digest, size, tensors) in listed(page).items():
        assert [digest, size] == [files[name]["sha256"], str(files[name]["bytes"])] and set(tensors) == set(files[name]["tensors"])
        assert all(str(about["shape"]) in tensors[tensor] and about["dtype"] in tensors[tensor] for tensor, about in files[name]["tensors"].items())


def test_nothing_stored_explains_itself_and_a_file_opens(weights, server, tmp_path):
    assert weights.state("none") == "ready" and "/encode" in weights.text("figure pre") and not listed(weights)
    file = tmp_path / "my model.safetensors"
    file.write_bytes(safetensors_reader.dumps({"wpe.weight": TABLE, "bias": TABLE[0]}))
    weights.find("main input[type=file][data-drop]").send_keys(str(file))
    shows(weights, server, "my-model")
    links = weights.all("a[data-action=open]")
    assert len(links) == 1
    weights.run("arguments[0].click()", links[0])
    weights.comes(lambda: weights.text("h1") == "Table", "the table")
    assert weights.state() == "ready"
    canvas = [weights.attribute("canvas[data-heat]", f"data-{name}") for name in ("rows", "cols", "min", "max")]
    assert [float(one) for one in canvas] == [12, 8, 0, 95]


def test_a_dropped_array_is_kept_as_safetensors(weights, server):
    for name, save in (("one.npy", lambda out: np.save(out, TABLE)), ("more.npz", lambda out: np.savez(out, table=TABLE, other=TABLE[:2]))):
        out = io.BytesIO()
        save(out)
        drop(weights, name, out.getvalue())
        weights.comes(lambda: name.split(".")[0] in listed(weights), name)
    shows(weights, server, "one", "more")
    encoded = server.post("/encode", {"scheme": "learned", "len": 12, "weights": "one"}).json()
    assert np.array_equal(np.array(encoded["tensors"]["encoding"]["data"], "<f4"), TABLE)
    drop(weights, "bad.safetensors", b"12345678nothing")
    until(lambda: weights.text("[data-notice=refused]"), what="the server's words")
    shows(weights, server, "one", "more")


def test_nothing_is_overwritten_unless_asked(weights, server):
    drop(weights, "kept.safetensors", safetensors_reader.dumps({"table": TABLE}))
    shows(weights, server, "kept")
    before = stored(server)["kept"]["sha256"]
    drop(weights, "kept.safetensors", safetensors_reader.dumps({"table": TABLE + 1}))
    until(lambda: before in (weights.text("[data-notice=refused]") or ""), what="the refusal")
    assert stored(server)["kept"]["sha256"] == before
    field = weights.find("[data-field=name]")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys("other", Keys.ENTER)
    shows(weights, server, "kept", "other")
    drop(weights, "kept.safetensors", safetensors_reader.dumps({"table": TABLE + 2}))
    until(lambda: weights.text("[data-notice=refused]"), what="another refusal")
    weights.click("[data-field=replace]")
    weights.click("[data-action=start]")
    until(lambda: stored(server)["kept"]["sha256"] != before, what="the new file")
    until(lambda: listed(weights)["kept"][0] != before, what="its row")
    assert not weights.run("return document.querySelector('[data-field=replace]').checked")


def test_deleting_asks_and_spares_what_has_changed(weights, server):
    drop(weights, "gone.safetensors", safetensors_reader.dumps({"table": TABLE}))
    shows(weights, server, "gone")
    remove = "tr[data-weights=gone] [data-action=remove]"
    weights.click(remove)
    weights.do("dialog[open] [data-action=cancel]")
    shows(weights, server, "gone")
    server.request("PUT", "/weights/gone", safetensors_reader.dumps({"table": TABLE + 1}))
    weights.click(remove)
    weights.click("dialog[open] [data-action=start]")
    until(lambda: weights.text("[data-notice=refused]"), what="the refusal")
    shows(weights, server, "gone")
    weights.click(remove)
    weights.click("dialog[open] [data-action=start]")
    shows(weights, server)


def test_who_may_not_write_is_told_why(open_page):
    with token_server(LINES) as other:
        page = open_page("view=weights&lang=zh", url=other.url, settle=False)
        page.give(READER)
        page.comes(lambda: page.state("none") == "ready", "the list")
        assert page.run("return [...document.querySelectorAll('form input')].filter(i => i.closest('main')).every(i => i.disabled)")
        assert "write" in page.text("#weights-hint") and "weights." not in page.run("return document.body.innerText")
