"""A real server and a small client: the base of every test in this folder.

The fixture `server` is one posencd for the whole session (path in POSENCD, default build/posencd) on a free port.
start_server(*flags) starts another one for tests that need their own flags or that end the server."""
import contextlib
import functools
import gc
import http.client
import importlib.util
import itertools
import json
import mmap
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

# NumPy's threads wait for each other by spinning, and several processes of tests share the processors.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), *(str(folder) for folder in sorted(HERE.iterdir()) if folder.is_dir())]  # file names are unique
sys.path.append(str(HERE.parent))  # tests/truth

import stated_work  # noqa: E402

POSENCD = os.environ.get("POSENCD", str(ROOT / "build/posencd"))
SANITIZED = "POSENC_SANITIZED" in os.environ  # ten times slower and larger: measures of time and memory mean nothing
KERNELS = os.environ.get("KERNELS", "")  # base, avx2, avx512; "": the machine's best (make test KERNELS=avx2)
START_SECONDS = 60

# Laws are tried on the same drawn examples in every run; `make test-slow` draws others, and prints how to draw those again.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None,
                          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
settings.register_profile("explore", settings.get_profile("fixed"), derandomize=False, print_blob=True)
settings.load_profile("fixed")
REQUEST_SECONDS = 1200 if SANITIZED else 120


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.headers.get('Content-Type')} {self.body[:300]!r}>"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Server:
    """host and port; of a Unix socket its path, and no port."""

    def __init__(self, process, log_path):
        self.process, self.log_path, self.pid = process, log_path, process.pid
        self.host, self.port = self._wait_until_listening()
        self.url = f"http://{self.host}:{self.port}"

    def _wait_until_listening(self):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            found = re.search(r"listening on (?:https?://(\S+):(\d+)|unix:([^\s\"]+))[\n\"]", self.stderr_text())
            if found:
                return (found[3], None) if found[3] else (found[1].strip("[]"), int(found[2]))
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise RuntimeError(f"posencd does not listen (status {self.process.poll()}):\n{self.stderr_text()}")

    def stderr_text(self):
        return pathlib.Path(self.log_path).read_text(errors="replace")

    def connection(self, timeout=REQUEST_SECONDS):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout) if self.port else UnixConnection(self.host, timeout)

    def request(self, method, path, body=None, headers=None):
        connection = self.connection()
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return Response(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path, headers=None):
        return self.request("GET", path, headers=headers)

    def post(self, path, body, headers=None):
        """body: bytes as they are, anything else as JSON."""
        if not isinstance(body, (bytes, bytearray)):
            body = json.dumps(body).encode()
            headers = {"Content-Type": "application/json", **(headers or {})}
        return self.request("POST", path, body, headers)

    def ask(self, path="/encode", headers=None, **fields):
        """A request that must be answered 200."""
        response = self.post(path, fields, headers)
        assert response.status == 200, f"{fields}: {response}"
        return response

    def memory(self, field="VmHWM"):
        """Bytes of resident memory: VmRSS now, VmHWM at most so far."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) * 1024

    def threads(self):
        """{thread: seconds of processor time}"""
        found = {}
        for stat in pathlib.Path(f"/proc/{self.pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):  # a thread that has just ended
                found[stat.parent.name] = int(stat.read_text().split()[0]) / 1e9
        return found

    def loop_ms(self):
        """Milliseconds of processor time of the first I/O thread, the process's first."""
        return int(pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text().split()[0]) / 1e6

    def processor(self):
        """Seconds of processor time of all its threads, also of those that have ended."""
        return stated_work.clock(self.pid)

    def ended(self, seconds):
        """Its status, once it has ended, within so many seconds by a Stopwatch."""
        watch = Stopwatch(self)
        while self.process.poll() is None:
            assert watch.seconds() < seconds, f"it has not ended after {seconds} s"
            time.sleep(0.01)
        return self.process.wait()

    def is_alive(self):
        return self.process.poll() is None

    def stop(self):
        if self.is_alive():
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def held_up(pid):
    """{thread: seconds} for which each thread of a process could have run but had no processor; {} where the kernel does not say."""
    found = {}
    for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # a thread that has just ended
            found[stat.parent.name] = int(stat.read_text().split()[1]) / 1e9
    return found


class Stopwatch:
    """How long something takes a server: the seconds of the clock, less those for which the most delayed of its threads, of ours, and of
    other programs that take part (pids), waited for a processor that other programs had. Where nothing else runs both are the same, so a limit holds on a loaded machine too,
    and what the server itself lets a client wait for, a lock, a long turn, counts on both."""

    def __init__(self, server, *pids):
        self.pids, self.begun = (server.pid, os.getpid(), *pids), time.monotonic()
        self.before = [held_up(pid) for pid in self.pids]

    def seconds(self):
        elapsed = time.monotonic() - self.begun
        for pid, before in zip(self.pids, self.before):
            elapsed -= max((delay - before.get(thread, 0) for thread, delay in held_up(pid).items()), default=0)
        return max(0, elapsed)


USUAL_SECONDS = 0.004  # of 16 MiB, touched and given back


@functools.cache
def slowness():
    """How many times as long as usual this machine takes for memory, 1 to 3. Some virtual machines take 15 us for each page that is touched
    for the first time, where others take 0.5: there a loop that only frees an answer works longer than elsewhere one that has planned it."""
    def seconds():
        begun = time.process_time()
        with mmap.mmap(-1, 4096 * 4096) as pages:
            pages[::4096] = bytes(4096)
        return time.process_time() - begun
    return min(3, max(1, min(seconds() for _ in range(3)) / USUAL_SECONDS))


def without_posenc(env):
    """The environment, without options that the user of the tests may have set, and with the kernels under test. How run_tests.sh has Python
    take its memory is not for servers, whose memory is measured."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("POSENC_", "OPENBLAS_", "GLIBC_"))}
    kernels = {"POSENC_KERNELS": KERNELS} if KERNELS else {}
    return {**clean, **kernels, **(env or {})}


@contextlib.contextmanager
def start_server(*flags, env=None, program=POSENCD, before=None):
    """posencd with these flags on a free port, after what its process does before; ended with SIGTERM when the block is left."""
    with tempfile.NamedTemporaryFile(suffix=".log") as log:
        process = subprocess.Popen([program, "--port", "0", *flags], stderr=log, stdout=subprocess.DEVNULL,
                                   env=without_posenc(env), preexec_fn=before)
        try:
            server = Server(process, log.name)
            yield server
            ended = server.stop()
            assert -ended not in (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE), (ended, server.stderr_text()[-4000:])
            assert "Sanitizer" not in server.stderr_text(), server.stderr_text()[-8000:]
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.fixture(scope="session")
def session_server():
    with start_server() as server:
        yield server
        assert server.is_alive(), server.stderr_text()[-4000:]
        assert server.stop() == 0, server.stderr_text()[-4000:]


def at_url(url):
    """A client of a server that somebody else has started."""
    server = Server.__new__(Server)
    server.host, server.port = re.fullmatch(r"http://([^/:]+):(\d+)/?", url).groups()
    return server


def what_is_stored(server):
    return {path: server.get(path).body for path in ("/weights", "/presets")}


@pytest.fixture(scope="module")
def leaves_nothing(session_server):
    before = what_is_stored(session_server)
    yield
    assert what_is_stored(session_server) == before, "the file leaves something stored"


@pytest.fixture
def server(session_server, leaves_nothing):
    """The session's server; a test that ends it, and a file that leaves something stored in it, fail themselves, not those after them."""
    yield session_server
    assert session_server.is_alive(), session_server.stderr_text()[-4000:]


def shared_library():
    """libposenc.so beside the server, under its whole name."""
    return next(pathlib.Path(POSENCD).resolve().parent.glob("libposenc.so.*.*.*"))


@pytest.fixture(scope="session")
def posenc(session_server, tmp_path_factory):
    """posenc.py as the server hands it out."""
    path = tmp_path_factory.mktemp("client") / "posenc.py"
    path.write_bytes(session_server.get("/clients/posenc.py").body)
    if not SANITIZED:
        path.with_name("libposenc.so.0").symlink_to(shared_library())
    spec = importlib.util.spec_from_file_location("posenc_handed_out", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["service"] if SANITIZED else ["service", "process"])
def client(posenc, server, request, monkeypatch):
    """The same client of the server, and of the library beside posenc.py."""
    monkeypatch.delenv("POSENC_URL", raising=False)
    return posenc.Client(f"http://{server.host}:{server.port}" if request.param == "service" else None, retries=0)


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes minutes; run by `make test-slow` only")
    config.addinivalue_line("markers", "waiting: waits for limits of seconds; such tests of a file in ALONE run with those of PATIENT, far from each other")


# Files whose tests measure time, processor or memory, or load the machine on purpose: nothing else may run beside them.
ALONE = {"test_experiments_beside", "test_experiments_finding", "test_monitoring", "test_proxies", "test_saturation", "test_soak"}
# Files whose tests judge servers of their own by wide limits, by processor time or by a Stopwatch: a few such neighbours do not disturb them.
PATIENT = {"test_cancel", "test_fairness", "test_faults_network", "test_faults_signals", "test_faults_time", "test_io_threads",
           "test_limits", "test_memory_of_reading", "test_metrics", "test_planning", "test_proxied_clients", "test_quotas", "test_server_life",
           "test_shares", "test_single_flight", "test_slow", "test_store_s3", "test_store_slow", "test_store_waits", "test_streaming", "test_time",
           "test_timing", "test_tokens", "test_turns", "test_weights_many"}
# All others wait for sockets more than they compute, and run side by side: a file is one process's, and those that take longest come
# first, so that none is left when all others are done.
LONG = ["test_stated_work", "test_experiments_reference", "test_faults_memory", "test_diagnose_field", "test_diagnose_families", "test_diagnose_grids",
        "test_diagnose_rounding", "test_diagnose_sentences", "test_diagnose_believes", "test_diagnose_maps", "test_hf_truth", "test_attention", "test_install",
        "test_experiments", "test_random", "test_attention_random", "test_analyze_random", "test_diagnose_arithmetic", "test_languages", "test_zarr",
        "test_container_memory", "test_cases"]


def pytest_addoption(parser):
    parser.addoption("--part", choices=["all", "beside", "waiting", "alone"], default="all",
                     help="beside: the tests that may run side by side; alone: those that may not; waiting: those that bear each other")


EVENTS = []  # (proxy, event, requests, failed, seconds of the longest): what test_proxies.py has seen


def pytest_terminal_summary(terminalreporter):
    if EVENTS:
        terminalreporter.section("events behind proxies")
        terminalreporter.line(f"{'proxy':8} {'event':36} {'requests':>8} {'failed':>6} {'longest':>9}")
        for proxy, event, n, n_failed, longest in sorted(EVENTS):
            terminalreporter.line(f"{proxy:8} {event:36} {n:8} {n_failed:6} {longest:7.1f} s")


def part_of(item):
    if item.path.stem in ALONE:
        return "waiting" if item.get_closest_marker("waiting") else "alone"
    return "waiting" if item.path.stem in PATIENT else "beside"


def pytest_ignore_collect(collection_path, config):
    """Files without a test of the part are not even read: reading all takes seconds in each process."""
    part, stem = config.getoption("--part"), collection_path.stem
    if part == "all" or collection_path.suffix != ".py":
        return None
    ignored = stem in ALONE | PATIENT if part == "beside" else stem not in ALONE | (PATIENT if part == "waiting" else set())
    return ignored or None


def pytest_pycollect_makeitem(collector, name, obj):
    """What a file's function `items` gives are tests of their own."""
    return obj(collector) if name == "items" else None


def pytest_runtest_protocol(item, nextitem):
    """A row of ../cases needs nothing set up, and is reported once, not three times; the last test ends the session as any other does."""
    if not getattr(item, "is_row", False) or nextitem is None:
        return None
    item.ihook.pytest_runtest_setup(item=item)
    call = pytest.CallInfo.from_call(item.runtest, "call", reraise=(pytest.exit.Exception, KeyboardInterrupt))
    item.ihook.pytest_runtest_logreport(report=item.ihook.pytest_runtest_makereport(item=item, call=call))
    item.ihook.pytest_runtest_teardown(item=item, nextitem=nextitem)
    return True


def keep(config, items, is_kept):
    config.hook.pytest_deselected(items=[item for item in items if not is_kept(item)])
    items[:] = [item for item in items if is_kept(item)]


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config, items):
    for item in items:  # a file is one process's, but for the rows of ../cases, where each file of rows is
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    part = config.getoption("--part")
    if part != "all":
        keep(config, items, lambda item: part_of(item) == part)
    if not config.getoption("-m"):
        keep(config, items, lambda item: not item.get_closest_marker("slow"))
    if part == "beside":
        items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))
    if part == "waiting":
        spread(items, lambda item: item.get_closest_marker("waiting"))


@pytest.hookimpl(hookwrapper=True)
def pytest_collection():
    """Python does not look for garbage while tests are collected: none of them is given up."""
    gc.disable()
    yield
    gc.enable()


def spread(items, is_long):
    """Long tests at equal distances: a process is given several tests in a row, and none should be given only long ones."""
    long = [item for item in items if is_long(item)]
    others = iter([item for item in items if not is_long(item)])
    share = len(items) // max(1, len(long))
    items[:] = [one for item in long for one in (item, *itertools.islice(others, share - 1))] + list(others)
