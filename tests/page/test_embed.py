"""One figure in the page of another (`/?embed`): which pages may, what is shown there, the lines that bring it about."""
import contextlib
import html
import re
import threading

import pytest

from browser import fragment, until
from conftest import start_server
from passing import Listener, PassingHandler

pytestmark = pytest.mark.fresh

ROPE = {"scheme": "rope", "head_dim": 16, "len": 12}
SHOWN = """return [...document.querySelectorAll('figure[data-figure], .banner, footer, .side, .inspector, h1, .view-controls, .embed-link')].filter((one) => one.checkVisibility())
  .map((one) => one.dataset.config ?? one.className)"""


@contextlib.contextmanager
def page_around(text):
    """A page of another origin, with what the served page gives to copy into it."""
    class Handler(PassingHandler):
        def pass_on(self, body):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(f"<!DOCTYPE html><title>other</title>{text}".encode())
            self.close_connection = True

    site = Listener(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=site.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{site.server_port}"
    finally:
        site.shutdown()
        thread.join()
        site.server_close()


def test_one_figure_and_nothing_around_it(driver, server, console):
    for on in ("a", "b"):
        driver.get("about:blank")
        driver.get(f"{server.url}/?embed#{fragment('table', ROPE, {**ROPE, 'base': 500}, on=on, lang='en')}")
        until(lambda: driver.execute_script("return document.documentElement.dataset.busy") == "0", what="the figure")
        assert driver.execute_script(SHOWN) == [on, "embed-link"]
        assert driver.execute_script("return document.querySelector('figure[data-single]').dataset.state") == "ready"
        link = driver.execute_script("const a = document.querySelector('.embed-link'); return [a.href, a.target, a.rel]")
        assert link == [driver.current_url.replace("?embed", ""), "_blank", "noopener"]
        assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("keys", ["view=gallery", "view=story&story=sin-and-cos", "view=walk"])
def test_what_has_no_such_figure_is_shown_whole(driver, server, console, keys):
    driver.get("about:blank")
    driver.get(f"{server.url}/?embed#{keys}&lang=en")
    until(lambda: driver.execute_script("return document.documentElement.dataset.busy") == "0", what="the view")
    shown = driver.execute_script(SHOWN)
    assert "banner" in " ".join(shown) and "embed-link" not in shown


def framed(driver):
    """What the frame of a page shows; None: the browser does not let it."""
    driver.switch_to.frame(driver.find_element("css selector", "iframe"))
    try:
        return driver.execute_script("return document.querySelector('figure[data-single]')?.dataset.state ?? null")
    finally:
        driver.switch_to.default_content()


def test_a_copied_frame_is_shown_by_the_pages_that_the_server_names(driver, console, open_page, server):
    page = open_page(fragment("curves", ROPE, lang="en", theme="dark"))
    copied = page.copied("embed")
    found = re.fullmatch(r'<iframe src="([^"]+)" width="\d+" height="\d+" title="posenc"></iframe>', copied)
    address = html.unescape(found[1])
    assert address == page.copied("url").replace("/#", "/?embed#")
    names = {}
    exec(page.copied("notebook").replace("from IPython.display import IFrame; ", ""), {"IFrame": lambda *all_: names.update(all=all_)})
    assert names["all"][0] == address and all(isinstance(size, int) for size in names["all"][1:])

    with page_around(copied) as site:
        driver.get(site)
        assert framed(driver) is None  # of this server no page may
        for flags in (["--frame-origin", site, "--frame-origin", "https://example.org"], ["--frame-origin", "*"]):
            with start_server(*flags) as other, page_around(copied.replace(server.url, other.url)) as there:
                policy = other.get("/?embed").headers["Content-Security-Policy"]
                assert "frame-ancestors " + " ".join(flags[1::2]) + ";" in policy
                assert "frame-ancestors 'none'" in other.get("/").headers["Content-Security-Policy"]
                driver.get(there)
                if flags[1] == "*":
                    until(lambda: framed(driver) == "ready", what="the figure in the frame")
                else:
                    assert framed(driver) is None  # another origin than the two named
    driver.get("about:blank")
    driver.get_log("browser")  # what the browser says about a frame that it refuses
