"""nginx and HAProxy in front of a posencd, configured by the files of deploy/, for test_smuggling.py.

The tests change only the ports, the certificate (none), the number of workers (one), and the number of connections to
posencd: as few as possible, so that the bytes one client leaves behind reach the connection of the next request."""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time

import pytest

DEPLOY = pathlib.Path(__file__).resolve().parent.parent.parent / "deploy"
TOOLS = DEPLOY.parent / "build/tools"
ENVIRONMENT = {**os.environ, "LD_LIBRARY_PATH": str(TOOLS / "lib")}

NGINX = """
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    map $upstream_status $whom {{ default posenc; "" none; }}
    log_format short '$whom $upstream_status $request';
    access_log {folder}/access.log short;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    include {folder}/posenc.conf;
}}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def find(program):
    """Debian's packages start daemons when installed; deploy/packages.sh unpacks them into build/tools instead."""
    path = shutil.which(program, path=f"{TOOLS}:{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if not path or subprocess.run([path, "-v"], env=ENVIRONMENT, capture_output=True, timeout=20).returncode:
        pytest.skip(f"{program} is not here, or does not run")
    return path


def changed(name, *changes):
    """A file of deploy/ with each pattern replaced, which must be there."""
    text = (DEPLOY / name).read_text()
    for pattern, by in changes:
        text, n = re.subn(pattern, by, text, flags=re.M)
        assert n > 0, f"deploy/{name} has no {pattern}"
    return text


class Proxy:
    def __init__(self, name, folder, port):
        self.name, self.folder, self.host, self.port = name, pathlib.Path(folder), "127.0.0.1", port

    def n_forwarded(self):
        """Requests that went to posencd, by the proxy's own log."""
        lines = (self.folder / "access.log").read_text(errors="replace").splitlines()
        return sum(line.startswith("posenc ") for line in lines)

    def log(self):
        return "".join(p.read_text(errors="replace")[-3000:] for p in self.folder.glob("*.log"))


def nginx_command(folder, port, upstream):
    conf = changed("nginx.conf", (r"listen 443 ssl http2;", f"listen 127.0.0.1:{port};"), (r"^ *ssl_.*\n", ""),
                   (r"server 127.0.0.1:8080;", f"server 127.0.0.1:{upstream};"), (r"keepalive 32;", "keepalive 1;"))
    (folder / "posenc.conf").write_text(conf)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder))
    return [find("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]


def haproxy_command(folder, port, upstream):
    conf = changed("haproxy.cfg", (r"bind :443 ssl .*", f"bind 127.0.0.1:{port}"),
                   (r"posencd1 127.0.0.1:8080 check inter 2s", f"posenc 127.0.0.1:{upstream}"), (r"http-reuse safe", "http-reuse always"),
                   (r"^global\n", "global\n    nbthread 1\n    log stdout format raw local0\n"),
                   (r"^    mode http\n", "    mode http\n    log global\n    log-format \"%s %ST %HM %HP\"\n"))
    (folder / "haproxy.cfg").write_text(conf)
    return [find("haproxy"), "-db", "-f", str(folder / "haproxy.cfg")]


COMMANDS = {"nginx": nginx_command, "haproxy": haproxy_command}


@contextlib.contextmanager
def start_proxy(name, upstream):
    """The proxy on a free port before the posencd on port `upstream`; ended by its own process id."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        proxy = Proxy(name, folder, free_port())
        command = COMMANDS[name](proxy.folder, proxy.port, upstream)
        with open(proxy.folder / ("out.log" if name == "nginx" else "access.log"), "w") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=ENVIRONMENT)
        try:
            wait_for(proxy, process)
            yield proxy
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(proxy, process):
    end = time.monotonic() + 20
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((proxy.host, proxy.port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"{proxy.name} does not listen: {proxy.log()}")
