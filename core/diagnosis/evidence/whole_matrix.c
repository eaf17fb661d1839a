/* A rotation as one matrix a row, [n, d, d], seen as the cosines and sines of its pairs.
 *
 * Which channels are a pair is in the numbers: row r of such a matrix has a cosine in column r and a sine in the column
 * of its partner, and is 0 elsewhere. Partners are neighbours, or half of the rotated width apart, behind `offset`
 * channels that pass by. So pair c has its four numbers at equal steps, and the matrices are seen as a table of pairs
 * without a copy. What is neither 0 elsewhere nor 1 where channels pass by is no rotation of pairs, and is refused with
 * its place. */
#include "core/diagnosis/diagnosis.h"
#include "core/request/request.h"

#include <math.h>
#include <stdlib.h>

bool pe_is_whole_matrix(const struct pe_tensor *t)
{
    return t->rank > 1 && t->shape[t->rank - 1] > 2 && t->shape[t->rank - 1] <= PE_HEAD_DIM_MAX &&
           t->shape[t->rank - 1] == t->shape[t->rank - 2];
}

/* ---- Partners ---- */

/* Of n matrices that stand one behind the other. */
struct matrices {
    const struct pe_tensor *t;
    uint64_t n, width;
};

static struct matrices matrices_of(const struct pe_tensor *t)
{
    struct matrices m = {.t = t, .width = t->shape[t->rank - 1]};
    pe_shape_count(t->shape, t->rank - 2, &m.n);
    return m;
}

/* [width] of one row, at any address. */
static void read_row(const struct matrices *m, uint64_t matrix, uint64_t row, double *out)
{
    size_t size = pe_dtype_size(m->t->dtype);
    uint64_t at = (matrix * m->width + row) * m->width;
    pe_convert(PE_F64, out, m->t->dtype, (const char *)m->t->data + at * size, (size_t)m->width);
}

/* The partner of each channel by the last matrix that turns it, [width]; itself: none does. Slow pairs turn most at the
 * end. */
static void find_partners(const struct matrices *m, uint64_t *partner)
{
    double x[PE_HEAD_DIM_MAX];
    for (uint64_t r = 0; r < m->width; r++) {
        partner[r] = r;
        for (uint64_t i = m->n; i-- > 0 && partner[r] == r && !(i % 64 == 0 && pe_is_cancelled());) {
            read_row(m, i, r, x);
            for (uint64_t c = 0; c < m->width; c++)
                partner[r] = c != r && x[c] != 0 && isfinite(x[c]) ? c : partner[r];
        }
    }
}

/* The pairing that most channels have: of neighbours up to the last one that turns, or of two halves. */
static void choose(const struct matrices *m, const uint64_t *partner, struct pe_whole *whole)
{
    uint64_t first = m->width, last = 0, n_near = 0, n_far = 0, apart = m->width / 2;
    for (uint64_t r = 0; r < m->width; r++) {
        uint64_t far = partner[r] > r ? partner[r] - r : r - partner[r];
        if (far == 0)
            continue;
        first = r < first ? r : first;
        last = r;
        n_near += far == 1;
        n_far += far > 1;
        apart = far > 1 ? far : apart;
    }
    bool is_known = n_near + n_far > 0, are_near = n_near > n_far;
    whole->offset = is_known ? first : 0;
    whole->layout = !is_known ? NULL : are_near ? "interleaved" : "half";
    uint64_t width = are_near ? last + 1 - whole->offset : 2 * apart, most = m->width - whole->offset;
    whole->n_pairs = (width < most ? width : most) / 2;
}

static bool belongs(const struct pe_whole *w, uint64_t row, uint64_t col)
{
    bool turns = row >= w->offset && row - w->offset < 2 * w->n_pairs;
    uint64_t r = row - w->offset, c = col - w->offset;
    if (row == col || !turns || col < w->offset || c >= 2 * w->n_pairs)
        return row == col;
    return w->is_half ? r % w->n_pairs == c % w->n_pairs : r / 2 == c / 2;
}

/* A number that no rotation of these pairs has. Rows that are not finite are a finding. */
static enum pe_status check(const struct matrices *m, const struct pe_whole *w, struct pe_failure *err)
{
    double x[PE_HEAD_DIM_MAX];
    for (uint64_t i = 0; i < m->n; i++)
        for (uint64_t r = 0; r < m->width; r++) {
            bool turns = r >= w->offset && r - w->offset < 2 * w->n_pairs;
            read_row(m, i, r, x);
            if (r == 0 && i % 16 == 0 && pe_is_cancelled())
                return pe_cancelled(err);
            for (uint64_t c = 0; c < m->width; c++)
                if (c == r ? !turns && x[c] != 1 : x[c] != 0 && !belongs(w, r, c) && (isfinite(x[c]) || isfinite(x[r])))
                    return pe_fail(
                        err, "/matrix",
                        "matrix %llu has %g in row %llu and column %llu; a matrix that rotates pairs has "
                        "in each row a cosine, a sine in the column of the channel's partner (its neighbour, "
                        "or half of the rotated width further), and 0 elsewhere",
                        (unsigned long long)i, x[c], (unsigned long long)r, (unsigned long long)c);
        }
    return PE_OK;
}

/* ---- The view ---- */

/* The four numbers of pair 0 of the first matrix: cos, sin, cos, -sin. */
static void see_pairs(struct pe_evidence *e, const struct pe_whole *w)
{
    const struct pe_tensor sent = e->tensors[0];
    uint64_t d = sent.shape[sent.rank - 1], apart = w->is_half ? w->n_pairs : 1, at = w->offset * (d + 1);
    struct pe_tensor table = sent;
    table.rank = sent.rank > 2 ? sent.rank - 1 : 2;
    table.shape[0] = sent.rank > 2 ? sent.shape[0] : 1;
    table.shape[table.rank - 1] = w->n_pairs;
    e->view = (struct pe_tensor_view){.sent = sent,
                                      .first = {at, at + apart * d, at + apart * (d + 1), at + apart},
                                      .is_negative = {[3] = true},
                                      .row_step = d * d,
                                      .col_step = (w->is_half ? 1 : 2) * (d + 1),
                                      .form = "matrix"};
    e->n_tensors = 4;
    for (size_t t = 0; t < e->n_tensors; t++)
        e->tensors[t] = table;
    e->whole = *w;
}

enum pe_status pe_view_whole_matrix(struct pe_evidence *e, struct pe_failure *err)
{
    const struct matrices m = matrices_of(&e->tensors[0]);
    struct pe_whole whole = {.width = m.width};
    uint64_t *partner = malloc(m.width * sizeof *partner);
    if (!partner)
        return pe_no_memory(err);
    find_partners(&m, partner);
    choose(&m, partner, &whole);
    free(partner);
    whole.is_half = !pe_same(whole.layout, "interleaved");
    enum pe_status status = check(&m, &whole, err);
    if (!status)
        see_pairs(e, &whole);
    return status;
}

/* ---- The belief ---- */

static void set_size(struct pe_diagnosis *d, const char *name, uint64_t value)
{
    if (!pe_belief_given(d, name))
        pe_belief_set(d, name, (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)value});
}

/* What the matrix shows of its head: its width, and which of its channels turn. Another layout than the believed one
 * takes its place; the answer states both. */
enum pe_status pe_matrix_read(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_whole *w = &d->evidence.whole;
    const struct pe_value *layout = pe_belief_given(d, "layout");
    if (w->width == 0)
        return pe_tables_read(d, err);
    set_size(d, "head_dim", w->width);
    if (2 * w->n_pairs < w->width && !pe_belief_given(d, "partial_rotary_factor"))
        set_size(d, "rotary_dim", 2 * w->n_pairs);
    if (w->offset)
        set_size(d, "rotary_offset", w->offset);
    if (!w->layout || !pe_param_find(d->belief.inheritance->scheme->info.params, "layout"))
        return pe_tables_read(d, err);
    const struct pe_value shown = {.kind = PE_STRING, .string = w->layout};
    if (!layout) {
        pe_belief_set(d, "layout", shown);
    } else if (layout->kind == PE_STRING && !pe_same(layout->string, w->layout)) {
        w->believed = layout->string;
        pe_belief_replace(d, "layout", shown);
    }
    return pe_tables_read(d, err);
}
