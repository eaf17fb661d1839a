/* Faults of positions: another offset, a stride, an order of their own (those of batches and parts: batches.c). Those
 * that are fitted read the positions from the phases (faults/steps.c).
 *
 * A rotated row states its own position: its phases are p·w for all pairs, and solving them gives p (faults/steps.c).
 * So no list of candidate offsets is tried. First rules for all rows are fitted (offset plus stride); only if rows are
 * not equally far apart, each row is solved for itself, a few rows all over before the rest, because most readings make
 * no sense. Positions that come out as integers within their error are taken as integers.
 *
 * Encodings whose columns have no pairs show no phases; there the nearest row among integer positions is looked for,
 * column by column, and most positions are out after a few. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Is the belief on one axis? */
static bool is_one_axis(const struct pe_diagnosis *d) { return d->belief.model->plan->seq.n_axes == 1; }

static bool open_ids(struct pe_diagnosis *d, struct pe_fit *f)
{
    f->n = (size_t)d->evidence.row_len;
    f->position = malloc(2 * f->n * sizeof *f->position);
    d->no_memory |= !f->position;
    if (!f->position)
        return false;
    f->found = f->position + f->n;
    pe_evidence_read(&d->evidence, 0, 0, 0, f->n, f->found);
    for (size_t i = 0; i < f->n; i++)
        f->position[i] = pe_belief_position(d, i);
    return true;
}

/* ---- Encodings with other exponents have no pairs: their rows are compared with those of integer positions ---- */

enum { SCANNED = 512, SCAN_WORK = 100 }; /* positions; multiply-adds of a number, which is a sine */

/* Between the numbers found and those at position p, as far as it is below `least`. Most positions are beyond it after
 * a few columns. */
static double distance(const struct pe_model *m, const double *found, double p, double least)
{
    enum { SOME = 8 };
    double sum = 0, expected[SOME];
    for (size_t col0 = 0; col0 < m->n_columns && sum < least; col0 += SOME) {
        size_t n = m->n_columns - col0 < SOME ? m->n_columns - col0 : SOME;
        pe_wave_row_at(m, p, col0, n, expected);
        *m->work += SCAN_WORK * (double)n;
        for (size_t j = 0; j < n; j++)
            sum += (found[col0 + j] - expected[j]) * (found[col0 + j] - expected[j]);
    }
    return sum;
}

/* The integer whose row is nearest to row i; -1: none is near. room: [n_columns]. */
static double scan(const struct pe_model *m, size_t i, double *room)
{
    size_t n = m->n_columns;
    double best = 0.02 * (double)n, position = -1;
    pe_evidence_read(&m->d->evidence, 0, i, 0, n, room);
    for (size_t j = 0; m->transforms.negated && j < n; j++)
        room[j] = -room[j];
    for (int p = 0; p < SCANNED && !pe_is_cancelled(); p++) {
        double off = distance(m, room, p, best);
        position = off < best ? p : position;
        best = fmin(best, off);
    }
    return position;
}

static bool open_scan(struct pe_diagnosis *d, struct pe_fit *f)
{
    const struct pe_model *m = f->model;
    bool is_plain =
        m->transforms.sinusoid && !m->transforms.transposed && m->state && d->evidence.n_rows == d->belief.n;
    f->n = (size_t)d->belief.n;
    f->position = is_plain ? malloc((2 * f->n + m->n_columns) * sizeof *f->position) : NULL;
    d->no_memory |= is_plain && !f->position;
    if (!f->position)
        return false;
    f->found = f->position + f->n;
    for (size_t i = 0; i < f->n; i++) {
        f->position[i] = pe_belief_position(d, i);
        f->found[i] = scan(m, i, f->found + f->n);
        if (f->found[i] < 0 || pe_is_cancelled())
            return false;
    }
    return true;
}

bool pe_fit_open(struct pe_diagnosis *d, struct pe_edit *edit, struct pe_fit *f)
{
    *f = (struct pe_fit){.n = 0};
    if (is_one_axis(d) && d->evidence.kind->id == PE_OF_IDS)
        return open_ids(d, f);
    if (!is_one_axis(d) || !pe_edit_model(d, edit, &f->model))
        return false;
    f->reading = pe_read_waves(d, f->model);
    if (!f->reading)
        return open_scan(d, f);
    f->position = f->reading ? malloc(f->reading->n * sizeof *f->position) : NULL;
    f->n = f->reading ? f->reading->n : 0;
    d->no_memory |= f->reading && !f->position;
    for (size_t i = 0; f->position && i < f->n; i++)
        f->position[i] = pe_belief_position(d, i);
    return f->position;
}

struct pe_solved pe_fit_shift(const struct pe_fit *f, const double *position, size_t first, size_t n)
{
    return f->reading ? pe_measured_shift(f->reading, f->model, position, first, n)
                      : (struct pe_solved){f->found[first] - (position ? position[first] : 0), 1, 0};
}

/* Are rows of the evidence not equally far apart? */
static bool is_uneven(const struct pe_fit *f) { return f->reading && pe_is_uneven(f->reading); }

void pe_fit_close(struct pe_fit *f)
{
    pe_model_free(f->model);
    free(f->position);
}

double pe_fit_tidy(struct pe_solved s)
{
    double near = nearbyint(s.x), margin = fmin(8 * s.error + 1e-3 + 0x1p-20 * fabs(s.x), 0.3);
    return fabs(s.x - near) <= margin ? near : pe_shortest_decimal(s.x, (s.error + 1e-7) / fmax(fabs(s.x), 1));
}

/* ---- Of a few numbers that were typed: every integer shift is tried ---- */

enum { SHIFT_MAX = 4096 };

/* The number of column j of tensor t at a position, by its wave, and what float32 loses of its angle. room:
 * [3, row_len]. */
static double number_at(const struct pe_model *m, size_t t, size_t j, double p, double *room, double *loss)
{
    const struct pe_evidence *e = &m->d->evidence;
    double direction = m->plan->scheme->rotate ? pe_edit_real(m->d, NULL, "direction", 1) : 1;
    if (e->kind->id == PE_OF_ROTATED) {
        *loss = pe_rotated_alone(m, j, p, room);
        return room[j];
    }
    *loss = pe_wave_loss(m, j, p);
    if (e->kind->id == PE_OF_ANGLES)
        return direction * p * (m->columns[j].fh + m->columns[j].fl) * (PI / 2);
    if (e->kind->id == PE_OF_TABLES)
        return (t == 1 ? direction : 1) * pe_wave_at(m, j, p, t == 1);
    return pe_wave_at(m, j, p, 0);
}

static bool fits_shifted(const struct pe_diagnosis *d, const struct pe_model *m, const double *position, double shift,
                         double *room)
{
    const struct pe_evidence *e = &d->evidence;
    for (size_t i = 0; i < e->n_typed; i++) {
        const struct pe_typed *one = &e->typed[i];
        struct pe_judge j = pe_typed_judge(e, i);
        double p = position[i] + shift, loss;
        double error = fabs(number_at(m, one->t, (size_t)one->col, p, room, &loss) - one->value);
        if (!(error <= pe_rounding_tolerance(&j, one->value, loss)))
            return false;
    }
    return true;
}

/* The smallest one. Signs and exchanged tensors are tried with the offsets of a list only. */
static bool fit_typed(struct pe_diagnosis *d, struct pe_edit *edit)
{
    struct pe_model *m;
    double position[PE_TYPED_MAX], best = 0, room[3 * PE_HEAD_DIM_MAX];
    const struct pe_transforms *t = &edit->transforms;
    if (t->negated || t->sin_cos_swapped || !isnan(t->wrapped_from) || !is_one_axis(d) || !pe_edit_model(d, edit, &m))
        return false;
    bool is_known = m->columns && m->has_shape && !m->plan->scheme->magnitude;
    for (size_t i = 0; is_known && i < d->evidence.n_typed; i++)
        position[i] = pe_coordinate(m->plan, 0, d->evidence.typed[i].row);
    for (int by = 1; is_known && by <= SHIFT_MAX && best == 0 && !pe_is_cancelled(); by++) {
        best = fits_shifted(d, m, position, by, room) ? by : 0;
        best = best == 0 && fits_shifted(d, m, position, -by, room) ? -by : best;
        d->work += 2 * SCAN_WORK;
    }
    pe_model_free(m);
    return best != 0 && pe_edit_shift(d, edit, best);
}

bool pe_fit_offset(struct pe_diagnosis *d, struct pe_edit *edit)
{
    if (d->evidence.is_typed)
        return fit_typed(d, edit);
    struct pe_fit f;
    struct pe_solved s = {0, -2, 0};
    if (pe_fit_open(d, edit, &f) && !(pe_belief_is_run(d) && is_uneven(&f)))
        s = pe_fit_shift(&f, f.position, 0, f.n);
    if (f.reading && f.n == 1) /* one row: its position */
        s.x -= f.position ? f.position[0] : 0;
    pe_fit_close(&f);
    double by = pe_fit_tidy(s);
    return s.score >= PE_FIT_SCORE_MIN && by != 0 && fabs(by) < PE_POSITION_MAX && pe_edit_shift(d, edit, by);
}

/* ---- Row by row ---- */

enum { TRIED_ROWS = 6 };

bool pe_fit_row(const struct pe_fit *f, size_t i, double *position)
{
    if (f->reading && pe_reading_is_unknown(f->reading, i))
        return true;
    struct pe_solved s = pe_fit_shift(f, NULL, i, 1);
    *position = s.score >= PE_FIT_SCORE_MIN ? pe_fit_tidy(s) : (double)INFINITY;
    return fabs(*position) <= PE_POSITION_MAX;
}

/* Does row i follow the one before it, or begin again at first? */
static bool is_in_run(const struct pe_fit *f, size_t i, double first)
{
    return f->position[i] == first || (i > 0 && f->position[i] == f->position[i - 1] + 1);
}

/* The position of every row; first: of runs that begin there, NULL: of any. A few rows all over are tried before,
 * because most readings make no sense. */
static bool read_rows(struct pe_fit *f, const double *first)
{
    double ignored;
    for (size_t i = 0; i < TRIED_ROWS && i < f->n; i++)
        if (!pe_fit_row(f, i * (f->n - 1) / TRIED_ROWS, &ignored))
            return false;
    for (size_t i = 0; i < f->n; i++)
        if (!pe_fit_row(f, i, &f->position[i]) || (first && !is_in_run(f, i, *first)) ||
            (i % 64 == 0 && pe_is_cancelled()))
            return false;
    return true;
}

/* Lengths of runs that each begin at the believed offset. */
static size_t runs(const struct pe_diagnosis *d, const struct pe_fit *f, double *lens)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->position[i] == pe_belief_position(d, 0))
            lens[n++] = 0;
        lens[n - 1]++;
    }
    return n;
}

static bool set_lens(struct pe_diagnosis *d, const struct pe_fit *f, struct pe_edit *edit)
{
    double *lens = malloc(f->n * sizeof *lens), first = pe_belief_position(d, 0);
    size_t n = lens ? runs(d, f, lens) : 0;
    d->no_memory |= !lens;
    if (n > 1) {
        pe_edit_remove_sequence(d, edit);
        pe_edit_set_reals(edit, "lens", lens, n);
        if (first != 0)
            pe_edit_set_integer(edit, "offset", (int64_t)first);
    }
    free(lens);
    return n > 1 && first == floor(first);
}

bool pe_fit_lens(struct pe_diagnosis *d, struct pe_edit *edit)
{
    struct pe_fit f;
    double first = pe_belief_position(d, 0);
    bool done = pe_fit_open(d, edit, &f) && pe_belief_is_run(d) && read_rows(&f, &first) && set_lens(d, &f, edit);
    pe_fit_close(&f);
    return done;
}

bool pe_fit_rows(struct pe_diagnosis *d, struct pe_edit *edit)
{
    struct pe_fit f;
    bool done = pe_fit_open(d, edit, &f) && read_rows(&f, NULL) && pe_edit_positions(d, edit, f.position);
    pe_fit_close(&f);
    return done;
}
