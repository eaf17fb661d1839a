"""Bias of windows (Swin, Swin v2, BEiT), written the way the published models build it: coordinates
of all tokens by meshgrid, their differences, one number for each; NumPy and mpmath, float64."""
import mpmath
import numpy as np


def grid_differences(h, w):
    """[2, N, N]: rows and columns of the query minus those of the key, tokens row by row."""
    places = np.stack(np.meshgrid(np.arange(h), np.arange(w), indexing="ij")).reshape(2, -1)
    return places[:, :, None] - places[:, None, :]


def swin_index(h, w):
    dy, dx = grid_differences(h, w)
    return (dy + h - 1) * (2 * w - 1) + (dx + w - 1)


def beit_index(h, w):
    patches, m = swin_index(h, w), (2 * h - 1) * (2 * w - 1)
    index = np.zeros((h * w + 1, h * w + 1), patches.dtype)
    index[1:, 1:] = patches
    index[0, :] = m
    index[:, 0] = m + 1
    index[0, 0] = m + 2
    return index


INDEX = {"swin": swin_index, "swinv2": swin_index, "beit": beit_index}


def rows(scheme, h, w):
    return (2 * h - 1) * (2 * w - 1) + (3 if scheme == "beit" else 0)


def tokens(scheme, h, w):
    return h * w + (scheme == "beit")


def looked_up(scheme, table, h, w):
    """[H, N, N] of a table [rows, H]."""
    return np.moveaxis(np.asarray(table)[INDEX[scheme](h, w)], -1, 0)


def coordinate(rel, pretrained):
    """Log-spaced: 8 at the end of the pretraining's window, its logarithm to base 8."""
    if pretrained == 1 or rel == 0:
        return 0.0
    t = 8 * rel / (pretrained - 1)
    return np.sign(t) * np.log2(1 + abs(t)) / np.log2(8)


def swinv2_table(h, w, w1, b1, w2, pretrained=None):
    """[(2h-1)(2w-1), H]"""
    p = pretrained or (h, w)
    coords = np.array([[coordinate(y, p[0]), coordinate(x, p[1])] for y in range(1 - h, h) for x in range(1 - w, w)])
    hidden = np.maximum(coords @ np.asarray(w1, "f8").T + b1, 0)
    return 16 / (1 + np.exp(-(hidden @ np.asarray(w2, "f8").T)))


def swinv2(h, w, w1, b1, w2, pretrained=None):
    return looked_up("swinv2", swinv2_table(h, w, w1, b1, w2, pretrained), h, w)


def swinv2_exact(h, w, w1, b1, w2, pretrained=None):
    """The same with mpmath, nested lists [H][N][N]; all places at once would be slow only for large windows."""
    mpf, p = mpmath.mpf, pretrained or (h, w)

    def coord(rel, size):
        if size == 1 or rel == 0:
            return mpf(0)
        t = mpf(8 * rel) / (size - 1)
        return mpmath.sign(t) * mpmath.log(1 + abs(t), 2) / 3

    def bias(head, dy, dx):
        y, x = coord(dy, p[0]), coord(dx, p[1])
        hidden = [max(mpf(a) * y + mpf(b) * x + mpf(c), mpf(0)) for (a, b), c in zip(w1, b1)]
        return 16 / (1 + mpmath.exp(-sum(mpf(v) * g for v, g in zip(w2[head], hidden))))

    tokens = [(y, x) for y in range(h) for x in range(w)]
    return [[[bias(head, yq - yk, xq - xk) for yk, xk in tokens] for yq, xq in tokens] for head in range(len(w2))]
