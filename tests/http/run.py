#!/usr/bin/python3
"""The rows of ../cases: read, checked, asked, compared. ../cases/README.md says what a row may hold.

    tests/http/run.py [--url URL] NAME...    asks the rows whose name has one of these words, of a server of its own or of URL

test_cases.py runs all of them, each as one test."""
import base64
import fnmatch
import json
import pathlib
import re
import sys
import tempfile
from urllib.parse import quote

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
CASES = HERE.parent / "cases"
sys.path[:0] = [path for path in (str(HERE), str(HERE.parent)) if path not in sys.path]

import believed  # noqa: E402  (the paths had to be set first)
import laws  # noqa: E402
import safetensors_reader  # noqa: E402
import tensors  # noqa: E402
import token_files  # noqa: E402
import truth.answers  # noqa: E402

METHODS = ("post", "get", "put", "delete", "head", "options", "query")
ROW = {"id", "why", "expect", "request", "body", "base64", "parts", "headers", "flags", *METHODS}
REFUSAL = {"pointer", "detail"}
TABLES = {"command", "heads", "heavy", "left", "plans", "unallocated", "work"}  # of other readers


class BadRow(Exception):
    """A row that says nothing, or something that is not there: with its file and line."""


# ---- What is sent ------------------------------------------------------------------------------------------------------


def drawn(spec):
    """The array of {"$normal": shape, "seed": 0, "size": 1, "dtype": "f64"}, which f32, f16 and bf16 hold exactly."""
    array = spec.get("size", 1) * np.random.default_rng(spec.get("seed", 0)).standard_normal(spec["$normal"])
    dtype = spec.get("dtype", "f64")
    return tensors.to_bf16(array).astype(float) if dtype == "bf16" else array.astype(tensors.RAW[dtype])


MADE = {
    "$normal": lambda spec: {"dtype": spec.get("dtype", "f64"), "shape": spec["$normal"], "data": drawn(spec).ravel().tolist()},
    "$truth": lambda spec: believed.inline(believed.tensor(spec, drawn), spec.get("dtype", "f32")),
    "$range": lambda spec: list(range(*spec["$range"])),
    "$repeat": lambda spec: spec["$repeat"] * spec["times"],  # a list or a text, several times
    "$join": lambda spec: "".join(made(part) for part in spec["$join"]),  # texts, one behind the other
}


def made(value):
    """A value of a row as it is sent: {"$normal"…}, {"$range"…}, {"$repeat"…} in place."""
    if isinstance(value, list):
        return [made(item) for item in value]
    if not isinstance(value, dict):
        return value
    for name, make in MADE.items():
        if name in value:
            return make(value)
    return {name: made(item) for name, item in value.items()}


def in_query(path, request):
    """Fields of a request as a query: texts as they are, all else as JSON."""
    fields = [f"{quote(name)}={quote(value if isinstance(value, str) else json.dumps(value))}" for name, value in request.items()]
    return path + ("?" + "&".join(fields) if fields else "")


def part_of(part):
    """Of a form: a text, an .npy file, an object as JSON."""
    if isinstance(part, str):
        return part
    if "$truth" in part:
        return tensors.npy(believed.tensor(part, drawn).astype(believed.NUMPY[part.get("dtype", "f32")]))
    return tensors.npy(drawn(part)) if "$normal" in part else json.dumps(made(part))


def method_of(row):
    return next(name for name in METHODS if name in row)


def path_of(row):
    return row[method_of(row)]


def sent(row):
    """Method, path, body, headers."""
    method, path, headers, request = method_of(row), path_of(row), dict(row.get("headers", {})), made(row.get("request"))
    if "parts" in row:
        body, kind = tensors.multipart(**{name: part_of(part) for name, part in row["parts"].items()})
        return method, path, body, {**kind, **headers}
    if "base64" in row:
        return method, path, base64.b64decode(row["base64"]), headers
    if "body" in row:
        return method, path, made(row["body"]).encode(), headers
    if request is None or method in ("get", "head", "delete"):
        return method, in_query(path, request or {}), None, headers
    return method, path, json.dumps(request).encode(), {"Content-Type": "application/json", **headers}


def ask(server, row):
    method, path, body, headers = sent(row)
    return server.request(method.upper(), path, body, headers)


# ---- What is expected --------------------------------------------------------------------------------------------------


KINDS = {}


def kind(check):
    KINDS[check.__name__.rstrip("_")] = check
    return check


def at(document, pointer):
    """The value at a JSON pointer; * is every member or item, and gives a list."""
    if pointer == "":
        return document
    name, slash, rest = pointer[1:].partition("/")
    if name == "*":
        return [at(item, slash + rest) for item in (document.values() if isinstance(document, dict) else document)]
    name = name.replace("~1", "/").replace("~0", "~")
    return at(document[int(name)] if isinstance(document, list) else document[name], slash + rest)


def arrays(answer):
    """Tensors by name, of any format."""
    media = answer.headers["Content-Type"].split(";")[0]
    read = {"application/json": tensors.from_json, "application/octet-stream": tensors.from_raw, "application/zip": tensors.from_npz,
            "application/vnd.safetensors": tensors.from_safetensors, "application/x-npy": lambda one: {"": tensors.from_npy(one)}}[media]
    return read(answer)


def detail_of(answer):
    """The text of a refusal, or of any other answer."""
    return answer.json()["detail"] if answer.status >= 400 else answer.body.decode()


def is_near(got, wanted, tolerance, text=""):
    """Equal within a tolerance that is absolute below 1 and relative above; the same infinities and NaN."""
    np.testing.assert_allclose(np.asarray(got, float), np.asarray(wanted, float), rtol=tolerance, atol=tolerance, err_msg=text)


def again(row, **request):
    """The row with other fields in its request; null takes one away."""
    fields = {**row.get("request", {}), **request}
    return {**row, "request": {name: value for name, value in fields.items() if value is not None}}


@kind
def status(wanted, answer, row, server):
    """Checked of every row."""


@kind
def pointer(wanted, answer, row, server):
    found = answer.json().get("pointer", "")
    assert found in (wanted if isinstance(wanted, list) else [wanted]), f"pointer {found}"


@kind
def detail(wanted, answer, row, server):
    assert answer.json()["detail"] == wanted


@kind
def words(wanted, answer, row, server):
    text = detail_of(answer)
    for word in wanted:
        assert word in text, f"{word!r} is missing"


@kind
def no_words(unwanted, answer, row, server):
    text = detail_of(answer)
    for word in unwanted:
        assert word not in text, f"{word!r} is there"


@kind
def text(wanted, answer, row, server):
    assert answer.body.decode() == wanted


@kind
def headers(wanted, answer, row, server):
    """null: it is not there."""
    for name, value in wanted.items():
        assert answer.headers.get(name) == value, f"{name}: {answer.headers.get(name)}"


def member(answer, pointer):
    try:
        return at(answer.json(), pointer)
    except (KeyError, IndexError, TypeError, ValueError):
        raise AssertionError(f"{pointer} is not there") from None


@kind
def values(wanted, answer, row, server):
    """{pointer: value}, equal as JSON."""
    for pointer, value in wanted.items():
        found = member(answer, pointer)
        assert found == made(value) and (isinstance(found, bool) == isinstance(value, bool)), f"{pointer}: {json.dumps(found)[:600]}"


@kind
def has(wanted, answer, row, server):
    """{pointer: members or items}, which are among those that are there; of a text, a part."""
    for pointer, part in wanted.items():
        found = member(answer, pointer)
        inside = part.items() <= found.items() if isinstance(part, dict) else part in found if isinstance(part, str) else all(p in found for p in part)
        assert inside, f"{pointer}: {json.dumps(found)[:600]}"


@kind
def counts(wanted, answer, row, server):
    """{pointer: how many members or items there are}."""
    for pointer, n in wanted.items():
        assert len(member(answer, pointer)) == n, f"{pointer}: {len(member(answer, pointer))}"


@kind
def between(wanted, answer, row, server):
    """{pointer: [least, most]}: a number of this range, ends included; null: no such end."""
    for pointer, (least, most) in wanted.items():
        found = member(answer, pointer)
        assert (least is None or least <= found) and (most is None or found <= most), f"{pointer}: {found}"


@kind
def absent(pointers, answer, row, server):
    for pointer in pointers:
        try:
            found = at(answer.json(), pointer)
        except (KeyError, IndexError, TypeError):
            continue
        raise AssertionError(f"{pointer} is there: {json.dumps(found)[:300]}")


@kind
def near(wanted, answer, row, server):
    """{pointer: numbers}, within `tolerance`."""
    for pointer, value in wanted.items():
        is_near(member(answer, pointer), value, row["expect"].get("tolerance", 1e-9), pointer)


@kind
def tolerance(wanted, answer, row, server):
    """Of near, numbers, at and truth; checked there."""


@kind
def names(wanted, answer, row, server):
    found = list(arrays(answer))
    assert found == wanted, f"names {found}"


@kind
def shapes(wanted, answer, row, server):
    found = arrays(answer)
    for name, shape in wanted.items():
        assert list(found[name].shape) == shape, f"{name} {found[name].shape}"


@kind
def numbers(wanted, answer, row, server):
    """{tensor: nested lists}: equal, or within `tolerance`."""
    found = arrays(answer)
    for name, value in wanted.items():
        got, value = found[name], np.array(made(value), float)
        assert got.shape == value.shape, f"{name}: shape {got.shape}"
        is_near(got, value, row["expect"].get("tolerance", 0), name)


@kind
def cells(wanted, answer, row, server):
    """{tensor: [[place, number]…]}: single numbers of a large tensor."""
    found = arrays(answer)
    for name, places in wanted.items():
        for place, value in places:
            is_near(found[name][tuple(place)], value, row["expect"].get("tolerance", 0), f"{name} {place}")


@kind
def truth_(wanted, answer, row, server):
    """true: every tensor is what tests/truth computes of the same request, in float64, as near as its type allows or within `tolerance`."""
    truth.answers.compare(path_of(row), made(row["request"]), arrays(answer), row["expect"].get("tolerance"))


@kind
def same(others, answer, row, server):
    """Requests with these other fields (null: without it) have the same bytes and tag."""
    for other in others:
        found = ask(server, again(row, **other))
        assert found.status == 200 and found.body == answer.body and found.headers["ETag"] == answer.headers["ETag"], f"with {other}: {found}"


@kind
def differs(others, answer, row, server):
    for other in others:
        found = ask(server, again(row, **other))
        assert found.status == 200 and found.body != answer.body, f"with {other}: the same bytes"
        assert found.headers["ETag"] is None or found.headers["ETag"] != answer.headers["ETag"], f"with {other}: the same tag"


@kind
def law(names, answer, row, server):
    """Functions of laws.py: what is no list of values."""
    for name in names:
        laws.LAWS[name](answer, row, server)


def check_problem(answer, media="application/problem+json"):
    """RFC 9457, with our members."""
    assert answer.headers["Content-Type"].split(";")[0] == media, answer.headers["Content-Type"]
    problem = answer.json()
    assert problem["type"] == "about:blank" and problem["title"] and problem["status"] == answer.status
    assert problem["error"] == problem["detail"]


def check_refusal(answer, row):
    """The Open Inference Protocol has the same members as JSON; a message of MCP is refused by JSON-RPC's `error` once it is read."""
    path = path_of(row)
    if path.startswith("/mcp") and answer.headers["Content-Type"] == "application/json":
        assert isinstance(answer.json()["error"]["code"], int) and answer.json()["error"]["message"]
        return
    check_problem(answer, "application/json" if re.match(r"/v2(/|\?|$)", path) else "application/problem+json")


def statuses(row):
    """Those that it allows."""
    stated = row["expect"].get("status", 422 if REFUSAL & set(row["expect"]) else 200)
    return stated if isinstance(stated, list) else [stated]


def is_refusal(row):
    """Whether it may expect one."""
    return max(statuses(row)) >= 400


def check(row, server):
    """Asks, and compares; what differs is an AssertionError with the row, the answer and the command that asks again."""
    answer = None
    try:
        answer = ask(server, row)
        expect = row["expect"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff", "a browser may take it for something else"
        assert answer.status in statuses(row), f"status {answer.status}"
        if answer.status >= 400 and answer.body:
            check_refusal(answer, row)
        for name, wanted in expect.items():
            KINDS[name](wanted, answer, row, server)
    except Exception as error:  # what a row expects may not be there at all
        shown = {name: value for name, value in row.items() if name != "file"}
        raise AssertionError(f"{type(error).__name__}: {error}\nrow:    {json.dumps(shown, ensure_ascii=False)}\nanswer: {answer}\n"
                             f"again:  tests/http/run.py {name_of(row)}") from None


# ---- The rows ----------------------------------------------------------------------------------------------------------


def name_of(row):
    return f"{row['file']}/{row['id']}"


def fault_of(row):
    """What is wrong with a row, or nothing."""
    if not isinstance(row, dict):
        return "a row is an object"
    unknown = set(row) - ROW
    if unknown:
        return f"unknown keys {sorted(unknown)}; there are {sorted(ROW)}"
    if not row.get("id") or " " in row["id"]:
        return "no id, or one with a space"
    if len(row.get("why", "")) < 12:
        return "no why: the promise that it holds, in the words of its guide"
    if sum(name in row for name in METHODS) != 1:
        return f"one of {METHODS} gives method and path"
    if not row.get("expect"):
        return "nothing is expected"
    unknown = set(row["expect"]) - set(KINDS)
    if unknown:
        return f"unknown expectations {sorted(unknown)}; there are {sorted(KINDS)}"
    unknown = set(row["expect"].get("law", [])) - set(laws.LAWS)
    if unknown:
        return f"laws.py has no {sorted(unknown)}"
    if "truth" in row["expect"] and path_of(row) not in truth.answers.OF:
        return "tests/truth/answers has no answers of this path"
    return None


def read(path):
    """The rows of one file."""
    rows, seen = [], set()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise BadRow(f"{path}:{number}: {error}") from None
        fault = fault_of(row) or ("a second row with this id" if row["id"] in seen else None)
        if fault:
            raise BadRow(f"{path}:{number}: {fault}")
        seen.add(row["id"])
        rows.append({**row, "file": path.stem})
    return rows


def every(pattern="*"):
    return [row for path in sorted(CASES.glob("*.jsonl")) if path.stem not in TABLES and fnmatch.fnmatch(path.stem, pattern) for row in read(path)]


def write_files(folder):
    """What flags may name: a folder of the weights and presets of ../cases/stored.json, a file of tokens, a folder that is empty at first."""
    for place in ("stored", "empty"):
        (folder / place).mkdir()
    for name, named in json.loads((CASES / "stored.json").read_text()).items():
        if "config" in named:
            (folder / "stored" / f"{name}.preset.json").write_text(json.dumps(named))
            continue
        arrays = {tensor: drawn(spec) for tensor, spec in named.items()}
        (folder / "stored" / f"{name}.safetensors").write_bytes(safetensors_reader.dumps(arrays))
    (folder / "tokens").write_text("\n".join(token_files.LINES) + "\n")
    (folder / "tokens").chmod(0o600)


class Servers:
    """A server for each set of flags, started when the first row needs it; {stored}, {tokens} and {empty} in a flag are the servers' own."""

    def __init__(self, usual=None):
        self.started, self.usual, self.files = {}, usual, tempfile.TemporaryDirectory()
        write_files(pathlib.Path(self.files.name))

    def of(self, row):
        flags = tuple(row.get("flags", ()))
        if not flags and self.usual:
            return self.usual
        if flags not in self.started:
            from conftest import start_server
            block = start_server(*(re.sub(r"\{(\w+)\}", rf"{self.files.name}/\1", flag) for flag in flags))
            self.started[flags] = block.__enter__(), block
        return self.started[flags][0]

    def stop(self):
        for _, block in self.started.values():
            block.__exit__(None, None, None)
        self.files.cleanup()


def main(arguments):
    usual = None
    if arguments[:1] == ["--url"]:
        from conftest import at_url
        usual, arguments = at_url(arguments[1]), arguments[2:]
    rows = [row for row in every() if any(word in name_of(row) for word in arguments)]
    servers, failed = Servers(usual), 0
    for row in rows:
        try:
            check(row, servers.of(row))
        except AssertionError as error:
            failed += 1
            print(f"{name_of(row)}: {error}\n")
    servers.stop()
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BadRow as error:
        sys.exit(str(error))
