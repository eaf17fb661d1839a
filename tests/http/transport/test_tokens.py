"""Rights of tokens: the token file, 401 and 403, reloading the file, and the absence of tokens from all output of the
server."""
import hashlib
import signal
import socket
import time

import pytest

from conftest import ROOT, SANITIZED, start_server
from connection import ended, hang_up, wait_until
from token_files import HASHED, LINES, READER, WRITER, bearer, put, token_server

SECRETS = [READER, WRITER, HASHED]
ASKED = "/encode?scheme=rope&len=2"
LONG = "/encode?scheme=sinusoidal&len=4000000&dim=512&format=raw"


@pytest.fixture(scope="module")
def server():
    with token_server(LINES, "--cors-origin", "https://vis.example.org", "--io-threads", "2") as server:
        yield server
        said = server.stderr_text() + server.get("/metrics").body.decode()
        assert not [secret for secret in SECRETS if secret in said]


def test_refused_before_the_body(server):
    with socket.create_connection((server.host, server.port), timeout=10) as s:
        s.sendall(b"POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")
        assert s.recv(4096).startswith(b"HTTP/1.1 401 ")


def test_kept_answers_are_not_for_everybody(server):
    for _ in range(3):
        assert server.get(ASKED, bearer(READER)).status == 200
    assert server.get(ASKED).status == 401


def test_names_in_log_and_figures(server):
    server.get(ASKED, {**bearer(HASHED), "X-Request-Id": "carols"})
    assert wait_until(lambda: "id=carols" in server.stderr_text())  # the line comes after the answer
    line = next(line for line in reversed(server.stderr_text().splitlines()) if "id=carols" in line)
    assert "token=carol" in line
    text = server.get("/metrics").body.decode()
    assert 'posenc_token_requests_total{token="carol"}' in text and 'posenc_rejected_total{reason="token"}' in text


def memory_has(pid, secret):
    """Whether the process has these bytes in any writable memory, i.e. in a core dump."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            span, rights, *_ = line.split()
            if not rights.startswith("rw"):
                continue
            start, end = (int(x, 16) for x in span.split("-"))
            try:
                memory.seek(start)
                if secret in memory.read(end - start):
                    return True
            except (OSError, ValueError, OverflowError):
                pass
    return False


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's shadow is terabytes")
def test_not_in_memory():
    """Neither of the file nor of a request that is being answered."""
    secret = "mem-8kQz2Wf5Hn7Jp"
    with token_server([f"dave {secret} read"]) as server:
        assert memory_has(server.pid, b"dave") and not memory_has(server.pid, secret.encode())
        with socket.create_connection((server.host, server.port)) as s:
            s.sendall(f"GET {LONG} HTTP/1.1\r\nHost: localhost\r\nX-Other: found-{secret[::-1]}\r\nAuthorization: Bearer {secret}\r\n\r\n".encode())
            assert s.recv(65536).startswith(b"HTTP/1.1 200 ")
            time.sleep(0.2)
            assert memory_has(server.pid, f"found-{secret[::-1]}".encode()), "the rest of the head is there, so this test looks in the right place"
            assert not memory_has(server.pid, secret.encode())


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's shadow is terabytes")
@pytest.mark.parametrize("raw", [
    b"GET /version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" * 300,
    b"GET /version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\nAuthorization: Bearer %s\r\n\r\n",
    b"GET /version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nno field\r\n\r\n",
    b"GET /version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nX: y"], ids=["many in one go", "second header", "refused head", "no whole head"])
def test_nothing_of_it_stays(raw):
    """Wherever the head was kept until its turn came, and also if it never came."""
    secret = b"mem-7Rt3Vx9Kd1Lq"
    with token_server([f"dave {secret.decode()} read"]) as server:
        with socket.create_connection((server.host, server.port)) as s:
            s.sendall(raw.replace(b"%s", secret))
            s.settimeout(0.5)
            try:
                while s.recv(65536):
                    pass
            except TimeoutError:
                pass
        time.sleep(0.7)  # the end of a head that is not whole is looked for every half second
        assert wait_until(lambda: not memory_has(server.pid, secret), 1)


# ---- The file -------------------------------------------------------------------------------------------------------

BAD = [
    ("no tokens", []), ("no tokens", ["# only this"]), ("line 1: the first word", ["-x SECRETabc read"]), ("line 2: the second word", ["a abc read", "b SECRET!abc read"]), ("line 1: the second word", ["a"]), ("line 1: the second word", ["a sha256:SECRET read"]), ("line 1: the third word", ["a SECRETabc"]),
    ("line 1: the third word", ["a read SECRETabc"]), ("line 1: the third word", ["a SECRETabc READ"]), ("line 3: this NAME is in line 1", ["a abc read", "#", "a SECRETabc write"]), ("line 2: this TOKEN is in line 1", ["a SECRETabc read", "b SECRETabc read"]), ("line 1: after NAME", ["a SECRETabc read often"]),
    ("line 1: after NAME", ["a SECRETabc read requests=5"]), ("line 1: after NAME", ["a SECRETabc read requests=-5/s"]), ("line 1: after NAME", ["a SECRETabc read requests=0.5/s"]), ("line 1: after NAME", ["a SECRETabc read streams=0"]), ("line 1: after NAME", ["a SECRETabc read streams=1 streams=2"]), ("line 1: after NAME", ["a SECRETabc read work=nan/s"]),
    ("line 1: after NAME", ["a SECRETabc read requests=5/d"]), ("line 1: the first word", ["a" * 65 + " SECRETabc read"]), ("line 1: the second word", ["a " + "SECRET" * 100 + " read"]),
    ("line 1025: there are 1024 tokens already", [f"a{i} SECRET{i} read" for i in range(1025)])]


@pytest.mark.parametrize("words,lines", BAD)
def test_bad_files_are_refused_at_the_start(tmp_path, words, lines):
    path = tmp_path / "tokens"
    path.write_text("\n".join(lines))
    status, said = ended("--token-file", str(path))
    assert status != 0 and words in said and "SECRET" not in said and "--token-file" in said


def test_files_that_are_no_files_are_refused_too(tmp_path):
    (tmp_path / "zero").write_bytes(b"a abc read\0")
    for path, words in ((tmp_path / "absent", "No such file"), (tmp_path, "directory"), (tmp_path / "zero", "byte 0"), ("/dev/null", "cannot be read")):
        status, said = ended("--token-file", str(path))
        assert status != 0 and words in said and str(path) in said


def test_others_may_not_read_the_file():
    with token_server(LINES, mode=0o644) as server:
        assert "every user of this machine may read" in server.stderr_text()
    with token_server(LINES, "--host", "0.0.0.0", mode=0o640) as server:
        assert "every user" not in server.stderr_text() and "listening beyond this machine" not in server.stderr_text()


def test_read_again():
    with token_server(LINES) as server:
        put(server, ["dave SECRETnew0123456 read"])
        hang_up(server, "read again: 1 tokens")
        assert server.get(ASKED, bearer(READER)).status == 401 and server.get(ASKED, bearer("SECRETnew0123456")).status == 200
        for words, lines in BAD[2:6]:
            put(server, lines)
            hang_up(server, words)
            assert server.get(ASKED, bearer("SECRETnew0123456")).status == 200 and server.get(ASKED, bearer("abc")).status == 401
        said = server.stderr_text()
        assert said.count("the tokens stay as they were") == 4 and "SECRET" not in said


def test_read_again_in_a_storm():
    with token_server(LINES) as server:
        for _ in range(200):
            server.process.send_signal(signal.SIGHUP)
            assert server.get("/schemes/rope", bearer(READER)).status == 200


def test_the_tokens_of_the_example_are_refused_until_each_is_replaced(tmp_path):
    text = (ROOT / "deploy/tokens.example").read_text()
    lines = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for kept in lines:  # any one of them is enough
        (tmp_path / "tokens").write_text(" ".join(kept) + "\n")
        status, said = ended("--token-file", str(tmp_path / "tokens"))
        assert status and "line 1: the second word is the example's TOKEN; replace it" in said, said
    for i, (_, secret, *_) in enumerate(lines):
        text = text.replace(secret, hashlib.sha256(b"%d" % i).hexdigest())
    with token_server(text.splitlines()) as server:
        assert server.get(ASKED, bearer(hashlib.sha256(b"0").hexdigest())).status == 200 and server.get(ASKED).status == 401


def test_a_token_that_everybody_guesses_is_warned_of():
    for word, is_warned in ("test", True), (READER, False):
        with token_server([f"reader sha256:{hashlib.sha256(word.encode()).hexdigest()} read"]) as server:
            assert server.get(ASKED, bearer(word)).status == 200 and ("the TOKEN is the word test" in server.stderr_text()) == is_warned


# ---- Another file in its place -----------------------------------------------------------------------------------------------


def test_a_file_that_takes_its_place_is_read_without_a_signal(tmp_path):
    """As Kubernetes changes a Secret: the path is a link to a link to a folder, which is swapped."""
    def folder(name, *lines):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tokens").write_text("".join(line + "\n" for line in lines))
        (tmp_path / name / "tokens").chmod(0o440)

    def swap(name):
        (tmp_path / "..new").symlink_to(name)
        (tmp_path / "..new").rename(tmp_path / "..data")

    def status(token):
        return server.get("/version", bearer(token)).status

    folder("..1", f"alice {READER} read")
    folder("..2", f"bob {WRITER} write")
    swap("..1")
    (tmp_path / "tokens").symlink_to("..data/tokens")
    with start_server("--token-file", str(tmp_path / "tokens")) as server:
        assert (status(READER), status(WRITER)) == (200, 401)
        swap("..2")
        assert wait_until(lambda: (status(READER), status(WRITER)) == (401, 200), 20)
        (tmp_path / "..data/tokens").write_text(f"alice {READER} read\n")  # the same file: it might be half written
        time.sleep(6)
        assert (status(READER), status(WRITER)) == (401, 200)
        folder("..3", "nonsense")
        swap("..3")
        assert wait_until(lambda: "line 1" in server.stderr_text(), 20)
        assert status(WRITER) == 200
        assert server.stop() == 0
