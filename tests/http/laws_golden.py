"""Laws of rows of /golden: a file against /encode and /rotate, which are held to the truth."""
import numpy as np

import tensors
from laws import law
from truth import to_bf16


def as_sent(array, dtype):
    return {"dtype": dtype, "shape": list(array.shape), "data": array.ravel().tolist()}


@law
def golden_is_encoded(answer, row, server):
    """Each kind's tensors are those of its own config: tables as /encode has them, q and k as /rotate turns them in f64, rounded once."""
    document, found = answer.json(), tensors.from_json(answer)
    dtypes = {name: tensor["dtype"] for name, tensor in document["tensors"].items()}
    places = {name.replace("_ids", "s"): found[name].tolist() for name in ("position_ids", "q_positions", "k_positions") if name in found}
    for kind, config in document["configs"].items():
        ending = f".{kind}" if len(document["configs"]) > 1 else ""
        tables = [name for name in ("cos", "sin", "inv_freq", "encoding", "bias") if name + ending in found]
        config = {name: value for name, value in config.items() if name not in ("softmax_scale", "softcap")}  # of attention alone
        plain = {name: value for name, value in config.items() if name != "query_scale"}
        made = tensors.encode(server, **plain, **places, outputs=tables, dtype=dtypes[tables[0] + ending])
        for name in tables:
            assert made[name].tobytes() == found[name + ending].tobytes(), (kind, name)
        sides = {side: found[side] for side in "qk" if side in found}
        if not sides:
            continue
        given = {side: as_sent(array.astype(float), "f64") for side, array in sides.items()}
        turned = tensors.from_raw(server.ask("/rotate", **config, **places, **given, dtype="f64", format="raw"))
        for side in sides:
            expected = to_bf16(turned[side]) if dtypes[f"{side}_out{ending}"] == "bf16" else turned[side].astype(found[f"{side}_out{ending}"].dtype)
            assert np.array_equal(expected, found[f"{side}_out{ending}"]), (kind, side)


@law
def golden_scales_q_alone(answer, row, server):
    plain = tensors.from_json(server.ask("/golden", **{name: value for name, value in row["request"].items() if name != "query_scale"}))
    found = tensors.from_json(answer)
    assert all(np.array_equal(found[name], plain[name]) for name in found if name != "q_out")
    ratio = found["q_out"] / plain["q_out"]
    assert np.allclose(ratio, ratio[:, :1, :, :1], rtol=1e-12, atol=0) and ratio[0, 0, -1, 0] > 1.1 and ratio[0, 0, 0, 0] == 1
