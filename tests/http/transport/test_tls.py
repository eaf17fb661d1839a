"""TLS by --tls-cert and --tls-key: everything works as without it, old versions are refused, and bad files are refused
at the start."""
import concurrent.futures
import http.client
import shutil
import signal
import socket
import ssl
import subprocess
import time

import pytest

from conftest import Stopwatch, start_server
from connection import certificate, ended, hang_up, wait_until

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    for name in ("a", "b"):
        certificate(folder, name)
    return folder


@pytest.fixture(scope="module")
def server(files):
    with start_server("--tls-cert", str(files / "a.crt"), "--tls-key", str(files / "a.key"), "--header-timeout", "2", "--io-threads", "2") as server:
        server.context = ssl.create_default_context(cafile=str(files / "a.crt"))
        yield server


def connect(server):
    return http.client.HTTPSConnection(server.host, server.port, context=server.context, timeout=60)


def ask(server, method, path, body=None, connection=None):
    connection = connection or connect(server)
    connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_says_https(server):
    assert f"listening on https://{server.host}:{server.port}\n" in server.stderr_text()


def test_the_same_bytes_as_without(server):
    asked = [("GET", "/schemes/rope", None), ("GET", "/encode?scheme=sinusoidal&len=50000&dim=64&format=raw", None), ("GET", "/encode?scheme=sinusoidal&len=3000&dim=64", None),
             ("POST", "/encode", b'{"scheme":"rope","positions":[' + b",".join(b"%d" % i for i in range(60000)) + b'],"format":"npz"}'),
             ("GET", "/encode?scheme=sinusoidal&len=500&dim=500&format=png", None)]
    with start_server() as plain:
        for method, path, body in asked:
            answer = plain.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            assert ask(server, method, path, body) == (answer.status, answer.body), path


def test_pipelined_behind_what_a_worker_answers(server):
    """Bytes that TLS has read already make no event on the socket."""
    with server.context.wrap_socket(socket.create_connection((server.host, server.port), timeout=20), server_hostname="127.0.0.1") as s:
        s.sendall(b"GET /encode?scheme=sinusoidal&len=600&dim=600&format=png HTTP/1.1\r\nHost: localhost\r\n\r\n"
                  b"GET /encode?scheme=sinusoidal&len=100000&dim=64&format=raw HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        received = b"".join(iter(lambda: s.recv(65536), b""))
    assert received.count(b"HTTP/1.1 200 OK") == 3 and received.endswith(b'{"status":"ok"}')


def test_old_versions_are_refused(server):
    assert ssl.HAS_TLSv1_2
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = ssl.create_default_context(cafile=None)
        context.check_hostname, context.verify_mode, context.minimum_version, context.maximum_version = False, ssl.CERT_NONE, version, version
        with context.wrap_socket(socket.create_connection((server.host, server.port), timeout=20)) as s:
            assert s.version() == {ssl.TLSVersion.TLSv1_2: "TLSv1.2", ssl.TLSVersion.TLSv1_3: "TLSv1.3"}[version]
    run = subprocess.run(["openssl", "s_client", "-connect", f"{server.host}:{server.port}", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], input=b"", capture_output=True, timeout=20)
    assert b"Cipher is (NONE)" in run.stdout


def test_plain_http_gets_no_words_and_no_hold(server):
    with socket.create_connection((server.host, server.port), timeout=20) as s:
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert not s.recv(4096).startswith(b"HTTP")
    assert ask(server, "GET", "/healthz")[0] == 200


def test_slow_handshakes_are_cut_without_plain_words(server):
    hello = b"\x16\x03\x01\x02\x00\x01"  # a ClientHello's beginning
    held = [socket.create_connection((server.host, server.port), timeout=20) for _ in range(20)]
    watch = Stopwatch(server)
    for s in held[:10]:
        s.sendall(hello)
    assert ask(server, "GET", "/healthz")[0] == 200
    for s in held:
        try:
            assert s.recv(4096) == b""
        except ConnectionResetError:
            pass
        s.close()
    assert watch.seconds() < 10


def test_clients_that_leave(server):
    for _ in range(10):
        connection = connect(server)
        connection.request("GET", "/encode?scheme=sinusoidal&len=4000000&dim=512&format=raw")
        connection.getresponse().read(100000)
        connection.sock.close()
        connection.close()
    assert wait_until(lambda: b"posenc_streams 0\n" in ask(server, "GET", "/metrics")[1])


def test_bad_files_are_refused_at_the_start(files, tmp_path):
    (tmp_path / "none").write_text("SECRETSECRET")
    (tmp_path / "broken").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    (tmp_path / "more").write_bytes((files / "a.crt").read_bytes() + b"\0more")
    crt, key = files / "a.crt", files / "a.key"
    for cert, of, *words in ((crt, None, "--tls-cert is given without --tls-key"), (None, key, "--tls-key is given without --tls-cert"),
                             ("/absent", key, "--tls-cert", "No such file"), (crt, tmp_path / "none", "--tls-key", "PEM"), (crt, crt, "--tls-key"),
                             (tmp_path / "more", key, "byte 0"), (tmp_path / "broken", key, "--tls-cert and --tls-key"),
                             (crt, files / "b.key", "--tls-cert and --tls-key may not belong together")):
        status, said = ended(*([f"--tls-cert={cert}"] if cert else []), *([f"--tls-key={of}"] if of else []))
        assert status == 1 and all(word in said for word in words) and "SECRET" not in said, said


def test_ends_in_order(files):
    """While an answer is on its way."""
    with start_server("--tls-cert", str(files / "a.crt"), "--tls-key", str(files / "a.key")) as server:
        server.context = ssl.create_default_context(cafile=str(files / "a.crt"))
        connection = connect(server)
        connection.request("GET", "/encode?scheme=sinusoidal&len=50000&dim=128&format=raw")  # more than the sockets hold
        answer = connection.getresponse()
        server.process.terminate()
        time.sleep(0.2)
        assert len(answer.read()) == 50000 * 128 * 4
        connection.close()
        assert server.process.wait(timeout=20) == 0


def shown(server):
    """The certificate that a new client is shown, DER."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(socket.create_connection((server.host, server.port), timeout=20)) as s:
        return s.getpeercert(binary_form=True)


GOOD, OLD = "new connections are shown the new certificate", "use the certificate that was read before"


@pytest.fixture
def changing(files, tmp_path):
    """A server whose certificate and key put(name) replaces, and the certificates by name."""
    crt, key = tmp_path / "now.crt", tmp_path / "now.key"
    der = {name: ssl.PEM_cert_to_DER_cert((files / f"{name}.crt").read_text()) for name in ("a", "b")}

    def put(name):
        shutil.copy(files / f"{name}.key", key)
        shutil.copy(files / f"{name}.crt", crt)

    put("a")
    with start_server("--tls-cert", str(crt), "--tls-key", str(key), "--io-threads", "2") as server:
        server.context = ssl.create_default_context(cafile=str(files / "a.crt"))
        yield server, put, der, crt


def test_hangup_reads_certificate_and_key_again(changing, files):
    """Connections that are open, and an answer on its way, go on; clients that come are shown the new one, each time."""
    server, put, der, _ = changing
    kept, reading = connect(server), connect(server)
    assert ask(server, "GET", "/healthz", connection=kept)[0] == 200
    reading.request("GET", "/encode?scheme=sinusoidal&len=50000&dim=128&format=raw")
    answer = reading.getresponse()
    n = len(answer.read(1 << 20))
    assert shown(server) == der["a"]
    for name in ("b", "a", "b"):
        put(name)
        hang_up(server, GOOD)
        assert [shown(server) for _ in range(4)] == [der[name]] * 4  # on both loops
        assert ask(server, "GET", "/healthz", connection=kept)[0] == 200
    server.context = ssl.create_default_context(cafile=str(files / "b.crt"))
    assert ask(server, "GET", "/healthz")[0] == 200  # a client that trusts nothing else
    assert n + len(answer.read()) == 50000 * 128 * 4


def test_hangup_with_bad_files_keeps_the_certificate(changing, files):
    server, put, der, crt = changing
    for bad in ((files / "b.crt").read_text(), "", "SECRETSECRET", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"):
        crt.write_text(bad)  # the first is good, and not its key's
        hang_up(server, OLD)
        assert shown(server) == der["a"]
    crt.unlink()
    hang_up(server, "No such file")
    assert shown(server) == der["a"] and "SECRET" not in server.stderr_text() and GOOD not in server.stderr_text()
    put("b")
    hang_up(server, GOOD)
    assert shown(server) == der["b"]


def test_hangups_while_clients_come(changing):
    server, put, der, _ = changing
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        seen = [pool.submit(shown, server) for _ in range(200)]
        for i in range(40):
            put("ab"[i % 2])
            server.process.send_signal(signal.SIGHUP)
            time.sleep(0.005)
        assert {one.result() for one in seen} <= set(der.values())
    assert shown(server) in der.values()
