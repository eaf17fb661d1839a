"""The numbers and sentences of the stories and of the walk: computed with NumPy, or asked of the service."""
import json
import math
import re

import numpy as np
import pytest

from conftest import ROOT
from probes import array, ask
from story_texts import story_texts
from test_walk import DOGS

MICE = ["cat", "chases", "mouse"]
PRINTED = [0.5 * i for i in range(1, 9)] + [0.25 * i for i in range(1, 5)]  # slopes of a printed function for twelve heads


def frequencies(dim=64, base=10000.0):
    return base ** (-2 * np.arange(dim // 2) / dim)


def waves(rows, dim, base=10000.0):
    """The table by its definition; of an odd last pair only the sine."""
    angle = np.arange(rows)[:, None] / base ** (2 * (np.arange(dim) // 2) / dim)
    return np.where(np.arange(dim) % 2, np.cos(angle), np.sin(angle))


def products(sines, cosines=None, rows=64):
    """[rows, rows] of sines and cosines of these frequencies."""
    p = np.arange(rows)[:, None]
    table = np.hstack([np.sin(p * sines), np.cos(p * (sines if cosines is None else cosines))])
    return table @ table.T


def spread(gram):
    """How much products of one distance differ, at most."""
    return max(np.ptp(np.diag(gram, k)) for k in range(len(gram)))


def nearest(rows):
    distances = np.linalg.norm(rows[:, None] - rows, axis=-1) + 9e9 * np.eye(len(rows))
    return distances.min()


def slopes(heads):
    """A geometric list for the power of two below, then every second one of the list for the next."""
    near = 2 ** int(math.log2(heads))
    return [2 ** (-8 * h / near) for h in range(1, near + 1)] + [2 ** (-8 * h / (2 * near)) for h in range(1, 2 * (heads - near), 2)]


def period(pair, dim):
    return 2 * math.pi * 10000 ** (2 * pair / dim)


OMEGA = frequencies()
SINES = np.sin(np.arange(64)[:, None] * OMEGA)
MISMATCHED = products(OMEGA, frequencies(base=500.0))
STEP = np.sqrt((4 * np.sin(frequencies(16, 256) / 2) ** 2).sum())
ROWS_A_PIXEL = 40000 / 670

# (story, text of it or None for anywhere, {number as it is printed: what it is}).
STATED = [
    ("introduction", None, {"0.841": math.sin(1), "0.540": math.cos(1), "0.998": 0.001 ** 2 + 0.999 ** 2}),
    ("introduction", None, {"6918": 10000 ** 0.96, "43469": period(24, 50), "62832": 20000 * math.pi}),
    ("introduction", None, {"9.1": period(1, 50), "15.8": period(1, 20), "60": ROWS_A_PIXEL}),
    ("introduction", None, {"13": sum(period(col // 2, 50) < ROWS_A_PIXEL for col in range(50)) - 1}),
    ("sin-and-cos", None, {"10.6": (SINES ** 2).sum(1).max(), "48": (SINES ** 2).sum(1).argmax(), "32": products(OMEGA)[0, 0]}),
    ("sin-and-cos", None, {"13.37": min(np.diag(products(OMEGA), k).mean() for k in range(64)), "6.28": 2 * math.pi}),
    ("sin-and-cos", None, {"6.1": np.ptp(np.diag(MISMATCHED)), "9.6": spread(products(np.repeat(OMEGA[:16], 2), OMEGA))}),
    ("sin-and-cos", None, {"1.0": spread(products(OMEGA, OMEGA / OMEGA[0] * OMEGA[1]))}),
    ("three-encodings", "2.1", {"6.28": period(0, 512)}),
    ("three-encodings", "2.3", {"6.28": period(0, 64), "19.2": period(31, 512), "47117": period(31, 64)}),
    ("three-encodings", "fig.table-viridis", {"154": 2 * sum(period(pair, 512) < 99 for pair in range(256))}),
    ("three-encodings", "fig.table-50x64", {"3.162": 10000 ** (1 / 8)}),
    ("three-encodings", "fig.unique-bounded", {"3.714": nearest(waves(100, 512)), "16": np.linalg.norm(waves(100, 512)[7])}),
    ("three-encodings", "fig.unique-bounded.try", {"0.018": nearest(waves(100, 2)), "44": 7 * 2 * math.pi}),
    # Numbers that the service gives are rows of tests/cases/stories.jsonl.
    ("three-encodings", "fig.order", {"0.346": 0.346}), ("three-encodings", "fig.cache", {"0.316": 0.316}),
    ("three-encodings", "fig.extrapolation.try", {"0.14": 0.14}), ("three-encodings", "fig.extrapolation", {"9.8": 9.8}),
    ("three-encodings", "4.2", {"393216": 512 * 768}),
    ("three-encodings", "6.3", {"1.8": 100 * math.exp(-4), "99.6": 100 * math.exp(-1 / 256)}),
    ("three-encodings", "fig.alibi-as-printed", {"1024": PRINTED[7] / slopes(12)[7], "0.25": PRINTED[8], "0.707": slopes(12)[8], "0.088": slopes(12)[11]}),
    ("three-encodings", "fig.alibi-heads.try", {"0.707": slopes(12)[8], "0.088": slopes(12)[11]}),
    ("designing", None, {"47117": period(31, 64), "60611": period(255, 512)}),
    ("designing", None, {"1.47": 1.47, "1.1168": STEP, "1.73": 3 ** 0.5, "0.125": 5 / 40, "252": 0b11111100}),
]


def is_stated(story, key, number):
    """In both languages; a thousand is set apart in English only."""
    for lang in ("en", "zh"):
        texts = story_texts((ROOT / f"server/page/stories/{story}.{lang}.md").read_text())
        said = " ".join(text for name, text in texts if key in (None, name))
        said = re.sub(r"(?<=\d)\u00a0(?=\d{3})", "", said)
        assert re.search(rf"(?<![\d.]){re.escape(number)}(?![\d]|\.\d)", said), (lang, story, key, number)
        assert not re.search(r"TODO|\bTBD\b", said)


@pytest.mark.parametrize("story, key, numbers", STATED, ids=lambda value: value if isinstance(value, str) else None)
def test_a_text_states_what_is(story, key, numbers):
    for number, value in numbers.items():
        digits = len(number.partition(".")[2])
        assert round(float(value), digits) == float(number), (number, value)
        is_stated(story, key, number)


def test_sentences_about_sines_and_cosines():
    table = waves(200, 50)
    steps = table[7:] - table[:-7]
    assert np.ptp(np.linalg.norm(steps, axis=1)) < 1e-12 and np.ptp((table[7:] * table[:-7]).sum(1)) < 1e-12, "a fixed distance fixes length and product"
    assert np.ptp(steps, axis=0).max() > 1, "but no vector"
    odd = waves(200, 5)
    assert np.ptp((odd[7:] * odd[:-7]).sum(1)) > 1e-3, "a sine without its cosine"
    assert np.ptp(waves(20, 50)[:, 30:], axis=0).max() < 0.08 < np.ptp(waves(20, 50)[:, 28])
    for harmless in (OMEGA[::-1], np.roll(OMEGA, 5)):
        assert spread(products(harmless)) < 1e-12
    p = np.arange(200)[:, None]
    for frequencies_, rank in ((np.linspace(0.1, 3, 32), 64), (np.full(32, 0.5), 2)):  # distinct without geometric growth; all the same
        assert np.linalg.matrix_rank(np.hstack([np.sin(p * frequencies_), np.cos(p * frequencies_)])) == rank


def test_order_is_lost_without_positions(server):
    """Equal words have equal rows; outputs change places with their inputs; positions part them, a symmetric bias alone does not."""
    def asked(output, tokens, **more):
        return array(server, {"scheme": "none", "dim": 96, "causal": False, "tokens": tokens, **more}, output, "/attention")

    order = [3, 1, 2, 0, 4]
    turned = [DOGS[i] for i in order]
    said = asked("probs", DOGS)
    assert (said[:, 1] == said[:, 4]).all() and np.allclose(asked("probs", turned), said[:, order][:, :, order], atol=1e-15)
    assert np.allclose(asked("output", turned), asked("output", DOGS)[:, order], atol=1e-12)
    for share in (0, 1):
        output = asked("output", DOGS, scheme="sinusoidal", pe_scale=share)
        assert bool(np.abs(output[:, 1] - output[:, 4]).max() > 0.01) == bool(share)
    for scheme, mirrored in {"none": True, "sinusoidal": False, "rope": False, "alibi": True}.items():
        forward, backward = (asked("probs", tokens, scheme=scheme) for tokens in (MICE, MICE[::-1]))
        assert np.allclose(forward, backward[:, ::-1, ::-1], atol=1e-6) == mirrored, scheme


def test_the_slow_pairs_of_llama_never_turned_once(server):
    """Wavelengths of base 500000 against 8192 positions; the rule divides the slowest frequency by 8 and keeps the fastest."""
    plain = frequencies(128, 500000.0)
    assert (2 * np.pi / plain > 8192).any()
    stretched = array(server, {"preset": "llama-3.1", "len": 1}, "inv_freq")
    assert np.isclose(plain[0] / stretched[0], 1) and np.isclose(plain[-1] / stretched[-1], 8)
    assert ask(server, "/encode", preset="qwen2.5", len=1, data=False)["config"]["base"] != 500000


@pytest.mark.slow
def test_what_training_is_said_to_give(server):
    results = {}
    for task in ("local", "lag"):
        for seed in range(3):
            body = {"task": task, "steps": 300, "train_len": 64, "eval_len": 128, "seed": seed, "configs": [{"scheme": name} for name in ("sinusoidal", "rope", "alibi", "learned")]}
            done = server.post("/experiments", body).body.splitlines()[-1]
            results[task, seed] = [(one["inside"], one["rise"]) for one in json.loads(done)["results"]]
    rises = np.array([[rise for _, rise in results["local", seed]] for seed in range(3)])
    assert np.round([rises[:, 0].min(), rises[:, 0].max()], 1) == pytest.approx([0.7, 1.4]) and np.round([rises[:, 1].min(), rises[:, 1].max()], 1) == pytest.approx([0, 0.4])
    assert abs(rises[:, 2]).max() <= 0.02
    inside = np.array([[one for one, _ in results["lag", seed]] for seed in range(3)])
    assert (abs(inside[:, 2] - 1) < 0.1).all() and inside[:, 1].max() < 0.01
