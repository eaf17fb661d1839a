/* Biases and buckets by the distance of the key from the query.
 *
 * A map of [heads, queries, keys] that depends on the distance alone is one line for each head, and its first and last
 * rows have every distance. Rows in between show whether it does. Hidden keys are passed over; the believed line is
 * that of the same request without a mask, so a mask of another kind changes nothing here. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/maps.h"

#include <stdlib.h>

static uint64_t axis(const struct pe_diagnosis *d, unsigned from_end)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    return from_end < t->rank ? t->shape[t->rank - 1 - from_end] : 1;
}

/* A number so low in place of -inf. */
static bool is_hidden(double found, double believed) { return !isfinite(found) || found < fmin(-1e4, 100 * believed); }

/* Adds one row to a line, or compares it with what is there. */
static bool add_row(struct pe_lines *l, size_t head, size_t first, const double *found, const double *believed,
                    size_t n)
{
    for (size_t j = 0; j < n; j++) {
        double *x = &l->found[head * l->n + first + j], *y = &l->believed[head * l->n + first + j];
        if (isnan(*y))
            *y = believed[j];
        if (isnan(*x) && !is_hidden(found[j], believed[j]))
            *x = found[j];
        if (!pe_lines_are_near(l, believed[j], *y) ||
            (!is_hidden(found[j], believed[j]) && !pe_lines_are_near(l, found[j], *x)))
            return false;
    }
    return true;
}

/* Rows of one head: the ends, so many in between that each distance is there, and a few more. */
static bool read_head(const struct pe_model *model, struct pe_lines *l, size_t head, uint64_t q_len, uint64_t k_len,
                      double *room)
{
    enum { ROWS = 4 };
    uint64_t stride = q_len / ROWS < k_len ? q_len / ROWS : k_len;
    for (uint64_t i = 0, last = q_len; last != q_len - 1; i += stride ? stride : 1) {
        last = i < q_len - 1 ? i : q_len - 1;
        if (pe_is_cancelled())
            return false;
        pe_evidence_read(&model->d->evidence, 0, head * q_len + last, 0, k_len, room);
        pe_model_fill(model, 0, head * q_len + last, 0, k_len, room + k_len);
        if (!add_row(l, head, q_len - 1 - last, room, room + k_len, k_len))
            return false;
    }
    return true;
}

bool pe_open_unmasked(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_model **model)
{
    static const char *const masks[] = {"causal", "window", "window_right", "key_mask"};
    struct pe_edit bare = *edit;
    bare.n_owned = 0;
    bare.transforms.mask_value = (double)NAN;
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++)
        if (pe_edit_has(d, edit, masks[i]))
            pe_edit_remove(&bare, masks[i]);
    return pe_edit_model(d, &bare, model);
}

/* Of one head, by its first and last rows and those in the middle; and how far its numbers are from a multiple of those
 * believed, as a share of them. room: two rows. */
static double factor_of(const struct pe_model *model, uint64_t row, uint64_t n_rows, double *room, double *misfit)
{
    size_t n = (size_t)model->d->evidence.row_len;
    const uint64_t rows[] = {row, row + n_rows / 2, row + n_rows - 1};
    double both = 0, own = 0, all = 0, *found = room, *believed = room + n;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !pe_is_cancelled(); i++) {
        pe_evidence_read(&model->d->evidence, 0, rows[i], 0, n, found);
        pe_model_fill(model, 0, rows[i], 0, n, believed);
        for (size_t j = 0; j < n; j++)
            if (!is_hidden(found[j], believed[j]) && isfinite(believed[j])) {
                both += found[j] * believed[j];
                own += believed[j] * believed[j];
                all += found[j] * found[j];
            }
    }
    *misfit = fmax(*misfit, own > 0 ? sqrt(fmax(all - both * both / own, 0) / (all + own)) : all > 0);
    return own > 0 ? both / own : 1;
}

double pe_measure_heads(struct pe_diagnosis *d, const struct pe_edit *edit, double *factors)
{
    const double least = 1e-7, errors[] = {pe_roundoff(d->evidence.dtype), pe_evidence_noise(&d->evidence)};
    uint64_t q_len = axis(d, 1), n_heads = d->evidence.n_rows / q_len;
    double misfit = 0, *room = malloc(2 * (size_t)d->evidence.row_len * sizeof *room);
    struct pe_model *model;
    d->no_memory |= !room;
    if (!room || !pe_open_unmasked(d, edit, &model)) {
        free(room);
        return (double)NAN;
    }
    for (uint64_t h = 0; model->has_shape && h < n_heads; h++)
        factors[h] = factor_of(model, h * q_len, q_len, room, &misfit);
    bool is_measured = model->has_shape && !pe_is_cancelled();
    d->work += 12 * (double)(n_heads * d->evidence.row_len);
    pe_model_free(model);
    free(room);
    for (size_t i = 0; is_measured && i < sizeof errors / sizeof *errors; i++)
        if (misfit <= fmax(4 * errors[i], least))
            return errors[i];
    return (double)NAN;
}

/* Where the believed distance is 0. */
static void find_zero(const struct pe_model *model, struct pe_lines *l, uint64_t q_len)
{
    const struct pe_sequence *seq = &model->plan->seq;
    double at = pe_position_at(seq->q, 0) - pe_position_at(seq->k, 0) + (double)(q_len - 1);
    l->zero = at >= 0 && at < (double)l->n ? (size_t)at : l->n;
}

bool pe_measure_lines(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_lines *l)
{
    uint64_t k_len = axis(d, 0), q_len = axis(d, 1);
    struct pe_model *model;
    *l = (struct pe_lines){.n_heads = (size_t)(d->evidence.n_rows / q_len),
                           .n = (size_t)(q_len + k_len - 1),
                           .tolerance = 3 * pe_evidence_noise(&d->evidence) + 0x1p-22};
    if (d->evidence.is_turned || edit->transforms.transposed || !pe_open_unmasked(d, edit, &model))
        return false;
    size_t n = 2 * l->n_heads * l->n;
    l->found = malloc((n + 2 * k_len) * sizeof *l->found);
    d->no_memory |= !l->found;
    bool is_line = l->found && model->has_shape && l->n < 1U << 20;
    l->believed = l->found ? l->found + n / 2 : NULL;
    for (size_t i = 0; is_line && i < n; i++)
        l->found[i] = (double)NAN;
    for (size_t h = 0; is_line && h < l->n_heads; h++)
        is_line = read_head(model, l, h, q_len, k_len, l->found + n);
    if (is_line)
        find_zero(model, l, q_len);
    d->work += 8 * (double)n;
    pe_model_free(model);
    return is_line;
}

void pe_lines_drop(struct pe_lines *l)
{
    free(l->found);
    l->found = NULL;
}

bool pe_lines_are_near(const struct pe_lines *l, double found, double predicted)
{
    return fabs(found - predicted) <= 4 * l->tolerance * (fabs(found) + fabs(predicted)) + 1e-30;
}

/* ---- Windows ---- */

/* The row of a table that all heads of a pair have; NaN: none, or several. */
static double row_of_table(const struct pe_model *m, uint64_t i, uint64_t j)
{
    const struct pe_weights *table = &m->plan->weights[0];
    uint64_t heads = table->tensor.shape[1], q_len = m->plan->seq.q->n;
    double row[PE_HEADS_MAX], found[PE_HEADS_MAX], at = (double)NAN, u = pe_evidence_noise(&m->d->evidence);
    for (uint64_t h = 0; h < heads; h++)
        pe_evidence_read(&m->d->evidence, 0, h * q_len + i, j, 1, &found[h]);
    for (uint64_t r = 0; r < table->tensor.shape[0] && !pe_is_cancelled(); r++) {
        bool is_equal = true;
        pe_weights_read(table, r * heads, heads, row);
        for (uint64_t h = 0; is_equal && h < heads; h++)
            is_equal = fabs(row[h] - found[h]) <= 4 * u * fabs(row[h]);
        if (is_equal && !isnan(at))
            return (double)NAN;
        at = is_equal ? (double)r : at;
    }
    return at;
}

static double index_at(const struct pe_model *m, uint64_t i, uint64_t j)
{
    double index;
    if (m->d->evidence.kind->id != PE_OF_BUCKETS)
        return row_of_table(m, i, j);
    pe_evidence_read(&m->d->evidence, 0, i, j, 1, &index);
    return index;
}

/* From the first patch, its neighbour in the line, and the first of the next line. */
static bool read_strides(const struct pe_model *m, struct pe_window_index *out)
{
    uint64_t at, w, first;
    if (!pe_window_of(m->plan, out->sides, &at))
        return false;
    w = out->sides[1];
    first = at;
    double same = index_at(m, first, first), right = index_at(m, first + (w > 1), first),
           left = index_at(m, first, first + (w > 1)), under = out->sides[0] > 1 ? index_at(m, first + w, first) : same,
           above = out->sides[0] > 1 ? index_at(m, first, first + w) : same;
    double h = (double)out->sides[0];
    out->found = (struct pe_strides){{under - same, right - same}, same};
    out->believed = (struct pe_strides){{2 * (double)w - 1, 1}, (h - 1) * (2 * (double)w - 1) + (double)w - 1};
    m->work[0] += 5 * (double)m->d->evidence.n_rows;
    return right - same == same - left && under - same == same - above;
}

bool pe_measure_window(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_window_index *out)
{
    struct pe_model *model;
    struct pe_edit changed = *edit;
    changed.n_owned = 0;
    if (edit->transforms.transposed || !pe_edit_model(d, &changed, &model))
        return false;
    bool is_sum = model->has_shape && read_strides(model, out);
    pe_model_free(model);
    return is_sum && memcmp(&out->found, &out->believed, sizeof out->found) != 0;
}
