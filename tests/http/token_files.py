"""Token files for tests, and a server with one."""
import contextlib
import hashlib
import pathlib
import tempfile

from conftest import start_server

READER, WRITER, HASHED = "rd-7Fq2mXv0Tz9LkP4", "wr-Zx81nB5c~/+Ha3Yd==", "hs-Qm4Rk9Wd2Ls7Vb1T"
LINES = ["# name token rights", "", f"alice {READER} read", f"\tbob\t {WRITER}   write\r", f"carol sha256:{hashlib.sha256(HASHED.encode()).hexdigest()} read"]


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def put(server, lines):
    server.token_path.write_text("\n".join(lines) + "\n")


@contextlib.contextmanager
def token_server(lines, *flags, mode=0o600):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "tokens")
        path.write_text("\n".join(lines) + "\n")
        path.chmod(mode)
        with start_server("--token-file", str(path), *flags) as server:
            server.token_path = path
            yield server
