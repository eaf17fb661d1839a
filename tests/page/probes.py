"""What a figure shows, against values asked separately: the pixels of a heat map by its own data- attributes."""
import base64
import functools
import io
import json
import urllib.parse
import urllib.request

import numpy as np

# Read from a copy: the browser would warn that the canvas itself is read.
PIXELS = """const canvas = arguments[0];
const copy = Object.assign(document.createElement('canvas'), { width: canvas.width, height: canvas.height }).getContext('2d', { willReadFrequently: true });
copy.drawImage(canvas, 0, 0);
const bytes = copy.getImageData(0, 0, canvas.width, canvas.height).data;
let text = '';
for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode.apply(null, bytes.subarray(i, i + 0x8000));
return [canvas.width, canvas.height, btoa(text)];"""
# Of the cells of a map: what is wrong, or their colours and, for each cell, the number of its colour.
CELLS = """const [canvas, x0, y0, rows, cols, rowPx, colPx] = arguments, { width, height } = canvas;
if (x0 + cols * colPx > width || y0 + rows * rowPx > height) return [`${rows} x ${cols} cells do not fit on the canvas of ${height} x ${width}`];
const copy = Object.assign(document.createElement('canvas'), { width, height }).getContext('2d', { willReadFrequently: true });
copy.drawImage(canvas, 0, 0);
const pixels = new Uint32Array(copy.getImageData(0, 0, width, height).data.buffer), numbers = new Map(), cells = new Uint8Array(rows * cols);
let drawn = 0, inside = 0, last = null, number = 0;
for (let i = 0; i < pixels.length; i += 1) drawn += pixels[i] >>> 24 !== 0;
for (let row = 0; row < rows; row += 1)
  for (let col = 0; col < cols; col += 1) {
    const first = (y0 + row * rowPx) * width + x0 + col * colPx, colour = pixels[first];
    for (let y = 0; y < rowPx; y += 1)
      for (let x = 0; x < colPx; x += 1) if (pixels[first + y * width + x] !== colour) return ['a cell has two colours'];
    if (colour >>> 24) inside += rowPx * colPx;
    if (colour !== last) {
      if (!numbers.has(colour)) numbers.set(colour, numbers.size);
      [last, number] = [colour, numbers.get(colour)];
    }
    cells[row * cols + col] = number;
  }
if (drawn !== inside) return ['something is drawn beside the cells'];
if (numbers.size > 256) return ['more colours than a map has'];
let text = '';
for (let i = 0; i < cells.length; i += 0x8000) text += String.fromCharCode.apply(null, cells.subarray(i, i + 0x8000));
return ['', [...numbers.keys()], btoa(text)];"""
ATTRIBUTES = "return Object.fromEntries([...arguments[0].attributes].map((a) => [a.name, a.value]));"
HEATS = """return [...document.querySelectorAll(`${arguments[0]}[data-config="${arguments[1]}"] canvas[data-heat]`)]
  .map((one) => [one, Object.fromEntries([...one.attributes].map((a) => [a.name, a.value]))]);"""
COUNTS = ("row0", "col0", "rows", "cols", "row-step", "col-step", "row-px", "col-px", "x0", "y0")


def attributes(page, element):
    return page.run(ATTRIBUTES, element)


# ---- Values from the server, in a request of their own -----------------------------------------------------------------------


def post(server, path, **request):
    body = json.dumps(request).encode()
    with urllib.request.urlopen(urllib.request.Request(server.url + path, body, {"Content-Type": "application/json"}), timeout=60) as answer:
        return answer.read()


def ask(server, path, **request):
    return json.loads(post(server, path, **request))


def get(server, path, **query):
    with urllib.request.urlopen(server.url + path + ("?" + urllib.parse.urlencode(query) if query else ""), timeout=60) as answer:
        return json.loads(answer.read())


def array(server, request, output, path="/encode", dtype="f64", **form):
    """An output as NumPy has it; form: slice, reduce."""
    asked = {**request, "outputs": [output], "format": "npy", **form}
    return np.load(io.BytesIO(post(server, path, **asked, dtype=dtype)))


@functools.lru_cache
def colours(url, name):
    """[255,3] of uint8."""
    with urllib.request.urlopen(url + "/cmaps") as answer:
        rows = {row["name"]: row["colors"] for row in json.load(answer)["cmaps"]}
    assert len(rows[name]) == 255
    return np.array([[int(colour[i:i + 2], 16) for i in (1, 3, 5)] for colour in rows[name]], np.uint8)


# ---- A heat map on the page --------------------------------------------------------------------------------------------------


class Heat:
    """The canvas of a figure, as it stands now."""

    def __init__(self, page, config="a", nth=0, figure="figure", found=None):
        self.page = page
        self.canvas, self.attributes = found or page.run(HEATS, figure, config)[nth]
        found = {name[5:]: value for name, value in self.attributes.items() if name.startswith("data-")}
        for name in COUNTS:
            setattr(self, name.replace("-", "_"), int(found[name]))
        self.output, self.reduce, self.cmap = found["output"], found["reduce"], found["cmap"]
        self.at = [int(index) for index in found["at"].split(",")] if found["at"] else []
        self.min, self.max = float(found["min"]), float(found["max"])

    def pixels(self):
        width, height, text = self.page.run(PIXELS, self.canvas)
        return np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)

    def blocks(self):
        """[rows, cols, 4]: the colour of each drawn cell. Each block must have one colour, and nothing may lie beside them."""
        wrong, *found = self.page.run(CELLS, self.canvas, self.x0, self.y0, self.rows, self.cols, self.row_px, self.col_px)
        assert not wrong, wrong
        colours = np.array(found[0], "<u4").view(np.uint8).reshape(-1, 4)
        return colours[np.frombuffer(base64.b64decode(found[1]), np.uint8)].reshape(self.rows, self.cols, 4)

    def window(self, shape):
        """The slice that it shows of an output of this shape, its last two axes drawn."""
        rows, cols = shape[-2:]
        assert self.row0 % self.row_step == self.col0 % self.col_step == 0
        row_end, col_end = min(rows, self.row0 + self.rows * self.row_step), min(cols, self.col0 + self.cols * self.col_step)
        assert row_end - self.row0 > (self.rows - 1) * self.row_step and col_end - self.col0 > (self.cols - 1) * self.col_step, "cells that are not there are drawn"
        return [*self.at, [self.row0, row_end, self.row_step], [self.col0, col_end, self.col_step]]

    def numbers(self, values):
        """k of each value: 254 (v - min) / (max - min), rounded half to even."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return np.clip(np.rint(254 * ((values - self.min) / (self.max - self.min))), 0, 254)

    def check(self, shown, exact=None):
        """Every drawn cell against the values that it should have, bit for bit; and near those of double precision."""
        blocks, shown = self.blocks(), np.asarray(shown, np.float64)
        assert shown.shape == blocks.shape[:2], (shown.shape, blocks.shape)
        finite = np.isfinite(shown)
        assert (blocks[..., 3] == np.where(finite, 255, 0)).all(), "alpha is 0 exactly where a value is not finite"
        palette = colours(self.page.url, self.cmap)
        expected = palette[np.where(finite, self.numbers(shown), 0).astype(int)]
        wrong = np.argwhere((blocks[..., :3] != expected).any(-1) & finite)
        assert not len(wrong), f"{len(wrong)} of {finite.sum()} cells, first {wrong[0]}: value {shown[tuple(wrong[0])]!r}, colour {blocks[tuple(wrong[0])]}"
        if exact is not None:
            nearest = self.numbers(exact)
            assert (np.abs(nearest - self.numbers(shown))[finite] <= 1).all()

    def check_against(self, server, request, shape, path="/encode"):
        """Against this request's output in f32, as drawn, and in f64."""
        form = {"slice": self.window(shape), "reduce": self.reduce}
        self.check(array(server, request, self.output, path, "f32", **form), array(server, request, self.output, path, "f64", **form))


def shape_of(server, request, output, path="/encode"):
    return ask(server, path, **request, outputs=[output], data=False)["tensors"][output]["shape"]


# ---- The read-out ------------------------------------------------------------------------------------------------------------


def readout(page, figure="figure"):
    """{config: (row, col, value text)} of a read-out, also of what stands beside the picture."""
    found = {}
    for element in page.all("[data-readout] output"):
        given = attributes(page, element)
        found[given["data-config"]] = (int(given["data-row"]), int(given["data-col"]), given.get("data-value"))  # None until it is there
    return found


def json_text(server, request, output, index, path="/encode"):
    """A single value as the API's JSON writes it, in the request's own dtype."""
    answer = post(server, path, **request, outputs=[output], slice=list(index)).decode()
    assert '"data":' in answer
    return answer.rpartition('"data":')[2].split("}")[0].strip('[]"')
