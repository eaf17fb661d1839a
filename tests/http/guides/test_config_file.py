"""The file of --config: values that are too long are refused with their position; the output of --print-config is
accepted; hosts and origins of the file and of the environment."""
import json
import subprocess

import pytest

from conftest import POSENCD, START_SECONDS, start_server, without_posenc


def run(*flags):
    return subprocess.run([POSENCD, *flags], capture_output=True, text=True, timeout=START_SECONDS, env=without_posenc(None))


def test_a_value_too_long_is_refused_with_its_line(tmp_path):
    file = tmp_path / "posenc.json"
    for value in ('"' + "x" * 4097 + '"', "1" * 5000):
        file.write_text('{\n  "host": "127.0.0.1",\n  "token_file": %s}' % value)
        ended = run("--config", str(file))
        assert ended.returncode == 2 and f"{file}: line 3, column " in ended.stderr and "4096" in ended.stderr, ended.stderr


def test_a_long_list_is_read_back_whole(tmp_path):
    origins = [f"https://host{i:04d}.example.org" for i in range(120)]
    printed = run(*(f"--cors-origin={origin}" for origin in origins), "--print-config")
    assert printed.returncode == 0
    assert json.loads(printed.stdout)["cors_origin"] == " ".join(origins)
    file = tmp_path / "posenc.json"
    file.write_text(printed.stdout)
    with start_server("--config", str(file)) as server:
        for origin in (origins[0], origins[-1]):
            assert server.get("/encode?scheme=rope&len=2", {"Origin": origin}).headers["Access-Control-Allow-Origin"] == origin


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
