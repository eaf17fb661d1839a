"""Checks the powers of ten that api/numbers/powers.awk computes when the program is built, against Python's integers, and over the whole range the
facts about the table and the exponent formulas that the C code relies on.

    python3 tests/tools/powers_of_ten.py build/gen/api/numbers/powers_rows.c

The status is 1 if a row is wrong.
"""
import re
import sys

MIN, MAX = -342, 324
ROUNDED_UP = range(-27, 0)  # 5^27 is the largest power of five in 64 bits: only here may a 64-bit product be exact
EXACT = range(0, 56)        # 5^55 is the largest power of five in 128 bits


def power(k):
    """10^k scaled by the power of two that puts it in [2^127, 2^128): an integer, and whether it is exact."""
    five = 5 ** abs(k)
    if k >= 0:
        shift = 128 - five.bit_length()
        return (five << shift, True) if shift >= 0 else (five >> -shift, five & ((1 << -shift) - 1) == 0)
    scaled = (1 << (127 + five.bit_length())) // five
    return scaled + (k in ROUNDED_UP), False


def floor_log2(k):
    return (10 ** k).bit_length() - 1 if k >= 0 else -(10 ** -k - 1).bit_length()


def floor_log10(numerator, q):
    """Largest k with 10^k <= numerator/4 * 2^q, by search from the formula's neighbourhood."""
    def reaches(k):
        left, right = (10 ** k, 1) if k >= 0 else (1, 10 ** -k)
        up, down = (numerator << q, 4) if q >= 0 else (numerator, 4 << -q)
        return left * down <= up * right
    k = q * 1262611 >> 22
    k += 2
    while not reaches(k):
        k -= 1
    return k


def check():
    for k in range(MIN, MAX + 1):
        value, exact = power(k)
        assert 1 << 127 <= value < 1 << 128
        assert exact == (k in EXACT)
        assert k * 1741647 >> 19 == floor_log2(k), k
        low, high = value & (2 ** 64 - 1), value >> 64
        assert low != 2 ** 64 - 1 and high != 2 ** 64 - 1  # adding one to either half never carries
        assert (low == 0) == (k in range(0, 28))           # 64 bits are exact just there
    for q in range(-1074, 972):
        assert q * 1262611 >> 22 == floor_log10(4, q), q
        assert q * 1262611 - 524031 >> 22 == floor_log10(3, q), q


def main():
    check()
    rows = [int(high + low, 16) for high, low in re.findall(r"\{0x(\w{16}), 0x(\w{16})\}", open(sys.argv[1]).read())]
    wrong = [k for k, row in zip(range(MIN, MAX + 1), rows) if row != power(k)[0]]
    print("".join(f"{sys.argv[1]}: 10^{k} is wrong\n" for k in wrong), end="")
    sys.exit(bool(wrong) or len(rows) != MAX + 1 - MIN)


if __name__ == "__main__":
    main()
