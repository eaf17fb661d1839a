"""posenc.py against servers that are busy, break off, go away or are others: an answer that is none is an error in words."""
import json
import os
import re

import pytest

from handed_out import CHUNKED, GOOD, Rough, Stalled, WHOLE, bare, folder, without_length  # noqa: F401


@pytest.mark.parametrize("answers, expected", [
    ([bare(503, b'{"detail":"draining"}', b"Retry-After: 0"), bare(429, b"{}", b"Retry-After: 0"), GOOD], 3),
    ([b"", GOOD], 2), ([bare(503, b"{}", b"Retry-After: soon", b"Connection: close"), GOOD], 2)], ids=["busy", "closed", "words"])
def test_asks_again_while_the_service_is_busy(posenc, answers, expected):
    with Rough(*answers) as rough:
        client = posenc.Client(rough.url, patience=20)
        assert client.encode(scheme="rope", len=2).cos.shape == (2, 2)
        assert rough.asked == expected


def test_gives_up_in_words(posenc, tmp_path):
    with Rough(bare(503, b'{"detail":"the queue is full"}', b"Retry-After: 0")) as rough:
        client = posenc.Client(rough.url, retries=2)
        with pytest.raises(posenc.Refused, match="the queue is full"):
            client.encode(scheme="rope", len=2)
        assert rough.asked == 3
    with Rough(bare(200, GOOD.split(b"\r\n\r\n", 1)[1][:-4], length=len(GOOD.split(b"\r\n\r\n", 1)[1]))) as rough:
        client = posenc.Client(rough.url, retries=0)
        with pytest.raises(posenc.Away, match="broke off after"):
            client.encode(scheme="rope", len=2)
        with pytest.raises((posenc.Away, OSError)):
            client.encode(scheme="rope", len=2, file=str(tmp_path / "x"))
        assert list(tmp_path.iterdir()) == []
        port = rough.server_address[1]
    with pytest.raises(posenc.Away, match="gives no answer"):
        posenc.Client(f"http://127.0.0.1:{port}", retries=1, patience=5).schemes()


def laid_out(head, n_data=16):
    """A safetensors file with this head."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return bare(200, len(text).to_bytes(8, "little") + text + bytes(n_data))


def row(begin=0, end=16, shape=(2, 2), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


BROKEN = {
    "cut, no length": without_length(WHOLE[:-4]),
    "cut in the head, no length": without_length(WHOLE[:20]),
    "cut in the size, no length": without_length(WHOLE[:5]),
    "nothing, no length": without_length(b""),
    "cut": bare(200, WHOLE[:-4], length=len(WHOLE)),
    "chunked, cut": CHUNKED + b"50\r\nabc",
    "chunked, no last chunk": CHUNKED + b"%x\r\n%b\r\n" % (len(WHOLE) - 4, WHOLE[:-4]),
    "chunked, no size": CHUNKED + b"zz\r\nabc",
    "stalled": Stalled(bare(200, WHOLE[:-4], length=len(WHOLE))),
    "a login page": bare(200, b"<html>Please log in</html>", b"Content-Type: text/html"),
    "empty": bare(200, b""),
    "204": b"HTTP/1.1 204 X\r\n\r\n",
    "206": bare(206, WHOLE[:9], b"Content-Range: bytes 0-8/99"),
    "202": bare(202, WHOLE),
    "redirect": bare(302, b"", b"Location: https://login.example/?back=posenc"),
    "304": b"HTTP/1.1 304 X\r\n\r\n",
    "error, cut": bare(422, b'{"detail":', length=99),
    "tail": bare(200, WHOLE + b"\n"),
    "hole": laid_out({"cos": row(4, 20)}, 20),
    "overlap": laid_out({"cos": row(), "sin": row(8, 24)}, 24),
    "shape": laid_out({"cos": row(shape=(2, 3))}),
    "negative shape": laid_out({"cos": row(shape=(-2, -2))}),
    "shape of reals": laid_out({"cos": row(shape=(2.0, 2.0))}),
    "dtype": laid_out({"cos": row(dtype="F8")}),
    "no offsets": laid_out({"cos": {"dtype": "F32", "shape": [4]}}),
    "a list": laid_out(b"[1,2,3,4]"),
    "no JSON": laid_out(b"{cos}"),
    "config that is none": laid_out({"__metadata__": {"config": "{"}, "cos": row()}),
}


@pytest.mark.parametrize("case", BROKEN)
def test_python_keeps_a_good_file_when_an_answer_is_none(posenc, tmp_path, case):
    file = tmp_path / "table.safetensors"
    with Rough(BROKEN[case], BROKEN[case], GOOD) as rough:
        client = posenc.Client(rough.url, timeout=1, retries=0)
        with pytest.raises((posenc.Away, posenc.Refused)) as caught:
            client.encode(scheme="rope", len=2)
        assert isinstance(caught.value, posenc.Away) or caught.value.status in (204, 206, 202, 302, 304)
        file.write_bytes(WHOLE)
        with pytest.raises(type(caught.value)):
            client.encode(scheme="rope", len=2, file=file)
        assert file.read_bytes() == WHOLE and list(tmp_path.iterdir()) == [file]
        assert client.encode(scheme="rope", len=2, file=str(file)).cos.tolist() == [[1, 1], [1, 1]] and file.read_bytes() == GOOD.split(b"\r\n\r\n")[1]


@pytest.mark.parametrize("body", [b"", b"{", b"<html>", b"[]", b"null", b'{"schemes":['])
def test_python_reads_json_or_is_away(posenc, body):
    for answer in (bare(200, body), without_length(body), bare(200, body, length=99), CHUNKED + b"9\r\n" + body):
        with Rough(answer) as rough, pytest.raises(posenc.Away):
            posenc.Client(rough.url, retries=0).schemes()


def test_python_follows_no_redirect_and_says_where_it_leads(posenc):
    with Rough(bare(200, b"{}")) as other:
        for status in (301, 302, 303, 307, 308):
            with Rough(bare(status, b"", b"Location: %s/schemes" % other.url.encode())) as rough:
                asks = [(lambda client: client.schemes(), f"the service is said to be at {other.url}: give that as url"),
                        (lambda client: client.encode(scheme="rope", len=2), f"it leads to {other.url}/schemes")]
                for ask, words in asks:
                    with pytest.raises(posenc.Refused, match=f"{status}; {re.escape(words)}$") as caught:
                        ask(posenc.Client(rough.url, token="secret"))
                    assert caught.value.status == status
                assert b"Bearer secret" in rough.heads[0]
        assert other.asked == 0


@pytest.mark.parametrize("location, words", [
    ("https://num.example/pe/schemes/rope?a=1#b", "the service is said to be at https://num.example/pe: give that as url"),
    ("/v2/schemes/rope", "the service is said to be at URL/v2: give that as url"),
    ("//num.example/schemes/rope", "the service is said to be at http://num.example: give that as url"),
    ("rope/", "it leads to URL/base/schemes/rope/"), ("?again=1", "it leads to URL/base/schemes/rope?again=1"),
    ("/login?back=/schemes/rope", "it leads to URL/login?back=/schemes/rope"), ("http://[x/schemes/rope", "it leads to http://[x/schemes/rope")])
def test_python_says_the_url_of_the_service_that_moved(posenc, location, words):
    with Rough(bare(307, b"", b"Location: " + location.encode())) as rough, pytest.raises(posenc.Refused) as caught:
        posenc.Client(rough.url + "/base/").schemes("rope")
    assert str(caught.value) == f"{rough.url}/base/ answers with status 307; {words.replace('URL', rough.url)}"


@pytest.mark.parametrize("status, body", [(404, b"<html>Not Found</html>"), (502, b"<html>Bad Gateway</html>"), (403, b""), (404, b"[]"), (404, b'{"message":"no route"}')])
def test_python_is_away_where_another_program_refuses(posenc, status, body):
    with Rough(bare(status, body, b"Content-Type: text/html")) as rough:
        for ask in (lambda client: client.schemes(), lambda client: client.encode(scheme="rope", len=2)):
            with pytest.raises(posenc.Away, match=f"^{re.escape(rough.url)} .* no whole one of posenc .*HTTP status {status}: {re.escape(body.decode())}"):
                ask(posenc.Client(rough.url, retries=0))


@pytest.mark.parametrize("words", [b"nan", b"inf", b"-inf", b"1e999", b"-5", b"", b"Wed, 21 Oct 2026 07:28:00 GMT"])
def test_python_waits_for_a_while_whatever_retry_after_says(posenc, words):
    with Rough(bare(503, b"{}", b"Retry-After: " + words, b"Connection: close"), GOOD) as rough:
        assert posenc.Client(rough.url, retries=1).encode(scheme="rope", len=2).cos.shape == (2, 2) and rough.asked == 2


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_the_umask_decides_who_reads_a_file(client, tmp_path, umask):
    before = os.umask(umask)
    try:
        client.encode(scheme="rope", len=2, file=tmp_path / "x")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o666 & ~umask
