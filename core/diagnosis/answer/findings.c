/* Findings: what the first candidate changes, in words, with the value found and the value believed. */
#include "core/diagnosis/answer/answer.h"

#include <stdio.h>
#include <string.h>

/* ---- Equal values ---- */

static bool is_number(const struct pe_value *v, double *x)
{
    *x = v->kind == PE_INTEGER ? (double)v->integer : v->real;
    return v->kind == PE_INTEGER || v->kind == PE_REAL;
}

static bool is_equal(const struct pe_value *a, const struct pe_value *b)
{
    double x, y;
    if (!a || !b)
        return !a && !b;
    if (is_number(a, &x) && is_number(b, &y))
        return x == y;
    if (a->kind != b->kind)
        return false;
    if (a->kind == PE_STRING)
        return strcmp(a->string, b->string) == 0;
    return a->kind == PE_BOOLEAN ? a->boolean == b->boolean : a->kind == PE_NULL;
}

static const struct pe_value *member(const struct pe_value *object, const char *name)
{
    return object ? pe_field_find(object->object.fields, object->object.n, name) : NULL;
}

/* ---- The field that a fault changes ---- */

struct change {
    char pointer[PE_POINTER_MAX];
    const struct pe_value *found, *believed; /* NULL: unset */
};

/* The only member that differs between two objects of one type; NULL: there are several. */
static const char *only_member(const struct pe_value *found, const struct pe_value *believed)
{
    const char *name = NULL;
    if (found->kind != PE_OBJECT || !believed || believed->kind != PE_OBJECT)
        return NULL;
    if (!is_equal(member(found, "type"), member(believed, "type")))
        return NULL;
    for (size_t i = 0; i < found->object.n; i++) {
        const struct pe_field *field = &found->object.fields[i];
        if (is_equal(&field->value, member(believed, field->name)))
            continue;
        if (name)
            return NULL;
        name = field->name;
    }
    return name;
}

static void set_change(struct change *change, const char *name, const struct pe_value *found,
                       const struct pe_value *believed)
{
    *change = (struct change){.found = found, .believed = believed};
    pe_pointer_join(change->pointer, sizeof change->pointer, "", name);
    const char *inner = found ? only_member(found, believed) : NULL;
    if (!inner)
        return;
    char outer[PE_POINTER_MAX];
    memcpy(outer, change->pointer, sizeof outer);
    pe_pointer_join(change->pointer, sizeof change->pointer, outer, inner);
    change->found = member(found, inner);
    change->believed = member(believed, inner);
}

/* Fields of the sequence that the edit removes are null in it. */
static const struct pe_value *set_or_null(const struct pe_value *value)
{
    return value && value->kind != PE_NULL ? value : NULL;
}

static const struct pe_value *kept(struct pe_diagnosis *d, struct pe_value value)
{
    struct pe_value *room = pe_values_room(d->values, sizeof *room);
    if (room)
        *room = value;
    return room;
}

/* What a field is where the belief leaves it out: the factor that its scaling gives, and the start of its sequence. */
static const struct pe_value *usual(struct pe_diagnosis *d, const char *name)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    const struct pe_model *model = d->belief.model;
    int64_t x = 0;
    if (pe_same(name, "attention_factor") && model && model->columns)
        return kept(d, (struct pe_value){.kind = PE_REAL, .real = model->columns[0].ah});
    if (!pe_same(name, "offset") && !pe_same(name, "q_offset"))
        return NULL;
    if (pe_same(name, "q_offset") && t->rank >= 2) /* of [num_heads, q_len, k_len] */
        x = (int64_t)t->shape[t->rank - 1] - (int64_t)t->shape[t->rank - 2];
    return kept(d, (struct pe_value){.kind = PE_INTEGER, .integer = d->evidence.is_turned ? -x : x});
}

/* The first field that the fault alone sets and whose value differs from the belief's. */
static bool find_field(struct pe_diagnosis *d, const struct pe_edit *alone, const struct pe_edit *whole,
                       struct change *change)
{
    struct pe_edit nothing;
    pe_edit_init(&nothing);
    for (size_t i = 0; i < alone->n_fields; i++) {
        const char *name = alone->fields[i].name;
        const struct pe_value *found = set_or_null(pe_edit_value(d, whole, name));
        const struct pe_value *believed = set_or_null(pe_edit_value(d, &nothing, name));
        believed = believed ? believed : usual(d, name);
        if (alone->fields[i].value.kind == PE_NULL || is_equal(found, believed))
            continue;
        set_change(change, name, found, believed);
        return true;
    }
    return false;
}

/* A transform concerns the tensor itself. */
static void find_change(struct pe_diagnosis *d, const struct pe_candidate *c, unsigned i, struct change *change)
{
    struct pe_hypothesis h = {.n = 1, .fault = {c->kept.h.fault[i]}, .choice = {c->kept.h.choice[i]}};
    struct pe_edit alone;
    *change = (struct change){"", NULL, NULL};
    bool fine = pe_hypothesis_apply(d, &h, &alone);
    if (!fine || !find_field(d, &alone, &c->edit, change))
        pe_pointer_join(change->pointer, sizeof change->pointer, "",
                        d->evidence.kind->tensors[d->evidence.n_tensors - 1]);
    pe_edit_drop(&alone);
}

/* ---- Members ---- */

/* Long lists stand in the candidate's sequence. */
static void put_value(struct pe_node *node, const char *name, const struct pe_value *value)
{
    enum { LIST_MAX = 64 };
    uint64_t n = 0;
    bool is_long = value && value->kind == PE_ARRAY &&
                   (!pe_shape_count(value->array.shape, value->array.rank, &n) || n > LIST_MAX);
    if (value && !is_long)
        pe_put_value(node, name, value);
    else
        pe_put_null(node, name);
}

/* What a transform changed, as a value. */
static void put_transformed(const struct pe_candidate *c, const char *code, struct pe_node *node)
{
    const struct pe_transforms *t = &c->edit.transforms;
    if (strcmp(code, "scaled") == 0)
        pe_put_real(node, "found", t->scaled);
    else if (strcmp(code, "mask_value") == 0)
        pe_put_real(node, "found", t->mask_value);
    else if (strcmp(code, "zero_row") == 0)
        pe_put_integer(node, "found", t->zero_row);
    else
        pe_put_null(node, "found");
    pe_put_null(node, "believed");
}

static const struct pe_text *sentence_of(const struct pe_fault_info *info, size_t choice)
{
    return &info->details[info->n_details > 1 && choice < info->n_details ? choice : 0];
}

static void put_fault(struct pe_diagnosis *d, const struct pe_candidate *c, unsigned i, struct pe_node *list)
{
    const struct pe_fault_info *info = pe_fault_at(c->kept.h.fault[i]);
    struct change change;
    struct pe_node *node = pe_put_object(list, NULL);
    find_change(d, c, i, &change);
    pe_put_string(node, "code", info->code);
    pe_put_string(node, "pointer", change.pointer);
    if (change.found || change.believed) {
        put_value(node, "found", change.found);
        put_value(node, "believed", change.believed);
    } else {
        put_transformed(c, info->code, node);
    }
    pe_put_detail(node, d->request->lang, sentence_of(info, c->kept.h.choice[i]));
}

static struct pe_node *put_finding(struct pe_node *list, const struct pe_fault_info *info, const char *pointer)
{
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_string(node, "code", info->code);
    pe_put_string(node, "pointer", pointer);
    return node;
}

static void finish_finding(struct pe_diagnosis *d, struct pe_node *node, const struct pe_fault_info *info)
{
    if (!pe_node_find(node, "found"))
        pe_put_null(node, "found");
    pe_put_null(node, "believed");
    pe_put_detail(node, d->request->lang, &info->details[0]);
}

/* ---- Findings without a fault ---- */

static void put_angles(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *list)
{
    unsigned waves = PE_EVIDENCE_BIT(ENCODING) | PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED);
    char pointer[32];
    if (c->all.verdict != PE_ROUNDING || !c->all.is_beyond || !(waves >> d->evidence.kind->id & 1))
        return;
    snprintf(pointer, sizeof pointer, "/%s", d->evidence.kind->tensors[0]);
    struct pe_node *node = put_finding(list, &pe_fault_info_angles_f32, pointer);
    const struct pe_positions *positions = &c->model->plan->seq.k[0];
    pe_put_real(node, "position", pe_position_at(positions, c->all.beyond_row % positions->n));
    finish_finding(d, node, &pe_fault_info_angles_f32);
}

static void put_narrow(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *list)
{
    char pointer[32];
    if (!c->is_narrow)
        return;
    snprintf(pointer, sizeof pointer, "/%s", d->evidence.kind->tensors[0]);
    struct pe_node *node = put_finding(list, &pe_fault_info_table_dtype, pointer);
    pe_put_string(node, "found", pe_dtype_name(d->evidence.narrow));
    finish_finding(d, node, &pe_fault_info_table_dtype);
}

/* The nearest hypothesis, in place of an explanation. */
static void put_nearest(const struct pe_answer *a, struct pe_node *node)
{
    if (a->n == 0)
        return;
    struct pe_node *nearest = pe_put_object(node, "nearest");
    struct pe_node *codes = pe_put_list(nearest, "codes");
    for (unsigned i = 0; i < a->candidates[0].kept.h.n; i++)
        pe_put_string(codes, NULL, pe_fault_at(a->candidates[0].kept.h.fault[i])->code);
    pe_put_real(nearest, "max_error", a->candidates[0].all.max_error);
}

static void put_unexplained(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *list)
{
    struct pe_node *node = put_finding(list, &pe_fault_info_unexplained, "");
    put_nearest(a, node);
    finish_finding(d, node, &pe_fault_info_unexplained);
}

static void put_plain(struct pe_diagnosis *d, struct pe_node *list, const struct pe_fault_info *info)
{
    finish_finding(d, put_finding(list, info, ""), info);
}

static void put_undecided(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *list)
{
    if (!a->undecided.rival)
        return;
    struct pe_node *node = put_finding(list, &pe_fault_info_undecided, "");
    pe_put_integer(node, "candidate", (int64_t)a->undecided.rival);
    pe_put_integer(node, "position", (int64_t)a->undecided.position);
    finish_finding(d, node, &pe_fault_info_undecided);
}

/* The words of the first candidate, which fits. */
static void put_explained(struct pe_diagnosis *d, const struct pe_candidate *c, struct pe_node *list)
{
    bool is_given = d->belief.is_given;
    if (!is_given)
        put_plain(d, list, &pe_fault_info_identified);
    for (unsigned i = 0; is_given && i < c->kept.h.n; i++)
        put_fault(d, c, i, list);
    bool names_angles = c->all.verdict == PE_ROUNDING && c->all.is_beyond;
    put_angles(d, c, list);
    put_narrow(d, c, list);
    if (is_given && c->kept.h.n == 0 && !names_angles)
        put_plain(d, list, &pe_fault_info_as_believed);
}

void pe_answer_findings(struct pe_diagnosis *d, const struct pe_answer *a, struct pe_node *root)
{
    struct pe_node *list = pe_put_list(root, "findings");
    if (a->n > 0 && pe_fits(a->candidates[0].all.verdict))
        put_explained(d, &a->candidates[0], list);
    else
        put_unexplained(d, a, list);
    put_undecided(d, a, list);
}
