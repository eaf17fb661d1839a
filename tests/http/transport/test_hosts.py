"""Which host a request may name, and which page may change what is stored: what rows of ../../cases/transport.jsonl cannot say, requests
without a host and options from the environment and the file."""
import pytest

from conftest import start_server
from connection import Client


def test_http_1_0_needs_no_host(server):
    """Browsers always send one; probes and old programs need not. One that names another host is refused as ever."""
    for lines, status in ((b"", 200), (b"Host: evil.example\r\n", 421)):
        with Client(server) as client:
            client.send(b"GET /readyz HTTP/1.0\r\n" + lines + b"\r\n")
            assert client.answer()[0] == status


@pytest.mark.parametrize("where", ["file", "environment"])
def test_hosts_and_origins_from_the_environment_and_the_file(tmp_path, where):
    (tmp_path / "config.json").write_text('{"allowed_host":"a.example b.example","cors_origin":"https://a.example https://b.example"}')
    options = {"file": (("--config", str(tmp_path / "config.json")), {}),
               "environment": ((), {"POSENC_ALLOWED_HOST": "a.example, b.example", "POSENC_CORS_ORIGIN": "https://a.example, https://b.example"})}
    flags, env = options[where]
    with start_server(*flags, env=env) as server:
        for name, status in (("a", 200), ("b", 200), ("c", 421)):
            assert server.get("/readyz", {"Host": f"{name}.example"}).status == status
            allowed = server.get("/version", {"Origin": f"https://{name}.example"}).headers["Access-Control-Allow-Origin"]
            assert allowed == (None if name == "c" else f"https://{name}.example")
