"""The decoder of /experiments as a user of PyTorch writes it: modules, autograd, AdamW, f32. What depends on the request alone (the
sequences, the best possible losses, rotations, biases) is made when an object is made, before a clock starts.

The sequences and the first weights are those of tests/truth/training.py, so that the losses can be compared with ours."""
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
import truth.training as plain  # noqa: E402

FUSED = getattr(F, "scaled_dot_product_attention", None)  # since PyTorch 2.0


def attend(q, k, v, mask):
    """mask: added to the scores, -inf above the diagonal; None: causal and nothing else."""
    if FUSED:
        return FUSED(q, k, v, attn_mask=mask, is_causal=mask is None)
    return F._scaled_dot_product_attention(q, k, v, mask)[0]  # PyTorch 1.13's, a fifth faster than softmax(q kT s + mask) v


class Positions:
    """What a scheme does at n positions: turns of q and k [n, 4] as complex numbers, or a mask [4, n, n] or [n, n]."""

    def __init__(self, scheme, n):
        numbers = plain.Positions({"scheme": scheme}, n)
        self.turn = None if numbers.turn is None else torch.from_numpy(numbers.turn).to(torch.complex64)
        has_mask = numbers.by_distance is not None or not FUSED
        self.mask = torch.from_numpy(numbers.bias({})).float() if has_mask else None

    def turned(self, x):
        """Neighbours x[2i], x[2i + 1] are one complex number."""
        z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * self.turn
        return torch.view_as_real(z).flatten(-2)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        width = plain.WIDTH
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, plain.FEED_FORWARD), nn.GELU(approximate="tanh"), nn.Linear(plain.FEED_FORWARD, width))

    def forward(self, x, positions):
        b, n, width = x.shape
        qkv = self.qkv(self.norm_1(x)).view(b, n, 3, plain.HEADS, plain.HEAD_WIDTH).permute(2, 0, 3, 1, 4)
        q, k = qkv[:2] if positions.turn is None else positions.turned(qkv[:2])
        mixed = attend(q, k, qkv[2], positions.mask)
        x = x + self.o(mixed.transpose(1, 2).reshape(b, n, width))
        return x + self.feed(self.norm_2(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(plain.VOCABULARY, plain.WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(plain.LAYERS))
        self.norm, self.out = nn.LayerNorm(plain.WIDTH), nn.Linear(plain.WIDTH, plain.VOCABULARY)

    def forward(self, tokens, positions):
        x = self.tok(tokens)
        for block in self.blocks:
            x = block(x, positions)
        return self.out(self.norm(x))

    def named(self):
        """Its parameters by the names of the specification."""
        found = {"tok": self.tok.weight, "w_out": self.out.weight, "b_out": self.out.bias, **affine("norm", self.norm)}
        for i, block in enumerate(self.blocks):
            found |= affine(f"{i}.norm_1", block.norm_1) | affine(f"{i}.norm_2", block.norm_2)
            for name, linear in (("qkv", block.qkv), ("o", block.o), ("1", block.feed[0]), ("2", block.feed[2])):
                found |= {f"{i}.w_{name}": linear.weight, f"{i}.b_{name}": linear.bias}
        return found


def affine(name, norm):
    return {f"{name}.gain": norm.weight, f"{name}.bias": norm.bias}


class Training:
    """One run of one scheme that learns no positions."""

    def __init__(self, scheme, task="local", steps=600, train_len=128, eval_len=256, seed=0):
        torch.set_num_threads(1)
        self.scheme, self.steps, self.train_len, self.eval_len, self.seed = scheme, steps, train_len, eval_len, seed
        batch = [plain.sequences(task, "train", plain.BATCH * step, plain.BATCH, train_len + 1, seed) for step in range(steps)]
        evaluated = plain.sequences(task, "eval", 0, plain.EVALUATED, eval_len + 1, seed)
        self.train_tokens, self.eval_tokens = torch.from_numpy(np.stack(batch)), torch.from_numpy(evaluated)
        self.best = torch.from_numpy(plain.bayes(task, evaluated, seed)).float()
        self.train_positions, self.eval_positions = Positions(scheme, train_len), Positions(scheme, eval_len)
        self.weights = plain.first_weights({"scheme": scheme}, eval_len, seed)

    def model(self):
        model = Decoder()
        with torch.no_grad():
            for name, parameter in model.named().items():
                parameter.copy_(torch.from_numpy(self.weights[name]))
        return model

    def optimizer(self, model):
        named = model.named()
        groups = [{"params": [p for name, p in named.items() if plain.is_decayed(name) == decays], "weight_decay": decay}
                  for decays, decay in ((True, plain.DECAY), (False, 0.0))]
        return torch.optim.AdamW(groups, betas=plain.BETAS, eps=plain.EPS, foreach=True)

    def run(self):
        """The losses of all steps, then floor, inside, outside, rise."""
        with torch.enable_grad():
            model, losses = self.model(), []
            optimizer = self.optimizer(model)
            for step, tokens in enumerate(self.train_tokens, 1):
                losses.append(self.train(model, optimizer, step, tokens))
        return [float(loss) for loss in losses], self.evaluate(model)

    def train(self, model, optimizer, step, tokens):
        for group in optimizer.param_groups:
            group["lr"] = plain.rate(step, self.steps)
        optimizer.zero_grad(set_to_none=True)
        loss = losses_of(model, tokens, self.train_positions).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), plain.LONGEST)
        optimizer.step()
        return loss.detach()

    def evaluate(self, model, sequences=8):
        half = self.train_len // 2
        with torch.no_grad():
            loss = torch.cat([losses_of(model, tokens, self.eval_positions) for tokens in self.eval_tokens.split(sequences)])
        excess = (loss - self.best).mean(0)
        inside, outside = float(excess[half:self.train_len].mean()), float(excess[-half:].mean())
        return {"floor": float(self.best.mean()), "inside": inside, "outside": outside, "rise": outside - inside}


def losses_of(model, tokens, positions):
    """Of tokens 1.., [B, n]."""
    logits = model(tokens[:, :-1], positions)
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none").view(len(tokens), -1)
