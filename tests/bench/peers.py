"""Servers that the bench starts and ends: posencd, nginx, uvicorn, the bare loops; and what is not installed here.

Each is a context manager: entered when it answers, within a deadline; left when its process, known by its id, is gone."""
import contextlib
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
START_SECONDS = 30
STOP_SECONDS = 15

# What a row may need, and Debian's package of it.
PROGRAMS = {"nginx": "nginx-light", "wrk": "wrk", "curl": "curl"}
MODULES = {"numpy": "python3-numpy", "mpmath": "python3-mpmath", "torch": "python3-torch", "fastapi": "python3-fastapi", "uvicorn": "python3-uvicorn"}


def is_there(name):
    return shutil.which(name) is not None if name in PROGRAMS else importlib.util.find_spec(name) is not None


def missing(needs):
    """"" if all is installed, else what is not and the command that would install it."""
    absent = [name for name in needs if not is_there(name)]
    if not absent:
        return ""
    packages = " ".join({**PROGRAMS, **MODULES}[name] for name in absent)
    return f"no {', '.join(absent)}: apt-get install --no-install-recommends {packages}"


def for_ours(needs):
    """What measuring our side alone needs: the clients, not the peers."""
    return [name for name in needs if name in ("wrk", "curl")]


# ---- Processes -----------------------------------------------------------------------------------------------------------


def cpu_seconds(pids):
    """CPU time of processes so far, all their threads together. The scheduler's count of nanoseconds, where it is kept."""
    total = 0.0
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):  # a thread that has just ended
                total += int((task / "schedstat").read_text().split()[0]) * 1e-9
    return total


def children(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def memory(pid, field):
    """Bytes of VmRSS, VmHWM or RssAnon."""
    return int(re.search(rf"{field}:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def wait_for(is_ready, process, what):
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if is_ready():
            return
        time.sleep(0.02)
    raise RuntimeError(f"{what} did not answer within {START_SECONDS} s (status {process.poll()})")


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def process(command, **options):
    """A process in a group of its own, which holds its workers too; the group is ended whatever happens."""
    started = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
    try:
        yield started
    finally:
        end_group(started)


def end_group(started):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGTERM)
    try:
        started.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    started.wait(STOP_SECONDS)


# ---- Servers ---------------------------------------------------------------------------------------------------------------


class Server:
    """A running one: its port, and the processes whose time is the server's."""

    def __init__(self, port, pids):
        self.port, self.pids, self.url = port, pids, f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def Posencd(program, *flags):
    env = {k: v for k, v in os.environ.items() if not k.startswith("POSENC_") or k == "POSENC_KERNELS"}
    with tempfile.NamedTemporaryFile(mode="w+", suffix=".log") as log:
        command = [program, "--port", "0", "--log-level", "error", *flags]
        with process(command, stderr=log, stdout=subprocess.DEVNULL, env=env) as started:
            def port():
                return re.search(r"listening on http://\S+:(\d+)", pathlib.Path(log.name).read_text())
            wait_for(port, started, "posencd")
            yield Server(int(port()[1]), [started.pid])


# The settings that make nginx fastest: no log, files held open, the kernel copies (design: what http.md calls the yardstick).
NGINX = """worker_processes {workers};
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; tcp_nodelay on; open_file_cache max=64;
    keepalive_requests 100000000; default_type application/octet-stream;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port} reuseport; root {folder}/files; }}
}}
"""


def memory_folder():
    """Where files lie in memory, so that no disk is measured."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@contextlib.contextmanager
def Nginx(workers, *files):
    """nginx of its own prefix, configuration and port, with files given as (name, bytes of it)."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        os.chmod(folder, 0o755)  # its workers may run as another user
        (pathlib.Path(folder) / "files").mkdir()
        for name, size in files:
            write_noise(f"{folder}/files/{name}", size)
        port = free_port()
        pathlib.Path(f"{folder}/conf").write_text(NGINX.format(workers=workers, folder=folder, port=port))
        command = ["nginx", "-p", folder, "-c", f"{folder}/conf", "-e", f"{folder}/error.log"]
        with process(command, stderr=subprocess.DEVNULL) as started:
            wait_for(lambda: answers(f"http://127.0.0.1:{port}/{files[0][0]}"), started, "nginx")
            yield Server(port, [started.pid, *children(started.pid)])


def write_noise(path, size):
    piece = os.urandom(min(size, 1 << 20))
    with open(path, "wb") as file:
        for done in range(0, size, len(piece)):
            file.write(piece[:size - done])


@contextlib.contextmanager
def Uvicorn(app, workers):
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(HERE), "--port", str(port), "--workers", str(workers),
               "--no-access-log", "--log-level", "error", app]
    with process(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as started:
        wait_for(lambda: answers(f"http://127.0.0.1:{port}/small"), started, "uvicorn")
        time.sleep(3)  # one worker has answered; the others import torch as well
        yield Server(port, [started.pid, *children(started.pid)])


@contextlib.contextmanager
def Bare(build, n_bytes, *congestion):
    """The loops of send() and recv() of bench_wire."""
    command = [f"{build}/tests/bench/bench_wire", "serve", str(n_bytes), *congestion]
    with process(command, stdout=subprocess.PIPE, text=True) as started:
        yield Server(int(started.stdout.readline().split()[1]), [started.pid])
        started.stdout.close()
