"""Line pictures in the browser: where their attributes say a value stands, and what colour is there."""
import json
import math
import urllib.request

SAMPLES_MAX = 600

# For each place: is there a pixel of this colour within `reach`?
FIND = """
const [selector, places, reach] = arguments;
const canvas = document.querySelector(selector + ' canvas[data-lines]');
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


class Lines:
    """A canvas [data-lines] and its legend, in a figure."""

    def __init__(self, page, view=None, config="a", within=""):
        figure = f'figure[data-figure="{view}"]' if view else "figure[data-figure]"
        self.page, self.selector = page, f'{within} {figure}[data-config="{config}"]'
        self.read()

    def read(self):
        data = self.page.run("return {...document.querySelector(arguments[0] + ' canvas[data-lines]').dataset}", self.selector)
        self.box = [float(data[name]) for name in ("x0", "y0", "w", "h")]
        self.x_range = [float(data["xMin"]), float(data["xMax"])]
        self.y_range = [float(data["yMin"]), float(data["yMax"])]
        self.scales = data["xScale"], data["yScale"]
        legend = "return [...document.querySelectorAll(arguments[0] + ' [data-series]')].map(e => [e.dataset.series, e.dataset.color, e.textContent])"
        self.legend = {series: (color, text) for series, color, text in self.page.run(legend, self.selector)}
        return self

    def color(self, series):
        value = self.legend[series][0]
        return [int(value[at:at + 2], 16) for at in (1, 3, 5)]

    def pixel(self, x, y):
        """Bitmap pixels of a value."""
        x0, y0, w, h = self.box
        return (x0 + share(x, self.x_range, self.scales[0]) * w, y0 + h - share(y, self.y_range, self.scales[1]) * h)

    def missing(self, series, points, reach=1):
        """Those of the points at which the line's colour is not within `reach` pixels."""
        step = max(1, len(points) // SAMPLES_MAX)
        points = [point for point in points[::step] if math.isfinite(point[1])]
        places = [[*self.pixel(x, y), self.color(series)] for x, y in points]
        found = self.page.run(FIND, self.selector, places, reach)
        return [point for point, there in zip(points, found) if not there]


def share(value, span, scale):
    lo, hi = span
    if scale == "log":
        value, lo, hi = math.log10(value), math.log10(lo), math.log10(hi)
    return (value - lo) / (hi - lo)


def post(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode())
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def column(url, config, output, col, positions=None):
    """[(position, value)] of a column, as doubles."""
    body = {**config, "dtype": "f64", "outputs": [output], "slice": [None, col]}
    if positions is not None:
        body.pop("len")
        offset = body.pop("offset", 0)
        body["positions"] = positions
    else:
        offset = body.get("offset", 0)
        positions = [offset + i for i in range(body["len"])]
    values = post(url, "/encode", body)["tensors"][output]["data"]
    return list(zip(positions, map(float, values)))
