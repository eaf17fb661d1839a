"""Requests for pictures, and their indices as NumPy computes them."""
import json

import numpy as np

from png_reader import Picture
from tensors import from_raw, multipart, npy

HEAT = {"scheme": "sinusoidal", "len": 50, "dim": 64}


def numbers(server, path="/encode", **fields):
    """The first tensor as doubles."""
    return next(iter(from_raw(server.ask(path, **fields, format="raw")).values())).astype("f8")


def matrix(tensor):
    """The last two axes, leading ones at 0; one axis is one row."""
    tensor = np.atleast_2d(tensor)
    return tensor[(0,) * (tensor.ndim - 2)]


def level(values, vmin=None, vmax=None):
    """0 … 254 for each finite value, -1 for the others."""
    finite = values[np.isfinite(values)]
    low = vmin if vmin is not None else finite.min()
    high = vmax if vmax is not None else finite.max()
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(values <= low, 0, np.where(values >= high, 1, (values - low) / (high - low)))
        return np.where(np.isfinite(values), np.rint(share * 254), -1).astype(int)


def picture_of(server, path="/encode", **fields):
    response = server.ask(path, **fields, format="png")
    assert response.headers["Content-Type"] == "image/png"
    assert int(response.headers["Content-Length"]) == len(response.body)
    return Picture(response.body)


def check(picture, values, zoom, **limits):
    expected = level(values, **limits)
    assert (picture.height, picture.width) == (expected.shape[0] * zoom, expected.shape[1] * zoom)
    blocks = picture.pixels.reshape(expected.shape[0], zoom, expected.shape[1], zoom)
    assert (blocks == blocks[:, :1, :, :1]).all(), "an element is a square of one colour"
    indices = blocks[:, 0, :, 0].astype(int)
    clear = picture.opacity[indices] == 0
    assert (clear == (expected < 0)).all()
    assert set(picture.opacity) == {0, 255} and len(picture.palette) == 256
    opaque = np.flatnonzero(picture.opacity)
    assert (opaque[expected[~clear]] == indices[~clear]).all()


def special(server, array, format_, **fields):
    """A picture of these very numbers: rotary of one channel pair at position 0 hands q through."""
    text = json.dumps({"scheme": "rope", "positions": [0] * len(array), "format": format_, **fields})
    body, headers = multipart(request=text, q=npy(np.asarray(array)))
    response = server.post("/rotate", body, headers)
    assert response.status == 200, response
    return response
