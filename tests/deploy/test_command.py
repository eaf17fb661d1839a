"""The command posenc: what it prints, writes and returns, and that its bytes are those of the service. `make test` runs it.

A command line and what it is expected to print is a row of ../cases/command.jsonl; here are the files, signals and limits."""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "http"), str(HERE.parent / "truth")]

import gguf_writer  # noqa: E402
import run  # noqa: E402
from conftest import ROOT, SANITIZED, start_server  # noqa: E402

POSENC = pathlib.Path(os.environ.get("POSENCD", ROOT / "build/posencd")).resolve().parent / "posenc"
Q = np.random.default_rng(0).standard_normal((1, 2, 8, 64)).astype("f4")


def posenc(*words, **more):
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", ""), **more.pop("environment", {})}
    return subprocess.run([POSENC, *(str(word) for word in words)], capture_output=True, timeout=120, env=environment, **more)


def on_a_terminal(*words, cwd=None, **environment):
    """What a terminal of 60 columns shows, and the status."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    with subprocess.Popen([POSENC, *words], stdout=child, cwd=cwd, env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **environment}) as process:
        os.close(child)
        shown = b""
        with contextlib.suppress(OSError):  # Linux reports the end of the other side so
            while part := os.read(parent, 65536):
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


ALL = {"scheme": "rope", "layout": "interleaved", "len": 9, "head_dim": 4, "format": "npy", "outputs": ["sin"], "scaling": {"type": "linear", "factor": 2}}
TEXTS = {
    "request.json": {"scheme": "rope", "layout": "half"},
    "rotate.json": {"scheme": "rope", "layout": "half", "q": [[1, 2, 3, 4]]},
    "all.json": ALL,
    "model/config.json": {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4, "rope_theta": 5e5},
    "Qwen2-7B/config.json": {"model_type": "qwen2", "hidden_size": 128, "num_attention_heads": 2, "rope_theta": 10000.0},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the rows name: q, q rotated with each layout, noise, a .gguf file, the texts; and a folder where a file would be written."""
    there = tmp_path_factory.mktemp("com mand")
    np.save(there / "q.npy", Q)
    np.save(there / "noise.npy", np.random.default_rng(1).standard_normal((16, 32)).astype("f4"))
    for name, layout in ("o.npy", "half"), ("wrong.npy", "interleaved"):
        done = posenc("rotate", "--scheme", "rope", "--layout", layout, "--q", "q.npy", "-o", name, cwd=there)
        assert done.returncode == 0 and not done.stdout and not done.stderr
    np.savez(there / "both.npz", q=Q, q_out=np.load(there / "o.npy"))
    (there / "m.gguf").write_bytes(gguf_writer.file("llama"))
    (there / "taken.sin.npy").mkdir()
    for name, content in TEXTS.items():
        (there / name).parent.mkdir(exist_ok=True)
        (there / name).write_text(json.dumps(content))
    return there


@pytest.fixture(scope="module")
def service():
    with start_server() as server:
        yield server


def words_of(row):
    """{"$repeat": words, "times": n} are these words n times, with the number of each time for {}."""
    for word in row["words"]:
        if isinstance(word, dict):
            yield from (part.format(i) for i in range(word["times"]) for part in word["$repeat"])
        else:
            yield word


def of_service(service, asked, folder):
    """What the command has to say as the service does: (stdout, stderr)."""
    if "get" in asked:
        answer = service.get(asked["get"], headers=asked.get("headers"))
    elif "file" in asked:
        answer = service.post(asked["post"], (folder / asked["file"]).read_bytes(), {"Content-Type": "application/x-gguf"})
    else:
        answer = service.post(asked["post"], asked["request"])
    if answer.status == 200:
        return answer.body, ""
    problem = answer.json()
    return b"", f"posenc: {problem['detail']}" + (f" (at {problem['pointer']})" if "pointer" in problem else "") + "\n"


def check_shown(expect, shown):
    """stdout, as a text."""
    listed = shown.split()
    assert all(words in shown or words in shown.replace("\n", " ") for words in expect.get("shows", []))
    assert set(expect.get("lists", [])) <= set(listed) and not set(expect.get("lists_not", [])) & set(listed)
    assert shown.startswith(expect.get("begins", "")) and shown.endswith(expect.get("ends", "")) and expect.get("text", shown) == shown
    for pointer, value in expect.get("values", {}).items():
        assert run.at(json.loads(shown), pointer) == value, pointer


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in map(json.loads, (run.CASES / "command.jsonl").read_text().splitlines())])
def test_row(folder, service, row):
    expect, before, words = row["expect"], sorted(os.listdir(folder)), list(words_of(row))
    if row.get("terminal"):
        text, status = on_a_terminal(*words, cwd=folder, **row.get("environment", {}))
        shown, error = text.encode(), ""
    else:
        done = posenc(*words, cwd=folder, input=row.get("input", "").encode(), environment=row.get("environment", {}))
        shown, status, error = done.stdout, done.returncode, done.stderr.decode()
    assert status == expect.get("status", 2 if "error" in expect else 0), (shown, error)
    assert sorted(os.listdir(folder)) == before
    assert not error if status < 2 else not shown and error.count("\n") == 1 and error.startswith("posenc: "), (shown, error)
    wanted = expect.get("error", [])
    assert error == f"posenc: {wanted}\n" if isinstance(wanted, str) else all(part in error for part in wanted), error
    if "as" in expect:
        assert (shown, error) == of_service(service, expect["as"], folder)
    if "like" in expect:
        assert shown == posenc(*expect["like"], cwd=folder).stdout
    check_shown(expect, shown.decode(errors="replace"))


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


def test_several_tensors_get_a_file_each(folder, tmp_path):
    done = posenc("encode", "--scheme", "rope", "--len", 3, "--head-dim", 4, "-o", "x.npy", cwd=tmp_path)
    assert done.returncode == 0 and not done.stdout and done.stderr.decode() == "posenc: 2 tensors: x.cos.npy, x.sin.npy\n", done
    angles = np.outer(np.arange(3), [1, 0.01])
    assert sorted(os.listdir(tmp_path)) == ["x.cos.npy", "x.sin.npy"]
    for name, values in ("cos", np.cos(angles)), ("sin", np.sin(angles)):
        assert np.array_equal(np.load(tmp_path / f"x.{name}.npy"), values.astype("f4"))
    done = posenc("encode", "--scheme=sinusoidal", "--len", 3, "--dim", 4, "-o", "table.npy", cwd=tmp_path)
    assert done.returncode == 0 and np.abs(np.load(tmp_path / "table.npy") - np.stack([np.sin(angles), np.cos(angles)], -1).reshape(3, 4)).max() < 1e-7
    done = posenc("rotate", "--scheme", "rope", "--q", folder / "q.npy", "--k", folder / "q.npy", "-o", "r.npy", cwd=tmp_path)
    assert done.returncode == 0 and {"r.q.npy", "r.k.npy"} < set(os.listdir(tmp_path))
    assert np.array_equal(np.load(tmp_path / "r.q.npy"), np.load(tmp_path / "r.k.npy"))
    assert posenc("encode", "--scheme", "rope", "--len", 3, "--format", "json", "-o", "x", cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "x").read_text())["scheme"] == "rope"
    assert posenc("encode", "--scheme", "rope", "--len", 3, "-o", "/dev/null").returncode == 0 and not os.path.isfile("/dev/null")


def test_a_check_says_what_differs_and_where(folder):
    """The example of the guide: two lines, those that mend it, and the status."""
    done = posenc("check", "--hf", "Qwen2-7B", "--q", "q.npy", "--q-out", "wrong.npy", "--format", "text", cwd=folder)
    first, *mending, second = done.stdout.decode().splitlines()
    assert mending and all(line.startswith("  ") for line in mending)
    assert done.returncode == 1 and first == "differs: The tensor has the layout interleaved; the configuration has half."
    name, index, found, expected = re.fullmatch(r"first difference: (\w+)\[([\d,]+)\] is (\S+), expected (\S+)", second).groups()
    at = tuple(map(int, index.split(",")))
    assert name == "q_out" and float(found) == pytest.approx(float(np.load(folder / "wrong.npy")[at]), rel=1e-3)
    assert float(expected) == pytest.approx(float(np.load(folder / "o.npy")[at]), rel=1e-3)


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours_gets_characters(environment):
    shown, status = on_a_terminal("encode", "--scheme", "sinusoidal", "--len", "64", "--dim", "256", **environment)
    assert status == 0 and "\x1b" not in shown and max(map(len, shown.splitlines()[:-1])) <= 60


def test_a_terminal_gets_the_sentence_of_each_metric():
    fields = ["--scheme", "sinusoidal", "--dim", "16", "--len", "16", "--metrics", "unique,step"]
    details = {name: result["detail"] for name, result in json.loads(posenc("analyze", *fields).stdout)["results"][0].items()}
    assert on_a_terminal("analyze", *fields) == ("".join(f"{name}: {detail}\n" for name, detail in details.items()), 0)


@pytest.mark.parametrize("word", ["--help", "--version", "schemes"])
def test_output_that_cannot_be_written_is_trouble(word):
    with open("/dev/full", "wb") as full:
        assert subprocess.run([POSENC, word], stdout=full, stderr=subprocess.PIPE, timeout=60).returncode == 2


def test_a_closed_pipe_ends_it_silently():
    done = subprocess.run(["sh", "-c", f"'{POSENC}' encode --scheme rope --len 1000000 | head -c 10; exit ${{PIPESTATUS:-0}}"], capture_output=True, timeout=60)
    assert done.stdout == b'{"scheme":' and not done.stderr


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


def test_bash_completes_with_the_script_that_is_printed():
    script = posenc("completion", "bash").stdout.decode()
    line = "posenc encode --scheme rope --layout half_"
    done = subprocess.run(["bash", "-c", f"{script}\nCOMP_WORDS=({line}); COMP_CWORD=5; _posenc; printf '%s\\n' \"${{COMPREPLY[@]}}\""],
                          capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": f"{POSENC.parent}:{os.environ['PATH']}"})
    assert done.stdout.split() == ["half_per_axis"], done


def test_help_has_every_command():
    told = posenc("--help").stdout.decode()
    for command in posenc("--complete", "").stdout.decode().split()[:7]:
        assert command in told and posenc(command, "--help").returncode == 0
    assert re.fullmatch(r"posenc \d+\.\d+\.\d+\n", posenc("--version").stdout.decode())


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.skipif(SANITIZED, reason="the leak check does not run under strace")
def test_it_opens_no_socket(folder):
    done = subprocess.run(["strace", "-f", "-e", "trace=network", POSENC, "encode", "--scheme", "rope", "--len", "4"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "socket(" not in done.stderr
