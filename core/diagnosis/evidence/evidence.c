/* The evidence: its numbers, and the sample that hypotheses are compared with. */
#include "core/diagnosis/diagnosis.h"
#include "core/request/operand.h"
#include "core/diagnosis/model/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers ---- */

bool pe_evidence_is_whole(const struct pe_evidence *e)
{
    return e->kind->id == PE_OF_BUCKETS || e->kind->id == PE_OF_IDS;
}

static void read_some(const struct pe_tensor *t, bool is_text, uint64_t at, size_t n, double *out)
{
    if (t->dtype == PE_F32) { /* the common dtype, which every comparison reads whole */
        const float *from = (const float *)t->data + at;
        for (size_t i = 0; i < n; i++)
            out[i] = (double)from[i];
        return;
    }
    pe_convert(PE_F64, out, t->dtype, (const char *)t->data + at * pe_dtype_size(t->dtype), n);
    for (size_t i = 0; is_text && i < n; i++)
        out[i] = (double)(float)out[i];
}

void pe_evidence_read(const struct pe_evidence *e, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    read_some(&e->tensors[t], e->is_text[t] && !pe_evidence_is_whole(e), row * e->row_len + col0, n, out);
}

void pe_evidence_input(const struct pe_evidence *e, uint64_t row, double *out)
{
    read_some(&e->input, e->input_is_text, row * e->row_len, e->row_len, out);
}

uint64_t pe_evidence_length(const struct pe_evidence *e)
{
    const struct pe_tensor *t = &e->tensors[0];
    return e->is_turned ? t->shape[t->rank - 1] : t->shape[t->rank - 2];
}

uint64_t pe_evidence_width(const struct pe_evidence *e)
{
    const struct pe_tensor *t = &e->tensors[0];
    return e->is_turned ? t->shape[t->rank - 2] : t->shape[t->rank - 1];
}

double pe_evidence_noise(const struct pe_evidence *e)
{
    return pe_roundoff(e->narrow != PE_DTYPE_NONE ? e->narrow : e->dtype);
}

/* ---- One look at every number ---- */

struct look {
    bool is_nan, fits_bf16, fits_f16;
    double largest;
    bool has_infinity;
};

static void look_at(struct look *look, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double a = fabs(x[i]);
        if (a <= look->largest)
            continue;
        if (isfinite(a))
            look->largest = a;
        look->is_nan |= isnan(a);
        look->has_infinity |= isinf(a);
    }
    for (size_t i = 0; look->fits_bf16 && i < n; i++)
        look->fits_bf16 = pe_round_to(PE_BF16, x[i]) == x[i];
    for (size_t i = 0; look->fits_f16 && i < n; i++)
        look->fits_f16 = pe_round_to(PE_F16, x[i]) == x[i];
}

static enum pe_status look_over(const struct pe_tensor *t, bool is_text, const char *name, struct look *look,
                                struct pe_error *err)
{
    enum { SOME = 4096 };
    double x[SOME];
    uint64_t n, at = 0;
    char pointer[24] = "/";
    strncat(pointer, name, sizeof pointer - 2);
    pe_shape_count(t->shape, t->rank, &n);
    for (size_t some; at < n; at += some) {
        some = n - at < SOME ? (size_t)(n - at) : SOME;
        read_some(t, is_text, at, some, x);
        look_at(look, x, some);
        if (look->is_nan)
            return pe_fail(err, pointer, "%s has NaN near element %llu, counted flat; send finite numbers, or -inf",
                           name, (unsigned long long)at);
        if (at / SOME % 32 == 0 && pe_is_cancelled()) {
            pe_fail(err, "", "given up: nobody waits for the answer any more");
            return err->status = PE_CANCELLED;
        }
    }
    return PE_OK;
}

static enum pe_status look_over_all(struct pe_evidence *e, struct pe_error *err)
{
    bool is_wide = e->dtype == PE_F32 || e->dtype == PE_F64;
    struct look look = {.fits_bf16 = is_wide, .fits_f16 = is_wide}, of_input = {.largest = 0};
    enum pe_status status =
        e->kind->input ? look_over(&e->input, e->input_is_text, e->kind->input, &of_input, err) : PE_OK;
    for (size_t t = 0; !status && t < e->n_tensors; t++)
        status = look_over(&e->tensors[t], e->is_text[t] && !pe_evidence_is_whole(e), e->kind->tensors[t], &look, err);
    e->largest = look.largest;
    e->has_infinity = look.has_infinity;
    e->narrow = look.fits_bf16 ? PE_BF16 : look.fits_f16 ? PE_F16 : PE_DTYPE_NONE;
    return status;
}

bool pe_evidence_is_zero(const struct pe_evidence *e, uint64_t row)
{
    double x;
    for (size_t t = 0; t < e->n_tensors; t++)
        for (uint64_t j = 0; j < e->row_len; j++) {
            pe_evidence_read(e, t, row, j, 1, &x);
            if (x != 0)
                return false;
        }
    return true;
}

static void find_zero_row(struct pe_evidence *e)
{
    bool has_rows = e->kind->id == PE_OF_ENCODING || e->kind->id == PE_OF_TABLES;
    for (uint64_t row = 0; has_rows && !e->is_turned && row < e->n_rows && e->zero_row < 0; row++)
        if (pe_evidence_is_zero(e, row))
            e->zero_row = (int64_t)row;
}

/* ---- The sample ---- */

/* Rows are numbered g·n + r: n rows of positions (or queries) in each of several groups (heads). */
struct spread {
    uint64_t n, n_groups;
    size_t per_row, n_rows; /* numbers of each row, rows */
};

static struct spread spread_of(const struct pe_evidence *e)
{
    const struct pe_tensor *t = &e->tensors[0];
    struct spread s = {.n = t->rank > 1 ? t->shape[t->rank - 2] : 1};
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
        uint64_t r = e->zero_row >= 0 && k == 0 ? (uint64_t)e->zero_row : candidate(k, s->n);
        if (r < s->n && !seen[r]) {
            seen[r] = 1;
            order[m++] = r;
        }
    }
    for (uint64_t r = 0; r < s->n && m < s->n; r++)
        if (!seen[r])
            order[m++] = r;
    for (uint64_t pass = 0; pass < s->n_groups && n < s->n_rows; pass++)
        for (uint64_t k = 0; k < s->n && n < s->n_rows; k++)
            rows[n++] = (k + pass) % s->n_groups * s->n + order[k];
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

static enum pe_status allocate(struct pe_diagnosis *d, const struct spread *s, struct pe_error *err)
{
    struct pe_sample *sample = &d->sample;
    size_t most = s->n_rows * d->evidence.n_tensors, numbers = most * s->per_row;
    double bytes = (double)(most * 4 * sizeof *sample->pieces + numbers * 3 * sizeof(double));
    if (pe_diagnosis_admit(d, bytes, err))
        return err->status;
    sample->pieces = calloc(most * 4, sizeof *sample->pieces);
    sample->found = calloc(3 * numbers, sizeof(double));
    sample->expected = sample->found ? sample->found + numbers : NULL;
    sample->phase = sample->found ? sample->found + 2 * numbers : NULL;
    return sample->pieces && sample->found ? PE_OK : pe_no_memory(err);
}

static enum pe_status fill_sample(struct pe_diagnosis *d, struct pe_error *err)
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

enum pe_status pe_evidence_sample(struct pe_diagnosis *d, struct pe_error *err)
{
    enum pe_status status = look_over_all(&d->evidence, err);
    if (status)
        return status;
    find_zero_row(&d->evidence);
    return fill_sample(d, err);
}

void pe_evidence_drop(struct pe_diagnosis *d)
{
    free(d->sample.pieces);
    free(d->sample.found);
}
