/* The position's binary digits, stretched over the channels.
 *
 *     PE(p, j) = high where bit b(j) of p is set, else low
 *     k(j) = ⌊j · bits / dim⌋;   b = bits - 1 - k (msb: 252 in eight bits reads 1 1 1 1 1 1 0 0) or b = k (lsb)
 *
 * Bit b toggles every 2^b positions. The number of bits comes from the configuration, never from the sequence;
 * otherwise the code of a position would change with the length. */
#include "core/schemes/absolute/absolute.h"

#include <stdlib.h>

enum bit_order { MSB, LSB };

struct binary {
    int64_t dim, bits;
    int bit_order;
    double low, high;
    int arith;
};

static const char *const bit_order_words[] = {[MSB] = "msb", [LSB] = "lsb", NULL};

enum { BITS_MAX = 53, BITS_DEFAULT_MAX = 32 }; /* bits of the largest exact integers of a double */

static const struct pe_param params[] = {
    PE_P_INT(binary, dim, 512, 1, PE_DIM_MAX, "width", "channels of the encoding", .group = PE_G_SIZE,
             .usual = {8, 1024}),
    PE_P_INT(binary, bits, PE_UNSET, 1, BITS_MAX, "bits",
             "number of binary digits; positions must be below 2^bits; default min(dim, 32)", .level = PE_BASIC,
             .group = PE_G_SIZE, .usual = {1, 16}),
    PE_P_WORD(binary, bit_order, bit_order_words, "bit order", "msb: the highest bit first; lsb: the lowest bit first",
              .group = PE_G_LAYOUT),
    PE_P_REAL(binary, low, 0, -1e12, 1e12, "value of a 0", "value of a bit that is not set", .usual = {-1, 1}),
    PE_P_REAL(binary, high, 1, -1e12, 1e12, "value of a 1", "value of a bit that is set", .usual = {-1, 1}),
    PE_P_ARITH(binary),
    PE_P_END,
};

static const struct pe_output_row outputs[] = {
    PE_OUTPUT("encoding", "n,dim", 1, PE_DTYPE_NONE, false, NULL, "encoding", "a row per position"),
    {.name = NULL},
};

static int bits_needed(double position)
{
    int exponent;
    frexp(position, &exponent); /* position = m · 2^exponent, 1/2 ≤ m < 1 */
    return exponent;
}

static enum pe_status check_last(const struct pe_plan *p, struct pe_failure *err)
{
    const struct binary *c = p->config;
    double last = pe_positions_last(p->seq.k);
    if (last < ldexp(1, (int)c->bits))
        return PE_OK;
    return pe_fail(err, pe_whole_pointer(p), "position %.0f needs %d bits, bits is %lld%s", last, bits_needed(last),
                   (long long)c->bits, pe_plan_gave(p, "bits") ? "" : pe_text(", which is min(dim, 32)"));
}

/* A division for each channel. */
static void binary_cost(const struct pe_plan *p, struct pe_cost *cost)
{
    pe_cost_each(cost, (double)((const struct binary *)p->config)->dim, sizeof(unsigned char), 30);
}

static enum pe_status binary_plan(struct pe_plan *p, struct pe_failure *err)
{
    struct binary *c = p->config;
    if (c->bits == PE_UNSET_INT)
        c->bits = c->dim < BITS_DEFAULT_MAX ? c->dim : BITS_DEFAULT_MAX;
    enum pe_status status = pe_whole_check(p, err);
    if (!status)
        status = check_last(p, err);
    if (status)
        return status;
    unsigned char *shifts = p->tables = malloc((size_t)c->dim);
    if (!shifts)
        return pe_no_memory(err);
    for (int64_t j = 0; j < c->dim; j++) {
        int64_t k = j * c->bits / c->dim;
        shifts[j] = (unsigned char)(c->bit_order == MSB ? c->bits - 1 - k : k);
    }
    return PE_OK;
}

/* PE(p, j) = p >> b(j) & 1 ? high : low */
static void binary_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *b,
                        void *dst)
{
    const struct binary *c = plan->config;
    const unsigned char *shifts = (const unsigned char *)plan->tables + b->col0;
    const double values[2] = {c->low, c->high};
    (void)id;
    for (uint64_t i = 0; i < b->n_rows; i++) {
        uint64_t p = (uint64_t)pe_position_at(plan->seq.k, b->row0 + i);
        for (uint64_t j = 0; j < b->n_cols; j++)
            pe_store(output->dtype, dst, (size_t)(i * b->n_cols + j), values[p >> shifts[j] & 1]);
    }
}

static const struct pe_formula_line formula[] = {
    {"i = floor(j*bits/dim)", "the digits are stretched over the channels"},
    {"b = { bits - 1 - i if bit_order is msb; i }", "the bit of the position that channel j shows"},
    {"PE[p, j] = { high if floor(p/2^b) mod 2 = 1; low }", "bit b changes every 2^b positions"},
    {NULL, NULL},
};

/* ---- One number ---- */

static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    const struct binary *c = plan->config;
    uint64_t p = (uint64_t)pe_position_at(plan->seq.k, at->row), b = ((const unsigned char *)plan->tables)[at->col];
    (void)id;
    (void)err;
    d->is_looked_up = true;
    pe_derived(d, "b", dd((double)b), "floor(%llu·bits/dim)%s, bits = %lld, dim = %lld", (unsigned long long)at->col,
               c->bit_order == MSB ? " from the top" : "", (long long)c->bits, (long long)c->dim);
    pe_derived_says(d, "the digit that this channel shows");
    bool is_set = p >> b & 1;
    pe_derived(d, "digit", dd(is_set), "floor(%llu/2^%llu) mod 2", (unsigned long long)p, (unsigned long long)b);
    pe_derived(d, "x", dd(is_set ? c->high : c->low), is_set ? "high" : "low");
    return PE_OK;
}

const struct pe_scheme pe_scheme_binary = {
    .info =
        {
            .name = "binary",
            .family = "absolute",
            .about = {"binary digits", "the position's binary digits, stretched over the channels"},
            .paper = "no model uses it; introductions show it between counting and sinusoids",
            .formula = formula,
            .example = "{\"scheme\":\"binary\",\"len\":8,\"dim\":8}",
            .picture = "len=64&dim=6",
            .worked = "dim=8&position=5&channel=5",
            .traps = "Neighbours may differ in every digit, as 7 and 8 do, so codes that are far apart may be "
                     "of positions that are near. The number of digits is set by the configuration; one that "
                     "followed from the length would change the code of a position.",
            .params = params,
            .outputs = outputs,
            .is_additive = true,
        },
    .config_bytes = sizeof(struct binary),
    .cost = binary_cost,
    .plan = binary_plan,
    .fill = binary_fill,
    .derive = derive,
};
