"""recursive and floater (FLOATER, arXiv 2003.09229) in NumPy and float64: each row is computed from the row before
it."""
import math

import numpy as np

ACTIVATIONS = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0.0), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "identity": lambda x: x,
               "gelu": lambda x: x * np.array([math.erfc(-v / math.sqrt(2)) / 2 for v in x])}


def layers_of(weights):
    """w1, b1, w2, b2, … of a dict as [(w, b), …] in float64."""
    n = sum(name[0] == "w" for name in weights)
    return [(np.asarray(weights[f"w{i}"], float), np.asarray(weights[f"b{i}"], float)) for i in range(1, n + 1)]


def network(layers, p, activation, t=None):
    """W2 act(W1 p + b1) + b2; where t is given it is the last input of every layer."""
    for i, (w, b) in enumerate(layers):
        p = w @ (p if t is None else np.append(p, t)) + b
        if i + 1 < len(layers):
            p = ACTIVATIONS[activation](p)
    return p


def recursive(n, p0, activation="tanh", residual=False, output_activation=False, **weights):
    """[n, dim]: row 0 = p0, row k+1 = f(row k), or row k + f(row k); output_activation: also after the last layer."""
    layers, rows = layers_of(weights), [np.asarray(p0, float)]
    while len(rows) < n:
        step = network(layers, rows[-1], activation)
        step = ACTIVATIONS[activation](step) if output_activation else step
        rows.append(rows[-1] + step if residual else step)
    return np.array(rows[:n])


# Each method: y(t + s) from h, t, y and the step s.


def euler(h, t, y, s):
    return y + s * h(t, y)


def midpoint(h, t, y, s):
    return y + s * h(t + s / 2, y + s / 2 * h(t, y))


def rk4(h, t, y, s):
    """The classic tableau."""
    k1 = h(t, y)
    k2 = h(t + s / 2, y + s / 2 * k1)
    k3 = h(t + s / 2, y + s / 2 * k2)
    k4 = h(t + s, y + s * k3)
    return y + s * (k1 + 2 * k2 + 2 * k3 + k4) / 6


def rk4_38(h, t, y, s):
    """Kutta's 3/8 rule, which torchdiffeq calls rk4."""
    k1 = h(t, y)
    k2 = h(t + s / 3, y + s * k1 / 3)
    k3 = h(t + 2 * s / 3, y + s * (k2 - k1 / 3))
    k4 = h(t + s, y + s * (k1 - k2 + k3))
    return y + s * (k1 + 3 * k2 + 3 * k3 + k4) / 8


METHODS = {"rk4_38": rk4_38, "rk4": rk4, "midpoint": midpoint, "euler": euler}


def floater(n, p0, dt=0.01, substeps=5, method="rk4_38", activation="relu", time_input=True, **weights):
    """[n, dim]: row k = p(k dt) of dp/dt = h(p, t), p(0) = p0, each row substeps steps after the one before."""
    layers, step, s = layers_of(weights), METHODS[method], dt / substeps
    rows = [np.asarray(p0, float)]
    while len(rows) < n:
        y, start = rows[-1], (len(rows) - 1) * dt
        for i in range(substeps):
            y = step(lambda t, p: network(layers, p, activation, t if time_input else None), start + i * s, y, s)
        rows.append(y)
    return np.array(rows[:n])
