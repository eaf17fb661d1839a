"""Catalogues are sent gzipped to clients that decompress, and are the same bytes then."""
import gzip

import pytest

from conftest import start_server

PATHS = ["/schemes", "/schemes?lang=zh", "/openapi.json", "/cmaps"]


@pytest.mark.parametrize("path", PATHS)
def test_both_codings_are_the_same_document(server, path):
    plain = server.get(path)
    assert plain.status == 200 and plain.headers["Content-Encoding"] is None
    for header, is_packed in {"gzip, deflate, br, zstd": True, "gzip": True, "x-gzip;q=0.5, identity;q=0.1": True, "identity": False, "gzip;q=0": False, "br": False}.items():
        for _ in range(2):
            answer = server.get(path, {"Accept-Encoding": header})
            assert answer.status == 200 and (answer.headers["Content-Encoding"] == "gzip") == is_packed, header
            assert "Accept-Encoding" in answer.headers["Vary"] and int(answer.headers["Content-Length"]) == len(answer.body)
            assert (gzip.decompress(answer.body) if is_packed else answer.body) == plain.body, header
            head = server.request("HEAD", path, headers={"Accept-Encoding": header})
            assert head.headers["Content-Length"] == answer.headers["Content-Length"] and head.body == b""
    assert "Accept-Encoding" in plain.headers["Vary"]


def test_what_the_page_needs_first_is_small(server):
    sizes = {path: len(server.get(path, {"Accept-Encoding": "gzip"}).body) for path in ("/schemes", "/cmaps")}
    assert sum(sizes.values()) <= 60_000, sizes


def test_each_is_compressed_when_it_is_first_asked_for_so():
    with start_server() as server:
        packed = server.get("/schemes", {"Accept-Encoding": "gzip"})
        assert gzip.decompress(packed.body) == server.get("/schemes").body
