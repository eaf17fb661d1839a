/* /derive: the steps of one number. numbers.c finds which numbers are meant and plans their tensor; derive.c takes the
 * steps, three ways (core/waves/derivation.c), and states them; tex.c writes a formula as TeX. */
#ifndef PE_DERIVE_H
#define PE_DERIVE_H

#include "core/inside.h"
#include "core/params.h"
#include "core/scheme.h"
#include "core/values.h"
#include "core/waves/waves.h"

/* The request's own fields. Each list has one number, or one for each number that is derived. */
struct pe_derive_fields {
    const struct pe_value *tensor;
    struct pe_reals index; /* [rank], or [numbers, rank] */
    struct pe_reals position, channel, pair, head, query, key;
    int recipe;
};

/* A number of a planned output. */
struct pe_number_place {
    struct pe_address at;
    uint64_t element; /* counted over the whole output */
};

struct pe_derive {
    const struct pe_derive_request *request;
    struct pe_derive_fields fields;
    struct pe_field rest[PE_FIELDS_MAX + 4]; /* the configuration and its sequence */
    size_t n_rest, n_own;                    /* n_own: without the sequence that is chosen here */
    double single[PE_FIELDS_MAX];            /* numbers given in place of lists */
    double positions[2 * PE_DERIVED_NUMBERS_MAX];
    struct pe_plan *plan; /* with the one output */
    struct pe_number_place numbers[PE_DERIVED_NUMBERS_MAX];
    size_t n_numbers;
    struct pe_values *answer;
};

/* numbers.c: reads the fields, plans the tensor, and finds the numbers. */
enum pe_status pe_derive_find(struct pe_derive *derive, struct pe_failure *err);

/* tex.c: a formula of a step, "base^(-2·29/128)", as TeX. */
enum { PE_TEX_MAX = 4 * PE_DERIVED_BYTES };
void pe_tex_print(const char *formula, char out[PE_TEX_MAX]);

#endif
