"""POST /attention with arrays as .npy parts and raw answers: shared by the attention tests."""
import json

import numpy as np

from tensors import from_raw, multipart, npy


def attention(server, request, **arrays):
    """Tensors by name."""
    body, headers = multipart(request=json.dumps({**request, "format": "raw"}), **{n: npy(a) for n, a in arrays.items()})
    response = server.post("/attention", body, headers)
    assert response.status == 200, (request, response)
    return from_raw(response)


def one(server, request, output, **arrays):
    return attention(server, {**request, "outputs": [output]}, **arrays)[output]


def qkv(shape, kv_heads=None, k_len=None, v_dim=None, seed=0, dtype="f8", size=1.0):
    """q [B, H, Q, d] and k, v [B, kv_heads, k_len, ·] of random normals."""
    batch, heads, q_len, d = shape
    rng = np.random.default_rng(seed)
    kv = (batch, kv_heads or heads, k_len or q_len)
    draw = lambda *s: (size * rng.standard_normal(s)).astype(dtype)
    return draw(*shape), draw(*kv, d), draw(*kv, v_dim or d)
