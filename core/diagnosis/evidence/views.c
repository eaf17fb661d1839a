/* Tables of cosines and sines in one tensor, seen as cos and sin: only the steps between their numbers differ.
 *
 *     freqs_cis, cos_sin   [n, C, 2]       cosine and sine of each pair
 *     cos_sin              [n, r]          cosines of all pairs, then sines
 *     cos_sin              [2, n, columns] the table of cosines, then that of sines
 *     matrix               [n, C, 2, 2]    [[cos, -sin], [sin, cos]]; [n, d, d] is in whole_matrix.c
 *
 * The axes before those of a pair are kept: the last of them that is longer than 1 counts positions, the others rows of
 * a batch. */
#include "core/diagnosis/diagnosis.h"
#include "core/request/request.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static enum pe_status refuse(const struct pe_evidence *e, const char *needed, struct pe_failure *err)
{
    char shape[96], pointer[24];
    const struct pe_tensor *t = &e->tensors[0];
    pe_shape_print(t->shape, t->rank, shape, sizeof shape);
    snprintf(pointer, sizeof pointer, "/%s", e->kind->tensors[0]);
    return pe_fail(err, pointer, "%s has the shape %s; needed: %s", pointer + 1, shape, pe_text(needed));
}

/* Sees the tensor as n_tensors tables, whose rows are axes begin … end-1; the caller sets the steps. */
static void see_tables(struct pe_evidence *e, size_t n_tensors, unsigned begin, unsigned end, uint64_t columns,
                       const char *form)
{
    const struct pe_tensor sent = e->tensors[0];
    struct pe_tensor table = {.dtype = sent.dtype, .data = sent.data};
    for (unsigned axis = begin; axis < end; axis++)
        table.shape[table.rank++] = sent.shape[axis];
    if (table.rank == 0)
        table.shape[table.rank++] = 1;
    table.shape[table.rank++] = columns;
    e->view = (struct pe_tensor_view){.sent = sent, .row_step = columns, .col_step = 1, .form = form};
    e->n_tensors = n_tensors;
    for (size_t t = 0; t < n_tensors; t++)
        e->tensors[t] = table;
}

/* for kinds of evidence. Rows of columns. */
static enum pe_status view_rows(struct pe_evidence *e, struct pe_failure *err)
{
    const struct pe_tensor *t = &e->tensors[0];
    bool is_list = e->kind->id == PE_OF_LADDER;
    uint64_t columns = t->shape[t->rank - 1], n;
    pe_shape_count(t->shape, t->rank - 1, &n);
    if ((is_list && n != 1) || columns > PE_HEAD_DIM_MAX)
        return refuse(e, is_list ? "[rotary_dim/2]" : "[n, rotary_dim/2], or [n, rotary_dim] with each angle twice",
                      err);
    see_tables(e, 1, 0, t->rank - 1, columns, is_list ? "pairs" : NULL);
    return PE_OK;
}

static bool ends_with_twos(const struct pe_tensor *t, unsigned n_twos)
{
    bool fits = t->rank > n_twos;
    for (unsigned i = 1; fits && i <= n_twos; i++)
        fits = t->shape[t->rank - i] == 2;
    return fits && t->shape[t->rank - 1 - n_twos] <= PE_HEAD_DIM_MAX / 2;
}

enum pe_status pe_view_freqs_cis(struct pe_evidence *e, struct pe_failure *err)
{
    const struct pe_tensor *t = &e->tensors[0];
    if (!ends_with_twos(t, 1))
        return refuse(e, "[n, rotary_dim/2, 2], or complex [n, rotary_dim/2]", err);
    see_tables(e, 2, 0, t->rank - 2, t->shape[t->rank - 2], "complex");
    e->view.row_step *= e->view.col_step = 2;
    e->view.first[1] = 1;
    return PE_OK;
}

enum pe_status pe_view_matrix(struct pe_evidence *e, struct pe_failure *err)
{
    const struct pe_tensor *t = &e->tensors[0];
    if (pe_is_whole_matrix(t))
        return pe_view_whole_matrix(e, err);
    if (!ends_with_twos(t, 2))
        return refuse(e, "[n, rotary_dim/2, 2, 2], or [n, head_dim, head_dim]", err);
    see_tables(e, 4, 0, t->rank - 3, t->shape[t->rank - 3], "matrix");
    e->view.row_step *= e->view.col_step = 4;
    const uint64_t first[] = {0, 2, 3, 1}; /* cos, sin, cos, -sin */
    memcpy(e->view.first, first, sizeof first);
    e->view.is_negative[3] = true;
    return PE_OK;
}

/* How much cos² + sin² varies over the view's numbers: not at all, if they are cosines and sines. */
static double spread_of(const struct pe_evidence *e)
{
    enum { ROWS = 8 };
    const struct pe_tensor *table = &e->tensors[0];
    double least = (double)INFINITY, most = 0, x, y;
    uint64_t n;
    pe_shape_count(table->shape, table->rank - 1, &n);
    for (uint64_t row = 0; row < ROWS && row < n; row++)
        for (uint64_t col = 0; col < table->shape[table->rank - 1]; col++) {
            pe_evidence_read(e, 0, row, col, 1, &x);
            pe_evidence_read(e, 1, row, col, 1, &y);
            least = fmin(least, x * x + y * y);
            most = fmax(most, x * x + y * y);
        }
    return most - least;
}

/* The table of cosines, then that of sines: axis `first` has these two. */
static void see_stack(struct pe_evidence *e, unsigned first)
{
    const struct pe_tensor *t = &e->tensors[0];
    uint64_t n;
    pe_shape_count(t->shape + first + 1, t->rank - first - 1, &n);
    see_tables(e, 2, first + 1, t->rank - 1, t->shape[t->rank - 1], NULL);
    e->view.first[1] = n;
}

static void see_concat(struct pe_evidence *e)
{
    const struct pe_tensor *t = &e->tensors[0];
    uint64_t pairs = t->shape[t->rank - 1] / 2;
    see_tables(e, 2, 0, t->rank - 1, pairs, "concat");
    e->view.row_step *= 2;
    e->view.first[1] = pairs;
}

/* [2, …]: two tables, or a batch of two whose rows have cosines and sines. The numbers decide; whatever is wrong with
 * them, two tables is the usual meaning. */
static void see_either(struct pe_evidence *e, unsigned first)
{
    const double no_sines = 0.05, far_better = 4;
    struct pe_evidence stack = *e, rows = *e;
    see_stack(&stack, first);
    see_concat(&rows);
    double of_stack = spread_of(&stack);
    *e = of_stack > no_sines && far_better * spread_of(&rows) < of_stack ? rows : stack;
}

/* [2, a, 2]: two tables of two columns, or two rows of pairs. */
static enum pe_status view_pairs_or_stack(struct pe_evidence *e, unsigned first, struct pe_failure *err)
{
    struct pe_evidence stack = *e, pairs = *e;
    enum pe_status status = pe_view_freqs_cis(&pairs, err);
    see_stack(&stack, first);
    *e = !status && spread_of(&pairs) < spread_of(&stack) ? pairs : stack;
    return PE_OK;
}

enum pe_status pe_view_cos_sin(struct pe_evidence *e, struct pe_failure *err)
{
    const struct pe_tensor t = e->tensors[0];
    unsigned first = 0;
    while (first + 2 < t.rank && t.shape[first] == 1)
        first++;
    uint64_t columns = t.shape[t.rank - 1];
    bool has_two = t.rank >= first + 3 && t.shape[first] == 2, has_twos = t.rank > 2 && ends_with_twos(&t, 1);
    if (has_twos && has_two && t.rank == first + 3)
        return view_pairs_or_stack(e, first, err);
    if (has_twos)
        return pe_view_freqs_cis(e, err);
    if (t.rank < 2 || columns > PE_HEAD_DIM_MAX || (!has_two && columns % 2 != 0))
        return refuse(e, "[n, rotary_dim] (cosines, then sines), [2, n, columns] or [n, rotary_dim/2, 2]", err);
    if (has_two && columns % 2 != 0)
        see_stack(e, first);
    else if (has_two)
        see_either(e, first);
    else
        see_concat(e);
    return PE_OK;
}

/* ---- Angles and ladders ---- */

/* Evidence: the angles of rotary tables, and their frequencies. No plan has them as numbers, but its waves show both.
 */

static enum pe_status prepare(struct pe_model *m, struct pe_failure *err)
{
    if (m->columns)
        return PE_OK;
    return pe_fail(err, "/arith", "angles and frequencies are compared with exact ones; leave out arith");
}

/* ---- Angles ---- */

static void fill_angles(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    (void)t;
    pe_wave_angles(m, pe_model_position(m, row), col0, n, out);
}

#define ANGLES(name)                                                                                                   \
    const struct pe_evidence_kind pe_evidence_##name = {.id = PE_OF_ANGLES,                                            \
                                                        .like = PE_EVIDENCE_BIT(TABLES),                               \
                                                        .tensors = {#name},                                            \
                                                        .scheme = "rope",                                              \
                                                        .outputs = {"cos"},                                            \
                                                        .view = view_rows,                                             \
                                                        .read = pe_tables_read,                                        \
                                                        .prepare = prepare,                                            \
                                                        .fill = fill_angles,                                           \
                                                        .phases = pe_tables_phases}
ANGLES(angles);
ANGLES(freqs);

/* ---- Frequencies ---- */

static void fill_ladder(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    (void)t;
    (void)row;
    pe_wave_ladder(m, m->d->evidence.kind == &pe_evidence_rope_freqs, col0, n, out);
}

/* As of position 1, for the number itself: a divisor is as uncertain as its frequency, relatively. Where float32 loses
 * anything, powers of rounded exponents lose 2^-20. */
static void phases_of_ladder(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    double one[PE_HEAD_DIM_MAX];
    fill_ladder(m, t, row, col0, n, out);
    pe_wave_losses(m, col0, n, one);
    for (size_t j = 0; j < n; j++)
        out[j] = fabs(out[j]) * (one[j] > 0 ? fmax(0x1p-20, one[j]) : 0);
}

static enum pe_status read_ladder(struct pe_diagnosis *d, struct pe_failure *err);

#define LADDER(name, is_parameter_, output, read_)                                                                     \
    {                                                                                                                  \
        .id = PE_OF_LADDER, .is_parameter = (is_parameter_), .tensors = {name}, .scheme = "rope", .outputs = {output}, \
        .view = view_rows, .read = (read_), .prepare = prepare, .fill = fill_ladder, .phases = phases_of_ladder        \
    }
const struct pe_evidence_kind pe_evidence_inv_freq = LADDER("inv_freq", true, "cos", read_ladder);
/* What GGUF files hold: by how much each frequency is divided. */
const struct pe_evidence_kind pe_evidence_rope_freqs = LADDER("rope_freqs", false, "cos", pe_tables_read);
/* inv_freq of a sinusoidal encoding, whose sines are its waves. */
static const struct pe_evidence_kind of_sinusoid = LADDER("inv_freq", true, "encoding", read_ladder);

/* An odd dim has a frequency more, or less, than half of it. */
static bool has_dim(const struct pe_diagnosis *d, uint64_t n)
{
    const struct pe_value *dim = pe_belief_given(d, "dim");
    uint64_t given = dim && dim->kind == PE_INTEGER && dim->integer > 0 ? (uint64_t)dim->integer : 0;
    return given / 2 == n || (given + 1) / 2 == n;
}

static enum pe_status read_ladder(struct pe_diagnosis *d, struct pe_failure *err)
{
    uint64_t n = pe_evidence_width(&d->evidence);
    if (!pe_same(d->belief.inheritance->scheme->info.name, "sinusoidal"))
        return pe_tables_read(d, err);
    d->evidence.kind = &of_sinusoid;
    if (!pe_belief_has_sequence(d))
        pe_belief_set(d, "len", (struct pe_value){.kind = PE_INTEGER, .integer = 1});
    return has_dim(d, n) ? PE_OK : pe_belief_fix(d, "dim", 2 * n, "inv_freq", err);
}

/* ---- Memory that was never written ---- */

/* Zeros at the end are pairs that do not turn. */
static size_t count_turning(const double *w, size_t n)
{
    while (n > 0 && w[n - 1] == 0)
        n--;
    return n;
}

bool pe_ladder_falls(const struct pe_evidence *e)
{
    double w[PE_HEAD_DIM_MAX];
    pe_evidence_read(e, 0, 0, 0, (size_t)e->row_len, w);
    size_t n = count_turning(w, (size_t)e->row_len);
    bool falls = n > 0;
    for (size_t c = 0; c < n; c++)
        falls &= w[c] > 0 && w[c] <= (c > 0 ? nextafter(w[c - 1], 0) : 1);
    return falls;
}

/* The pair at which the logarithms bend most, by more than 10 octaves, or the first that is 64 octaves from pair 0; n:
 * none. A rule bends by its factor, and a ladder spans its base, at most 2^40, times the factor. */
static size_t find_jump(const double *w, size_t n)
{
    enum { SPAN = 64 };
    double most = 10;
    size_t pair = 0;
    while (pair < n && fabs(log2(fabs(w[pair] / w[0]))) <= SPAN)
        pair++;
    for (size_t c = 1; c + 1 < n; c++) {
        double bend = fabs(log2(fabs(w[c - 1])) - 2 * log2(fabs(w[c])) + log2(fabs(w[c + 1])));
        if (bend > most) { /* the place where it begins is clearer than the pair that is far */
            most = bend;
            pair = c;
        }
    }
    return pair;
}

struct pe_oddity pe_ladder_oddity(const struct pe_evidence *e)
{
    double w[PE_HEAD_DIM_MAX];
    size_t n = (size_t)e->row_len;
    if (e->kind->id != PE_OF_LADDER || e->kind == &pe_evidence_rope_freqs)
        return (struct pe_oddity){.why = NULL};
    pe_evidence_read(e, 0, 0, 0, n, w);
    for (size_t c = 0; c < n; c++)
        if (!isfinite(w[c]))
            return (struct pe_oddity){"not_finite", c, w[c]};
    for (size_t c = 0; c < n; c++)
        if (w[c] != 0 && fabs(w[c]) < (double)FLT_MIN)
            return (struct pe_oddity){"denormal", c, w[c]};
    n = count_turning(w, n);
    for (size_t c = 0; c < n; c++)
        if (w[c] == 0 || signbit(w[c]) != signbit(w[0]))
            return (struct pe_oddity){"not_smooth", c, w[c]};
    size_t pair = find_jump(w, n);
    return pair < n ? (struct pe_oddity){"not_smooth", pair, w[pair]} : (struct pe_oddity){.why = NULL};
}
