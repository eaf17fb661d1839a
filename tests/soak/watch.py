"""Owns what is seen of the server from outside: its process and /proc, its /metrics, its log, its end."""
import os
import pathlib
import re
import signal
import subprocess
import time

from wire import Wire, request

MIB = 1 << 20
START_SECONDS, END_SECONDS = 60, 45


class Server:
    def __init__(self, program, flags, log_path):
        self.log_path = pathlib.Path(log_path)
        env = {k: v for k, v in os.environ.items() if not k.startswith("POSENC_")}
        if os.environ.get("KERNELS"):  # as tests/http/conftest.py
            env["POSENC_KERNELS"] = os.environ["KERNELS"]
        # What a sanitizer keeps of freed memory would hide whether ours is flat.
        env["ASAN_OPTIONS"] = "quarantine_size_mb=8:malloc_context_size=5:" + env.get("ASAN_OPTIONS", "")
        with open(log_path, "wb") as log:
            self.process = subprocess.Popen([program, "--port", "0", *flags], stdout=subprocess.DEVNULL, stderr=log, env=env, cwd="/")
        self.pid, self.port = self.process.pid, None
        end = time.monotonic() + START_SECONDS
        while self.port is None and time.monotonic() < end and self.process.poll() is None:
            found = re.search(r"listening on http://\S+:(\d+)", self.log())
            self.port = int(found[1]) if found else time.sleep(0.02)
        if self.port is None:
            self.kill()
            raise RuntimeError(f"the server does not listen:\n{self.log()[-2000:]}")

    def log(self):
        return self.log_path.read_text(errors="replace")

    def get(self, path):
        wire = Wire(self.port)
        try:
            wire.send(request("GET", path))
            return wire.answer()
        finally:
            wire.close()

    def metrics(self):
        """Sums over labels, and every series by its whole name."""
        out = {}
        for line in self.get("/metrics").body.decode().splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                out[name] = float(value)
                if "{" in name:
                    short = name.split("{")[0]
                    out[short] = out.get(short, 0.0) + float(value)
        return out

    def sample(self):
        """rss and peak in bytes, open descriptors, threads; None once it is gone."""
        try:
            status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
            number = lambda name: int(re.search(rf"^{name}:\s+(\d+)", status, re.M)[1])
            return {"rss": number("VmRSS") * 1024, "peak": number("VmHWM") * 1024, "threads": number("Threads"),
                    "fds": len(os.listdir(f"/proc/{self.pid}/fd"))}
        except (OSError, TypeError):
            return None

    def hang_up(self):
        self.process.send_signal(signal.SIGHUP)

    def is_quiet(self):
        now = self.metrics()
        return now["posenc_streams"] == 0 and now["posenc_in_flight_requests"] == 1 and now["posenc_busy_workers"] == 0 and \
            now["posenc_queued_jobs"] == 0

    def end(self):
        """SIGTERM; the exit status, None if it had to be killed."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def kill(self):
        self.process.kill()
        self.process.wait()
