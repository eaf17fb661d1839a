"""Owns what is seen of the server from outside: /proc and its /metrics."""
import os
import pathlib
import re

MIB = 1 << 20


def metrics(server):
    """Sums over labels, and every series by its whole name."""
    out = {}
    for line in server.get("/metrics").body.decode().splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            out[name] = float(value)
            if "{" in name:
                short = name.split("{")[0]
                out[short] = out.get(short, 0.0) + float(value)
    return out


def sample(server):
    """rss and peak in bytes, open descriptors, threads; None once it is gone."""
    try:
        threads = re.search(r"^Threads:\s+(\d+)", pathlib.Path(f"/proc/{server.pid}/status").read_text(), re.M)
        return {"rss": server.memory("VmRSS"), "peak": server.memory("VmHWM"), "threads": int(threads[1]), "fds": len(os.listdir(f"/proc/{server.pid}/fd"))}
    except (OSError, TypeError):
        return None
