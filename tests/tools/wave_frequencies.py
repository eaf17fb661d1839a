"""Prints wave_frequencies.h, which tests/support/wave_truth.h includes: frequencies of some tables as 128-bit fractions of a turn, by mpmath."""
import mpmath as mp

TABLES = [(150000, 32), (1000000, 128)]

mp.mp.prec = 400
print("/* Made by tests/tools/wave_frequencies.py: base^(-i/n) as a fraction of a turn, 128 bits, high half first. */")
for base, n in TABLES:
    print(f"static const uint64_t turns_{base}_{n}[{n}][2] = {{")
    for i in range(n):
        turns = mp.mpf(base) ** (-mp.mpf(i) / n) / (2 * mp.pi)
        bits = int(mp.nint(turns * 2**128))
        print(f"    {{0x{bits >> 64:016x}, 0x{bits & (2**64 - 1):016x}}},")
    print("};")
print("static const struct wave_table {\n    double base;\n    size_t n;\n    const uint64_t (*turns)[2];\n} wave_tables[] = {")
for base, n in TABLES:
    print(f"    {{{base}, {n}, turns_{base}_{n}}},")
print("};")
