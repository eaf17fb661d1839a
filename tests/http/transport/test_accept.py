"""Accept: random headers, on one line and on several, against an independent implementation of RFC 9110 12.5.1; and the
headers that real clients send."""
import re
import socket

import hypothesis.strategies as st
from hypothesis import example, given, settings

OURS = ["application/json", "application/octet-stream", "application/x-npy", "application/zip", "application/vnd.safetensors",
        "image/png", "text/plain"]
BODY = b'{"scheme":"rope","len":2,"head_dim":4,"outputs":["cos"]}'
DEADLINE = 60


# ---- The standard, once more ---------------------------------------------------------------------------------------------


def split(text, separator):
    """At separators outside of quoted strings."""
    parts, quoted, escaped = [""], False, False
    for c in text:
        if c == separator and not quoted:
            parts.append("")
            continue
        if c == '"' and not escaped:
            quoted = not quoted
        escaped = quoted and c == "\\" and not escaped
        parts[-1] += c
    return [part.strip(" \t") for part in parts]


def ranges(accept):
    """(type, subtype, weight) of each range; a range with an invalid weight is ignored."""
    for element in split(accept, ","):
        name, *parameters = split(element, ";")
        weight = next((p.split("=", 1)[1] for p in parameters if re.match("[qQ]=", p)), "1")
        if element and re.fullmatch(r"0(\.\d{0,3})?|1(\.0{0,3})?|\.\d{1,3}", weight):
            type_, _, subtype = ("*/*" if name == "*" else name).lower().partition("/")
            yield type_, subtype, float(weight)


def weight_of(media_type, accept):
    """That of the most specific range that covers it; of two alike, the first; none: not acceptable."""
    type_, subtype = media_type.split("/")
    for wanted in ((type_, subtype), (type_, "*"), ("*", "*")):
        for a, b, weight in ranges(accept):
            if (a, b) == wanted:
                return weight
    return 0


def acceptable(accept):
    """The types of ours that have the greatest weight; empty: 406."""
    if not [element for element in split(accept, ",") if element]:
        return {OURS[0]}
    weights = {media_type: weight_of(media_type, accept) for media_type in OURS}
    best = max(weights.values())
    return {media_type for media_type, weight in weights.items() if weight == best > 0}


# ---- Over the wire -------------------------------------------------------------------------------------------------------


def answer_type(server, lines):
    """The type of the answer to a request with these Accept lines, None for 406."""
    head = b"POST /encode HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n" % len(BODY)
    with socket.create_connection((server.host, server.port), timeout=DEADLINE) as s:
        s.sendall(head + b"".join(b"%s: %s\r\n" % (name, line.encode()) for name, line in zip([b"Accept", b"accept", b"ACCEPT"] * len(lines), lines)) + b"\r\n" + BODY)
        answer = s.makefile("rb").read().decode("latin1")
    status = int(answer.split(" ")[1])
    assert status in (200, 406), answer
    return re.search(r"\r\nContent-Type: ([^\r;]+)", answer)[1] if status == 200 else None


SPACE = st.sampled_from(["", "", " ", "\t", "  "])
WEIGHT = st.one_of(st.sampled_from(["0", "1", "0.", "1.", "0.5", "0.001", "0.000", "1.000", ".2", ".25", "0.1234", "2", "-1", "", ".", "1.001", "0,5", "abc", "0.5 "]),
                   st.integers(0, 1000).map(lambda n: f"{n / 1000:.3f}"))
TYPE = st.sampled_from([*OURS, *OURS, "application/*", "*/*", "*", "text/html", "image/*", "APPLICATION/JSON", "Application/X-NPY", "application", "application/json+x", "/", ""])
PARAMETER = st.sampled_from(["charset=utf-8", 'profile="a,b;q=0"', 'x="\\""', "level=1", "v"])


@st.composite
def element(draw):
    parts = [draw(TYPE), *draw(st.lists(PARAMETER, max_size=2))]
    if draw(st.booleans()):
        parts.append(draw(st.sampled_from("qQ")) + "=" + draw(WEIGHT))
    return "".join(draw(SPACE) + part + draw(SPACE) + ";" for part in parts)[:-1]


LINES = st.lists(st.lists(element(), max_size=5).map(",".join), min_size=1, max_size=3)


@settings(max_examples=150)
@given(LINES)
@example(["text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"])  # Java
@example(["application/json;q=0", "*/*"])
@example(["", "application/x-npy"])
@example([",", ""])
@example(["text/html"] * 55 + ["application/x-npy"])
def test_random_headers(session_server, lines):
    expected, got = acceptable(", ".join(lines)), answer_type(session_server, lines)
    assert got in expected if expected else got is None, (lines, got, expected)


def test_other_lists_on_several_lines(server):
    tag = server.get("/encode?scheme=rope&len=4").headers["ETag"]
    with socket.create_connection((server.host, server.port), timeout=DEADLINE) as s:
        s.sendall(f'GET /encode?scheme=rope&len=4 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIf-None-Match: "a", "b"\r\nIf-None-Match: {tag}\r\n\r\n'.encode())
        assert s.makefile("rb").read().startswith(b"HTTP/1.1 304")
