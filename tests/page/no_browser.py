"""Where chromium or selenium is not installed, no test of this folder runs: each is skipped, and the summary names them with
the command that installs what is missing."""
import ast
import importlib.util
import shutil

import pytest

NEEDED = {"chromium": shutil.which("chromium"), "chromium-driver": shutil.which("chromedriver"), "python3-selenium": importlib.util.find_spec("selenium")}
MISSING = [package for package, found in NEEDED.items() if not found]
WHY = f"missing: {' '.join(MISSING)}; as root run: apt-get install -y --no-install-recommends {' '.join(MISSING)}"


class NotRun(pytest.Item):
    def runtest(self):
        pytest.skip(WHY)


class Unread(pytest.File):
    """A file of tests that is not imported, as it may import what is missing."""

    def collect(self):
        for node in ast.parse(self.path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield NotRun.from_parent(self, name=node.name)


def pytest_pycollect_makemodule(module_path, parent):
    return Unread.from_parent(parent, path=module_path) if MISSING else None


def pytest_terminal_summary(terminalreporter):
    names = sorted({report.nodeid for report in terminalreporter.stats.get("skipped", [])})
    if MISSING and names:
        terminalreporter.write_line("The web page was not opened in a browser, so these tests were skipped:")
        for name in names:
            terminalreporter.write_line("  " + name)
        terminalreporter.write_line(WHY)
