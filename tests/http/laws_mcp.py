"""Laws of rows of /mcp: the two eras, and what a refused call says."""
from laws import law


@law
def instructions_are_short(answer, row, server):
    """Both eras have the same, in at most 1200 characters; the server says its version."""
    from messages import META, new, old, result
    found, other = answer.json()["result"], result(new(server, "server/discover"))
    assert found["instructions"] == other["instructions"] == result(old(server, "initialize"))["instructions"] and len(found["instructions"]) <= 1200
    assert other["_meta"][META + "serverInfo"] == {"name": "posenc", "title": "posenc", "version": server.get("/version").json()["version"]}


@law
def eras_differ_in_wrapping(answer, row, server):
    """A result of the old era is that of the new one without what it adds."""
    from messages import META, old, result
    message = row["request"]
    params = {name: value for name, value in message["params"].items() if name != "_meta"}
    ours, theirs = answer.json()["result"], result(old(server, message["method"], params or None))
    assert "resultType" not in theirs and META + "serverInfo" not in theirs.get("_meta", {})
    assert theirs == {name: value for name, value in ours.items() if name not in ("resultType", "_meta", "ttlMs", "cacheScope")}


@law
def however_large(answer, row, server):
    """The same of a message beyond 64 KiB, whose arguments are read where they are used."""
    from messages import error, send
    assert error(send(server, row["body"].replace('"arguments":', '"arguments":' + " " * 70000).encode()), 400)["code"] == answer.json()["error"]["code"]


@law
def says_its_problem(answer, row, server):
    """The text of a refused call is its detail, with the place."""
    result = answer.json()["result"]
    problem = result["_meta"]["posenc/problem"]
    at = f" (at {problem['pointer']})" if "pointer" in problem else ""
    assert result["content"] == [{"type": "text", "text": problem["detail"] + at}]


@law
def in_the_tool_experiment(answer, row, server):
    from messages import refusal
    assert refusal(server, "experiment", row["request"]) == answer.json()


@law
def in_the_tool_schemes(answer, row, server):
    from messages import refusal
    assert refusal(server, "schemes", {"name": row["get"].split("/")[-1]}) == answer.json()
