/* Two addresses of /derive beside a finding: why the first number that differs is what the belief gives, and why it is
 * what was found.
 *
 * Each is a whole request, the resolved configuration of one of both and the number's place. An address is stated only
 * if that request gives the very number: the plan is asked for it, so there is none where something was done to the
 * numbers that no request has (transforms, other axes, a sign). */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ADDRESS_MAX = 3 << 10, VECTOR_MAX = 256 }; /* proxies and logs cut longer ones */

/* ---- An address ---- */

struct address {
    char text[ADDRESS_MAX];
    size_t n;
    bool is_broken; /* too long, or a value that no query has */
};

static void put_text(struct address *a, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~,:";
    for (; *text; text++) {
        if (a->n + 4 > sizeof a->text) {
            a->is_broken = true;
            return;
        }
        a->n += (size_t)snprintf(a->text + a->n, sizeof a->text - a->n, strchr(plain, *text) ? "%c" : "%%%02X",
                                 (unsigned char)*text);
    }
}

static void put_name(struct address *a, const char *name)
{
    static const char start[] = "/derive?";
    if (a->n + sizeof start > sizeof a->text) {
        a->is_broken = true;
        return;
    }
    a->n += (size_t)snprintf(a->text + a->n, sizeof a->text - a->n, "%s", a->n ? "&" : start);
    put_text(a, name);
    a->is_broken |= a->n + 2 > sizeof a->text;
    if (!a->is_broken)
        a->n += (size_t)snprintf(a->text + a->n, sizeof a->text - a->n, "=");
}

static void put_reals(struct address *a, const struct pe_reals *list)
{
    put_text(a, "[");
    for (uint64_t i = 0; i < list->n && !a->is_broken; i++) {
        put_text(a, i ? "," : "");
        put_text(a, pe_shown(pe_real_at(list, i)).text);
    }
    put_text(a, "]");
}

/* A value as JSON; its strings are words. */
static void put_json(struct address *a, const struct pe_value *v)
{
    char text[32];
    switch (v->kind) {
    case PE_BOOLEAN: put_text(a, v->boolean ? "true" : "false"); return;
    case PE_REAL: put_text(a, pe_shown(v->real).text); return;
    case PE_INTEGER:
        snprintf(text, sizeof text, "%lld", (long long)v->integer);
        put_text(a, text);
        return;
    case PE_STRING:
        a->is_broken |= strpbrk(v->string, "\"\\") != NULL;
        put_text(a, "\"");
        put_text(a, v->string);
        put_text(a, "\"");
        return;
    case PE_ARRAY:
        a->is_broken |= v->array.rank > 1;
        put_reals(a, &(struct pe_reals){v->array, v->array.rank ? v->array.shape[0] : 0});
        return;
    case PE_LIST:
        put_text(a, "[");
        for (size_t i = 0; i < v->list.n; i++) {
            put_text(a, i ? "," : "");
            put_json(a, &v->list.items[i]);
        }
        put_text(a, "]");
        return;
    case PE_OBJECT:
        put_text(a, "{");
        for (size_t i = 0; i < v->object.n; i++) {
            put_text(a, i ? ",\"" : "\"");
            put_text(a, v->object.fields[i].name);
            put_text(a, "\":");
            put_json(a, &v->object.fields[i].value);
        }
        put_text(a, "}");
        return;
    default: put_text(a, "null");
    }
}

static void put_field(struct address *a, const char *name, const struct pe_value *v)
{
    if (!v || v->kind == PE_NULL)
        return;
    put_name(a, name);
    if (v->kind == PE_STRING)
        put_text(a, v->string);
    else
        put_json(a, v);
}

static void put_config(struct address *a, const struct pe_plan *plan, const char *without)
{
    const struct pe_value *config = pe_plan_config(plan);
    for (size_t i = 0; i < config->object.n; i++)
        if (!pe_same(config->object.fields[i].name, without))
            put_field(a, config->object.fields[i].name, &config->object.fields[i].value);
}

/* ---- The number of a table ---- */

static bool is_the_number(const struct pe_diagnosis *d, double x, double wanted, double most)
{
    double found = d->evidence.dtype == PE_I64 ? x : pe_round_to(d->evidence.dtype, x);
    return found == wanted || fabs(found - wanted) <= most;
}

/* Which number of the plan's output it is, and whether that is the one that is wanted. */
static bool put_place(const struct pe_diagnosis *d, const struct pe_candidate *c, const struct pe_misfit *bad,
                      double wanted, double most, struct address *a)
{
    const struct pe_evidence *e = &d->evidence;
    const struct pe_plan *plan = c->model->plan;
    bool is_table = e->kind->id == PE_OF_TABLES;
    size_t t = is_table ? pe_evidence_table(e, bad->t) : bad->t;
    if (t >= plan->n_outputs)
        return false;
    const struct pe_output *output = &plan->outputs[t];
    uint64_t n = 1, element = (is_table ? pe_model_position(c->model, bad->row) : bad->row) * e->row_len + bad->col;
    double number[1], index[PE_RANK_MAX];
    for (unsigned i = 0; i < output->rank; i++)
        n *= output->shape[i];
    if (element >= n)
        return false;
    pe_fill(plan, t, element, 1, number);
    if (!is_the_number(d, pe_element(output->dtype, number, 0), wanted, most))
        return false;
    for (unsigned i = output->rank; i-- > 0; element /= output->shape[i])
        index[i] = (double)(element % output->shape[i]);
    const struct pe_value place = pe_list_of(index, output->rank), tensor = pe_word(output->name),
                          dtype = pe_word(pe_dtype_name(e->dtype));
    const struct pe_param *rules = pe_sequence_rules();
    for (const struct pe_param *row = pe_sequence_params(); row->name && row != rules; row++)
        put_field(a, row->name, pe_edit_value(d, &c->edit, row->name));
    if (pe_dtype_is_real(e->dtype) && e->dtype != PE_F32)
        put_field(a, "dtype", &dtype);
    put_field(a, "tensor", &tensor);
    put_field(a, "index", &place);
    return true;
}

/* ---- The number of a rotated vector ---- */

static bool put_vector(const struct pe_diagnosis *d, const struct pe_candidate *c, const struct pe_misfit *bad,
                       struct address *a)
{
    const struct pe_evidence *e = &d->evidence;
    double vector[VECTOR_MAX];
    const struct pe_plan *plan = c->model->plan;
    if (pe_are_transformed(&c->edit.transforms) || e->row_len > VECTOR_MAX || e->dtype != PE_F32 ||
        plan->seq.n_axes != 1 || pe_edit_value(d, &c->edit, "query_scale"))
        return false;
    pe_evidence_input(e, bad->row, vector);
    const struct pe_value input = pe_list_of(vector, e->row_len), tensor = pe_word(e->kind->tensors[0]),
                          channel = pe_integer((int64_t)bad->col),
                          position = pe_real(pe_position_at(&plan->seq.k[0], pe_model_position(c->model, bad->row)));
    put_field(a, "tensor", &tensor);
    put_field(a, "position", &position);
    put_field(a, "channel", &channel);
    put_field(a, e->kind->input, &input);
    return true;
}

/* ---- Both ---- */

/* Tables that were sent are in no address. */
static bool has_inputs(const struct pe_diagnosis *d, const struct pe_candidate *c)
{
    bool has = pe_edit_value(d, &c->edit, "weights") != NULL;
    for (const struct pe_input_row *row = c->model->plan->scheme->info.inputs; row && row->name; row++)
        has |= pe_edit_value(d, &c->edit, row->name) != NULL;
    return has;
}

static bool print(const struct pe_diagnosis *d, const struct pe_candidate *c, const struct pe_misfit *bad,
                  double wanted, double most, struct address *a)
{
    bool is_rotated = d->evidence.kind->id == PE_OF_ROTATED;
    if (!c->model || !c->model->plan || !c->model->plan->scheme->derive || has_inputs(d, c))
        return false;
    put_config(a, c->model->plan, is_rotated ? "form" : "");
    bool is_put = is_rotated ? put_vector(d, c, bad, a) : put_place(d, c, bad, wanted, most, a);
    return is_put && !a->is_broken;
}

void pe_answer_derive(const struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *node)
{
    const struct pe_candidate *belief = &d->answer->belief;
    const struct pe_misfit *bad = &belief->all.first_bad;
    struct address believed = {.n = 0}, found = {.n = 0};
    double most = c->all.verdict == PE_EXACT || !isfinite(c->all.max_error) ? 0 : c->all.max_error;
    if (!belief->model || !bad->is_any || d->evidence.is_typed || d->evidence.kind->is_parameter ||
        d->evidence.kind->id == PE_OF_MAPS || pe_evidence_sign(&d->evidence, bad->t, bad->col) < 0 ||
        !print(d, belief, bad, bad->expected, 0, &believed) || !print(d, c, bad, bad->found, most, &found))
        return;
    struct pe_node *list = pe_put_list(node, "derive");
    pe_put_string(list, NULL, believed.text);
    pe_put_string(list, NULL, found.text);
}
