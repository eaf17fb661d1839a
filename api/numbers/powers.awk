# Prints the table of powers of ten that numbers_powers.h describes, in C. The leading bits of 10^k are those of 5^k, which is one
# long binary number here: a step multiplies or divides it by five, and its first 128 bits from the first one on are a row.
# Divided by five again and again, 2^(WIDTH-1) gives the leading bits of each 5^-k exactly, because floor(floor(x/5)/5) = floor(x/25).

# Puts 2^(WIDTH - at) into bit[1 … WIDTH], the most significant first.
function start(at) {
    for (i = 1; i <= WIDTH; i++)
        bit[i] = i == at
}

function multiply(    carry) {
    for (i = WIDTH; i > 0; i--) {
        carry += 5 * bit[i]
        bit[i] = carry % 2
        carry = int(carry / 2)
    }
}

function divide(    rest) {
    for (i = 1; i <= WIDTH; i++) {
        rest = 2 * rest + bit[i]
        bit[i] = rest >= 5
        rest -= 5 * bit[i]
    }
}

# The 64 bits from `from` on, plus more, as a number of C.
function word(from, more,    text, digit) {
    for (i = from + 60; i >= from; i -= 4) {
        digit = 8 * bit[i] + 4 * bit[i + 1] + 2 * bit[i + 2] + bit[i + 3] + more
        more = digit > 15
        text = substr("0123456789abcdef", digit % 16 + 1, 1) text
    }
    return "0x" text
}

function row(k,    first) {
    for (first = 1; !bit[first]; first++)
        ;
    rows[k] = "{" word(first, 0) ", " word(first + 64, k >= -27 && k < 0) "}"
}

BEGIN {
    MIN = -342; MAX = 324
    WIDTH = 1000 # 5^324 has 753 bits, and 5^342 has 795: at least 128 are behind or left
    start(1)
    for (k = -1; k >= MIN; k--) {
        divide()
        row(k)
    }
    start(WIDTH - 128)
    for (k = 0; k <= MAX; k++) {
        row(k)
        multiply()
    }
    print "#include \"api/numbers/numbers_powers.h\"\n"
    print "const struct api_power api_powers[API_POWER_MAX - API_POWER_MIN + 1] = {"
    for (k = MIN; k <= MAX; k++)
        print "    " rows[k] ", /* " k " */"
    print "};"
}
