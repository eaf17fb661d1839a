"""/schemes and /version. What is there to be read as it stands: tests/cases/catalogue.jsonl."""
import re

from conftest import KERNELS

TYPES = {"integer", "number", "boolean", "string", "array", "object", "any"}


def listed(server):
    return server.get("/schemes").json()["schemes"]


def schemes(server):
    return [server.get("/schemes/" + entry["name"]).json() for entry in listed(server)]


def test_the_list_holds_what_each_page_says(server):
    """But for the formula, which is half of it."""
    pages = [{name: value for name, value in entry.items() if name not in ("formula", "scalings", "symbols")} for entry in schemes(server)]
    assert listed(server) == pages


def test_every_line_of_a_formula_is_complete(server):
    """The parameters and tensors that it uses are there."""
    for entry in schemes(server):
        scaling = next((p["parameters"] for p in entry["parameters"] if p["name"] == "scaling"), [])
        known = {p["name"] for p in [*entry["parameters"], *entry["inputs"]]} | {f"scaling.{p['name']}" for p in scaling}
        for line in [*entry["formula"], *(line for rule in entry.get("scalings", []) for line in rule["formula"])]:
            assert line["text"] and line["tex"] and line["mathml"].startswith("<math") and line["says"] != line["says_zh"], line
            assert line["expression"].startswith(line["symbol"]) and set(line["uses"]) - known <= {"grid", "softmax_scale"}, line


def test_every_entry_is_complete(server):
    for entry in schemes(server):
        assert entry["summary"] and entry["paper"] and entry["endpoints"]
        assert entry["outputs"] or "/encode" not in entry["endpoints"]
        assert set(entry["endpoints"]) & {"/encode", "/attention"}
        for parameter in entry["parameters"]:
            assert parameter["name"] and parameter["type"] in TYPES and parameter["summary"], parameter
            assert "default" in parameter
        for output in entry["outputs"]:
            assert output["name"] and isinstance(output["shape"], str) and isinstance(output["default"], bool)


def test_every_default_is_the_resolved_one(server):
    """An empty request gets the values that the catalogue lists as defaults."""
    for entry in schemes(server):
        response = server.post("/encode", {"scheme": entry["name"], "len": 2, "data": False})
        if response.status != 200:
            continue  # a scheme that needs weights
        config = response.json()["config"]
        for parameter in entry["parameters"]:
            if parameter["default"] is not None and parameter["name"] in config:
                assert config[parameter["name"]] == parameter["default"], (entry["name"], parameter)


def test_version(server):
    version = server.get("/version").json()
    assert version["name"] == "posenc" and re.fullmatch(r"\d+\.\d+\.\d+", version["version"])
    assert version["commit"] and version["isa"] in ([KERNELS] if KERNELS else ["base", "avx2", "avx512"])
