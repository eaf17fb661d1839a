/* The ladder of frequencies of sinusoidal encodings and rotary schemes on one axis: C frequencies in radians per
 * position, with the scaling of the context and without it. */
#include "core/analysis/study/study.h"
#include "core/schemes/rotary/rotary.h"

#include <stdlib.h>
#include <string.h>

static enum pe_status allocate(struct pe_ladder *ladder, size_t n, struct pe_failure *err)
{
    ladder->w = calloc(2 * n + 1, sizeof *ladder->w);
    if (!ladder->w)
        return pe_no_memory(err);
    ladder->w0 = ladder->w + n;
    ladder->n = n;
    ladder->orig_len = (double)NAN;
    ladder->attention_factor = 1;
    return PE_OK;
}

/* ---- Sinusoidal ---- */

/* Each sine is one frequency; the column that pads an odd width is sin(0·p). */
static bool is_ladder_column(const struct pe_wave *column)
{
    return column->quarter % 2 == 0 && column->quarter != PE_LINEAR && column->ah != 0 && column->fh != 0;
}

static enum pe_status read_columns(struct pe_subject *subject, const struct pe_wave *columns, size_t n,
                                   struct pe_failure *err)
{
    size_t pairs = 0;
    for (size_t i = 0; i < n; i++)
        pairs += is_ladder_column(&columns[i]);
    enum pe_status status = allocate(&subject->ladder, pairs, err);
    pairs = 0;
    for (size_t i = 0; !status && i < n; i++)
        if (is_ladder_column(&columns[i]))
            subject->ladder.w[pairs++] = (columns[i].fh + columns[i].fl) * (M_PI / 2);
    if (!status)
        memcpy(subject->ladder.w0, subject->ladder.w, pairs * sizeof(double));
    return status;
}

static enum pe_status init_sinusoidal(struct pe_subject *subject, struct pe_failure *err)
{
    struct pe_wave *columns = calloc(subject->dim + 1, sizeof *columns);
    if (!columns)
        return pe_no_memory(err);
    enum pe_status status = PE_OK;
    if (subject->plan->scheme->columns && subject->plan->scheme->columns(subject->plan, 0, columns))
        status = read_columns(subject, columns, subject->dim, err);
    free(columns);
    return status;
}

/* ---- Rotary ---- */

/* The frequencies of a plan of the same scheme; *n_read is their number. */
static enum pe_status read_inv_freq(struct pe_analysis *study, const struct pe_subject *subject,
                                    const struct pe_field *overrides, size_t n_overrides, double *w, size_t n,
                                    size_t *n_read, struct pe_failure *err)
{
    static const char *const outputs[] = {"inv_freq"};
    struct pe_plan *plan;
    struct pe_variant variant = {PE_ENCODE, PE_F64, overrides, n_overrides, outputs, 1, 0};
    enum pe_status status = pe_subject_plan(study, subject, &variant, &plan, err);
    if (status)
        return status;
    *n_read = (size_t)pe_plan_output(plan, 0)->row_len;
    if (*n_read == n)
        pe_fill(plan, 0, 0, n, w);
    pe_plan_free(plan);
    return PE_OK;
}

static enum pe_status read_unscaled(struct pe_analysis *study, struct pe_subject *subject, struct pe_failure *err)
{
    static const struct pe_field type = {"type", {.kind = PE_STRING, .string = "default"}};
    static const struct pe_field scaling = {"scaling", {.kind = PE_OBJECT, .object = {&type, 1}}};
    const struct pe_rotary_fields *config = subject->plan->config;
    struct pe_ladder *ladder = &subject->ladder;
    size_t n_read = 0;
    memcpy(ladder->w0, ladder->w, ladder->n * sizeof(double));
    if (config->inv_freq.n || (pe_scaling_is_default(&config->scaling) && !config->scaling.divisors.n))
        return PE_OK;
    return read_inv_freq(study, subject, &scaling, 1, ladder->w0, ladder->n, &n_read, err);
}

static double original_length(const struct pe_scaling *s)
{
    double original = s->original_max_position_embeddings;
    return isnan(original) ? s->max_position_embeddings : original;
}

static enum pe_status init_rotary(struct pe_analysis *study, struct pe_subject *subject, struct pe_failure *err)
{
    const struct pe_rotary *r = subject->plan->tables;
    const struct pe_rotary_fields *config = subject->plan->config;
    size_t n_read;
    if (r->n_blocks != 1)
        return PE_OK;
    enum pe_status status = allocate(&subject->ladder, r->n_pairs, err);
    if (!status)
        status = read_inv_freq(study, subject, NULL, 0, subject->ladder.w, r->n_pairs, &n_read, err);
    if (!status)
        status = read_unscaled(study, subject, err);
    subject->ladder.orig_len = original_length(&config->scaling);
    subject->ladder.attention_factor = config->attention_factor;
    return status;
}

/* Do all axes have the same positions? */
static bool is_one_axis(const struct pe_sequence *seq)
{
    for (unsigned axis = 1; axis < seq->n_axes; axis++)
        if (!pe_positions_same(&seq->k[0], &seq->k[axis]))
            return false;
    return true;
}

enum pe_status pe_ladder_init(struct pe_analysis *study, struct pe_subject *subject, struct pe_failure *err)
{
    if (!is_one_axis(&subject->plan->seq))
        return PE_OK;
    if (subject->family == PE_ROTARY)
        return init_rotary(study, subject, err);
    bool is_sinusoidal = strcmp(pe_plan_scheme(subject->plan)->name, "sinusoidal") == 0;
    return is_sinusoidal && subject->plan->seq.n_axes == 1 ? init_sinusoidal(subject, err) : PE_OK;
}

/* ---- Its waves ---- */

/* Cosines and sines of a ladder's angles, from the columns of the subject's own plan. */

/* Frequencies of a rotary plan are in its cosines, those of a sinusoidal one in its sines. Under `arith: float32` the
 * columns are in radians, and the ladder's own doubles are exact. */
static void read_frequencies(const struct pe_subject *subject, struct pe_wave *columns, struct pe_dd *f)
{
    const struct pe_plan *plan = subject->plan;
    struct pe_rotation rotation;
    size_t n = 0;
    bool is_rotary = subject->family == PE_ROTARY;
    if (is_rotary)
        plan->scheme->rotate(plan, &rotation, columns);
    else
        plan->scheme->columns(plan, 0, columns);
    for (size_t i = 0; n < subject->ladder.n; i++)
        if (is_rotary || is_ladder_column(&columns[i]))
            f[n++] = (struct pe_dd){columns[i].fh, columns[i].fl};
    for (size_t c = 0; plan->arith != PE_ARITH_EXACT && c < n; c++)
        f[c] = pe_quarter_turns(dd(subject->ladder.w[c]));
}

enum pe_status pe_ladder_waves(const struct pe_subject *subject, uint64_t n_rows, struct pe_waves **waves,
                               struct pe_failure *err)
{
    size_t n = subject->ladder.n, n_columns = subject->dim > 2 * n ? subject->dim : 2 * n;
    struct pe_wave *columns = calloc(n_columns, sizeof *columns);
    struct pe_dd *f = calloc(n, sizeof *f);
    enum pe_status status = columns && f ? PE_OK : pe_no_memory(err);
    if (!status)
        read_frequencies(subject, columns, f);
    for (size_t c = 0; !status && c < 2 * n; c++)
        columns[c] = (struct pe_wave){.fh = f[c % n].hi, .fl = f[c % n].lo, .ah = 1, .quarter = c < n};
    if (!status && pe_waves_new_for(columns, 2 * n, PE_F64, n_rows, waves))
        status = pe_no_memory(err);
    free(columns);
    free(f);
    return status;
}

double pe_ladder_waves_bytes(const struct pe_subject *subject)
{
    enum { COLUMN_BYTES = 256 }; /* a prepared column, rather too much */
    double columns = 2 * (double)subject->ladder.n, width = fmax((double)subject->dim, columns);
    return width * sizeof(struct pe_wave) + columns * COLUMN_BYTES + columns / 2 * sizeof(struct pe_dd);
}
