/* The kinds of a model: its layer types whose configurations differ, and of scalings that read the length of the
 * sequence one kind for short sequences and one for long ones. Each is planned at one position, which checks it and
 * states its resolved configuration and its widths. */
#include "core/golden/golden.h"
#include "core/schemes/rotary/rotary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- One plan ---- */

static enum pe_status admit(void *caller, double bytes, struct pe_failure *err)
{
    struct pe_golden *golden = caller;
    const struct pe_golden_request *request = golden->request;
    golden->asked = bytes;
    return request->admit ? request->admit(request->caller, golden->bytes + bytes, err) : PE_OK;
}

enum pe_status pe_golden_plan(struct pe_golden *golden, const struct pe_golden_kind *kind,
                              const struct pe_golden_ask *ask, struct pe_plan **plan, struct pe_failure *err)
{
    struct pe_field fields[PE_FIELDS_MAX];
    size_t n = kind->n_fields;
    if (n + ask->n_extra > PE_FIELDS_MAX)
        return pe_fail(err, "", "the request has %zu fields; allowed: at most %d", n,
                       PE_FIELDS_MAX - (int)ask->n_extra);
    memcpy(fields, kind->fields, n * sizeof *fields);
    memcpy(fields + n, ask->extra, ask->n_extra * sizeof *fields);
    struct pe_request request = {.operation = ask->operation,
                                 .fields = fields,
                                 .n_fields = n + ask->n_extra,
                                 .dtype = ask->dtype,
                                 .outputs = ask->outputs,
                                 .n_outputs = ask->n_outputs,
                                 .caller_fields = golden->request->caller_fields,
                                 .admit = admit,
                                 .caller = golden};
    return pe_plan_new(&request, plan, err);
}

/* ---- At one position ---- */

static const char *const of_rotary[] = {"cos", "sin", "inv_freq"}, *const of_absolute[] = {"encoding"},
                         *const of_bias[] = {"bias"};

void pe_golden_ask_tables(const struct pe_golden *golden, const struct pe_golden_places *q,
                          const struct pe_golden_places *k, struct pe_golden_ask *ask)
{
    bool is_bias = golden->family == PE_GOLDEN_BIAS;
    *ask = (struct pe_golden_ask){.operation = PE_ENCODE, .dtype = golden->dtype, .n_outputs = 1};
    ask->outputs = is_bias ? of_bias : of_absolute;
    if (golden->family == PE_GOLDEN_ROTARY) {
        ask->outputs = of_rotary;
        ask->n_outputs = sizeof of_rotary / sizeof *of_rotary;
    }
    if (golden->has_window)
        return;
    ask->extra[ask->n_extra++] = (struct pe_field){is_bias ? "q_positions" : "positions", pe_golden_places_value(q)};
    if (is_bias)
        ask->extra[ask->n_extra++] = (struct pe_field){"k_positions", pe_golden_places_value(k)};
}

/* The first number of axes from 1 to 3 that the kind accepts. */
static enum pe_status plan_one_position(struct pe_golden *golden, const struct pe_golden_kind *kind,
                                        struct pe_plan **plan, struct pe_failure *err)
{
    enum { AXES_TRIED = 3 };
    enum pe_status status = PE_OK;
    for (unsigned n_axes = 1; n_axes <= AXES_TRIED; n_axes++) {
        struct pe_golden_places one = {.n_axes = n_axes, .n = 1};
        struct pe_golden_ask ask;
        struct pe_failure later;
        pe_golden_ask_tables(golden, &one, &one, &ask);
        enum pe_status now = pe_golden_plan(golden, kind, &ask, plan, n_axes > 1 ? &later : err);
        status = n_axes == 1 || !now ? now : status;
        if (now != PE_INVALID)
            break;
    }
    if (!status)
        golden->bytes += golden->asked;
    return status;
}

const struct pe_value *pe_golden_config_find(const struct pe_golden_kind *kind, const char *name)
{
    const struct pe_value *config = pe_plan_config(kind->plan);
    return pe_field_find(config->object.fields, config->object.n, name);
}

/* ---- Families ---- */

static enum pe_status find_family(struct pe_golden *golden, const struct pe_scheme *of_kind, struct pe_failure *err)
{
    const struct pe_scheme_info *scheme = &of_kind->info;
    static const char *const names[] = {
        [PE_GOLDEN_ROTARY] = "rotary", [PE_GOLDEN_ABSOLUTE] = "absolute", [PE_GOLDEN_BIAS] = "bias"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (pe_same(names[i], scheme->family)) {
            bool is_other = golden->n_kinds > 0 && golden->family != i;
            golden->family = (enum pe_golden_family)i;
            golden->has_window = i == PE_GOLDEN_BIAS && !of_kind->is_pairwise;
            return is_other ? pe_fail(err, "/layer_type", "the layers have schemes of several families; name one type")
                            : PE_OK;
        }
    return pe_fail(err, "/scheme",
                   "%s is a relative scheme, whose terms depend on content; golden vectors are of rotary, absolute and "
                   "bias schemes",
                   scheme->name);
}

/* ---- Two lengths ---- */

double pe_golden_original(const struct pe_plan *plan, double otherwise)
{
    const struct pe_value *config = pe_plan_config(plan);
    double named = pe_config_number(config, "scaling.original_max_position_embeddings", 0);
    named = named > 0 ? named : pe_config_number(config, "scaling.max_position_embeddings", 0);
    return named > 0 ? floor(named) : otherwise;
}

double pe_golden_longest(const struct pe_plan *plan, double otherwise)
{
    const struct pe_value *config = pe_plan_config(plan);
    double original = pe_golden_original(plan, 0), factor = pe_config_number(config, "scaling.factor", 0);
    bool stretches = pe_is_among("yarn|dynamic|longrope", pe_config_word(config, "scaling.type"));
    return stretches && original > 0 && factor >= 1 ? floor(factor * original) : otherwise;
}

static enum pe_status set_length(struct pe_golden_kind *kind, const struct pe_field *scaling, double seq_len,
                                 struct pe_failure *err)
{
    size_t n = scaling->value.object.n, to = 0;
    kind->scaling = malloc((n + 1) * sizeof *kind->scaling);
    if (!kind->scaling)
        return pe_no_memory(err);
    memcpy(kind->scaling, scaling->value.object.fields, n * sizeof *kind->scaling);
    kind->scaling[n] = (struct pe_field){"seq_len", {.kind = PE_REAL, .real = seq_len}};
    for (size_t i = 0; i < kind->n_fields; i++)
        if (!pe_same(kind->fields[i].name, scaling->name))
            kind->fields[to++] = kind->fields[i];
    kind->fields[to++] = (struct pe_field){scaling->name, {.kind = PE_OBJECT, .object = {kind->scaling, n + 1}}};
    kind->n_fields = to;
    return PE_OK;
}

/* ---- One kind ---- */

static void kind_drop(struct pe_golden_kind *kind)
{
    pe_plan_free(kind->plan);
    free(kind->fields);
    free(kind->scaling);
    *kind = (struct pe_golden_kind){.plan = NULL};
}

void pe_golden_kinds_drop(struct pe_golden *golden)
{
    for (size_t i = 0; i < golden->n_kinds; i++)
        kind_drop(&golden->kinds[i]);
    for (size_t i = 0; i < golden->n_origins; i++)
        pe_plan_free(golden->origins[i]);
    golden->n_kinds = golden->n_origins = 0;
}

/* The request's fields for one layer type, with room for a layer type, a seed and a scaling. */
static enum pe_status kind_init(const struct pe_golden *golden, struct pe_golden_kind *kind, const char *layer_type,
                                struct pe_failure *err)
{
    const struct pe_golden_request *request = golden->request;
    *kind = (struct pe_golden_kind){.fields = malloc((request->n_fields + 3) * sizeof *kind->fields)};
    if (!kind->fields)
        return pe_no_memory(err);
    for (size_t i = 0; i < request->n_fields; i++)
        if (!golden->taken[i] && !pe_same(request->fields[i].name, "layer_type"))
            kind->fields[kind->n_fields++] = request->fields[i];
    if (!layer_type)
        return PE_OK;
    snprintf(kind->layer_type, sizeof kind->layer_type, "%s", layer_type);
    kind->fields[kind->n_fields++] = (struct pe_field){"layer_type", {.kind = PE_STRING, .string = layer_type}};
    return PE_OK;
}

static enum pe_status too_many(struct pe_failure *err)
{
    pe_fail(err, "/layer_type", "the model has more than %d kinds of layers; name one type", PE_GOLDEN_KINDS_MAX);
    return err->status = PE_TOO_LARGE;
}

/* Takes the kind; it is dropped if one with the same configuration is there. */
static enum pe_status keep(struct pe_golden *golden, struct pe_golden_kind *kind, struct pe_failure *err)
{
    size_t i = 0;
    while (i < golden->n_kinds && (golden->kinds[i].length != kind->length ||
                                   !pe_value_same(pe_plan_config(golden->kinds[i].plan), pe_plan_config(kind->plan))))
        i++;
    if (i == PE_GOLDEN_KINDS_MAX) {
        kind_drop(kind);
        return too_many(err);
    }
    if (i < golden->n_kinds)
        kind_drop(kind);
    else
        golden->kinds[golden->n_kinds++] = *kind;
    golden->kind_of[golden->n_layer_types] = i;
    return PE_OK;
}

/* The same request with a length. like: without one. */
static enum pe_status add_length(struct pe_golden *golden, const struct pe_golden_kind *like, const char *length,
                                 double seq_len, struct pe_failure *err)
{
    const struct pe_field *scaling = pe_rotary_lengthless(golden->origins[golden->n_origins - 1]);
    struct pe_golden_kind kind = *like;
    kind.length = length;
    kind.fields = malloc((like->n_fields + 1) * sizeof *kind.fields);
    if (!kind.fields)
        return pe_no_memory(err);
    memcpy(kind.fields, like->fields, like->n_fields * sizeof *kind.fields);
    enum pe_status status = set_length(&kind, scaling, seq_len, err);
    if (!status)
        status = plan_one_position(golden, &kind, &kind.plan, err);
    if (!status)
        return keep(golden, &kind, err);
    kind_drop(&kind);
    return status;
}

/* A length beyond the original one, at which the scaling is another: factor times it, where that is longer. */
static double longer_than(const struct pe_plan *plan, double original)
{
    double longest = pe_golden_longest(plan, PE_GOLDEN_LENGTH);
    return longest > original ? longest : original + 1;
}

/* ---- Layer types ---- */

/* What the kind's request inherits, in golden->inheritance. */
static enum pe_status inherit(struct pe_golden *golden, const struct pe_golden_kind *kind, struct pe_failure *err)
{
    struct pe_request request = {.fields = kind->fields, .n_fields = kind->n_fields};
    return pe_inherit(golden->inheritance, &request, err);
}

/* Takes the kind, of which nothing is planned yet. */
static enum pe_status plan_layer_type(struct pe_golden *golden, struct pe_golden_kind *kind, struct pe_failure *err)
{
    /* The seed is that of queries and keys, and of weights where a scheme has some. */
    const struct pe_golden_request *request = golden->request;
    const struct pe_value *seed = pe_field_find(request->fields, request->n_fields, "seed");
    if (seed && pe_param_find(golden->inheritance->scheme->info.params, "seed"))
        kind->fields[kind->n_fields++] = (struct pe_field){"seed", *seed};
    enum pe_status status = find_family(golden, golden->inheritance->scheme, err);
    if (!status)
        status = plan_one_position(golden, kind, &kind->plan, err);
    if (status) {
        kind_drop(kind);
        return status;
    }
    if (!pe_rotary_lengthless(kind->plan))
        return keep(golden, kind, err);
    golden->origins[golden->n_origins] = kind->plan;
    kind->plan = NULL;
    /* Takes the kind, whose plan, without a length, is the last of the origins. */
    static const char shorter[] = "short", longer[] = "long";
    const struct pe_plan *origin = golden->origins[golden->n_origins++];
    double original = pe_golden_original(origin, 1);
    status = add_length(golden, kind, shorter, original, err);
    size_t first = golden->kind_of[golden->n_layer_types];
    if (!status)
        status = add_length(golden, kind, longer, longer_than(origin, original), err);
    golden->kind_of[golden->n_layer_types] = first;
    kind_drop(kind);
    return status;
}

/* Layers without positions have nothing to show beside others that have some. */
static enum pe_status add_layer_type(struct pe_golden *golden, const char *layer_type, bool is_one_of_several,
                                     struct pe_failure *err)
{
    struct pe_golden_kind kind;
    if (golden->n_layer_types == PE_GOLDEN_KINDS_MAX)
        return too_many(err);
    char *name = golden->layer_types[golden->n_layer_types]; /* from which the kind's fields borrow */
    snprintf(name, sizeof *golden->layer_types, "%s", layer_type ? layer_type : "");
    enum pe_status status = kind_init(golden, &kind, layer_type ? name : NULL, err);
    if (!status)
        status = inherit(golden, &kind, err);
    if (status || (is_one_of_several && pe_same(golden->inheritance->scheme->info.name, "none"))) {
        kind_drop(&kind);
        return status;
    }
    status = plan_layer_type(golden, &kind, err);
    golden->n_layer_types++;
    return status;
}

static enum pe_status add_listed(struct pe_golden *golden, const char *names, struct pe_failure *err)
{
    enum pe_status status = PE_OK;
    for (const char *p = names; !status && *p; p += strspn(p, "|")) {
        char name[sizeof *golden->layer_types];
        size_t n = strcspn(p, "|");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        status = add_layer_type(golden, name, true, err);
        p += n;
    }
    return status;
}

/* Those of a preset are listed in its rows, those of a config.json in the refusal to plan it without a layer type. */
static enum pe_status add_all(struct pe_golden *golden, struct pe_failure *err)
{
    const struct pe_golden_request *request = golden->request;
    struct pe_golden_kind whole;
    const struct pe_value *named = pe_field_find(request->fields, request->n_fields, "layer_type");
    if (named && named->kind == PE_STRING)
        return add_layer_type(golden, named->string, false, err);
    enum pe_status status = kind_init(golden, &whole, NULL, err);
    if (!status)
        status = inherit(golden, &whole, err);
    kind_drop(&whole);
    const struct pe_preset *preset = status ? NULL : golden->inheritance->preset;
    if (status && *err->layer_types) {
        char names[PE_LAYER_TYPES_MAX];
        memcpy(names, err->layer_types, sizeof names);
        return add_listed(golden, names, err);
    }
    if (status || !preset || preset->n_layers < 2)
        return status ? status : add_layer_type(golden, NULL, false, err);
    for (size_t i = 0; !status && i < preset->n_layers; i++)
        status = add_layer_type(golden, preset->layers[i].layer_type, true, err);
    return status;
}

/* ---- Names ---- */

static bool has_several_types(const struct pe_golden *golden)
{
    for (size_t i = 1; i < golden->n_layer_types; i++)
        if (golden->kind_of[i] != golden->kind_of[0])
            return true;
    return false;
}

enum pe_status pe_golden_kinds(struct pe_golden *golden, struct pe_failure *err)
{
    golden->inheritance = malloc(sizeof *golden->inheritance);
    if (!golden->inheritance)
        return pe_no_memory(err);
    enum pe_status status = add_all(golden, err);
    free(golden->inheritance);
    golden->inheritance = NULL;
    if (!status && golden->n_kinds == 0)
        return pe_fail(err, "/layer_type", "no layer of the model has positions");
    bool has_types = has_several_types(golden);
    for (size_t i = 0; i < golden->n_kinds; i++) {
        struct pe_golden_kind *kind = &golden->kinds[i];
        snprintf(kind->name, sizeof kind->name, "%s%s%s", has_types ? kind->layer_type : "",
                 has_types && kind->length ? "." : "", kind->length ? kind->length : "");
    }
    return status;
}
