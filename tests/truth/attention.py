"""Attention under any scheme in float64 NumPy, every formula as in its paper: relative terms gather tensors of pairs
times channels, masks are looked up pair by pair. Slow and simple; nothing here comes from the C code."""
import math

import numpy as np

import truth


# ---- Masks and softmax -----------------------------------------------------------------------------------------------------


def seen(q_pos, k_pos, causal=False, window=None, window_right=None, key_mask=None, lens=None):
    """[Q, K], or [B, Q, K] if key_mask is [B, K]: which query sees which key."""
    out = truth.sees(np.asarray(q_pos)[:, None], np.asarray(k_pos)[None], causal, window, window_right)
    if lens is not None:
        piece = np.repeat(np.arange(len(lens)), lens)
        out &= piece[:, None] == piece[None]
    if key_mask is not None:
        mask = np.asarray(key_mask, bool)
        out = out & (mask[None] if mask.ndim == 1 else mask[:, None, :])
    return out


def softmax(scores, sinks=None):
    """Rows that see nothing are 0; a head's sink is one more score, which no key has."""
    with np.errstate(invalid="ignore"):
        top = scores.max(-1, keepdims=True)
        if sinks is not None:
            sinks = np.asarray(sinks, float)[:, None, None]
            top = np.maximum(top, sinks)
        e = np.where(np.isneginf(scores), 0, np.exp(scores - np.where(np.isneginf(top), 0, top)))
    total = e.sum(-1, keepdims=True) + (0 if sinks is None else np.exp(sinks - top))
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


def entropy(probs):
    return -np.sum(np.where(probs > 0, probs * np.log(np.where(probs > 0, probs, 1)), 0), -1)


def heads_of(k, num_heads):
    """Query head h reads key head floor(h / (H / Hkv))."""
    return np.repeat(k, num_heads // k.shape[1], axis=1)


def attend(q, k, v=None, *, scale=None, terms=0, bias=0, visible=None, softcap=None, cap_after_bias=False, last=None,
           values=None, sinks=None):
    """q [B, H, Q, d], k and v [B, Hkv, K, ·]; terms [B, H, Q, K] are scaled with q·k, bias is not; last(scores, q) is
    CoPE; values [Q, K, dv] are added to v."""
    q, k = np.asarray(q, float), heads_of(np.asarray(k, float), q.shape[1])
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = scale * (np.einsum("bhid,bhjd->bhij", q, k) + terms)
    if cap_after_bias:
        scores = scores + bias
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    if not cap_after_bias:
        scores = scores + bias
    if visible is not None:
        scores = np.where(visible if visible.ndim == 2 else visible[:, None], scores, -np.inf)
    if last is not None:
        scores = np.where(np.isneginf(scores), -np.inf, last(scores, q))
    probs = softmax(scores, sinks)
    out = {"scores": scores, "probs": probs, "row_entropy": entropy(probs),
           "empty_rows": int(np.isneginf(scores).all(-1).sum())}
    if v is not None:
        out["output"] = probs @ heads_of(np.asarray(v, float), q.shape[1])
        if values is not None:
            out["output"] = out["output"] + np.einsum("bhij,ijd->bhid", probs, values)
    return out


# ---- Relative terms: [B, H, Q, K], before the scale -------------------------------------------------------------------------


def shaw_index(q_pos, k_pos, p_min, p_max, direction="key_minus_query"):
    rel = np.asarray(k_pos)[None] - np.asarray(q_pos)[:, None]
    return np.clip(rel if direction == "key_minus_query" else -rel, p_min, p_max) - p_min


def by_query(q, table, index):
    """q_i · table[index]; table [rows, d], or [H, rows, d]."""
    if table.ndim == 2:
        return np.einsum("bhid,ijd->bhij", q, table[index])
    return np.einsum("bhid,hijd->bhij", q, table[:, index])


def by_key(k, table, index):
    if table.ndim == 2:
        return np.einsum("bhjd,ijd->bhij", k, table[index])
    return np.einsum("bhjd,hijd->bhij", k, table[:, index])


def resized_linearly(table, n):
    """[n, d] of a table [m, d], between the centres of its rows: each column by itself."""
    if len(table) == n:
        return table
    x = np.clip((np.arange(n) + 0.5) * len(table) / n - 0.5, 0, len(table) - 1)
    return np.stack([np.interp(x, np.arange(len(table)), column) for column in table.T], 1)


def sinusoid(delta, d_model, halves, base=10000.0):
    angle = np.asarray(delta, float)[..., None] * base ** (-2 * np.arange(d_model // 2) / d_model)
    if halves:
        return np.concatenate([np.sin(angle), np.cos(angle)], -1)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(*angle.shape[:-1], d_model)


def clamp(scheme, delta, clamp_len):
    if clamp_len <= 0:
        return delta
    return np.minimum(delta, clamp_len) if scheme == "transformer_xl" else np.clip(delta, -clamp_len, clamp_len)


def xl_terms(scheme, q, k, q_pos, k_pos, u, v_bias, w_r, clamp_len=-1, base=10000.0):
    """Transformer-XL (arXiv 1901.02860, section 3.3): u·k_j + (q_i + v)·(W_r R(delta))_h."""
    delta = np.asarray(q_pos)[:, None] - np.asarray(k_pos)[None]
    r = sinusoid(clamp(scheme, delta, clamp_len), w_r.shape[1], scheme != "conformer", base)
    r = (r @ w_r.T).reshape(*delta.shape, *u.shape)
    return np.einsum("hd,bhjd->bhj", u, k)[:, :, None] + np.einsum("bhid,ijhd->bhij", q + v_bias[:, None], r)


def xlnet_segments(q, seg_embed, r_s_bias, ids):
    """(q + r_s_bias)·seg_embed[1 where the segments differ]; query i has the id of key K - Q + i."""
    ids = np.asarray(ids)
    differ = (ids[len(ids) - q.shape[2]:, None] != ids[None]).astype(int)
    both = np.einsum("bhid,shd->sbhi", q + r_s_bias[:, None], seg_embed)
    return np.where(differ == 1, both[1][..., None], both[0][..., None])


def deberta_bucket(delta, position_buckets, max_relative_positions):
    """DeBERTa v2 and v3 (arXiv 2111.09543), decided with integers: ceil of the logarithm is the least s with (n/mid)^(mid-1) <= ((M-1)/mid)^s."""
    mid, n, m = position_buckets // 2, abs(delta), max_relative_positions - 1
    if position_buckets <= 0 or n <= mid:
        return delta
    s = max(0, math.ceil((mid - 1) * math.log(n / mid) / math.log(m / mid)) - 2)  # below it, so that integers decide
    while n ** (mid - 1) * mid ** s > m ** s * mid ** (mid - 1):
        s += 1
    return (mid + s) * (1 if delta > 0 else -1)


def deberta_index(q_pos, k_pos, position_buckets=-1, max_relative_positions=512, clamp_first=False):
    span = position_buckets if position_buckets > 0 else max_relative_positions
    known = {}

    def row(delta):
        if clamp_first:
            delta = max(min(delta, max_relative_positions - 1), 1 - max_relative_positions)
        return min(max(deberta_bucket(delta, position_buckets, max_relative_positions) + span, 0), 2 * span - 1)

    return np.array([[known[a - b] if a - b in known else known.setdefault(a - b, row(int(a - b))) for b in k_pos]
                     for a in q_pos], "i4")


def layer_norm(x, weight=1, bias=0, eps=1e-7):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight + bias


def split_heads(x, num_heads):
    """[rows, H·d] to [H, rows, d]."""
    return x.reshape(len(x), num_heads, -1).transpose(1, 0, 2)


def cope(pos_emb, q_pos, k_pos):
    """CoPE (arXiv 2405.18719), as the function of scores and q that attend() takes; the scores are masked already.
    The sum runs from the key to the query: keys after the query do not count."""
    before = np.asarray(k_pos)[None] <= np.asarray(q_pos)[:, None]

    def add(scores, q):
        with np.errstate(over="ignore"):
            gates = np.where(before, 1 / (1 + np.exp(-scores)), 0)
        p = np.minimum(np.cumsum(gates[..., ::-1], -1)[..., ::-1], len(pos_emb) - 1)
        z = np.einsum("bhid,nd->bhin", q, pos_emb)
        low, high, part = np.floor(p).astype(int), np.ceil(p).astype(int), p - np.floor(p)
        return scores + part * np.take_along_axis(z, high, -1) + (1 - part) * np.take_along_axis(z, low, -1)
    return add


# ---- Linear kernel (RoFormer, arXiv 2104.09864, equation 19) ----------------------------------------------------------------


def phi(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def linear(q, k, v=None, *, rotate=lambda x, which: x, visible=None):
    """rotate(x, "q" | "k") turns the result of phi, only in the numerator."""
    q, k = phi(np.asarray(q, float)), heads_of(phi(np.asarray(k, float)), q.shape[1])
    top = np.einsum("bhid,bhjd->bhij", rotate(q, "q"), rotate(k, "k"))
    below = np.einsum("bhid,bhjd->bhij", q, k)
    if visible is not None:
        visible = visible if visible.ndim == 2 else visible[:, None]
        top, below = np.where(visible, top, 0), np.where(visible, below, 0)
    total = below.sum(-1, keepdims=True)
    weights = np.divide(top, total, out=np.zeros_like(top), where=total > 0)
    out = {"weights": weights}
    if v is not None:
        out["output"] = weights @ heads_of(np.asarray(v, float), q.shape[1])
    return out
