"""Catalogues are sent gzipped to clients that decompress, and are the same bytes then. The page needs a part of them first. Which coding
a client gets by which header, and that it does not get again what it has: tests/cases/catalogue.jsonl."""
import gzip
import json

import pytest

from conftest import start_server

PATHS = ["/schemes", "/schemes?lang=zh", "/schemes?view=page", "/presets", "/presets?lang=zh", "/openapi.json", "/cmaps"]


@pytest.mark.parametrize("path", [*PATHS, "/clients/posenc.py", "/clients/posenc.js"])
def test_both_codings_are_the_same_document(server, path):
    plain = server.get(path)
    assert plain.status == 200 and plain.headers["Content-Encoding"] is None
    for header, is_packed in {"gzip, deflate, br, zstd": True, "gzip": True, "x-gzip;q=0.5, identity;q=0.1": True, "identity": False, "gzip;q=0": False, "br": False}.items():
        for _ in range(2):
            answer = server.get(path, {"Accept-Encoding": header})
            assert answer.status == 200 and (answer.headers["Content-Encoding"] == "gzip") == is_packed, header
            assert "Accept-Encoding" in answer.headers["Vary"] and int(answer.headers["Content-Length"]) == len(answer.body)
            assert (gzip.decompress(answer.body) if is_packed else answer.body) == plain.body, header
            assert (answer.headers["ETag"] != plain.headers["ETag"]) == is_packed  # other bytes, another tag
            head = server.request("HEAD", path, headers={"Accept-Encoding": header})
            assert head.headers["Content-Length"] == answer.headers["Content-Length"] and head.body == b""
    assert "Accept-Encoding" in plain.headers["Vary"]


def test_what_the_page_needs_first_is_small(server):
    sizes = {path: len(server.get(path, {"Accept-Encoding": "gzip"}).body) for path in ("/schemes?view=page", "/cmaps", "/presets")}
    assert sum(sizes.values()) <= 54_000, sizes  # presets of images and videos are 5 KB of it


def test_each_is_compressed_when_it_is_first_asked_for_so():
    with start_server() as server:
        packed = server.get("/schemes", {"Accept-Encoding": "gzip"})
        assert gzip.decompress(packed.body) == server.get("/schemes").body


def test_a_list_with_stored_presets_is_gzipped_too(server):
    known = server.get("/presets")
    stored = json.dumps({"config": {"scheme": "rope", "head_dim": 64}}).encode()
    assert server.request("PUT", "/presets/coded", stored).status == 201
    try:
        plain, packed = server.get("/presets"), server.get("/presets", {"Accept-Encoding": "gzip"})
        assert packed.headers["Content-Encoding"] == "gzip" and gzip.decompress(packed.body) == plain.body
        assert [row["name"] for row in plain.json()["presets"]] == [*(row["name"] for row in known.json()["presets"]), "coded"]
        for answer in (plain, packed):
            assert answer.headers["Cache-Control"] == "private, no-cache" and "Accept-Encoding" in answer.headers["Vary"]
        assert server.get("/presets", {"If-None-Match": known.headers["ETag"]}).body == plain.body
    finally:
        assert server.request("DELETE", "/presets/coded").status == 204
    assert server.get("/presets", {"If-None-Match": known.headers["ETag"]}).status == 304


def without_texts(value):
    """A member of /schemes as the page has it: rows below the schemes, and those of the metrics, have labels alone."""
    if isinstance(value, list):
        return [without_texts(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: without_texts(one) for name, one in value.items() if name not in ("summary", "summary_zh")}


def test_the_view_of_the_page(server):
    whole, view = server.get("/schemes").json(), server.get("/schemes?view=page")
    kept = {name: whole[name] for name in ("families", "groups")} | {name: without_texts(whole[name]) for name in ("common", "metrics")}
    kept["schemes"] = [{**without_texts(row), "summary": row["summary"], "summary_zh": row["summary_zh"]} for row in whole["schemes"]]
    assert view.json() == kept
    packed = len(server.get("/schemes?view=page", {"Accept-Encoding": "gzip"}).body)
    assert packed <= 20_000 and packed < 0.45 * len(server.get("/schemes", {"Accept-Encoding": "gzip"}).body), packed
    assert len({server.get(path).headers["ETag"] for path in ("/schemes", "/schemes?view=page", "/schemes?view=page&lang=zh")}) == 3
    assert server.get("/schemes?view=page&lang=zh").headers["Content-Language"] == "zh"
