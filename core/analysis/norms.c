/* norms: by how much a rotation changes the norm of a vector, at most. Rotations keep norms; rounded cosines and sines
 * do not quite, and factors on them do not at all.
 *
 *     y = B x for each pair of channels,  B = [[cos, -sin], [sin, cos]],   value = max |sigma - 1|
 *
 * over positions, pairs and the two singular values sigma of B. Those of a multiple of a rotation are sqrt(cos^2 +
 * sin^2) both. V-JEPA 2's code uses the cosine and sine of two pairs in one block, which is no rotation. */
#include "core/analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

struct turn {
    struct pe_rotation rotation;
    const struct pe_plan *plan;
    const struct pe_rows *rows;
    double *rounded; /* [2 C]: one row of [cos | sin] in a dtype */
    double *factors; /* [C]: of queries */
    double *changes; /* [C]: of the pairs of a row */
    double *changed; /* [n]: the largest change of each row, before rounding */
    double largest[PE_N_DTYPES];
};

/* The largest change by one block [[a, -b], [c, d]], times a factor. Its singular values are half the sum and half the
 * difference of these two lengths. */
static double change(double a, double b, double c, double d, double factor)
{
    double sum = hypot(a + d, b + c), difference = hypot(a - d, c - b);
    return fmax(fabs(factor * (sum + difference) / 2 - 1), fabs(factor * fabs(sum - difference) / 2 - 1));
}

/* The pairs whose cosine and sine are in the two rows of the block of a pair. */
static void rows_of_block(const struct pe_rotation *rot, size_t pair, size_t *first, size_t *second)
{
    size_t b = 0;
    *first = *second = pair;
    if (!rot->is_tiled)
        return;
    while (pair >= rot->blocks[b].pair0 + rot->blocks[b].n_pairs)
        b++;
    size_t at = rot->blocks[b].pair0, n = rot->blocks[b].n_pairs;
    *first = at + 2 * (pair - at) % n;
    *second = at + (2 * (pair - at) + 1) % n;
}

static double change_of_pair(const struct turn *t, const double *cosines, size_t pair)
{
    const double *sines = cosines + t->rotation.n_pairs;
    size_t i, j;
    rows_of_block(&t->rotation, pair, &i, &j);
    return change(cosines[i], sines[i], sines[j], cosines[j], t->factors[pair]);
}

/* The same for all pairs of a row; a loop of its own for true pairs, which the compiler turns into vectors. */
static double change_of_row(const struct turn *t, const double *cosines)
{
    size_t n_pairs = t->rotation.n_pairs;
    const double *sines = cosines + n_pairs;
    double largest = 0;
    for (size_t c = 0; t->rotation.is_tiled && c < n_pairs; c++)
        t->changes[c] = change_of_pair(t, cosines, c);
    for (size_t c = 0; !t->rotation.is_tiled && c < n_pairs; c++)
        t->changes[c] = fabs(t->factors[c] * sqrt(cosines[c] * cosines[c] + sines[c] * sines[c]) - 1);
    for (size_t c = 0; c < n_pairs; c++)
        largest = t->changes[c] > largest ? t->changes[c] : largest;
    return largest;
}

static void fill_factors(const struct turn *t, size_t row)
{
    for (size_t c = 0; c < t->rotation.n_pairs; c++)
        t->factors[c] = 1;
    if (t->plan->scheme->magnitude) /* of the family's inputs, the first is the queries */
        t->plan->scheme->magnitude(t->plan, 0, &t->plan->seq.k[0], row, 1, t->factors);
}

/* ---- All rows ---- */

static void change_rounded(struct turn *t, const double *row, enum pe_dtype dtype)
{
    pe_round_all(dtype, row, 2 * t->rotation.n_pairs, t->rounded);
    t->largest[dtype] = fmax(t->largest[dtype], change_of_row(t, t->rounded));
}

static void change_all(struct turn *t, const struct pe_value *given)
{
    const char *word;
    for (size_t i = 0; i < t->rows->n && (i % 16 || !pe_is_cancelled()); i++) {
        const double *row = t->rows->at + i * t->rows->dim;
        fill_factors(t, i);
        t->changed[i] = change_of_row(t, row);
        t->largest[PE_F64] = fmax(t->largest[PE_F64], t->changed[i]);
        for (size_t d = 0; (word = pe_word_at(given, pe_dtypes_by_bits, d)); d++)
            if (pe_dtype_find(word) != PE_F64)
                change_rounded(t, row, pe_dtype_find(word));
    }
}

/* ---- The metric ---- */

/* Rows come in the order of positions, so the first row with the largest change has the first such pair. */
static void put_witness(const struct turn *t, double value, struct pe_node *out)
{
    double tie = pe_tie(value, t->rows->largest);
    size_t row = pe_first_extreme(t->changed, t->rows->n, 1, t->rows->largest), pair = 0;
    if (value <= PE_NOISE * t->rows->largest) {
        pe_put_null(out, "witness");
        return;
    }
    fill_factors(t, row);
    while (pair + 1 < t->rotation.n_pairs && change_of_pair(t, t->rows->at + row * t->rows->dim, pair) < value - tie)
        pair++;
    struct pe_node *witness = pe_put_object(out, "witness");
    pe_put_integer(witness, "row", (int64_t)row);
    pe_put_integer(witness, "pair", (int64_t)pair);
}

static const char *const details[] = {
    "The norm of a vector changes by a factor of up to 1 ± {value}, at row {witness.row} in pair {witness.pair}.",
    "Norms are preserved: the largest relative change is {value}.",
};
enum { CHANGED, KEPT };

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    struct turn t = {.plan = subject->plan, .rows = &subject->rows};
    subject->plan->scheme->rotate(subject->plan, &t.rotation, NULL);
    size_t n_pairs = t.rotation.n_pairs;
    double *room = malloc((4 * n_pairs + subject->rows.n) * sizeof *room);
    if (!room)
        return pe_no_memory(err);
    t.rounded = room;
    t.factors = room + 2 * n_pairs;
    t.changes = room + 3 * n_pairs;
    t.changed = room + 4 * n_pairs;
    change_all(&t, study->fields.dtypes);
    if (!pe_was_cancelled()) {
        double value = t.largest[PE_F64];
        const char *word;
        pe_put_real(out, "value", value);
        put_witness(&t, value, out);
        struct pe_node *dtypes = pe_put_object(out, "dtypes");
        for (size_t i = 0; (word = pe_word_at(study->fields.dtypes, pe_dtypes_by_bits, i)); i++)
            pe_put_real(dtypes, word, t.largest[pe_dtype_find(word)]);
        pe_put_detail(out, study->request->lang, details[value <= PE_NOISE * t.rows->largest ? KEPT : CHANGED]);
    }
    free(room);
    return PE_OK;
}

static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->family == PE_ROTARY && subject->n_rows > 0;
}

static enum pe_status check(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_failure *err)
{
    (void)subject;
    return pe_words_check(study->fields.dtypes, pe_answer_dtypes, "dtypes", err);
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    (void)study;
    cost->work = 4 * (double)subject->n_rows * (double)subject->dim;
    cost->work += pe_scale_work(subject, (double)subject->n_rows * (double)subject->dim / 2);
    cost->bytes = (2 * (double)subject->dim + (double)subject->n_rows) * sizeof(double);
}

const struct pe_metric pe_metric_norms = {
    .info =
        {
            .name = "norms",
            .about = {"norms", "how much a rotation changes the norm of a vector, exactly and when stored"},
            .applies_to = "rotary schemes",
            .params = "dtypes",
            .work = "8 n C",
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .needs_rows = true,
    .applies = applies,
    .check = check,
    .cost = cost,
    .compute = compute,
};
