/* The steps of golden vectors: fields, kinds, places, then as many of them as a file may have, then the numbers. */
#include "core/golden/golden.h"

#include <stdlib.h>
#include <string.h>

static const struct pe_param rows[] = {
    PE_P_INT(pe_golden_fields, seed, 0, 0, 0x1p53, "seed", "seed of the queries and keys, and of random weights"),
    PE_P_REALS(pe_golden_fields, positions, -PE_POSITION_MAX, PE_POSITION_MAX, "positions",
               "at most 64 positions, [n] or [axes][n]; default a few that show much", .group = PE_G_SEQUENCE),
    PE_P_QUERY_SCALE(pe_golden_fields),
    PE_P_END,
};

const struct pe_param *pe_golden_params(void) { return rows; }

const struct pe_member pe_golden_members[] = {
    {.name = "golden", .types = "integer", .summary = "the version of this form: 1"},
    {.name = "preset", .types = "string", .summary = "its name", .is_optional = true},
    {.name = "configs",
     .types = "object",
     .summary = "by kind of layers, all if there is one: the configuration with every parameter"},
    {.name = "layers",
     .types = "object",
     .summary = "by kind: the layer types that have it, of a model that has several",
     .is_optional = true},
    {.name = "tolerance", .types = "object", .summary = "by tensor: the largest difference that /diagnose calls exact"},
    {.name = "version", .types = "string", .summary = "of the program"},
    {.name = "tensors",
     .types = "object",
     .summary = "position_ids, q, k, q_out, k_out, cos, sin, inv_freq; or position_ids, encoding; or q_positions, "
                "k_positions, bias; of several kinds, NAME.KIND"},
    {.name = NULL},
};

/* ---- Fields ---- */

static enum pe_status read_fields(struct pe_golden *golden, struct pe_failure *err)
{
    const struct pe_golden_request *request = golden->request;
    if (request->n_fields > PE_FIELDS_MAX)
        return pe_fail(err, "", "the request has %zu fields; allowed: at most %d", request->n_fields, PE_FIELDS_MAX);
    enum pe_status status =
        pe_params_read(rows, &golden->fields, request->fields, request->n_fields, golden->taken, "", err);
    if (!status)
        status = pe_query_scale_read(&golden->fields.query_scale, request->fields, request->n_fields, err);
    if (status)
        return status;
    /* The positions are chosen here. */
    for (size_t i = 0; i < request->n_fields; i++) {
        const char *name = request->fields[i].name;
        bool is_sequence = pe_param_find(pe_sequence_params(), name) && !pe_param_find(pe_sequence_rules(), name);
        if (!is_sequence || pe_is_among("positions|grid", name)) /* a window has a grid */
            continue;
        return pe_fail_at(err, "", name, "golden vectors have positions of their own; give positions, or leave out %s",
                          name);
    }
    return PE_OK;
}

static enum pe_status check_query_scale(const struct pe_golden *golden, struct pe_failure *err)
{
    const struct pe_plan *plan = golden->kinds[0].plan;
    if (!golden->fields.query_scale.is_given)
        return PE_OK;
    if (golden->family != PE_GOLDEN_ROTARY)
        return pe_fail(err, "/query_scale", "query_scale multiplies rotated queries; %s rotates none",
                       plan->scheme->info.name);
    return pe_query_scale_check(&golden->fields.query_scale, plan->seq.n_axes, plan->seq.q, err);
}

/* ---- Places ---- */

/* Positions beyond the end of a table have no row. */
static int64_t rows_of(const struct pe_golden_kind *kind)
{
    const struct pe_value *n = pe_golden_config_find(kind, "rows"), *offset = pe_golden_config_find(kind, "row_offset");
    int64_t first = offset && offset->kind == PE_INTEGER ? offset->integer : 0;
    return n && n->kind == PE_INTEGER && n->integer > first ? n->integer - first : 0;
}

static enum pe_status choose_places(struct pe_golden *golden, struct pe_failure *err)
{
    const struct pe_golden_kind *first = &golden->kinds[0];
    struct pe_golden_reach reach = {.original = 4096, .longest = PE_GOLDEN_LENGTH, .rows = rows_of(first)};
    enum pe_status status = pe_golden_places_read(&golden->fields, &golden->q, err);
    if (status || golden->q.n > 0 || golden->has_window) {
        golden->keys = golden->q;
        return status;
    }
    if (golden->family == PE_GOLDEN_BIAS) {
        pe_golden_places_of_bias(false, &golden->q);
        pe_golden_places_of_bias(true, &golden->keys);
        return PE_OK;
    }
    for (size_t i = golden->n_kinds; i-- > 0;) { /* the first that is scaled decides */
        reach.original = pe_golden_original(golden->kinds[i].plan, reach.original);
        reach.longest = pe_golden_longest(golden->kinds[i].plan, reach.longest);
    }
    pe_golden_places_usual(first->plan->seq.n_axes, &reach, &golden->q);
    return PE_OK;
}

bool pe_golden_shrink(struct pe_golden *golden)
{
    struct pe_failure err;
    if (golden->family == PE_GOLDEN_ROTARY && golden->n_heads > 1)
        golden->n_heads--;
    else if (!pe_golden_places_drop(&golden->q))
        return false;
    return pe_golden_lay_out(golden, &err) == PE_OK;
}

/* ---- The whole ---- */

static enum pe_status open_all(struct pe_golden *golden, struct pe_failure *err)
{
    enum pe_status status = read_fields(golden, err);
    if (!status)
        status = pe_golden_kinds(golden, err);
    if (!status)
        status = check_query_scale(golden, err);
    if (!status)
        status = choose_places(golden, err);
    return status ? status : pe_golden_lay_out(golden, err);
}

enum pe_status pe_golden_open(const struct pe_golden_request *request, struct pe_golden **out, struct pe_failure *err)
{
    struct pe_golden *golden = calloc(1, sizeof *golden);
    if (!golden)
        return pe_no_memory(err);
    golden->request = request;
    golden->dtype = request->dtype == PE_DTYPE_NONE ? PE_F32 : request->dtype;
    golden->n_heads = PE_GOLDEN_HEADS;
    enum pe_status status = open_all(golden, err);
    if (status)
        pe_golden_free(golden);
    else
        *out = golden;
    return status;
}

void pe_golden_free(struct pe_golden *golden)
{
    if (!golden)
        return;
    pe_golden_kinds_drop(golden);
    pe_values_free(golden->about);
    free(golden->tensors);
    free(golden->room);
    free(golden);
}

const struct pe_scheme_info *pe_golden_scheme(const struct pe_golden *golden)
{
    return pe_plan_scheme(golden->kinds[0].plan);
}

size_t pe_golden_n_tensors(const struct pe_golden *golden) { return golden->n_tensors; }

const struct pe_named_tensor *pe_golden_tensor(const struct pe_golden *golden, size_t i)
{
    return &golden->tensors[i].named;
}

/* Memory for the tensors, and for the numbers of one kind in double before and after its rotation. */
static enum pe_status admit_numbers(const struct pe_golden *golden, struct pe_failure *err)
{
    const struct pe_golden_request *request = golden->request;
    double n = 0;
    for (size_t i = 0; i < golden->n_tensors; i++)
        n += (double)pe_golden_bytes(&golden->tensors[i]);
    return request->admit ? request->admit(request->caller, golden->bytes + 9 * n, err) : PE_OK;
}

enum pe_status pe_golden_compute(struct pe_golden *golden, struct pe_failure *err)
{
    enum pe_status status = admit_numbers(golden, err);
    if (!status)
        status = pe_golden_fill(golden, err);
    return !status && pe_was_cancelled() ? pe_cancelled(err) : status;
}

/* ---- What is said beside the tensors ---- */

static const char *name_of(const struct pe_golden_kind *kind) { return *kind->name ? kind->name : "all"; }

static void put_config(const struct pe_golden *golden, struct pe_node *configs, const struct pe_golden_kind *kind)
{
    const struct pe_value *config = pe_plan_config(kind->plan),
                          scale = pe_query_scale_value(&golden->fields.query_scale);
    struct pe_node *node = pe_put_object(configs, name_of(kind));
    for (size_t i = 0; i < config->object.n; i++)
        pe_put_value(node, config->object.fields[i].name, &config->object.fields[i].value);
    struct pe_field scores[PE_SCORE_FIELDS_MAX];
    size_t n = pe_model_score_fields(kind->plan->inheritance, scores);
    for (size_t i = 0; i < n; i++)
        if (!golden->fields.query_scale.is_given || !pe_same(scores[i].name, "query_scale"))
            pe_put_value(node, scores[i].name, &scores[i].value);
    if (golden->fields.query_scale.is_given)
        pe_put_value(node, "query_scale", &scale);
}

const struct pe_value *pe_golden_about(struct pe_golden *golden)
{
    pe_values_free(golden->about);
    golden->about = pe_values_new();
    if (!golden->about)
        return NULL;
    struct pe_node *root = pe_values_root(golden->about);
    const struct pe_preset *preset = pe_plan_preset(golden->kinds[0].plan);
    pe_put_integer(root, "golden", 1);
    if (preset)
        pe_put_string(root, "preset", preset->name);
    struct pe_node *configs = pe_put_object(root, "configs");
    for (size_t i = 0; i < golden->n_kinds; i++)
        put_config(golden, configs, &golden->kinds[i]);
    if (golden->n_layer_types > 1) {
        /* Of a model with several types of layers, under the first kind of each. */
        struct pe_node *layers = pe_put_object(root, "layers");
        for (size_t kind = 0; kind < golden->n_kinds; kind++) {
            struct pe_node *list = NULL;
            for (size_t i = 0; i < golden->n_layer_types; i++) {
                if (golden->kind_of[i] != kind)
                    continue;
                list = list ? list : pe_put_list(layers, name_of(&golden->kinds[kind]));
                pe_put_string(list, NULL, golden->layer_types[i]);
            }
        }
    }
    static const double longest_text = 1.2345678901234567e-100;
    struct pe_node *node = pe_put_object(root, "tolerance");
    for (size_t i = 0; i < golden->n_tensors; i++) {
        const struct pe_golden_tensor *t = &golden->tensors[i];
        if (t->role == PE_GOLDEN_ROTATED || t->role == PE_GOLDEN_TABLE)
            pe_put_real(node, t->name, golden->room ? pe_golden_tolerance(t) : longest_text);
    }
    pe_put_string(root, "version", PE_VERSION);
    return pe_values_done(golden->about);
}
