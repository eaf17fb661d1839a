"""/analyze of random configurations of every scheme, against the reference."""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis_asking import check

laws = settings(max_examples=15)

lengths = st.integers(2, 14)
even = st.integers(1, 6).map(lambda c: 2 * c)
bases = st.sampled_from([None, 100.0, 500.0, 10000.0, 5e5])
seeds = st.integers(0, 5)
SEQUENCES = st.one_of(
    st.fixed_dictionaries({"len": lengths}), st.fixed_dictionaries({"len": lengths, "offset": st.integers(0, 5000)}),
    st.fixed_dictionaries({"positions": st.lists(st.integers(0, 300), min_size=2, max_size=9)}))
RUNS = st.fixed_dictionaries({"len": lengths})


def fields(**strategies):
    """Objects of some of the fields; None: left out."""
    return st.fixed_dictionaries(strategies).map(lambda found: {name: value for name, value in found.items() if value is not None})


def maybe(*values):
    return st.sampled_from([None, *values])


SCALINGS = st.one_of(
    st.just({"type": "default"}), fields(type=st.just("linear"), factor=st.sampled_from([1.5, 2, 8])),
    fields(type=st.just("ntk"), factor=st.sampled_from([1.5, 3, 8])),
    fields(type=st.just("dynamic"), factor=st.sampled_from([2, 4]), max_position_embeddings=st.integers(2, 20)),
    fields(type=st.just("yarn"), factor=st.sampled_from([2, 16]), original_max_position_embeddings=st.integers(4, 40),
           truncate=maybe(False)),
    fields(type=st.just("llama3"), factor=st.sampled_from([2, 8]), low_freq_factor=st.just(1), high_freq_factor=st.just(4),
           original_max_position_embeddings=st.integers(4, 40)),
    fields(type=st.just("proportional"), partial_rotary_factor=st.sampled_from([0.5, 1.0])))

SCHEMES = {
    "none": (fields(dim=st.integers(1, 9)), SEQUENCES),
    "integer": (fields(dim=st.integers(1, 4), normalize=maybe("length", "length_minus_one"), pe_scale=maybe(2.0)), SEQUENCES),
    "binary": (fields(dim=st.integers(13, 16), bit_order=maybe("lsb"), low=maybe(-1.0)), SEQUENCES),
    "sinusoidal": (fields(dim=st.integers(2, 13), base=bases, layout=maybe("half"), odd=maybe("pad", "truncate"),
                          flip_sin_to_cos=maybe(True)), SEQUENCES),
    "fourier": (fields(num_freqs=st.integers(1, 4), include_input=maybe(False), multiply_pi=maybe(True)), RUNS),
    "learned": (fields(dim=st.integers(1, 6), seed=seeds, std=maybe(1.0), row_offset=maybe(2)),  # the table is as long as the positions
                st.one_of(RUNS, st.fixed_dictionaries({"positions": st.lists(st.integers(0, 40), min_size=2, max_size=9)}))),
    "recursive": (fields(dim=st.integers(1, 4), seed=seeds, std=maybe(0.5)), RUNS),
    "floater": (fields(dim=st.integers(1, 4), seed=seeds, std=maybe(0.5)), RUNS),
    "rope": (fields(head_dim=st.just(12), rotary_dim=even.filter(lambda r: r > 2), base=bases,
                    layout=maybe("half", "interleaved_to_half"), direction=maybe(-1), scaling=SCALINGS), SEQUENCES),
    "xpos": (fields(head_dim=even, base=bases, gamma=maybe(1.0), scale_base=maybe(64.0), center=maybe(3, "lucidrains")), SEQUENCES),
    "alibi": (fields(num_heads=st.integers(1, 6), form=maybe("relative", "key", "key_end"), causal=maybe(True), bias_max=maybe(4),
                     window=maybe(3)), RUNS),
    "t5": (fields(num_heads=st.integers(1, 3), num_buckets=maybe(8, 16), max_distance=maybe(20), bidirectional=maybe(False),
                  causal=maybe(True), seed=seeds), RUNS),
    "kerple": (fields(num_heads=st.integers(1, 3), kind=maybe("power"), r1=maybe(0.5), r2=maybe(1.5), causal=maybe(True)), RUNS),
    "fire": (fields(num_heads=st.integers(1, 3), seed=seeds, std=maybe(0.5), init_l=maybe(4.0), causal=maybe(True)), RUNS),
    "sandwich": (fields(num_heads=st.integers(1, 3), bar_dim=maybe(6, 16), causal=maybe(True)), RUNS),
    "shaw": (fields(max_relative=maybe(1, 3), direction=maybe("query_minus_key")), RUNS),
    "deberta": (fields(position_buckets=maybe(8), max_relative_positions=maybe(12)), RUNS),
}


@pytest.mark.parametrize("scheme", SCHEMES)
@laws
@given(data=st.data())
def test_every_metric(server, scheme, data):
    parameters, sequence = (data.draw(strategy) for strategy in SCHEMES[scheme])
    if parameters.get("scaling", {}).get("type") == "proportional":
        del parameters["rotary_dim"]  # it turns every channel, some by nothing
    check(server, {"scheme": scheme, **parameters, **sequence})


pairs = st.sampled_from(["sinusoidal", "rope", "xpos", "alibi", "kerple"])


@laws
@given(data=st.data(), scheme=pairs, dtype=st.sampled_from(["f32", "f16", "bf16"]), tolerance=st.sampled_from([1e-6, 1e-2]))
def test_differences(server, data, scheme, dtype, tolerance):
    parameters, _ = SCHEMES[scheme]
    sequence = {"len": data.draw(lengths)}
    configs = [{"scheme": scheme, **data.draw(parameters), **sequence} for _ in range(2)]
    for config in configs:
        if config.get("scaling", {}).get("type") == "proportional":
            del config["rotary_dim"]
    if scheme in ("sinusoidal", "alibi", "kerple"):  # tensors of equal shape
        width = "dim" if scheme == "sinusoidal" else "num_heads"
        configs[1][width] = configs[0][width]
    check(server, configs, ["difference"], dtype=dtype, tolerance=tolerance)
