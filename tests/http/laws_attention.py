"""Laws of rows of /attention, and of the queries that /rotate scales."""
import json

import numpy as np

import safetensors_reader
import tensors
import truth.answers_attention  # noqa: F401 (registers /attention)
from laws import law
from truth.answers.rotate import query_factor


def arrays_of(server, row, **fields):
    from run import again, arrays, ask
    return arrays(ask(server, again(row, **fields)))


def equal(first, second, text):
    assert set(first) == set(second), text
    for name, array in first.items():
        assert array.dtype == second[name].dtype and array.shape == second[name].shape and array.tobytes() == second[name].tobytes(), f"{text}: {name}"


@law
def in_every_format(answer, row, server):
    """Every format has the same numbers, and the metadata of safetensors what stands beside the tensors in JSON."""
    from run import again, arrays, ask
    first, document = arrays(answer), answer.json()
    for form in ("raw", "npz", "safetensors"):
        equal(first, arrays_of(server, row, format=form), form)
    for name, array in first.items():
        if row["post"] != "/analyze":
            assert arrays_of(server, row, format="npy", outputs=[name])[""].tobytes() == array.tobytes(), f"npy: {name}"
    metadata = safetensors_reader.loads(ask(server, again(row, format="safetensors")).body)[1]
    for name in ("config", "configs", "results"):
        assert name not in document or json.loads(metadata[name]) == document[name], name
    if "empty_rows" in document:
        assert metadata.get("terms", "") == ",".join(document.get("terms", [])) and metadata["empty_rows"] == str(document["empty_rows"])


@law
def each_output_alone(answer, row, server):
    """Each output asked alone has the numbers that it has beside the others."""
    from run import arrays
    for name, array in arrays(answer).items():
        equal({name: array}, arrays_of(server, row, outputs=[name], format="raw"), "alone")


@law
def queries_scaled(answer, row, server):
    """Queries are those without query_scale in float64, times the factors of truth; keys are the same."""
    from run import arrays
    request, got = row["request"], arrays(answer)
    plain, exact = arrays_of(server, row, query_scale=None), arrays_of(server, row, query_scale=None, dtype="f64")
    factors = query_factor(request["query_scale"], request["positions"])
    factors = factors[:, None, :, None] if factors.ndim == 2 else factors[:, None, None] if request.get("tensor_layout") == "bnhd" else factors[:, None]
    np.testing.assert_allclose(got["q"].astype(float), exact["q"] * factors, rtol=0, atol={"f8": 1e-14, "f4": 6e-7, "f2": 4e-3}[got["q"].dtype.str[1:]])
    equal({name: plain[name] for name in got if name == "k"}, {name: got[name] for name in got if name == "k"}, "keys")


FIRST, SECOND = 1, 4  # the dogs


@law
def dogs_are_the_same(answer, row, server):
    """Without positions the rows, columns and outputs of equal words are equal to the bit, and those of others are not."""
    got = tensors.from_json(answer)
    for name, array in got.items():
        assert array[:, FIRST].tobytes() == array[:, SECOND].tobytes(), name
        assert name == "output" or array[..., FIRST].tobytes() == array[..., SECOND].tobytes(), name
    assert len({got["output"][:, i].tobytes() for i in range(5)}) == 4


@law
def dogs_differ(answer, row, server):
    got = tensors.from_json(answer)["output"]
    assert got.shape[1] == 5 and np.abs(got[:, FIRST] - got[:, SECOND]).max() > 1e-3


@law
def terms_sum_to_scores(answer, row, server):
    """The sum of the terms is the scores (Attention maps)."""
    got = tensors.from_json(answer)
    np.testing.assert_allclose(got["terms"].sum(0), got["scores"], rtol=0, atol=1e-11)


@law
def dogs_by_terms(answer, row, server):
    """Terms whose queries are content are equal for equal words, terms whose queries are positions differ."""
    terms = tensors.from_json(answer)["terms"]
    apart = np.abs(terms[:, :, FIRST] - terms[:, :, SECOND]).max((1, 2))
    assert (apart[:2] == 0).all() and (apart[2:] > 1e-3).all(), apart


@law
def does_not_care_where_it_begins(answer, row, server):
    np.testing.assert_allclose(arrays_of(server, row, offset=1000)["probs"], tensors.from_json(answer)["probs"], rtol=0, atol=1e-11)


@law
def permutes_with_its_words(answer, row, server):
    order, words = [3, 0, 4, 2, 1], row["request"]["tokens"]
    found = arrays_of(server, row, tokens=[words[i] for i in order])["probs"]
    np.testing.assert_allclose(found, tensors.from_json(answer)["probs"][:, order][:, :, order], rtol=0, atol=1e-14)
