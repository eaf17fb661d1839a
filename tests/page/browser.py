"""A page in the browser, by the attributes that it promises to tests."""
import contextlib
import json
import time
import urllib.parse

from selenium.common.exceptions import JavascriptException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

SECONDS = 30


def fragment(view, *configs, **keys):
    """The hash of a view with these configurations as a, b…"""
    named = {"view": view, **{slot: json.dumps(config) for slot, config in zip("abcd", configs)}, **keys}
    return "&".join(f"{key}={urllib.parse.quote(str(value), safe='')}" for key, value in named.items())


def until(condition, seconds=SECONDS, what="what was waited for"):
    """What counts is the time between tries, as in connection.within: a loaded machine takes longer for each."""
    for _ in range(int(seconds / 0.02)):
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} does not happen within {seconds} s")


# Waits in the browser, where looking costs nothing; what is 0 only between two jobs does not count.
SETTLED = """const [seconds, done] = arguments;
const root = document.documentElement;
const is = () => root.dataset.busy === '0';
if (is()) return done(true);
const end = (found) => { watch.disconnect(); clearTimeout(late); done(found); };
const look = () => { if (is()) setTimeout(() => { if (is()) end(true); }, 5); };
const watch = new MutationObserver(look);
const late = setTimeout(() => end(false), seconds * 1000);
watch.observe(root, { attributes: true, attributeFilter: ['data-busy'] });"""

# Before its first frame is on the screen a browser may drop what is pressed: the second frame begins after the first.
PAINTED = "const [done] = arguments; requestAnimationFrame(() => requestAnimationFrame(() => done()));"

TOLD = """const [hash, done] = arguments, before = location.href;
const told = () => setTimeout(done);
addEventListener('hashchange', told, { once: true });
location.hash = hash;
if (location.href === before) { removeEventListener('hashchange', told); done(); }"""

# To another address, until it is shown or so many seconds are over.
GO = f"""const [hash, seconds, done] = arguments;
(function () {{ {TOLD} }})(hash, () => (function () {{ {SETTLED} }})(seconds, done));"""

PASTE = """const data = new DataTransfer(); data.setData('text/plain', arguments[0]);
document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));"""
# A file of this name with this text or these bytes.
DROP = """const [name, content] = arguments, data = new DataTransfer();
data.items.add(new File([typeof content === 'string' ? content : Uint8Array.from(content)], name));
document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));"""
# Files of these names and bytes at once.
DROP_FILES = """const data = new DataTransfer();
for (const [name, bytes] of arguments[0]) data.items.add(new File([Uint8Array.from(bytes)], name));
document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));"""
# What a hand does to a field.
PUT = """const [selector, value, event] = arguments, field = document.querySelector(selector);
field.value = value;
field.dispatchEvent(new Event(event, { bubbles: true }));"""
# What a hand does to a select; selenium asks for each option to find one.
CHOOSE = """const [select, value] = arguments;
const option = [...select.options].find((one) => one.value === value);
if (select.disabled || !option || option.disabled) return false;
select.value = value;
for (const type of ['input', 'change']) select.dispatchEvent(new Event(type, { bubbles: true }));
return true;"""
DATA = "return [...document.querySelectorAll(`figure[data-config=\"${arguments[0]}\"] data[data-what=\"${arguments[1]}\"]`)].map((one) => Number(one.value))"


def keys_of(address):
    """The keys of an address, its configurations read."""
    pairs = (part.split("=", 1) for part in address.partition("#")[2].split("&") if "=" in part)
    keys = {key: urllib.parse.unquote(text) for key, text in pairs}
    return {key: json.loads(text) if key in "abcd" else text for key, text in keys.items()}


class Page:
    def __init__(self, driver, url):
        self.driver, self.url = driver, url

    def open(self, fragment="", settle=True):
        self.driver.get("about:blank")  # so that the same address is loaded anew
        self.driver.get(f"{self.url}/#{fragment}")
        if settle:
            self.settle()
            self.driver.execute_async_script(PAINTED)
        return self

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def read(self, script, *arguments):
        """The same for plain values, in half the time: without chromedriver's own script around it, which looks for elements."""
        call = f"(function () {{ {script} }})(...{json.dumps(arguments)})"
        found = self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": call, "returnByValue": True})
        if "exceptionDetails" in found:
            raise JavascriptException(str(found["exceptionDetails"].get("exception", {}).get("description")))
        return found["result"].get("value")

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        """textContent, also of what a tab hides."""
        return self.read("return document.querySelector(arguments[0])?.textContent", selector)

    def attribute(self, selector, name):
        return self.read("return document.querySelector(arguments[0])?.getAttribute(arguments[1])", selector, name)

    def is_busy(self):
        return self.run("return document.documentElement.dataset.busy") != "0"

    def settle(self, seconds=SECONDS):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.driver.execute_async_script(SETTLED, min(5, end - time.monotonic())):
                    return
            except JavascriptException:  # the document has given way to another
                continue
        raise AssertionError(f"data-busy=0 does not happen within {seconds} s")

    def hash(self, fragment):
        """Another address, as a link gives it; returns once the page has been told."""
        self.driver.execute_async_script(TOLD, fragment)

    def state(self, config="a"):
        return self.attribute(f'figure[data-config="{config}"]', "data-state")

    def wait_state(self, state, config="a", seconds=SECONDS):
        until(lambda: self.state(config) == state, seconds, f"state {state}, not {self.state(config)},")

    def notice(self, name):
        return self.text(f'figure [data-notice="{name}"]')

    def field(self, name, config="a"):
        return self.find(f'[data-field="{name}"][data-config="{config}"]')

    def type(self, name, text, config="a", enter=False):
        field = self.field(name, config)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text + (Keys.ENTER if enter else ""))

    def click(self, selector):
        """By script: what is clicked may stand under something that just moves."""
        self.run("document.querySelector(arguments[0]).click()", selector)

    def focused_field(self):
        return self.read("return document.activeElement?.dataset.field")

    def copied(self, kind):
        return self.text(f'pre[data-copy="{kind}"]')

    def address(self):
        """{view, a, b…}; keys that stand at their default are not in it."""
        return keys_of(self.read("return location.hash"))

    def config(self, slot="a"):
        return self.address()[slot]

    def put(self, selector, value, event="input"):
        self.run(PUT, selector, value, event)
        self.settle()

    def data(self, what, slot="a"):
        """The numbers of a figure by their data-what."""
        return self.read(DATA, slot, what)

    def press(self, selector, *keys):
        self.find(selector).send_keys(*keys)
        self.settle()

    def count(self, selector):
        return self.read("return document.querySelectorAll(arguments[0]).length", selector)

    def go(self, fragment):
        """To another address, until it is shown."""
        if not self.driver.execute_async_script(GO, fragment, 5):
            self.settle()

    def do(self, selector):
        """A click, until what it brings about is shown."""
        self.click(selector)
        self.settle()

    @contextlib.contextmanager
    def media(self, media="", **features):
        """As a system that asks for this, such as prefers_reduced_motion="reduce", or as on paper."""
        asked = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": asked})
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})

    def give(self, token, keep=False):
        """To the dialog that asks for a token."""
        until(lambda: self.all('dialog[open] [data-field="token"]'), what="the dialog")
        field = self.find('dialog[open] [data-field="token"]')
        assert field.get_attribute("type") == "password" and self.focused_field() == "token"
        if keep:
            self.find('dialog[open] input[type="checkbox"]').click()
        field.send_keys(token, "\n")

    def comes(self, condition, what, seconds=SECONDS):
        """Until this is so, and nothing is under way any more."""
        until(condition, seconds, what)
        self.settle()
