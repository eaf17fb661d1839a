"""GET /openapi.json: well-formed OpenAPI 3.1, complete (every route, method and parameter), and true: examples and resolved
configs fit the schemas. Validated by Debian's jsonschema (draft 2020-12, which OpenAPI 3.1 uses)."""
import json
import re

import jsonschema
import numpy as np
import pytest

import safetensors_reader

SCHEMA_WORDS = {"description", "type", "minimum", "maximum", "enum", "default", "properties", "const", "examples", "$ref", "required", "oneOf", "anyOf",
                "allOf", "items", "additionalProperties"}


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
    jsonschema.Draft202012Validator.check_schema(schema)
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
RESPONSES = {**table(record("description", description=TEXT, content=MEDIA, headers=HEADERS), r"^([1-5](\d\d|XX)|default)$"), "minProperties": 1}
PARAMETER = {"oneOf": [
    {**record("name in schema", name=TEXT, description=TEXT, required=FLAG, schema=SCHEMA, style=TEXT, explode=FLAG, example=True, **{"in": {"enum": ["query", "path", "header", "cookie"]}})},
    {**record("name in content", name=TEXT, description=TEXT, required=FLAG, content={**MEDIA, "minProperties": 1, "maxProperties": 1}, **{"in": {"enum": ["query", "path", "header", "cookie"]}})}]}
OPERATION = record("responses", summary=TEXT, description=TEXT, operationId=TEXT, tags=TEXTS, parameters={"type": "array", "items": PARAMETER},
                   requestBody=record("content", description=TEXT, required=FLAG, content=MEDIA), responses=RESPONSES)
METHODS = {method: OPERATION for method in ("get", "put", "post", "delete", "options", "head", "patch", "trace")}
DOCUMENT = record("openapi info paths", openapi={"const": "3.1.0"}, info=record("title version", title=TEXT, version=TEXT, summary=TEXT, description=TEXT, license=True),
                  servers={"type": "array"}, tags={"type": "array", "items": record("name", name=TEXT, description=TEXT)},
                  paths=table(record("", **METHODS, parameters={"type": "array", "items": PARAMETER}), "^/"),
                  components=record("", schemas=table(SCHEMA, r"^[A-Za-z0-9._-]+$"), securitySchemes=True), security={"type": "array", "items": table({"type": "array", "items": TEXT}, r"^bearer$")})


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
        for method, operation in item.items():
            assert operation["tags"][0] in ("compute", "catalogue", "weights", "operation", "inference")
            assert method in ("get", "head", "post", "put", "delete", "x-query") and operation["summary"] and operation["responses"]["204" if method == "delete" else "200"]["description"]
            named = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path)) and all(p["required"] for p in operation.get("parameters", []) if p["in"] == "path")


def test_schemas(document):
    for name, schema in document["components"]["schemas"].items():
        check_schema(schema, name)
    for path, schema in schemas_in(document["paths"]):
        check_schema(schema, path)
    text = json.dumps(document)
    for target in set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', text)):
        assert target in document["components"]["schemas"]


def test_every_route_and_method(document, server):
    listed = re.search(r"there are: (.*)", server.get("/nowhere-near-anything").json()["detail"])[1]
    assert set(listed.split(", ")) <= set(document["paths"]) and len(document["paths"]) >= len(listed.split(", "))
    for path, item in document["paths"].items():
        allow = server.request("OPTIONS", path.format(name="x", version="1")).headers["Allow"].split(", ")
        assert {m.replace("QUERY", "x-query").lower() for m in allow} == set(item), path


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


@pytest.mark.parametrize("request_", [{"scheme": "rop", "len": 3}, {"len": 3}, {"scheme": "rope", "len": 0}, {"scheme": "rope", "len": 3, "layout": "thirds"}, {"scheme": "rope", "len": 3, "base": -1},
                                      {"scheme": "alibi", "len": 3, "causal": 1}, {"scheme": "rope", "len": 3, "format": "xml"}, {"scheme": "rope", "len": "3"}], ids=str)
def test_what_is_refused_does_not_fit(document, server, request_):
    assert server.post("/encode", request_).status == 422
    assert not fits(request_, body_schema(document, "/encode"), document["components"]["schemas"])


@pytest.fixture
def stored(server):
    """The file that the examples of /weights name."""
    assert server.request("PUT", "/weights/t5-small", safetensors_reader.dumps({"table": np.zeros((2, 2), "f4")}, {})).status == 201
    yield
    server.request("DELETE", "/weights/t5-small")


def test_examples_of_routes(document, server, stored):
    schemas = document["components"]["schemas"]
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method in ("put", "delete") or path.endswith("/unload"):
                continue  # test_weights.py; models stay
            names = {p["name"]: p["example"] for p in operation.get("parameters", []) if p["in"] == "path"}
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            body = None if content is None else json.dumps(content["example"]).encode()
            answer = server.request(method.replace("x-", "").upper(), path.format(**names) + ("?scheme=rope&len=4" if path == "/encode" and body is None else ""), body)
            assert answer.status == 200, (method, path)
            assert not answer.body and method != "get" or answer.headers["Content-Type"].split(";")[0] in operation["responses"]["200"]["content"], (method, path)
            assert content is None or fits(content["example"], content["schema"], schemas)


def test_problems_fit(document, server):
    problem = server.post("/encode", {"scheme": "rop", "len": 3}).json()
    assert fits(problem, document["components"]["schemas"]["Problem"], document["components"]["schemas"])
