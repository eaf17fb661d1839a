/* Two checkpoints of one projection: what weights.c and the files beside it share. */
#ifndef PE_WEIGHTS_H
#define PE_WEIGHTS_H

#include "core/diagnosis/diagnosis.h"

#include <math.h>

enum {
    PE_WEIGHT_ROWS_MAX = 65536,
    PE_READINGS_MAX = 16,
    PE_WEIGHTS_PIECE = 1024 /* numbers that are read at a time */
};
#define PE_NOWHERE UINT32_MAX

/* ---- What is compared (weights.c) ---- */

enum { PE_NO_CONVERSION, PE_TO_HALF, PE_TO_INTERLEAVED };
enum { PE_BELIEVED, PE_FOUND };

struct pe_matrices_fields {
    int64_t num_heads, num_kv_heads, head_dim, rotary_dim;
    int conversion;
};

struct pe_matrix {
    const void *data;
    enum pe_dtype dtype;
    bool is_text;
    uint64_t n_rows, n_cols, row_step, col_step;
    enum pe_dtype least; /* the narrowest that holds every number */
};

/* Rows that a conversion moves in each head. */
struct pe_row_heads {
    uint64_t n, rows, rotated;
};

struct pe_matrices {
    struct pe_diagnosis *d;
    struct pe_failure *err;
    struct pe_matrices_fields fields;
    struct pe_matrix believed, found;
    struct pe_row_heads heads; /* as believed */
    enum pe_dtype dtype;       /* in which rows are compared */
    double factor;             /* of the variant: found over believed, with its sign */
    uint32_t *of_believed, *expected, *of_found, *place, *table;
    uint64_t *hashes;
    double *keys;
};

extern const char *const pe_matrices_conversions[], *const pe_matrices_names[];

static inline bool pe_matrices_has(int64_t x) { return x != PE_UNSET_INT; }
static inline size_t pe_matrices_piece(uint64_t n, uint64_t at)
{
    return n - at < PE_WEIGHTS_PIECE ? (size_t)(n - at) : PE_WEIGHTS_PIECE;
}
static inline double pe_matrices_bits(enum pe_dtype dtype) { return -log2(pe_roundoff(dtype)); }
/* Were bits lost on the way? */
static inline bool pe_matrices_is_narrowed(const struct pe_matrices *w)
{
    return pe_matrices_bits(w->found.least) < pe_matrices_bits(w->believed.least);
}

/* ---- Rows and their classes (weights_classes.c) ---- */

/* n numbers of a row as they were sent; then in the dtype in which rows are compared. */
void pe_matrices_read_plain(const struct pe_matrix *m, uint64_t row, uint64_t col0, size_t n, double *out);
void pe_matrices_read(const struct pe_matrices *w, const struct pe_matrix *m, uint64_t row, uint64_t col0, size_t n,
                      double *out);
/* Has the client left? Then it sets the error. */
bool pe_matrices_gives_up(const struct pe_matrices *w);
/* The same matrix transposed. */
struct pe_matrix pe_matrices_turned(const struct pe_matrix *m);
/* Has it the columns of w_believed? */
bool pe_matrices_is_like(const struct pe_matrices *w, const struct pe_matrix *found);
/* Slots of a hash table of n rows. */
size_t pe_matrices_slots(uint64_t n);
/* Number equal rows alike: the class of a row is the first believed row that is equal. false: given up. */
bool pe_matrices_class_believed(struct pe_matrices *w);
bool pe_matrices_class_found(struct pe_matrices *w, const struct pe_matrix *found, double sign);
/* The magnitude of the one factor between all lengths of rows; 0: there is none. Then the classes under it. */
double pe_matrices_factor(struct pe_matrices *w, const struct pe_matrix *found);
bool pe_matrices_class_scaled(struct pe_matrices *w, const struct pe_matrix *found, double factor);
/* Believed rows that no found row is. */
uint64_t pe_matrices_missing(const struct pe_matrices *w, uint64_t n_found);

/* ---- Readings (weights_readings.c) ---- */

/* Conversions within heads, one way or the other, so many times. */
struct pe_row_moves {
    int conversion;
    unsigned times;
    struct pe_row_heads heads;
};

/* A variant, then where the rows are. */
struct pe_row_reading {
    const struct pe_fault *of_rows; /* NULL: they are in place */
    struct pe_row_moves moves;
    bool replaces;                /* the moves were made in place of those that were believed */
    bool are_heads_moved;         /* whole heads, too */
    uint64_t first, block, every; /* of a fused matrix; block 0: it has as many rows as believed */
    bool is_turned;
    double factor;
    unsigned cost;
    int surprise;
};

struct pe_row_readings {
    struct pe_row_reading best[PE_READINGS_MAX];
    size_t n, searched;
};

enum { PE_READING_FAULTS_MAX = 6 };
enum { PE_HEAD_COUNTS_MAX = 256 }; /* more than any number up to 65536 has divisors */

/* The row that row i was before it was moved. */
uint64_t pe_matrices_row_before(const struct pe_row_moves *m, uint64_t i);
/* The faults of a reading, in the order of the table; returns their number. */
size_t pe_matrices_faults(const struct pe_row_reading *r, const struct pe_fault *out[PE_READING_FAULTS_MAX]);
/* Are whole heads in another order? order: [heads], NULL: not wanted; equal heads are taken in their order. */
bool pe_matrices_are_heads_moved(const struct pe_matrices *w, const uint32_t *from, const struct pe_row_moves *m,
                                 int64_t *order);
/* Other numbers of heads that a conversion may have used, [PE_HEAD_COUNTS_MAX]. */
size_t pe_matrices_other_heads(const struct pe_matrices *w, uint64_t *out);
/* Every reading, the best first; missing: believed rows that are nowhere. */
enum pe_status pe_matrices_read_all(struct pe_matrices *w, struct pe_row_readings *r, uint64_t *missing);

/* ---- The answer (weights_answer.c) ---- */

enum pe_status pe_matrices_state(struct pe_matrices *w, const struct pe_row_readings *r, uint64_t missing);

#endif
