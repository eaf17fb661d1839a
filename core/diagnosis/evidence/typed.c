/* Evidence: a few numbers that somebody typed, each with its place. They are numbers of a kind that could have come as
 * a tensor, at rows of a sequence that is planned as usual; of its other numbers nothing is known. What is typed may be
 * off by half a unit of its last digit. A probe asks for such numbers, and has none. */
#include "core/diagnosis/diagnosis.h"
#include "core/numeric/numeric.h"
#include "core/params.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POSITIONS_MAX = 4096 };

/* ---- The kinds ---- */

static const struct {
    const char *of;
    const struct pe_evidence_kind *kind;
} kinds[] = {{"tables", &pe_evidence_tables}, {"rotated", &pe_evidence_rotated},   {"inv_freq", &pe_evidence_inv_freq},
             {"angles", &pe_evidence_angles}, {"encoding", &pe_evidence_encoding}, {"bias", &pe_evidence_bias}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static const char *const of_words[] = {"tables", "rotated", "inv_freq", "angles", "encoding", "bias", NULL};

#define TENSORS "cos, sin, q_out, inv_freq, angles, encoding, bias"

#define F pe_typed_fields
#define DECIMALS(...) PE_P_INT(F, decimals, 4, 2, 9, "decimals", __VA_ARGS__, .group = PE_G_NUMBERS)

static const struct pe_param probe_rows[] = {
    PE_P_WORD(F, of, of_words, "numbers",
              "which numbers can be looked at: tables (cos, sin), rotated (q_out of the query q_j = 1 + j/head_dim), "
              "inv_freq, angles, encoding or bias; default the scheme's tables, encoding or bias",
              .fallback = PE_UNSET_WORD, .group = PE_G_ANSWER),
    PE_P_INT(F, count, 10, 1, 32, "count", "how many numbers at most", .group = PE_G_ANSWER),
    DECIMALS("digits after the point that will be typed: PyTorch prints 4, NumPy 8"), PE_P_END};

static const struct pe_param typed_rows[] = {
    DECIMALS("digits after the point of `values` that are numbers (4), and of tensors in JSON or as text, in place of "
             "those that they have"),
    PE_P_END};

const struct pe_param *pe_probe_params(void) { return probe_rows; }
const struct pe_param *pe_typed_params(void) { return typed_rows; }

static const struct pe_value *field(const struct pe_diagnosis *d, const char *name)
{
    return pe_field_find(d->request->fields, d->request->n_fields, name);
}

bool pe_typed_is_sent(const struct pe_diagnosis *d) { return d->is_probe || field(d, "values"); }

/* ---- What is typed ---- */

/* A place as it is given: not yet a row and a column. */
static const struct pe_param place_rows[] = {
    {.name = "tensor", .type = PE_T_VALUE, .offset = offsetof(struct pe_typed, tensor)},
    {.name = "value", .type = PE_T_VALUE, .offset = offsetof(struct pe_typed, number)},
    {.name = "position",
     .type = PE_T_REAL,
     .offset = offsetof(struct pe_typed, position),
     .fallback = PE_UNSET,
     .min = -PE_POSITION_MAX,
     .max = PE_POSITION_MAX},
    {.name = "channel",
     .type = PE_T_INT,
     .offset = offsetof(struct pe_typed, channel),
     .fallback = PE_UNSET,
     .max = PE_HEAD_DIM_MAX},
    {.name = "head",
     .type = PE_T_INT,
     .offset = offsetof(struct pe_typed, head),
     .fallback = PE_UNSET,
     .max = PE_HEAD_DIM_MAX},
    {.name = "query",
     .type = PE_T_REAL,
     .offset = offsetof(struct pe_typed, query),
     .fallback = PE_UNSET,
     .min = -PE_POSITION_MAX,
     .max = PE_POSITION_MAX},
    {.name = "key",
     .type = PE_T_REAL,
     .offset = offsetof(struct pe_typed, key),
     .fallback = PE_UNSET,
     .min = -PE_POSITION_MAX,
     .max = PE_POSITION_MAX},
    PE_P_END};

/* A pointer into the list: "/values/3/tensor". */
static const char *at(char *pointer, size_t room, size_t i, const char *name)
{
    snprintf(pointer, room, "/values/%zu%s%s", i, *name ? "/" : "", name);
    return pointer;
}

/* Digits after the point of a decimal number, less its exponent; -1: it is none. */
static int decimals_of(const char *text, double *value)
{
    const char *point = strchr(text, '.'), *end;
    char *rest;
    size_t n = strlen(text);
    if (n == 0 || n > 40 || strspn(text, "+-.0123456789eE") != n)
        return -1;
    *value = strtod(text, &rest);
    if (*rest || !isfinite(*value))
        return -1;
    end = text + strcspn(text, "eE");
    int digits = point && point < end ? (int)(end - point) - 1 : 0;
    long exponent = *end ? strtol(end + 1, NULL, 10) : 0;
    return exponent > 20 || exponent < -20 || digits - (int)exponent < 0 ? 0 : digits - (int)exponent;
}

static enum pe_status read_number(struct pe_typed *one, size_t i, double decimals, struct pe_failure *err)
{
    char pointer[48];
    const struct pe_value *v = one->number;
    int digits = v && v->kind == PE_STRING ? decimals_of(v->string, &one->value) : -1;
    if (v && (v->kind == PE_INTEGER || v->kind == PE_REAL))
        one->value = v->kind == PE_REAL ? v->real : (double)v->integer;
    else if (digits < 0)
        return pe_fail(err, at(pointer, sizeof pointer, i, "value"),
                       "the value is missing or no finite number; allowed: a number, or its text as \"0.5000\"");
    one->half = 0.5 * pow(10, digits < 0 ? -decimals : -digits);
    if (isfinite(one->value) && fabs(one->value) <= 1e30)
        return PE_OK;
    return pe_fail(err, at(pointer, sizeof pointer, i, "value"), "the value is not a finite number");
}

static enum pe_status read_tensor(struct pe_diagnosis *d, struct pe_typed *one, size_t i, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    const char *name = one->tensor && one->tensor->kind == PE_STRING ? one->tensor->string : "";
    char pointer[48];
    at(pointer, sizeof pointer, i, "tensor");
    for (size_t k = 0; k < N_KINDS; k++)
        for (size_t t = 0; kinds[k].kind->tensors[t]; t++) {
            if (!pe_same(name, kinds[k].kind->tensors[t]))
                continue;
            if (e->kind && e->kind != kinds[k].kind)
                return pe_fail(err, pointer, "%s is no number of the same kind as %s; send values of one kind", name,
                               e->kind->tensors[0]);
            e->kind = kinds[k].kind;
            one->t = t;
            return PE_OK;
        }
    return pe_fail(err, pointer, "tensor is \"%.32s\"; allowed: " TENSORS, name);
}

static enum pe_status check_place(const struct pe_diagnosis *d, const struct pe_typed *one, size_t i,
                                  struct pe_failure *err)
{
    bool is_bias = d->evidence.kind->id == PE_OF_BIAS, is_ladder = d->evidence.kind->id == PE_OF_LADDER;
    bool has_channel = one->channel != PE_UNSET_INT, has_head = one->head != PE_UNSET_INT;
    const struct {
        const char *name;
        bool is_given, is_needed;
    } parts[] = {{"position", !isnan(one->position), !is_bias && !is_ladder},
                 {"channel", has_channel, !is_bias},
                 {"head", has_head, is_bias},
                 {"query", !isnan(one->query), is_bias},
                 {"key", !isnan(one->key), is_bias}};
    char pointer[48];
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        if (parts[k].is_given != parts[k].is_needed) {
            at(pointer, sizeof pointer, i, parts[k].name);
            return parts[k].is_needed ? pe_fail(err, pointer, "%s is missing", parts[k].name)
                                      : pe_fail(err, pointer, "%s is no part of a place in %s", parts[k].name,
                                                d->evidence.kind->tensors[0]);
        }
    return PE_OK;
}

static enum pe_status read_one(struct pe_diagnosis *d, const struct pe_value *v, size_t i, struct pe_failure *err)
{
    enum { PLACE_FIELDS_MAX = 8 };
    struct pe_typed *one = &d->evidence.typed[i];
    bool taken[PLACE_FIELDS_MAX] = {false};
    char pointer[PE_POINTER_MAX];
    at(pointer, sizeof pointer, i, "");
    if (v->kind != PE_OBJECT || v->object.n > PLACE_FIELDS_MAX)
        return pe_fail(err, pointer, "this is no object of tensor, position, channel and value");
    if (pe_params_read(place_rows, one, v->object.fields, v->object.n, taken, pointer, err))
        return err->status;
    for (size_t k = 0; k < v->object.n; k++)
        if (!taken[k]) {
            char whole[PE_POINTER_MAX];
            pe_pointer_join(whole, sizeof whole, pointer, v->object.fields[k].name);
            return pe_fail(err, whole,
                           "unknown field \"%.64s\"; allowed: tensor, position, channel, value, and of a "
                           "bias head, query, key",
                           v->object.fields[k].name);
        }
    enum pe_status status = read_tensor(d, one, i, err);
    if (!status)
        status = check_place(d, one, i, err);
    return status ? status : read_number(one, i, (double)d->typed_fields.decimals, err);
}

static enum pe_status read_values(struct pe_diagnosis *d, struct pe_failure *err)
{
    const struct pe_value *v = field(d, "values");
    struct pe_evidence *e = &d->evidence;
    size_t n = v->kind == PE_LIST ? v->list.n : 0;
    if (n == 0 || n > PE_TYPED_MAX)
        return pe_fail(err, "/values",
                       "values has %zu numbers; allowed: a list of 1 to %d objects of tensor, position, "
                       "channel and value",
                       n, PE_TYPED_MAX);
    e->typed = calloc(n, sizeof *e->typed);
    if (!e->typed)
        return pe_no_memory(err);
    e->n_typed = n;
    for (size_t i = 0; i < n; i++)
        if (read_one(d, &v->list.items[i], i, err))
            return err->status;
    return PE_OK;
}

/* Without `of`: what the scheme gives. */
static enum pe_status choose_kind(struct pe_diagnosis *d)
{
    if (d->typed_fields.of >= 0)
        d->evidence.kind = kinds[d->typed_fields.of].kind;
    return PE_OK;
}

static enum pe_status refuse_tensors(const struct pe_diagnosis *d, struct pe_failure *err)
{
    char pointer[24];
    for (size_t k = 0; k < N_KINDS; k++)
        for (size_t t = 0; kinds[k].kind->tensors[t]; t++) {
            const char *name = kinds[k].kind->tensors[t];
            if (!field(d, name) || pe_same(name, "inv_freq")) /* the belief's list */
                continue;
            snprintf(pointer, sizeof pointer, "/%s", name);
            return d->is_probe ? pe_fail(err, pointer, "a probe asks for numbers; leave out %s", name)
                               : pe_fail(err, pointer, "the request has values and %s; send one of them", name);
        }
    return PE_OK;
}

enum pe_status pe_typed_find(struct pe_diagnosis *d, struct pe_failure *err)
{
    bool taken[PE_FIELDS_MAX] = {false};
    struct pe_evidence *e = &d->evidence;
    e->is_typed = true;
    e->n_rows = e->row_len = 1;
    e->dtype = PE_F32;
    e->narrow = PE_DTYPE_NONE;
    e->zero_row = -1;
    if (d->request->n_fields > PE_FIELDS_MAX)
        return pe_fail(err, "", "the request has %zu fields; allowed: at most %d", d->request->n_fields, PE_FIELDS_MAX);
    enum pe_status status = pe_params_read(d->is_probe ? probe_rows : typed_rows, &d->typed_fields, d->request->fields,
                                           d->request->n_fields, taken, "", err);
    if (!status)
        status = refuse_tensors(d, err);
    if (!status)
        status = d->is_probe ? choose_kind(d) : read_values(d, err);
    e->half = 0.5 * pow(10, -(double)d->typed_fields.decimals);
    if (!e->kind) /* pe_typed_read chooses by the scheme, which is not known yet */
        e->kind = &pe_evidence_tables;
    for (e->n_tensors = 0; e->kind->tensors[e->n_tensors]; e->n_tensors++)
        ;
    return status;
}

/* ---- The belief's plan ---- */

static void set_kind(struct pe_evidence *e, const struct pe_evidence_kind *kind)
{
    e->kind = kind;
    for (e->n_tensors = 0; kind->tensors[e->n_tensors]; e->n_tensors++)
        ;
}

static bool gives(const struct pe_diagnosis *d, const struct pe_evidence_kind *kind)
{
    bool rotates = d->belief.inheritance->scheme->rotate;
    if (kind->id == PE_OF_ENCODING || kind->id == PE_OF_BIAS)
        return pe_evidence_is_output(d, kind->outputs[0]);
    return rotates;
}

static enum pe_status check_scheme(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    const char *scheme = d->belief.inheritance->scheme->info.name;
    if (d->is_probe && d->typed_fields.of < 0)
        set_kind(e, gives(d, &pe_evidence_tables)     ? &pe_evidence_tables
                    : gives(d, &pe_evidence_encoding) ? &pe_evidence_encoding
                                                      : &pe_evidence_bias);
    if (gives(d, e->kind))
        return PE_OK;
    return pe_fail(err, "/scheme", "scheme \"%s\" has no %s", scheme, e->kind->tensors[0]);
}

static enum pe_status set_form(struct pe_diagnosis *d, struct pe_failure *err)
{
    const struct pe_value *form = pe_belief_given(d, "form");
    bool is_table = d->evidence.kind->id == PE_OF_TABLES, is_word = form && form->kind == PE_STRING;
    if (!d->belief.inheritance->scheme->rotate)
        return PE_OK;
    if (is_word && is_table && pe_is_among("pairs|expanded", form->string))
        return PE_OK;
    if (form)
        return pe_fail(err, "/form", "form is for cos and sin, which are read as pairs or expanded; leave it out");
    const char *word = d->evidence.kind->id == PE_OF_ROTATED ? "concat" : "pairs";
    pe_belief_set(d, "form", (struct pe_value){.kind = PE_STRING, .string = word});
    return PE_OK;
}

static void visit(double p, double *least, double *most, bool *are_whole)
{
    if (isnan(p))
        return;
    *least = fmin(*least, p);
    *most = fmax(*most, p);
    *are_whole = *are_whole && p == floor(p);
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Positions that no run from the first believed one reaches: those typed, each once. */
static enum pe_status set_list(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    double *list = malloc(e->n_typed * sizeof *list);
    size_t n = 0;
    if (!list)
        return pe_no_memory(err);
    for (size_t i = 0; i < e->n_typed; i++)
        list[i] = e->typed[i].position;
    qsort(list, e->n_typed, sizeof *list, by_number);
    for (size_t i = 0; i < e->n_typed; i++)
        if (n == 0 || list[i] != list[n - 1])
            list[n++] = list[i];
    e->places = list;
    const struct pe_tensor t = {.dtype = PE_F64, .rank = 1, .shape = {n}, .data = list};
    pe_belief_set(d, "positions", (struct pe_value){.kind = PE_ARRAY, .array = t});
    return PE_OK;
}

static int64_t integer(const struct pe_diagnosis *d, const char *name, int64_t fallback)
{
    const struct pe_value *v = pe_belief_given(d, name);
    return v && v->kind == PE_INTEGER ? v->integer : fallback;
}

/* A run that has every typed position; the believed length, or the usual one, if that is longer. */
static enum pe_status set_sequence(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    double first = (double)integer(d, "offset", 0), least = first, most = first;
    bool are_whole = true, has_own = pe_belief_has_sequence(d), is_run = pe_belief_given(d, "len") != NULL;
    for (size_t i = 0; i < e->n_typed; i++) {
        visit(e->typed[i].position, &least, &most, &are_whole);
        visit(e->typed[i].query, &least, &most, &are_whole);
        visit(e->typed[i].key, &least, &most, &are_whole);
    }
    int64_t len = integer(d, "len", PE_TYPED_LEN);
    if (has_own && !is_run)
        return PE_OK;
    if (are_whole && least >= first && most - first < POSITIONS_MAX) {
        double needed = most - first + 1;
        const struct pe_value v = {.kind = PE_INTEGER, .integer = (double)len < needed ? (int64_t)needed : len};
        pe_belief_replace(d, "len", v);
        return PE_OK;
    }
    if (has_own || e->kind->id == PE_OF_BIAS)
        return PE_OK; /* refused where the row is looked for */
    return set_list(d, err);
}

static size_t head_dim_of(const struct pe_plan *plan)
{
    struct pe_rotation rotation;
    plan->scheme->rotate(plan, &rotation, NULL);
    return rotation.head_dim;
}

/* The sizes that a tensor would have fixed. */
static enum pe_status set_shape(struct pe_diagnosis *d, const struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    const struct pe_output *o = &plan->outputs[0];
    struct pe_tensor t = {.dtype = PE_F32, .rank = 2, .shape = {o->n_rows, o->row_len}};
    uint64_t n = plan->seq.k->n > plan->seq.q->n ? plan->seq.k->n : plan->seq.q->n;
    if (plan->seq.n_axes != 1 || d->belief.positions || d->belief.has_mask || d->belief.tensor_layout)
        return pe_fail(err, "", "numbers that are typed have positions on one axis, the same in every row of a batch");
    if (n > POSITIONS_MAX) {
        pe_fail(err, "/len", "the sequence has %llu positions; allowed: at most %d", (unsigned long long)n,
                POSITIONS_MAX);
        return err->status = PE_TOO_LARGE;
    }
    if (e->kind->id == PE_OF_LADDER)
        t.shape[0] = 1;
    if (e->kind->id == PE_OF_ROTATED)
        t.shape[1] = head_dim_of(plan);
    if (e->kind->id == PE_OF_BIAS || e->kind->id == PE_OF_ENCODING) {
        t.rank = o->rank;
        memcpy(t.shape, o->shape, sizeof t.shape);
    }
    if (t.rank != (e->kind->id == PE_OF_BIAS ? 3 : 2))
        return pe_fail(err, "", "%s has more axes than a place states", e->kind->tensors[0]);
    for (size_t i = 0; i < e->n_tensors; i++)
        e->tensors[i] = t;
    e->sent = t;
    pe_shape_count(t.shape, t.rank - 1, &e->n_rows);
    e->row_len = t.shape[t.rank - 1];
    if (e->kind->id == PE_OF_ROTATED && (!pe_evidence_axes(e, NULL, &e->axes) || !e->axes.n))
        return pe_fail(err, "", "the width differs");
    return PE_OK;
}

/* ---- Places ---- */

static enum pe_status is_nowhere(size_t i, const char *name, double p, struct pe_failure *err)
{
    char pointer[48];
    return pe_fail(err, at(pointer, sizeof pointer, i, name), "%s is %.10g, which is none of the sequence's", name, p);
}

static enum pe_status place_in_map(struct pe_diagnosis *d, const struct pe_plan *plan, size_t i, struct pe_failure *err)
{
    struct pe_typed *one = &d->evidence.typed[i];
    const struct pe_tensor *t = &d->evidence.tensors[0];
    char pointer[48];
    uint64_t query = pe_typed_index(plan->seq.q, one->query), key = pe_typed_index(plan->seq.k, one->key);
    if (query == plan->seq.q->n)
        return is_nowhere(i, "query", one->query, err);
    if (key == plan->seq.k->n)
        return is_nowhere(i, "key", one->key, err);
    if ((uint64_t)one->head >= t->shape[0])
        return pe_fail(err, at(pointer, sizeof pointer, i, "head"), "head is %lld; there are %llu",
                       (long long)one->head, (unsigned long long)t->shape[0]);
    one->row = (uint64_t)one->head * t->shape[1] + query;
    one->col = key;
    return PE_OK;
}

static enum pe_status place(struct pe_diagnosis *d, const struct pe_plan *plan, size_t i, struct pe_failure *err)
{
    struct pe_typed *one = &d->evidence.typed[i];
    char pointer[48];
    if (d->evidence.kind->id == PE_OF_BIAS)
        return place_in_map(d, plan, i, err);
    one->row = d->evidence.kind->id == PE_OF_LADDER ? 0 : pe_typed_index(plan->seq.k, one->position);
    if (one->row == plan->seq.k->n)
        return is_nowhere(i, "position", one->position, err);
    if ((uint64_t)one->channel >= d->evidence.row_len)
        return pe_fail(err, at(pointer, sizeof pointer, i, "channel"), "channel is %lld; %s has %llu",
                       (long long)one->channel, d->evidence.kind->tensors[one->t],
                       (unsigned long long)d->evidence.row_len);
    one->col = (uint64_t)one->channel;
    return PE_OK;
}

static enum pe_status place_all(struct pe_diagnosis *d, const struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_typed *typed = d->evidence.typed;
    char pointer[48];
    for (size_t i = 0; i < d->evidence.n_typed; i++) {
        if (place(d, plan, i, err))
            return err->status;
        for (size_t j = 0; j < i; j++)
            if (typed[i].t == typed[j].t && typed[i].row == typed[j].row && typed[i].col == typed[j].col)
                return pe_fail(err, at(pointer, sizeof pointer, i, ""), "values has this place twice");
    }
    return PE_OK;
}

enum pe_status pe_typed_read(struct pe_diagnosis *d, struct pe_failure *err)
{
    enum pe_status status = check_scheme(d, err);
    if (!status)
        status = set_form(d, err);
    if (!status)
        status = set_sequence(d, err);
    if (status)
        return status;
    struct pe_plan *plan = pe_belief_try(d, PE_TYPED_LEN);
    if (!plan) { /* the reason is found again, unless memory was short */
        status = pe_belief_plan(d, err);
        return d->belief.plan ? pe_no_memory(err) : status;
    }
    status = set_shape(d, plan, err);
    if (!status)
        status = place_all(d, plan, err);
    pe_plan_free(plan);
    return status;
}
