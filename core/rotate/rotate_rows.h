/* Rotates the channels of a head by the angles of its position, and scales queries by it; the operations rotate and
 * attend share both. */
#ifndef PE_ROTATE_ROWS_H
#define PE_ROTATE_ROWS_H

#include "core/kernels/kernels.h"
#include "core/scheme.h"

struct pe_row_rotation {
    struct pe_rotation rotation;
    struct pe_wave *columns; /* 2 · n_pairs: cosines, then sines */
    struct pe_waves *waves;
};

/* Gets the rotation from the plan's scheme. Call pe_rotate_drop afterwards, also after a failure. */
enum pe_status pe_rotate_init(struct pe_row_rotation *turn, struct pe_plan *plan, struct pe_failure *err);
/* Nanoseconds of pe_rotate_init at most, before the scheme's plan(), and of a table of so many numbers. */
double pe_rotate_ns(uint64_t head_dim);
double pe_rotate_table_ns(const struct pe_plan *plan, uint64_t n_rows, uint64_t n_columns);
void pe_rotate_drop(struct pe_row_rotation *turn);

/* Writes cosines and sines of rows from row0 on, [n_rows, 2 · n_pairs]. If they depend on which input is rotated
 * (xPos), id is its row among the scheme's inputs. */
void pe_rotate_table(const struct pe_row_rotation *turn, const struct pe_plan *plan,
                     const struct pe_positions *positions, size_t id, uint64_t row0, size_t n_rows, double *table);

/* Writes x rotated to y: one head at one position; cosines is its row of the table. `to` is a real dtype. Either x and
 * y do not overlap, or they are the same memory and dtype. */
void pe_rotate_row(const struct pe_row_rotation *turn, const double *cosines, enum pe_dtype from, const void *x,
                   enum pe_dtype to, void *y);

/* ---- Whole tensors of f32, f16 and bf16, by floats ---- */

/* Can pe_rotate_rows do it? Only pe_rotate_row handles V-JEPA 2's layout, layouts that move pairs, factors that depend
 * on the position (xPos) or come near the ends of a float's range, and dtypes with more bits than a float. */
bool pe_rotate_by_floats(const struct pe_row_rotation *turn, const struct pe_plan *plan, enum pe_dtype from,
                         enum pe_dtype to);

/* Like pe_rotate_table in floats, each rounded to nearest: the same as /encode answers for cos and sin. */
void pe_rotate_floats(const struct pe_row_rotation *turn, const struct pe_plan *plan,
                      const struct pe_positions *positions, uint64_t row0, size_t n_rows, float *table);

/* Like pe_rotate_row, for consecutive rows whose rows of the table are table_step floats apart (0: all rows are at
 * one position), and for several heads with the same number of rows, `apart` elements from one head to the next in x
 * and in y. Two products and their sum are each rounded to f32, so the error is within 6·2^-24 of the larger term;
 * for f16 and bf16 the sum is rounded once more. y is x and to is from, or they do not overlap. */
struct pe_rotate_extent {
    uint64_t n_rows, n_heads, apart;
};
void pe_rotate_rows(const struct pe_row_rotation *turn, const float *table, size_t table_step, enum pe_dtype from,
                    const void *x, enum pe_dtype to, void *y, const struct pe_rotate_extent *extent);

/* Are both at the same positions on every axis? */
bool pe_rotate_same_positions(const struct pe_plan *plan, const struct pe_positions *a, const struct pe_positions *b);

/* ---- Queries by their positions ---- */

/* A factor on the rows of queries, after their rotation (query_scale.c has the rules). The struct that an operation
 * reads its fields into has it as the member query_scale. */

enum pe_query_scale_type { PE_SCALE_MINISTRAL, PE_SCALE_LLAMA4, PE_SCALE_LOGN };
extern const char *const pe_query_scale_words[];

struct pe_query_scale {
    bool is_given;
    int type; /* PE_UNSET_WORD: not given */
    double beta, original_max_position_embeddings;
    struct pe_field printed[3]; /* as resolved */
    size_t n_printed;
};

/* The row of an operation whose struct S of fields has the member. */
extern const struct pe_param pe_query_scale_params[];
#define PE_P_QUERY_SCALE(S)                                                                                            \
    PE_P_OBJECT("query_scale", pe_query_scale_params, "scale of queries",                                              \
                "multiplies query rows by a factor that grows with their position, after rotation: /rotate (q), "      \
                "/attention, /diagnose",                                                                               \
                .offset = offsetof(struct S, query_scale), .group = PE_G_ATTENTION)

/* After pe_params_read: completes what it has read, and refuses what does not go together. */
enum pe_status pe_query_scale_read(struct pe_query_scale *s, const struct pe_field *fields, size_t n,
                                   struct pe_failure *err);
/* Positions of queries that it is for: on one axis, none below 0. */
enum pe_status pe_query_scale_check(const struct pe_query_scale *s, unsigned n_axes, const struct pe_positions *q,
                                    struct pe_failure *err);
/* As the resolved config has it; borrows s. */
struct pe_value pe_query_scale_value(const struct pe_query_scale *s);
/* The factor of a query at position p; 1 where it is not given. */
double pe_query_factor(const struct pe_query_scale *s, double p);
/* The factors of n queries at these positions, into *out, which the caller frees. */
enum pe_status pe_query_factors(const struct pe_query_scale *s, struct pe_plan *plan, const struct pe_positions *q,
                                uint64_t n, double **out, struct pe_failure *err);
#define PE_NS_QUERY_FACTOR 100.0

#endif
