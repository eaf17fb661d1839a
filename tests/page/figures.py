"""A figure of a story, by the attributes that it promises."""
import json
import urllib.parse

import numpy as np

from browser import until
from lines import Lines
from probes import Heat

PUT = """const [selector, value, event] = arguments, field = document.querySelector(selector);
field.value = value;
field.dispatchEvent(new Event(event, { bubbles: true }));"""


class Figure:
    """A figure of the story that the page shows, scrolled to and drawn."""

    def __init__(self, page, name, states=("ready",)):
        self.page, self.at = page, f"#fig-{name}"
        until(self.near, what=f"figure {name}")
        page.settle()
        assert set(self.states()) == set(states), (name, self.states())

    def near(self):
        """Figures above it take their room meanwhile."""
        self.page.run("document.querySelector(arguments[0]).scrollIntoView()", self.at)
        return self.states()

    def all(self, selector, what="e.textContent"):
        """This of every element e of the figure that matches."""
        return self.page.run(f"return [...document.querySelectorAll(arguments[0])].map((e) => {what})", f"{self.at} {selector}")

    def states(self, slot=None):
        return self.all("figure[data-figure]" + (f'[data-config="{slot}"]' if slot else ""), "e.dataset.state")

    def numbers(self, what, slot="a"):
        """Those of the caption; if it has none, all."""
        values = [self.all(f'[data-config="{slot}"] {within} data[data-what="{what}"]', "Number(e.value)") for within in ("figcaption", "")]
        return values[0] or values[1]

    def readout(self):
        """{slot: (row, col, value)}"""
        cells = self.all("[data-readout] output", "[e.dataset.config, Number(e.dataset.row), Number(e.dataset.col), Number(e.dataset.value)]")
        return {slot: tuple(cell) for slot, *cell in cells}

    def heat(self, slot="a", nth=0):
        return Heat(self.page, slot, nth, f"{self.at} figure[data-figure]")

    def shows(self, values, slot="a", nth=0):
        """All cells have the colours of these values."""
        values = np.asarray(values)
        self.heat(slot, nth).check(values.astype(np.float32), values.astype(np.float64))

    def lines(self, slot="a"):
        return Lines(self.page, config=slot, within=self.at)

    def slide(self, field, value, event="input"):
        self.page.run(PUT, f'{self.at} :is(input, select)[data-field="{field}"]', value, event)
        self.page.settle()
        return self

    def pick(self, field, value):
        return self.press(f'[data-field="{field}"] [data-value="{value}"]')

    def picked(self, field):
        return self.all(f'[data-field="{field}"] [aria-pressed=true]', "e.dataset.value")

    def press(self, selector):
        self.page.click(f"{self.at} {selector}")
        self.page.settle()
        return self

    def reset(self):
        """As the story shows it; it was not so before."""
        before = self.link()
        assert not self.is_untouched()
        self.press("[data-action=reset]")
        assert self.is_untouched() and self.link() != before
        return self

    def is_untouched(self):
        return self.all("[data-action=reset]", "e.disabled") == [True]

    def link(self):
        return self.page.attribute(f"{self.at} a[data-action=open]", "href")

    def address(self):
        """What its link leads to: {view, a, b…}."""
        keys = {key: urllib.parse.unquote(text) for key, text in (part.split("=", 1) for part in self.link().partition("#")[2].split("&"))}
        return {key: json.loads(text) if key in "abcd" else text for key, text in keys.items()}

    def config(self, slot="a"):
        return self.address()[slot]
