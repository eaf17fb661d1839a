"""axe-core, as its package holds it, in every view and story, in both themes, on a screen and on a phone: no violation.
Where npm has no network, these are skipped."""
import shutil
import subprocess
import tarfile

import pytest

from test_frame import LISTED, narrow  # noqa: F401 (narrow is a fixture)
from test_stories import STORIES, reach

AXE = "axe-core@4.14.1"
NAMES = "return [...document.querySelectorAll('article[data-story] figure[id^=\"fig-\"]')].map((figure) => figure.id.slice(4))"
# Each link of this page begins with #, so one that the row of links has scrolled away is taken for a link that skips something. The one
# that does is tested in test_frame.py.
RUN = """const [done] = arguments;
axe.run(document, { resultTypes: ['violations'], rules: { 'skip-link': { enabled: false } } }).then(({ violations }) => done(violations.flatMap(({ id, nodes }) =>
  nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)}: ${failureSummary.slice(0, 160)}`))), (error) => done([String(error)]));"""
# The width of a phone and of a screen, light and dark; both languages get their turn.
LOOKS = [(1440, "light", "en"), (1440, "dark", "zh"), (390, "light", "zh"), (390, "dark", "en")]


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The text of axe-core's script."""
    folder = tmp_path_factory.mktemp("axe")
    npm = shutil.which("npm")
    packed = npm and subprocess.run([npm, "pack", AXE, "--silent"], cwd=folder, capture_output=True, text=True, timeout=120)
    if not packed or packed.returncode:
        pytest.skip(f"npm is missing, or has no network: `npm pack {AXE}` gives nothing")
    with tarfile.open(folder / packed.stdout.strip()) as package:
        return package.extractfile("package/axe.min.js").read().decode()


def violations(page, axe):
    if not page.run("return 'axe' in window"):
        page.run(axe)
    page.driver.set_script_timeout(120)
    try:
        return page.driver.execute_async_script(RUN)
    finally:
        page.driver.set_script_timeout(30)


@pytest.mark.parametrize("view", LISTED)
def test_no_violation_in_a_view(visit, narrow, server, axe, view):  # noqa: F811
    if view == "server":  # what it shows depends on what was asked: also of no route, with and without a scheme, and refused
        assert [server.get("/nothing").status, server.post("/encode", {"scheme": "rope", "lenn": 2}).status] == [404, 422]
    for width, theme, lang in LOOKS:
        narrow(width, 844 if width < 500 else 900)
        page = visit(f"view={view}&theme={theme}&lang={lang}")
        assert violations(page, axe) == [], (width, theme, lang)


@pytest.mark.parametrize("story", STORIES)
def test_no_violation_in_a_story(visit, narrow, axe, story):  # noqa: F811
    for width, theme, lang in LOOKS[::3]:  # each of twenty figures is a map or a chart: contrast is of a theme, order of a width
        narrow(width, 844 if width < 500 else 900)
        page = visit(f"view=story&story={story}&theme={theme}&lang={lang}")
        for name in page.run(NAMES):
            reach(page, name)
        assert violations(page, axe) == [], (width, theme, lang)
