"""The catalogue and the operator's pages: /schemes, /version, /healthz, /readyz, /metrics."""
import re

import pytest

SCHEMES = {"none": "absolute", "sinusoidal": "absolute", "rope": "rotary", "alibi": "bias"}
TYPES = {"integer", "number", "boolean", "string", "array", "object", "any"}


def listed(server):
    return server.get("/schemes").json()["schemes"]


def schemes(server):
    return [server.get("/schemes/" + entry["name"]).json() for entry in listed(server)]


def test_every_scheme_is_listed(server):
    assert SCHEMES.items() <= {s["name"]: s["family"] for s in listed(server)}.items()


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


def test_rope_s_parameters(server):
    rope = server.get("/schemes/rope").json()
    base = next(p for p in rope["parameters"] if p["name"] == "base")
    assert base["type"] == "number" and base["default"] == 10000.0 and base["min"] < base["max"]
    layout = next(p for p in rope["parameters"] if p["name"] == "layout")
    assert layout["default"] == "interleaved" and set(layout["values"]) >= {"interleaved", "half"}
    assert {"/encode", "/rotate"} <= set(rope["endpoints"])
    assert {i["name"] for i in rope["inputs"]} == {"q", "k"}
    cos = next(o for o in rope["outputs"] if o["name"] == "cos")
    assert cos["shape"] == "n,rotary_dim/2" and cos["default"] is True


def test_every_example_is_answered(server):
    for entry in schemes(server):
        for endpoint in entry["endpoints"][:1]:
            response = server.post(endpoint, entry["example"])
            assert response.status == 200, (entry["name"], response)
            assert response.json()["scheme"] == entry["name"]


def test_every_default_is_the_resolved_one(server):
    """What the catalogue calls the default is what an empty request gets."""
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
    assert version["commit"] and version["isa"] in ("base", "avx2", "avx512")


def test_health(server):
    assert server.get("/healthz").json() == {"status": "ok"}
    assert server.get("/readyz").json() == {"status": "ready"}


def test_head_answers_like_get_without_a_body(server):
    for path in ("/healthz", "/schemes", "/version"):
        head, get = server.request("HEAD", path), server.get(path)
        assert head.status == 200 and head.body == b""
        assert head.headers["Content-Type"] == get.headers["Content-Type"]
        assert head.headers["Content-Length"] == str(len(get.body))


# ---- /metrics ------------------------------------------------------------------------------------------------------------

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\S+)')


def parse(text):
    """Families by name: type and samples; checks the text format 0.0.4 on the way."""
    assert text.endswith("\n")
    types, samples = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, f"{name} is described twice"
            types[name] = kind
        elif not line.startswith("# HELP ") and line:
            found = SAMPLE.fullmatch(line)
            assert found, f"not a sample: {line!r}"
            family = re.sub(r"_(bucket|sum|count)$", "", found[1])
            assert found[1] in types or types.get(family) == "histogram", f"{found[1]} has no TYPE before it"
            assert found[1] + (found[2] or "") not in samples, f"twice: {line}"
            samples[found[1] + (found[2] or "")] = float(found[3])
    return types, samples


def metrics(server):
    response = server.get("/metrics")
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parse(response.body.decode())


def total(samples, name, *labels):
    return sum(v for k, v in samples.items() if k.split("{")[0] == name and all(label in k for label in labels))


def test_metrics_are_well_formed(server):
    server.ask(scheme="rope", len=4)
    types, samples = metrics(server)
    for name, kind in types.items():
        assert name.startswith(("posenc_", "process_"))
        assert kind in ("counter", "gauge", "histogram")
        assert kind != "counter" or name.endswith("_total") or name == "process_cpu_seconds_total"
    assert samples["process_resident_memory_bytes"] > 1e6
    assert total(samples, "posenc_build_info") == 1


def test_histograms_add_up(server):
    types, samples = metrics(server)
    for name in (n for n, kind in types.items() if kind == "histogram"):
        series = {}
        for key, value in samples.items():
            if key.startswith(name + "_bucket"):
                le = re.search(r'le="([^"]+)"', key)[1]
                series.setdefault(re.sub(r',?le="[^"]+"', "", key), []).append((float(le.replace("+Inf", "inf")), value))
        assert series, name
        for key, buckets in series.items():
            counts = [v for _, v in sorted(buckets)]
            assert counts == sorted(counts) and max(le for le, _ in buckets) == float("inf"), key


def test_requests_are_counted(server):
    counter = next(n for n in metrics(server)[0] if n.startswith("posenc_") and "requests_total" in n)
    labels = ('route="/encode"', 'scheme="alibi"')
    before = total(metrics(server)[1], counter, *labels)
    for _ in range(3):
        server.ask(scheme="alibi", len=2)
    assert total(metrics(server)[1], counter, *labels) == before + 3


@pytest.mark.parametrize("path", ["/schemes", "/version", "/healthz", "/readyz", "/metrics"])
def test_pages_answer_at_once(server, path):
    assert server.get(path).status == 200
