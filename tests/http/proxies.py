"""nginx and HAProxy in front of posencd, configured by the files of deploy/.

start_proxy is for test_smuggling.py: in front of one posencd, with other ports, no certificate, one worker, no cache, no checks, and
as few connections to posencd as possible, so that the bytes one client leaves behind reach the connection of the next request.
start_balancer is for test_proxies.py: in front of several, with other ports and no certificate; nothing else is changed."""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile

import pytest

from conftest import Server
from connection import ports_of, wait_until

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


@contextlib.contextmanager
def held_port():
    """A free port that nobody else is given until the block is left: a socket that does not listen is bound to it. Programs that set
    SO_REUSEADDR, as all do that are started here, may listen on it nevertheless, end, and listen again."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", 0))
        yield s.getsockname()[1]


def find(program, version="-v"):
    """Debian's packages start daemons when installed; deploy/packages.sh unpacks them into build/tools instead."""
    path = shutil.which(program, path=f"{TOOLS}:{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if not path or subprocess.run([path, version], env=ENVIRONMENT, capture_output=True, timeout=20).returncode:
        pytest.skip(f"{program} is not here, or does not run")
    return path


def changed(name, *changes):
    """A file of deploy/ with each pattern replaced, which must be there."""
    text = (DEPLOY / name).read_text()
    for pattern, by in changes:
        text, n = re.subn(pattern, by, text, flags=re.M)
        assert n > 0, f"deploy/{name} has no {pattern}"
    return text


class Proxy(Server):
    """Asked as a server is."""

    def __init__(self, name, folder, port):
        self.name, self.folder, self.host, self.port = name, pathlib.Path(folder), "127.0.0.1", port

    def n_forwarded(self):
        """Requests that went to posencd, by the proxy's own log."""
        lines = (self.folder / "access.log").read_text(errors="replace").splitlines()
        return sum(line.startswith("posenc ") for line in lines)

    def log(self):
        return "".join(p.read_text(errors="replace")[-3000:] for p in self.folder.glob("*.log"))


ELSEWHERE = "127.0.0.1:808[123]"
WITHOUT_CERTIFICATE = (r"^ *ssl_.*\n", "")


def nginx_command(folder, port, upstream):
    conf = changed("nginx.conf", (r"listen 443 ssl http2;", f"listen 127.0.0.1:{port};"), WITHOUT_CERTIFICATE,
                   (r"(server 127.0.0.1:808[23].*\n *)", ""), (rf"server {ELSEWHERE}", f"server 127.0.0.1:{upstream}"), (r"keepalive 32;", "keepalive 1;"),
                   (r"^proxy_cache_path.*\n", ""), (r"proxy_cache posenc_answers", "proxy_cache off"))
    return nginx_with(folder, conf)


def nginx_balancer(folder, port, upstreams):
    conf = changed("nginx.conf", (r"listen 443 ssl http2;", f"listen 127.0.0.1:{port};"), WITHOUT_CERTIFICATE,
                   ("/var/cache/nginx/posenc", f"{folder}/cache"), *((rf"127.0.0.1:{8081 + i}", f"127.0.0.1:{to}") for i, to in enumerate(upstreams)))
    return nginx_with(folder, conf)


def varnish_balancer(folder, port, upstreams):
    changes = [(rf'"127.0.0.1"; .port = "{8081 + i}"', f'"127.0.0.1"; .port = "{to}"') for i, to in enumerate(upstreams)]
    (folder / "varnish.vcl").write_text(changed("varnish.vcl", *changes))
    program = find("varnishd", "-V")
    vmods = ["-p", f"vmod_path={TOOLS}/lib"] if program.startswith(str(TOOLS)) else []
    return [program, "-F", "-j", "none", "-n", str(folder / "work"), "-a", f"127.0.0.1:{port}", "-f", str(folder / "varnish.vcl"), "-s", "malloc,512m", *vmods]


def nginx_with(folder, conf):
    (folder / "posenc.conf").write_text(conf)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder))
    return [find("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]


def haproxy_command(folder, port, upstream):
    conf = changed("haproxy.cfg", (r'"\$\{POSENC_BIND-127.0.0.1:8000\}"', f"127.0.0.1:{port}"), (r"^ *default-server check.*\n", ""),
                   (r"posencd1 .*", f"posenc 127.0.0.1:{upstream}"), (r"^ *server posencd[23].*\n", ""), (r"http-reuse safe", "http-reuse always"),
                   (r"^global\n", "global\n    nbthread 1\n    log stdout format raw local0\n"),
                   (r"^    mode http\n", "    mode http\n    log global\n    log-format \"%s %ST %HM %HP\"\n"))
    return haproxy_with(folder, conf)


def haproxy_balancer(folder, port, upstreams):
    changes = [(rf"127.0.0.1:{8081 + i}", f"127.0.0.1:{to}") for i, to in enumerate(upstreams)]
    return haproxy_with(folder, changed("haproxy.cfg", (r"127.0.0.1:8000", f"127.0.0.1:{port}"), *changes))


def haproxy_with(folder, conf):
    """-dR: without SO_REUSEPORT, by which two HAProxy listen on one port and each gets a part of the connections."""
    (folder / "haproxy.cfg").write_text(conf)
    return [find("haproxy"), "-db", "-dR", "-f", str(folder / "haproxy.cfg")]


COMMANDS = {"nginx": nginx_command, "haproxy": haproxy_command}
BALANCERS = {"nginx": nginx_balancer, "haproxy": haproxy_balancer, "varnish": varnish_balancer}


def start_proxy(name, upstream):
    """The proxy on a free port before the posencd on port `upstream`; ended by its own process id."""
    return start(name, COMMANDS[name], upstream)


def start_balancer(name, upstreams):
    """The same before three posencd, as deploy/ configures it."""
    return start(name, BALANCERS[name], upstreams)


@contextlib.contextmanager
def start(name, command_of, upstream):
    with held_port() as port, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        proxy = Proxy(name, folder, port)
        command = command_of(proxy.folder, proxy.port, upstream)
        with open(proxy.folder / ("out.log" if name == "nginx" else "access.log"), "w") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=ENVIRONMENT)
            proxy.pid = process.pid
        try:
            wait_for(proxy, process)
            yield proxy
            assert process.poll() is None, f"{name} has ended by itself: {proxy.log()}"
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(proxy, process):
    """A connection would not tell it from another program that has the port. Varnish compiles its rules first."""
    if not wait_until(lambda: process.poll() is not None or proxy.port in ports_of(process.pid), 90) or process.poll() is not None:
        raise RuntimeError(f"{proxy.name} does not listen: {proxy.log()}")
