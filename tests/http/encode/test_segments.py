"""segments: position ids of multimodal models, by hand, against the reference, and through rope."""
import random

import numpy as np
import pytest

import truth.segments as segments_truth
from asking import check_again, given, refused
from tensors import encode, from_raw

STYLES = ["qwen2_5_vl", "qwen2_vl", "qwen2_5_vl_int_seconds", "qwen3_vl", "qwen2_5_omni", "qwen3_omni", "videorope"]


def ids(server, segments, **rules):
    answer = encode(server, scheme="rope", head_dim=16, segments=segments, outputs=["positions", "rope_delta"], **rules)
    return answer["positions"], int(answer["rope_delta"])


def text(n):
    return {"type": "text", "len": n}


# ---- By hand ----


def test_text_is_one_run(server):
    positions, delta = ids(server, [text(3), text(2)])
    assert positions.dtype == np.int64 and positions.tolist() == [[0, 1, 2, 3, 4]] * 3 and delta == 0


def test_an_image(server):
    positions, delta = ids(server, [text(2), {"type": "image", "grid": [1, 4, 6]}, text(1)])
    assert positions[0].tolist() == [0, 1] + [2] * 6 + [5]
    assert positions[1].tolist() == [0, 1, 2, 2, 2, 3, 3, 3, 5]
    assert positions[2].tolist() == [0, 1, 2, 3, 4, 2, 3, 4, 5]
    assert delta == 6 - 9


def test_seconds_of_video(server):
    """Half a second a frame at two ids a second; later versions of transformers cut the seconds, and every frame is alike."""
    video = [text(11), {"type": "video", "grid": [4, 2, 2], "second_per_grid": 0.5}]
    assert ids(server, video)[0][0, 11:].tolist() == [11, 12, 13, 14]
    assert ids(server, video, position_style="qwen2_5_vl_int_seconds")[0][0, 11:].tolist() == [11] * 4
    assert ids(server, video, position_style="qwen2_vl")[0][0, 11:].tolist() == [11, 12, 13, 14]
    assert ids(server, video, tokens_per_second=4)[0][0, 11:].tolist() == [11, 13, 15, 17]


@pytest.mark.parametrize("seconds,differ", [(0.3, 9), (0.7, 17)])
def test_products_are_float32(server, seconds, differ):
    positions, _ = ids(server, [{"type": "video", "grid": [100, 2, 2], "second_per_grid": seconds}], position_style="qwen2_5_omni")
    in_double = np.trunc(np.arange(100) * seconds * 25)
    assert (positions[0] != in_double).sum() == differ
    if seconds == 0.3:
        assert positions[0, 6] == 45 and in_double[6] == 44


def test_audio_tokens(server):
    for frames, tokens in [(13, 3), (100, 25), (1000, 250)]:
        assert ids(server, [{"type": "audio", "mel_frames": frames}], position_style="qwen2_5_omni")[0].shape == (3, tokens)
    for frames, tokens in [(100, 13), (200, 26), (150, 13 + 7)]:
        assert ids(server, [{"type": "audio", "mel_frames": frames}], position_style="qwen3_omni")[0].shape == (3, tokens)


def test_ids_go_back_after_a_short_last_chunk(server):
    """TMRoPE's oddity: what follows counts from the last chunk appended, here three tokens of audio."""
    block = {"type": "audio_in_video", "grid": [2, 4, 20], "second_per_grid": 0.2, "audio_len": 3}
    positions, _ = ids(server, [text(3), block, text(3)], position_style="qwen2_5_omni")
    assert positions[0, -1] == 10 and positions.max() == 13
    assert positions[:, 3:5].tolist() == [[3, 3]] * 3 and positions[:, -5:-3].tolist() == [[7, 7]] * 3


def test_fractions(server):
    segments = [text(1), {"type": "video", "grid": [2, 2, 2], "second_per_grid": 0.3}]
    positions, _ = ids(server, segments, position_style="qwen3_omni", position_id_per_seconds=13)
    assert positions.dtype == np.float64
    assert positions[0].tolist() == [0, 1, float(np.float32(1 + np.float32(0.3) * np.float32(13)))]


def test_videorope_is_diagonal(server):
    positions, _ = ids(server, [text(1), {"type": "video", "grid": [2, 6, 6]}, text(1)], position_style="videorope")
    assert positions[0].tolist() == [0] + [1] * 9 + [3] * 9 + [4]
    assert positions[1, 1:10].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2] and positions[2, 10:13].tolist() == [2, 3, 4]


# ---- Against the reference ----


def random_segment(rng, style):
    omni = "omni" in style
    kind = rng.choice(["text", "image", "video"] + ["audio", "audio_in_video"] * omni)
    frames = 1 if style == "qwen3_vl" or kind == "image" else rng.randint(1, 6)
    grid = [frames, 2 * rng.randint(1, 4), 2 * rng.randint(1, 10)]
    seconds = rng.choice([None, 0.08, 0.3, 0.5, 1.0, 2.5, 7.0])
    sound = {"audio_len": rng.randint(1, 150)}
    return {"text": text(rng.randint(1, 9)),
            "image": {"type": "image", "grid": grid},
            "video": given(type="video", grid=grid, second_per_grid=seconds),
            "audio": {"type": "audio", **rng.choice([{"len": rng.randint(1, 60)}, {"mel_frames": rng.randint(20, 700)}])},
            "audio_in_video": given(type="audio_in_video", grid=grid, second_per_grid=seconds, **sound)}[kind]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("seed", range(25))
def test_random(server, style, seed):
    rng = random.Random(f"{style}{seed}")
    segments = [random_segment(rng, style) for _ in range(rng.randint(1, 6))]
    rules = {"position_style": style}
    if style.startswith("qwen2_5_vl"):
        rules |= given(tokens_per_second=rng.choice([None, 2, 4]))
    if style == "videorope":
        rules |= given(temporal_scale=rng.choice([None, 0.5, 1]))
    if "omni" in style:
        rules |= given(position_id_per_seconds=rng.choice([None, 13, 25]))
    if style == "qwen2_5_omni":
        rules |= given(seconds_per_chunk=rng.choice([None, 1, 2]))
    positions, delta = ids(server, segments, **rules)
    expected, expected_delta = segments_truth.positions(segments, **rules)
    assert np.array_equal(positions, expected), (segments, rules)
    assert delta == expected_delta, (segments, rules)


# ---- Through rope ----


def test_the_ids_are_those_rotated_by(server):
    segments = [text(3), {"type": "video", "grid": [2, 4, 4], "second_per_grid": 1.5}, text(2)]
    request = dict(scheme="rope", head_dim=32, segments=segments, channels="mrope_interleaved")
    tensors = encode(server, **request, outputs=["positions", "cos", "sin"])
    listed = encode(server, scheme="rope", head_dim=32, channels="mrope_interleaved", positions=tensors["positions"].tolist(),
                    outputs=["cos", "sin"])
    assert np.array_equal(tensors["cos"], listed["cos"]) and np.array_equal(tensors["sin"], listed["sin"])
    check_again(server, {**request, "outputs": ["cos"]}, ["segments", "outputs"], {"cos": tensors["cos"]})


def test_text_alone_is_one_axis(server):
    many = encode(server, scheme="rope", segments=[text(9)])
    one = encode(server, scheme="rope", len=9)
    assert np.array_equal(many["cos"], one["cos"]) and np.array_equal(many["sin"], one["sin"])


def test_rotation(server):
    q = np.random.default_rng(0).standard_normal((11, 16)).astype("f4")
    segments = [text(5), {"type": "image", "grid": [1, 4, 6]}]
    rotated = from_raw(server.ask("/rotate", scheme="rope", layout="half", segments=segments, q=q.tolist(), format="raw"))["q"]
    tables = encode(server, scheme="rope", head_dim=16, segments=segments, dtype="f64")
    a, b = q[:, :8].astype("f8"), q[:, 8:].astype("f8")
    expected = np.concatenate([a * tables["cos"] - b * tables["sin"], b * tables["cos"] + a * tables["sin"]], axis=1)
    np.testing.assert_allclose(rotated, expected, atol=1e-6)


BAD = [
    ("/segments", ["at least one"], dict(segments=[])),
    ("/segments", ["list"], dict(segments={"type": "text", "len": 3})),
    ("/segments/0", ["object"], dict(segments=["text"])),
    ("/segments/1/type", ["text", "vidio"], dict(segments=[text(1), {"type": "vidio", "grid": [1, 2, 2]}])),
    ("/segments/0/type", ["missing"], dict(segments=[{"len": 3}])),
    ("/segments/0/len", ["missing"], dict(segments=[{"type": "text"}])),
    ("/segments/0/len", ["0"], dict(segments=[text(0)])),
    ("/segments/0/lenn", ["len"], dict(segments=[{"type": "text", "lenn": 3}])),
    ("/segments/0/grid", ["missing"], dict(segments=[{"type": "image"}])),
    ("/segments/0/grid", ["[t, h, w]"], dict(segments=[{"type": "image", "grid": [2, 2]}])),
    ("/segments/0/grid", ["divisible", "3"], dict(segments=[{"type": "image", "grid": [1, 3, 4]}])),
    ("/segments/0/grid", ["type"], dict(segments=[{"type": "text", "len": 1, "grid": [1, 2, 2]}])),
    ("/segments/0/second_per_grid", ["video"], dict(segments=[{"type": "image", "grid": [1, 2, 2], "second_per_grid": 1}])),
    ("/segments/0/type", ["audio"], dict(segments=[{"type": "audio", "len": 3}])),
    ("/segments/0/grid", ["own"], dict(segments=[{"type": "video", "grid": [2, 2, 2]}], position_style="qwen3_vl")),
    ("/segments/0/len", ["exclude"], dict(segments=[{"type": "audio", "len": 3, "mel_frames": 13}], position_style="qwen3_omni")),
    ("/position_style", ["segments"], dict(len=3, position_style="qwen2_vl")),
    ("/position_style", ["qwen2_vl"], dict(segments=[text(1)], position_style="qwen2vl")),
    ("/temporal_scale", ["qwen2_5_vl"], dict(segments=[text(1)], temporal_scale=1)),
    ("/segments", ["2 ways"], dict(segments=[text(1)], len=1)),
]


@pytest.mark.parametrize("pointer,words,fields", BAD)
def test_refused(server, pointer, words, fields):
    refused(server, pointer, *words, scheme="rope", **fields)


def test_too_many_tokens(server):
    answer = server.post("/encode", {"scheme": "rope", "segments": [text(2 * 10 ** 5), text(10 ** 5)]})
    assert answer.status == 413 and answer.json()["pointer"] == "/segments/1"


@pytest.mark.parametrize("config, words", [
    ({"preset": "flux.1"}, "axes_dim"), ({"scheme": "rope", "axes_dim": [16, 24, 24]}, "axes_dim"), ({"preset": "dinov3"}, "channels dinov3"),
    ({"scheme": "rope", "channels": "pixtral"}, "channels pixtral"), ({"preset": "llama-3.1"}, "has one axis"), ({"scheme": "sinusoidal"}, "sinusoidal is none")])
def test_a_configuration_that_counts_otherwise_refuses(server, config, words):
    """segments count as a language model with M-RoPE counts: of FLUX the ids would be another model's, merged 2 x 2."""
    asked = {**config, "segments": [text(3), {"type": "image", "grid": [1, 4, 6]}]}
    refused(server, "/segments", words, **asked)
    refused(server, "/segments", words, **asked, position_style="qwen3_vl")


def test_schemes_of_one_axis_refuse(server):
    refused(server, "/segments", "one", scheme="xpos", segments=[text(3)])
