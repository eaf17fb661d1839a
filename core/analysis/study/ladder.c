/* The ladder of frequencies of sinusoidal encodings and rotary schemes on one axis: C frequencies in radians per
 * position, with the scaling of the context and without it. */
#include "core/analysis/internal.h"
#include "core/schemes/rotary/rotary.h"

#include <stdlib.h>
#include <string.h>

static enum pe_status allocate(struct pe_ladder *ladder, size_t n, struct pe_error *err)
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
bool pe_is_ladder_column(const struct pe_wave *column)
{
    return column->quarter % 2 == 0 && column->quarter != PE_LINEAR && column->ah != 0 && column->fh != 0;
}

static enum pe_status read_columns(struct pe_subject *subject, const struct pe_wave *columns, size_t n,
                                   struct pe_error *err)
{
    size_t pairs = 0;
    for (size_t i = 0; i < n; i++)
        pairs += pe_is_ladder_column(&columns[i]);
    enum pe_status status = allocate(&subject->ladder, pairs, err);
    pairs = 0;
    for (size_t i = 0; !status && i < n; i++)
        if (pe_is_ladder_column(&columns[i]))
            subject->ladder.w[pairs++] = (columns[i].fh + columns[i].fl) * (M_PI / 2);
    if (!status)
        memcpy(subject->ladder.w0, subject->ladder.w, pairs * sizeof(double));
    return status;
}

static enum pe_status init_sinusoidal(struct pe_subject *subject, struct pe_error *err)
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
                                    size_t *n_read, struct pe_error *err)
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

static enum pe_status read_unscaled(struct pe_analysis *study, struct pe_subject *subject, struct pe_error *err)
{
    static const struct pe_field type = {"type", {.kind = PE_STRING, .string = "default"}};
    static const struct pe_field scaling = {"scaling", {.kind = PE_OBJECT, .object = {&type, 1}}};
    const struct pe_rotary_fields *config = subject->plan->config;
    struct pe_ladder *ladder = &subject->ladder;
    size_t n_read = 0;
    memcpy(ladder->w0, ladder->w, ladder->n * sizeof(double));
    if (config->inv_freq.n || pe_scaling_is_default(&config->scaling))
        return PE_OK;
    return read_inv_freq(study, subject, &scaling, 1, ladder->w0, ladder->n, &n_read, err);
}

static double original_length(const struct pe_scaling *s)
{
    double original = s->original_max_position_embeddings;
    return isnan(original) ? s->max_position_embeddings : original;
}

static enum pe_status init_rotary(struct pe_analysis *study, struct pe_subject *subject, struct pe_error *err)
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

enum pe_status pe_ladder_init(struct pe_analysis *study, struct pe_subject *subject, struct pe_error *err)
{
    if (!is_one_axis(&subject->plan->seq))
        return PE_OK;
    if (subject->family == PE_ROTARY)
        return init_rotary(study, subject, err);
    bool is_sinusoidal = strcmp(pe_plan_scheme(subject->plan)->name, "sinusoidal") == 0;
    return is_sinusoidal && subject->plan->seq.n_axes == 1 ? init_sinusoidal(subject, err) : PE_OK;
}
