"""Fields that contradict each other or have no effect, found by random requests: each was once accepted, or refused with
the wrong field."""
import pytest

from asking import check_again, refused
from tensors import encode

Q3 = {"rope_type": "default", "mrope_section": [24, 20, 20]}

REFUSED = [
    ("/x", ["3 rows", "9"], dict(scheme="learned", seed=0, num_prefix=5, table_grid=[2, 2], grid=[2, 2], x=[[1, 2], [3, 4], [5, 6]])),
    ("/len", ["tensor x has 3"], dict(scheme="sinusoidal", len=4, x=[[1, 2], [3, 4], [5, 6]])),
    ("/scaling/mrope_section", ["axes_dim"], dict(scheme="rope", head_dim=128, len=1, axes_dim=[64, 64], scaling=Q3)),
    ("/scaling/mrope_section", ["pixtral"], dict(scheme="rope", head_dim=128, len=1, channels="pixtral", scaling=Q3)),
    ("/scaling/mrope_section", ["differs"], dict(scheme="rope", head_dim=128, len=1, channels="mrope", mrope_section=[16, 24, 24],
                                                 scaling=Q3)),
    ("/scaling/mrope_section", ["interleaved"], dict(scheme="rope", head_dim=128, len=1, channels="mrope",
                                                     scaling={**Q3, "mrope_interleaved": True})),
    ("/scaling/mrope_interleaved", ["without"], dict(scheme="rope", len=1, scaling={"type": "default", "mrope_interleaved": True})),
    ("/scaling/mrope_section", ["one axis"], dict(scheme="xpos", head_dim=8, len=2, scaling={"type": "default", "mrope_section": [2, 1, 1]})),
    ("/scaling/partial_rotary_factor", ["0.5", "0.25"], dict(scheme="rope", len=1, partial_rotary_factor=0.25,
                                                             scaling={"type": "default", "partial_rotary_factor": 0.5})),
    ("/base", ["pixel"], dict(scheme="rope", head_dim=8, grid=[2, 3], coords="pixel", base=5)),
    ("/scaling/type", ["pixel"], dict(scheme="rope", head_dim=8, grid=[2, 3], coords="pixel", scaling={"type": "linear", "factor": 2})),
    ("/inv_freq", ["pixel"], dict(scheme="rope", head_dim=8, grid=[2, 3], coords="pixel", inv_freq=[1, 0.1, 0.01, 0.001])),
    ("/scaling/mrope_interleaved", ["is 1", "true or false"], dict(scheme="rope", len=1, scaling={"type": "default", "mrope_interleaved": 1})),
    ("/scaling/mrope_interleaved", ['is "true"', "true or false"], dict(scheme="rope", head_dim=128, len=1, scaling={**Q3, "mrope_interleaved": "true"})),
    ("/scaling/mrope_interleaved", ["is 0", "true or false"], dict(scheme="xpos", head_dim=8, len=1, scaling={"type": "default", "mrope_interleaved": 0})),
    ("/scaling/finetuned", ["is 1", "true or false"], dict(scheme="rope", len=1, scaling={"type": "default", "finetuned": 1})),
    ("/hf_config/is_encoder_decoder", ["is 1", "true or false"], dict(len=1, hf_config={"model_type": "t5", "is_encoder_decoder": 1})),
    ("/hf_config/is_decoder", ['is "yes"', "true or false"],
     dict(len=1, hf_config={"model_type": "t5", "is_encoder_decoder": False, "is_decoder": "yes"})),
    ("/hf_config/has_spatial_attention_bias", ["is 0", "true or false"], dict(grid=[2, 2], hf_config={"model_type": "layoutlmv3", "has_spatial_attention_bias": 0})),
    ("/hf_config/sinusoidal_embeddings", ["is 1", "true or false"], dict(len=1, hf_config={"model_type": "xlm", "sinusoidal_embeddings": 1})),
    ("/offset", ["2^40"], dict(scheme="sinusoidal", dim=4, lens=[100], offset=2 ** 40)),
    ("/layer_type", ["full_attention"], dict(preset="llama-2", layer_type="foo", len=1)),
    ("/row_offset", ["2^40"], dict(scheme="learned", dim=2, len=2, offset=2 ** 40 - 6, row_offset=2 ** 40 - 6, seed=0)),
    ("/mrope_section", ["channels"], dict(scheme="rope", len=1, channels="pixtral", mrope_section=[16, 8, 8])),
    ("/hf_config/text_config/model_type", ["ernie", "height"],
     dict(len=1, hf_config={"model_type": "ernie4_5_vl_moe", "text_config": {
         "model_type": "ernie4_5_vl_moe_text", "hidden_size": 2560, "num_attention_heads": 20,
         "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0, "mrope_section": [22, 22, 20]}}})),
    ("/axes_dim", ["needed: rotary_dim, 4"], dict(scheme="rope", head_dim=8, grid=[1, 1], axes_dim=[4, 4], partial_rotary_factor=0.5)),
]


@pytest.mark.parametrize("pointer,words,fields", REFUSED)
def test_refused(server, pointer, words, fields):
    refused(server, pointer, *words, **fields)


def config(server, **fields):
    return server.ask("/encode", data=False, **fields).json()["config"]


def test_pasted_sections_serve_the_channels_named(server):
    asked = config(server, scheme="rope", head_dim=128, len=1, channels="mrope_interleaved", scaling=Q3)
    assert (asked["channels"], asked["mrope_section"]) == ("mrope_interleaved", [24, 20, 20])


def test_what_a_model_says_gives_way(server):
    assert config(server, preset="qwen3.5", len=1, channels="pixtral")["channels"] == "pixtral"
    assert "order" in config(server, preset="qwen3-vl-vision", grid=[2, 6], order="row_major")
    assert config(server, preset="eva-02", positions=[[0.5, 1], [2, 3]])["axes_dim"] == [32, 32]
    assert config(server, preset="llama-2", layer_type="full_attention", len=1)["base"] == 1e4


def test_fewer_pairs_than_axes(server):
    request = dict(scheme="rope", head_dim=2, grid=[2, 2])
    check_again(server, request, ["grid"], encode(server, **request))
    request = dict(scheme="rope", head_dim=8, grid=[2, 3], coords="pixel")
    check_again(server, request, ["grid"], encode(server, **request))


def test_a_list_of_frequencies_beside_pixel_coordinates(server):
    """A diagnosis reads inv_freq beside another tensor as a field of the belief, and names it too."""
    table = [[1.0, 1.0]] * 4
    body = {"scheme": "rope", "head_dim": 4, "grid": [2, 2], "coords": "pixel", "cos": table, "sin": [[0.0, 0.0]] * 4, "inv_freq": [1.0, 0.1]}
    answer = server.post("/diagnose", body)
    assert answer.status == 422 and answer.json()["pointer"] == "/inv_freq" and "pixel" in answer.json()["detail"], answer.body
