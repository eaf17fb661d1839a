/* What a scheme does in the decoder, filled by plans: rows that are added, rotations of queries and keys, or biases by
 * distance.
 *
 * No formula of a scheme is repeated here. A table of rows is the plan's `encoding`; a rotation is a matrix for each
 * position, made by rotating the basis vectors through a plan of /rotate, so that its gradient is the transposed matrix
 * whatever the scheme; a bias is the last query's row, which has every distance. A new scheme of these kinds needs one
 * line in the table below.
 *
 * An experiment fixes some fields (widths, lengths, heads), since configurations must differ in their encoding only; a
 * field that contradicts it is refused with the reason. */
#include "core/training/training.h"

#include "core/models/models.h"
#include "core/params.h"
#include "core/scheme.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The schemes ---- */

#define INTEGER(name_, x)                                                                                              \
    {                                                                                                                  \
        .name = name_, .value = {.kind = PE_INTEGER, .integer = (x) }                                                  \
    }

static const struct pe_field additive[] = {INTEGER("dim", PE_TRAIN_WIDTH)};
static const struct pe_field rotary[] = {INTEGER("head_dim", PE_TRAIN_HEAD)};
static const struct pe_field biased[] = {INTEGER("num_heads", PE_TRAIN_HEADS)};
static const struct pe_field bucketed[] = {
    INTEGER("num_heads", PE_TRAIN_HEADS),
    INTEGER("num_buckets", PE_TRAIN_BUCKETS),
    {.name = "bidirectional", .value = {.kind = PE_BOOLEAN, .boolean = false}},
};

#define FIXED(fields) .fixed = (fields), .n_fixed = sizeof(fields) / sizeof *(fields)

/* Rows of sinusoids have the norm √(dim/2), so tokens must not be lost beside them. */
static const struct pe_trainable trainables[] = {
    {.name = "none", .token_std = 0.02},
    {.name = "sinusoidal", FIXED(additive), .token_std = 0.5},
    {.name = "learned", .learned = PE_LEARNS_POSITIONS, .token_std = 0.02},
    {.name = "rope", FIXED(rotary), .token_std = 0.02},
    {.name = "alibi", FIXED(biased), .token_std = 0.02},
    {.name = "t5", FIXED(bucketed), .learned = PE_LEARNS_BUCKETS, .token_std = 0.02},
    {.name = "kerple", FIXED(biased), .token_std = 0.02},
    {.name = "sandwich", FIXED(biased), .token_std = 0.02},
};

enum { N_TRAINABLES = sizeof trainables / sizeof *trainables };

static const struct pe_trainable *find_trainable(const char *scheme)
{
    for (size_t i = 0; i < N_TRAINABLES; i++)
        if (strcmp(trainables[i].name, scheme) == 0)
            return &trainables[i];
    return NULL;
}

/* ---- The fields of a configuration ---- */

static bool has(const struct pe_field *fields, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return true;
    return false;
}

/* The object of the request that has the field: the evaluation, the configuration, or the whole ("" is its pointer). */
static const char *outer_of(const struct pe_trained_config *config, const char *name)
{
    if (has(config->overrides, config->n_overrides, name))
        return config->overrides_pointer;
    if (has(config->fields, config->n_own, name))
        return config->pointer;
    if (has(config->fields, config->n_fields, name))
        return "";
    return config->overrides ? config->overrides_pointer : config->pointer;
}

static void point(const struct pe_trained_config *config, const char *name, char pointer[PE_POINTER_MAX])
{
    pe_pointer_join(pointer, PE_POINTER_MAX, outer_of(config, name), name);
}

enum { MODEL_FIELDS = 5 };

static const char *const model_fields[MODEL_FIELDS] = {"preset", "hf_config", "gguf", "said", "layer_type"};

/* The field that names a model; NULL: none does. */
static const char *model_field(const struct pe_field *fields, size_t n)
{
    for (size_t i = 0; i < MODEL_FIELDS; i++)
        if (has(fields, n, model_fields[i]))
            return model_fields[i];
    return NULL;
}

/* Adds what names a model to the `used` fields of `to`, each once; how many `to` has then. */
static size_t add_model(struct pe_field to[MODEL_FIELDS], size_t used, const struct pe_field *fields, size_t n)
{
    for (size_t i = 0; i < MODEL_FIELDS; i++) {
        const struct pe_value *v = pe_field_find(fields, n, model_fields[i]);
        if (v && !has(to, used, model_fields[i]))
            to[used++] = (struct pe_field){model_fields[i], *v};
    }
    return used;
}

/* Puts the pointer of a plan's error inside the object that has the field. */
static void prefix(const struct pe_trained_config *config, struct pe_failure *err)
{
    char inner[PE_POINTER_MAX], name[PE_POINTER_MAX];
    memcpy(inner, err->pointer, sizeof inner);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(inner + (*inner == '/'), "/"), inner + (*inner == '/'));
    const char *outer = outer_of(config, name);
    snprintf(err->pointer, sizeof err->pointer, "%s%.*s", outer, (int)(sizeof inner - 1 - strlen(outer)), inner);
}

static bool is_other_scheme(const struct pe_trained_config *config, const struct pe_field *field)
{
    return config->overrides && strcmp(field->name, "scheme") == 0 &&
           (field->value.kind != PE_STRING || strcmp(field->value.string, config->scheme->name) != 0);
}

/* Is it a field that an experiment decides itself? */
static const char *reason_against(const struct pe_trained_config *config, const struct pe_field *field)
{
    if (pe_param_find(pe_sequence_params(), field->name))
        return "an experiment's positions are 0 to train_len - 1 and eval_len - 1";
    if (strcmp(field->name, "seed") == 0 || strcmp(field->name, "std") == 0)
        return "the experiment's own seed draws every weight";
    if (field->value.kind == PE_ARRAY && config->scheme->learned != PE_LEARNS_NOTHING)
        return "this tensor is learned";
    if (strcmp(config->scheme->name, "learned") == 0 && strcmp(field->name, "scheme") != 0)
        return "a learned table has one row for each position, and nothing to configure";
    return NULL;
}

static bool is_equal(const struct pe_value *a, const struct pe_value *b)
{
    if (a->kind == PE_BOOLEAN || b->kind == PE_BOOLEAN)
        return a->kind == b->kind && a->boolean == b->boolean;
    return a->kind == PE_INTEGER && a->integer == b->integer;
}

static const struct pe_field *fixed_of(const struct pe_trainable *scheme, const char *name)
{
    for (size_t i = 0; i < scheme->n_fixed; i++)
        if (strcmp(scheme->fixed[i].name, name) == 0)
            return &scheme->fixed[i];
    return NULL;
}

static enum pe_status check_field(const struct pe_trained_config *config, const struct pe_field *field,
                                  struct pe_failure *err)
{
    char pointer[PE_POINTER_MAX];
    point(config, field->name, pointer);
    const char *reason = reason_against(config, field);
    if (reason)
        return pe_fail(err, pointer, "%s may not be given here: %s", field->name, pe_text(reason));
    if (is_other_scheme(config, field))
        return pe_fail(err, pointer, "scheme is \"%s\" here, that of the weights which are evaluated",
                       config->scheme->name);
    const struct pe_field *fixed = fixed_of(config->scheme, field->name);
    if (!fixed || is_equal(&field->value, &fixed->value))
        return PE_OK;
    if (fixed->value.kind == PE_BOOLEAN)
        return pe_fail(err, pointer, "%s is %s in an experiment", field->name, fixed->value.boolean ? "true" : "false");
    return pe_fail(err, pointer, "%s is %lld in an experiment", field->name, (long long)fixed->value.integer);
}

static enum pe_status scheme_of(const struct pe_trained_config *config, const struct pe_field *fields, size_t n,
                                const struct pe_scheme_info **scheme, struct pe_failure *err)
{
    struct pe_request request = {
        .operation = PE_ENCODE, .fields = fields, .n_fields = n, .caller_fields = config->caller_fields};
    struct pe_weight_name names[PE_WEIGHT_NAMES_MAX];
    size_t n_names;
    return pe_request_weights(&request, scheme, names, &n_names, err);
}

static enum pe_status find_scheme(struct pe_trained_config *config, struct pe_failure *err)
{
    const struct pe_scheme_info *scheme;
    enum pe_status status = scheme_of(config, config->fields, config->n_fields, &scheme, err);
    if (status) {
        prefix(config, err);
        return status;
    }
    config->scheme = find_trainable(scheme->name);
    if (config->scheme)
        return PE_OK;
    /* name: the scheme, which may be that of a model. */
    char pointer[PE_POINTER_MAX], list[128] = "", model[PE_MODEL_LABEL_MAX] = "";
    bool of_model = !has(config->fields, config->n_fields, "scheme");
    const char *field = of_model ? model_field(config->fields, config->n_fields) : "scheme";
    for (size_t i = 0; i < N_TRAINABLES; i++)
        strcat(strcat(list, i ? ", " : ""), trainables[i].name);
    if (of_model)
        pe_model_label(config->fields, config->n_fields, model);
    point(config, field, pointer);
    return pe_fail(err, pointer, "no experiment trains \"%s\"; there are: %s%s%s", scheme->name, list,
                   of_model ? pe_text("; scheme is set by ") : "", model);
}

/* A model that an evaluation names must have the scheme of the weights. */
static enum pe_status check_model(const struct pe_trained_config *config, struct pe_failure *err)
{
    const char *field = model_field(config->overrides, config->n_overrides);
    const struct pe_scheme_info *scheme;
    struct pe_field fields[MODEL_FIELDS];
    char pointer[PE_POINTER_MAX], model[PE_MODEL_LABEL_MAX];
    struct pe_failure unread;
    if (!field)
        return PE_OK;
    size_t n = add_model(fields, 0, config->overrides, config->n_overrides);
    n = add_model(fields, n, config->fields, config->n_fields);
    if (scheme_of(config, fields, n, &scheme, &unread) || strcmp(scheme->name, config->scheme->name) == 0)
        return PE_OK; /* what cannot be read without the other fields is read, or refused, by the plan */
    pe_model_label(fields, n, model);
    point(config, field, pointer);
    return pe_fail(err, pointer, "%s has the scheme \"%s\"; that of the weights which are evaluated is \"%s\"", model,
                   scheme->name, config->scheme->name);
}

/* A plan's request has all fields of the configuration and those of the experiment: the sequence, what is fixed. */
enum { OWN_FIELDS_MAX = 8, GIVEN_FIELDS_MAX = PE_FIELDS_MAX - OWN_FIELDS_MAX };

static enum pe_status check_count(const struct pe_trained_config *config, struct pe_failure *err)
{
    size_t n = config->n_fields + config->n_overrides;
    if (n <= GIVEN_FIELDS_MAX)
        return PE_OK;
    return pe_fail(err, config->overrides ? config->overrides_pointer : config->pointer,
                   "the configuration has %zu fields; allowed: at most %d", n, GIVEN_FIELDS_MAX);
}

enum pe_status pe_trained_config_check(struct pe_trained_config *config, struct pe_failure *err)
{
    const struct pe_field *fields = config->overrides ? config->overrides : config->fields;
    size_t n_fields = config->overrides ? config->n_overrides : config->n_fields;
    enum pe_status status = check_count(config, err);
    if (!status && !config->overrides)
        status = find_scheme(config, err);
    for (size_t i = 0; !status && i < n_fields; i++)
        status = check_field(config, &fields[i], err);
    return status || !config->overrides ? status : check_model(config, err);
}

/* ---- Planning ---- */

/* One plan: the configuration with what is fixed, and fields of its own. */
struct task {
    const struct pe_trained_config *config;
    struct pe_field fields[PE_FIELDS_MAX];
    size_t n;
    struct pe_failure *err;
};

static void add_fields(struct task *task, const struct pe_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!has(task->fields, task->n, fields[i].name)) {
            assert(task->n < PE_FIELDS_MAX); /* check_count */
            task->fields[task->n++] = fields[i];
        }
}

/* The first that names a field wins. */
static void gather(struct task *task, const struct pe_field *own, size_t n_own)
{
    const struct pe_trained_config *config = task->config;
    task->n = 0;
    add_fields(task, own, n_own);
    add_fields(task, config->scheme->fixed, config->scheme->n_fixed);
    add_fields(task, config->overrides, config->n_overrides);
    add_fields(task, config->fields, config->n_fields);
}

static enum pe_status plan_with(struct task *task, enum pe_operation_id operation, const char *output,
                                struct pe_plan **plan)
{
    const char *outputs[1] = {output};
    struct pe_request request = {.operation = operation,
                                 .fields = task->fields,
                                 .n_fields = task->n,
                                 .dtype = PE_F64,
                                 .outputs = output ? outputs : NULL,
                                 .n_outputs = output ? 1 : 0,
                                 .caller_fields = task->config->caller_fields};
    enum pe_status status = pe_plan_new(&request, plan, task->err);
    if (status == PE_INVALID || status == PE_TOO_LARGE)
        prefix(task->config, task->err);
    return status;
}

/* ---- Filling ---- */

/* The n numbers of an output, each of so many bytes, of a plan of the fields gathered; NULL: *status has the reason. */
static void *filled(struct task *task, enum pe_operation_id operation, const char *output, size_t n, size_t size,
                    enum pe_status *status)
{
    struct pe_plan *plan = NULL;
    *status = plan_with(task, operation, output, &plan);
    void *numbers = *status ? NULL : malloc(n * size);
    if (numbers)
        pe_fill(plan, 0, 0, n, numbers);
    else if (!*status)
        *status = pe_no_memory(task->err);
    pe_plan_free(plan);
    return numbers;
}

static void *room(const struct pe_places *places, size_t n) { return calloc(n, pe_dtype_size(places->dtype)); }

static void put_numbers(const struct pe_places *places, void *to, size_t i, const double *from, size_t n)
{
    pe_convert(places->dtype, (char *)to + i * pe_dtype_size(places->dtype), PE_F64, from, n);
}

static enum pe_status add_rows(struct pe_places *places, struct task *task)
{
    size_t n = places->n * PE_TRAIN_WIDTH;
    enum pe_status status;
    double *rows = filled(task, PE_ENCODE, NULL, n, sizeof *rows, &status);
    if (!status && !(places->added = room(places, n)))
        status = pe_no_memory(task->err);
    if (!status)
        put_numbers(places, places->added, 0, rows, n);
    free(rows);
    return status;
}

enum { H = PE_TRAIN_HEAD };

static enum pe_status add_turns(struct pe_places *places, struct task *task)
{
    size_t n = (size_t)H * places->n * H;
    /* Turned basis vectors are the columns of the turns. */
    double *basis = calloc((size_t)H * places->n * H, sizeof *basis);
    for (size_t c = 0; basis && c < H; c++)
        for (size_t p = 0; p < places->n; p++)
            basis[(c * places->n + p) * H + c] = 1;
    const struct pe_field own[] = {
        {.name = "q",
         .value = {.kind = PE_ARRAY, .array = {.dtype = PE_F64, .rank = 3, .shape = {H, places->n, H}, .data = basis}}},
    };
    if (!basis)
        return pe_no_memory(task->err);
    gather(task, own, 1);
    enum pe_status status;
    double *turned = filled(task, PE_ROTATE, NULL, n, sizeof *turned, &status);
    places->turns = status ? NULL : room(places, n);
    places->turns_back = status ? NULL : room(places, n);
    if (!status && !(places->turns && places->turns_back))
        status = pe_no_memory(task->err);
    for (size_t i = 0; !status && i < n; i++) {
        size_t r = i % H, p = i / H % places->n, c = i / H / places->n;
        put_numbers(places, places->turns, (p * H + c) * H + r, &turned[i], 1);
        put_numbers(places, places->turns_back, (p * H + r) * H + c, &turned[i], 1);
    }
    free(turned);
    free(basis);
    return status;
}

/* The last query is at the last key: its row has every distance, the last is 0. */
static void gather_distances(struct task *task, size_t n)
{
    const struct pe_field own[] = {INTEGER("q_len", 1), INTEGER("k_len", (int64_t)n)};
    gather(task, own, 2);
}

static enum pe_status add_bias(struct pe_places *places, struct task *task)
{
    size_t n = PE_TRAIN_HEADS * places->n;
    enum pe_status status;
    gather_distances(task, places->n);
    double *bias = filled(task, PE_ENCODE, "bias", n, sizeof *bias, &status);
    if (!status && !(places->bias = room(places, n)))
        status = pe_no_memory(task->err);
    if (!status)
        put_numbers(places, places->bias, 0, bias, n);
    free(bias);
    return status;
}

static enum pe_status fill_places(struct pe_places *places, struct task *task)
{
    const char *scheme = task->config->scheme->name;
    if (strcmp(scheme, "none") == 0 || task->config->scheme->learned == PE_LEARNS_POSITIONS)
        return PE_OK;
    if (task->config->scheme->learned == PE_LEARNS_BUCKETS) {
        gather_distances(task, places->n);
        enum pe_status status;
        places->buckets = filled(task, PE_ENCODE, "buckets", places->n, sizeof *places->buckets, &status);
        if (!status && !(places->bias = room(places, PE_TRAIN_HEADS * places->n)))
            status = pe_no_memory(task->err);
        return status;
    }
    const struct pe_scheme_info *info = pe_scheme_find(scheme);
    if (info->is_additive)
        return add_rows(places, task);
    return pe_scheme_can(info, PE_ROTATE) ? add_turns(places, task) : add_bias(places, task);
}

enum pe_status pe_places_init(struct pe_places *places, const struct pe_trained_config *config, size_t n,
                              enum pe_dtype dtype, struct pe_plan **plan, struct pe_failure *err)
{
    *places = (struct pe_places){.dtype = dtype, .n = n, .learned = config->scheme->learned};
    struct task *task = malloc(sizeof *task);
    if (!task)
        return pe_no_memory(err);
    task->config = config;
    task->err = err;
    const struct pe_field run[] = {INTEGER("len", (int64_t)n)};
    struct pe_plan *own = NULL; /* checks the fields, also those of a scheme whose places need no plan */
    enum pe_status status = PE_OK;
    gather(task, run, 1);
    if (config->scheme->learned != PE_LEARNS_POSITIONS)
        status = plan_with(task, PE_ENCODE, config->scheme->learned == PE_LEARNS_BUCKETS ? "buckets" : NULL,
                           plan ? plan : &own);
    if (!status)
        status = fill_places(places, task);
    pe_plan_free(own);
    free(task);
    return status;
}

void pe_places_drop(struct pe_places *places)
{
    free(places->added);
    free(places->turns);
    free(places->turns_back);
    free(places->bias);
    free(places->buckets);
    *places = (struct pe_places){0};
}
