"""The page in a real browser: posencd as in tests/http, and one headless chromium for the session.

POSENCD names the program (default build/posencd), UI_DIR a folder from which it serves the page instead of its own copy."""
import fcntl
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
HTTP = HERE.parent / "http"
sys.path[:0] = [str(HERE), str(HTTP)]
from no_browser import pytest_pycollect_makemodule, pytest_terminal_summary  # noqa: E402, F401 (hooks)

# The servers of tests/http. Its conftest has this file's name, so it is loaded by its path.
spec = importlib.util.spec_from_file_location("http_conftest", HTTP / "conftest.py")
http_conftest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(http_conftest)


def __getattr__(name):
    """What is not below, for helpers over there that import it "from conftest"."""
    return getattr(http_conftest, name)


# The headless shell is the same engine without windows, tabs and profiles to keep; a page opens in two thirds of the time.
# The program itself: Debian's script for it ends alone.
SHELL = "/usr/lib/chromium/chromium-headless-shell"
BROWSER = SHELL if os.path.exists(SHELL) else shutil.which("chromium")
UI = ("--ui-dir", os.environ["UI_DIR"]) if "UI_DIR" in os.environ else ()


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: run by `make test-slow` only")
    config.addinivalue_line("markers", "fresh: its pages are loaded, not reached by a link")


# Fixtures that take ten seconds of the processor: the tests that use one are given to one process.
LONG = {"walked", "worked"}


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(config, items):
    if not config.getoption("-m"):
        http_conftest.keep(config, items, lambda item: not item.get_closest_marker("slow"))
    for item in items:
        for name in LONG & set(item.fixturenames):
            item.add_marker(pytest.mark.xdist_group(name))


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
    options.binary_location = BROWSER
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
def console(driver, server):
    """After a test the browser's console must be empty but for answers of 400 and above, which the browser reports by itself."""
    driver.get_log("browser")
    yield
    messages = [entry["message"] for entry in driver.get_log("browser")]
    assert [text for text in messages if "Failed to load resource" not in text] == []


@pytest.fixture
def open_page(request, driver, server, console):
    """open_page("view=table&…") → Page as if loaded anew; another server by its address with url=.

    Loading takes two thirds of a test's time. So a test's first page is reached by a link where the test before has left a page that
    works: over another view, so that nothing of a view outlives its test. A test marked `fresh` loads its pages."""
    from browser import Page

    may_link = not request.node.get_closest_marker("fresh") and is_left_open(driver, server)
    failed = request.session.testsfailed

    def open_at(fragment="", url=server.url, settle=True):
        nonlocal may_link
        page = Page(driver, url)
        if may_link and settle and url == server.url:
            page.hash("view=server" if "view=weights" in fragment else "view=weights")  # of all views these take the least time
            page.go(fragment)
        else:
            page.open(fragment, settle)
        may_link = False
        return page

    if not may_link:
        driver.get("about:blank")
    driver.execute_cdp_cmd("Page.resetNavigationHistory", {})  # a browser keeps fifty entries, of the tests before too
    forget_choices(driver, server)
    yield open_at
    if request.session.testsfailed > failed or not is_left_open(driver, server):
        driver.get("about:blank")


def forget_choices(driver, server):
    driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": server.url, "storageTypes": "local_storage"})


# The page of this server in this language, if it matters; nothing in front of it, no map under the pointer, and no function of the browser
# replaced.
AS_IT_WAS = """const [start, lang] = arguments;
return location.href.startsWith(start) && [null, document.documentElement.lang].includes(lang) && !document.querySelector('dialog[open], canvas:hover')
  && [fetch, URL.createObjectURL, HTMLAnchorElement.prototype.click, CanvasRenderingContext2D.prototype.putImageData]
    .every((one) => String(one).includes('[native code]'));"""


def is_left_open(driver, server, lang=None):
    """Has the test before left a page that another may go on from?"""
    return driver.execute_script(AS_IT_WAS, f"{server.url}/#", lang)


@pytest.fixture
def visit(request, driver, server, console):
    """visit("view=table&…") → Page, by a link within a page that an earlier visit may have left open. For tests that only read
    what an address shows: loading costs three times as much as obeying a link, and each key of the address is tested both ways."""
    from browser import Page

    def visit_at(fragment):
        page = Page(driver, server.url)
        if is_left_open(driver, server, None if "lang=" in fragment else "en"):
            page.go(fragment)
        else:
            driver.get("about:blank")
            forget_choices(driver, server)
            page.open(fragment)
        return page

    failed = request.session.testsfailed
    yield visit_at
    if request.session.testsfailed > failed:  # no other test starts from what has failed
        driver.get("about:blank")


# Waiting of a second and more; what is shorter keeps its length.
QUICK = """for (const name of ['setTimeout', 'setInterval']) {
  const plain = window[name];
  window[name] = (job, ms = 0, ...all) => plain(job, ms >= 1000 ? ms / %d : ms, ...all);
}"""


@pytest.fixture
def quick(driver):
    """Pages opened afterwards wait an eighth as long; gives this 8."""
    script = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": QUICK % 8})
    yield 8
    driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


@pytest.fixture
def narrow(driver):
    """narrow(width): as a phone or a smaller window has it; None: as wide as at first."""
    def resize(width, height=900):
        if width:
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        else:
            driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[0])))")  # the page has seen it

    yield resize
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


AXE = "axe-core@4.14.1"


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The text of axe-core's script, as its package holds it; None where npm has no network. Processes of one run fetch it once."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "axe"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        script = folder / "axe.min.js"
        if not script.exists():
            script.write_text(fetch_axe(folder))
    return script.read_text() or None


def fetch_axe(folder):
    npm = shutil.which("npm")
    packed = npm and subprocess.run([npm, "pack", AXE, "--silent"], cwd=folder, capture_output=True, text=True, timeout=120)
    if not packed or packed.returncode:
        return ""
    with tarfile.open(folder / packed.stdout.strip()) as package:
        return package.extractfile("package/axe.min.js").read().decode()
