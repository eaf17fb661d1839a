/* /derive: the steps of one number. numbers.c finds which numbers are meant and plans their tensor; derive.c takes the
 * steps, three ways (core/waves/derivation.c), and states them; rotated.c has the numbers of a rotated vector,
 * attended.c those of an attention map, and tex.c writes a formula as TeX. */
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
    uint64_t element; /* counted over the whole output; of a rotated vector, its channel */
    bool is_second;   /* of the two channels of a rotated pair */
};

struct pe_derive {
    const struct pe_derive_request *request;
    struct pe_derive_fields fields;
    struct pe_field rest[PE_FIELDS_MAX + 4]; /* the configuration and its sequence */
    size_t n_rest, n_own;                    /* n_own: without the sequence that is chosen here */
    double single[PE_FIELDS_MAX];            /* numbers given in place of lists */
    double positions[PE_AXES_MAX * PE_DERIVED_NUMBERS_MAX];
    struct pe_plan *plan; /* with the one output */
    const char *side;     /* "q" or "k": a vector is rotated, and the plan's tensor is its cosines; NULL: none is */
    bool is_map;          /* scores or probs of attention: the plan is that of /attention … */
    struct pe_plan *f64;  /* … and this is the same in double, whose rows the steps read */
    double map_bytes;     /* of the plan and of the number */
    struct pe_attended *attended; /* the number whose steps are taken */
    struct pe_value vector;       /* its channels, borrowed */
    size_t n_vector;
    struct pe_number_place numbers[PE_DERIVED_NUMBERS_MAX];
    size_t n_numbers;
    struct pe_values *answer;
    const struct pe_value *stated; /* the answer, done */
};

/* numbers.c: reads the fields, plans the tensor, and finds the numbers. */
enum pe_status pe_derive_find(struct pe_derive *derive, struct pe_failure *err);

/* rotated.c: of the tensors q_out and k_out, takes the vector out of the fields, and plans cosines in their place; then
 * checks that it is a head, and chooses the channel of a number whose pair is known. */
enum pe_status pe_derive_take_vector(struct pe_derive *derive, const char **tensor, struct pe_failure *err);
enum pe_status pe_derive_check_vector(const struct pe_derive *derive, struct pe_failure *err);
void pe_derive_choose_channel(const struct pe_derive *derive, size_t k, struct pe_number_place *place);
/* The number as /rotate gives it, and its bits (room for 8 bytes); its steps. */
enum pe_status pe_derive_rotated_number(const struct pe_derive *derive, const struct pe_number_place *place, double *x,
                                        enum pe_dtype *dtype, void *bits, struct pe_failure *err);
enum pe_status pe_derive_rotated(const struct pe_derive *derive, const struct pe_number_place *place,
                                 struct pe_derivation *steps, struct pe_failure *err);

/* attended.c: plans the map in double, and checks what the numbers cost. Then opens a number, whose steps can be taken
 * from then on. */
enum pe_status pe_derive_open_map(struct pe_derive *derive, const struct pe_request *request, struct pe_failure *err);
enum pe_status pe_derive_open_pair(struct pe_derive *derive, const struct pe_number_place *place,
                                   struct pe_failure *err);
void pe_derive_close_map(struct pe_derive *derive);
enum pe_status pe_derive_attended(const struct pe_derive *derive, struct pe_derivation *steps, struct pe_failure *err);

/* tex.c: a formula of a step, "base^(-2·29/128)", as TeX. */
enum { PE_TEX_MAX = 4 * PE_DERIVED_BYTES };
void pe_tex_print(const char *formula, char out[PE_TEX_MAX]);

#endif
