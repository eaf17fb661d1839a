"""The page in a real browser: posencd as in tests/http, and one headless chromium for the session.

POSENCD names the program (default build/posencd), UI_DIR a folder from which it serves the page instead of its own copy."""
import importlib.util
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
HTTP = HERE.parent / "http"
sys.path[:0] = [str(HERE), str(HTTP)]
from no_browser import pytest_pycollect_makemodule, pytest_terminal_summary  # noqa: E402, F401 (hooks)

# The servers of tests/http. Its conftest has this file's name, so it is loaded by its path; what helpers over there import
# "from conftest" they find below.
spec = importlib.util.spec_from_file_location("http_conftest", HTTP / "conftest.py")
http_conftest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(http_conftest)
POSENCD, ROOT, SANITIZED = http_conftest.POSENCD, http_conftest.ROOT, http_conftest.SANITIZED
UI = ("--ui-dir", os.environ["UI_DIR"]) if "UI_DIR" in os.environ else ()


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: run by `make test-slow` only")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("-m"):
        http_conftest.keep(config, items, lambda item: not item.get_closest_marker("slow"))


def start_server(*flags, **options):
    """posencd with the page, on a free port."""
    return http_conftest.start_server(*UI, *flags, **options)


@pytest.fixture(scope="session")
def server():
    with start_server() as server:
        yield server
        assert server.is_alive(), server.stderr_text()[-4000:]


@pytest.fixture(scope="session")
def driver():
    from selenium import webdriver
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1440,900", "--lang=en"):
        options.add_argument(flag)
    # A process of its own for each document would double the time of a test that opens a page.
    options.add_argument("--disable-features=IsolateOrigins,site-per-process,BackForwardCache,RenderDocument")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options)
    driver.set_script_timeout(30)
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def open_page(driver, server):
    """open_page("view=table&…") → Page; another server by its address with url=. Afterwards the console must be empty but
    for answers of 400 and above, which the browser reports by itself."""
    from browser import Page

    def open_at(fragment="", url=server.url, settle=True):
        page = Page(driver, url)
        page.open(fragment, settle)
        return page

    driver.get("about:blank")
    driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": server.url, "storageTypes": "local_storage"})  # the last test's choices
    driver.get_log("browser")
    yield open_at
    driver.get("about:blank")
    messages = [entry["message"] for entry in driver.get_log("browser")]
    assert [text for text in messages if "Failed to load resource" not in text] == []
