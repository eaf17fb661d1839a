"""The client where no tensor is saved: ten typed numbers, a model that is watched, arrays of other libraries. Small stand-ins for PyTorch's
modules; truth is float64 NumPy."""
import array
import sys
import types

import numpy as np
import pytest

import truth

R, BASE = 32, 1e4


def ladder(base=BASE, r=R):
    return base ** (-np.arange(0, r, 2) / r)


# ---- A module tree ------------------------------------------------------------------------------------------------------------


class Handle:
    def __init__(self, hooks, hook):
        self.hooks, self.hook = hooks, hook

    def remove(self):
        self.hooks.remove(self.hook)


class Module:
    """What watch() needs of torch.nn.Module."""

    def __init__(self, forward=None, **parts):
        self.children = {name: part for name, part in parts.items() if isinstance(part, Module)}
        self.buffers = {name: part for name, part in parts.items() if not isinstance(part, Module)}
        self.forward, self.hooks = forward, []

    def named_modules(self, path=""):
        yield path, self
        for name, child in self.children.items():
            yield from child.named_modules(f"{path}.{name}" if path else name)

    def named_buffers(self):
        for path, module in self.named_modules():
            for name, buffer in module.buffers.items():
                yield (f"{path}.{name}" if path else name), buffer

    def register_forward_hook(self, hook, *, with_kwargs=False):
        assert with_kwargs
        self.hooks.append(hook)
        return Handle(self.hooks, hook)

    def __call__(self, *args, **kwargs):
        output = self.forward(*args, **kwargs)
        for hook in self.hooks:
            assert hook(self, args, kwargs, output) is None
        return output


class Config:
    def __init__(self, fields):
        self.fields = fields

    def to_dict(self):
        return self.fields


def rotary(w, dtype="f4"):
    """As in transformers: forward(x, position_ids) gives cos and sin, each number twice."""
    def forward(x, position_ids):
        a = position_ids[..., None] * w
        a = np.concatenate([a, a], -1)
        return np.cos(a).astype(dtype), np.sin(a).astype(dtype)
    return Module(forward, inv_freq=w.astype("f4"))


def model_of(w, layers=3):
    """Layers that each have their own rotary module, and a linear one that says nothing of positions."""
    parts = {f"layer{i}": Module(lambda x, position_ids: x, rotary_emb=rotary(w), linear=Module(lambda x: x)) for i in range(layers)}
    model = Module(None, **parts)

    def forward(x, position_ids):
        for part in parts.values():
            part.children["linear"](x)
            part.children["rotary_emb"](x, position_ids=position_ids)
        return x
    model.forward = forward
    return model


X, IDS = np.zeros((1, 12, 8), "f4"), np.arange(12)[None]
BELIEF = {"scheme": "rope", "head_dim": R}


# ---- Watching -----------------------------------------------------------------------------------------------------------------


def test_a_right_model_passes_and_equal_layers_are_asked_about_once(client):
    model = model_of(ladder())
    with client.watch(model, **BELIEF) as seen:
        model(X, IDS)
    seen.check()
    assert [(one["what"], one["module"], len(one["layers"])) for one in seen.report] == [
        ("buffer", "layer0.rotary_emb", 3), ("output", "layer0.rotary_emb", 3)]
    assert seen.report[1]["positions"] == list(range(12)) and seen.report[1]["shape"] == [1, 12, R]
    assert len(str(seen).splitlines()) == 2 and "layer0.rotary_emb.inv_freq (and 2 more):" in str(seen)
    assert not any(module.hooks for _, module in model.named_modules())


def test_memory_that_nobody_wrote_is_named_in_one_line(client, posenc):
    """A non-persistent buffer after loading on the meta device."""
    model = model_of(ladder())
    model.children["layer1"].children["rotary_emb"].buffers["inv_freq"] = np.frombuffer(bytes(range(40, 104)), "f4").copy()
    with client.watch(model, **BELIEF) as seen:
        pass
    with pytest.raises(posenc.Mismatch) as caught:
        seen.check()
    assert str(caught.value).splitlines()[0].startswith("layer1.rotary_emb.inv_freq: The frequencies look like uninitialised memory")


def test_another_base_is_named_with_its_module(client, posenc):
    model = model_of(ladder(5e5))
    with client.watch(model, **BELIEF) as seen:
        model(X, IDS)
    with pytest.raises(posenc.Mismatch, match="layer0.rotary_emb.* 500000"):
        seen.check()


def test_positions_of_a_batch_are_those_of_its_argument(client):
    """Left padding: each row of the batch has its own positions."""
    model = model_of(ladder(), 1)
    ids = np.array([[1, 1, 0, 1, 2, 3], [0, 1, 2, 3, 4, 5]])
    with client.watch(model, **BELIEF) as seen:
        model(np.zeros((2, 6, 8)), ids)
    seen.check()
    assert seen.report[1]["positions"] == ids.ravel().tolist()


def test_the_model_is_what_its_config_says(client, posenc):
    config = {"model_type": "llama", "head_dim": R, "hidden_size": 64, "num_attention_heads": 2, "rope_theta": 5e5}
    model = model_of(ladder())
    model.config = Config(config)
    with client.watch(model) as seen:
        model(X, IDS)
    with pytest.raises(posenc.Mismatch, match="base"):
        seen.check()
    model.config = Config({**config, "rope_theta": BASE})
    with client.watch(model) as seen:
        model(X, IDS)
    seen.check()


def test_few_rows_of_long_tables_are_sent(client):
    a = np.arange(5000)[:, None] * ladder()
    model = Module(lambda x: x, cos_cached=np.cos(a).astype("f4"), sin_cached=np.sin(a).astype("f4"), table=X)
    with client.watch(model, rows=16, **BELIEF) as seen:
        pass
    seen.check()
    [one] = seen.report
    assert one["shape"] == [5000, R // 2] and len(one["positions"]) == 16
    assert one["positions"][:8] == list(range(8)) and one["positions"][-1] == 4999


def test_complex_tables_and_vllms_cache(client):
    a = np.arange(40)[:, None] * ladder()
    model = Module(lambda x: np.exp(1j * a).astype("c8"), cos_sin_cache=np.concatenate([np.cos(a), np.sin(a)], -1).astype("f4"), freqs_cis=np.exp(1j * a).astype("c8"))
    with client.watch(model, **BELIEF) as seen:
        model(X)
    seen.check()
    assert [(one["what"], one["dtype"]) for one in seen.report] == [("buffer", "float32"), ("buffer", "complex64"), ("output", "complex64")]


def test_only_the_first_calls_count(client):
    model = model_of(ladder(), 1)
    with client.watch(model, calls=2, **BELIEF) as seen:
        for first in (0, 100, 200):
            model(X, IDS + first)
    assert [one["positions"][0] for one in seen.report if one["what"] == "output"] == [0, 100]


def test_layer_types_are_tried(client):
    """Gemma 3: local layers have another base."""
    local, full = ladder(1e4, 256), ladder(1e6, 256) / 8
    model = Module(None, local=rotary(local), full=rotary(full))
    with client.watch(model, "gemma-3") as seen:
        for name in ("local", "full"):
            model.children[name](X, IDS)
    seen.check()
    assert {one["module"]: one["layer_type"] for one in seen.report} == {"local": "sliding_attention", "full": "full_attention"}


def test_an_error_of_a_hook_is_reported_and_not_raised(client, posenc):
    class Odd:
        shape, dtype = (3, 4), "float32"

        def reshape(self, *shape):
            return self

        def __getitem__(self, rows):
            return self

        def detach(self):
            raise RuntimeError("on no device")
    model = Module(lambda x: (Odd(), Odd()))
    with client.watch(model, **BELIEF) as seen:
        model(X)
    assert "on no device" in str(seen) and seen.report[0]["diagnosis"] is None
    with pytest.raises(posenc.Mismatch):
        seen.check()


def test_hooks_are_removed_after_an_exception(client):
    model = model_of(ladder())
    with pytest.raises(ZeroDivisionError):
        with client.watch(model, **BELIEF):
            raise ZeroDivisionError
    assert not any(module.hooks for _, module in model.named_modules())


def test_what_watch_does_not_take(client):
    with pytest.raises(TypeError, match="named_modules"):
        client.watch(object())

    class Old(Module):
        def register_forward_hook(self, hook):
            return Handle(self.hooks, hook)
    with pytest.raises(TypeError, match="with_kwargs"):
        with client.watch(Old(None), **BELIEF):
            pass
    with client.watch(Module(None), **BELIEF) as seen:
        pass
    with pytest.raises(LookupError, match="nothing was seen"):
        seen.check()
    assert str(seen) == "nothing was seen"


# ---- One line each ------------------------------------------------------------------------------------------------------------


def first_line(posenc, call, **request):
    with pytest.raises(posenc.Mismatch) as caught:
        call(**request)
    return str(caught.value).splitlines()[0]


def turned(x, positions, w, factor=1.0):
    return truth.turned(x, np.asarray(positions)[..., None] * w, factor=factor)


def test_padding_on_the_left(client, posenc):
    """One call: positions counted by columns, where the model skips padding."""
    q = np.random.default_rng(1).normal(size=(2, 1, 6, R)).astype("f4")
    mask = [[0, 0, 1, 1, 1, 1], [1] * 6]
    line = first_line(posenc, client.check, q=q, q_out=turned(q, np.arange(6), ladder()).astype("f4"), scheme="rope", layout="half", attention_mask=mask)
    assert "padding" in line.lower() or "column" in line


def test_yarns_factor_squared_in_scores(client, posenc):
    random, m = np.random.default_rng(2), 0.1 * np.log(4) + 1
    q, k = (random.normal(size=(1, 2, 8, R)).astype("f4").astype(float) for _ in range(2))
    scaling = {"type": "yarn", "factor": 4, "original_max_position_embeddings": 2048}
    w = client.encode(scheme="rope", head_dim=R, scaling=scaling, len=1, outputs=["inv_freq"], dtype="f64").inv_freq
    scores = m ** 2 * R ** -0.5 * turned(q, np.arange(8), w, m) @ turned(k, np.arange(8), w, m).swapaxes(-1, -2)
    line = first_line(posenc, client.check, scores=scores.astype("f4"), q=q.astype("f4"), k=k.astype("f4"), scheme="rope", layout="half", causal=False, scaling=scaling)
    assert "twice" in line or "squared" in line or "again" in line, line


# ---- Typed by hand ------------------------------------------------------------------------------------------------------------


def test_a_probe_reads_like_a_debugger(client):
    entries = client.probe("llama-3.1")
    assert 1 <= len(entries) <= 10
    for one in entries:
        assert str(one) == f"{one['tensor']}[{one['position']}, {one['channel']}]  expected {one['expected']:.4f}"
    assert str(client.probe(scheme="alibi", count=1)[0]).startswith("bias[")


def test_typed_numbers_go_back_as_tuples_or_objects(client):
    entries = client.probe(**BELIEF, count=6)
    number = lambda one, base: (np.cos if one["tensor"] == "cos" else np.sin)(one["position"] * ladder(base)[one["channel"]])
    tuples = [(one["tensor"], one["position"], one["channel"], f"{number(one, BASE):.4f}") for one in entries]
    assert client.diagnose(values=tuples, **BELIEF).fits
    objects = [{**one, "value": round(float(number(one, 5e5)), 4)} for one in entries]
    assert client.diagnose(values=objects, **BELIEF)["findings"][0]["code"] == "base_other"
    with pytest.raises(ValueError, match="position, channel, value"):
        client.diagnose(values=[("sin", 3, 0.5)], **BELIEF)


# ---- Arrays of other libraries ------------------------------------------------------------------------------------------------


class OnlyDlpack:
    """JAX's and others' way: neither __array__ nor a buffer."""

    def __init__(self, x):
        self.x, self.shape, self.dtype = x, x.shape, x.dtype

    def __dlpack__(self, *args, **kwargs):
        return self.x.__dlpack__(*args, **kwargs)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


class Mlx:
    """mlx' arrays: bfloat16 that NumPy does not know, seen as uint16."""

    def __init__(self, bits, dtype="mlx.core.bfloat16"):
        self.bits, self.dtype, self.shape = bits, dtype, bits.shape

    def view(self, dtype):
        return Mlx(self.bits, "mlx.core.uint16") if dtype == "uint16" else None

    def __array__(self, *args, **kwargs):
        assert self.dtype == "mlx.core.uint16"
        return self.bits


def bits(x):
    """The nearest bf16, ties to even."""
    whole = np.ascontiguousarray(x, "<f4").view("<u4").astype("u8")
    return ((whole + 0x7FFF + (whole >> 16 & 1)) >> 16).astype("<u2")


def test_arrays_of_any_library(client, monkeypatch):
    a = np.arange(8)[:, None] * ladder()
    cos, sin = np.cos(a).astype("f4"), np.sin(a).astype("f4")
    assert client.diagnose(cos=OnlyDlpack(cos), sin=OnlyDlpack(sin), **BELIEF).fits
    assert client.diagnose(inv_freq=array.array("d", ladder().tolist()), **BELIEF).fits
    assert client.diagnose(freqs_cis=OnlyDlpack(np.exp(1j * a).astype("c8")), **BELIEF).fits
    library = types.ModuleType("mlx.core")
    library.uint16 = "uint16"
    monkeypatch.setitem(sys.modules, "mlx.core", library)
    kept = bits(cos)
    answer = client.diagnose(cos=Mlx(kept), sin=Mlx(bits(sin)), **BELIEF)
    assert answer.fits and (kept == bits(cos)).all()


def test_bits_without_a_name_are_refused(client):
    with pytest.raises(TypeError, match="bfloat16"):
        client.diagnose(inv_freq=np.zeros(4, np.uint16))
    with pytest.raises(TypeError, match="freqs_cis"):
        client.diagnose(cos=np.zeros((2, 2), "c8"), sin=np.zeros((2, 2), "c8"))
