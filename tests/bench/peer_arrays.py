"""The same tensors in NumPy and PyTorch, as their users write them: plain expressions whose results are new arrays."""
import math

import numpy as np

ROWS, DIM, BASE = 512, 128, 10000.0


def numpy_table():
    """[512, 128] in f32 from position 0: at 10^6, where ours is measured, the angles would be dearer to reduce (and wrong)."""
    positions = np.arange(ROWS, dtype=np.float32)[:, None]
    angles = positions * np.exp(np.arange(0, DIM, 2, dtype=np.float32) * np.float32(-math.log(BASE) / DIM))
    table = np.empty((ROWS, DIM), np.float32)
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)
    return table


def torch_table(torch, n=ROWS, dim=DIM):
    positions = torch.arange(n, dtype=torch.float32).unsqueeze(1)
    angles = positions * torch.exp(torch.arange(0, dim, 2) * (-math.log(BASE) / dim))
    table = torch.zeros(n, dim)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table


def torch_alibi(torch, heads=8, n=1024):
    slopes = torch.tensor([2.0 ** (-8 * (h + 1) / heads) for h in range(heads)])
    positions = torch.arange(n, dtype=torch.float32)
    distance = -(positions[None, :] - positions[:, None]).abs()
    return slopes[:, None, None] * distance[None]


class Torch:
    """One thread, as ours has. heads, n and width are those of the rows of bench_answers."""

    def __init__(self):
        import torch
        torch.set_num_threads(1)
        torch.set_grad_enabled(False)
        self.torch = torch
        self.noise = torch.Generator().manual_seed(0)

    def tensor(self, *shape):
        return self.torch.randn(*shape, generator=self.noise)

    # ---- Tables, rotations, biases, maps of probabilities: each returns the function that is measured ----

    def table(self):
        return lambda: torch_table(self.torch)

    def rotate_half(self, heads=8, n=1024, width=128):
        """The function that rotates q and k, of given cosines and sines [n, width]."""
        torch = self.torch
        q, k = self.tensor(1, heads, n, width), self.tensor(1, heads, n, width)
        inv_freq = BASE ** (-torch.arange(0, width, 2).float() / width)
        angles = torch.outer(torch.arange(n).float(), inv_freq)
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos(), angles.sin()

        def halves(x):
            return torch.cat((-x[..., width // 2:], x[..., :width // 2]), dim=-1)

        return lambda: (q * cos + halves(q) * sin, k * cos + halves(k) * sin)

    def alibi(self):
        return lambda: torch_alibi(self.torch)

    def t5(self, heads=8, n=1024, buckets=32, far=128):
        """The bucket of every pair, then a row of the table for each."""
        torch = self.torch

        def bias():
            weights = self.tensor(buckets, heads)
            relative = torch.arange(n)[None, :] - torch.arange(n)[:, None]
            half, distance = buckets // 2, relative.abs()
            exact = half // 2
            large = exact + (torch.log(distance.float() / exact) / math.log(far / exact) * (half - exact)).long()
            bucket = torch.where(distance < exact, distance, large.clamp(max=half - 1)) + (relative > 0).long() * half
            return torch.nn.functional.embedding(bucket, weights).permute(2, 0, 1).contiguous()
        return bias

    def qk(self, heads, n, width):
        return self.tensor(heads, n, width), self.tensor(heads, n, width), 1 / math.sqrt(width)

    def shaw(self, heads=8, n=2048, width=64, far=64):
        """Products with the 2·64+1 vectors, gathered by distance: [n, n, width] would be 1 GiB."""
        torch = self.torch
        q, k, scale = self.qk(heads, n, width)
        vectors = self.tensor(2 * far + 1, width)
        distance = (torch.arange(n)[None, :] - torch.arange(n)[:, None]).clamp(-far, far) + far

        def probs():
            relative = torch.gather(q @ vectors.T, 2, distance.expand(heads, n, n))
            return torch.softmax((q @ k.transpose(1, 2) + relative) * scale, dim=-1)
        return probs

    def transformer_xl(self, heads=8, n=2048, width=64):
        """With the shift that pads, views and cuts."""
        torch = self.torch
        q, k, scale = self.qk(heads, n, width)
        r, u, v = self.tensor(heads, 2 * n - 1, width), self.tensor(heads, 1, width), self.tensor(heads, 1, width)

        def shifted(x):
            x = torch.nn.functional.pad(x, (1, 0)).view(heads, 2 * n, n)
            return x[:, 1:].reshape(heads, n, 2 * n - 1)[:, :, :n]

        return lambda: torch.softmax(((q + u) @ k.transpose(1, 2) + shifted((q + v) @ r.transpose(1, 2))) * scale, dim=-1)

    def deberta(self, heads=8, n=2048, width=64, buckets=256):
        """Content to position and position to content, both gathered."""
        torch = self.torch
        q, k, _ = self.qk(heads, n, width)
        q_r, k_r = self.tensor(heads, 2 * buckets, width), self.tensor(heads, 2 * buckets, width)
        scale = 1 / math.sqrt(3 * width)
        relative = log_buckets(torch, torch.arange(n)[:, None] - torch.arange(n)[None, :], buckets, 2 * buckets)
        forth = (relative + buckets).clamp(0, 2 * buckets - 1).expand(heads, n, n)
        back = (-relative + buckets).clamp(0, 2 * buckets - 1).expand(heads, n, n)

        def probs():
            scores = q @ k.transpose(1, 2)
            scores = scores + torch.gather(q @ k_r.transpose(1, 2), 2, forth)
            scores = scores + torch.gather(k @ q_r.transpose(1, 2), 2, back).transpose(1, 2)
            return torch.softmax(scores * scale, dim=-1)
        return probs


def log_buckets(torch, relative, buckets, far):
    """DeBERTa's: distances up to half the buckets each have one, further ones share them by logarithm."""
    middle = buckets // 2
    distance = torch.where(relative.abs() < middle, middle - 1, relative.abs()).float()
    large = torch.ceil(torch.log(distance / middle) / math.log((far - 1) / middle) * (middle - 1)) + middle
    return torch.where(distance <= middle, relative.float(), large * relative.sign()).long()
