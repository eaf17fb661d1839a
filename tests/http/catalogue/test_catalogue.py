"""/schemes and /version. What is there to be read as it stands: tests/cases/catalogue.jsonl."""
import re

from conftest import KERNELS

TYPES = {"integer", "number", "boolean", "string", "array", "object", "any"}


def listed(server):
    return server.get("/schemes").json()["schemes"]


def schemes(server):
    return [server.get("/schemes/" + entry["name"]).json() for entry in listed(server)]


def test_the_list_holds_what_each_page_says(server):
    assert listed(server) == schemes(server)


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
