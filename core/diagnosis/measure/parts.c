/* Where the believed configuration fits, and what the rest is.
 *
 * Every number is compared with the belief, once. A row of the evidence fits if all its numbers do. Rows are those of a
 * position, of a row of the batch and of a head, so a part is stated by the axis whose indices are all good or all bad:
 * "batch row 1", "head 3", "rows 48 to 63"; else by that of which most indices are good. Pairs are marked likewise.
 *
 * How near a number must be is what the judge states, but for its size: rows that hold anything may hold large
 * numbers, so the largest is that of the belief. A part counts where its numbers carry more bits than its limits take:
 * a row at position 0 is the same under every ladder, and shows nothing.
 *
 * The rest is described in the order of plainness: believed rows times a factor of each, one number, one row again and
 * again, believed rows of other indices. What else it may be (other positions, another base, not rotated) a diagnosis
 * of the rest alone finds
 * (../diagnosis.c). */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/profile.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_BETWEEN = 32 };

#define LEAST_SHARE 0.2
#define LEAST_BITS 60

/* ---- Marks ---- */

bool pe_marks_new(struct pe_marks *marks, const struct pe_evidence *e, uint64_t n_pairs)
{
    struct pe_place n = pe_evidence_places(e);
    bool are_columns = e->kind->id == PE_OF_IDS; /* a row has the ids of an axis */
    *marks = (struct pe_marks){{are_columns ? 1 : n.batch, n.head, are_columns ? e->row_len : n.row, n_pairs}, {NULL}};
    uint64_t all = 0;
    for (int a = 0; a < PE_N_PART_AXES; a++)
        all += marks->n[a];
    unsigned char *block = calloc(all + 1, 1);
    for (int a = 0; block && a < PE_N_PART_AXES; block += marks->n[a++])
        marks->of[a] = block;
    return marks->of[0];
}

void pe_marks_drop(struct pe_marks *marks)
{
    free(marks->of[0]);
    *marks = (struct pe_marks){.n = {0}};
}

static void mark(struct pe_marks *marks, enum pe_part_axis axis, uint64_t i, bool fits)
{
    marks->of[axis][i] |= fits ? PE_FITS_HERE : PE_DIFFERS_HERE;
}

void pe_marks_row(struct pe_marks *marks, const struct pe_evidence *e, uint64_t row, bool fits)
{
    struct pe_place sizes = pe_evidence_places(e), at = pe_evidence_place(e, &sizes, row);
    if (e->kind->id == PE_OF_IDS)
        return;
    mark(marks, PE_PART_BATCH, at.batch, fits);
    mark(marks, PE_PART_HEADS, at.head, fits);
    mark(marks, PE_PART_ROWS, at.row, fits);
}

enum pe_part_axis pe_marks_choose(const struct pe_marks *marks, bool *is_clean)
{
    enum pe_part_axis best = PE_N_PART_AXES;
    double most = 0;
    for (enum pe_part_axis a = PE_PART_BATCH; a <= PE_PART_ROWS; a++) {
        uint64_t n_fit = 0, n_mixed = 0, n = marks->n[a];
        for (uint64_t i = 0; i < n; i++) {
            n_fit += marks->of[a][i] == PE_FITS_HERE;
            n_mixed += marks->of[a][i] == (PE_FITS_HERE | PE_DIFFERS_HERE);
        }
        double share = n ? (double)n_fit / (double)n : 0, value = share + (n_mixed == 0);
        if (n_fit == 0 || n_fit == n || share < LEAST_SHARE || value <= most)
            continue;
        most = value;
        best = a;
    }
    *is_clean = most > 1;
    return best;
}

/* ---- The belief beside every number ---- */

struct look {
    const struct pe_diagnosis *d;
    const struct pe_model *m;
    struct pe_judge judge;
    size_t n; /* columns */
    double *found, *expected, *phase, *input;
    bool *fits;
    uint32_t *pair; /* [n] of each column, UINT32_MAX: it is of none */
    uint64_t n_pairs;
};

static bool are_of_one_pair(const struct pe_model *m, size_t a, size_t b)
{
    return m->columns[a].fh == m->columns[b].fh && m->columns[a].axis == m->columns[b].axis;
}

/* Of a table whose rows state each number twice: columns c and c + half, or 2c and 2c + 1. */
static void find_pairs_of_table(struct look *l)
{
    size_t half = l->n / 2;
    bool are_halves = l->n % 2 == 0 && pe_edit_is_word(l->d, NULL, "form", "expanded"), are_neighbours = are_halves;
    for (size_t c = 0; c < half; c++) {
        are_halves = are_halves && are_of_one_pair(l->m, c, c + half);
        are_neighbours = are_neighbours && are_of_one_pair(l->m, 2 * c, 2 * c + 1);
    }
    l->n_pairs = are_halves || are_neighbours ? half : l->n;
    for (size_t c = 0; c < l->n; c++)
        l->pair[c] = (uint32_t)(are_halves ? c % half : are_neighbours ? c / 2 : c);
}

static void find_pairs(struct look *l)
{
    enum pe_evidence_id id = l->m->d->evidence.kind->id;
    bool has_columns = id == PE_OF_TABLES || id == PE_OF_ANGLES || id == PE_OF_LADDER;
    for (size_t c = 0; c < l->n; c++)
        l->pair[c] = UINT32_MAX;
    if (has_columns && l->m->columns && l->m->n_columns == l->n)
        find_pairs_of_table(l);
    if (id != PE_OF_ROTATED)
        return;
    l->n_pairs = l->m->n_columns / 2;
    for (size_t c = 0; c < l->n; c++)
        l->pair[c] = (uint32_t)pe_rotated_pair(l->m, c);
}

/* The largest number that the belief has in the sample: there is none that is much larger. */
static double largest_believed(struct pe_diagnosis *d, const struct pe_model *m)
{
    const struct pe_sample *s = &d->sample;
    double most = 0;
    pe_sample_fill(s, m, s->expected);
    for (size_t i = 0; i < s->n; i++)
        most = isfinite(s->expected[i]) ? fmax(most, fabs(s->expected[i])) : most;
    return most;
}

static bool look_open(struct look *l, struct pe_diagnosis *d)
{
    const struct pe_model *m = d->belief.model;
    size_t n = (size_t)d->evidence.row_len;
    *l = (struct look){.d = d, .m = m, .n = n, .judge = pe_judge_of(&d->evidence, true)};
    l->judge.largest = fmin(d->evidence.largest, 1.25 * largest_believed(d, m));
    l->found = malloc(4 * n * sizeof *l->found + n * sizeof *l->pair + n * sizeof *l->fits);
    d->no_memory |= !l->found;
    if (!l->found)
        return false;
    l->expected = l->found + n;
    l->phase = l->expected + n;
    l->input = l->phase + n;
    l->pair = (uint32_t *)(void *)(l->input + n);
    l->fits = (bool *)(void *)(l->pair + n);
    find_pairs(l);
    return true;
}

static bool is_near(const struct pe_judge *j, double found, double expected, double phase)
{
    return pe_is_exact(j, found, expected, phase) || fabs(found - expected) <= pe_rounding_tolerance(j, found, phase);
}

/* Bits that a number which fits carries, where it is not what every configuration gives: 0, the largest, or the number
 * before the rotation. */
static double bits_of(const struct look *l, size_t c)
{
    const struct pe_judge *j = &l->judge;
    double e = l->expected[c], tolerance = fmax(pe_rounding_tolerance(j, e, l->phase[c]), 1e-12 * j->largest);
    bool is_moved =
        l->d->evidence.kind->input ? fabs(e - l->input[c]) > tolerance : fabs(fabs(e) - j->largest) > tolerance;
    return isfinite(e) && is_moved && fabs(e) > tolerance ? log2(j->largest / tolerance) : 0;
}

static void note_bad(struct pe_parts *p, const struct look *l, size_t t, uint64_t i, size_t c)
{
    double found = l->found[c], expected = l->expected[c], error = fabs(found - expected);
    double times = error / fmax(pe_rounding_tolerance(&l->judge, found, l->phase[c]), 1e-300);
    p->n_bad++;
    if (!(times > p->farthest.times))
        return;
    p->farthest.t = t;
    p->farthest.row = i;
    p->farthest.col = c;
    p->farthest.found = found;
    p->farthest.expected = pe_round_to(l->judge.dtype, expected);
    p->farthest.times = times;
}

/* Does row i fit in tensor t? Marks l->fits, and adds what its numbers are to *of_row. */
static bool compare_row(struct look *l, size_t t, uint64_t i, struct pe_parts *of_row, struct pe_parts *all)
{
    const struct pe_judge *j = &l->judge;
    bool fit = true;
    pe_evidence_read(&l->d->evidence, t, i, 0, l->n, l->found);
    pe_model_fill(l->m, t, i, 0, l->n, l->expected);
    memset(l->phase, 0, l->n * sizeof *l->phase);
    if (pe_judge_needs_phases(j, l->found, l->expected, l->n))
        pe_model_phases(l->m, t, i, 0, l->n, l->phase);
    if (l->d->evidence.kind->input)
        pe_evidence_input(&l->d->evidence, i, l->input);
    for (size_t c = 0; c < l->n; c++) {
        double rounded = pe_round_to(j->dtype, l->expected[c]);
        bool fits = is_near(j, l->found[c], l->expected[c], l->phase[c]);
        l->fits[c] = l->fits[c] && fits;
        fit = fit && fits;
        if (!fits)
            note_bad(all, l, t, i, c);
        of_row->n++;
        of_row->n_equal += l->found[c] == rounded;
        of_row->is_exact = of_row->is_exact && pe_is_exact(j, l->found[c], l->expected[c], l->phase[c]);
        of_row->max_error =
            isfinite(rounded) ? fmax(of_row->max_error, fabs(l->found[c] - rounded)) : of_row->max_error;
        of_row->bits += fits ? bits_of(l, c) : 0;
    }
    return fit;
}

/* Is the row that was compared last the believed one times a factor? Of one tensor, whose rows are vectors. */
static void add_factor(const struct look *l, struct pe_parts *p)
{
    unsigned of_vectors = PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(ENCODING);
    double both = 0, expected2 = 0, found2 = 0, error = 0;
    for (size_t c = 0; c < l->n; c++) {
        both += l->found[c] * l->expected[c];
        expected2 += l->expected[c] * l->expected[c];
        found2 += l->found[c] * l->found[c];
    }
    double factor = both / expected2, size = sqrt(found2 / (double)l->n);
    for (size_t c = 0; c < l->n; c++)
        error = fmax(error, fabs(l->found[c] - factor * l->expected[c]) -
                                3 * fabs(factor) * pe_rounding_tolerance(&l->judge, l->expected[c], l->phase[c]));
    if (!(of_vectors >> l->judge.id & 1) || l->n < 4 || !(factor > 0) || !isfinite(factor) || !(error <= 0))
        return;
    p->least = p->n_scaled ? fmin(p->least, factor) : factor;
    p->most = fmax(p->most, factor);
    p->are_normal = (p->are_normal || !p->n_scaled) && fabs(size - 1) < 1e-3;
    p->n_scaled++;
}

static void add_row(struct look *l, struct pe_parts *p, uint64_t i)
{
    struct pe_parts of_row = {.is_exact = true};
    const struct pe_evidence *e = &l->d->evidence;
    bool fits = true;
    for (size_t c = 0; c < l->n; c++)
        l->fits[c] = true;
    for (size_t t = 0; t < e->n_tensors; t++)
        fits = compare_row(l, t, i, &of_row, p) && fits;
    p->rows[i] = fits;
    pe_marks_row(&p->marks, e, i, fits);
    for (size_t c = 0; c < l->n; c++) {
        if (e->kind->id == PE_OF_IDS)
            mark(&p->marks, PE_PART_ROWS, c, l->fits[c]);
        else if (l->pair[c] != UINT32_MAX)
            mark(&p->marks, PE_PART_PAIRS, l->pair[c], l->fits[c]);
    }
    p->n_compared++;
    if (!fits) {
        add_factor(l, p);
        return;
    }
    p->n_fit++;
    p->n += of_row.n;
    p->n_equal += of_row.n_equal;
    p->max_error = fmax(p->max_error, of_row.max_error);
    p->is_exact = p->is_exact && of_row.is_exact;
    p->bits += of_row.bits;
}

static bool compare_all(struct look *l, struct pe_parts *p)
{
    bool is_map = l->d->evidence.kind->id == PE_OF_MAPS; /* a row of it takes a millisecond */
    for (uint64_t i = 0; i < l->d->evidence.n_rows; i++) {
        if ((is_map || i % ROWS_BETWEEN == 0) && pe_is_cancelled())
            return false;
        if (!pe_evidence_is_padding(&l->d->evidence, i))
            add_row(l, p, i);
    }
    return true;
}

/* The cosines and sines of every position are kept meanwhile, so that heads share them. */
static bool compare(struct pe_diagnosis *d, struct look *l, struct pe_parts *p)
{
    struct pe_failure ignored;
    struct pe_model *m = d->belief.model;
    double kept = pe_model_kept_bytes(m) + (double)d->evidence.n_rows;
    bool has_room = !pe_diagnosis_admit(d, kept, &ignored);
    enum pe_status status = has_room ? pe_model_keep(m, &ignored) : PE_OK;
    d->no_memory |= status == PE_NO_MEMORY;
    bool is_done = has_room && !status && compare_all(l, p);
    pe_model_forget(m);
    d->bytes -= kept;
    return is_done;
}

bool pe_parts_measure(struct pe_diagnosis *d)
{
    struct look l;
    const struct pe_belief *b = &d->belief;
    if (d->parts)
        return true;
    if (!b->is_given || b->is_misfit || !b->model->has_shape || d->evidence.is_typed || d->evidence.is_turned ||
        d->sample.n == 0 || !look_open(&l, d))
        return false;
    struct pe_parts *p = calloc(1, sizeof *p);
    bool has_room = p && pe_marks_new(&p->marks, &d->evidence, l.n_pairs);
    if (has_room)
        p->rows = calloc(d->evidence.n_rows, 1);
    d->no_memory |= !(has_room && p->rows);
    d->parts = p;
    if (p)
        p->is_exact = true;
    bool is_done = !d->no_memory && compare(d, &l, p);
    free(l.found);
    if (!is_done)
        pe_parts_drop(d);
    if (is_done)
        p->axis = p->bits > LEAST_BITS ? pe_marks_choose(&p->marks, &p->is_clean) : PE_N_PART_AXES;
    return is_done;
}

bool pe_parts_are_single(const struct pe_diagnosis *d)
{
    enum { SHARE = 4 };
    const struct pe_parts *p = d->parts;
    return p && p->n_bad == 1 && SHARE * p->n_bad <= d->evidence.row_len;
}

bool pe_parts_tell(const struct pe_diagnosis *d)
{
    const struct pe_parts *p = d->parts;
    return p && !pe_parts_are_single(d) &&
           (p->axis < PE_N_PART_AXES || (p->n_scaled && p->n_fit + p->n_scaled == p->n_compared));
}

void pe_parts_drop(struct pe_diagnosis *d)
{
    if (!d->parts)
        return;
    pe_marks_drop(&d->parts->marks);
    free(d->parts->rows);
    free(d->parts->moved);
    free(d->parts);
    d->parts = NULL;
}

/* ---- What the rest is ---- */

/* The rows that differ, one after another. */
static uint64_t next_of_rest(const struct pe_diagnosis *d, uint64_t row)
{
    while (row < d->evidence.n_rows && (d->parts->rows[row] || pe_evidence_is_padding(&d->evidence, row)))
        row++;
    return row;
}

/* Sums over the numbers of the rest; first: its first row. */
struct sums {
    double n, sum, sum2;
    bool is_number, is_repeated;
    size_t n_rows;
};

static void add_numbers(struct sums *s, const double *x, const double *first, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        s->is_number = s->is_number && x[c] == first[0];
        s->is_repeated = s->is_repeated && x[c] == first[c];
        if (!isfinite(x[c]))
            continue;
        s->n++;
        s->sum += x[c];
        s->sum2 += x[c] * x[c];
    }
    s->n_rows++;
}

static void sum_up(struct pe_diagnosis *d, struct look *l, struct sums *s)
{
    const struct pe_evidence *e = &d->evidence;
    *s = (struct sums){.is_number = true, .is_repeated = e->kind->input == NULL};
    for (size_t t = 0; t < e->n_tensors; t++) {
        uint64_t first = next_of_rest(d, 0);
        pe_evidence_read(e, t, first, 0, l->n, l->expected);
        for (uint64_t i = first; i < e->n_rows; i = next_of_rest(d, i + 1)) {
            if (i % ROWS_BETWEEN == 0 && pe_is_cancelled())
                return;
            pe_evidence_read(e, t, i, 0, l->n, l->found);
            add_numbers(s, l->found, l->expected, l->n);
            d->work += 4 * (double)l->n;
        }
        s->is_number = s->is_number && (t == 0 || l->expected[0] == d->parts->number);
        d->parts->number = l->expected[0];
    }
    s->n_rows /= e->n_tensors;
}

/* Is row `at` of the evidence the believed row i, in every tensor? A few numbers decide most rows. */
static bool is_believed_row(struct look *l, uint64_t at, uint64_t i)
{
    enum { FEW = 4 };
    for (size_t t = 0; t < l->d->evidence.n_tensors; t++)
        for (size_t c0 = 0, n = l->n < FEW ? l->n : FEW; c0 < l->n; c0 += n, n = l->n - c0) {
            pe_evidence_read(&l->d->evidence, t, at, c0, n, l->found);
            pe_model_fill(l->m, t, i, c0, n, l->expected);
            for (size_t c = 0; c < n; c++)
                if (!is_near(&l->judge, l->found[c], l->expected[c], 0))
                    return false;
        }
    return true;
}

/* Of each row of the rest the believed row that it is, the next one after that of the row before it, if it is that
 * too. */
static bool find_moved(struct pe_diagnosis *d, struct look *l, size_t n_rest)
{
    enum { MOST = 256, PRODUCTS = 1 << 20 };
    struct pe_parts *p = d->parts;
    uint64_t before = UINT64_MAX, n_rows = d->evidence.n_rows;
    if (n_rest > MOST || n_rest * n_rows > PRODUCTS)
        return false;
    p->moved = malloc((n_rest + 1) * sizeof *p->moved);
    d->no_memory |= !p->moved;
    for (uint64_t i = next_of_rest(d, 0); p->moved && i < n_rows; i = next_of_rest(d, i + 1)) {
        uint64_t at = before + 1 < n_rows && is_believed_row(l, i, before + 1) ? before + 1 : 0;
        while (at < n_rows && !is_believed_row(l, i, at) && !pe_is_cancelled())
            at++;
        if (at >= n_rows || pe_is_cancelled())
            return false;
        before = p->moved[p->n_moved++] = at;
    }
    return p->n_moved > 0;
}

void pe_parts_describe(struct pe_diagnosis *d)
{
    struct look l;
    struct sums s;
    enum pe_evidence_id id = d->evidence.kind->id;
    struct pe_parts *p = d->parts;
    unsigned with_rows =
        PE_EVIDENCE_BIT(ENCODING) | PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(BIAS) | PE_EVIDENCE_BIT(BUCKETS);
    if (!look_open(&l, d))
        return;
    sum_up(d, &l, &s);
    p->mean = s.n > 0 ? s.sum / s.n : 0;
    p->deviation = s.n > 0 ? sqrt(fmax(0, s.sum2 / s.n - p->mean * p->mean)) : 0;
    if (p->n_fit + p->n_scaled == p->n_compared)
        p->rest = PE_REST_SCALED;
    else if (s.is_number)
        p->rest = PE_REST_NUMBER;
    else if ((with_rows >> id & 1) && find_moved(d, &l, s.n_rows))
        p->rest = PE_REST_MOVED;
    else if (s.is_repeated && s.n_rows > 1)
        p->rest = PE_REST_REPEATED;
    free(l.found);
}
