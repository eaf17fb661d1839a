"""The analyses of rows: unique, bounds, step, collisions, shift, similarity. Each function takes a plan and the request's parameters and
returns its fields and its tensors."""
import numpy as np

import truth.analysis_plans as plans
from truth import to_bf16
from truth.rotary import xpos_scale


def to_f8(doubles, bits, least, largest, beyond):
    """The nearest number of so many significant bits, ties to even; beyond the largest: NaN or an infinity."""
    doubles = np.asarray(doubles, float)
    quantum = 2.0 ** np.maximum(np.frexp(doubles)[1] - bits, least)
    rounded = np.rint(doubles / quantum) * quantum
    return np.where(np.abs(rounded) > largest, np.copysign(beyond, doubles), rounded)


ROUNDINGS = {"f64": lambda x: np.asarray(x, float), "f32": lambda x: np.asarray(x, float).astype("f4").astype(float),
             "f16": lambda x: np.asarray(x, float).astype("f2").astype(float), "bf16": lambda x: to_bf16(np.asarray(x, float)).astype(float),
             "f8_e4m3": lambda x: to_f8(x, 4, -9, 448, np.nan), "f8_e5m2": lambda x: to_f8(x, 3, -16, 57344, np.inf)}


# ---- Extremes: what is nearly as extreme is as extreme, the first one is the witness --------------------------------------


def size(rows):
    """S: the largest |entry|."""
    return float(np.abs(rows).max()) if rows.size else 0.0


def first_extreme(values, scale, is_least=False):
    """(value, index tuple) of the largest (least) one, the first of all within 1e-9 |extreme| + 1e-12 S; NaN stands for nothing."""
    values = np.asarray(values, float)
    extreme = float(np.nanmin(values) if is_least else np.nanmax(values))
    if np.isinf(extreme):
        near = values == extreme
    else:
        near = np.abs(values - extreme) <= 1e-9 * abs(extreme) + 1e-12 * scale
    return extreme, tuple(int(i) for i in np.argwhere(near)[0])


def unless_noise(value, scale, witness):
    """Nothing witnesses a rounding error."""
    return None if abs(value) <= 1e-9 * scale else witness


def named(plan, *indices):
    """Rows by index, those of a bias by distance."""
    if plan.family != "bias":
        return {"rows": list(indices)}
    distances = plan.distance_rows()[0]
    return {"distances": [distances[i] for i in indices]}


def one_named(plan, index):
    return {key[:-1]: values[0] for key, values in named(plan, index).items()}


# ---- unique, bounds, step, collisions --------------------------------------------------------------------------------------


def least_distance(rows):
    """min over i < j of the distance of two rows, the lexicographically first pair."""
    if len(rows) < 2:
        return None, None
    nearest = [np.sqrt(((rows[i + 1:] - rows[i]) ** 2).sum(1)) for i in range(len(rows) - 1)]
    least = min(d.min() for d in nearest)
    margin = 1e-9 * least + 1e-12 * size(rows)
    for i, d in enumerate(nearest):
        if d.min() <= least + margin:
            return float(least), (i, i + 1 + int(np.argmax(d <= least + margin)))


def unique(plan, ask):
    value, pair = least_distance(plan.rows())
    return {"value": value, "witness": pair and named(plan, *pair)}, {}


def bounds(plan, ask):
    rows = plan.rows()
    value, (row, column) = first_extreme(np.abs(rows), size(rows))
    norms = np.sqrt((rows ** 2).sum(1))
    return {"value": value, "witness": unless_noise(value, size(rows), {**one_named(plan, row), "column": column}),
            "min": rows.min(), "max": rows.max(), "norm_min": norms.min(), "norm_max": norms.max()}, {}


def neighbours(plan):
    """Pairs (row, neighbour), or (row, None): the next one; on a grid along the last axis; of a distance, the next nearer to 0."""
    if plan.family == "bias":
        distances = plan.distance_rows()[0]
        sides = [[0.0] + [d for d in distances if d < 0], [0.0] + [d for d in distances if d > 0]]
        index = {d: i for i, d in enumerate(distances)}
        nearer = {far: near for side in sides for near, far in zip(side, side[1:])}
        return [(i, index.get(nearer.get(d))) for i, d in enumerate(distances)][1:]
    line = plan.config["grid"][-1] if "grid" in plan.config else plan.n
    return [(i, i + 1 if (i + 1) % line else None) for i in range(plan.n - 1)]


def step(plan, ask):
    rows, found = plan.rows(), neighbours(plan)
    steps = np.array([np.nan if b is None else np.linalg.norm(rows[b] - rows[a]) for a, b in found])
    tensors = {"step": steps}
    if not np.isfinite(steps).any():
        return {"value": None, "witness": None, "mean": None, "min": None}, tensors
    value, (i,) = first_extreme(steps, size(rows))
    return {"value": value, "witness": unless_noise(value, size(rows), named(plan, *found[i])), "mean": np.nanmean(steps),
            "min": np.nanmin(steps)}, tensors


def equal_rows(rows):
    """(how many rows equal an earlier one, first pair)."""
    first, pairs = {}, []
    for i, row in enumerate(rows + 0.0):
        key = row.tobytes()
        if key in first:
            pairs.append((first[key], i))
        else:
            first[key] = i
    return len(pairs), min(pairs, default=None)


def collisions(plan, ask):
    by_dtype, rows = {}, plan.rows()
    for dtype in ask.get("dtypes", ["f32", "f16", "bf16"]):
        with np.errstate(over="ignore"):
            repeated, pair = equal_rows(ROUNDINGS[dtype](rows))
        by_dtype[dtype] = {"repeated": repeated, "witness": pair and named(plan, *pair)}
    last = by_dtype[dtype]
    return {"value": last["repeated"], "witness": last["witness"], "dtypes": by_dtype}, {}


# ---- shift -----------------------------------------------------------------------------------------------------------------


def paired_columns(plan):
    """[(sine's column, cosine's column, w)] of a sinusoid with a cosine for every sine; None if some wave stands alone."""
    columns = [(j, *column) for j, column in enumerate(plan.columns()) if column]
    sines = [(j, w) for j, name, w in columns if name == "sin"]
    cosines = [(j, w) for j, name, w in columns if name == "cos"]
    if len(sines) != len(cosines):
        return None
    return [(a, b, w) for (a, w), (b, _) in zip(sines, cosines)]


def exact_shift(plan, k):
    """M with r_{i+k} = M r_i, or None: an addition theorem for each pair."""
    if plan.scheme == "none":
        return np.eye(plan.width)
    if plan.family == "rotary":
        pairs = [(plan.width // 2 + c, c, w * plan.get("direction", 1)) for c, w in enumerate(plan.frequencies())]
    else:
        pairs = paired_columns(plan) if plan.scheme == "sinusoidal" else None
    if pairs is None:
        return None
    m = np.zeros((plan.rows().shape[1],) * 2)
    for sine, cosine, w in pairs:
        (c,), (s,) = (x[0] for x in plans.turned([k], [w]))
        m[sine, sine], m[sine, cosine], m[cosine, cosine], m[cosine, sine] = c, s, c, -s
    return m


def fitted_shift(rows, k):
    """Minimum-norm least squares on the pairs of even i."""
    x, y = rows[:-k][::2], rows[k:][::2]
    u, s, v = np.linalg.svd(x, full_matrices=False)
    kept = s > 1e-12 * s[0] if len(s) else s > 0
    return (v[kept].T @ ((u[:, kept].T @ y) / s[kept][:, None])).T


def is_fragile(rows, k):
    """Singular values so near the cut that rounding decides which are kept, or that amplify rounding."""
    s = np.linalg.svd(rows[:-k][::2], compute_uv=False)
    return bool(np.any((s > 1e-15 * s[0]) & (s < 1e-8 * s[0])))


def shift_of(rows, k, m):
    """Largest residual and its (row, column); an exact M is tested on all rows, a fitted one on odd ones."""
    start, by = (0, 1) if m is not None else (1, 2)
    matrix = fitted_shift(rows, k) if m is None else m
    residual = np.abs(rows[k:] - rows[:-k] @ matrix.T)[start::by]
    if not residual.size:
        return matrix, None, None
    value, (i, column) = first_extreme(residual, size(rows))
    return matrix, value, (start + by * i, column)


def shift(plan, ask):
    rows, by_k, matrices = plan.rows(), [], []
    scale = size(rows)
    for k in ask.get("k", [1]):
        exact = exact_shift(plan, k)
        matrix, value, at = shift_of(rows, k, exact)
        matrices.append(matrix)
        witness = None if value is None else unless_noise(value, scale, {"k": k, "row": at[0], "column": at[1]})
        relative = None if value is None else value / scale if scale else 0.0
        by_k.append({"k": k, "value": value, "relative": relative, "witness": witness})
    worst = max((entry for entry in by_k if entry["value"] is not None), key=lambda entry: entry["value"], default=None)
    return {"value": worst and worst["value"], "witness": worst and worst["witness"], "by_k": by_k,
            "method": "fit" if exact is None else "exact"}, {"shift_matrix": np.array(matrices)}


# ---- similarity ------------------------------------------------------------------------------------------------------------


def paired_rows(plan, pairing, other_base):
    columns = plan.columns()
    if pairing in ("sin", "cos"):
        columns = [c for c in columns if c and c[0] == pairing]
    elif pairing == "mismatched":
        other = plans.Plan({**plan.config, "base": other_base}).columns()
        columns = [b if a and a[0] == "cos" else a for a, b in zip(columns, other)]
    elif pairing != "paired":
        cosines = [c for c in columns if c[0] == "cos"]
        order = {"repeated": cosines[:(len(cosines) + 1) // 2] * 2, "flipped": cosines[::-1], "shifted": cosines[1:] + cosines[-1:]}
        others = iter(order[pairing])
        columns = [next(others) if c[0] == "cos" else c for c in columns]
    return plans.waves(columns, plan.positions)


def similarity(plan, ask):
    pairing = ask.get("pairing", "paired")
    rows = plan.rows() if pairing == "paired" else paired_rows(plan, pairing, ask.get("other_base"))
    gram = decaying_products(plan) if plan.scheme == "xpos" else rows @ rows.T
    diagonals = [np.diagonal(gram, -d) for d in range(plan.n)]  # gram[j + d, j] by j
    means = np.array([np.mean(d) for d in diagonals])
    spread = np.array([d.max() - d.min() for d in diagonals])
    scale = float(np.abs(means).max())
    value, (at,) = first_extreme(spread, scale)
    least, most = first_extreme(diagonals[at], scale, True)[1][0], first_extreme(diagonals[at], scale)[1][0]
    minimum, (lowest,) = first_extreme(means, scale, True)
    rises = np.nonzero(np.diff(means) > 1e-9 * scale)[0]
    return {"value": value, "witness": unless_noise(value, scale, {"distance": at, "rows": [at + least, at + most]}),
            "peak": means[0], "minimum": {"distance": lowest, "value": minimum},
            "rises_at": int(rises[0]) + 1 if len(rises) else None}, {"similarity": means, "spread": spread, "gram": gram}


def decaying_products(plan):
    """xpos: a query is scaled up, a key down, so that only their distance counts."""
    w, d = plan.frequencies(), np.arange(plan.n, dtype=float)
    cos = plans.turned(d, w)[0]
    scales = (xpos_scale(way * d, plan.width, plan.get("scale_base", 512.0), plan.get("gamma", 0.4)) for way in (1, -1))
    below, above = (plan.attention_factor ** 2 * (scale * cos).sum(1) for scale in scales)
    i = np.arange(plan.n)
    lag = i[:, None] - i[None]
    return np.where(lag >= 0, below[np.abs(lag)], above[np.abs(lag)])
