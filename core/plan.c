/* Plans: a request is checked once, here, and everything that decides a number is decided; filling cannot fail. */
#include "core/outputs.h"
#include "core/recipe.h"
#include "core/rotate.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A request has some dozen fields; each is compared with the others and with every row. */
enum { FIELDS_MAX = 256 };

/* ---- Which scheme ---- */

static enum pe_status scheme_missing(struct pe_error *err)
{
    char names[512] = "";
    for (size_t i = 0; i < pe_n_schemes(); i++)
        strcat(strcat(names, i ? ", " : ""), pe_scheme_at(i)->name);
    return pe_fail(err, "/scheme", "the scheme is missing; one of: %s", names);
}

static enum pe_status scheme_unknown(const char *name, struct pe_error *err)
{
    const char *names[64];
    size_t n = 0;
    for (; n < pe_n_schemes() && n < 63; n++)
        names[n] = pe_scheme_at(n)->name;
    names[n] = NULL;
    const char *nearest = pe_nearest(name, names);
    if (nearest)
        return pe_fail(err, "/scheme", "unknown scheme \"%.64s\"; nearest: \"%s\"", name, nearest);
    scheme_missing(err); /* for its list of names */
    char known[PE_DETAIL_MAX];
    strcpy(known, strstr(err->detail, "one of"));
    return pe_fail(err, "/scheme", "unknown scheme \"%.64s\"; %s", name, known);
}

static enum pe_status find_scheme(const struct pe_request *request, bool *taken, const struct pe_scheme **scheme,
                                  struct pe_error *err)
{
    static const char *const verbs[PE_N_OPERATIONS] = {[PE_ENCODE] = "encode", [PE_ROTATE] = "rotate"};
    for (size_t i = 0; i < request->n_fields; i++) {
        if (strcmp(request->fields[i].name, "scheme") != 0)
            continue;
        const struct pe_value *v = &request->fields[i].value;
        if (v->kind != PE_STRING)
            return pe_fail(err, "/scheme", "scheme is not a string; write a name, as in \"scheme\":\"rope\"");
        *scheme = pe_scheme_get(v->string);
        taken[i] = true;
        if (!*scheme)
            return scheme_unknown(v->string, err);
        if (!((*scheme)->info.operations & 1U << request->operation))
            return pe_fail(err, "/scheme", "scheme \"%s\" cannot %s; schemes of the rotary family can, as \"rope\"",
                           v->string, verbs[request->operation]);
        return PE_OK;
    }
    return scheme_missing(err);
}

/* ---- What no row has used ---- */

static size_t gather(const struct pe_param *rows, const char **names, size_t n)
{
    for (; rows->name && n < FIELDS_MAX; rows++)
        names[n++] = rows->name;
    return n;
}

static enum pe_status unknown_field(const struct pe_plan *plan, const struct pe_request *request, const char *name,
                                    struct pe_error *err)
{
    const char *names[FIELDS_MAX + 1], *scheme = plan->scheme->info.name;
    size_t n = gather(plan->scheme->info.params, names, 0);
    n = gather(pe_sequence_params(), names, n);
    for (const struct pe_input_row *row = plan->scheme->info.inputs; row && row->name && n < FIELDS_MAX; row++)
        names[n++] = row->name;
    for (const char *const *p = request->caller_fields; p && *p && n < FIELDS_MAX; p++)
        names[n++] = *p;
    names[n] = NULL;
    char pointer[PE_POINTER_MAX];
    pe_pointer_join(pointer, sizeof pointer, "", name);
    const char *nearest = pe_nearest(name, names);
    if (nearest && strcmp(nearest, name) != 0)
        return pe_fail(err, pointer, "unknown field \"%.64s\"; nearest: \"%s\"", name, nearest);
    if (nearest) /* a tensor this operation does not take */
        return pe_fail(err, pointer, "\"%s\" is not used by this endpoint", name);
    return pe_fail(err, pointer, "unknown field \"%.64s\"; GET /schemes/%s lists the fields of %s", name, scheme,
                   scheme);
}

static enum pe_status check_all_taken(const struct pe_plan *plan, const struct pe_request *request, const bool *taken,
                                      struct pe_error *err)
{
    for (size_t i = 0; i < request->n_fields; i++)
        if (!taken[i])
            return unknown_field(plan, request, request->fields[i].name, err);
    return PE_OK;
}

/* ---- The resolved config ---- */

static enum pe_status print_config(struct pe_plan *plan, struct pe_error *err)
{
    size_t room = 1 + pe_params_count(plan->scheme->info.params);
    struct pe_field *fields = calloc(room, sizeof *fields);
    if (!fields)
        return pe_no_memory(err);
    size_t top = 1;
    for (const struct pe_param *row = plan->scheme->info.params; row->name; row++)
        top++;
    struct pe_field *nested = fields + top; /* objects' fields stand behind the top level's */
    fields[0] = (struct pe_field){"scheme", {.kind = PE_STRING, .string = plan->scheme->info.name}};
    size_t n = 1 + pe_params_print(plan->scheme->info.params, plan->config, fields + 1, &nested);
    plan->resolved_fields = fields;
    plan->resolved = (struct pe_value){.kind = PE_OBJECT, .object = {fields, n}};
    return PE_OK;
}

/* ---- The steps of making ---- */

static enum pe_status read_fields(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                                  struct pe_sequence_fields *sequence, struct pe_error *err)
{
    const struct pe_field *fields = request->fields;
    size_t n = request->n_fields;
    enum pe_status status = pe_params_read(plan->scheme->info.params, plan->config, fields, n, taken, "", err);
    if (!status)
        status = pe_params_read(pe_sequence_params(), sequence, fields, n, taken, "", err);
    if (!status && request->operation == PE_ROTATE)
        status = pe_rotator_read(plan, request, taken, err);
    return status ? status : check_all_taken(plan, request, taken, err);
}

static enum pe_status resolve(struct pe_plan *plan, const struct pe_request *request, bool *taken, struct pe_error *err)
{
    struct pe_sequence_fields sequence;
    struct pe_sequence_sizes sizes = {0, 0};
    bool two = plan->scheme->is_pairwise || plan->operation == PE_ROTATE;
    enum pe_status status = read_fields(plan, request, taken, &sequence, err);
    if (!status && plan->rotator)
        sizes = pe_rotator_sizes(plan);
    if (!status)
        status = pe_sequence_init(&plan->seq, &sequence, two ? PE_TWO_SEQUENCES : PE_ONE_SEQUENCE, sizes, err);
    if (!status && plan->scheme->plan)
        status = plan->scheme->plan(plan, err);
    if (!status)
        status = plan->rotator ? pe_rotator_init(plan, request, err) : pe_outputs_init(plan, request, err);
    return status ? status : print_config(plan, err);
}

enum pe_status pe_plan_new(const struct pe_request *request, struct pe_plan **out, struct pe_error *err)
{
    bool taken[FIELDS_MAX] = {false};
    const struct pe_scheme *scheme = NULL;
    if (request->n_fields > FIELDS_MAX)
        return pe_fail(err, "", "the request has %zu fields; allowed: at most %d", request->n_fields, FIELDS_MAX);
    enum pe_status status = find_scheme(request, taken, &scheme, err);
    if (status)
        return status;
    struct pe_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return pe_no_memory(err);
    plan->scheme = scheme;
    plan->operation = request->operation;
    plan->dtype = request->dtype == PE_DTYPE_NONE ? PE_F32 : request->dtype;
    plan->config = calloc(1, scheme->config_bytes);
    status = plan->config ? resolve(plan, request, taken, err) : pe_no_memory(err);
    if (status)
        pe_plan_free(plan);
    else
        *out = plan;
    return status;
}

void pe_plan_free(struct pe_plan *plan)
{
    if (!plan)
        return;
    pe_outputs_drop(plan);
    pe_rotator_drop(plan);
    if (plan->scheme->drop)
        plan->scheme->drop(plan);
    pe_sequence_drop(&plan->seq);
    free(plan->resolved_fields);
    free(plan->config);
    free(plan);
}

/* ---- What a plan says ---- */

const struct pe_scheme_info *pe_plan_scheme(const struct pe_plan *plan) { return &plan->scheme->info; }

size_t pe_plan_n_outputs(const struct pe_plan *plan) { return plan->n_outputs; }

const struct pe_output *pe_plan_output(const struct pe_plan *plan, size_t i)
{
    assert(i < plan->n_outputs);
    return &plan->outputs[i];
}

const struct pe_value *pe_plan_config(const struct pe_plan *plan) { return &plan->resolved; }

/* ---- Filling ---- */

static void fill_block(const struct pe_plan *plan, size_t i, struct pe_block b, void *dst)
{
    const struct pe_source *from = &plan->sources[i];
    const struct pe_output *output = &plan->outputs[i];
    if (plan->rotator)
        pe_rotator_fill(plan, i, &b, dst);
    else if (from->waves)
        pe_waves_fill(from->waves, output->dtype, &plan->seq.k, b.row0, b.n_rows, b.col0, b.n_cols, dst, b.n_cols);
    else if (from->recipe)
        pe_recipe_fill(from->recipe + b.col0, output->dtype, &plan->seq.k, b.row0, b.n_rows, b.n_cols, dst, b.n_cols);
    else
        plan->scheme->fill(plan, output, from->id, &b, dst);
}

/* Elements first … first+n-1 are: the end of a row, whole rows, the start of a row; each may be missing. */
void pe_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst)
{
    const struct pe_output *output = &plan->outputs[i];
    assert(i < plan->n_outputs && first + n <= output->n_rows * output->row_len);
    char *at = dst;
    while (n > 0) {
        uint64_t row = first / output->row_len, col = first % output->row_len, left = output->row_len - col;
        struct pe_block b = {.row0 = row, .n_rows = 1, .col0 = col, .n_cols = left < n ? left : n};
        if (col == 0 && n >= output->row_len)
            b.n_rows = n / output->row_len;
        fill_block(plan, i, b, at);
        size_t done = (size_t)(b.n_rows * b.n_cols);
        first += done;
        n -= done;
        at += done * pe_dtype_size(output->dtype);
    }
}
