"""GET /openapi.json: well-formed OpenAPI 3.1, complete (every route, method and parameter), and correct: examples and
resolved configs match the schemas. Validated by Debian's jsonschema (draft 2020-12, which OpenAPI 3.1 uses)."""
import json
import re

import jsonschema
import numpy as np
import pytest

import safetensors_reader
from conftest import ROOT, start_server

SCHEMA_WORDS = {"description", "exclusiveMinimum", "pattern", "type", "minimum", "maximum", "enum", "default", "properties", "const", "examples", "$ref", "required", "oneOf", "anyOf",
                "allOf", "items", "minItems", "maxItems", "additionalProperties"}


def no_twice(pairs):
    names = [name for name, _ in pairs]
    assert len(set(names)) == len(names), names
    return dict(pairs)


@pytest.fixture(scope="module")
def document(session_server):
    answer = session_server.get("/openapi.json")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    return json.loads(answer.body, object_pairs_hook=no_twice)


def schemas_in(value, path=""):
    """Every schema object of the document."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "schema":
                yield path, inner
            yield from schemas_in(inner, f"{path}/{name}")
    if isinstance(value, list):
        for i, inner in enumerate(value):
            yield from schemas_in(inner, f"{path}/{i}")


def check_schema(schema, path):
    assert set(schema) <= SCHEMA_WORDS, (path, set(schema) - SCHEMA_WORDS)
    assert schema.get("minimum", 0) <= schema.get("maximum", schema.get("minimum", 0)) or "minimum" not in schema
    if "default" in schema and "$ref" not in schema:
        alone = {word: schema[word] for word in ("type", "enum", "minimum", "maximum") if word in schema}
        assert jsonschema.Draft202012Validator(alone).is_valid(schema["default"]), path
    for inner in [*schema.get("properties", {}).values(), *(s for word in ("oneOf", "anyOf", "allOf") for s in schema.get(word, []))]:
        check_schema(inner, path)


# ---- The form of OpenAPI 3.1 (specification 3.1.0, section 4.8), as far as we use it: nothing else may stand there --------

SCHEMA = {"type": "object"}  # checked one by one


def record(names, /, **properties):
    return {"type": "object", "required": names.split(), "properties": properties, "patternProperties": {"^x-": True}, "additionalProperties": False}


def table(of, names=".*"):
    return {"type": "object", "patternProperties": {names: of}, "additionalProperties": False}


TEXT, FLAG, TEXTS = {"type": "string", "minLength": 1}, {"type": "boolean"}, {"type": "array", "items": {"type": "string"}}
MEDIA = table(record("", schema=SCHEMA, example=True, examples=True), r"^[^/]+/[^/]+$")
HEADERS = table(record("", description=TEXT, schema=SCHEMA))
def reference(kind):
    return record("$ref", **{"$ref": {"type": "string", "pattern": rf"^#/components/{kind}/[\w.-]+$"}})


RESPONSE = record("description", description=TEXT, content=MEDIA, headers=HEADERS)
RESPONSES = {**table({"oneOf": [RESPONSE, reference("responses")]}, r"^([1-5](\d\d|XX)|default)$"), "minProperties": 1}
PARAMETER = {"oneOf": [
    reference("parameters"),
    {**record("name in schema", name=TEXT, description=TEXT, required=FLAG, schema=SCHEMA, style=TEXT, explode=FLAG, example=True, **{"in": {"enum": ["query", "path", "header", "cookie"]}})},
    {**record("name in content", name=TEXT, description=TEXT, required=FLAG, content={**MEDIA, "minProperties": 1, "maxProperties": 1}, **{"in": {"enum": ["query", "path", "header", "cookie"]}})}]}
OPERATION = record("responses", summary=TEXT, description=TEXT, operationId=TEXT, tags=TEXTS, parameters={"type": "array", "items": PARAMETER},
                   requestBody=record("content", description=TEXT, required=FLAG, content=MEDIA), responses=RESPONSES)
METHODS = {method: OPERATION for method in ("get", "put", "post", "delete", "options", "head", "patch", "trace")}
DOCUMENT = record("openapi info paths", openapi={"const": "3.1.0"}, info=record("title version", title=TEXT, version=TEXT, summary=TEXT, description=TEXT, license=True),
                  servers={"type": "array"}, tags={"type": "array", "items": record("name", name=TEXT, description=TEXT)},
                  paths=table(record("", **METHODS, parameters={"type": "array", "items": PARAMETER}), "^/"),
                  components=record("", schemas=table(SCHEMA, r"^[A-Za-z0-9._-]+$"), responses=table(RESPONSE, r"^\d{3}$"), parameters=table(PARAMETER, r"^\w+$"), securitySchemes=True), security={"type": "array", "items": table({"type": "array", "items": TEXT}, r"^bearer$")})


def operations(item):
    return [(method, operation) for method, operation in item.items() if method != "parameters"]


def test_the_form(document):
    jsonschema.Draft202012Validator.check_schema(DOCUMENT)
    jsonschema.Draft202012Validator(DOCUMENT).validate(document)
    for path, item in document["paths"].items():
        for extension in (m for m in item if m.startswith("x-")):
            jsonschema.Draft202012Validator(OPERATION).validate(item[extension])
    assert not jsonschema.Draft202012Validator(DOCUMENT).is_valid({**document, "path": {}})


def test_the_frame(document, server):
    assert document["openapi"] == "3.1.0" and document["info"]["title"] == "posenc" and document["info"]["version"] == server.get("/version").json()["version"]
    for path, item in document["paths"].items():
        assert path.startswith("/") and item
        for method, operation in operations(item):
            assert operation["tags"][0] in ("compute", "catalogue", "weights", "operation", "inference")
            assert method in ("get", "head", "post", "put", "delete", "x-query") and operation["summary"] and operation["responses"]["204" if method == "delete" else "200"]["description"]
            named = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path)) and all(p["required"] for p in operation.get("parameters", []) if p["in"] == "path")


def test_schemas(document):
    for path, schema in [*document["components"]["schemas"].items(), *schemas_in(document["paths"])]:
        jsonschema.Draft202012Validator.check_schema(schema)  # with all that is inside
        check_schema(schema, path)


def test_every_route_and_method(document, server):
    listed = re.search(r"there are: (.*)", server.get("/nowhere-near-anything").json()["detail"])[1]
    assert set(listed.split(", ")) <= set(document["paths"]) and len(document["paths"]) >= len(listed.split(", "))
    for path, item in document["paths"].items():
        allow = server.request("OPTIONS", path.format(name="x", preset="x", version="1", build="x", file="x", query="len=1", key="x")).headers["Allow"].split(", ")
        assert {m.replace("QUERY", "x-query").lower() for m in allow if m != "OPTIONS"} == {method for method, _ in operations(item)}, path


def test_every_parameter(document, server):
    schemas = document["components"]["schemas"]
    for entry in server.get("/schemes").json()["schemes"]:
        named = schemas["scheme." + entry["name"]]["properties"]
        assert {p["name"] for p in entry["parameters"]} | {i["name"] for i in entry["inputs"]} <= set(named), entry["name"]
        described = schemas["Attention"]["properties"]
        attention = entry["attention"]
        assert {p["name"] for p in attention["parameters"]} | {i["name"] for i in attention["inputs"]} <= set(described)
    for name in ("len", "offset", "positions", "grid", "lens", "segments", "tokens", "q_len", "k_len", "q_offset", "dtype", "format", "digits", "outputs", "slice", "reduce", "data", "weights", "preset"):
        assert name in schemas["Request"]["properties"]


def test_every_reference_leads_somewhere(document):
    for kind, name in set(re.findall(r'"\$ref": "#/components/(\w+)/([^"]+)"', json.dumps(document))):
        assert name in document["components"][kind], (kind, name)


# ---- Statuses ------------------------------------------------------------------------------------------------------------

SENT = re.compile(r"(?:api_fail\(\s*[\w>&.-]*problem, |fail_here\(\w+, |api_refusal\(|refuse\(\s*[\w>&.-]+, |refuse_raw\([^;]*?, |http_refusal\)\{|api_reply_empty\("
                  r"|#define REFUSED_[^\n]*\s+|return refuse\(&[\w>.-]+, |\bstatus = (?:[^;]*[?:] )?|: )([2-5]\d\d)\b")


def test_every_status_in_the_sources_is_described(document):
    """The numbers that the program's own text sends; 499 stands in the log alone."""
    found = {}
    for path in [*ROOT.glob("api/**/*.c"), *ROOT.glob("server/**/*.[ch]")]:
        for status in SENT.findall(path.read_text()):
            found.setdefault(status, path.name)
    assert {"400", "404", "408", "413", "414", "422", "429", "431", "501", "503", "505"} <= set(found)
    described = set(document["components"]["responses"]) | {"200", "201", "204", "499"}
    assert {status: place for status, place in found.items() if status not in described} == {}


def described(document, path, method, status):
    """The description that an operation has of a status, its references followed."""
    response = document["paths"][path][method]["responses"][str(status)]
    return document["components"]["responses"][response["$ref"].rsplit("/", 1)[1]] if "$ref" in response else response


def provoke(server):
    """(status, path, method, answer) of one request for each status that a client can bring about."""
    body = json.dumps({"scheme": "rope", "len": 4, "head_dim": 8}).encode()
    query, slow = "/encode?scheme=rope&len=4&format=raw", {"scheme": "floater", "dim": 512, "positions": [3000], "seed": 1, "format": "raw"}
    stored = safetensors_reader.dumps({"table": np.zeros((2, 2), "f4")}, {})
    tag = server.get(query).headers["ETag"]
    asked = [(206, "get", query, None, {"Range": "bytes=0-3"}), (304, "get", query, None, {"If-None-Match": tag}), (304, "get", "/docs", None, {"If-None-Match": "*"}),
             (400, "post", "/encode", b"{", {}), (400, "get", "/healthz", None, {"X-Request-Timeout": "soon"}), (404, "get", "/schemes/rop", None, {}),
             (406, "post", "/encode", body, {"Accept": "audio/ogg"}), (406, "get", "/docs", None, {"Accept-Encoding": "*;q=0"}), (406, "get", "/encode?scheme=rope&len=4", None, {"Accept": "audio/ogg"}),
             (412, "put", "/weights/w", stored, {"If-Match": '"x"'}), (413, "post", "/encode", b" " * 5000, {}), (413, "get", "/encode?scheme=rope&len=1000000000", None, {}),
             (204, "get", "/experiments?scheme=rope", None, {"Last-Event-ID": "3"}), (400, "get", "/healthz", b" ", {}), (414, "get", "/healthz?" + "a" * 9500, None, {}), (415, "post", "/encode", body, {"Content-Encoding": "gzip"}),
             (403, "get", "/experiments?scheme=rope", None, {"Sec-Fetch-Site": "cross-site"}), (416, "get", query, None, {"Range": "bytes=1000000-"}), (421, "get", "/healthz", None, {"Host": "evil.example"}),
             (422, "post", "/encode", b"{}", {}), (400, "put", "/weights/w", b"x", {}),
             (422, "post", "/v2/models/rope/infer", b'{"inputs":[{}]}', {}), (431, "get", "/healthz", None, {"X": "a" * 9500}),
             (501, "post", "/encode", body, {"Transfer-Encoding": "gzip"}), (501, "post", "/v2/repository/models/rope/unload", b"{}", {}),
             (503, "post", "/encode", json.dumps(slow).encode(), {"X-Request-Timeout": "0.05"})]
    for status, method, target, sent, headers in asked:
        yield status, target.partition("?")[0], method, server.request(method.upper(), target, sent, headers)


def operation_path(document, path):
    return next(known for known in document["paths"] if re.fullmatch(re.sub(r"{\w+}", "[^/]+", known), path))


def test_statuses_that_come_are_described(document):
    seen = set()
    with start_server("--max-json", "4KiB", "--max-body", "64KiB", "--max-answer", "1GiB") as server:
        for status, path, method, answer in provoke(server):
            assert answer.status == status, (status, path, answer)
            response = described(document, operation_path(document, path), method, answer.status)
            assert answer.status < 400 or answer.headers["Content-Type"] in response["content"], (path, answer)
            assert ("Retry-After" in answer.headers) == ("Retry-After" in response.get("headers", {})), (path, answer)
            seen.add(str(answer.status))
    beside = {"401", "403", "429"}, {"202", "405", "408", "505"}  # tokens (below); a notification, another method, the clock, another version
    assert seen | beside[0] | beside[1] == set(document["components"]["responses"])


def test_tokens_and_their_statuses_are_described(document):
    for path, item in document["paths"].items():
        is_open = path in ("/", "/docs", "/ui/{build}/{file}", "/healthz", "/readyz", "/metrics", "/cmaps", "/limits", "/clients/{file}", "/v2/health/live", "/v2/health/ready")
        for method, operation in operations(item):
            assert ("401" in operation["responses"]) == ("429" in operation["responses"]) == (not is_open), path
            assert ("403" in operation["responses"]) == (method in ("put", "delete") or path in ("/experiments", "/mcp"))  # which pages of other sites may not begin
            assert {"400", "408", "413", "414", "431", "501", "503", "505"} <= set(operation["responses"])


def test_live_answers_are_described(document):
    """They are of two types, and neither cached nor cut into ranges."""
    item = document["paths"]["/experiments"]
    for method, operation in operations(item):
        assert set(operation["responses"]["200"]["content"]) == {"application/x-ndjson", "text/event-stream"}
        assert {"204", "404", "422", "429"} <= set(operation["responses"]) and not {"206", "304", "406", "412", "416"} & set(operation["responses"]), method


def test_times_are_described(document, server):
    """The header for every path, the protocol's parameter where it exists; and both work as documented."""
    for path, item in document["paths"].items():
        assert {"$ref": "#/components/parameters/RequestTimeout"} in item["parameters"], path
    header = document["components"]["parameters"]["RequestTimeout"]
    assert header["name"] == "X-Request-Timeout" and header["in"] == "header"
    schema = jsonschema.Draft202012Validator(header["schema"])
    for text in ("0", "-1", "1000001", "1000000", "0.000001", "2.5"):
        assert schema.is_valid(float(text)) == (server.get("/healthz", {"X-Request-Timeout": text}).status != 400), text
    infer = document["paths"]["/v2/models/{name}/infer"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert infer["properties"]["parameters"]["properties"]["timeout"]["type"] == "integer"


# ---- Values that fit ------------------------------------------------------------------------------------------------------


def fits(value, schema, schemas):
    resolver = jsonschema.RefResolver("", {"components": {"schemas": schemas}})
    return jsonschema.Draft202012Validator(schema, resolver=resolver).is_valid(value)


def body_schema(document, path):
    return document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]


def test_examples_and_configs_fit(document, server):
    schemas = document["components"]["schemas"]
    for entry in server.get("/schemes").json()["schemes"]:
        path, example = entry["endpoints"][0], entry["example"]
        assert fits(example, body_schema(document, path), schemas) and example in schemas["scheme." + entry["name"]]["examples"], entry["name"]
        answer = server.post(path, example)
        assert answer.status == 200 and fits(answer.json(), schemas["Answer"], schemas)
        assert fits(answer.json()["config"], schemas["scheme." + entry["name"]], schemas), entry["name"]


def test_analyses_fit(document, server):
    schemas, metrics = document["components"]["schemas"], server.get("/schemes").json()["metrics"]
    assert {p["name"] for row in metrics for p in row["parameters"]} | {"configs", "lang", "metrics"} <= set(schemas["Analysis"]["properties"])
    assert list(schemas["AnalysisAnswer"]["properties"]["results"]["items"]["properties"]) == [row["name"] for row in metrics]
    body, request = body_schema(document, "/analyze"), {"configs": [{"scheme": "rope"}], "len": 3}
    assert fits(request, body, schemas) and not fits({"scheme": "rope", "len": 3, "metrics": ["decai"]}, body, schemas)
    assert fits(server.ask("/analyze", **request).json(), schemas["AnalysisAnswer"], schemas)
    assert not fits({"configs": [], "results": [{"decay": {"value": 1}}], "tensors": {}}, schemas["AnalysisAnswer"], schemas)


@pytest.mark.parametrize("request_", [{"scheme": "rop", "len": 3}, {"len": 3}, {"scheme": "rope", "len": 0}, {"scheme": "rope", "len": 3, "layout": "thirds"}, {"scheme": "rope", "len": 3, "base": -1},
                                      {"scheme": "alibi", "len": 3, "causal": 1}, {"scheme": "rope", "len": 3, "format": "xml"}, {"scheme": "rope", "len": "3"}], ids=str)
def test_what_is_refused_does_not_fit(document, server, request_):
    assert server.post("/encode", request_).status == 422
    assert not fits(request_, body_schema(document, "/encode"), document["components"]["schemas"])


@pytest.fixture
def stored(server):
    """The file that the examples of /weights name."""
    assert server.request("PUT", "/weights/t5-small", safetensors_reader.dumps({"table": np.zeros((2, 2), "f4")}, {})).status in (200, 201)
    yield
    server.request("DELETE", "/weights/t5-small")


def test_examples_of_routes(document, server, stored):
    schemas = document["components"]["schemas"]
    queries = {"/encode": "?scheme=rope&len=4", "/analyze": "?scheme=rope&len=4", "/explain": "?scheme=rope", "/derive": "?scheme=rope&position=3&pair=1", "/translate": "?scheme=rope&to=vllm", "/diagnose/probe": "?scheme=rope", "/experiments": "?scheme=rope&steps=1&train_len=16&eval_len=16"}
    for path, item in document["paths"].items():
        for method, operation in operations(item):
            if method in ("put", "delete") or path.endswith("/unload"):
                continue  # test_weights.py; models stay
            names = {p["name"]: p["example"] for p in operation.get("parameters", []) if p["in"] == "path"}
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            body = None if content is None else json.dumps(content["example"]).encode()
            answer = server.request(method.replace("x-", "").upper(), path.format(**names) + (queries.get(path, "") if body is None else ""), body,
                                    {} if body is None else {"Content-Type": "application/json"})
            assert answer.status == 200, (method, path)
            types = operation["responses"]["200"]["content"]
            assert not answer.body and method != "get" or answer.headers["Content-Type"].split(";")[0] in types or "*/*" in types, (method, path)
            assert content is None or fits(content["example"], content["schema"], schemas)


def test_examples_of_stored_presets(document, server):
    """The name of PUT and DELETE is free, unlike that of GET."""
    operations_ = document["paths"]["/presets/{name}"]
    for method, statuses in (("put", (201, 200)), ("delete", (204,))):
        names = [p["example"] for p in operations_[method]["parameters"] if p["in"] == "path"]
        example = operations_[method].get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
        answer = server.request(method.upper(), f"/presets/{names[0]}", None if example is None else json.dumps(example).encode(), {"Content-Type": "application/json"})
        assert answer.status in statuses, (method, answer.body)


def test_problems_fit(document, server):
    problem = server.post("/encode", {"scheme": "rop", "len": 3}).json()
    assert fits(problem, document["components"]["schemas"]["Problem"], document["components"]["schemas"])
