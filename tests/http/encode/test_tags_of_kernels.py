"""Tags name what an answer's bytes depend on. The instruction set of the kernels (--kernels) is not part of that: every instruction set
gives the same tables, so replicas on different machines give the same tags, and a download goes on at another one. Only analyses read
sums whose last bits an instruction set decides."""
import contextlib
import json
import urllib.parse

import pytest

from conftest import KERNELS, start_server

SETS = ["base", "avx2", "avx512"]
FORMATS = ["json", "raw", "npz", "safetensors", "png"]
FUSED = {"unique", "shift", "bounds", "similarity", "extrapolation", "properties"}  # metrics that read sums of core/kernels/compare.c
pytestmark = pytest.mark.skipif(bool(KERNELS), reason="starts a server for each instruction set")


@pytest.fixture(scope="module")
def servers():
    """One for each instruction set that this machine has."""
    with contextlib.ExitStack() as stack:
        best = stack.enter_context(start_server()).get("/version").json()["isa"]
        yield [stack.enter_context(start_server("--kernels", kernels)) for kernels in SETS[:SETS.index(best) + 1]]


def asked(servers, path, fields, counts):
    """The answer's tags and bodies, one for each server; none if the request is refused, which has to be so everywhere."""
    answers = [server.get(f"{path}?{urllib.parse.urlencode({'request': json.dumps(fields)})}") for server in servers]
    assert len({answer.status for answer in answers}) == 1, fields
    counts.append(answers[0].status == 200)
    return ({answer.headers["ETag"] for answer in answers}, {answer.body for answer in answers}) if counts[-1] else ({""}, {b""})


def test_there_are_several(servers):
    assert len({server.get("/version").json()["isa"] for server in servers}) == len(servers)


@pytest.mark.parametrize("format_", FORMATS)
def test_examples(servers, format_):
    counts = []
    for scheme in servers[0].get("/schemes").json()["schemes"]:
        tags, bodies = asked(servers, "/encode", {**scheme["example"], "format": format_}, counts)
        assert len(tags) == len(bodies) == 1, scheme["name"]
    assert sum(counts) > 20


@pytest.mark.parametrize("seed", [None, 0])
def test_presets(servers, seed):
    counts = []
    for preset in servers[0].get("/presets").json()["presets"]:
        tags, bodies = asked(servers, "/encode", {"preset": preset["name"], "len": 8, "seed": seed, "format": "raw"}, counts)
        assert len(tags) == len(bodies) == 1, preset["name"]
    assert sum(counts) > 30


@pytest.mark.parametrize("fields", [{"table_grid": [4, 4], "grid": [7, 5], "interpolate": method} for method in ("bicubic", "bicubic_antialias", "bilinear", "bilinear_aligned")]
                         + [{"rows": 8, "positions": [0.5, 3.25], "out_of_range": "interpolate"}])
def test_interpolated_tables(servers, fields):
    counts = []
    tags, bodies = asked(servers, "/encode", {"scheme": "learned", "dim": 16, "seed": 3, "format": "raw", **fields}, counts)
    assert counts == [True] and len(tags) == len(bodies) == 1


def test_analyses(servers):
    """Where the tag is the same, the bytes are; where no metric reads a fused sum, the tag is the same."""
    counts, n_fused = [], 0
    for scheme in servers[0].get("/schemes").json()["schemes"]:
        for metric in ["unique", "bounds", "step", "norms", "similarity", "wavelengths", "decay", "precision", "collisions", "receptive"]:
            tags, bodies = asked(servers, "/analyze", {**scheme["example"], "metrics": [metric]}, counts)
            assert len(tags) == (len(servers) if metric in FUSED and counts[-1] else 1), (scheme["name"], metric)
            assert len(bodies) <= len(tags), (scheme["name"], metric)
            n_fused += len(bodies) > 1
    assert sum(counts) > 60 and (n_fused or len(servers) == 1)
