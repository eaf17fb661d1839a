"""The image of the Dockerfile, built and run as a container that may do nothing but serve: read-only, without capabilities, as nobody, with
a limit of memory. It takes minutes and Debian's packages, so `make scale` runs it."""
import contextlib
import http.client
import json
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "http"), str(HERE.parent)]

import numpy as np  # noqa: E402

from proxies import held_port  # noqa: E402
from s3_store import S3Store  # noqa: E402
from weights_asking import OTHER, T5, TABLE, file  # noqa: E402

MIB = 1 << 20
STREAM = json.dumps({"scheme": "alibi", "num_heads": 16, "len": 1448, "outputs": ["bias"], "format": "raw"}).encode()
STREAM_BYTES = 16 * 1448 * 1448 * 4


def run(*command, seconds=60):
    """Into files: a container's monitor would keep a pipe open for as long as the container runs."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        done = subprocess.run([str(HERE / "container.sh"), *command], stdin=subprocess.DEVNULL, stdout=out, stderr=err, timeout=seconds)
        out.seek(0), err.seek(0)
        done.stdout, done.stderr = out.read(), err.read()
        return done


def engine(*arguments, seconds=60):
    done = run("engine", *arguments, seconds=seconds)
    assert done.returncode == 0, (arguments, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout.strip()


@pytest.fixture(scope="module")
def image():
    able = run("able")
    if able.returncode:
        pytest.skip(able.stdout.strip())
    begun = time.monotonic()
    built = run("build", seconds=900)
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    print(f"built in {time.monotonic() - begun:.0f} s")
    return "localhost/posenc-scale"


class Container:
    """posencd as process 1 on 127.0.0.1 of this machine, so that stores and clients of this process are reached."""

    def __init__(self, port, image, *flags, memory="512m", options=()):
        self.port = port
        # The image's own command but for the address.
        self.id = engine("run", "-d", "--no-healthcheck", "--network", "host", "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges", "--memory", memory,
                         *options, "--entrypoint", "posencd", image, "--host", "127.0.0.1", "--port", str(self.port), *flags).splitlines()[-1]
        end = time.monotonic() + 20
        while time.monotonic() < end and "listening on" not in self.log():
            assert self.state()["Running"], self.log()
            time.sleep(0.1)
        self.log_at_start = self.log()

    def log(self):
        done = run("engine", "logs", self.id)
        return done.stdout + done.stderr

    def state(self):
        return json.loads(engine("inspect", self.id))[0]["State"]

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method, path, body=None, headers=None):
        with contextlib.closing(self.connection()) as connection:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def stop(self, seconds=45):
        """SIGTERM to process 1, as orchestrators do; (its exit code, how long it took)."""
        begun = time.monotonic()
        engine("stop", "-t", str(seconds), self.id, seconds=seconds + 30)
        return self.state()["ExitCode"], time.monotonic() - begun


@contextlib.contextmanager
def container(image, *flags, **more):
    with held_port() as port:
        one = None
        try:
            one = Container(port, image, *flags, **more)
            yield one
        finally:
            if one:
                run("engine", "rm", "-f", one.id)


def test_the_image_is_as_the_dockerfile_says(image):
    config = json.loads(engine("inspect", image))[0]["Config"]
    assert config["User"] == "65534:65534" and config["Entrypoint"] == ["posencd", "--host", "0.0.0.0"] and "8080/tcp" in config["ExposedPorts"]
    inside = engine("run", "--rm", "--no-healthcheck", "--network", "none", "--entrypoint", "bash", image, "-c",
                    "ldd /usr/local/bin/posencd; id; test -s /etc/ssl/certs/ca-certificates.crt && echo has certificates; command -v gcc curl make; true")
    assert "not found" not in inside and "libcurl-gnutls" in inside and "has certificates" in inside
    assert "uid=65534(nobody) gid=65534(nogroup)" in inside
    assert not any(f"/bin/{tool}" in inside for tool in ("gcc", "curl", "make"))


def test_its_own_command_and_health_check(image):
    """In a network of its own, because it listens on every address."""
    name = engine("run", "-d", "--no-healthcheck", "--network", "none", "--read-only", "--cap-drop", "all", image).splitlines()[-1]
    try:
        check = json.loads(engine("inspect", image))[0]
        check = (check["Config"].get("Healthcheck") or check.get("Healthcheck"))["Test"]
        assert check[0] == "CMD"
        done = subprocess.CompletedProcess([], 1)
        end = time.monotonic() + 10
        while done.returncode and time.monotonic() < end:
            done = run("engine", "exec", name, *check[1:])
        assert done.returncode == 0, done
        assert run("engine", "exec", name, *[part.replace("8080", "8081") for part in check[1:]]).returncode != 0
    finally:
        run("engine", "rm", "-f", name)


def test_it_serves_with_nothing_and_ends_in_time(image):
    """Requests, weights in memory, and SIGTERM while an answer is being sent: that is sent whole, and the status is 0."""
    with container(image) as one:
        assert one.ask("GET", "/readyz")[0] == 200
        status, body = one.ask("POST", "/encode", b'{"scheme":"rope","len":16,"format":"raw"}')
        assert status == 200 and len(body) == 2 * 16 * 32 * 4
        assert one.ask("PUT", "/weights/t", file(table=TABLE))[0] == 201
        assert one.ask("POST", "/encode", json.dumps({**T5, "weights": "t"}).encode())[1] == one.ask(
            "POST", "/encode", json.dumps({**T5, "table": TABLE.tolist()}).encode())[1]
        pid = one.state()["Pid"]
        status = pathlib.Path(f"/proc/{pid}/status").read_text().split("\n")
        figures = dict(line.split(":\t", 1) for line in status if ":\t" in line)
        assert figures["Uid"].split() == ["65534"] * 4 and int(figures["CapEff"], 16) == 0 and int(figures["CapBnd"], 16) == 0
        assert figures["NoNewPrivs"] == "1"
        with contextlib.closing(one.connection()) as connection:
            connection.request("POST", "/encode", STREAM)
            answer = connection.getresponse()
            n = len(answer.read(MIB))
            ended = []
            thread = threading.Thread(target=lambda: ended.append(one.stop()))
            thread.start()
            while block := answer.read(4 * MIB):
                n += len(block)
                time.sleep(0.05)
            thread.join(60)
        assert n == STREAM_BYTES and ended[0][0] == 0 and ended[0][1] < 20, ended
        print(f"ended {ended[0][1]:.1f} s after SIGTERM, with {STREAM_BYTES >> 20} MiB on their way")


def test_the_limit_of_memory_is_kept(image):
    """As deploy/README.md says: --max-memory, --max-weights and 64 MiB; what is asked for beyond that is refused, and nobody is killed."""
    with container(image, "--max-memory", "320MiB", "--max-weights", "128MiB", memory="512m") as one:
        assert one.ask("PUT", "/weights/large", file(x=np.zeros(120 * MIB, "u1")))[0] == 201
        found, requests = [], [
            ("/encode", STREAM), ("/encode", b'{"scheme":"sinusoidal","dim":512,"len":20000}'),
            ("/attention", b'{"scheme":"alibi","num_heads":8,"seed":1,"x":{"shape":[1024,256],"seed":1,"std":1},"outputs":["probs"],"format":"npz"}'),
            ("/encode", json.dumps({"scheme": "rope", "head_dim": 64, "format": "raw", "positions": list(range(400000))}).encode())]

        def client(i):
            for k in range(12):
                path, body = requests[(i + k) % len(requests)]
                found.append(one.ask("POST", path, body, {"Content-Type": "application/json"})[0])

        threads = [threading.Thread(target=client, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        state = one.state()
        assert state["Running"] and not state["OOMKilled"], (state, one.log()[-3000:])
        assert len(found) == 96 and set(found) <= {200, 503} and found.count(200) > 20, found
        assert one.ask("GET", "/readyz")[0] == 200
        print(f"{found.count(200)} answered, {found.count(503)} refused, the most was {peak(one) >> 20} MiB of 512")
        assert one.stop()[0] == 0


def peak(one):
    status = pathlib.Path(f"/proc/{one.state()['Pid']}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def test_half_of_the_limit_is_for_requests_and_idle_it_ends_at_once(image):
    with container(image, memory="600m") as one:
        assert f"--max-memory is {300 * MIB} bytes: half of the" in one.log_at_start
        assert one.ask("GET", "/readyz")[0] == 200
        code, seconds = one.stop()
        assert code == 0 and seconds < 5, (code, seconds)


def test_a_store_on_https_and_a_cache(image, tmp_path):
    """The image's own bundle of certificates is what decides: with one in its place that knows the store, all works; with its own, the store's
    certificate is not trusted."""
    cert, key, cache = tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "cache"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    cert.chmod(0o644)
    cache.mkdir()
    cache.chmod(0o777)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    for folder in [tmp_path, *list(tmp_path.parents)[:2]]:
        folder.chmod(0o755)
    with S3Store(tls=tls) as s3:
        keys = [word for name, value in s3.env().items() for word in ("--env", f"{name}={value}")]
        flags = ("--store", "s3://weights/team", "--store-endpoint", s3.endpoint, "--store-cache", "/cache")
        trusted = ("--volume", f"{cert}:/etc/ssl/certs/ca-certificates.crt:ro")
        with container(image, *flags, options=[*keys, *trusted, "--volume", f"{cache}:/cache"]) as one:
            assert one.ask("PUT", "/weights/t", file(table=OTHER))[0] == 201
            assert "team/names/t" in s3.objects and any(cache.rglob("*"))
            assert one.stop()[0] == 0
        with container(image, *flags, options=[*keys, "--volume", f"{cache}:/cache"]) as one:
            assert one.ask("GET", "/weights/t") == (200, file(table=OTHER))  # the cache's
            assert one.ask("PUT", "/weights/u", file(table=TABLE))[0] == 503
            said = one.log()
            assert "certificate" in said.lower() and "team/names/u" not in s3.objects, said
            assert one.stop()[0] == 0
    with contextlib.closing(socket.socket()) as free:
        assert free.connect_ex(("127.0.0.1", one.port)) != 0  # nothing is left running
