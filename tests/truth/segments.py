"""Position ids of multimodal sequences as concatenated arrays, built as the models' own code does: each block is a [3,
m] array whose position follows from the largest id of the block before it. Times are float32 products."""
import numpy as np

F = np.float32
STYLES = ("qwen2_5_vl", "qwen2_vl", "qwen2_5_vl_int_seconds", "qwen3_vl", "qwen2_5_omni", "qwen3_omni", "videorope")


def audio_tokens(frames, style):
    if style == "qwen2_5_omni":
        return ((frames - 1) // 2 + 1 - 2) // 2 + 1
    rest = (frames % 100 - 1) // 2 + 1
    return ((rest - 1) // 2 + 1 - 1) // 2 + 1 + frames // 100 * 13


def times(segment, frames, rules):
    """T_k of each frame."""
    k, style = np.arange(frames).astype(F), rules["position_style"]
    seconds = F(segment.get("second_per_grid", 1.0))
    is_image = segment["type"] == "image"
    if style == "qwen2_vl":
        return k.astype(float)
    if style == "qwen3_vl":
        return np.zeros(frames)
    if style == "videorope":
        return rules["temporal_scale"] * np.arange(frames, dtype=float)
    if style == "qwen2_5_vl":
        return np.zeros(frames) if is_image else np.trunc(k * seconds * F(rules["tokens_per_second"])).astype(float)
    if style == "qwen2_5_vl_int_seconds":
        whole = int(segment.get("second_per_grid", 1.0))
        return np.zeros(frames) if is_image else np.arange(frames) * whole * float(rules["tokens_per_second"])
    ids = (k if is_image else k * seconds) * F(rules["position_id_per_seconds"])
    return (np.trunc(ids) if style == "qwen2_5_omni" else ids).astype(float)


def block(segment, start, rules):
    """[3, m] of the patches of a grid, after merging."""
    t, h, w = segment["grid"]
    h, w = h // rules["spatial_merge_size"], w // rules["spatial_merge_size"]
    k, y, x = (a.ravel().astype(float) for a in np.meshgrid(times(segment, t, rules), range(h), range(w), indexing="ij"))
    if rules["position_style"] == "videorope":
        return np.stack([start + k, start + k + y - (h - 1) // 2, start + k + x - (w - 1) // 2])
    return np.stack([start + k, start + y, start + x])


def run(start, n):
    return np.tile(start + np.arange(n, dtype=float), (3, 1))


def split_by_time(ids, start, width):
    """Pieces of a stream: a piece ends before a token that has reached the next multiple of width; one piece a token at most."""
    cuts, chunk = [0], 1
    for i in range(ids.shape[1]):
        if ids[0, i] - start >= chunk * width:
            cuts.append(i)
            chunk += 1
    return [ids[:, a:b] for a, b in zip(cuts, cuts[1:] + [ids.shape[1]])]


def chunks_in_turn(video, audio, start, width):
    streams = split_by_time(video, start, width), split_by_time(audio, start, width)
    return [s[i] for i in range(max(map(len, streams))) for s in streams if i < len(s) and s[i].shape[1]]


def merged(video, audio):
    """Token by token, video first on a tie, until one stream is at its end."""
    out, i, j = [], 0, 0
    while i < video.shape[1] and j < audio.shape[1]:
        if video[0, i] <= audio[0, j]:
            out.append(video[:, i:i + 1])
            i += 1
        else:
            out.append(audio[:, j:j + 1])
            j += 1
    return out + [rest for rest in (video[:, i:], audio[:, j:]) if rest.shape[1]]


def glue(segments, rules):
    parts = []

    def start():
        if not parts:
            return 0.0
        return (parts[-1][0].max() if rules["position_style"] == "videorope" else parts[-1].max()) + 1

    def marks():
        first = start()
        parts.append(run(first, 1))
        parts.append(run(first if rules["position_style"] == "qwen2_5_omni" else first + 1, 1))

    for segment in segments:
        if segment["type"] in ("text", "audio"):
            n = segment["len"] if "len" in segment else audio_tokens(segment["mel_frames"], rules["position_style"])
            parts.append(run(start(), n))
        elif segment["type"] in ("image", "video"):
            parts.append(block(segment, start(), rules))
        else:
            marks()
            first = start()
            n = segment["audio_len"] if "audio_len" in segment else audio_tokens(segment["mel_frames"], rules["position_style"])
            video, audio = block(segment, first, rules), run(first, n)
            if rules["position_style"] == "qwen2_5_omni":
                width = int(rules["position_id_per_seconds"] * rules["seconds_per_chunk"])
                parts.extend(chunks_in_turn(video, audio, first, width))
            else:
                parts.extend(merged(rounded(video, rules), rounded(audio, rules)))
            marks()
        parts[-1] = rounded(parts[-1], rules)
    return np.concatenate(parts, axis=1)


def rounded(ids, rules):
    """Qwen3-Omni and VideoRoPE keep ids in float32."""
    return ids.astype(F).astype(float) if rules["position_style"] in ("qwen3_omni", "videorope") else ids


def positions(segments, **rules):
    """([3, n] array, rope_delta)."""
    rules = {"position_style": "qwen2_5_vl", "spatial_merge_size": 2, "tokens_per_second": 2, "position_id_per_seconds": 25,
             "seconds_per_chunk": 2, "temporal_scale": 2, **rules}
    ids = glue(segments, rules)
    last = ids[0].max() if rules["position_style"] == "videorope" else ids.max()  # VideoRoPE counts on in time
    return ids, int(np.floor(last + 1)) - ids.shape[1]
