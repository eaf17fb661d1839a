"""Pictures of lines, clock hands and paths: where their attributes say a value stands, and what colour is there."""
import math

import numpy as np

from probes import array, ask

SAMPLES_MAX = 600

# For each place: is there a pixel of this colour within `reach`?
FIND = """
const [canvas, places, reach] = arguments;
const { width, height } = canvas;
const copy = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
copy.drawImage(canvas, 0, 0);
const { data } = copy.getImageData(0, 0, width, height);
const near = (x, y, [r, g, b]) => {
  const i = 4 * (y * width + x);
  return data[i + 3] > 200 && Math.max(Math.abs(data[i] - r), Math.abs(data[i + 1] - g), Math.abs(data[i + 2] - b)) <= 24;
};
return places.map(([px, py, color]) => {
  for (let y = Math.floor(py) - reach; y <= Math.floor(py) + reach; y += 1)
    for (let x = Math.floor(px) - reach; x <= Math.floor(px) + reach; x += 1)
      if (x >= 0 && y >= 0 && x < width && y < height && near(x, y, color)) return true;
  return false;
});
"""
DATASET = "return { ...arguments[0].dataset }"
LEGEND = "return [...document.querySelectorAll(arguments[0] + ' [data-series]')].map(e => [e.dataset.series, e.dataset.color, e.textContent])"


def rgb(text):
    return [int(text[at:at + 2], 16) for at in (1, 3, 5)]


def floats(text):
    return [float(part) for part in text.split(",")]


class Lines:
    """A canvas [data-lines] and its legend, in a figure."""

    def __init__(self, page, config="a", within=""):
        self.page, self.selector = page, f'{within} figure[data-figure][data-config="{config}"]'
        self.read()

    def read(self):
        self.canvas = self.page.find(f"{self.selector} canvas[data-lines]")
        data = self.page.run(DATASET, self.canvas)
        self.box = [float(data[name]) for name in ("x0", "y0", "w", "h")]
        self.x_range = [float(data["xMin"]), float(data["xMax"])]
        self.y_range = [float(data["yMin"]), float(data["yMax"])]
        self.scales = data["xScale"], data["yScale"]
        self.legend = {series: (color, text) for series, color, text in self.page.run(LEGEND, self.selector)}
        return self

    def pixel(self, x, y):
        """Bitmap pixels of a value."""
        x0, y0, w, h = self.box
        return (x0 + share(x, self.x_range, self.scales[0]) * w, y0 + h - share(y, self.y_range, self.scales[1]) * h)

    def missing(self, series, points, reach=1):
        """Those of the points at which the line's colour is not within `reach` pixels."""
        step = max(1, len(points) // SAMPLES_MAX)
        points = [point for point in points[::step] if math.isfinite(point[1])]
        places = [[*self.pixel(x, y), rgb(self.legend[series][0])] for x, y in points]
        found = self.page.run(FIND, self.canvas, places, reach)
        return [point for point, there in zip(points, found) if not there]

    def check(self, wanted, marks=2):
        """{series: [(x, y)]}: each line is where its values are, but where another may lie above it, and under so many marks; all but the
        first have dashes, whose gaps are shorter than eight points and a quarter of the line."""
        assert wanted.keys() <= self.legend.keys(), (wanted.keys(), self.legend)
        first, last = self.x_range
        rows = {series: {x: self.pixel(x, y)[1] for x, y in points if first <= x <= last and math.isfinite(y)} for series, points in wanted.items()}
        for nth, (series, points) in enumerate(wanted.items()):
            above = [row for other, row in rows.items() if other != series]
            apart = [(x, y) for x, y in points if x in rows[series] and all(abs(row.get(x, math.inf) - rows[series][x]) > 8 for row in above)]
            missing = self.missing(series, apart, 2)
            # of a hundred points of a high picture a steep line beside it covers one
            assert len(missing) <= (max(marks, 8 + len(apart) / 4) if nth else marks + len(apart) // 100), (series, missing[:5])


def share(value, span, scale):
    lo, hi = span
    if scale == "log":
        value, lo, hi = math.log10(value), math.log10(lo), math.log10(hi)
    return (value - lo) / (hi - lo)


def column(page, config, output, col, positions=None):
    """[(position, value)] of a column, as doubles; at real positions, or at those of the configuration."""
    body = {name: value for name, value in config.items() if positions is None or name not in ("len", "offset")}
    if positions is None:
        values = array(page, body, output, slice=[None, col])
        positions = config.get("positions") or config.get("offset", 0) + np.arange(len(values))
    else:
        values = array(page, {**body, "positions": list(map(float, positions))}, output, slice=[None, col])
    return list(zip(map(float, positions), map(float, values)))


class Hands:
    """The canvas of clock hands: where each stands. A key's hand ends before its tip, so that a query's is seen beneath."""

    def __init__(self, page, config="a", within=""):
        self.page, self.canvas = page, page.find(f'{within} figure[data-figure][data-config="{config}"] canvas[data-hands]')
        found = page.run(DATASET, self.canvas)
        self.pairs = [int(pair) for pair in found["pairs"].split(",")]
        self.centres = np.array([floats(found[axis]) for axis in ("cx", "cy")]).T
        self.unit, self.radius = float(found["unit"]), float(found["radius"])
        self.positions = {"m": float(found["m"]), "n": float(found["n"])}
        self.colours = {hand: rgb(found[hand]) for hand in "qk"}

    def tip(self, i, xy):
        return self.centres[i] + np.array([xy[0], -xy[1]]) * self.unit

    def check(self, vectors, pairs):
        """vectors: {"q": …, "k": …} rotated; pairs: their channels."""
        longest = max(np.hypot(v[x], v[y]) for v in vectors.values() for x, y in pairs)
        assert self.unit * longest < self.radius and max(self.pairs) < len(pairs)
        places, names = [], []
        for i, pair in enumerate(self.pairs):
            q, k = (vectors[hand][list(pairs[pair])] for hand in "qk")
            for hand, tip in (("q", q), ("k", 0.8 * k)):
                if hand == "q" or np.hypot(*(k - q)) >= 0.5:
                    places.append([*self.tip(i, tip).tolist(), self.colours[hand]])
                    names.append((hand, pair))
        found = self.page.run(FIND, self.canvas, places, 2)
        assert all(found), [name for name, there in zip(names, found) if not there]


def vectors(page, config, m, n):
    """q and k rotated, asked for by this test; drawn as the view draws them where the configuration has none; and which channels pair."""
    body = {name: value for name, value in config.items() if name not in ("len", "offset")}
    resolved = ask(page, "/encode", **{**{name: value for name, value in body.items() if name not in "qk"}, "len": 1, "data": False})["config"]
    drawn = {"shape": [1, resolved["head_dim"]], "seed": 186, "std": 1}
    request = {"q": drawn, "k": drawn, **body, "q_positions": [m], "k_positions": [n]}
    count, first = resolved["rotary_dim"] // 2, resolved["rotary_offset"]
    pairs = [(first + 2 * i, first + 2 * i + 1) if resolved["layout"] == "interleaved" else (first + i, first + i + count) for i in range(count)]
    return {name: array(page, request, name, "/rotate").reshape(-1) for name in "qk"}, pairs


class Path:
    """The canvas of a trajectory: three columns as a path in space."""

    def __init__(self, page, config="a", within=""):
        self.page, self.canvas = page, page.find(f'{within} figure[data-figure][data-config="{config}"] canvas[data-path]')
        self.data = page.run(DATASET, self.canvas)
        self.cols = [int(col) for col in self.data["cols"].split(",")]

    def check(self, values):
        """Rows of three values; some lie under the number of the cursor or the name of a column."""
        x, y = (floats(self.data[axis]) for axis in "xy")
        places = [[x[0] + np.dot(x[1:], row), y[0] + np.dot(y[1:], row), rgb(self.data["color"])] for row in values]
        found = self.page.run(FIND, self.canvas, [[float(px), float(py), color] for px, py, color in places], 1)
        assert found.count(False) <= 3, [row for row, there in enumerate(found) if not there]
