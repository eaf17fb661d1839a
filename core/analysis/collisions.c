/* collisions: rows that are equal to an earlier one when the table is stored in a narrower type: a model cannot tell
 * these positions apart, though the exact encoding can.
 *
 *     repeated = number of rows j for which some i < j has round(r_i) = round(r_j)
 *
 * Numbers are equal by value: -0 is 0, and a NaN is not equal to itself. Rows are found by a hash of their rounded
 * numbers in a table with open addressing, and then compared. */
#include "core/analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

enum { EMPTY = -1 };

struct search {
    const struct pe_rows *rows;
    enum pe_dtype dtype;
    size_t n_places;        /* a power of two, at least twice the rows */
    int32_t *first;         /* [n_places]: the earliest row of each kind, or EMPTY */
    uint64_t *hash;         /* [n] */
    double *here, *old;     /* [dim]: two rounded rows */
    int64_t repeated, i, j; /* the first pair so far, if repeated > 0 */
};

static uint64_t hash_of(const double *x, size_t n)
{
    uint64_t hash = n, bits;
    for (size_t i = 0; i < n; i++) {
        double value = x[i] + 0.0; /* -0 becomes 0 */
        memcpy(&bits, &value, sizeof bits);
        hash = (hash ^ bits) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 32;
    }
    return hash;
}

static void round_row(const struct search *s, size_t i, double *to)
{
    pe_round_all(s->dtype, s->rows->at + i * s->rows->dim, s->rows->dim, to);
}

/* A row with a NaN is not equal to any row. */
static bool has_nan(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(x[i]))
            return true;
    return false;
}

/* Is row i, whose rounded numbers are in `here`, equal to this earlier row? */
static bool is_equal(const struct search *s, size_t i, size_t earlier)
{
    if (s->hash[i] != s->hash[earlier] || pe_is_cancelled())
        return false;
    round_row(s, earlier, s->old);
    for (size_t c = 0; c < s->rows->dim; c++)
        if (s->here[c] != s->old[c])
            return false;
    return true;
}

static void count_pair(struct search *s, int64_t i, int64_t j)
{
    if (s->repeated == 0 || i < s->i) {
        s->i = i;
        s->j = j;
    }
    s->repeated++;
}

static void add_row(struct search *s, size_t i)
{
    round_row(s, i, s->here);
    if (has_nan(s->here, s->rows->dim))
        return;
    s->hash[i] = hash_of(s->here, s->rows->dim);
    size_t place = s->hash[i] & (s->n_places - 1);
    while (s->first[place] != EMPTY && !is_equal(s, i, (size_t)s->first[place]))
        place = (place + 1) & (s->n_places - 1);
    if (s->first[place] == EMPTY)
        s->first[place] = (int32_t)i;
    else
        count_pair(s, s->first[place], (int64_t)i);
}

static void search(struct search *s, enum pe_dtype dtype)
{
    s->dtype = dtype;
    s->repeated = 0;
    for (size_t p = 0; p < s->n_places; p++)
        s->first[p] = EMPTY;
    for (size_t i = 0; i < s->rows->n && (i % 16 || !pe_is_cancelled()); i++)
        add_row(s, i);
}

/* ---- The metric ---- */

enum { DTYPES_MAX = 6 }; /* pe_answer_dtypes, each once */

static const char *const details[] = {
    "In {dtype}, no two rows are equal.",
    "In {dtype}, {value} rows are equal to an earlier one; the first pair is {witness.rows}.",
    ("In {dtype}, the biases at {value} distances are equal to those at an earlier one; the first pair is "
     "{witness.distances}."),
};
enum { DIFFERENT, OF_ROWS, OF_DISTANCES };

struct found {
    const char *word;
    int64_t repeated, i, j;
};

static void put_witness(const struct pe_rows *rows, const struct found *found, struct pe_node *node)
{
    if (found->repeated)
        pe_put_two_rows(pe_put_object(node, "witness"), rows, (size_t)found->i, (size_t)found->j);
    else
        pe_put_null(node, "witness");
}

static size_t search_all(struct search *s, const struct pe_value *given, struct found *found)
{
    const char *word;
    size_t n = 0;
    for (; (word = pe_word_at(given, pe_dtypes_by_bits + 1, n)); n++) {
        search(s, pe_dtype_find(word));
        found[n] = (struct found){word, s->repeated, s->i, s->j};
    }
    return n;
}

static size_t count_places(size_t n_rows)
{
    size_t n = 2;
    while (n < 2 * n_rows)
        n *= 2;
    return n;
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    const struct pe_rows *rows = &subject->rows;
    struct found found[DTYPES_MAX];
    struct search s = {.rows = rows, .n_places = count_places(rows->n)};
    s.first = malloc(s.n_places * sizeof *s.first);
    s.hash = malloc(rows->n * sizeof *s.hash);
    s.here = malloc(2 * rows->dim * sizeof *s.here);
    s.old = s.here ? s.here + rows->dim : NULL;
    enum pe_status status = s.first && s.hash && s.here ? PE_OK : pe_no_memory(err);
    size_t n = status ? 0 : search_all(&s, study->fields.dtypes, found);
    if (n && !pe_was_cancelled()) {
        /* The headline is that of the last dtype. */
        const struct found *last = &found[n - 1];
        pe_put_integer(out, "value", last->repeated);
        put_witness(rows, last, out);
        pe_put_string(out, "dtype", last->word);
        struct pe_node *dtypes = pe_put_object(out, "dtypes");
        for (size_t d = 0; d < n; d++) {
            struct pe_node *node = pe_put_object(dtypes, found[d].word);
            pe_put_integer(node, "repeated", found[d].repeated);
            put_witness(rows, &found[d], node);
        }
        pe_put_detail(out, study->request->lang,
                      details[!last->repeated  ? DIFFERENT
                              : rows->distance ? OF_DISTANCES
                                               : OF_ROWS]);
    }
    free(s.first);
    free(s.hash);
    free(s.here);
    return status;
}

static enum pe_status check(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_failure *err)
{
    (void)subject;
    return pe_words_check(study->fields.dtypes, pe_answer_dtypes, "dtypes", err);
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    const struct pe_value *given = study->fields.dtypes;
    double n = (double)subject->n_rows, dim = (double)subject->dim;
    double n_dtypes = given && given->kind == PE_LIST ? (double)given->list.n : 3;
    cost->work = 8 * n * dim * n_dtypes;
    cost->bytes =
        (double)count_places(subject->n_rows) * sizeof(int32_t) + n * sizeof(uint64_t) + 2 * dim * sizeof(double);
}

const struct pe_metric pe_metric_collisions = {
    .info =
        {
            .name = "collisions",
            .about = {"collisions", "rows that become equal when they are stored in a narrower type"},
            .applies_to = "schemes with rows: absolute, rotary, and biases by distance",
            .params = "dtypes",
            .work = "8 n D for each dtype",
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .needs_rows = true,
    .positions_max = PE_UNPAIRED_POSITIONS_MAX,
    .applies = pe_has_rows,
    .check = check,
    .cost = cost,
    .compute = compute,
};
