"""The command posenc: what it prints, writes and returns, and that its bytes are those of the service. `make test` runs it."""
import io
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "http"), str(HERE.parent / "truth")]

import gguf_writer  # noqa: E402
from conftest import ROOT, SANITIZED, start_server  # noqa: E402

POSENC = pathlib.Path(os.environ.get("POSENCD", ROOT / "build/posencd")).resolve().parent / "posenc"
Q = np.random.default_rng(0).standard_normal((1, 2, 8, 64)).astype("f4")


def posenc(*words, **more):
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", ""), **more.pop("environment", {})}
    return subprocess.run([POSENC, *(str(word) for word in words)], capture_output=True, timeout=120, env=environment, **more)


def on_a_terminal(*words, **environment):
    """What a terminal of 60 columns shows, and the status."""
    import fcntl
    import struct
    import termios
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    with subprocess.Popen([POSENC, *words], stdout=child, env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **environment}) as process:
        os.close(child)
        shown = b""
        while True:
            try:
                part = os.read(parent, 65536)
            except OSError:  # Linux reports the end of the other side so
                part = b""
            if not part:
                break
            shown += part
    os.close(parent)
    return shown.decode().replace("\r\n", "\n"), process.returncode


@pytest.mark.skipif(SANITIZED, reason="sanitizers reserve more addresses")
def test_of_a_model_of_gigabytes_the_head_is_read(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_writer.file("llama"))
    short = posenc("explain", path)
    os.truncate(path, 8 << 30)
    within_2_gib = subprocess.run(["sh", "-c", 'ulimit -v 2097152 && exec "$0" explain "$1"', POSENC, path], capture_output=True, timeout=120)
    assert within_2_gib.returncode == 0 and within_2_gib.stdout == short.stdout and json.loads(short.stdout)["layers"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    there = tmp_path_factory.mktemp("com mand")
    np.save(there / "q.npy", Q)
    done = posenc("rotate", "--scheme", "rope", "--layout", "half", "--q", "q.npy", "-o", "o.npy", cwd=there)
    assert done.returncode == 0 and not done.stdout and not done.stderr
    return there


@pytest.fixture(scope="module")
def service():
    with start_server() as server:
        yield server


@pytest.mark.parametrize("path, request_", [
    ("encode", {"scheme": "rope", "len": 5, "head_dim": 8, "dtype": "f64"}), ("encode", {"preset": "llama-3.1", "len": 3, "digits": 4}),
    ("encode", {"scheme": "sinusoidal", "dim": 4, "positions": [0, 7, 2]}), ("encode", {"scheme": "rope", "len": 4, "scaling": {"type": "linear", "factor": 2.5}}),
    ("analyze", {"scheme": "sinusoidal", "dim": 16, "len": 16, "metrics": ["unique"]}), ("encode", {"scheme": "alibi", "len": 4, "format": "safetensors"}),
    ("encode", {"scheme": "rope", "len": "x"}), ("encode", {"scheme": "rope", "len": 4, "head_dim": 3}), ("encode", {"scheme": "rop"}),
])
def test_the_answer_is_that_of_the_service(service, path, request_):
    words = []
    for name, value in request_.items():
        if isinstance(value, dict):
            words += [word for member, text in value.items() for word in (f"--{name}.{member}", text)]
        else:
            words += [f"--{name.replace('_', '-')}", ",".join(map(str, value)) if isinstance(value, list) else value]
    done, answer = posenc(path, *words), service.post(f"/{path}", request_)
    if answer.status == 200:
        assert done.returncode == 0 and done.stdout == answer.body and not done.stderr
        return
    problem = answer.json()
    pointer = f" (at {problem['pointer']})" if "pointer" in problem else ""
    assert done.returncode == 2 and not done.stdout and done.stderr.decode() == f"posenc: {problem['detail']}{pointer}\n"


def test_files(folder):
    done = posenc("encode", "--scheme=sinusoidal", "--len", 8, "--dim", 4, "-o", "table.npy", cwd=folder)
    angles = np.outer(np.arange(8), [1, 0.01])
    assert done.returncode == 0 and np.abs(np.load(folder / "table.npy") - np.stack([np.sin(angles), np.cos(angles)], -1).reshape(8, 4)).max() < 1e-7
    (folder / "request.json").write_text('{"scheme":"rope","layout":"half"}')
    done = posenc("rotate", "--request", "request.json", "--q", "q.npy", "--format", "npy", cwd=folder)
    assert np.array_equal(np.load(io.BytesIO(done.stdout)), np.load(folder / "o.npy"))
    np.savez(folder / "both.npz", q=Q, q_out=np.load(folder / "o.npy"))
    assert posenc("check", "--tensors", "both.npz", "--scheme", "rope", "--layout", "half", cwd=folder).returncode == 0
    (folder / "model").mkdir()
    (folder / "model/config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4, "rope_theta": 5e5}))
    done = posenc("encode", "--hf", "model", "--len", 2, cwd=folder)
    assert json.loads(done.stdout)["config"]["base"] == 500000
    explained = posenc("explain", "model", "--format", "text", cwd=folder)
    assert explained.returncode == 0 and explained.stdout and explained.stdout == posenc("explain", "model/config.json", "--format=text", cwd=folder).stdout
    assert on_a_terminal("explain", "llama-3.1")[0] == posenc("explain", "llama-3.1", "--format", "text").stdout.decode()
    done = posenc("translate", "model", "--to", "vllm,llama.cpp", cwd=folder)
    assert [one["to"] for one in json.loads(done.stdout)["targets"]] == ["vllm", "llama.cpp"]
    assert on_a_terminal("translate", "llama-3.1", "--to", "mlx")[0].startswith("mlx:\ninitialize_rope(dims=128, base=500000.0,")
    done = posenc("explain", "llama-3.11", cwd=folder)
    assert done.returncode == 2 and b"nearest" in done.stderr
    before = sorted(os.listdir(folder))
    for words, sentence in ((["--len", 2, "-o", "none/x.json"], "cannot write none/x.json: No such file"), (["--q", "none.npy"], "cannot read none.npy"),
                            (["--hf", "none"], "cannot read none"), (["--set", "len"], "--set needs NAME=JSON"), (["--len"], "--len needs a value"),
                            (["-l"], "unknown option -l"), (["word"], "encode takes options, no word"), (["--len", 1, "--len", 2], "is given twice")):
        done = posenc("encode", "--scheme", "rope", *words, cwd=folder)
        assert done.returncode == 2 and not done.stdout and len(done.stderr.splitlines()) == 1 and sentence in done.stderr.decode(), done
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize("words, sentence", [
    (["explain", "a", "b"], "explain takes one model; found: b"), (["encode", *"x" * 65], "too many words"),
    (["explain", "m.gguf", *["--x{}", "q.npy"] * 64], "more than 64 files"),
    (["rotate", *["--x{}", "q.npy"] * 65], "more than 64 files"),
    (["encode", *["--x.a{}", "1"] * 65], "more than 64 members"),
    (["rotate", "--tensors", "q.npy", "--q", "q.npy"], "--tensors FILE is the whole body of a request"),
    (["rotate", "--tensors", "q.npy", "--request", "-"], "--tensors FILE is the whole body of a request"),
    (["encode", "--scheme", "rope", "--len", "2", "-o", "taken.npy"], "cannot write taken.sin.npy: Is a directory")])
def test_what_no_line_may_have(tmp_path, words, sentence):
    np.save(tmp_path / "q.npy", Q)
    (tmp_path / "m.gguf").write_bytes(gguf_writer.file("llama"))
    (tmp_path / "taken.sin.npy").mkdir()
    before = sorted(os.listdir(tmp_path))
    done = posenc(*(word.format(i) for i, word in enumerate(words)), cwd=tmp_path)
    assert done.returncode == 2 and not done.stdout and len(done.stderr.splitlines()) == 1, done
    assert sentence in done.stderr.decode() and sorted(os.listdir(tmp_path)) == before


def test_a_model_is_a_file_of_llama_cpp(tmp_path, service):
    (tmp_path / "m.gguf").write_bytes(gguf_writer.file("llama"))
    for command, query in (("explain", ""), ("translate", "?to=vllm")):
        done = posenc(command, "m.gguf", *(["--to", "vllm"] if query else []), cwd=tmp_path)
        answer = service.post(f"/{command}{query}", gguf_writer.file("llama"), {"Content-Type": "application/x-gguf"})
        assert answer.status == 200 and done.returncode == 0 and done.stdout == answer.body


@pytest.mark.parametrize("begin", [b"\xef\xbb\xbf", b"\n  ", b"\xef\xbb\xbf\r\n"])
def test_a_config_may_begin_with_a_mark_or_blanks(tmp_path, begin):
    config = b'{"model_type":"llama","hidden_size":64,"num_attention_heads":2,"rope_theta":77.0}'
    (tmp_path / "config.json").write_bytes(config)
    (tmp_path / "marked.json").write_bytes(begin + config)
    for words in (["encode", "--len", 2, "--hf"], ["explain"], ["translate"]):
        plain, marked = posenc(*words, tmp_path), posenc(*words, tmp_path / "marked.json")
        assert plain.returncode == 0 and b"77" in plain.stdout and (marked.returncode, marked.stdout, marked.stderr) == (0, plain.stdout, b"")
    (tmp_path / "request.json").write_bytes(begin + b'{"scheme":"rope","len":2}')
    assert posenc("encode", "--request", tmp_path / "request.json").stdout == posenc("encode", "--scheme", "rope", "--len", 2).stdout


def test_a_file_is_read_beyond_a_byte_0(tmp_path):
    """What follows it is not passed over in silence: it is no JSON, for the service, too."""
    (tmp_path / "config.json").write_bytes(b'{"model_type":"llama","hidden_size":64,"num_attention_heads":2}\0,"rope_theta":5}')
    (tmp_path / "request.json").write_bytes(b'{"scheme":"rope","len":2}\0')
    for words in (["explain", "config.json"], ["explain", "-"], ["translate", "."], ["encode", "--len", 2, "--hf", "."], ["encode", "--request", "request.json"]):
        with open(tmp_path / "config.json", "rb") as text:
            done = posenc(*words, cwd=tmp_path, stdin=text)
        assert done.returncode == 2 and not done.stdout and len(done.stderr.splitlines()) == 1, (words, done)
        assert b"a byte 0" in done.stderr or b"a NUL byte" in done.stderr, (words, done)


def test_options_override_the_request(folder):
    (folder / "all.json").write_text(json.dumps({"scheme": "rope", "layout": "interleaved", "len": 9, "head_dim": 4, "format": "npy", "outputs": ["sin"], "scaling": {"type": "linear", "factor": 2}}))
    done = posenc("encode", "--request", "all.json", "--len", 3, "--format", "json", "--outputs", "cos", "--scaling.type", "default", cwd=folder)
    content = json.loads(done.stdout)
    assert content["config"]["scaling"] == {"type": "default"} and set(content["tensors"]) == {"cos"} and content["tensors"]["cos"]["shape"] == [3, 2]
    with open(folder / "all.json", "rb") as text:
        done = posenc("encode", "--request", "-", "--len=2", cwd=folder, stdin=text)
    assert np.load(io.BytesIO(done.stdout)).shape == (2, 2)
    (folder / "rotate.json").write_text(json.dumps({"scheme": "rope", "layout": "half", "q": [[1, 2, 3, 4]]}))
    done = posenc("rotate", "--request", "rotate.json", "--q", "q.npy", "--format", "npy", cwd=folder)
    assert np.array_equal(np.load(io.BytesIO(done.stdout)), np.load(folder / "o.npy"))
    done = posenc("encode", "--request", "all.json", "--len", 3, "--len", 4, cwd=folder)
    assert done.returncode == 2 and b"is given twice" in done.stderr


def test_several_tensors_get_a_file_each(folder, tmp_path):
    done = posenc("encode", "--scheme", "rope", "--len", 3, "--head-dim", 4, "-o", "x.npy", cwd=tmp_path)
    assert done.returncode == 0 and not done.stdout and done.stderr.decode() == "posenc: 2 tensors: x.cos.npy, x.sin.npy\n", done
    angles = np.outer(np.arange(3), [1, 0.01])
    assert sorted(os.listdir(tmp_path)) == ["x.cos.npy", "x.sin.npy"]
    for name, values in ("cos", np.cos(angles)), ("sin", np.sin(angles)):
        assert np.array_equal(np.load(tmp_path / f"x.{name}.npy"), values.astype("f4"))
    done = posenc("rotate", "--scheme", "rope", "--q", folder / "q.npy", "--k", folder / "q.npy", "-o", "r.npy", cwd=tmp_path)
    assert done.returncode == 0 and {"r.q.npy", "r.k.npy"} < set(os.listdir(tmp_path))
    assert np.array_equal(np.load(tmp_path / "r.q.npy"), np.load(tmp_path / "r.k.npy"))
    os.mkdir(tmp_path / "y.sin.npy")
    done = posenc("encode", "--scheme", "rope", "--len", 3, "-o", tmp_path / "none/y.npy")
    assert done.returncode == 2 and "cannot write" in done.stderr.decode() and len(done.stderr.splitlines()) == 1
    assert posenc("encode", "--scheme", "rope", "--len", 3, "-o", "/dev/null").returncode == 0 and not os.path.isfile("/dev/null")


@pytest.mark.parametrize("name", ["x.pt", "x.unknown", "x"])
def test_a_file_whose_ending_is_no_format_is_refused(tmp_path, name):
    words = "encode", "--scheme", "rope", "--len", 3, "-o", name
    done = posenc(*words, cwd=tmp_path)
    assert done.returncode == 2 and not done.stdout and f"the ending of {name} is no format" in done.stderr.decode() and not os.listdir(tmp_path)
    assert posenc(*words, "--format", "json", cwd=tmp_path).returncode == 0 and json.loads((tmp_path / name).read_text())["scheme"] == "rope"


def test_the_statuses_of_the_help_are_those_of_the_page():
    words = [part for part in ("explained", "no explanation", "trouble") for text in (posenc("--help"), posenc("--print-man")) if part not in text.stdout.decode().replace("\n", " ")]
    assert not words


def test_a_check_says_what_differs_and_where(folder):
    """The example of the guide: two lines, and the status."""
    (folder / "Qwen2-7B").mkdir()
    (folder / "Qwen2-7B/config.json").write_text(json.dumps({"model_type": "qwen2", "hidden_size": 128, "num_attention_heads": 2, "rope_theta": 10000.0}))
    done = posenc("rotate", "--scheme", "rope", "--layout", "interleaved", "--q", "q.npy", "-o", "wrong.npy", cwd=folder)
    done = posenc("check", "--hf", "Qwen2-7B", "--q", "q.npy", "--q-out", "wrong.npy", "--format", "text", cwd=folder)
    first, second = done.stdout.decode().splitlines()
    assert done.returncode == 1 and first == "differs: The tensor has the layout interleaved; the configuration says half."
    name, index, found, expected = re.fullmatch(r"first difference: (\w+)\[([\d,]+)\] is (\S+), expected (\S+)", second).groups()
    at = tuple(map(int, index.split(",")))
    assert name == "q_out" and float(found) == pytest.approx(float(np.load(folder / "wrong.npy")[at]), rel=1e-3)
    assert float(expected) == pytest.approx(float(np.load(folder / "o.npy")[at]), rel=1e-3)


def test_a_field_is_an_option_here():
    done = posenc("encode", "--scheme", "rope", "--lenn", 8)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", "posenc: unknown option --lenn; nearest: --len\n")
    done = posenc("encode", "--scheme", "rope", "--len", 8, "--head-dimm", 8)
    assert done.stderr.decode() == "posenc: unknown option --head-dimm; nearest: --head-dim\n"
    done = posenc("encode", "--scheme", "rope", "--len", 8, "--nothing-like-it", 8)
    assert done.returncode == 2 and done.stderr.decode().startswith("posenc: unknown option --nothing-like-it; ")
    scaled = ["encode", "--scheme", "rope", "--len", 8, "--scaling.type", "linear"]
    for wrong in "--scaling.factr", "--scaling.Factor":
        done = posenc(*scaled, wrong, 8)
        assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", f"posenc: unknown option {wrong}; nearest: --scaling.factor\n")
    done = posenc(*scaled, "--scaling.nothing-like-it", 8)
    assert done.returncode == 2 and '"nothing_like_it" in scaling; allowed: "type"' in done.stderr.decode()
    done = posenc("encode", "--scheme", "rope", "--len", 8, "--set", 'scaling={"factr":8}')
    assert done.stderr.decode() == 'posenc: unknown field "factr" in scaling; nearest: "factor" (at /scaling/factr)\n', "no option"
    done = posenc("encode", "--request", "-", input=b'{"scheme":"rope","lenn":8}')
    assert done.stderr.decode() == 'posenc: unknown field "lenn"; nearest: "len" (at /lenn)\n', "no option"


def test_status_as_diff_has_it(folder):
    tensors = ["--scheme", "rope", "--q", "q.npy", "--q-out", "o.npy"]
    assert posenc("check", *tensors, "--layout", "half", cwd=folder).returncode == 0
    done = posenc("check", *tensors, "--layout", "interleaved", "--format", "text", cwd=folder)
    assert done.returncode == 1 and done.stdout.decode().startswith("differs: The tensor has the layout half; the configuration says interleaved.\n")
    assert posenc("diagnose", *tensors, cwd=folder).returncode == 0
    np.save(folder / "noise.npy", np.random.default_rng(1).standard_normal((16, 32)).astype("f4"))
    done = posenc("diagnose", "--encoding", "noise.npy", cwd=folder)
    assert done.returncode == 1 and json.loads(done.stdout)["explained"] is False
    done = posenc("check", *tensors[2:], cwd=folder)
    assert done.returncode == 2 and b"check needs what the tensor is believed to be" in done.stderr


def test_a_terminal_gets_pictures_and_sentences(folder, monkeypatch):
    monkeypatch.chdir(folder)
    shown, status = on_a_terminal("encode", "--scheme", "alibi", "--len", "8", "--num-heads", "2")
    assert status == 0 and "\x1b[" in shown and shown.endswith("alibi bias [2,8,8] at [0], f32, from -0.4375 to 0\n")
    for environment in {"NO_COLOR": "1"}, {"TERM": "dumb"}:
        shown, status = on_a_terminal("encode", "--scheme", "sinusoidal", "--len", "64", "--dim", "256", **environment)
        assert status == 0 and "\x1b" not in shown and max(map(len, shown.splitlines()[:-1])) <= 60
    tensors = ["--scheme", "rope", "--layout", "half", "--q", "q.npy", "--q-out", "o.npy"]
    assert on_a_terminal("check", *tensors) == ("fits: The tensor is what the configuration gives.\n", 0)
    assert on_a_terminal("check", *tensors, LANG="zh_CN.UTF-8")[0].startswith("fits: 张量")
    assert on_a_terminal("presets", "llama", "3.1")[0].split()[:2] == ["llama-3.1", "checkpoint"]
    fields = ["--scheme", "sinusoidal", "--dim", "16", "--len", "16", "--metrics", "unique,step"]
    details = {name: result["detail"] for name, result in json.loads(posenc("analyze", *fields).stdout)["results"][0].items()}
    assert on_a_terminal("analyze", *fields) == ("".join(f"{name}: {detail}\n" for name, detail in details.items()), 0)
    assert "\x1b[" in on_a_terminal("analyze", *fields, "--outputs", "step")[0]
    shown, _ = on_a_terminal("schemes", "rope")
    assert "--scaling.factor number" in shown and "half" in shown
    assert "sinusoidal       absolute" in on_a_terminal("schemes")[0]


def test_the_catalogue_is_that_of_the_service(service):
    for words, path in ((["schemes"], "/schemes"), (["schemes", "rope"], "/schemes/rope"), (["presets"], "/presets"), (["presets", "llama", "3.1"], "/presets?query=llama+3.1")):
        assert posenc(*words).stdout == service.get(path).body
    done = posenc("schemes", "rop")
    assert done.returncode == 2 and 'nearest: "rope"' in done.stderr.decode()
    assert json.loads(posenc("presets", "nothing", "such").stdout)["total"] == 0 and on_a_terminal("presets", "nothing", "such") == ("no preset has these words\n", 0)
    for words in ["llama", "3.1"], []:
        assert on_a_terminal("presets", *words)[0] == service.get("/presets?query=" + "+".join(words), headers={"Accept": "text/plain"}).body.decode()


def test_errors_are_in_the_language_of_the_locale():
    done = posenc("encode", "--scheme", "rope", "--lenn", 8, environment={"LANG": "zh_CN.UTF-8"})
    assert done.returncode == 2 and done.stderr.decode().startswith("posenc: 未知的字段")
    assert "nearest: encode" in posenc("encoed").stderr.decode() and posenc().returncode == 2


def test_trouble_is_one_line_beside_an_empty_output():
    for words in (), ("schemes", "rope", "alibi"), ("encode", "rope"):
        done = posenc(*words)
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1), words
    for words in ("--help",), ("--version",), ("schemes",):
        with open("/dev/full", "wb") as full:
            assert subprocess.run([POSENC, *words], stdout=full, stderr=subprocess.PIPE, timeout=60).returncode == 2, words


def test_a_closed_pipe_ends_it_silently():
    done = subprocess.run(["sh", "-c", f"'{POSENC}' encode --scheme rope --len 1000000 | head -c 10; exit ${{PIPESTATUS:-0}}"], capture_output=True, timeout=60)
    assert done.stdout == b'{"scheme":' and not done.stderr


def complete(*words):
    return posenc("--complete", *words).stdout.decode().split()


def begun(folder, *words, **more):
    """The command, when its first file is being written."""
    process = subprocess.Popen([POSENC, "encode", *words, "-o", folder / "table.npy"], stderr=subprocess.PIPE, **more)
    end = time.monotonic() + 60
    while not any(path.stat().st_size for path in folder.iterdir()):
        assert time.monotonic() < end and process.poll() is None
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2])
@pytest.mark.parametrize("words", [["--scheme", "sinusoidal", "--len", "2000000", "--dim", "128"],
                                   ["--scheme", "rope", "--len", "2000000", "--head-dim", "128"]], ids=["one file", "a file for each tensor"])
def test_a_signal_leaves_no_file(tmp_path, words, number):
    def as_usual():
        signal.signal(number, signal.SIG_DFL)  # a shell's & ignores SIGINT
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with begun(tmp_path, *words, preexec_fn=as_usual) as process:
        process.send_signal(number)
        assert process.wait(60) == -number and process.stderr.read() == b""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["t.safetensors", "t.npy"])
def test_a_limit_of_file_sizes_is_trouble(tmp_path, place):
    done = posenc("encode", "--scheme", "rope", "--len", 900, "-o", tmp_path / place, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert done.returncode == 2 and done.stderr.decode().endswith(": File too large\n") and done.stderr.count(b"\n") == 1, done
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(SANITIZED, reason="sanitizers reserve more addresses")
@pytest.mark.parametrize("mib, status", [(64, 2), (120, 2), (160, 2), (320, 0), (640, 0)])
def test_a_limit_of_address_space_is_trouble_or_enough(tmp_path, mib, status):
    """OpenBLAS's threads ask for buffers without end; the program has to end all the same. Its code and libraries have 50 MiB."""
    np.save(tmp_path / "q.npy", Q)
    done = posenc("attention", "--scheme", "rope", "--q", "q.npy", "--k", "q.npy", "--outputs", "scores", cwd=tmp_path,
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20)))
    assert done.returncode == status and (done.stderr == b"" if status == 0 else b"limit of address space (ulimit -v)" in done.stderr), done
    assert done.stderr.count(b"\n") == (status == 2) and posenc("schemes", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))).returncode == 0


def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    with begun(tmp_path, "--scheme", "sinusoidal", "--len", "400000", "--dim", "64", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["table.npy"]


def test_completion_follows_the_rows():
    assert {"encode", "check", "presets"} <= set(complete(""))
    assert {"--head-dim", "--scaling.factor", "--dtype", "--len"} <= set(complete("encode", "--scheme", "rope", "--"))
    assert "--head-dim" not in complete("encode", "--scheme", "sinusoidal", "--") and "--q" in complete("rotate", "--scheme", "rope", "--")
    assert {"rope", "alibi"} <= set(complete("encode", "--scheme", "")) and "llama-3.1" in complete("encode", "--preset", "")
    assert {"half", "interleaved"} <= set(complete("encode", "--scheme", "rope", "--layout", "")) and "npy" in complete("encode", "--format", "")
    assert complete("completion", "") == ["bash", "zsh", "fish"]
    assert complete("schemes", "") == complete("encode", "--scheme", "") and complete("presets", "") == complete("encode", "--preset", "")
    assert complete("encode", "--data", "") == ["true", "false"]
    script = posenc("completion", "bash").stdout.decode()
    line = "posenc encode --scheme rope --layout half_"
    done = subprocess.run(["bash", "-c", f"{script}\nCOMP_WORDS=({line}); COMP_CWORD=5; _posenc; printf '%s\\n' \"${{COMPREPLY[@]}}\""],
                          capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": f"{POSENC.parent}:{os.environ['PATH']}"})
    assert done.stdout.split() == ["half_per_axis"], done
    assert posenc("completion", "tcsh").returncode == 2
    for shell in ("zsh", "fish"):
        assert b"posenc --complete" in posenc("completion", shell).stdout


def test_help_has_every_command_and_field():
    told = posenc("--help").stdout.decode()
    for command in complete("")[:7]:
        assert command in told and posenc(command, "--help").returncode == 0
    assert "--num-heads" in posenc("attention", "--help").stdout.decode() and re.fullmatch(r"posenc \d+\.\d+\.\d+\n", posenc("--version").stdout.decode())


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.skipif(SANITIZED, reason="the leak check does not run under strace")
def test_it_opens_no_socket(folder):
    done = subprocess.run(["strace", "-f", "-e", "trace=network", POSENC, "encode", "--scheme", "rope", "--len", "4"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "socket(" not in done.stderr
