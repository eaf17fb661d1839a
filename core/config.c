/* The configuration of a request without its sequence, as a preset keeps it. */
#include "core/models/models.h"
#include "core/operation.h"
#include "core/params.h"
#include "core/sequence/sequence.h"

#include <stdlib.h>

struct pe_config {
    struct pe_inheritance model;
    struct pe_field fields[PE_FIELDS_MAX + 1]; /* the scheme, then those of model */
    struct pe_value value;
};

/* ---- Fields one by one ---- */

static bool is_of_model(const char *name)
{
    return pe_is_among("scheme|preset|hf_config|gguf|said|layer_type|fps", name);
}

/* A grid may be a model's window (Swin). A request with its own sequence drops it, as that of a built-in preset. */
static bool is_of_sequence(const char *name)
{
    return pe_same(name, "key_mask") || (pe_param_find(pe_sequence_params(), name) &&
                                         !pe_param_find(pe_sequence_rules(), name) && !pe_same(name, "grid"));
}

static bool is_tensor(const struct pe_scheme *scheme, const char *name)
{
    const struct pe_input_row *const rows[] = {scheme->info.inputs, pe_operation_at(PE_ATTEND)->inputs};
    for (size_t i = 0; i < 2; i++)
        for (const struct pe_input_row *row = rows[i]; row && row->name; row++)
            if (pe_same(row->name, name))
                return true;
    return false;
}

/* The rows of a field that only some requests use: those of attention, with segments, with embeddings. NULL: the scheme
 * has a field of that name, or no table has. */
static const struct pe_param *idle_rows(const struct pe_scheme *scheme, const char *name)
{
    const struct pe_param *const tables[] = {pe_operation_at(PE_ATTEND)->params, pe_sequence_rules(),
                                             pe_absolute_params()};
    if (pe_param_find(scheme->info.params, name))
        return NULL;
    for (size_t i = 0; i < (scheme->info.is_additive ? 3 : 2); i++)
        if (pe_param_find(tables[i], name))
            return tables[i];
    return NULL;
}

static size_t last_offset(const struct pe_param *rows)
{
    size_t last = 0;
    for (; rows->name; rows++) {
        size_t own = rows->offset + (rows->type == PE_T_OBJECT ? last_offset(rows->fields) : 0);
        last = own > last ? own : last;
    }
    return last;
}

/* Its type and range. */
static enum pe_status check_idle(const struct pe_param *rows, const struct pe_field *field, struct pe_failure *err)
{
    bool taken = false;
    void *config = calloc(1, last_offset(rows) + sizeof(struct pe_reals));
    enum pe_status status = config ? pe_params_read(rows, config, field, 1, &taken, "", err) : pe_no_memory(err);
    free(config);
    return status;
}

static enum pe_status check_field(const struct pe_scheme *scheme, const struct pe_field *field, struct pe_failure *err)
{
    const struct pe_param *rows = idle_rows(scheme, field->name);
    if (is_of_sequence(field->name))
        return pe_fail_at(err, "", field->name,
                          "%s is about a sequence, which a preset leaves to its requests; leave it out", field->name);
    bool is_list = rows && pe_param_find(rows, field->name)->type == PE_T_REALS;
    if (is_list || is_tensor(scheme, field->name))
        return pe_fail_at(err, "", field->name,
                          "%s is a tensor, and a preset has none; requests send it, or name stored weights",
                          field->name);
    return rows ? check_idle(rows, field, err) : PE_OK;
}

/* ---- As a whole: with the shortest sequence ---- */

struct trial {
    const struct pe_config *config;
    struct pe_request request;
    struct pe_field fields[PE_FIELDS_MAX + 8];
    double grid[3];
    float *operand; /* [heads, 1, head_dim] zeros, as q and k */
};

static const struct pe_value *value_of(const struct trial *t, const char *name)
{
    return pe_field_find(t->config->model.fields, t->config->model.n, name);
}

static void add_field(struct trial *t, const char *name, struct pe_value value)
{
    t->fields[t->request.n_fields++] = (struct pe_field){name, value};
}

static uint64_t size_of(const struct trial *t, const char *name, uint64_t usual)
{
    const struct pe_value *v = value_of(t, name);
    return v && v->kind == PE_INTEGER && v->integer > 0 ? (uint64_t)v->integer : usual;
}

/* A scheme that has no tables of its own needs queries and keys. */
static enum pe_status add_operands(struct trial *t, struct pe_failure *err)
{
    enum { MOST = 1 << 20 };
    uint64_t heads = size_of(t, "num_heads", 1), head_dim = size_of(t, "head_dim", 2);
    bool fits = heads <= MOST && head_dim <= MOST / heads;
    t->operand = fits ? calloc((size_t)(heads * head_dim), sizeof *t->operand) : NULL;
    if (!t->operand)
        return pe_no_memory(err);
    struct pe_value zeros = {.kind = PE_ARRAY,
                             .array = {.dtype = PE_F32, .rank = 3, .shape = {heads, 1, head_dim}, .data = t->operand}};
    add_field(t, "q", zeros);
    add_field(t, "k", zeros);
    return PE_OK;
}

/* Whether it is about what the configuration itself states. */
static bool is_own_error(const struct trial *t, const struct pe_failure *err)
{
    const char *name = err->pointer + (*err->pointer == '/');
    return *name && !pe_is_among("len|grid|seed|q|k", name) && !is_tensor(t->config->model.scheme, name);
}

/* One more try after others have failed; *err becomes the most telling of their errors. */
static enum pe_status try_again(const struct trial *t, struct pe_failure *err)
{
    struct pe_failure before = *err;
    struct pe_plan *plan = NULL;
    enum pe_status status = pe_plan_new(&t->request, &plan, err);
    if (!status)
        pe_plan_free(plan);
    if (status == PE_INVALID && is_own_error(t, &before))
        *err = before;
    return status;
}

/* Without and with weights. */
static enum pe_status try_seed(struct trial *t, struct pe_failure *err)
{
    enum pe_status status = try_again(t, err);
    if (status != PE_INVALID || !t->config->model.scheme->info.inputs || value_of(t, "seed"))
        return status;
    add_field(t, "seed", (struct pe_value){.kind = PE_INTEGER, .integer = 0});
    status = try_again(t, err);
    t->request.n_fields--;
    return status;
}

static enum pe_status plan_it(struct trial *t, const struct pe_request *request, struct pe_failure *err)
{
    const struct pe_scheme *scheme = t->config->model.scheme;
    enum pe_status status = PE_OK;
    t->request = *request;
    t->request.operation = pe_scheme_can(&scheme->info, PE_ENCODE) ? PE_ENCODE : PE_ATTEND;
    t->request.fields = t->fields;
    t->request.n_fields = 0;
    for (size_t i = 0; i < request->n_fields; i++)
        if (is_of_model(request->fields[i].name) || !idle_rows(scheme, request->fields[i].name))
            t->fields[t->request.n_fields++] = request->fields[i];
    if (t->request.operation == PE_ATTEND)
        status = add_operands(t, err);
    if (status)
        return status;
    /* Swin's windows need a grid, of two axes or of a video, and lookups need weights: for those that the configuration
     * does not have, ours serve. */
    *err = (struct pe_failure){.status = PE_OK};
    if (t->request.operation == PE_ATTEND || value_of(t, "grid"))
        return try_seed(t, err);
    add_field(t, "len", (struct pe_value){.kind = PE_INTEGER, .integer = 1});
    status = try_seed(t, err);
    if (status != PE_INVALID || !t->config->model.scheme->has_axes)
        return status;
    for (uint64_t n_axes = 2; status == PE_INVALID && n_axes <= sizeof t->grid / sizeof *t->grid; n_axes++) {
        t->request.n_fields--;
        t->grid[n_axes - 2] = t->grid[n_axes - 1] = 2;
        struct pe_tensor sizes = {.dtype = PE_F64, .rank = 1, .shape = {n_axes}, .data = t->grid};
        add_field(t, "grid", (struct pe_value){.kind = PE_ARRAY, .from_text = true, .array = sizes});
        status = try_seed(t, err);
    }
    return status;
}

static enum pe_status check(const struct pe_config *config, const struct pe_request *request, struct pe_failure *err)
{
    for (size_t i = 0; i < request->n_fields; i++)
        if (!is_of_model(request->fields[i].name)) {
            enum pe_status status = check_field(config->model.scheme, &request->fields[i], err);
            if (status)
                return status;
        }
    struct trial *t = calloc(1, sizeof *t);
    if (!t)
        return pe_no_memory(err);
    t->config = config;
    enum pe_status status = plan_it(t, request, err);
    free(t->operand);
    free(t);
    return status;
}

/* ---- The whole ---- */

enum pe_status pe_config_new(const struct pe_request *request, struct pe_config **out, struct pe_failure *err)
{
    struct pe_config *config = calloc(1, sizeof *config);
    enum pe_status status = config ? pe_inherit_whole(&config->model, request, err) : pe_no_memory(err);
    if (!status)
        status = check(config, request, err);
    if (!status) {
        const struct pe_inheritance *model = &config->model;
        config->fields[0] = (struct pe_field){"scheme", {.kind = PE_STRING, .string = model->scheme->info.name}};
        memcpy(config->fields + 1, model->fields, model->n * sizeof *model->fields);
        config->value = (struct pe_value){.kind = PE_OBJECT, .object = {config->fields, model->n + 1}};
        *out = config;
    } else {
        free(config);
    }
    return status;
}

void pe_config_free(struct pe_config *config) { free(config); }

const struct pe_value *pe_config_value(const struct pe_config *config) { return &config->value; }
