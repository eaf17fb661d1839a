"""The usual torch code for attention maps, timed for bench_answers: prints the seconds of one map, thread CPU time, one
thread, the median of rounds.

    peers_attention.py ROW [ROUNDS] [N] [D] [HEADS]      ROW: probs, shaw, shaw_pairs, transformer_xl, deberta, or numpy

Each is written the way papers' and libraries' code is: the map as one expression on whole tensors, terms of position by
gather or by a tensor of pairs (shaw_pairs), Transformer-XL's by the shift of a padded view. Rows are those of the same
name in bench_answers.c: 8 heads, 2048 positions, 64 channels. What depends on the length alone (biases, indices, encoded
distances) is made before the clock starts, as a careful caller would.
"""

import math
import statistics
import sys
import time

import numpy
import torch


def seeded(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)) * 0.5


def alibi_bias(n, heads):
    slopes = torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)])
    at = torch.arange(n)
    return -slopes[:, None, None] * (at[None, :] - at[:, None]).abs()[None]


def probs(n, d, heads):
    """softmax(q kT s + bias)"""
    q, k, bias = seeded(heads, n, d), seeded(heads, n, d), alibi_bias(n, heads)
    return lambda: torch.softmax(q @ k.transpose(1, 2) * d**-0.5 + bias, -1)


def numpy_probs(n, d, heads):
    q, k, bias = (x.numpy() for x in (seeded(heads, n, d), seeded(heads, n, d), alibi_bias(n, heads)))

    def run():
        s = q @ k.transpose(0, 2, 1) * numpy.float32(d**-0.5) + bias
        s = numpy.exp(s - s.max(-1, keepdims=True))
        return s / s.sum(-1, keepdims=True)

    return run


def clipped(n, most):
    at = torch.arange(n)
    return (at[None, :] - at[:, None]).clamp(-most, most) + most


def shaw(n, d, heads, most=64):
    """q kT + gather(q relT): rel [2 most + 1, d]"""
    q, k, rel = seeded(heads, n, d), seeded(heads, n, d), seeded(2 * most + 1, d)
    index = clipped(n, most).expand(heads, n, n)
    return lambda: torch.softmax((q @ k.transpose(1, 2) + torch.gather(q @ rel.T, 2, index)) * d**-0.5, -1)


def shaw_pairs(n, d, heads, most=64):
    """The paper's: a tensor [n, n, d] of the vectors of all pairs."""
    q, k, rel = seeded(heads, n, d), seeded(heads, n, d), seeded(2 * most + 1, d)
    index = clipped(n, most)

    def run():
        pairs = rel[index]
        by_pair = (q.transpose(0, 1) @ pairs.transpose(1, 2)).transpose(0, 1)
        return torch.softmax((q @ k.transpose(1, 2) + by_pair) * d**-0.5, -1)

    return run


def transformer_xl(n, d, heads):
    """(q + u) kT + shift((q + v) rT), r of the distances n - 1 to -(n - 1)"""
    q, k, r = seeded(heads, n, d), seeded(heads, n, d), seeded(heads, 2 * n - 1, d)
    u, v = seeded(heads, 1, d), seeded(heads, 1, d)

    def shifted(x):
        """Row i of [heads, n, 2n - 1] begins n - 1 - i later: a column of zeros, another shape, a row less."""
        padded = torch.cat([torch.zeros(heads, n, 1), x], -1)
        return padded.view(heads, -1)[:, n:].view(heads, n, 2 * n - 1)[:, :, :n]

    return lambda: torch.softmax(((q + u) @ k.transpose(1, 2) + shifted((q + v) @ r.transpose(1, 2))) * d**-0.5, -1)


def deberta_buckets(n, buckets=256, most=512):
    rel = torch.arange(n)[:, None] - torch.arange(n)[None, :]
    mid = buckets // 2
    size = rel.abs().clamp(min=mid)
    far = torch.ceil(torch.log(size / mid) / math.log((most - 1) / mid) * (mid - 1)) + mid
    bucket = torch.where(rel.abs() <= mid, rel.float(), far * rel.sign())
    return (bucket.long() + buckets).clamp(0, 2 * buckets - 1)


def deberta(n, d, heads, buckets=256):
    """q kT + gather(q pos_keyT) + gather(k pos_queryT) transposed"""
    q, k = seeded(heads, n, d), seeded(heads, n, d)
    pos_key, pos_query = seeded(heads, 2 * buckets, d), seeded(heads, 2 * buckets, d)
    c2p_index = deberta_buckets(n, buckets).expand(heads, n, n)
    p2c_index = c2p_index.transpose(1, 2).contiguous()

    def run():
        scale = 1 / math.sqrt(3 * d)
        s = q @ (k * scale).transpose(1, 2)
        s = s + torch.gather(q @ pos_key.transpose(1, 2), 2, c2p_index) * scale
        p2c = torch.gather(k @ pos_query.transpose(1, 2), 2, p2c_index).transpose(1, 2)
        return torch.softmax(s + p2c * scale, -1)

    return run


ROWS = {
    "probs": probs,
    "numpy": numpy_probs,
    "shaw": shaw,
    "shaw_pairs": shaw_pairs,
    "transformer_xl": transformer_xl,
    "deberta": deberta,
}


def main(row, rounds=5, n=2048, d=64, heads=8):
    torch.set_num_threads(1)
    run = ROWS[row](n, d, heads)
    seconds = []
    with torch.no_grad():
        run()
        for _ in range(rounds):
            begun = time.thread_time()
            run()
            seconds.append(time.thread_time() - begun)
    print(f"{statistics.median(seconds):.9g}")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ROWS:
        sys.exit(__doc__)
    main(sys.argv[1], *(int(x) for x in sys.argv[2:]))
