/* Turns output rows and the requested names into shaped tensors with their sources.
 *
 * A scheme describes its outputs as rows: a name, a shape as an expression ("num_heads,q_len,k_len"), a dtype, a
 * condition. This file evaluates the expressions with the sizes of the plan, refuses what has more than 2^63 elements,
 * and gives each output a source: prepared waves if the scheme has columns for it, the frameworks' recipe under `arith:
 * float32`, else the scheme's own fill(). So a scheme never allocates an output, and whoever fills asks one question:
 * which source. */
#include "core/encode/encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <assert.h>

enum { OUTPUT_ROWS_MAX = 32 };

static size_t count_rows(const struct pe_scheme *scheme)
{
    size_t n = 0;
    while (scheme->info.outputs[n].name)
        n++;
    return n;
}

enum pe_status pe_outputs_alloc(struct pe_plan *plan, size_t n, struct pe_failure *err)
{
    plan->outputs = calloc(n, sizeof *plan->outputs);
    plan->sources = calloc(n, sizeof *plan->sources);
    return plan->outputs && plan->sources ? PE_OK : pe_no_memory(err);
}

void pe_outputs_drop(struct pe_plan *plan)
{
    for (size_t i = 0; plan->sources && i < plan->n_sources; i++) {
        pe_waves_free(plan->sources[i].waves);
        free(plan->sources[i].recipe);
    }
    free(plan->outputs);
    free(plan->sources);
}

/* ---- Which ---- */

size_t pe_output_row_find(const struct pe_scheme *scheme, const char *name)
{
    for (size_t id = 0; scheme->info.outputs[id].name; id++)
        if (pe_same(scheme->info.outputs[id].name, name))
            return id;
    return SIZE_MAX;
}

static bool needs_weights(const struct pe_output_row *row)
{
    return row->when && strcmp(row->when, PE_WHEN_WEIGHTS) == 0;
}

static bool available(const struct pe_plan *plan, const struct pe_output_row *row)
{
    if (needs_weights(row))
        return pe_weights_there(plan);
    return pe_when_holds(row->when, plan->scheme->info.params, plan->config);
}

enum pe_status pe_output_unknown(const struct pe_plan *plan, size_t asked, const char *name, const char *const *names,
                                 struct pe_failure *err)
{
    char pointer[48], allowed[256] = "";
    snprintf(pointer, sizeof pointer, "/outputs/%zu", asked);
    for (size_t i = 0; names[i] && strlen(allowed) + strlen(names[i]) + 4 < sizeof allowed; i++)
        strcat(strcat(allowed, i ? ", " : ""), names[i]);
    const char *nearest = pe_nearest(name, names);
    if (nearest)
        return pe_fail(err, pointer, "%s has no output \"%.64s\"; nearest: \"%s\"", plan->scheme->info.name, name,
                       nearest);
    return pe_fail(err, pointer, "%s has no output \"%.64s\"; allowed: %s", plan->scheme->info.name, name, allowed);
}

enum pe_status pe_outputs_twice(const struct pe_request *request, struct pe_failure *err)
{
    for (size_t i = 0; i < request->n_outputs; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(request->outputs[i], request->outputs[j]) == 0) {
                char pointer[48];
                snprintf(pointer, sizeof pointer, "/outputs/%zu", i);
                return pe_fail(err, pointer, "output \"%.64s\" is asked for twice", request->outputs[i]);
            }
    return PE_OK;
}

static enum pe_status hidden_row(const struct pe_output_row *row, size_t asked, struct pe_failure *err)
{
    char pointer[48];
    snprintf(pointer, sizeof pointer, "/outputs/%zu", asked);
    return pe_fail(err, pointer, "output \"%s\" is not answered here: it needs %s", row->name, row->when);
}

/* Finds the output row of that name under this config, or fails and lists the available outputs. */
static enum pe_status find_row(const struct pe_plan *plan, size_t asked, const char *name, size_t *id,
                               struct pe_failure *err)
{
    const struct pe_output_row *rows = plan->scheme->info.outputs, *hidden = NULL;
    const char *names[OUTPUT_ROWS_MAX + 2];
    size_t n = 0;
    if (pe_absolute_has_x(plan))
        names[n++] = "combined";
    *id = PE_COMBINED;
    if (n && strcmp(name, "combined") == 0)
        return PE_OK;
    for (size_t i = 0; rows[i].name; i++) {
        bool named = pe_same(rows[i].name, name);
        if (named && available(plan, &rows[i])) {
            *id = i;
            return PE_OK;
        }
        if (named)
            hidden = &rows[i];
        else if (available(plan, &rows[i]) || needs_weights(&rows[i]))
            names[n++] = rows[i].name;
    }
    names[n] = NULL;
    return hidden ? hidden_row(hidden, asked, err) : pe_output_unknown(plan, asked, name, names, err);
}

/* The encoding that `combined` uses is a source after the outputs. */
static void add_hidden_encoding(struct pe_plan *plan)
{
    plan->sources[plan->n_sources++].id = pe_output_row_find(plan->scheme, "encoding");
}

static size_t choose_own(struct pe_plan *plan, bool on_request)
{
    const struct pe_output_row *rows = plan->scheme->info.outputs;
    size_t n = 0;
    for (size_t i = 0; rows[i].name; i++)
        if (rows[i].on_request == on_request && available(plan, &rows[i]))
            plan->sources[n++].id = i;
    return n;
}

/* Chooses the requested outputs, else the scheme's own; with x, `combined`. */
static enum pe_status choose(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err)
{
    size_t n = 0;
    for (; n < request->n_outputs; n++) {
        enum pe_status status = find_row(plan, n, request->outputs[n], &plan->sources[n].id, err);
        if (status)
            return status;
    }
    if (n == 0 && pe_absolute_has_x(plan))
        plan->sources[n++].id = PE_COMBINED;
    if (n == 0)
        n = choose_own(plan, false);
    if (n == 0) /* the default outputs need weights, and there are none */
        n = choose_own(plan, true);
    plan->n_outputs = plan->n_sources = n;
    if (pe_absolute_has_x(plan))
        add_hidden_encoding(plan);
    return PE_OK;
}

/* ---- Their shapes ---- */

/* Does an output depend on positions? Its shape names them, or it is one number of the whole sequence. */
static bool is_of_positions(const char *shape)
{
    if (!*shape)
        return true;
    for (const char *p = shape; *p; p += *p != '\0') {
        size_t n = strcspn(p, ",*/+-");
        if ((n == 1 && *p == 'n') || (n == 5 && (strncmp(p, "q_len", 5) == 0 || strncmp(p, "k_len", 5) == 0)))
            return true;
        p += n;
    }
    return false;
}

static enum pe_status shape(struct pe_plan *plan, size_t i, struct pe_failure *err)
{
    struct pe_output *output = &plan->outputs[i];
    const struct pe_output_row *row = &plan->scheme->info.outputs[plan->sources[i].id];
    output->name = row->name;
    output->dtype = row->dtype == PE_DTYPE_NONE ? plan->dtype : row->dtype;
    if (plan->scheme->dtype)
        output->dtype = plan->scheme->dtype(plan, plan->sources[i].id, output->dtype);
    output->rank = pe_shape_of(plan, row->shape, output->shape);
    unsigned leading = output->rank > row->row_axes ? output->rank - row->row_axes : 0;
    plan->sources[i].is_by_batch = pe_sequence_n_batches(&plan->seq) > 0 && is_of_positions(row->shape);
    if (plan->sources[i].is_by_batch) {
        /* An axis of the batch in front. */
        assert(output->rank < PE_RANK_MAX);
        memmove(output->shape + 1, output->shape, output->rank * sizeof *output->shape);
        output->shape[0] = pe_sequence_n_batches(&plan->seq);
        output->rank++;
        leading++;
    }
    uint64_t total;
    bool fits = pe_shape_count(output->shape, leading, &output->n_rows) &&
                pe_shape_count(output->shape + leading, output->rank - leading, &output->row_len) &&
                pe_shape_count(output->shape, output->rank, &total) && total <= INT64_MAX / sizeof(double);
    if (fits)
        return PE_OK;
    pe_fail(err, "", "output %s would have more than 2^60 elements", output->name);
    return err->status = PE_TOO_LARGE;
}

/* The shape of `combined`, whose encoding is the last source. */
static enum pe_status shape_combined(struct pe_plan *plan, size_t i, struct pe_failure *err)
{
    struct pe_output *output = &plan->outputs[i];
    output->name = "combined";
    output->dtype = plan->dtype;
    return pe_absolute_shape(plan, output, &plan->outputs[plan->n_sources - 1], err);
}

/* ---- Their sources ---- */

enum pe_status pe_check_phases(const struct pe_plan *plan, const struct pe_wave *columns, size_t n,
                               struct pe_failure *err)
{
    double reach[PE_AXES_MAX], fastest = 0, farthest = 0;
    for (unsigned a = 0; a < plan->seq.n_axes; a++)
        reach[a] = fmax(pe_positions_largest(&plan->seq.q[a]), pe_positions_largest(&plan->seq.k[a]));
    for (size_t i = 0; i < n; i++)
        if (columns[i].quarter != PE_LINEAR && fabs(columns[i].fh) * reach[columns[i].axis] >= fastest * farthest) {
            fastest = fabs(columns[i].fh);
            farthest = reach[columns[i].axis];
        }
    if (fastest * farthest < PE_PHASE_MAX)
        return PE_OK;
    return pe_fail(err, "",
                   "the largest angle is %.3g quarter turns (position %s, frequency %.3g); allowed: below 2^51; "
                   "choose smaller positions or frequencies",
                   fastest * farthest, pe_shown(farthest).text, fastest);
}

enum { PADDING = 32 }; /* extra columns in the table of an axis */

static enum pe_status source(struct pe_plan *plan, size_t i, struct pe_failure *err)
{
    struct pe_source *from = &plan->sources[i];
    size_t n = (size_t)plan->outputs[i].row_len;
    if (!plan->scheme->columns || from->id == PE_COMBINED)
        return PE_OK;
    from->n_zeros = pe_absolute_n_prefix(plan);
    if (n > PE_DIM_MAX * (size_t)4)
        return PE_OK; /* a row of positions is longer than any table of waves */
    struct pe_cost cost = {0, 0};
    pe_cost_waves_of(&cost, (double)n + PADDING * plan->seq.n_axes, plan->outputs[i].dtype);
    enum pe_status status = pe_plan_admit(plan, cost.bytes, err);
    struct pe_wave *columns = status ? NULL : calloc(n ? n : 1, sizeof *columns);
    if (!columns)
        return status ? status : pe_no_memory(err);
    if (plan->scheme->columns(plan, from->id, columns)) {
        status = pe_check_phases(plan, columns, n, err);
        if (!status && plan->arith != PE_ARITH_EXACT) {
            from->recipe = columns;
            return PE_OK;
        }
        if (!status && (status = pe_waves_new_for(columns, n, plan->outputs[i].dtype, pe_positions_count(plan->seq.k),
                                                  &from->waves)))
            pe_no_memory(err);
    }
    free(columns);
    return status;
}

static enum pe_status shape_all(struct pe_plan *plan, struct pe_failure *err)
{
    enum pe_status status = PE_OK;
    for (size_t i = 0; !status && i < plan->n_sources; i++)
        if (plan->sources[i].id != PE_COMBINED)
            status = shape(plan, i, err);
    for (size_t i = 0; !status && i < plan->n_outputs; i++)
        if (plan->sources[i].id == PE_COMBINED)
            status = shape_combined(plan, i, err);
    return status;
}

/* ---- What they will take ---- */

static double row_len_most(const struct pe_plan *plan, const struct pe_output_row *row)
{
    uint64_t shape[PE_RANK_MAX];
    unsigned rank = pe_shape_most(plan, row->shape, shape);
    double n = 1;
    for (unsigned axis = rank > row->row_axes ? rank - row->row_axes : 0; axis < rank; axis++)
        n *= (double)shape[axis];
    return n;
}

double pe_encoding_width_most(const struct pe_plan *plan)
{
    return row_len_most(plan, &plan->scheme->info.outputs[pe_output_row_find(plan->scheme, "encoding")]);
}

/* Nanoseconds of a table of waves. */
static double ns_of_row(const struct pe_plan *plan, const struct pe_output_row *row)
{
    struct pe_cost cost = {0, 0};
    double n = plan->scheme->columns ? row_len_most(plan, row) : 0;
    if (n == 0 || n > PE_DIM_MAX * 4.0)
        return 0;
    pe_cost_waves_of(&cost, n + PADDING * plan->seq.n_axes, plan->dtype);
    return cost.ns;
}

double pe_encoding_ns(const struct pe_plan *plan)
{
    return ns_of_row(plan, &plan->scheme->info.outputs[pe_output_row_find(plan->scheme, "encoding")]);
}

static bool is_named(const struct pe_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_outputs; i++)
        if (strcmp(request->outputs[i], name) == 0)
            return true;
    return false;
}

double pe_outputs_ns(const struct pe_plan *plan)
{
    double ns = pe_absolute_has_x(plan) ? pe_encoding_ns(plan) : 0;
    bool has_default = plan->request->n_outputs == 0 && !pe_absolute_has_x(plan);
    for (const struct pe_output_row *row = plan->scheme->info.outputs; row->name; row++)
        if ((has_default ? !row->on_request : is_named(plan->request, row->name)) && available(plan, row))
            ns += ns_of_row(plan, row);
    return ns;
}

/* ---- The whole ---- */

enum pe_status pe_outputs_init(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err)
{
    /* Room for the requested outputs, else the scheme's own, plus `combined` and its encoding. */
    size_t room = 2 + (request->n_outputs ? request->n_outputs : count_rows(plan->scheme));
    enum pe_status status = pe_outputs_twice(request, err);
    if (!status)
        status = pe_outputs_alloc(plan, room, err);
    if (!status)
        status = choose(plan, request, err);
    if (!status)
        status = shape_all(plan, err);
    for (size_t i = 0; !status && i < plan->n_sources; i++)
        status = source(plan, i, err);
    if (!status)
        for (size_t i = 0; pe_absolute_channels_first(plan) && i < plan->n_outputs; i++)
            if (strcmp(plan->outputs[i].name, "encoding") == 0) {
                plan->sources[i].transposed = true;
                /* [n, dim] becomes [dim, ...grid]; a row is then one channel over the whole grid. */
                struct pe_output *output = &plan->outputs[i];
                uint64_t n = output->n_rows, width = output->row_len;
                output->rank = 1 + plan->seq.n_grid;
                output->shape[0] = width;
                memcpy(output->shape + 1, plan->seq.grid, plan->seq.n_grid * sizeof *output->shape);
                output->n_rows = width;
                output->row_len = n;
            }
    return status;
}

enum pe_status pe_outputs_add_encoding(struct pe_plan *plan, size_t *index, struct pe_failure *err)
{
    size_t i = *index = plan->n_sources;
    add_hidden_encoding(plan);
    enum pe_status status = shape(plan, i, err);
    return status ? status : source(plan, i, err);
}
