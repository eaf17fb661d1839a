"""The page's files as they are in server/page, and where the server has them."""
import re

import pytest

from conftest import ROOT

FOLDER = ROOT / "server/page"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".json": "application/json", ".svg": "image/svg+xml",
         ".md": "text/markdown; charset=utf-8"}
FILES = sorted(f.relative_to(FOLDER).as_posix() for f in FOLDER.rglob("*") if f.suffix in TYPES and f.name != "README.md")
SCRIPTS = [f for f in FILES if f.endswith(".js")]


def source(name):
    return (FOLDER / name).read_text()


def code(name):
    """A script without its comments."""
    return re.sub(r"/\*.*?\*/|^\s*//[^\n]*", "", source(name), flags=re.S | re.M)


def base_of(server):
    return re.search(r'<meta name="posenc-ui" content="(/ui/[^"]*)">', server.get("/").body.decode())[1]


@pytest.fixture(scope="module")
def base(session_server):
    found = base_of(session_server)
    assert re.fullmatch(r"/ui/[0-9a-f]{12,16}", found)
    return found
