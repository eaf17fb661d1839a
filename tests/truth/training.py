"""The training of /experiments in NumPy and float64: the two tasks, the decoder with its gradients written by hand, AdamW,
and the evaluation. Written from the specification of the endpoint; nothing here comes from the C code.

    x = tok[token] (+ position)                            [B, n, 32]
    twice: x += attention(norm(x)), x += feed_forward(norm(x))
    logits = norm(x) w_out^T + b_out                       [B, n, 8]

B sequences, n positions, H = 4 heads of d = 8 channels. Weights are [out, in]."""
import functools
import math

import numpy as np

import truth
import truth.bias
import truth.scaling
from truth import absolute
from truth.absolute import GOLDEN, WORD, fnv1a64, seeded, splitmix64

VOCABULARY, WIDTH, HEADS, HEAD_WIDTH, FEED_FORWARD, LAYERS, BUCKETS = 8, 32, 4, 8, 128, 2, 32
BATCH, EVALUATED, FOLLOWS = 8, 64, 0.8
BACK = {"local": 2, "lag": 8}  # the oldest token that the rule reads
NORM_EPS, PEAK, WARM_UP, BETAS, EPS, DECAY, LONGEST = 1e-5, 5e-3, 20, (0.9, 0.98), 1e-8, 0.01, 1.0

# ---- Tasks -------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def uniform(name, first, n, seed):
    """Numbers first..first+n-1 of the generator: (k + 1/2) / 2^53, k the upper 53 bits of the hash."""
    start = np.uint64(seed * GOLDEN & WORD ^ fnv1a64(name))
    i = np.arange(first + 1, first + n + 1, dtype=np.uint64)
    return ((splitmix64(start + i * np.uint64(GOLDEN)) >> np.uint64(11)).astype(float) + 0.5) / 2 ** 53


def drawn(name, first, n, seed):
    return np.floor(VOCABULARY * uniform(name, first, n, seed)).astype(int)


def rule(task, tokens, seed):
    """The rule's prediction of each token from the tokens before it, [sequences, length]; -1 where it predicts nothing."""
    predicted = np.full(tokens.shape, -1)
    if task == "lag":
        predicted[:, 8:] = tokens[:, :-8]
    else:
        predicted[:, 2:] = drawn("table", 0, VOCABULARY ** 2, seed).reshape(VOCABULARY, VOCABULARY)[tokens[:, :-2], tokens[:, 1:-1]]
    return predicted


def sequences(task, stream, first, n, length, seed):
    """Sequences first..first+n-1 of a stream (train, eval), [n, length]."""
    token, coin = (draw(f"{stream}.{name}", first * length, n * length, seed).reshape(n, length)
                   for name, draw in (("token", drawn), ("coin", uniform)))
    for j in range(BACK[task], length):
        predicted = rule(task, token[:, j - BACK[task]:j + 1], seed)[:, -1]
        token[:, j] = np.where(coin[:, j] < FOLLOWS, predicted, token[:, j])
    return token


def bayes(task, tokens, seed):
    """The best possible loss of tokens 1.., [sequences, length - 1]."""
    predicted, chance = rule(task, tokens, seed), (1 - FOLLOWS) / VOCABULARY
    loss = np.where(predicted == tokens, -math.log(FOLLOWS + chance), -math.log(chance))
    return np.where(predicted < 0, math.log(VOCABULARY), loss)[:, 1:]


# ---- First weights -----------------------------------------------------------------------------------------------------


def first_weights(config, eval_len, seed):
    """Named tensors in float64, rounded to f32 as the generator gives them. Biases are 0, gains 1."""
    def random(name, shape, std):
        return seeded(name, shape, seed, std).astype(float)

    scheme = config["scheme"]
    weights = {"tok": random("tok", (VOCABULARY, WIDTH), 0.5 if scheme == "sinusoidal" else 0.02)}
    if scheme == "learned":
        weights["pos"] = random("pos", (eval_len, WIDTH), 0.02)
    if scheme == "t5":
        weights["rel"] = random("rel", (BUCKETS, HEADS), 0.02)
    matrices = {f"{i}.{name}": shape for i in range(LAYERS) for name, shape in (
        ("w_qkv", (3 * WIDTH, WIDTH)), ("w_o", (WIDTH, WIDTH)), ("w_1", (FEED_FORWARD, WIDTH)), ("w_2", (WIDTH, FEED_FORWARD)))}
    for name, shape in {**matrices, "w_out": (VOCABULARY, WIDTH)}.items():
        weights[name] = random(name, shape, (3 * shape[1]) ** -0.5)
        weights[name.replace("w_", "b_")] = np.zeros(shape[0])
    for name in [f"{i}.norm_{k}" for i in range(LAYERS) for k in (1, 2)] + ["norm"]:
        weights[name + ".gain"], weights[name + ".bias"] = np.ones(WIDTH), np.zeros(WIDTH)
    return weights


# ---- Positions ---------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def buckets(n, max_distance=128, bidirectional=False):
    """The bucket of each distance 0..n-1, keys to the left."""
    return np.array([truth.bias.t5_bucket(-d, BUCKETS, max_distance, bidirectional) for d in range(n)])


class Positions:
    """The effect of a configuration at n positions: rows added to the tokens, turns of q and k, biases added to the scores."""

    def __init__(self, config, n):
        given = {name: value for name, value in config.items() if name not in ("scheme", "eval")}
        self.distance = np.arange(n)[:, None] - np.arange(n)
        self.rows = self.turn = self.by_distance = self.bucket = None
        self.n, self.table = n, False
        getattr(self, config["scheme"])(**given)

    def none(self):
        pass

    def learned(self):
        self.table = True

    def sinusoidal(self, **given):
        self.rows = absolute.table(absolute.one_axis(0, WIDTH, **given), [(p,) for p in range(self.n)])

    def rope(self, base=10000.0, scaling=None, head_dim=HEAD_WIDTH):
        scaling = scaling or {"type": "default"}
        frequencies = np.array(truth.scaling.inv_freq(scaling, base, head_dim, self.n), float)
        self.turn = float(truth.scaling.attention_factor(scaling, self.n)) * np.exp(1j * np.arange(self.n)[:, None] * frequencies)

    def alibi(self, bias_max=8, slopes=None):
        slopes = np.array(slopes or truth.alibi_slopes(HEADS, bias_max), float)
        self.by_distance = -slopes[:, None] * np.arange(self.n)

    def kerple(self, kind="log", r1=1.0, r2=1.0):
        self.by_distance = truth.bias.kerple(kind, [r1] * HEADS, [r2] * HEADS, range(self.n), [0])[:, :, 0]

    def sandwich(self, **given):
        self.by_distance = truth.bias.sandwich(HEADS, range(self.n), [0], **given)[:, :, 0]

    def t5(self, **given):
        self.bucket = buckets(self.n, **given)

    def bias(self, weights):
        """[H, n, n], or [n, n] where heads do not differ; -inf above the diagonal."""
        by_distance = weights["rel"][self.bucket].T if self.bucket is not None else self.by_distance
        return np.where(self.distance < 0, -np.inf, 0 if by_distance is None else by_distance[:, np.maximum(self.distance, 0)])

    def rel_gradient(self, d_scores):
        """[BUCKETS, H] of d_scores [H, n, n], zero above the diagonal."""
        at = self.bucket[np.maximum(self.distance, 0)].ravel()
        return np.stack([np.bincount(at, head.ravel(), BUCKETS) for head in d_scores], 1)


def turned(x, turn):
    """Neighbours of x [..., n, d] as complex numbers, times turn [n, d/2]; the gradient is turned by the conjugate."""
    if turn is None:
        return x
    z = (x[..., 0::2] + 1j * x[..., 1::2]) * turn
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


# ---- The decoder -------------------------------------------------------------------------------------------------------


def norm(x, gain, bias):
    """Layer normalisation over the channels; second, the values that its gradient needs."""
    centred = x - x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt((centred ** 2).mean(-1, keepdims=True) + NORM_EPS)
    unit = centred * inverse
    return unit * gain + bias, (unit, inverse, gain)


def norm_back(d, kept):
    """Gradients of x, gain, bias."""
    unit, inverse, gain = kept
    du = d * gain
    dx = inverse * (du - du.mean(-1, keepdims=True) - unit * (du * unit).mean(-1, keepdims=True))
    return dx, (d * unit).sum((0, 1)), d.sum((0, 1))


def linear_back(d, x, w):
    """Gradients of x, w, b of x w^T + b."""
    rows = d.reshape(-1, d.shape[-1])
    return d @ w, rows.T @ x.reshape(-1, x.shape[-1]), rows.sum(0)


ROOT = math.sqrt(2 / math.pi)


def gelu(x):
    """The tanh approximation and its derivative."""
    t = np.tanh(ROOT * x * (1 + 0.044715 * x * x))
    return x * (1 + t) / 2, (1 + t) / 2 + x * (1 - t * t) / 2 * ROOT * (1 + 3 * 0.044715 * x * x)


def split_heads(x):
    """[B, n, H d] as [B, H, n, d]."""
    return x.reshape(*x.shape[:2], HEADS, HEAD_WIDTH).transpose(0, 2, 1, 3)


def join_heads(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], WIDTH)


def attention(weights, i, x, positions):
    """Rows of w_qkv: q, k, v, each head after head."""
    qkv = x @ weights[f"{i}.w_qkv"].T + weights[f"{i}.b_qkv"]
    q, k, v = map(split_heads, np.split(qkv, 3, -1))
    q, k = turned(q, positions.turn), turned(k, positions.turn)
    scores = (q / math.sqrt(HEAD_WIDTH)) @ k.swapaxes(-1, -2)
    scores += positions.bias(weights)
    scores -= scores.max(-1, keepdims=True)
    probs = np.exp(scores, out=scores)
    probs /= probs.sum(-1, keepdims=True)
    mixed = join_heads(probs @ v)
    return mixed @ weights[f"{i}.w_o"].T + weights[f"{i}.b_o"], (x, q, k, v, probs, mixed)


def attention_back(weights, i, d, kept, positions, gradients):
    x, q, k, v, probs, mixed = kept
    d_mixed, gradients[f"{i}.w_o"], gradients[f"{i}.b_o"] = linear_back(d, mixed, weights[f"{i}.w_o"])
    d_mixed = split_heads(d_mixed)
    d_probs = d_mixed @ v.swapaxes(-1, -2)
    d_scores = probs * (d_probs - (d_probs * probs).sum(-1, keepdims=True))
    if "rel" in weights:
        gradients["rel"] = gradients.get("rel", 0) + positions.rel_gradient(d_scores.sum(0))
    d_q, d_k = d_scores @ k / math.sqrt(HEAD_WIDTH), d_scores.swapaxes(-1, -2) @ q / math.sqrt(HEAD_WIDTH)
    back = None if positions.turn is None else positions.turn.conj()
    parts = turned(d_q, back), turned(d_k, back), probs.swapaxes(-1, -2) @ d_mixed
    d_x, gradients[f"{i}.w_qkv"], gradients[f"{i}.b_qkv"] = linear_back(
        np.concatenate(list(map(join_heads, parts)), -1), x, weights[f"{i}.w_qkv"])
    return d_x


def feed_forward(weights, i, x):
    hidden, slope = gelu(x @ weights[f"{i}.w_1"].T + weights[f"{i}.b_1"])
    return hidden @ weights[f"{i}.w_2"].T + weights[f"{i}.b_2"], (x, hidden, slope)


def feed_forward_back(weights, i, d, kept, gradients):
    x, hidden, slope = kept
    d_hidden, gradients[f"{i}.w_2"], gradients[f"{i}.b_2"] = linear_back(d, hidden, weights[f"{i}.w_2"])
    d_x, gradients[f"{i}.w_1"], gradients[f"{i}.b_1"] = linear_back(d_hidden * slope, x, weights[f"{i}.w_1"])
    return d_x


def norm_named(weights, name, x):
    return norm(x, weights[name + ".gain"], weights[name + ".bias"])


def norm_named_back(name, d, kept, gradients):
    d_x, gradients[name + ".gain"], gradients[name + ".bias"] = norm_back(d, kept)
    return d_x


def forward(weights, tokens, positions):
    """The loss of tokens 1.. [B, n], and the values that the gradient needs."""
    x = weights["tok"][tokens[:, :-1]]
    if positions.table:
        x = x + weights["pos"][:positions.n]
    elif positions.rows is not None:
        x = x + positions.rows
    kept = []
    for i in range(LAYERS):
        y, norm_1 = norm_named(weights, f"{i}.norm_1", x)
        y, attended = attention(weights, i, y, positions)
        x = x + y
        y, norm_2 = norm_named(weights, f"{i}.norm_2", x)
        y, fed = feed_forward(weights, i, y)
        x = x + y
        kept.append((norm_1, attended, norm_2, fed))
    y, norm_last = norm_named(weights, "norm", x)
    logits = y @ weights["w_out"].T + weights["b_out"]
    logits -= logits.max(-1, keepdims=True)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    loss = -np.take_along_axis(log_probs, tokens[:, 1:, None], -1)[..., 0]
    return loss, (kept, norm_last, y, log_probs)


def loss_and_gradients(weights, tokens, positions):
    """The mean loss, and its gradient for each weight."""
    loss, (kept, norm_last, y, log_probs) = forward(weights, tokens, positions)
    gradients = {}
    d_logits = (np.exp(log_probs) - np.eye(VOCABULARY)[tokens[:, 1:]]) / loss.size
    d, gradients["w_out"], gradients["b_out"] = linear_back(d_logits, y, weights["w_out"])
    d = norm_named_back("norm", d, norm_last, gradients)
    for i in reversed(range(LAYERS)):
        norm_1, attended, norm_2, fed = kept[i]
        d = d + norm_named_back(f"{i}.norm_2", feed_forward_back(weights, i, d, fed, gradients), norm_2, gradients)
        d = d + norm_named_back(f"{i}.norm_1", attention_back(weights, i, d, attended, positions, gradients), norm_1, gradients)
    gradients["tok"] = np.zeros_like(weights["tok"])
    np.add.at(gradients["tok"], tokens[:, :-1], d)
    if positions.table:
        gradients["pos"] = np.zeros_like(weights["pos"])
        gradients["pos"][:positions.n] = d.sum(0)
    return loss.mean(), gradients


# ---- AdamW -------------------------------------------------------------------------------------------------------------


def rate(step, steps):
    """A straight line from 0 to step 20, then half a cosine to 0 at the last step."""
    if step <= WARM_UP:
        return PEAK * step / WARM_UP
    return PEAK * (1 + math.cos(math.pi * (step - WARM_UP) / (steps - WARM_UP))) / 2


def is_decayed(name):
    return name.split(".")[-1].startswith("w_")


class AdamW:
    """Loshchilov and Hutter 2017 (arXiv 1711.05101): the decay reaches the matrices w_ only. Gradients whose norm over
    all weights exceeds 1 are first scaled to norm 1."""

    def __init__(self, weights):
        self.weights = weights
        self.mean = {name: np.zeros_like(w) for name, w in weights.items()}
        self.square = {name: np.zeros_like(w) for name, w in weights.items()}

    def step(self, gradients, step, lr):
        length = math.sqrt(sum((g * g).sum() for g in gradients.values()))
        a, b = BETAS
        for name, w in self.weights.items():
            g = gradients[name] * min(LONGEST / length, 1)
            if is_decayed(name):
                w *= 1 - lr * DECAY
            self.mean[name] = a * self.mean[name] + (1 - a) * g
            self.square[name] = b * self.square[name] + (1 - b) * g * g
            w -= lr * (self.mean[name] / (1 - a ** step)) / (np.sqrt(self.square[name] / (1 - b ** step)) + EPS)
        return length


# ---- An experiment -----------------------------------------------------------------------------------------------------


def train(config, task, steps, train_len, eval_len, seed):
    """The weights, and of every step the loss before its update, and the norm of its gradients."""
    weights = first_weights(config, eval_len, seed)
    positions, optimizer, losses, norms = Positions(config, train_len), AdamW(weights), [], []
    for step in range(1, steps + 1):
        tokens = sequences(task, "train", BATCH * (step - 1), BATCH, train_len + 1, seed)
        loss, gradients = loss_and_gradients(weights, tokens, positions)
        norms.append(optimizer.step(gradients, step, rate(step, steps)))
        losses.append(loss)
    return weights, losses, norms


def evaluate(weights, config, task, train_len, eval_len, seed):
    """floor, excess [eval_len], inside, outside, rise over 64 sequences."""
    positions = Positions(config, eval_len)
    tokens = sequences(task, "eval", 0, EVALUATED, eval_len + 1, seed)
    best = bayes(task, tokens, seed)
    loss = np.concatenate([forward(weights, part, positions)[0] for part in np.split(tokens, EVALUATED // BATCH)])
    excess, half = (loss - best).mean(0), train_len // 2
    inside, outside = excess[half:train_len].mean(), excess[-half:].mean()
    return {"floor": best.mean(), "excess": excess, "inside": inside, "outside": outside, "rise": outside - inside}


def experiment(config, task="local", steps=600, train_len=128, eval_len=None, seed=0):
    """The losses, the norms of gradients, and the evaluations: of the configuration, then of each override in `eval`."""
    eval_len = eval_len or 2 * train_len
    weights, losses, norms = train(config, task, steps, train_len, eval_len, seed)
    overrides = [{}] + config.get("eval", [])
    return losses, norms, [evaluate(weights, {**config, **fields}, task, train_len, eval_len, seed) for fields in overrides]
