/* The evidence: its numbers, whatever the axes and the dtype in which they were sent.
 *
 * One pass over all numbers finds what every judgement needs: the largest, infinities and NaN, and whether all of them
 * fit a narrower dtype than the one they were sent in. */
#include "core/diagnosis/diagnosis.h"
#include "core/request/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers ---- */

bool pe_evidence_is_whole(const struct pe_evidence *e)
{
    return e->kind->id == PE_OF_BUCKETS || e->kind->id == PE_OF_IDS;
}

/* n numbers, each `step` after the one before. */
static void read_some(const struct pe_tensor *t, bool is_text, uint64_t at, uint64_t step, size_t n, double *out)
{
    if (t->dtype == PE_F32) { /* the common dtype, which every comparison reads whole */
        const float *from = (const float *)t->data + at;
        for (size_t i = 0; step == 1 && i < n; i++)
            out[i] = (double)from[i];
        for (size_t i = 0; step != 1 && i < n; i++)
            out[i] = (double)from[i * step];
        return;
    }
    size_t size = pe_dtype_size(t->dtype), at_once = step == 1 ? n : 1;
    for (size_t i = 0; i < n; i += at_once)
        pe_convert(PE_F64, out + i, t->dtype, (const char *)t->data + (at + i * step) * size, at_once);
    for (size_t i = 0; is_text && i < n; i++)
        out[i] = (double)(float)out[i];
}

void pe_evidence_read(const struct pe_evidence *e, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    for (size_t i = 0; e->is_typed && i < n; i++)
        out[i] = (double)NAN;
    if (e->is_typed)
        return;
    bool is_text = e->is_text[t] && !pe_evidence_is_whole(e);
    uint64_t step = e->view.sent.rank ? e->view.col_step : e->is_channels_first ? e->n_rows : 1;
    read_some(&e->tensors[t], is_text, pe_evidence_element(e, t, row, col0), step, n, out);
    for (size_t i = 0; (e->view.is_negative[t] || e->folded) && i < n; i++)
        out[i] *= pe_evidence_sign(e, t, col0 + i);
    for (size_t i = 0; e->aside && e->aside[row] & (PE_ASIDE_NOT_FINITE | PE_ASIDE_MISSING) && i < n; i++)
        out[i] = isfinite(out[i]) ? out[i] : 0;
}

static bool is_informative(double x)
{
    char text[16];
    snprintf(text, sizeof text, "%.1e", x); /* two digits */
    return x != 0 && fabs(x) != 1 && (float)strtod(text, NULL) != (float)x;
}

size_t pe_evidence_informative(const struct pe_evidence *e)
{
    unsigned waves = PE_EVIDENCE_BIT(ENCODING) | PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) |
                     PE_EVIDENCE_BIT(ANGLES) | PE_EVIDENCE_BIT(LADDER);
    uint64_t each = e->n_rows * e->row_len;
    size_t n = 0;
    bool is_text = e->is_text[0] || e->printed.of[0];
    if (!(waves >> e->kind->id & 1) || (!e->is_typed && (!is_text || each > PE_SAMPLE_MAX)))
        return PE_INFORMATIVE_MIN;
    for (size_t i = 0; e->is_typed && i < e->n_typed; i++)
        n += is_informative(e->typed[i].value);
    for (uint64_t i = 0; !e->is_typed && n < PE_INFORMATIVE_MIN && i < each * e->n_tensors; i++) {
        double x;
        pe_evidence_read(e, i / each, i % each / e->row_len, i % e->row_len, 1, &x);
        n += is_informative(x);
    }
    return n < PE_INFORMATIVE_MIN ? n : PE_INFORMATIVE_MIN;
}

uint64_t pe_evidence_element(const struct pe_evidence *e, size_t t, uint64_t row, uint64_t col)
{
    if (e->view.sent.rank)
        return e->view.first[t] + row * e->view.row_step + col * e->view.col_step;
    return e->is_channels_first ? col * e->n_rows + row : row * e->row_len + col;
}

const struct pe_tensor *pe_evidence_sent(const struct pe_evidence *e)
{
    return e->view.sent.rank ? &e->view.sent : &e->sent;
}

const char *pe_evidence_name(const struct pe_evidence *e, size_t t)
{
    return e->kind->tensors[e->view.sent.rank ? 0 : t];
}

void pe_evidence_input(const struct pe_evidence *e, uint64_t row, double *out)
{
    for (size_t j = 0; e->is_typed && j < e->row_len; j++) /* a query that anyone can type */
        out[j] = 1 + (double)j / (double)e->row_len;
    if (e->is_typed)
        return;
    read_some(&e->input, e->input_is_text, row * e->row_len, 1, e->row_len, out);
}

void pe_evidence_fold(struct pe_evidence *e, unsigned rank, const uint64_t *shape)
{
    uint64_t copy[PE_RANK_MAX];
    memcpy(copy, shape, rank * sizeof *copy);
    for (size_t t = 0; t < e->n_tensors; t++) {
        e->tensors[t].rank = rank;
        memcpy(e->tensors[t].shape, copy, rank * sizeof *copy);
    }
    pe_shape_count(copy, rank - 1, &e->n_rows);
    e->row_len = copy[rank - 1];
}

bool pe_evidence_squeeze(struct pe_evidence *e, unsigned rank)
{
    const struct pe_tensor *t = &e->tensors[0];
    uint64_t before = 1, leading = 1;
    unsigned n_long = 0;
    if (t->rank < rank)
        return false;
    for (unsigned a = 0; a + 1 < t->rank; a++) {
        before *= a + rank < t->rank ? t->shape[a] : 1;
        leading *= t->shape[a];
        n_long += t->shape[a] != 1;
    }
    if (before == 1)
        pe_evidence_fold(e, rank, t->shape + (t->rank - rank));
    else if (rank == 2 && n_long == 1)
        pe_evidence_fold(e, 2, (uint64_t[]){leading, t->shape[t->rank - 1]});
    else
        return false;
    return true;
}

bool pe_evidence_axes(const struct pe_evidence *e, const char *layout, struct pe_operand *axes)
{
    unsigned i = 0;
    while (layout && i < PE_N_TENSOR_LAYOUTS && !pe_same(pe_tensor_layout_words[i], layout))
        i++;
    *axes = (struct pe_operand){.tensor = e->tensors[0]};
    bool is_placed = i < PE_N_TENSOR_LAYOUTS && pe_operand_place(axes, (enum pe_tensor_layout)i, e->row_len);
    while (!is_placed && i < PE_N_TENSOR_LAYOUTS && axes->tensor.rank > 2 && axes->tensor.shape[0] == 1) {
        axes->tensor.rank--;
        memmove(axes->tensor.shape, axes->tensor.shape + 1, axes->tensor.rank * sizeof *axes->tensor.shape);
        is_placed = pe_operand_place(axes, (enum pe_tensor_layout)i, e->row_len);
    }
    return is_placed && axes->width == e->row_len;
}

uint64_t pe_axes_row(const struct pe_operand *axes, uint64_t head, uint64_t i)
{
    uint64_t batch = head / axes->n_heads;
    return (batch * axes->batch_step + head % axes->n_heads * axes->head_step + i * axes->row_step) / axes->width;
}

bool pe_evidence_is_output(const struct pe_diagnosis *d, const char *name)
{
    for (const struct pe_output_row *row = d->belief.inheritance->scheme->info.outputs; row->name; row++)
        if (pe_same(row->name, name))
            return true;
    return false;
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

bool pe_evidence_is_shared(const struct pe_evidence *e)
{
    enum pe_evidence_id id = e->kind->id;
    return e->tensors[0].rank > 2 && (id == PE_OF_TABLES || id == PE_OF_ANGLES || id == PE_OF_ENCODING);
}

bool pe_evidence_has_rows(const struct pe_evidence *e, uint64_t n)
{
    return n == e->n_rows || (e->tensors[0].rank > 2 && n == pe_evidence_length(e));
}

double pe_typed_half(const struct pe_evidence *e, size_t i) { return e->n_typed ? e->typed[i].half : e->half; }

double pe_evidence_noise(const struct pe_evidence *e)
{
    if (e->is_typed)
        return e->n_typed && e->largest > 0 ? pe_typed_half(e, 0) / e->largest : 0;
    double u = pe_roundoff(e->narrow != PE_DTYPE_NONE ? e->narrow : e->dtype);
    return pe_is_printed(e) && e->largest > 0 ? fmax(u, e->printed.half / e->largest) : u;
}

/* ---- One look at every number ---- */

struct look {
    bool is_nan, allows_nan, fits_bf16, fits_f16;
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
        look->fits_bf16 = isnan(x[i]) || pe_round_to(PE_BF16, x[i]) == x[i];
    for (size_t i = 0; look->fits_f16 && i < n; i++)
        look->fits_f16 = isnan(x[i]) || pe_round_to(PE_F16, x[i]) == x[i];
}

static enum pe_status look_over(const struct pe_tensor *t, bool is_text, const char *name, struct look *look,
                                struct pe_failure *err)
{
    enum { SOME = 4096 };
    double x[SOME];
    uint64_t n, at = 0;
    char pointer[24] = "/";
    strncat(pointer, name, sizeof pointer - 2);
    pe_shape_count(t->shape, t->rank, &n);
    for (size_t some; at < n; at += some) {
        some = n - at < SOME ? (size_t)(n - at) : SOME;
        read_some(t, is_text, at, 1, some, x);
        look_at(look, x, some);
        if (look->is_nan && !look->allows_nan)
            return pe_fail(err, pointer, "%s has NaN near element %llu, counted flat; what is rotated must be finite",
                           name, (unsigned long long)at);
        if (at / SOME % 32 == 0 && pe_is_cancelled()) {
            pe_fail(err, "", "cancelled: the client disconnected");
            return err->status = PE_CANCELLED;
        }
    }
    return PE_OK;
}

/* Infinities hide keys. Memory that was never written may have any frequency (pe_ladder_oddity). */
static bool may_be_infinite(const struct pe_evidence *e)
{
    return e->kind->id == PE_OF_BIAS || e->kind->id == PE_OF_MAPS;
}

/* Room for the reasons why rows are set aside. */
static enum pe_status open_aside(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    if (e->aside)
        return PE_OK;
    if (pe_diagnosis_admit(d, (double)e->n_rows, err))
        return err->status;
    e->aside = calloc(e->n_rows, 1);
    return e->aside ? PE_OK : pe_no_memory(err);
}

/* The rows with numbers that are not finite; those of padding may hold anything. */
static enum pe_status find_not_finite(struct pe_diagnosis *d, struct pe_failure *err)
{
    enum { SOME = 1024 };
    struct pe_evidence *e = &d->evidence;
    struct pe_not_finite found = {.n = 0};
    bool passes_infinities = may_be_infinite(e);
    double x[SOME];
    if (open_aside(d, err))
        return err->status;
    for (uint64_t row = 0; row < e->n_rows; row++) {
        bool is_padding = pe_evidence_is_padding(e, row), is_bad = false;
        for (size_t t = 0; t < e->n_tensors && !is_padding; t++)
            for (uint64_t col = 0; col < e->row_len; col += SOME) {
                size_t n = e->row_len - col < SOME ? (size_t)(e->row_len - col) : SOME;
                pe_evidence_read(e, t, row, col, n, x);
                for (size_t i = 0; i < n; i++) {
                    if (isfinite(x[i]) || (passes_infinities && isinf(x[i])))
                        continue;
                    if (!found.n) {
                        found.t = t;
                        found.row = row;
                        found.col = col + i;
                        found.value = x[i];
                    }
                    found.n++;
                    is_bad = true;
                }
            }
        e->aside[row] |= is_bad ? PE_ASIDE_NOT_FINITE : 0; /* from here on its numbers read as 0 */
        if (row % 64 == 0 && pe_is_cancelled())
            return pe_cancelled(err);
    }
    e->not_finite = found;
    return PE_OK;
}

static enum pe_status look_over_all(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    bool is_wide = e->dtype == PE_F32 || e->dtype == PE_F64;
    bool is_ladder = e->kind->id == PE_OF_LADDER;
    size_t n_sent = e->view.sent.rank ? 1 : e->n_tensors;
    struct look look = {.fits_bf16 = is_wide, .fits_f16 = is_wide, .allows_nan = true}, of_input = {.largest = 0};
    enum pe_status status =
        e->kind->input ? look_over(&e->input, e->input_is_text, e->kind->input, &of_input, err) : PE_OK;
    for (size_t t = 0; !status && t < n_sent; t++)
        status = look_over(e->view.sent.rank ? &e->view.sent : &e->tensors[t],
                           e->is_text[t] && !pe_evidence_is_whole(e), e->kind->tensors[t], &look, err);
    for (size_t i = 0; !status && e->kind->id == PE_OF_MAPS && i < PE_N_OPERANDS; i++)
        status = look_over(&e->operands[i], e->operand_is_text[i], pe_operand_names[i], &of_input, err);
    e->largest = look.largest;
    e->has_infinity = look.has_infinity;
    bool shows_bits = !pe_is_printed(e); /* few digits are few bits */
    e->narrow = look.fits_bf16 && shows_bits ? PE_BF16 : look.fits_f16 && shows_bits ? PE_F16 : PE_DTYPE_NONE;
    if (status || is_ladder || !(look.is_nan || (look.has_infinity && !may_be_infinite(e))))
        return status;
    return find_not_finite(d, err);
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

/* A row before the rotation that is 0 is 0 after it. */
static bool is_input_zero(const struct pe_evidence *e, uint64_t row)
{
    double x[PE_HEAD_DIM_MAX];
    bool is_zero = e->kind->input != NULL;
    if (is_zero)
        pe_evidence_input(e, row, x);
    for (uint64_t j = 0; is_zero && j < e->row_len; j++)
        is_zero = x[j] == 0;
    return is_zero;
}

/* Rows of 0, where others are not: they show nothing but themselves. Most of a bias may be 0 in a right one. */
static enum pe_status find_zero_rows(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    unsigned kinds =
        PE_EVIDENCE_BIT(ENCODING) | PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(BIAS);
    uint64_t n_others = 0;
    e->n_zero = 0;
    for (uint64_t row = 0; (kinds >> e->kind->id & 1) && !e->is_turned && row < e->n_rows; row++) {
        if (row % 64 == 0 && pe_is_cancelled())
            return pe_cancelled(err);
        if (pe_evidence_is_padding(e, row))
            continue;
        bool is_zero = pe_evidence_is_zero(e, row) && !is_input_zero(e, row);
        n_others += !is_zero;
        e->n_zero += is_zero;
        if (is_zero && open_aside(d, err))
            return err->status;
        if (is_zero)
            e->aside[row] |= PE_ASIDE_ZERO;
    }
    bool are_few = e->kind->id == PE_OF_BIAS ? e->n_zero <= n_others : n_others > 0;
    for (uint64_t row = 0; e->n_zero && !are_few && row < e->n_rows; row++)
        e->aside[row] &= (unsigned char)~PE_ASIDE_ZERO;
    e->n_zero = are_few ? e->n_zero : 0;
    return PE_OK;
}

/* Of the diagnosis of a rest. */
static enum pe_status set_aside(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    if (!d->as_believed)
        return PE_OK;
    if (open_aside(d, err))
        return err->status;
    for (uint64_t row = 0; row < e->n_rows; row++)
        e->aside[row] |= d->as_believed[row] ? PE_ASIDE_FITS : 0;
    return PE_OK;
}

bool pe_evidence_is_padding(const struct pe_evidence *e, uint64_t row)
{
    const struct pe_operand *a = &e->axes;
    if ((e->aside && e->aside[row]) || (e->printed.left_out && e->printed.left_out[row]))
        return true;
    if (!e->padding)
        return false;
    if (e->kind->id == PE_OF_MAPS)
        return pe_map_is_padding(e, row);
    const uint64_t n = e->padding->n_batches * e->padding->n; /* a mask for all rows of the batch has one of them */
    if (e->kind->id != PE_OF_ROTATED)
        return !e->is_turned && e->n_rows % n == 0 && !pe_padding_is_token(e->padding, row % n);
    if (a->n != e->padding->n)
        return false;
    uint64_t at = row * a->width, batch = e->padding->n_batches > 1 ? at / a->batch_step % a->n_batches : 0;
    return !pe_padding_is_token(e->padding, batch * a->n + at / a->row_step % a->n);
}

/* The tolerance follows the largest number, and padding may hold anything. */
static void look_over_tokens(struct pe_evidence *e)
{
    double x[PE_HEAD_DIM_MAX];
    e->largest = 0;
    for (uint64_t row = 0; row < e->n_rows; row++) {
        if (row % 64 == 0 && pe_is_cancelled())
            return;
        if (pe_evidence_is_padding(e, row))
            continue;
        for (uint64_t col = 0, n; col < e->row_len; col += n) {
            n = e->row_len - col < PE_HEAD_DIM_MAX ? e->row_len - col : PE_HEAD_DIM_MAX;
            pe_evidence_read(e, 0, row, col, (size_t)n, x);
            for (uint64_t j = 0; j < n; j++)
                e->largest = isfinite(x[j]) ? fmax(e->largest, fabs(x[j])) : e->largest;
        }
    }
}

/* Rows that the tensor has not, of one whose sizes are those of the belief. */
static enum pe_status set_missing(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    const struct pe_place sizes = pe_evidence_places(e);
    bool is_padded = false;
    for (size_t i = 0; i < e->n_sizes; i++)
        is_padded |= e->sizes[i].is_padded;
    if (!is_padded || open_aside(d, err))
        return is_padded ? err->status : PE_OK;
    for (uint64_t row = 0; row < e->n_rows; row++) {
        const struct pe_place at = pe_evidence_place(e, &sizes, row);
        e->aside[row] |= pe_place_is_missing(e, &at) ? PE_ASIDE_MISSING : 0;
    }
    return PE_OK;
}

enum pe_status pe_evidence_look_over(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    enum pe_status status = set_missing(d, err);
    if (!status)
        status = look_over_all(d, err);
    if (status)
        return status;
    if (e->padding)
        look_over_tokens(e);
    status = set_aside(d, err);
    return status ? status : find_zero_rows(d, err);
}

struct pe_place pe_evidence_places(const struct pe_evidence *e)
{
    const struct pe_tensor *t = &e->tensors[0];
    const struct pe_operand *a = &e->axes;
    bool has_heads = e->kind->id == PE_OF_BIAS || e->kind->id == PE_OF_MAPS;
    if (a->n)
        return (struct pe_place){a->n, a->n_batches, a->n_heads};
    uint64_t n = t->rank > 1 ? t->shape[t->rank - 2] : 1, heads = has_heads && t->rank > 2 ? t->shape[t->rank - 3] : 1;
    return (struct pe_place){n, e->n_rows / (n * heads), heads};
}

struct pe_place pe_evidence_place(const struct pe_evidence *e, const struct pe_place *sizes, uint64_t row)
{
    const struct pe_operand *a = &e->axes;
    uint64_t at = row * a->width;
    if (a->n)
        return (struct pe_place){at / a->row_step % a->n, at / a->batch_step % a->n_batches,
                                 at / a->head_step % a->n_heads};
    return (struct pe_place){row % sizes->row, row / sizes->row / sizes->head, row / sizes->row % sizes->head};
}

void pe_evidence_drop(struct pe_diagnosis *d)
{
    free(d->sample.pieces);
    free(d->sample.found);
    free(d->evidence.norms[PE_QUERIES]);
    free(d->evidence.norms[PE_KEYS]);
    free((void *)d->evidence.tiled_keys.array.data);
    free(d->evidence.typed);
    free(d->evidence.aside);
    free(d->evidence.printed.left_out);
    free(d->evidence.places);
    for (size_t i = 0; i <= PE_EVIDENCE_TENSORS_MAX; i++)
        free(d->evidence.moved.owned[i]);
}

enum pe_status pe_diagnosis_admit(struct pe_diagnosis *d, double bytes, struct pe_failure *err)
{
    d->bytes += bytes;
    return d->request->admit ? d->request->admit(d->request->caller, d->bytes, err) : PE_OK;
}
