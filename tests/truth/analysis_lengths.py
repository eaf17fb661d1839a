"""The analyses that look beyond one sequence: receptive, extrapolation, properties, difference."""
import functools

import numpy as np

import truth.analysis_plans as plans
import truth.analysis_rows as by_rows
import truth.attention as attention
import truth.bias
from truth.absolute import seeded
from truth.analysis_rows import ROUNDINGS, first_extreme, size, unless_noise
from truth.answers import relative

# ---- receptive -------------------------------------------------------------------------------------------------------------


def receptive(plan, ask):
    q, k = plan.queries, plan.positions
    last = plan.bias(slice(-1, None))[:, 0]
    probs, far = attention.softmax(last), np.abs(k - q[-1])
    distances = np.unique(far[np.isfinite(last[0])])
    mass = np.stack([probs[:, far <= d].sum(1) for d in distances], 1)
    reach = {name: [float(distances[np.argmax(m >= share - 1e-12)]) for m in mass]
             for name, share in (("half", 0.5), ("ninety", 0.9), ("ninety_nine", 0.99))}
    widest = max(reach["ninety"])
    return {"value": widest, "witness": {"head": reach["ninety"].index(widest)}, **reach, "entropy": attention.entropy(probs),
            "mean_distance": (probs * far).sum(1)}, {"receptive": mass}


# ---- extrapolation ---------------------------------------------------------------------------------------------------------


def unseen_pairs(train_len, eval_len, is_causal):
    """Share of the pairs of eval_len positions that are train_len apart or more."""
    beyond = (eval_len - train_len) * (eval_len - train_len + 1)
    return beyond / (eval_len * (eval_len + 1) if is_causal else eval_len ** 2)


def unseen_angles(plan, train_len, eval_len, margin=1e-13):
    """[C]: share of the distances train_len .. eval_len - 1 whose angle no shorter distance reaches. A factor that divides
    makes angles that are just reached: they are seen, with a negative margin they are not."""
    plain = np.array([plans.extended(w) for w in plan.frequencies(False)], np.longdouble)
    scaled = np.array([plans.extended(w) for w in plan.on(eval_len, 0).frequencies()], np.longdouble)
    turn = 2 * np.arccos(np.longdouble(-1))
    angle = np.fmod(np.arange(train_len, eval_len, dtype=np.longdouble)[:, None] * scaled, turn)
    reached = (train_len - 1) * plain
    share = (angle > reached * (1 + margin)).mean(0) if len(angle) else np.zeros(len(plain))
    return np.where(reached >= turn, 0.0, share).astype(float)


def saturated(plan, n):
    """Share of the pairs of n positions in a last bucket, of those that the mask lets through."""
    at = np.arange(n, dtype=float)
    if plan.scheme == "t5":
        lags = np.arange(1 - n, n)
        parameters = {"num_buckets": 32, "max_distance": 128, "bidirectional": True, **plan.t5_parameters()}
        buckets = np.array([truth.bias.t5_bucket(int(lag), **parameters) for lag in lags])
        side = parameters["num_buckets"] // 2 if parameters["bidirectional"] else parameters["num_buckets"]
        last = (side - 1, 2 * side - 1) if parameters["bidirectional"] else (side - 1,)
        weight = n - np.abs(lags)
        weight = np.where(lags > 0, 0, weight) if plan.get("causal", False) else weight
        return float((np.isin(buckets, last) * weight).sum() / weight.sum())
    index, last = relative.ROWS[plan.scheme](plan.config, at, at)
    return float(np.isin(index, (0, last)).mean())


@functools.lru_cache(8)
def content(name, shape, seed):
    return seeded(name, shape, seed, 1.0).astype(float)


def attend(plan, train_len, eval_len, seed):
    """Entropy, mean distance and mass from train_len on, of 16 random queries a head at the ends of both lengths."""
    long = plan.on(eval_len, 0)
    heads, dim = {"rotary": (8, plan.get("head_dim", 64)), "bias": (plan.num_heads, 64)}.get(plan.family, (1, None))
    rows = long.rows() if plan.family == "absolute" else None
    dim = rows.shape[1] if dim is None else dim
    q, k = content("q", (heads, 16, dim), seed), content("k", (heads, eval_len, dim), seed)
    k = k + rows if rows is not None else long.rotate(k, True) if plan.family == "rotary" else k
    entropy, mean_distance, beyond = [], [], 0.0
    for at in (train_len - 1, eval_len - 1):
        turned = q + rows[at] if rows is not None else q
        if plan.family == "rotary":
            turned = long.rotate(q[:, :, None], at=slice(at, at + 1))[:, :, 0]
        scores = np.einsum("hqd,hkd->hqk", turned, k[:, :at + 1]) / np.sqrt(dim)
        if plan.family == "bias":
            scores = scores + long.bias(slice(at, at + 1))[:, :, :at + 1]
        probs, far = attention.softmax(scores), at - np.arange(at + 1)
        entropy.append(attention.entropy(probs).mean())
        mean_distance.append((probs * far).sum(-1).mean())
        beyond = probs[..., far > train_len - 1].sum(-1).mean()
    return {"entropy": entropy, "mean_distance": mean_distance, "mass_beyond": beyond}


def extrapolation(plan, ask):
    train_len = ask.get("train_len", plan.train_len)
    eval_len = ask.get("eval_len", 2 * train_len)
    out, tensors = {"train_len": train_len, "eval_len": eval_len, "value": None, "witness": None}, {}
    if plan.scheme == "learned":
        rows = len(plan.table) - plan.get("row_offset", 0)
        out["positions_without_row"] = max(0, eval_len - max(rows, 0)) / eval_len
    if plan.is_ladder:
        share = unseen_angles(plan, train_len, eval_len)
        out["unseen_angles"], tensors["unseen"] = share.mean(), share
        out["witness"] = {"pair": int(np.argmax(share > 0))} if (share > 0).any() else None
    out["unseen_pairs"] = unseen_pairs(train_len, eval_len, plan.get("causal", False))
    if plan.scheme in ("t5", "shaw", "deberta"):
        out["saturated"] = {"train": saturated(plan, train_len), "eval": saturated(plan, eval_len)}
    if plan.family != "relative":
        try:
            out["attention"] = attend(plan, train_len, eval_len, ask.get("seed", 0))
        except plans.Undefined:
            pass
    headlines = [out.get("positions_without_row"), out.get("unseen_angles"), out.get("attention", {}).get("mass_beyond"), out["unseen_pairs"]]
    out["value"] = next(h for h in headlines if h is not None)
    return out, tensors


# ---- properties ------------------------------------------------------------------------------------------------------------


def is_grid(plan):
    return "grid" in plan.config and plan.axes > 1 and plan.family in ("absolute", "rotary")


def with_first_axis(plan, n):
    """The same configuration on a grid with another first axis."""
    return plan.with_sequence(grid=[n, *plan.config["grid"][1:]])


def wish_unique(plan):
    rows = plan.rows()
    value, _ = by_rows.least_distance(rows)
    half = with_first_axis(plan, -(-plan.config["grid"][0] // 2)) if is_grid(plan) else plan.first(-(-plan.n // 2))
    if plan.family == "bias":
        whole = dict(zip(*plan.distance_rows()))
        change = max((size(row - whole[d]) for d, row in zip(*half.distance_rows()) if d in whole), default=0.0)
    else:
        change = size(half.rows() - rows[:half.n])
    holds = value is not None and value > 1e-6 * size(rows) and change <= 1e-12 * size(rows)
    return {"value": value, "length_change": change, "holds": holds}


def steps_of_grid(plan):
    """The largest residual of a matrix for one step along an axis: fitted to the cells whose coordinates, weighted by 1, 2 …, do not
    sum to a multiple of 4, and judged on the others."""
    rows, grid = plan.rows(), plan.config["grid"]
    cells, worst = np.indices(grid).reshape(len(grid), -1), []
    judged = (cells * np.arange(1, len(grid) + 1)[:, None]).sum(0) % 4 == 0
    for axis, n in enumerate(grid):
        stride, inside = int(np.prod(grid[axis + 1:])), cells[axis] + 1 < n
        fit, judge = np.nonzero(inside & ~judged)[0], np.nonzero(inside & judged)[0]
        if len(fit) and len(judge):
            m = np.linalg.lstsq(rows[fit], rows[fit + stride], rcond=1e-12)[0]
            worst.append(np.abs(rows[judge] @ m - rows[judge + stride]).max())
    return max(worst, default=None)


def wish_linear(plan):
    if is_grid(plan):
        value, scale = steps_of_grid(plan), size(plan.rows())
        value = value / scale if value is not None and scale else value
    elif plan.family == "bias":
        bias = plan.bias()
        with np.errstate(invalid="ignore"):
            moved = np.abs(bias[:, 1:, 1:] - bias[:, :-1, :-1])
        moved, scale = moved[np.isfinite(moved)], size(plan.rows())
        value = None if not moved.size else size(moved) / scale if scale else 0.0
    else:
        value = by_rows.shift(plan, {"k": [1]})[0]["by_k"][0]["relative"] if plan.is_run and plan.n > 1 else None
    return {"value": value, "holds": bool(value is not None and value < 1e-6)}


def wish_generalises(plan):
    try:
        start = int(plan.positions[0]) if plan.is_run else plan.get("offset", 0)
        longer = with_first_axis(plan, 8 * plan.config["grid"][0]) if is_grid(plan) else plan.on(8 * plan.n, start)
        near, far = size(plan.rows()), size(longer.rows())
    except plans.Undefined:
        return {"value": None, "holds": False}
    ratio = far / near if near else 1.0
    return {"value": ratio, "holds": plan.family == "bias" or ratio <= 2}


def wish_deterministic(plan):
    return {"value": plan.weights(), "holds": plan.weights() == 0}


def spread_on_grid(plan):
    """The largest difference of products whose rows have the same difference of coordinates, over the largest product."""
    rows, grid = plan.rows(), plan.config["grid"]
    gram, cells, worst = rows @ rows.T, np.indices(grid).reshape(len(grid), -1), 0.0
    apart = cells[:, :, None] - cells[:, None, :]
    number = np.ravel_multi_index([a + n for a, n in zip(apart, grid)], [2 * n for n in grid])
    for each in np.unique(number):
        worst = max(worst, np.ptp(gram[number == each]))
    return worst / np.abs(gram).max()


def wish_n_dimensional(plan):
    if is_grid(plan):
        value = spread_on_grid(plan)
        return {"value": value, "holds": bool(value < 1e-9) or plan.scheme in ("learned", "fourier")}
    if plan.scheme not in ("sinusoidal", "rope") or plan.width < 8:
        return {"value": None, "holds": plan.scheme in ("learned", "fourier")}
    size_name = "dim" if plan.scheme == "sinusoidal" else "head_dim"
    kept = {name: plan.config[name] for name in ("base", "layout") if plan.config.get(name) is not None}
    rows = plans.Plan({"scheme": plan.scheme, size_name: plan.width, "grid": [8, 8], **kept}).rows()
    gram, worst = rows @ rows.T, 0.0
    y, x = np.divmod(np.arange(64), 8)
    for dy in range(-7, 8):
        for dx in range(-7, 8):
            same = gram[(y[:, None] - y == dy) & (x[:, None] - x == dx)]
            worst = max(worst, same.max() - same.min())
    value = worst / np.abs(gram).max()
    return {"value": value, "holds": bool(value < 1e-9)}


def properties(plan, ask):
    wishes = {"unique": wish_unique(plan), "linear": wish_linear(plan), "generalises": wish_generalises(plan),
              "deterministic": wish_deterministic(plan), "n_dimensional": wish_n_dimensional(plan)}
    return {"value": sum(bool(w["holds"]) for w in wishes.values()), "witness": None, "wishes": wishes}, {}


# ---- difference ------------------------------------------------------------------------------------------------------------


def outputs(plan):
    """The tensors of an encoding by name, the query's axis first."""
    if plan.family == "absolute":
        return {"encoding": plan.rows()}
    if plan.family == "bias":
        return {"bias": plan.bias().transpose(1, 0, 2)}
    cos, sin = plan.tables()
    head_dim = plan.get("head_dim", 64)
    v = np.tile(1 + np.arange(head_dim) / head_dim, (plan.n, 1))
    scale = {"scale": plan.scale()} if plan.scheme == "xpos" else {}
    return {"cos": cos, "sin": sin, **scale, "rotated": plan.rotate(v)}


def steps(x, dtype):
    """The number of each value in the order of its dtype: neighbours differ by 1, infinities follow the largest."""
    if dtype == "f64":
        bits = np.asarray(x, "f8").view("i8").astype(object)
        return np.where(bits < 0, -(bits + 2 ** 63), bits)
    if dtype == "bf16":
        bits = (np.asarray(x, "f4").view("i4") >> 16).astype("i8")
        return np.where(bits < 0, -(bits + 2 ** 15), bits)
    kind, sign = {"f32": ("f4", 31), "f16": ("f2", 15)}[dtype]
    bits = np.asarray(x, kind).view("i" + kind[1]).astype("i8")
    return np.where(bits < 0, -(bits + 2 ** sign), bits)


def difference(plan, ask, other=None):
    """From another plan."""
    dtype, tolerance = ask.get("dtype", "f32"), ask.get("tolerance", 1e-6)
    ours, theirs = outputs(plan), outputs(other)
    names = [name for name in ours if name in theirs and ours[name].shape == theirs[name].shape]
    if not names:
        return {"value": None, "witness": None, "max_ulp": None, "equal": None, "first": None, "compared": []}, {}
    apart, far, equal, count, scale = {}, 0, 0, 0, 0.0
    curve = np.zeros(len(ours[names[0]]))
    for name in names:
        a, b = ROUNDINGS[dtype](theirs[name]), ROUNDINGS[dtype](ours[name])
        with np.errstate(invalid="ignore"):
            gap = np.where(a == b, 0.0, np.abs(a - b))
        apart[name] = gap
        far = max(far, int(np.abs(steps(a, dtype) - steps(b, dtype)).max()))
        equal, count = equal + int((a == b).sum()), count + a.size
        scale = max(scale, *(size(x[np.isfinite(x)]) for x in (a, b)))
        curve = np.maximum(curve, gap.reshape(len(gap), -1).max(1))
    value = max(float(gap.max()) for gap in apart.values())
    witness = next({"output": name, "index": list(first_extreme(gap, scale)[1])} for name, gap in apart.items()
                   if gap.max() >= value - 1e-9 * abs(value) - 1e-12 * scale or gap.max() == value)
    over = np.nonzero(curve > tolerance)[0]
    first = None
    if len(over):
        row = int(over[0])
        first = {"output": next(n for n in names if apart[n][row].max() > tolerance), "row": row}
    return {"value": value, "witness": unless_noise(value, scale, witness), "max_ulp": far, "equal": equal / count, "first": first,
            "compared": names}, {"difference": curve}
