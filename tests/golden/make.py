"""Writes the golden answers anew: python3 tests/golden/make.py

Each case is a request and the tensors that must come back, bit for bit, computed here with mpmath at 220 bits and rounded
once. The formulas are those of tests/http/reference.py; the C code has no part in it. The refusals' texts are written by
hand, beside their requests."""
import json
import pathlib
import sys

import mpmath
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "http"))
import reference  # noqa: E402  (the path had to be set first)

NUMPY = {"f32": "f4", "f16": "f2"}


def rounded(rows, dtype="f32"):
    def walk(x):
        return [walk(y) for y in x] if isinstance(x, list) else reference.nearest(x, dtype)
    return np.array(walk(rows), NUMPY[dtype])


def write(name, request, **tensors):
    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "request.json").write_text(json.dumps(request) + "\n")
    for tensor, array in tensors.items():
        np.save(folder / f"{tensor}.npy", array)


def sinusoidal(case, positions, dim, dtype="f32", **parameters):
    columns = reference.sinusoidal_columns(dim, **parameters)
    table = rounded([[reference.wave(column, p) for column in columns] for p in positions], dtype)
    write(f"sinusoidal/{case}", {"scheme": "sinusoidal", "dim": dim, "positions": positions, "dtype": dtype, **parameters},
          encoding=table)


def rope(case, positions, rotary_dim, dtype="f32", base=10000.0):
    angles = [[reference.rope_angle(p, c, rotary_dim, base) for c in range(rotary_dim // 2)] for p in positions]
    write(f"rope/{case}", {"scheme": "rope", "head_dim": rotary_dim, "base": base, "positions": positions, "dtype": dtype},
          cos=rounded([[mpmath.cos(a) for a in row] for row in angles], dtype),
          sin=rounded([[mpmath.sin(a) for a in row] for row in angles], dtype))


def alibi(case, num_heads, q, k, dtype="f32"):
    slopes = reference.alibi_slopes(num_heads)
    bias = [[[-m * abs(mpmath.mpf(a) - mpmath.mpf(b)) for b in k] for a in q] for m in slopes]
    write(f"alibi/{case}", {"scheme": "alibi", "num_heads": num_heads, "q_positions": q, "k_positions": k, "dtype": dtype,
                            "outputs": ["bias", "slopes"]},
          bias=rounded(bias, dtype) + 0, slopes=rounded(slopes, dtype))


def main():
    sinusoidal("paper", [0, 1, 2, 3, 1000, 1048576], 64)
    sinusoidal("far", [2 ** 40, -2 ** 40, 2 ** 31 + 1, 123456789012], 32)
    sinusoidal("fractions", [0.5, -0.1, 3.14159, 1e-9], 16, layout="half")
    sinusoidal("odd_paper", [1, 7, 4096], 5)
    sinusoidal("odd_pad", [1, 7, 4096], 7, odd="pad", freq_shift=1, layout="half")
    sinusoidal("odd_truncate", [1, 7, 4096], 7, odd="truncate", flip_sin_to_cos=True)
    sinusoidal("half_precision", [0, 1, 65536, 999983], 24, "f16", angle_scale=0.25)
    rope("llama", [0, 1, 17, 4095, 131071, 1048576], 128, base=500000.0)
    rope("far", [2 ** 40 - 1, -(2 ** 39) - 5, 10 ** 12], 64)
    rope("half_precision", [0, 1, 1023, 100003], 32, "f16")
    alibi("eight_heads", 8, [0, 5, 100], [0, 1, 50, 1000])
    alibi("twelve_heads", 12, [3, 65535], [0, 2, 4097, 10 ** 6])
    alibi("fractions", 5, [0.3, 2 ** 33], [0.1, -7.75])
    write("none/small", {"scheme": "none", "len": 3, "dim": 5}, encoding=np.zeros((3, 5), "f4"))


if __name__ == "__main__":
    main()
