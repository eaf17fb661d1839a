#!/usr/bin/env python3
"""Prints the knots of the colour maps in api/formats/picture.c.

    python3 tests/tools/colour_knots.py /usr/lib/python3/dist-packages/matplotlib/_cm_listed.py

viridis and magma (N. J. Smith, S. van der Walt, E. Firing; CC0): knots of broken lines fitted by least squares to their
256 published colours, which the file named holds (Debian's python3-matplotlib). coolwarm: K. Moreland, "Diverging Color
Maps for Scientific Visualization", ISVC 2009, from its formula between the colours 59,76,192 and 180,4,38.
"""
import re
import sys

import numpy as np

N_KNOTS = 33
WHITE = np.array([0.95047, 1.0, 1.08883])
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def published(path, name):
    """The list _NAME_data of the file, read as data."""
    body = re.search(rf"_{name}_data = \[(.*?)\]\]", open(path).read(), re.S)[1]
    return np.array(re.findall(r"\d+\.\d+", body), float).reshape(-1, 3)


def fit(colours):
    """Knots of the broken line nearest to the colours."""
    at, knots = np.linspace(0, 1, len(colours)), np.linspace(0, 1, N_KNOTS)
    hats = np.maximum(0, 1 - np.abs(at[:, None] - knots) * (N_KNOTS - 1))
    return np.linalg.lstsq(hats, colours, rcond=None)[0]


def to_msh(rgb):
    """sRGB to Moreland's polar form of CIELAB: magnitude, saturation, hue."""
    linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    xyz = TO_XYZ @ linear / WHITE
    x, y, z = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    lightness, a, b = 116 * y - 16, 500 * (x - y), 200 * (y - z)
    magnitude = np.sqrt(lightness ** 2 + a ** 2 + b ** 2)
    return np.array([magnitude, np.arccos(lightness / magnitude), np.arctan2(b, a)])


def from_msh(msh):
    magnitude, saturation, hue = msh
    lightness = magnitude * np.cos(saturation)
    a, b = magnitude * np.sin(saturation) * np.array([np.cos(hue), np.sin(hue)])
    f = (lightness + 16) / 116 + np.array([a / 500, 0, -b / 200])
    xyz = np.where(f > 6 / 29, f ** 3, 3 * (6 / 29) ** 2 * (f - 4 / 29)) * WHITE
    linear = np.linalg.inv(TO_XYZ) @ xyz
    return np.where(linear > 0.0031308, 1.055 * np.abs(linear) ** (1 / 2.4) - 0.055, 12.92 * linear)


def white_side(end, white):
    """White with the hue that makes the way from this end even (the paper's AdjustHue)."""
    magnitude, saturation, hue = end
    spin = saturation * np.sqrt(max(0, white ** 2 - magnitude ** 2)) / (magnitude * np.sin(saturation))
    return np.array([white, 0, hue + spin if hue > -np.pi / 3 else hue - spin])


def coolwarm():
    cool, warm = (to_msh(np.array(c) / 255) for c in ((59, 76, 192), (180, 4, 38)))
    white = max(cool[0], warm[0], 88)
    for t in np.linspace(0, 1, N_KNOTS):
        end = cool if t < 0.5 else warm
        away = abs(2 * t - 1)
        yield from_msh(away * end + (1 - away) * white_side(end, white))


def show(name, knots):
    print(f"/* {name} */")
    print(", ".join("0x%02x%02x%02x" % tuple(np.clip(np.rint(k * 255), 0, 255).astype(int)) for k in knots))


if __name__ == "__main__":
    for name in ("viridis", "magma"):
        show(name, fit(published(sys.argv[1], name)))
    show("coolwarm", list(coolwarm()))
