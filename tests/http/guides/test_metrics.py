"""/metrics: checked against the rules of the Prometheus text format 0.0.4, read strictly; and every figure changes by
the right amount."""
import json
import math
import os
import re
import shutil
import subprocess
import time

import pytest

from conftest import ROOT, start_server
from connection import Client, asked, get, post, wait_until

MEBI = 1 << 20
EIGHT = {"scheme": "sinusoidal", "len": 4096, "dim": 512, "format": "raw"}  # 8 MiB of f32
NAME, LABEL = r"[a-zA-Z_:][a-zA-Z0-9_:]*", r"[a-zA-Z_][a-zA-Z0-9_]*"
UNITS = ("_seconds", "_bytes")
MADE_UP = ("_milliseconds", "_ms", "_us", "_ns", "_kilobytes", "_megabytes", "_kb", "_mb", "_percent", "_minutes", "_hours")
MAY_LABEL = {"route", "scheme", "metric", "outcome", "status", "reason", "stage", "format", "le", "version", "commit", "isa", "tool"}


# ---- A reader ------------------------------------------------------------------------------------------------------------

# promtool, where it is, is stricter; tests/server/process/test_metrics.c reads the order of heads and values.
VALUE = r'"((?:[^"\\\n]|\\[\\n"])*)"'
SAMPLE = re.compile(rf'({NAME})(?:\{{((?:{LABEL}={VALUE}(?:,(?!\}}))?)+)\}})? ([+-]?[0-9.]+(?:e[+-]?\d+)?|[+-]Inf|NaN)')


class Family:
    def __init__(self, name, help_):
        self.name, self.help, self.kind, self.samples = name, help_, None, {}

    def take(self, line):
        found = SAMPLE.fullmatch(line)
        assert found, line
        suffixes = ("_bucket", "_sum", "_count") if self.kind == "histogram" else ("",)
        assert found[1] in [self.name + suffix for suffix in suffixes], f"{line} is not of {self.name}"
        labels = tuple(sorted((name, json.loads(f'"{value}"')) for name, value in re.findall(f"({LABEL})={VALUE}", found[2] or "")))
        assert (found[1], labels) not in self.samples, f"twice: {line}"
        self.samples[found[1], labels] = float(found[4].replace("Inf", "inf"))


def read(text):
    """Families in order; HELP then TYPE once each, before their samples, and no sample apart from its family."""
    assert text.endswith("\n") and "\r" not in text and "\n\n" not in text and text.isascii()
    families = {}
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, help_ = line[7:].split(" ", 1)
            assert name not in families
            family = families[name] = Family(name, help_)
        elif line.startswith("# TYPE "):
            name, family.kind = line[7:].split(" ")
            assert name == family.name and not family.samples and family.kind in ("counter", "gauge", "histogram")
        else:
            family.take(line)
    return families


def check_histogram(family):
    series = {}
    for (name, labels), value in family.samples.items():
        others = tuple(pair for pair in labels if pair[0] != "le")
        assert ("le" in dict(labels)) == name.endswith("_bucket")
        entry = series.setdefault(others, {"buckets": []})
        if name.endswith("_bucket"):
            entry["buckets"].append((float(dict(labels)["le"]), value))
        else:
            entry[name[len(family.name):]] = value
    for labels, entry in series.items():
        bounds, counts = zip(*entry["buckets"])
        assert list(bounds) == sorted(set(bounds)) and bounds[-1] == math.inf, (family.name, labels)
        assert list(counts) == sorted(counts) and counts[-1] == entry["_count"], (family.name, labels)
        assert all(count == int(count) >= 0 for count in counts) and entry["_sum"] >= 0
        assert entry["_sum"] == 0 or entry["_count"] > 0


def check_family(family):
    assert family.kind and family.help and re.match(r"(posenc|process)_", family.name)
    assert (family.kind == "counter") == family.name.endswith("_total"), family.name
    base = family.name.removesuffix("_total")
    assert not base.endswith(MADE_UP) and not base.endswith(("_count", "_sum", "_bucket", "_total"))
    assert family.kind != "histogram" or base.endswith(UNITS), family.name
    if family.kind == "histogram":
        check_histogram(family)
    for (_, labels), value in family.samples.items():
        assert {name for name, _ in labels} <= MAY_LABEL, family.name
        assert not math.isnan(value) and (family.kind == "gauge" or value >= 0)


def page(server):
    answer = server.get("/metrics")
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return answer.body.decode()


class Figures:
    def __init__(self, server):
        self.values = {key: value for family in read(page(server)).values() for key, value in family.samples.items()}

    def __call__(self, name, **labels):
        """The sum over the samples that have these labels."""
        return sum(v for (n, own), v in self.values.items() if n == name and set(labels.items()) <= set(own))


def moved(server, act, n=1):
    """The increase of one figure by act, once its request is counted: f(name, **labels)."""
    before = Figures(server)
    act()
    after = [before]

    def is_counted():
        after[0] = Figures(server)  # each look at /metrics is counted itself, after it has been printed
        return after[0]("posenc_requests_total") - before("posenc_requests_total") > n

    assert wait_until(is_counted)
    return lambda name, **labels: after[0](name, **labels) - before(name, **labels)


@pytest.fixture(scope="module")
def own():
    with start_server("--workers", "2", "--max-body", "100000") as server:
        yield server


# ---- The form ------------------------------------------------------------------------------------------------------------


def test_every_family(server):
    server.ask(scheme="rope", len=4)
    server.post("/encode", {"scheme": 'a"b\\c\nd', "len": 3})
    server.get('/x"y%5c%0a')
    families = read(page(server))
    for family in families.values():
        check_family(family)
        assert family.samples or family.name in ("posenc_compute_seconds_total", "posenc_output_bytes_total", "posenc_analysis_seconds")
    assert {
        "posenc_build_info", "posenc_connections", "posenc_in_flight_requests", "posenc_streams", "posenc_queued_jobs", "posenc_waiting_requests", "posenc_workers",
        "posenc_busy_workers", "posenc_worker_busy_seconds_total", "posenc_sent_bytes_total", "posenc_received_bytes_total", "posenc_output_bytes_total",
        "posenc_client_cache_hits_total", "posenc_rejected_total", "posenc_cancelled_total", "posenc_requests_total", "posenc_request_seconds", "posenc_answer_bytes",
        "posenc_queue_seconds", "posenc_compute_seconds_total", "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds",
        "process_start_time_seconds"} <= set(families)


def test_labels_are_from_our_own_lists(server):
    for i in range(20):
        server.get(f"/nowhere-{i}")
        server.get(f"/schemes/unknown-{i}")
        server.post("/encode", {"scheme": f"unknown-{i}", "len": 2})
        server.request(f"BREW{i}", "/encode")
    routes = set(server.get("/openapi.json").json()["paths"]) | {""}
    schemes = {s["name"] for s in server.get("/schemes").json()["schemes"]} | {""}
    own = {"route": routes, "scheme": schemes, "format": {"json", "raw", "npy", "npz", "safetensors", "png", "text", "page", "prometheus", "problem", "oip-json", "ndjson", "events", "oip-binary", "zarr"}}
    for name, labels in Figures(server).values:
        for label, allowed in own.items():
            assert dict(labels).get(label, "") in allowed | {""}, (name, labels)
        assert re.fullmatch(r"[1-5]\d\d", dict(labels).get("status", "200"))


def test_promtool_agrees(server):
    promtool = shutil.which("promtool", path=f"{os.environ['PATH']}:{ROOT}/build/tools")
    if not promtool:
        pytest.skip("no promtool (Debian: prometheus)")
    checked = subprocess.run([promtool, "check", "metrics"], input=page(server), text=True, capture_output=True, timeout=30)
    assert checked.returncode == 0, checked.stdout + checked.stderr


# ---- The figures ---------------------------------------------------------------------------------------------------------


ROPE, N_ASKED = "/encode?scheme=rope&len=4", {"not modified": 4, "refusals": 3}
# What is asked, and by how much figures grow: name, labels, number.
GROWN = {
    "an answer": (lambda own: [own.ask(scheme="alibi", len=2)], [
        ("requests_total", {"route": "/encode", "scheme": "alibi", "status": "200"}, 1), ("requests_total", {"route": "/encode"}, 1),
        ("request_seconds_count", {"route": "/encode"}, 1), ("answer_bytes_count", {"route": "/encode"}, 1), ("client_cache_hits_total", {}, 0),
        ("rejected_total", {}, 0), ("cancelled_total", {}, 0)]),
    "eight mebibytes": (lambda own: [own.post("/encode", EIGHT)], [
        ("output_bytes_total", {"format": "raw"}, 8 * MEBI), ("answer_bytes_sum", {"route": "/encode"}, 8 * MEBI),
        ("answer_bytes_bucket", {"route": "/encode", "le": "16777216"}, 1), ("answer_bytes_bucket", {"route": "/encode", "le": "1048576"}, 0),
        ("received_bytes_total", {}, len(json.dumps(EIGHT)))]),
    "not modified": (lambda own: [own.get(path, {"If-None-Match": own.request("HEAD", path).headers["ETag"]}) for path in (ROPE, "/docs")], [
        ("client_cache_hits_total", {}, 2), ("requests_total", {"route": "/docs", "status": "304"}, 1),
        ("answer_bytes_sum", {"route": "/docs"}, 0), ("answer_bytes_sum", {"route": "/encode"}, 0),
        ("requests_total", {"route": "/encode", "scheme": "rope", "status": "304"}, 1)]),
    "refusals": (lambda own: [own.get("/nowhere"), own.post("/encode", {"scheme": "rop", "len": 2}), own.request("PUT", "/encode", b"")], [
        ("requests_total", {"route": "", "status": "404"}, 1), ("requests_total", {"route": "/encode", "status": "422"}, 1),
        ("requests_total", {"route": "/encode", "status": "405"}, 1), ("output_bytes_total", {"format": "json"}, 0), ("rejected_total", {}, 0)]),
    "a body over the limit": (lambda own: [own.post("/encode", b"x" * 100_001)], [
        ("rejected_total", {"reason": "limit"}, 1), ("rejected_total", {}, 1), ("requests_total", {"status": "413"}, 1)]),
    "a head that is refused": (lambda own: [asked(own, get("/healthz", "Host: b"))], [("rejected_total", {"reason": "head"}, 1), ("rejected_total", {}, 1)]),
    "HEAD": (lambda own: [own.request("HEAD", "/encode?scheme=rope&len=100000&format=raw")], [
        ("requests_total", {"route": "/encode", "scheme": "rope", "status": "200"}, 1), ("answer_bytes_sum", {"route": "/encode"}, 0)]),
}


@pytest.mark.parametrize("name", GROWN)
def test_each_figure_grows_by_what_is_asked(own, name):
    act, grown = GROWN[name]
    gained = moved(own, lambda: act(own), n=N_ASKED.get(name, 1))
    for figure, labels, n in grown:
        assert gained(f"posenc_{figure}", **labels) == n, (figure, labels)
    compute = gained("posenc_compute_seconds_total")  # by whom, the machine's speed decides: quick pieces are made on the loop
    assert compute > 0 or name not in ("an answer", "eight mebibytes")
    # The pages of figures between are sent bytes too; so is nothing else.
    others = sum(gained("posenc_output_bytes_total", format=form) for form in ("json", "problem", "page", "prometheus", "raw"))
    assert gained("posenc_sent_bytes_total") == others


def test_workers_are_busy(own):
    """With what takes far longer than a loop may spend, on any machine: its cost is known before."""
    gained = moved(own, lambda: own.ask(scheme="floater", len=200, dim=64, seed=1, format="raw"))
    assert 0 < gained("posenc_compute_seconds_total", scheme="floater") <= gained("posenc_worker_busy_seconds_total") + 0.001


def test_sent_bytes_are_those_of_all_formats(own):
    for form in ("json", "raw", "npy", "safetensors"):
        sizes = []
        gained = moved(own, lambda: sizes.append(len(own.ask(scheme="rope", len=30, head_dim=8, outputs=["cos"], format=form).body)))
        assert gained("posenc_output_bytes_total", format=form) == sizes[0]
    figures = Figures(own)
    assert figures("posenc_sent_bytes_total") == figures("posenc_output_bytes_total") == figures("posenc_answer_bytes_sum")


def test_a_client_that_leaves(own):
    def leave():
        client = Client(own)
        client.send(post(json.dumps({**EIGHT, "len": 1 << 20}).encode()))  # 2 GiB
        client.head()
        client.reset()

    gained = moved(own, leave)
    assert gained("posenc_cancelled_total", stage="sending") == gained("posenc_cancelled_total") == 1
    assert 0 < gained("posenc_output_bytes_total", format="raw") < 512 * MEBI
    assert wait_until(lambda: Figures(own)("posenc_streams") == 0)
    figures = Figures(own)
    assert figures("posenc_streams") == figures("posenc_queued_jobs") == figures("posenc_busy_workers") == 0


def test_gauges_and_build(own):
    version = own.get("/version").json()
    assert wait_until(lambda: Figures(own)("posenc_in_flight_requests") == Figures(own)("posenc_connections") == 1)  # others have gone
    figures = Figures(own)
    assert figures("posenc_build_info", version=version["version"], commit=version["commit"], isa=version["isa"]) == 1
    assert figures("posenc_workers") == 2
    assert abs(figures("process_start_time_seconds") - time.time()) < 600
    assert figures("process_open_fds") < figures("process_max_fds")
    assert abs(figures("process_resident_memory_bytes") - own.memory("VmRSS")) < 64 * MEBI
