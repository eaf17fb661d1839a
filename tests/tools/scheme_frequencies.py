"""Prints scheme_frequencies.h, which tests/slow/schemes_exact.c includes: what each column of some schemes' tables is, as 128-bit
fractions of a turn, from the formulas of tests/truth/ (mpmath)."""
import json
import pathlib
import sys

import mpmath as mp

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
import truth  # noqa: E402
import truth.scaling as scalings  # noqa: E402

mp.mp.prec = 400
SINE, COSINE = 0, 1


def rotary(head_dim, base=10000.0, scaling=None, **more):
    """cos of all pairs, then sin, as form concat answers them; the factor is the double posenc states."""
    scaling = scaling or {"type": "default"}
    w = scalings.inv_freq(scaling, base, head_dim, 1, head_dim)
    request = {"scheme": "rope", "head_dim": head_dim, "base": base, "scaling": scaling, "form": "concat", **more}
    return request, [(x, COSINE) for x in w] + [(x, SINE) for x in w], float(scalings.attention_factor(scaling, 1))


def sinusoidal(dim, **parameters):
    columns = truth.sinusoidal_columns(dim, **parameters)
    kinds = {"sin": SINE, "cos": COSINE}
    return {"scheme": "sinusoidal", "dim": dim, **parameters}, [(w, kinds[k]) for k, w in columns], 1.0


def nerf(num_freqs):
    columns = [(mp.mpf(2) ** k, quarter) for k in range(num_freqs) for quarter in (SINE, COSINE)]
    return {"scheme": "fourier", "num_freqs": num_freqs, "include_input": False}, columns, 1.0


LLAMA3 = {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}
GPT_OSS = {"type": "yarn", "factor": 32, "truncate": False, "original_max_position_embeddings": 4096}
LONG = {"type": "longrope", "list": "long", "factor": 32, "original_max_position_embeddings": 4096,
        "short_factor": [1.05] * 48, "long_factor": [1.03 + 0.11 * i * i for i in range(48)]}
TABLES = [
    sinusoidal(128), sinusoidal(128, layout="half", freq_shift=1), sinusoidal(101),
    rotary(128), rotary(128, 500000.0, LLAMA3), rotary(64, 150000.0, GPT_OSS), rotary(96, 10000.0, LONG),
    rotary(128, 10000.0, {"type": "ntk", "factor": 4}), rotary(256, 1e6, {"type": "linear", "factor": 8}),
    rotary(128, 5e6, channels="mrope_interleaved", mrope_section=[24, 20, 20]), rotary(64, direction=-1), nerf(10),
]


def main():
    print("/* Made by tests/tools/scheme_frequencies.py: frequency of each column as a fraction of a turn, 128 bits, high half")
    print(" * first; and whether it is a cosine. */")
    for i, (_, columns, _) in enumerate(TABLES):
        print(f"static const struct scheme_column columns_{i}[{len(columns)}] = {{")
        for w, quarter in columns:
            bits = int(mp.nint(w / (2 * mp.pi) * 2**128))
            print(f"    {{{{0x{bits >> 64 & (2**64 - 1):016x}, 0x{bits & (2**64 - 1):016x}}}, {quarter}}},")
        print("};")
    print("static const struct scheme_table {\n    const char *request;\n    size_t n;\n    const struct scheme_column *columns;")
    print("    double factor;\n    bool backwards;\n} scheme_tables[] = {")
    for i, (request, columns, factor) in enumerate(TABLES):
        text = json.dumps(request)[1:-1].replace('"', '\\"')
        backwards = "true" if request.get("direction") == -1 else "false"
        print(f'    {{"{text}", {len(columns)}, columns_{i}, {factor.hex()}, {backwards}}},')
    print("};")


if __name__ == "__main__":
    main()
