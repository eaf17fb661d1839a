/* The sample: the numbers that hypotheses are compared with.
 *
 * A tensor may have 10^9 numbers and thousands of hypotheses are compared with it, so the comparison is with some
 * thousand numbers, chosen once: ends and middles of the rows of all groups, a run from the beginning (a step shows
 * there) and rows all over, in pieces that a plan fills cheaply. The few best are compared with every number at the end
 * (search/answer.c), so the sample can cost time but not correctness. Of numbers that were typed, and of a probe, it is
 * the rows where somebody can look. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>

/* ---- Of a tensor ---- */

/* Rows are numbered g·n + r: n rows of positions (or queries) in each of several groups (heads). */
struct spread {
    uint64_t n, n_groups;
    size_t per_row, n_rows; /* numbers of each row, rows */
};

static struct spread spread_of(const struct pe_evidence *e)
{
    const struct pe_tensor *t = &e->tensors[0];
    struct spread s = {.n = e->axes.n ? e->axes.n : t->rank > 1 ? t->shape[t->rank - 2] : 1};
    s.n_groups = e->n_rows / s.n;
    size_t budget = PE_SAMPLE_MAX / e->n_tensors;
    uint64_t heads = e->kind->id == PE_OF_BIAS ? s.n_groups : 1, rows = 2 * heads > 16 ? 2 * heads : 16;
    rows = rows < e->n_rows ? rows : e->n_rows;
    s.per_row = budget / rows > 32 ? budget / rows : 32;
    s.per_row = s.per_row < e->row_len ? s.per_row : (size_t)e->row_len;
    s.n_rows = budget / s.per_row > 0 ? budget / s.per_row : 1;
    s.n_rows = s.n_rows < e->n_rows ? s.n_rows : (size_t)e->n_rows;
    return s;
}

/* The k-th row of interest among n: ends and middles first, then a run from the beginning, then all over. */
static uint64_t candidate(uint64_t k, uint64_t n)
{
    const uint64_t first[] = {n - 1, 1, n / 2, 0, n / 3, 2, 2 * n / 3, n / 2 + 1};
    enum { FIRST = 8, RUN = 40, LAST = 48 };
    if (k < FIRST)
        return first[k];
    if (k < RUN)
        return k - FIRST;
    if (k < LAST)
        return n - 1 - (k - RUN);
    return (uint64_t)((double)(k - LAST) * 0.6180339887498949 * (double)n) % n;
}

/* Fills rows [n_rows] with different rows of all groups. Returns their number. */
static size_t choose_rows(const struct pe_evidence *e, const struct spread *s, uint64_t *order, uint64_t *rows)
{
    size_t n = 0, m = 0;
    unsigned char *seen = (unsigned char *)(order + s->n); /* [n] */
    for (uint64_t k = 0; m < s->n && k < 16 * s->n + 64; k++) {
        uint64_t r = candidate(k, s->n);
        if (r < s->n && !seen[r]) {
            seen[r] = 1;
            order[m++] = r;
        }
    }
    for (uint64_t r = 0; r < s->n && m < s->n; r++)
        if (!seen[r])
            order[m++] = r;
    for (uint64_t pass = 0; pass < s->n_groups && n < s->n_rows; pass++)
        for (uint64_t k = 0; k < s->n && n < s->n_rows; k++) {
            uint64_t group = (k + pass) % s->n_groups;
            rows[n] = e->axes.n ? pe_axes_row(&e->axes, group, order[k]) : group * s->n + order[k];
            n += !pe_evidence_is_padding(e, rows[n]);
        }
    return n;
}

/* A row is one piece, or four of a long one: its beginning, about the diagonal, in between and its end. */
static size_t add_pieces(const struct pe_evidence *e, const struct spread *s, size_t t, uint64_t row,
                         struct pe_piece *pieces)
{
    if (s->per_row == e->row_len) {
        pieces[0] = (struct pe_piece){t, row, 0, s->per_row, 0};
        return 1;
    }
    size_t some = s->per_row / 4;
    uint64_t last = e->row_len - some, share = row % s->n * e->row_len / s->n;
    uint64_t starts[4] = {0, share > some / 2 ? share - some / 2 : 0, row * 2654435761U % (last + 1), last};
    for (size_t i = 0; i < 4; i++)
        pieces[i] = (struct pe_piece){t, row, starts[i] < last ? starts[i] : last, some, 0};
    return 4;
}

enum { FIRST_ROWS = 8, FIRST_NUMBERS = 512 };

static void add_row(struct pe_diagnosis *d, const struct spread *s, uint64_t row)
{
    struct pe_sample *sample = &d->sample;
    for (size_t t = 0; t < d->evidence.n_tensors; t++) {
        size_t n = add_pieces(&d->evidence, s, t, row, sample->pieces + sample->n_pieces);
        for (size_t i = 0; i < n; i++) {
            struct pe_piece *p = &sample->pieces[sample->n_pieces++];
            p->at = sample->n;
            sample->n += p->n;
            sample->longest = p->n > sample->longest ? p->n : sample->longest;
        }
    }
}

static enum pe_status allocate(struct pe_diagnosis *d, const struct spread *s, struct pe_failure *err)
{
    struct pe_sample *sample = &d->sample;
    size_t most = s->n_rows * d->evidence.n_tensors, numbers = most * s->per_row;
    size_t lists = pe_is_printed(&d->evidence) ? 4 : 3;
    double bytes = (double)(most * 4 * sizeof *sample->pieces + numbers * lists * sizeof(double));
    if (pe_diagnosis_admit(d, bytes, err))
        return err->status;
    sample->pieces = calloc(most * 4, sizeof *sample->pieces);
    sample->found = calloc(lists * numbers, sizeof(double));
    sample->expected = sample->found ? sample->found + numbers : NULL;
    sample->phase = sample->found ? sample->found + 2 * numbers : NULL;
    sample->settled = sample->found && lists > 3 ? sample->found + 3 * numbers : NULL;
    return sample->pieces && sample->found ? PE_OK : pe_no_memory(err);
}

static enum pe_status fill_sample(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_sample *sample = &d->sample;
    struct spread s = spread_of(&d->evidence);
    uint64_t *rows = malloc(s.n_rows * sizeof *rows), *order = calloc(s.n * 9 + 8, 1);
    enum pe_status status = rows && order ? allocate(d, &s, err) : pe_no_memory(err);
    size_t n = status ? 0 : choose_rows(&d->evidence, &s, order, rows);
    for (size_t i = 0; i < n; i++) {
        add_row(d, &s, rows[i]);
        if (i < FIRST_ROWS && (i == 0 || sample->n <= FIRST_NUMBERS * d->evidence.n_tensors || i < 4)) {
            sample->n_first = sample->n_pieces;
            sample->n_first_numbers = sample->n;
        }
    }
    for (size_t i = 0; i < sample->n_pieces; i++) {
        const struct pe_piece *p = &sample->pieces[i];
        pe_evidence_read(&d->evidence, p->t, p->row, p->col0, p->n, sample->found + p->at);
    }
    free(rows);
    free(order);
    return status;
}

enum pe_status pe_evidence_sample(struct pe_diagnosis *d, struct pe_failure *err)
{
    enum pe_status status = pe_printed_open(d, err);
    if (!status)
        status = pe_evidence_look_over(d, err);
    return status ? status : fill_sample(d, err);
}

/* ---- Of numbers that were typed ---- */

uint64_t pe_typed_index(const struct pe_positions *positions, double p)
{
    uint64_t i = 0;
    while (i < positions->n && pe_position_at(positions, i) != p)
        i++;
    return i;
}

/* Distinct positions that a probe looks at: the first 32, the last, the rest evenly. */
static size_t choose(const struct pe_positions *positions, size_t most, uint64_t *out)
{
    uint64_t n = positions->n, last = n - 1;
    size_t first = most < PE_TYPED_LEN ? most : PE_TYPED_LEN, m = 0;
    for (uint64_t k = 0; k < most && k < n; k++) {
        uint64_t i =
            n <= most || k < first
                ? k
                : first + (uint64_t)((double)(last - first) * (double)(k - first + 1) / (double)(most - first));
        if (m > 0 && out[m - 1] >= i)
            continue;
        if (pe_typed_index(positions, pe_position_at(positions, i)) == i)
            out[m++] = i;
    }
    return m;
}

/* Rows that a probe looks at, and of a map the keys. */
struct looks {
    uint64_t rows[PE_PROBED_NUMBERS], cols[PE_PROBED_ROWS];
    size_t n_rows, n_cols; /* n_cols 0: whole rows */
};

static void look_at_map(const struct pe_diagnosis *d, struct looks *l)
{
    const struct pe_sequence *seq = &d->belief.plan->seq;
    uint64_t heads = d->evidence.tensors[0].shape[0], queries[PE_PROBED_ROWS];
    size_t most = (size_t)sqrt((double)PE_PROBED_NUMBERS / (double)heads);
    most = most > PE_PROBED_ROWS ? PE_PROBED_ROWS : most > 1 ? most : 1;
    size_t n_queries = choose(seq->q, most, queries);
    l->n_cols = choose(seq->k, most, l->cols);
    for (uint64_t head = 0; head < heads; head++)
        for (size_t i = 0; i < n_queries && (l->n_rows + 1) * l->n_cols <= PE_PROBED_NUMBERS; i++)
            l->rows[l->n_rows++] = head * d->evidence.tensors[0].shape[1] + queries[i];
}

static void look(const struct pe_diagnosis *d, struct looks *l)
{
    const struct pe_evidence *e = &d->evidence;
    uint64_t most = PE_PROBED_NUMBERS / (e->row_len * e->n_tensors);
    most = most > PE_PROBED_ROWS ? PE_PROBED_ROWS : most > 1 ? most : 1;
    l->n_rows = l->n_cols = 0;
    if (e->kind->id == PE_OF_BIAS)
        look_at_map(d, l);
    else if (e->kind->id == PE_OF_LADDER)
        l->rows[l->n_rows++] = 0;
    else
        l->n_rows = choose(d->belief.plan->seq.k, (size_t)most, l->rows);
}

static void add_piece(struct pe_sample *s, size_t t, uint64_t row, uint64_t col, size_t n)
{
    s->pieces[s->n_pieces++] = (struct pe_piece){t, row, col, n, s->n};
    s->n += n;
    s->longest = n > s->longest ? n : s->longest;
}

static enum pe_status open_looks(struct pe_diagnosis *d, const struct looks *l, struct pe_sample *s,
                                 struct pe_failure *err)
{
    const struct pe_evidence *e = &d->evidence;
    size_t n_pieces = l->n_rows * (l->n_cols ? l->n_cols : e->n_tensors);
    size_t n = l->n_cols ? n_pieces : n_pieces * (size_t)e->row_len;
    *s = (struct pe_sample){.longest = 1};
    if (pe_diagnosis_admit(d, (double)(n_pieces * sizeof *s->pieces + 3 * n * sizeof *s->found), err))
        return err->status;
    s->pieces = calloc(n_pieces + 1, sizeof *s->pieces);
    s->found = calloc(3 * (n + 1), sizeof *s->found);
    if (!s->pieces || !s->found)
        return pe_no_memory(err);
    s->expected = s->found + n;
    s->phase = s->expected + n;
    for (size_t i = 0; i < l->n_rows; i++) {
        for (size_t j = 0; j < l->n_cols; j++)
            add_piece(s, 0, l->rows[i], l->cols[j], 1);
        for (size_t t = 0; t < e->n_tensors && !l->n_cols; t++)
            add_piece(s, t, l->rows[i], 0, (size_t)e->row_len);
    }
    s->n_first = s->n_pieces;
    s->n_first_numbers = s->n;
    return PE_OK;
}

void pe_sample_drop(struct pe_sample *s)
{
    free(s->pieces);
    free(s->found);
    *s = (struct pe_sample){.n = 0};
}

enum pe_status pe_probed_open(struct pe_diagnosis *d, struct pe_sample *s, struct pe_failure *err)
{
    struct looks *l = malloc(sizeof *l);
    *s = (struct pe_sample){.n = 0};
    if (!l)
        return pe_no_memory(err);
    look(d, l);
    enum pe_status status = open_looks(d, l, s, err);
    free(l);
    return status;
}

bool pe_sample_scores(struct pe_diagnosis *d, struct pe_edit edit, double *out)
{
    struct pe_model *model;
    edit.n_owned = 0;
    if (d->evidence.kind == &pe_evidence_probs)
        edit.transforms.stage = PE_STAGE_OTHER;
    if (!pe_edit_model(d, &edit, &model))
        return false;
    pe_sample_fill(&d->sample, model, out);
    pe_model_free(model);
    return true;
}

void pe_sample_fill(const struct pe_sample *s, const struct pe_model *m, double *out)
{
    for (size_t i = 0; i < s->n_pieces && !pe_is_cancelled(); i++) {
        const struct pe_piece *p = &s->pieces[i];
        pe_model_fill(m, p->t, p->row, p->col0, p->n, out + p->at);
    }
}

/* The largest magnitude that the belief has where a probe looks, or that was typed. */
static void find_largest(struct pe_diagnosis *d, const struct pe_sample *probed)
{
    struct pe_evidence *e = &d->evidence;
    pe_sample_fill(probed, d->belief.model, probed->expected);
    for (size_t i = 0; i < probed->n; i++)
        if (isfinite(probed->expected[i]))
            e->largest = fmax(e->largest, fabs(probed->expected[i]));
    for (size_t i = 0; i < e->n_typed; i++)
        e->largest = fmax(e->largest, fabs(e->typed[i].value));
}

/* A piece for each number typed. */
static enum pe_status sample_typed(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_sample *s = &d->sample;
    const struct pe_evidence *e = &d->evidence;
    size_t n = e->n_typed;
    *s = (struct pe_sample){.longest = 1};
    s->pieces = calloc(n, sizeof *s->pieces);
    s->found = calloc(3 * n, sizeof *s->found);
    if (!s->pieces || !s->found)
        return pe_no_memory(err);
    s->expected = s->found + n;
    s->phase = s->expected + n;
    for (size_t i = 0; i < n; i++) {
        add_piece(s, e->typed[i].t, e->typed[i].row, e->typed[i].col, 1);
        s->found[i] = e->typed[i].value;
    }
    s->n_first = s->n_first_numbers = n;
    return PE_OK;
}

enum pe_status pe_typed_sample(struct pe_diagnosis *d, struct pe_failure *err)
{
    enum pe_status status = pe_probed_open(d, &d->sample, err);
    if (!status)
        find_largest(d, &d->sample);
    if (status || d->is_probe)
        return status;
    pe_sample_drop(&d->sample);
    return sample_typed(d, err);
}
