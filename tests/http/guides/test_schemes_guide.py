"""The sections of core/schemes/SCHEMES.md: the number of each is what the service derives and what it encodes, its steps are those of the
service to the digits that are printed, and its picture is one."""
import json
import re

import numpy as np
import pytest

from conftest import ROOT

GUIDE = ROOT / "core/schemes/SCHEMES.md"
OWN = ("position", "channel", "pair", "head", "query", "key", "index", "tensor", "format")  # of /derive, not of /encode
SECTIONS = {name: text for name, text in re.findall(r"^### (\w+)\n(.*?)(?=^### |^<!-- sections:end)", GUIDE.read_text(), re.M | re.S) if name != "Scalings"}


def worked(text):
    """The address of a section's number, the lines of its steps, and the number's tensor, index and value."""
    address, shown = re.search(r"^```sh\ncurl 'localhost:8080(/derive\?[^']*)'\n```\n\n```text\n(.*?)\n```$", text, re.M | re.S).groups()
    *steps, last = shown.split("\n")
    tensor, index, value = re.fullmatch(r"(\w+)(\[[\d,]+\]) = (\S+)", last).groups()
    return address, steps, tensor, json.loads(index), float(value)


def near(value):
    """Ten digits are printed of a step, and nine of a number: a float32 has no more."""
    return pytest.approx(value, rel=1e-9, abs=1e-300)


def test_there_is_a_section_for_every_scheme(server):
    assert list(SECTIONS) == [scheme["name"] for scheme in server.get("/schemes").json()["schemes"]]


@pytest.mark.parametrize("scheme", SECTIONS)
def test_the_number_is_the_one_derived(server, scheme):
    address, lines, tensor, index, value = worked(SECTIONS[scheme])
    assert f"scheme={scheme}&" in address and address.endswith("&format=text")
    answer = server.get(address.removesuffix("&format=text")).json()
    number, steps = answer["number"], answer["steps"]
    assert (number["tensor"], number["index"]) == (tensor, index) and number["value"] == near(value)
    assert len(lines) == len(steps)
    for line, step in zip(lines, steps):
        assert line.startswith(step["symbol"]), (line, step)
        if "value" in step:
            shown = line.removeprefix(step["symbol"] + " = ").split(" ")[0]
            assert float(shown) == near(float(step["value"])), (line, step)
    assert np.float32(float([step["value"] for step in steps if "value" in step][-1])) == pytest.approx(np.float32(value), rel=1e-6), steps
    assert number["bits"] in server.get(address).body.decode().splitlines()[0]


@pytest.mark.parametrize("scheme", [scheme for scheme in SECTIONS if scheme != "cope"])  # which has no tensor of /encode
def test_the_number_is_the_one_encoded(server, scheme):
    """By another endpoint, in the whole tensor: the position is the row, where the sequence begins at 0."""
    address, _, tensor, index, value = worked(SECTIONS[scheme])
    fields = dict(field.split("=", 1) for field in address.split("?")[1].split("&"))
    query = "&".join(f"{name}={text}" for name, text in fields.items() if name not in OWN)
    rows = "" if "grid" in fields or "len" in fields else f"&len={max(index) + 1}"
    answer = server.get(f"/encode?{query}{rows}&outputs={tensor}").json()
    assert np.array(answer["tensors"][tensor]["data"])[tuple(index)] == near(value)


@pytest.mark.parametrize("scheme", SECTIONS)
def test_the_picture_is_one(server, scheme):
    address = re.search(r"\(http://localhost:8080(/encode\?[^)]*&format=png)\)", SECTIONS[scheme])
    assert (address is None) == (scheme == "cope")
    if address:
        response = server.get(address[1])
        assert response.status == 200 and response.headers["Content-Type"] == "image/png" and response.body.startswith(b"\x89PNG")
