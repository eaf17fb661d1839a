/* The scalings that hypotheses try. */
#include "core/diagnosis/diagnosis.h"
#include "core/schemes/scalings/scaling.h"

#include <math.h>
#include <stdlib.h>

/* One alternative: fields of the object `scaling`. */
struct scaling {
    bool of_believed_type;
    const struct pe_scaling_rule *rule;
    double factor, length; /* NaN: not given */
    const char *member;    /* not NULL: the believed object with this field changed */
    double value;
    bool is_boolean;
    const struct pe_value *whole; /* of a model, with its base */
    double base;
    const char *preset;
};

struct scalings {
    size_t n, room, n_of[2];
    struct scaling list[];
};

static struct scalings *scalings_of(const struct pe_diagnosis *d) { return d->cached; }

static void add_scaling(struct scalings *s, const struct scaling *one)
{
    if (s->n < s->room) {
        s->list[s->n++] = *one;
        s->n_of[one->of_believed_type]++;
    }
}

/* ---- Types with a factor and a length ---- */

static const double factors[] = {2, 4, 8, 16, 32, 40, 1.5};
static const double lengths[] = {0x1p11, 0x1p12, 0x1p13, 0x1p14, 0x1p15, 0x1p16, 0x1p17, 0x1p18};
enum { N_FACTORS = sizeof factors / sizeof *factors, N_LENGTHS = sizeof lengths / sizeof *lengths };

/* The believed value first, then the others. */
static size_t with_believed(double believed, const double *usual, size_t n, double *out)
{
    size_t m = 0;
    if (isfinite(believed))
        out[m++] = believed;
    for (size_t i = 0; i < n; i++)
        if (usual[i] != believed)
            out[m++] = usual[i];
    return m;
}

static double believed_length(const struct pe_diagnosis *d)
{
    double x = pe_edit_real(d, NULL, "scaling.original_max_position_embeddings", (double)NAN);
    return isfinite(x) ? x : pe_edit_real(d, NULL, "scaling.max_position_embeddings", (double)NAN);
}

/* The field of the length that a rule needs; NULL: none. */
static const char *length_field(const struct pe_scaling_rule *rule)
{
    static const char *const names[] = {"original_max_position_embeddings", "max_position_embeddings"};
    for (size_t i = 0; i < 2; i++)
        if (pe_scaling_needs(rule, names[i]))
            return names[i];
    return NULL;
}

static void add_rule(const struct pe_diagnosis *d, struct scalings *s, const struct pe_scaling_rule *rule)
{
    double f[N_FACTORS + 1], l[N_LENGTHS + 1] = {(double)NAN};
    size_t n_f = with_believed(pe_edit_real(d, NULL, "scaling.factor", (double)NAN), factors, N_FACTORS, f);
    size_t n_l = length_field(rule) ? with_believed(believed_length(d), lengths, N_LENGTHS, l) : 1;
    bool believed = pe_edit_is_word(d, NULL, "scaling.type", rule->name);
    bool is_tried = rule->tried == PE_TRIED || (believed && rule->tried == PE_TRIED_IF_BELIEVED);
    for (size_t i = 0; is_tried && i < n_f; i++)
        for (size_t j = 0; j < n_l; j++)
            add_scaling(s,
                        &(struct scaling){.of_believed_type = believed, .rule = rule, .factor = f[i], .length = l[j]});
}

/* ---- One field of the believed object changed ---- */

static const double shares[][2] = {{0.5, 0}, {1, 1}, {2, 0}, {4, 0}}; /* seq_len: share·M + more */

static void add_copy(struct scalings *s, const char *member, double value, bool is_flag)
{
    add_scaling(s,
                &(struct scaling){.of_believed_type = true, .member = member, .value = value, .is_boolean = is_flag});
}

static void add_trial(const struct pe_diagnosis *d, struct scalings *s, const struct pe_scaling_trial *t)
{
    char path[64] = "scaling.";
    strncat(path, t->name, sizeof path - sizeof "scaling.");
    double believed = t->are_multiples ? pe_edit_real(d, NULL, path, (double)NAN) : 1;
    for (size_t i = 0; i < t->n; i++)
        if (!t->are_multiples || believed * t->values[i] >= 1)
            add_copy(s, t->name, believed * t->values[i], t->is_flag);
}

static void add_variations(const struct pe_diagnosis *d, struct scalings *s)
{
    const struct pe_value *type = pe_edit_value(d, NULL, "scaling.type");
    const struct pe_scaling_rule *rule = type && type->kind == PE_STRING ? pe_scaling_find(type->string) : NULL;
    double m = believed_length(d);
    if (!rule)
        return;
    for (const struct pe_scaling_trial *t = rule->trials; t->name; t++)
        add_trial(d, s, t);
    for (size_t i = 0; pe_scaling_takes(rule, "seq_len") && isfinite(m) && i < 4; i++)
        add_copy(s, "seq_len", shares[i][0] * m + shares[i][1], false);
}

/* ---- Public models ---- */

static const struct pe_value *field(const struct pe_preset_layer *layer, const char *name)
{
    for (size_t i = 0; i < layer->n_fields; i++)
        if (pe_same(layer->fields[i].name, name))
            return &layer->fields[i].value;
    return NULL;
}

static double number(const struct pe_value *v, double fallback)
{
    return !v ? fallback : v->kind == PE_REAL ? v->real : v->kind == PE_INTEGER ? (double)v->integer : fallback;
}

/* Channels that a model's layer rotates. */
static double width_of(const struct pe_preset_layer *layer)
{
    double head_dim = number(field(layer, "head_dim"), 64);
    double share = number(field(layer, "partial_rotary_factor"), 1);
    return number(field(layer, "rotary_dim"), floor(head_dim * share));
}

static void add_layer(const struct pe_diagnosis *d, struct scalings *s, const struct pe_preset *preset,
                      const struct pe_preset_layer *layer)
{
    const struct pe_value *scheme = field(layer, "scheme"), *scaling = field(layer, "scaling");
    bool is_rope = scheme && scheme->kind == PE_STRING && pe_same(scheme->string, "rope");
    if (is_rope && scaling && scaling->kind == PE_OBJECT && width_of(layer) == pe_edit_real(d, NULL, "rotary_dim", -1))
        add_scaling(s, &(struct scaling){
                           .whole = scaling, .base = number(field(layer, "base"), 10000), .preset = preset->name});
}

static void add_presets(const struct pe_diagnosis *d, struct scalings *s)
{
    for (size_t i = 0; i < pe_n_presets(); i++)
        for (size_t j = 0; j < pe_preset_at(i)->n_layers; j++)
            add_layer(d, s, pe_preset_at(i), &pe_preset_at(i)->layers[j]);
}

/* ---- All of them ---- */

enum pe_status pe_scalings_open(struct pe_diagnosis *d, struct pe_failure *err)
{
    enum { ROOM = 768 };
    struct scalings *s = d->cached = calloc(1, sizeof *s + ROOM * sizeof *s->list);
    if (!s)
        return pe_no_memory(err);
    s->room = ROOM;
    if (!pe_edit_value(d, NULL, "rotary_dim"))
        return PE_OK; /* it does not rotate */
    add_presets(d, s);
    for (int i = 0; i < PE_N_SCALINGS; i++)
        add_rule(d, s, pe_scaling_at(i));
    add_variations(d, s);
    return PE_OK;
}

size_t pe_scalings_count(const struct pe_diagnosis *d, bool of_believed_type)
{
    return scalings_of(d) ? scalings_of(d)->n_of[of_believed_type] : 0;
}

static const struct scaling *at(const struct pe_diagnosis *d, bool of_believed_type, size_t i)
{
    const struct scalings *s = scalings_of(d);
    for (size_t j = 0; j < s->n; j++)
        if (s->list[j].of_believed_type == of_believed_type && i-- == 0)
            return &s->list[j];
    return NULL;
}

/* ---- Writing one ---- */

enum { MEMBERS_MAX = 24 };

struct object {
    struct pe_field *fields;
    size_t n;
};

static void set(struct object *o, const char *name, struct pe_value value)
{
    size_t i = 0;
    while (i < o->n && !pe_same(o->fields[i].name, name))
        i++;
    if (i == MEMBERS_MAX)
        return;
    o->n += i == o->n;
    o->fields[i] = (struct pe_field){name, value};
}

static void set_real(struct object *o, const char *name, double x)
{
    set(o, name, (struct pe_value){.kind = PE_REAL, .real = x});
}

/* The believed members, without those that follow from others. */
static void copy(struct object *o, const struct pe_value *believed)
{
    for (size_t i = 0; believed && believed->kind == PE_OBJECT && i < believed->object.n; i++)
        if (!pe_is_among("softmax_scale_factor|list|rope_type", believed->object.fields[i].name))
            set(o, believed->object.fields[i].name, believed->object.fields[i].value);
}

static void write_rule(struct object *o, const struct scaling *s)
{
    const char *length = length_field(s->rule);
    set(o, "type", (struct pe_value){.kind = PE_STRING, .string = s->rule->name});
    set_real(o, "factor", s->factor);
    if (length)
        set_real(o, length, s->length);
    for (const struct pe_scaling_need *need = s->rule->needs; !s->of_believed_type && need->name; need++)
        if (need->usual > 0)
            set_real(o, need->name, need->usual);
}

static void write(const struct pe_diagnosis *d, const struct scaling *s, struct object *o)
{
    if (s->of_believed_type)
        copy(o, pe_edit_value(d, NULL, "scaling"));
    if (s->member && s->is_boolean)
        set(o, s->member, (struct pe_value){.kind = PE_BOOLEAN, .boolean = s->value != 0});
    else if (s->member)
        set_real(o, s->member, s->value);
    else
        write_rule(o, s);
}

void pe_scalings_drop_factor(const struct pe_diagnosis *d, struct pe_edit *edit)
{
    if (!pe_belief_given(d, "attention_factor") && pe_edit_value(d, NULL, "attention_factor"))
        pe_edit_remove(edit, "attention_factor");
}

const struct pe_value *pe_scaling_with(const struct pe_diagnosis *d, struct pe_edit *edit, const char *type,
                                       const struct pe_field *members, size_t n)
{
    struct pe_value *value = pe_edit_room(edit, sizeof *value);
    struct object o = {value ? pe_edit_room(edit, MEMBERS_MAX * sizeof *o.fields) : NULL, 0};
    bool is_believed = !type || pe_edit_is_word(d, edit, "scaling.type", type);
    if (!o.fields)
        return NULL;
    if (is_believed)
        copy(&o, pe_edit_value(d, edit, "scaling"));
    else
        set(&o, "type", (struct pe_value){.kind = PE_STRING, .string = type});
    for (size_t i = 0; i < n; i++)
        set(&o, members[i].name, members[i].value);
    *value = (struct pe_value){.kind = PE_OBJECT, .object = {o.fields, o.n}};
    return value;
}

const struct pe_value *pe_scaling_of_length(const struct pe_diagnosis *d, struct pe_edit *edit, double seq_len)
{
    const struct pe_field length = {"seq_len", {.kind = PE_REAL, .real = seq_len}};
    return pe_scaling_with(d, edit, NULL, &length, 1);
}

static bool is_equal(const struct pe_value *a, const struct pe_value *b)
{
    if (a && b && a->kind == PE_STRING && b->kind == PE_STRING)
        return pe_same(a->string, b->string);
    if (a && b && a->kind == PE_BOOLEAN && b->kind == PE_BOOLEAN)
        return a->boolean == b->boolean;
    return number(a, (double)NAN) == number(b, (double)NAN);
}

/* A model with the believed scaling differs in its base only, which is another fault. */
static bool is_believed(const struct pe_diagnosis *d, const struct pe_value *scaling)
{
    const struct pe_value *given = pe_belief_given(d, "scaling"), *believed = pe_edit_value(d, NULL, "scaling");
    if (!given || given->kind != PE_OBJECT || !believed || believed->kind != PE_OBJECT)
        return false;
    for (size_t i = 0; i < scaling->object.n; i++) {
        const struct pe_field *f = &scaling->object.fields[i];
        if (!is_equal(&f->value, pe_field_find(believed->object.fields, believed->object.n, f->name)))
            return false;
    }
    for (size_t i = 0; i < given->object.n; i++)
        if (!pe_field_find(scaling->object.fields, scaling->object.n, given->object.fields[i].name))
            return false;
    return true;
}

bool pe_scalings_apply(const struct pe_diagnosis *d, bool of_believed_type, size_t i, struct pe_edit *edit)
{
    const struct scaling *s = at(d, of_believed_type, i);
    struct object o = {NULL, 0};
    if (!s || (s->whole && is_believed(d, s->whole)))
        return false;
    if (!s->of_believed_type)
        pe_scalings_drop_factor(d, edit);
    if (s->whole) {
        pe_edit_set(edit, "scaling", *s->whole);
        pe_edit_set_real(edit, "base", s->base);
        edit->presets[0] = s->preset;
        return true;
    }
    o.fields = pe_edit_room(edit, MEMBERS_MAX * sizeof *o.fields);
    if (!o.fields)
        return false;
    write(d, s, &o);
    pe_edit_set(edit, "scaling", (struct pe_value){.kind = PE_OBJECT, .object = {o.fields, o.n}});
    return true;
}
