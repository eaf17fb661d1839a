"""Laws of rows whose request may be asked in other ways: as a tool of language models, in Chinese."""
from laws import law


@law
def in_a_tool(answer, row, server):
    """A tool refuses with the problem of its endpoint (Tools of language models)."""
    from messages import refusal
    from run import made
    assert refusal(server, row["post"][1:], made(row["request"])) == answer.json()


@law
def in_chinese(answer, row, server):
    """A refusal has Chinese words too."""
    from run import ask
    found = ask(server, {**row, "headers": {"Accept-Language": "zh"}})
    assert found.headers["Content-Language"].startswith("zh") and any("一" <= letter <= "鿿" for letter in found.json()["detail"])


@law
def says_where(answer, row, server):
    """Triton's clients show `error` and nothing else of a refusal: it begins with the place."""
    problem = answer.json()
    assert problem["error"].startswith(problem["pointer"] + ": ")
