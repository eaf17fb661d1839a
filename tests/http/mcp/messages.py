"""Messages of the Model Context Protocol, as both eras write them."""
import json

NEW, OLD, OLDER = "2026-07-28", "2025-11-25", "2025-06-18"
META = "io.modelcontextprotocol/"
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def send(server, message, **headers):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    given = {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return server.request("POST", "/mcp", body, {name: value for name, value in given.items() if value is not None})


def old(server, method, params=None, id=1, **headers):
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    return send(server, message if params is None else {**message, "params": params}, **headers)


def new(server, method, params=None, id=1, meta=None, **headers):
    params = {**(params or {}), "_meta": {META + "protocolVersion": NEW, META + "clientCapabilities": {}, **(meta or {})}}
    named = {"Mcp_Name": params.get("name") or params.get("uri")} if method in ("tools/call", "prompts/get", "resources/read") else {}
    return send(server, {"jsonrpc": "2.0", "id": id, "method": method, "params": params},
                **{"MCP_Protocol_Version": NEW, "Mcp_Method": method, **named, **headers})


def result(answer):
    assert answer.status == 200, answer
    message = answer.json()
    assert set(message) == {"jsonrpc", "id", "result"}, message
    return message["result"]


def error(answer, status=200):
    assert answer.status == status, answer
    assert answer.headers["Content-Type"] == "application/json"
    return answer.json()["error"]


def call(server, tool, ask=old, **arguments):
    """The structured content of a call, whose text says the same."""
    found = result(ask(server, "tools/call", {"name": tool, "arguments": arguments}))
    assert found["isError"] is False, found
    assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
    return found["structuredContent"]


def refusal(server, tool, arguments):
    """The problem that a call's result has."""
    found = result(old(server, "tools/call", {"name": tool, "arguments": arguments}))
    assert found["isError"] is True and "structuredContent" not in found, found
    problem = found["_meta"]["posenc/problem"]
    at = f" (at {problem['pointer']})" if "pointer" in problem else ""
    assert found["content"] == [{"type": "text", "text": problem["detail"] + at}]
    return problem
