"""Laws of rows about HTTP itself: methods, tags, conditions, ranges, caches, origins, and memory that is given back."""
import json
import random
import re
import struct
from urllib.parse import quote

from connection import metric, wait_until
from laws import law

OF_ONE_ANSWER = ("Date", "Server-Timing", "X-Request-Id")


def asked_again(row, server, method=None, body=None, **headers):
    """The row's request once more, by another method, with these headers too."""
    import run
    own, path, sent, others = run.sent(row)
    return server.request((method or own).upper(), path, body or sent, {**others, **{name.replace("_", "-"): value for name, value in headers.items()}})


@law
def methods_agree(answer, row, server):
    """GET with fields, GET with the whole request in the query, POST and QUERY have the same bytes; POST has no tag."""
    request = json.dumps(row["request"])
    whole = server.get(f"{row['get']}?request={quote(request)}")
    posted, queried = (server.request(method, row["get"], request, {"Content-Type": "application/json"}) for method in ("POST", "QUERY"))
    for other in (whole, posted, queried):
        assert other.body == answer.body and other.headers["Content-Type"] == answer.headers["Content-Type"]
    assert "ETag" not in posted.headers and queried.headers["ETag"]
    unchanged = server.request("QUERY", row["get"], request, {"If-None-Match": queried.headers["ETag"]})
    assert unchanged.status == 304 and unchanged.body == b""


@law
def head_is_get(answer, row, server):
    """HEAD has the status and the headers of GET, asked for a part too, and no body."""
    head = asked_again(row, server, "HEAD", Range="bytes=0-3")
    lasting = [{name: value for name, value in one.headers.items() if name not in OF_ONE_ANSWER} for one in (head, answer)]
    assert head.status == answer.status and head.body == b"" and lasting[0] == lasting[1], lasting


@law
def tag_answers_conditions(answer, row, server):
    """A tag stays; If-None-Match, in a list, weak or *, is 304 with the headers that caches need; what is not the tag is 200."""
    tag = answer.headers["ETag"]
    assert asked_again(row, server).headers["ETag"] == tag
    for value in (tag, f'"x", {tag}', f"W/{tag}", "*", f'"a","b" ,{tag} , "c"'):
        found = asked_again(row, server, If_None_Match=value)
        assert found.status == 304 and found.body == b"", value
        for name in ("ETag", "Vary", "Cache-Control"):
            assert found.headers[name] == answer.headers[name], (value, name)
    for value in ('"x"', tag[:-1], tag[1:-1], tag[:-2] + '"', '"', ""):
        assert asked_again(row, server, If_None_Match=value).status == 200, value


@law
def ranges_are_parts(answer, row, server):
    """Every range is that part of the whole, pieces make the whole, a range behind the end is 416, and what is none is ignored."""
    whole, tag, n, rng = answer.body, answer.headers["ETag"], len(answer.body), random.Random(1)
    assert answer.headers["Accept-Ranges"] == "bytes"

    def part(value, **headers):
        return asked_again(row, server, Range=value, **headers)

    ends = [(0, 0), (0, n - 1), (n - 1, n - 1), (1, n - 2), (n // 2, n // 2 + 5), *(sorted(rng.sample(range(n), 2)) for _ in range(8))]
    cuts = sorted(rng.sample(range(1, n), 4))
    for first, last in [*ends, *((a, b - 1) for a, b in zip([0, *cuts], [*cuts, n]))]:
        found = part(f"bytes={first}-{last}")
        assert found.status == 206 and found.body == whole[first:last + 1], (first, last)
        assert found.headers["Content-Range"] == f"bytes {first}-{last}/{n}" and found.headers["Content-Length"] == str(last - first + 1)
        assert found.headers["ETag"] == tag and found.headers["Vary"] == answer.headers["Vary"]
    for value, body in (("10-", whole[10:]), ("-7", whole[-7:]), (f"-{n + 9}", whole), (f"1-{n + 9}", whole[1:])):
        assert part(f"bytes={value}").body == body, value
    for value in (f"{n}-", f"{n + 5}-{n + 9}", "-0"):
        found = part(f"bytes={value}")
        assert found.status == 416 and found.headers["Content-Range"] == f"bytes */{n}", value
    for value in ("bytes=5-2", "bytes=", "bytes=-", "bytes=a-b", "bytes=0-1,4-5", "lines=0-1", "bytes 0-1", "bytes=0-1x", "bytes=99999999999999999999-"):
        assert part(value).status == 200, value
    assert part("bytes=0-5", If_Range=tag).status == 206
    for other in ('"x"', f"W/{tag}", "Sat, 21 Nov 2026 00:00:00 GMT"):
        assert part("bytes=0-5", If_Range=other).body == whole, other
    assert part("bytes=0-5", If_None_Match=tag).status == 304


@law
def has_no_ranges(answer, row, server):
    """What has checksums, or is text, or was posted, is sent whole."""
    for value in ("bytes=-100", "bytes=0-10", "bytes=30-5000000"):
        found = asked_again(row, server, Range=value)
        assert found.status == 200 and found.body == answer.body and "Accept-Ranges" not in found.headers, value


@law
def content_of_get_is_refused(answer, row, server):
    """The content of a GET has no meaning (RFC 9110, 9.3.1): it is 400, says where it belongs, and changes nothing that a cache keeps."""
    for method in ("GET", "HEAD"):
        for body in (b'{"base":7}', b'{"direction":-1}', b" ", b"x" * 70_000):
            for found in (asked_again(row, server, method, body), asked_again(row, server, method, iter([body]), Transfer_Encoding="chunked")):
                assert found.status == 400 and "ETag" not in found.headers and "public" not in found.headers.get("Cache-Control", ""), found
                assert method == "HEAD" or "POST" in found.json()["detail"] and "QUERY" in found.json()["detail"]
        assert asked_again(row, server, method, Content_Length="0").status == answer.status
    after = asked_again(row, server)
    assert (after.status, after.body) == (answer.status, answer.body)


STEERING = ({"Content-Type": "application/x-npy"}, {"Content-Type": "multipart/form-data; boundary=b"}, {"Inference-Header-Content-Length": "3"},
            {"Content-Encoding": "gzip"}, {"X-Request-Timeout": "0.000001"}, {"Authorization": "Bearer x"}, {"Origin": "https://example.org"},
            {"X-Forwarded-For": "10.0.0.1"}, {"Cookie": "a=b"}, {"X-Request-Id": "y"})


@law
def one_url_has_one_answer(answer, row, server):
    """Beside headers that steer other requests it is the same answer, or one that no cache keeps."""
    for headers in STEERING:
        found = asked_again(row, server, **headers)
        is_kept = "max-age" in found.headers.get("Cache-Control", "")
        assert found.status != 200 or found.body == answer.body, headers
        assert not is_kept or found.status == 200, headers


PAGE, ELSEWHERE = "https://vis.example.org", "https://else.example"  # --cors-origin has the first


def origins_of(answer):
    return {name.strip() for name in ", ".join(answer.headers.get_all("Vary", [])).split(",")}


@law
def depends_on_origin(answer, row, server):
    """Caches know that an answer depends on the origin, asked with one or without; only the page that is named may read it."""
    for origin in (None, PAGE, ELSEWHERE, "null", PAGE + ".evil.org", PAGE[:-1], PAGE.upper(), f"{PAGE} {ELSEWHERE}", ""):
        found = asked_again(row, server, **({} if origin is None else {"Origin": origin}))
        assert found.status == answer.status and "Origin" in origins_of(found), (origin, found)
        assert found.headers["Access-Control-Allow-Origin"] == (PAGE if origin == PAGE else None), origin


@law
def is_for_every_origin(answer, row, server):
    """Of --cors-origin "*" no answer depends on the origin."""
    for headers in ({}, {"Origin": "null"}, {"Origin": PAGE}):
        found = asked_again(row, server, **headers)
        assert found.headers.get_all("Access-Control-Allow-Origin") == ["*"] and "Origin" not in origins_of(found), headers


@law
def gives_memory_back(answer, row, server):
    """Nothing of --max-memory stays taken, and no stream."""
    assert wait_until(lambda: metric(server, "posenc_taken_memory_bytes") == 0 == metric(server, "posenc_streams"))


@law
def puts_and_deletes_are_refused_too(answer, row, server):
    """What is refused to a page is refused for PUT and DELETE of each store, and nothing is stored."""
    headers = dict(row["headers"])
    for method, path, body in (("DELETE", "/presets/page", None), ("PUT", "/weights/page", b"")):
        found = server.request(method, path, body, headers)
        assert found.status == 403 and "--cors-origin" in found.json()["detail"], found
    assert server.get("/presets/page").status == 404


EXPOSED = {"ETag", "Posenc-Tensors", "Posenc-Fits", "Content-Range", "Server-Timing", "X-Request-Id"}


def exposed_by(answer):
    return {name.strip() for name in answer.headers["Access-Control-Expose-Headers"].split(",")}


@law
def exposes_our_headers(answer, row, server):
    """Pages may read these headers, whole, not modified and refused."""
    for one in (answer, asked_again(row, server, If_None_Match="*"), asked_again(row, server, Accept="x/y")):
        assert exposed_by(one) == EXPOSED, one


@law
def exposes_the_length_of_json(answer, row, server):
    """Without it a page cannot read an inference with bytes."""
    assert exposed_by(answer) == EXPOSED | {"Inference-Header-Content-Length"}


@law
def has_an_id_of_ours(answer, row, server):
    assert re.fullmatch(r"[0-9a-f]{16}", answer.headers["X-Request-Id"])


@law
def ends_with_the_last_distances(answer, row, server):
    """The last row of ALiBi's last of 16 heads: slope 2^-8 times the distance."""
    assert answer.body == struct.pack("<4f", *(-distance * 2.0 ** -8 for distance in (3, 2, 1, 0)))


# ---- Limits and times -------------------------------------------------------------------------------------------------------------


@law
def counts_a_limit(answer, row, server):
    """What can never fit counts as a limit's refusal, not as memory that is short now."""
    assert metric(server, 'posenc_rejected_total{reason="limit"}') > 0 == metric(server, 'posenc_rejected_total{reason="memory"}')


@law
def is_refused_like_the_resolved_request(answer, row, server):
    """The request that a model's configuration stands for is refused in the same words; what it is, a server with room says."""
    import run
    from conftest import start_server
    with start_server() as roomy:
        config = run.ask(roomy, run.again(row, data=False, format="json")).json()["config"]
    found = run.ask(server, {**row, "request": {**config, **row["request"], "hf_config": None}})
    assert found.status == 413 and found.json()["detail"] == answer.json()["detail"], found


@law
def is_answered_if_it_is_short(answer, row, server):
    import run
    found = run.ask(server, run.again(row, len=16, slice=None, reduce=None))
    assert found.status == 200, found


@law
def took_no_memory(answer, row, server):
    assert server.memory("VmHWM") - server.memory("VmRSS") < 8 << 20


def milliseconds(answer):
    header = answer.headers["Server-Timing"]
    assert re.fullmatch(r"\w+;dur=\d+\.\d+(, \w+;dur=\d+\.\d+)*", header), header
    return {name: float(ms) for name, ms in re.findall(r"(\w+);dur=([\d.]+)", header)}


@law
def times_all_of_it(answer, row, server):
    """Of an answer that is made before its head."""
    assert set(milliseconds(answer)) == {"queue", "compute", "encode"}


@law
def times_what_is_over(answer, row, server):
    """Of an answer whose first bytes leave before the last are made."""
    assert set(milliseconds(answer)) == {"queue"}


@law
def waited_for_nobody(answer, row, server):
    assert milliseconds(answer)["queue"] == 0


@law
def waited_for_a_worker(answer, row, server):
    assert milliseconds(answer)["queue"] > 0


@law
def writes_text(answer, row, server):
    assert milliseconds(answer)["encode"] > 0


@law
def writes_nothing(answer, row, server):
    times = milliseconds(answer)
    assert times["compute"] > 0 == times["encode"]
