/* A configuration in the words of other tools. A target states it in its members, these are read back as the tool reads
 * them, and both configurations are planned: what differs is lost.
 *
 * Two rotations are the same if every frequency, the factor on cos and sin, the rotated channels and the axes are. Up
 * to 2^-22 a difference is rounding (what is stored as f32); else the loss is named by the fields of the two
 * configurations that differ. A rule that depends on the sequence's length is compared at the model's length, and
 * around the original one. */
#include "core/dialects/dialects.h"
#include "core/models/targets/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOSSES_MAX = 24, NEEDS_MAX = 8, PROBES_MAX = 3 };

/* ---- The request ---- */

struct own_fields {
    int64_t length;
    const struct pe_value *to, *architecture;
};

static const struct pe_param rows[] = {
    PE_P_VALUE(own_fields, to, "targets", "name of a tool, a list of names, or all, the default; see dialects",
               .group = PE_G_ANSWER),
    PE_P_VALUE(own_fields, architecture, "architecture",
               "of the target gguf; default that of the file or the model_type, else one that fits the positions",
               .group = PE_G_ANSWER),
    PE_P_INT(own_fields, length, PE_UNSET, 1, 0x1p31, "length",
             "positions over which consequences are measured; default the model's length", .group = PE_G_SEQUENCE),
    PE_P_END,
};

const struct pe_param *pe_translate_params(void) { return rows; }

/* ---- A translation ---- */

struct loss {
    const char *what;
    struct pe_value wanted, gets;
    const char *layer_type; /* NULL: of one kind only */
    const char *pattern, *a, *b;
};

/* One entry of the answer: a target, and one kind or all. */
struct entry {
    struct pe_explain *ex;
    const struct pe_target *target;
    const struct pe_dialect_kind *const *kinds;
    size_t n_kinds;
    const char *architecture;
    bool is_assumed;

    const char *layout;    /* of the tool */
    struct pe_value value; /* PE_NULL: nothing was said */
    struct pe_field needs[NEEDS_MAX];
    size_t n_needs;
    struct loss losses[LOSSES_MAX];
    size_t n_losses;
    struct pe_distance distance;
    bool has_distance;
    bool has_other_layers; /* of a file: its architecture has another pattern */
    bool is_refused;       /* what was said cannot be read back */
};

static void lose(struct entry *e, struct loss loss, const struct pe_dialect_kind *kind)
{
    loss.layer_type = e->n_kinds > 1 ? kind->layer_type : NULL;
    if (e->n_losses < LOSSES_MAX)
        e->losses[e->n_losses++] = loss;
}

/* ---- Values that outlive the plan they are of ---- */

static struct pe_value keep(struct pe_values *values, struct pe_value v);

static struct pe_value keep_array(struct pe_values *values, struct pe_value v)
{
    struct pe_reals list = {v.array, v.array.rank == 1 ? v.array.shape[0] : 0};
    double *numbers = pe_values_room(values, (list.n + 1) * sizeof *numbers);
    for (uint64_t i = 0; numbers && i < list.n; i++)
        numbers[i] = pe_real_at(&list, i);
    v.array = (struct pe_tensor){.dtype = PE_F64, .rank = 1, .shape = {numbers ? list.n : 0}, .data = numbers};
    return v;
}

static struct pe_value keep_object(struct pe_values *values, struct pe_value v)
{
    struct pe_field *fields = pe_values_room(values, (v.object.n + 1) * sizeof *fields);
    for (size_t i = 0; fields && i < v.object.n; i++)
        fields[i] = (struct pe_field){v.object.fields[i].name, keep(values, v.object.fields[i].value)};
    v.object.fields = fields;
    v.object.n = fields ? v.object.n : 0;
    return v;
}

static const char *keep_word(struct pe_values *values, const char *word)
{
    char *copy = pe_values_room(values, strlen(word) + 1);
    return copy ? strcpy(copy, word) : "";
}

static struct pe_value keep(struct pe_values *values, struct pe_value v)
{
    if (v.kind == PE_ARRAY)
        return keep_array(values, v);
    if (v.kind == PE_OBJECT)
        return keep_object(values, v);
    if (v.kind == PE_STRING)
        v.string = keep_word(values, v.string);
    return v;
}

/* ---- Are the rotations the same? ---- */

static bool is_near(double a, double b) { return a == b || fabs(a - b) <= 0x1p-22 * fmax(fabs(a), fabs(b)); }

/* The same channels turn in the same directions, by the same axes. */
static const char *const shape[] = {"head_dim",      "rotary_dim", "rotary_offset", "direction", "channels", "axes_dim",
                                    "mrope_section", "axis_order", "coords",        "ref_grid",  "max_freq", NULL};

/* ggml gives the pairs that the sections of imrope leave to an axis whose coordinate is 0, transformers to time. */
static bool is_still_pair(const struct pe_reading *reading, size_t c)
{
    struct pe_value sections = pe_config_at(reading->config, "mrope_section");
    if (!pe_same(pe_config_word(reading->config, "channels"), "imrope") || sections.kind != PE_ARRAY)
        return false;
    struct pe_reals list = {sections.array, sections.array.shape[0]};
    static const size_t axis_of[] = {0, 1, 2}; /* time, height, width, by c mod 3 */
    return (double)c >= 3 * pe_real_at(&list, axis_of[c % 3]);
}

static bool has_still_pairs(const struct pe_reading *reading)
{
    for (size_t c = 0; c < reading->turn.n; c++)
        if (is_still_pair(reading, c))
            return true;
    return false;
}

/* Two words for the same axes, unless some pairs stand still. */
static bool are_same_channels(const struct pe_reading *a, const struct pe_reading *b)
{
    const char *words = "imrope|mrope_interleaved";
    return pe_is_among(words, pe_config_word(a->config, "channels")) &&
           pe_is_among(words, pe_config_word(b->config, "channels")) && !has_still_pairs(a) && !has_still_pairs(b);
}

static bool is_shape_same(const struct pe_reading *a, const struct pe_reading *b, const char *name)
{
    struct pe_value x = pe_config_at(a->config, name), y = pe_config_at(b->config, name);
    return pe_value_same(&x, &y) || (pe_same(name, "channels") && are_same_channels(a, b));
}

static bool has_shape_of(const struct pe_reading *a, const struct pe_reading *b)
{
    for (size_t i = 0; shape[i]; i++)
        if (!is_shape_same(a, b, shape[i]))
            return false;
    return a->turn.n == b->turn.n;
}

/* As a rotation whose direction, and pairs that stand still, are those of its frequencies. */
static struct pe_turn turn_of(struct entry *e, const struct pe_reading *reading)
{
    struct pe_turn turn = reading->turn;
    double direction = pe_config_number(reading->config, "direction", 1);
    if (direction > 0 && !has_still_pairs(reading))
        return turn;
    double *w = pe_values_room(e->ex->values, (turn.n + 1) * sizeof *w);
    for (size_t c = 0; w && c < turn.n; c++)
        w[c] = is_still_pair(reading, c) ? 0 : direction * turn.w[c];
    turn.w = w ? w : turn.w;
    return turn;
}

enum likeness { SAME, ROUNDED, OTHER };

static enum likeness compare_turns(const struct pe_turn *a, const struct pe_turn *b)
{
    enum likeness found = a->factor == b->factor ? SAME : is_near(a->factor, b->factor) ? ROUNDED : OTHER;
    for (size_t c = 0; c < a->n && found != OTHER; c++)
        if (a->w[c] != b->w[c])
            found = is_near(a->w[c], b->w[c]) ? ROUNDED : OTHER;
    return found;
}

static bool pairs_neighbours(const char *layout) { return pe_is_among("interleaved|interleaved_to_half", layout); }

/* Of layouts that pair halves, or neighbours, the rows of q and k change with the pairing; others are the model's. */
static bool is_layout_lost(const char *ours, const char *theirs)
{
    bool is_usual = pe_same(ours, "half") || pairs_neighbours(ours);
    return !is_usual && !pe_same(ours, theirs);
}

static bool is_permuted(const char *ours, const char *theirs)
{
    return (pe_same(ours, "half") && pairs_neighbours(theirs)) || (pairs_neighbours(ours) && pe_same(theirs, "half"));
}

/* ---- What is lost ---- */

static const char says_value[] = "{tool} computes with {what} {gets} in place of {wanted}.";
static const char says_list[] = "{tool} cannot state {what}.";
static const char says_rule[] = "{tool} cannot state the scaling {a}; it computes {b}.";

static bool is_plain(const struct pe_value *v)
{
    return v->kind == PE_STRING || v->kind == PE_INTEGER || v->kind == PE_REAL || v->kind == PE_BOOLEAN;
}

static void lose_field(struct entry *e, const struct pe_dialect_kind *kind, const char *what, struct pe_value wanted,
                       struct pe_value gets)
{
    bool are_plain = is_plain(&wanted) && is_plain(&gets);
    lose(e,
         (struct loss){.what = what,
                       .wanted = keep(e->ex->values, wanted),
                       .gets = keep(e->ex->values, gets),
                       .pattern = are_plain ? says_value : says_list},
         kind);
}

static double number_of(const struct pe_value *v)
{
    return v->kind == PE_INTEGER ? (double)v->integer : v->kind == PE_REAL ? v->real : (double)NAN;
}

static bool differ(const struct pe_value *a, const struct pe_value *b)
{
    return !pe_value_same(a, b) && !is_near(number_of(a), number_of(b)) && (a->kind != PE_NULL || b->kind != PE_NULL);
}

static void lose_shape(struct entry *e, const struct pe_dialect_kind *kind, const struct pe_reading *ours,
                       const struct pe_reading *theirs)
{
    for (size_t i = 0; shape[i]; i++) {
        struct pe_value a = pe_config_at(ours->config, shape[i]), b = pe_config_at(theirs->config, shape[i]);
        if (!is_shape_same(ours, theirs, shape[i]))
            lose_field(e, kind, shape[i], a, b);
    }
}

static const char *rule_of(const struct pe_reading *reading)
{
    const char *word = pe_config_word(reading->config, "scaling.type");
    return *word ? word : "default";
}

/* Fields of a rule, and what they are if they are not there. */
static const struct {
    const char *name, *path;
    struct pe_value otherwise;
} inside[] = {
    {"factor", "scaling.factor", {.kind = PE_NULL}},
    {"original_max_position_embeddings", "scaling.original_max_position_embeddings", {.kind = PE_NULL}},
    {"max_position_embeddings", "scaling.max_position_embeddings", {.kind = PE_NULL}},
    {"low_freq_factor", "scaling.low_freq_factor", {.kind = PE_NULL}},
    {"high_freq_factor", "scaling.high_freq_factor", {.kind = PE_NULL}},
    {"beta_fast", "scaling.beta_fast", {.kind = PE_REAL, .real = 32}},
    {"beta_slow", "scaling.beta_slow", {.kind = PE_REAL, .real = 1}},
    {"truncate", "scaling.truncate", {.kind = PE_BOOLEAN, .boolean = true}},
    {"extrapolation_factor", "scaling.extrapolation_factor", {.kind = PE_REAL, .real = 1}},
    {"partial_rotary_factor", "scaling.partial_rotary_factor", {.kind = PE_NULL}},
    {"short_factor", "scaling.short_factor", {.kind = PE_NULL}},
    {"long_factor", "scaling.long_factor", {.kind = PE_NULL}},
};

static void lose_inside(struct entry *e, const struct pe_dialect_kind *kind, const struct pe_reading *ours,
                        const struct pe_reading *theirs)
{
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        struct pe_value a = pe_config_at(ours->config, inside[i].path),
                        b = pe_config_at(theirs->config, inside[i].path);
        a = a.kind == PE_NULL ? inside[i].otherwise : a;
        b = b.kind == PE_NULL ? inside[i].otherwise : b;
        if (differ(&a, &b))
            lose_field(e, kind, inside[i].name, a, b);
    }
}

static void lose_rule(struct entry *e, const struct pe_dialect_kind *kind, const struct pe_reading *ours,
                      const struct pe_reading *theirs)
{
    struct pe_value a = pe_config_at(ours->config, "scaling"), b = pe_config_at(theirs->config, "scaling");
    lose(e,
         (struct loss){.what = "scaling",
                       .wanted = keep(e->ex->values, a),
                       .gets = keep(e->ex->values, b),
                       .pattern = says_rule,
                       .a = keep_word(e->ex->values, rule_of(ours)),
                       .b = keep_word(e->ex->values, rule_of(theirs))},
         kind);
}

static struct pe_value word_or(const struct pe_reading *reading, const char *path, const char *otherwise)
{
    const char *word = pe_config_word(reading->config, path);
    return (struct pe_value){.kind = PE_STRING, .string = *word ? word : otherwise};
}

/* Numbers differ by more than rounding: by which fields? Divisors, and frequencies as such, stand for a rule. */
static void lose_numbers(struct entry *e, const struct pe_dialect_kind *kind, const struct pe_reading *ours,
                         const struct pe_reading *theirs, bool is_alike)
{
    static const char *const outside[] = {"base", "inv_freq", "attention_factor"};
    size_t before = e->n_losses;
    bool has_list = pe_config_at(theirs->config, "inv_freq").kind != PE_NULL ||
                    pe_config_at(theirs->config, "scaling.divisors").kind != PE_NULL;
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        struct pe_value a = pe_config_at(ours->config, outside[i]), b = pe_config_at(theirs->config, outside[i]);
        if (differ(&a, &b) && !(has_list && i < 2))
            lose_field(e, kind, outside[i], a, b);
    }
    if (!pe_same(rule_of(ours), rule_of(theirs)) && !has_list)
        lose_rule(e, kind, ours, theirs);
    else if (!has_list)
        lose_inside(e, kind, ours, theirs);
    struct pe_value a = pe_config_at(ours->config, "scaling.divisors"),
                    b = pe_config_at(theirs->config, "scaling.divisors");
    if (e->n_losses == before && a.kind != PE_NULL && differ(&a, &b))
        lose_field(e, kind, "divisors", a, b);
    if (e->n_losses == before && is_alike)
        lose_field(e, kind, "convention", word_or(ours, "scaling.convention", "transformers"),
                   word_or(theirs, "scaling.convention", "transformers"));
}

/* The number that is rounded most. */
static void lose_rounding(struct entry *e, const struct pe_dialect_kind *kind, const struct pe_turn *ours,
                          const struct pe_turn *theirs)
{
    double wanted = ours->factor, gets = theirs->factor, worst = fabs(gets - wanted) / fabs(wanted);
    for (size_t c = 0; c < ours->n; c++) {
        double off = ours->w[c] != 0 ? fabs(theirs->w[c] - ours->w[c]) / fabs(ours->w[c]) : 0;
        if (off > worst) {
            worst = off;
            wanted = ours->w[c];
            gets = theirs->w[c];
        }
    }
    lose(e,
         (struct loss){.what = "rounding",
                       .wanted = {.kind = PE_REAL, .real = wanted},
                       .gets = {.kind = PE_REAL, .real = gets},
                       .pattern = "{tool}: numbers are rounded, a frequency or factor by at most one part in four "
                                  "million."},
         kind);
}

/* A list that is chosen by another length, or one position later. */
static void lose_length(struct entry *e, const struct pe_dialect_kind *kind, const struct pe_reading *ours,
                        const struct pe_reading *theirs)
{
    struct pe_value a = word_or(ours, "scaling.convention", "transformers"),
                    b = word_or(theirs, "scaling.convention", "transformers");
    struct pe_value taken = pe_config_at(theirs->config, "scaling.seq_len");
    if (!pe_same(a.string, b.string) && !pe_same(b.string, "ggml"))
        lose_field(e, kind, "convention", a, b);
    else
        lose(e,
             (struct loss){.what = "seq_len",
                           .wanted = {.kind = PE_NULL},
                           .gets = keep(e->ex->values, taken),
                           .pattern = "{tool} chooses the list by a length of {gets} whatever the sequence; shorter "
                                      "sequences turn otherwise."},
             kind);
}

/* ---- Measuring ---- */

static bool is_same_turn(const struct pe_turn *a, const struct pe_turn *b)
{
    return a->n == b->n && a->factor == b->factor && a->head_dim == b->head_dim && a->offset == b->offset &&
           memcmp(a->w, b->w, a->n * sizeof *a->w) == 0;
}

/* Targets that lose the same turn by the same numbers, whatever their pairing is. */
static const struct pe_distance *find_measured(const struct pe_explain *ex, const struct pe_turn *ours,
                                               const struct pe_turn *theirs, int64_t length)
{
    for (size_t i = 0; i < ex->n_measured; i++)
        if (ex->measured[i].ours == ours && ex->measured[i].distance.length == length &&
            is_same_turn(&ex->measured[i].theirs, theirs))
            return &ex->measured[i].distance;
    return NULL;
}

static enum pe_status measure(struct entry *e, const struct pe_reading *ours, const struct pe_reading *theirs,
                              int64_t length)
{
    struct pe_explain *ex = e->ex;
    struct pe_distance distance;
    struct pe_turn a = turn_of(e, ours), b = turn_of(e, theirs);
    bool has_other_rows = is_permuted(pe_config_word(ours->config, "layout"), pe_config_word(theirs->config, "layout"));
    const struct pe_distance *known = length == ex->length ? find_measured(ex, &ours->turn, &b, length) : NULL;
    if (known)
        distance = *known;
    else if (!pe_turn_distance(&a, &b, has_other_rows, length, &distance))
        return pe_no_memory(ex->err);
    if (!known && length == ex->length && ex->n_measured < PE_DIALECT_MEASURED_MAX)
        ex->measured[ex->n_measured++] = (struct pe_measured){&ours->turn, b, distance};
    if (!e->has_distance || fmax(distance.cos, distance.sin) > fmax(e->distance.cos, e->distance.sin))
        e->distance = distance;
    e->has_distance = true;
    return PE_OK;
}

/* ---- Reading back ---- */

/* What a request writes beside said. */
static void need(struct entry *e, const char *name, struct pe_value value)
{
    if (e->n_needs < NEEDS_MAX)
        e->needs[e->n_needs++] = (struct pe_field){name, value};
}

static void find_needs(struct entry *e, const struct pe_value *config)
{
    const char *carries = e->target->carries;
    double head_dim = pe_config_number(config, "head_dim", 0), rotary = pe_config_number(config, "rotary_dim", 0),
           offset = pe_config_number(config, "rotary_offset", 0);
    bool has_rotary = pe_is_among(carries, "rotary_dim") || (pe_is_among(carries, "share") && offset == 0);
    if (pe_same(pe_config_word(config, "scheme"), "none"))
        return;
    if (!pe_is_among(carries, "head_dim") && !(pe_is_among(carries, "rotary_dim") && rotary == head_dim))
        need(e, "head_dim", pe_config_at(config, "head_dim"));
    if (!has_rotary && rotary != head_dim)
        need(e, "rotary_dim", pe_config_at(config, "rotary_dim"));
    if (!pe_is_among(carries, "rotary_offset") && offset != 0)
        need(e, "rotary_offset", pe_config_at(config, "rotary_offset"));
    if (!pe_is_among(carries, "layout"))
        need(e, "layout", (struct pe_value){.kind = PE_STRING, .string = e->layout});
    for (size_t i = 0; e->target->is_beside_a_model && i < 2; i++) {
        static const char *const names[] = {"channels", "mrope_section"};
        if (pe_config_at(config, names[i]).kind != PE_NULL)
            need(e, names[i], pe_config_at(config, names[i]));
    }
}

/* A file, before a kind of its layers is chosen. */
struct file {
    struct pe_gguf_outline outline;
    int64_t layers[PE_HF_LAYERS_MAX + 1];
};

/* Are its layers of this kind others than the model's? */
static bool has_other_layers(struct file *file, const char *name, const struct pe_dialect_kind *kind)
{
    if (!kind->layers || !pe_hf_layers_known(&file->outline.layers, name))
        return false;
    size_t n = pe_hf_layers_of(&file->outline.layers, name, file->layers);
    return n != kind->n_layers || memcmp(file->layers, kind->layers, n * sizeof *kind->layers) != 0;
}

/* Its name among the kinds of what was said. */
static enum pe_status name_kind(struct entry *e, const struct pe_dialect_kind *kind, char name[PE_HF_KIND_BYTES])
{
    struct pe_failure ignored;
    snprintf(name, PE_HF_KIND_BYTES, "%s", kind->layer_type);
    if (e->target->info.members)
        return PE_OK;
    struct file *file = malloc(sizeof *file);
    if (!file)
        return pe_no_memory(e->ex->err);
    enum pe_status status = pe_gguf_outline(&e->value, &file->outline, &ignored);
    if (!status) {
        snprintf(name, PE_HF_KIND_BYTES, "%s", pe_gguf_kind_name(&file->outline, kind->layer_type));
        e->has_other_layers |= has_other_layers(file, name, kind);
    }
    free(file);
    return status == PE_NO_MEMORY ? pe_no_memory(e->ex->err) : PE_OK;
}

static enum pe_status read_back(struct entry *e, const struct pe_dialect_kind *kind, struct pe_reading *theirs)
{
    const struct pe_field said[] = {{"to", {.kind = PE_STRING, .string = e->target->info.name}}, {"value", e->value}};
    struct pe_field fields[NEEDS_MAX + 2] = {{"said", {.kind = PE_OBJECT, .object = {said, 2}}}};
    char name[PE_HF_KIND_BYTES];
    size_t n = 1;
    for (size_t i = 0; i < e->n_needs; i++)
        fields[n++] = e->needs[i];
    if (name_kind(e, kind, name))
        return e->ex->err->status;
    if (e->target->has_kinds && (e->n_kinds > 1 || !e->target->info.members))
        fields[n++] = (struct pe_field){"layer_type", {.kind = PE_STRING, .string = name}};
    return pe_dialect_read_fields(e->ex, fields, n, theirs);
}

/* Lengths at which the rule may be another one: around the original length. */
static size_t list_probes(const struct pe_explain *ex, const struct pe_value *config, int64_t probes[PROBES_MAX])
{
    const char *rule = pe_config_word(config, "scaling.type");
    double border = pe_same(rule, "longrope")  ? pe_config_number(config, "scaling.original_max_position_embeddings", 0)
                    : pe_same(rule, "dynamic") ? pe_config_number(config, "scaling.max_position_embeddings", 0)
                                               : 0;
    size_t n = 0;
    if (border >= 1 && border < (double)ex->length)
        probes[n++] = (int64_t)border;
    if (border >= 1 && border + 1 < (double)ex->length)
        probes[n++] = (int64_t)border + 1;
    return n;
}

static void compare_softmax(struct entry *e, const struct pe_dialect_kind *kind, const struct pe_reading *ours,
                            const struct pe_reading *theirs)
{
    double a = pe_config_number(ours->config, "scaling.softmax_scale_factor", 1),
           b = pe_config_number(theirs->config, "scaling.softmax_scale_factor", 1);
    if (!is_near(a, b))
        lose_field(e, kind, "softmax_scale_factor", (struct pe_value){.kind = PE_REAL, .real = a},
                   (struct pe_value){.kind = PE_REAL, .real = b});
}

/* At the model's length. */
static enum pe_status compare(struct entry *e, const struct pe_dialect_kind *kind, const struct pe_reading *theirs)
{
    const struct pe_reading *ours = &kind->own;
    size_t before = e->n_losses;
    struct pe_value a = word_or(ours, "scheme", ""), b = word_or(theirs, "scheme", "");
    if (!pe_same(a.string, b.string)) {
        lose_field(e, kind, "scheme", a, b);
        return PE_OK;
    }
    if (!ours->turn.n)
        return PE_OK;
    if (is_layout_lost(pe_config_word(ours->config, "layout"), e->layout))
        lose_field(e, kind, "layout", pe_config_at(ours->config, "layout"),
                   (struct pe_value){.kind = PE_STRING, .string = e->layout});
    bool is_alike = has_shape_of(ours, theirs);
    if (!is_alike)
        lose_shape(e, kind, ours, theirs);
    struct pe_turn turn = turn_of(e, ours), other = turn_of(e, theirs);
    enum likeness likeness = turn.n == other.n ? compare_turns(&turn, &other) : OTHER;
    if (likeness == ROUNDED)
        lose_rounding(e, kind, &turn, &other);
    if (likeness == OTHER && ours->turn.n == theirs->turn.n)
        lose_numbers(e, kind, ours, theirs, is_alike);
    compare_softmax(e, kind, ours, theirs);
    return e->n_losses > before ? measure(e, ours, theirs, e->ex->length) : PE_OK;
}

/* At another length: what has not been lost anyway. */
static enum pe_status probe(struct entry *e, const struct pe_dialect_kind *kind, int64_t length)
{
    struct pe_reading ours, theirs;
    int64_t whole = e->ex->length;
    e->ex->length = length;
    enum pe_status status = pe_dialect_read(e->ex, NULL, kind->layer_type, &ours);
    if (!status)
        status = read_back(e, kind, &theirs);
    e->ex->length = whole;
    if (status)
        return status;
    if (ours.turn.n && ours.turn.n == theirs.turn.n && compare_turns(&ours.turn, &theirs.turn) == OTHER) {
        if (!e->n_losses || pe_same(e->losses[e->n_losses - 1].what, "rounding"))
            lose_length(e, kind, &ours, &theirs);
        status = measure(e, &ours, &theirs, length);
    }
    pe_reading_drop(&ours);
    pe_reading_drop(&theirs);
    return status;
}

static enum pe_status check_kind(struct entry *e, const struct pe_dialect_kind *kind)
{
    struct pe_reading theirs;
    int64_t probes[PROBES_MAX];
    if (read_back(e, kind, &theirs))
        return e->ex->err->status;
    if (!theirs.config) {
        lose(e,
             (struct loss){.what = "scheme",
                           .wanted = word_or(&kind->own, "scheme", ""),
                           .gets = {.kind = PE_NULL},
                           .pattern = "{tool} cannot state these positions: {a}",
                           .a = keep_word(e->ex->values, theirs.refused)},
             kind);
        e->is_refused = true;
        return PE_OK;
    }
    enum pe_status status = compare(e, kind, &theirs);
    pe_reading_drop(&theirs);
    size_t n = list_probes(e->ex, kind->own.config, probes);
    for (size_t i = 0; !status && i < n; i++)
        status = probe(e, kind, probes[i]);
    return status;
}

/* ---- Saying ---- */

/* Every so many layers one has no positions: 0 if that is not the rule, or not known. */
static int64_t still_period(const struct pe_explain *ex)
{
    const struct pe_dialect_kind *still = NULL;
    size_t n = 0, n_still = 0;
    for (size_t k = 0; k < ex->n_text; k++) {
        bool is_still = pe_same(pe_config_word(ex->kinds[k].own.config, "scheme"), "none");
        n += ex->kinds[k].n_layers;
        n_still += is_still;
        still = is_still ? &ex->kinds[k] : still;
    }
    if (n_still != 1 || !still->n_layers)
        return 0;
    int64_t period = still->layers[0] + 1;
    for (size_t i = 0; i < still->n_layers; i++)
        if (still->layers[i] != (int64_t)(i + 1) * period - 1)
            return 0;
    return period > 1 && still->n_layers == n / (size_t)period ? period : 0;
}

/* A sliding kind beside another one that turns by another base. */
static bool is_local(const struct pe_explain *ex, const struct pe_dialect_kind *kind)
{
    double base = pe_config_number(kind->own.config, "base", 0);
    for (size_t k = 0; pe_gguf_slides(kind->layer_type) && k < ex->n_text; k++)
        if (ex->kinds[k].own.turn.n && !pe_gguf_slides(ex->kinds[k].layer_type) &&
            pe_config_number(ex->kinds[k].own.config, "base", 0) != base)
            return true;
    return false;
}

static double window_of(const struct pe_explain *ex)
{
    const struct pe_field *window = ex->hf ? pe_hf_find(&ex->language.place, "sliding_window") : NULL;
    return window && window->value.kind == PE_INTEGER ? (double)window->value.integer : 0;
}

static bool can_be_said(const struct entry *e, const struct pe_dialect_kind *kind)
{
    const char *scheme = pe_config_word(kind->own.config, "scheme");
    return pe_same(scheme, "rope") || (e->target->says_none && pe_same(scheme, "none")) ||
           (!e->target->info.members && e->n_kinds > 1);
}

static enum pe_status say(struct entry *e)
{
    const struct pe_explain *ex = e->ex;
    struct pe_stated_kind *stated = pe_values_room(ex->values, PE_DIALECT_KINDS_MAX * sizeof *stated);
    if (!stated)
        return pe_no_memory(ex->err);
    bool are_all = !e->target->info.members;
    size_t n = are_all ? ex->n_text : e->n_kinds, first = 0;
    for (size_t k = 0; k < n; k++)
        stated[k] = are_all ? pe_dialect_state(&ex->kinds[k], &ex->kinds[k].own)
                            : pe_dialect_state(e->kinds[k], &e->kinds[k]->own);
    while (first + 1 < n && !stated[first].n)
        first++;
    struct pe_saying s = {.target = e->target,
                          .kind = stated[are_all ? first : 0],
                          .length = ex->is_length_assumed ? 0 : ex->length,
                          .is_local = is_local(ex, e->kinds[0]),
                          .still_period = still_period(ex),
                          .kinds = stated,
                          .n_kinds = n,
                          .window = window_of(ex),
                          .architecture = e->architecture,
                          .values = ex->values};
    pe_saying_open(&s);
    e->target->say(&s);
    if (s.failed)
        return pe_no_memory(ex->err);
    e->layout = s.layout;
    if (s.value.n)
        e->value = (struct pe_value){.kind = PE_OBJECT, .object = {s.value.fields, s.value.n}};
    find_needs(e, s.config);
    return PE_OK;
}

static enum pe_status fill_entry(struct entry *e)
{
    const struct pe_dialect_kind *first = e->kinds[0];
    e->value = (struct pe_value){.kind = PE_NULL};
    e->layout = pe_config_word(first->own.config, "layout");
    if (can_be_said(e, first) && say(e))
        return e->ex->err->status;
    if (e->value.kind == PE_NULL) {
        lose(e,
             (struct loss){.what = "scheme",
                           .wanted = word_or(&first->own, "scheme", ""),
                           .gets = {.kind = PE_NULL},
                           .pattern = "{tool} states rotary positions only; these are {wanted}."},
             first);
        return PE_OK;
    }
    for (size_t k = 0; k < e->n_kinds; k++)
        if (check_kind(e, e->kinds[k]))
            return e->ex->err->status;
    if (e->has_other_layers && e->n_kinds > 1)
        lose(e,
             (struct loss){.what = "layers",
                           .wanted = {.kind = PE_NULL},
                           .gets = {.kind = PE_NULL},
                           .pattern = "{tool}: this architecture has other layers of each kind."},
             first);
    if (e->is_refused) {
        e->value = (struct pe_value){.kind = PE_NULL};
        e->has_distance = false;
    }
    return PE_OK;
}

/* ---- The answer ---- */

/* As people write it: 1000000, not 1e+06. */
static void print_value(const struct pe_value *v, char *out, size_t room)
{
    if (v->kind == PE_STRING)
        snprintf(out, room, "%s", v->string);
    else if (v->kind == PE_BOOLEAN)
        snprintf(out, room, "%s", v->boolean ? "true" : "false");
    else
        snprintf(out, room, "%.10g", number_of(v));
}

/* A pattern with what it names filled in. */
static void fill(char *out, size_t room, const char *pattern, const char *tool, const struct loss *loss)
{
    enum { PARTS = 6 };
    char wanted[64], gets[64];
    const struct {
        const char *name, *text;
    } parts[PARTS] = {{"{tool}", tool},
                      {"{a}", loss->a ? loss->a : ""},
                      {"{b}", loss->b ? loss->b : ""},
                      {"{what}", loss->what},
                      {"{wanted}", wanted},
                      {"{gets}", gets}};
    size_t n = 0;
    print_value(&loss->wanted, wanted, sizeof wanted);
    print_value(&loss->gets, gets, sizeof gets);
    while (*pattern && n + 1 < room) {
        size_t i = 0;
        while (i < PARTS && strncmp(pattern, parts[i].name, strlen(parts[i].name)) != 0)
            i++;
        if (i < PARTS) {
            int written = snprintf(out + n, room - n, "%s", parts[i].text);
            n = n + (size_t)written < room ? n + (size_t)written : room - 1;
            pattern += strlen(parts[i].name);
        } else {
            out[n++] = *pattern++;
        }
    }
    out[n] = '\0';
}

static void put_loss(const struct entry *e, struct pe_node *list, const struct loss *loss)
{
    struct pe_node *node = pe_put_object(list, NULL);
    char patterns[PE_N_LANGS][PE_DETAIL_MAX + 160];
    pe_put_string(node, "what", loss->what);
    pe_put_value(node, "wanted", &loss->wanted);
    pe_put_value(node, "gets", &loss->gets);
    if (loss->layer_type)
        pe_put_string(node, "layer_type", loss->layer_type);
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++)
        fill(patterns[lang], sizeof patterns[lang], pe_text_in(lang, loss->pattern), e->target->label, loss);
    pe_put_details(node, e->ex->request->lang, (const char *const[]){patterns[PE_EN], patterns[PE_ZH]});
}

/* Entries live as long as the answer, which borrows of them. */
static void put_entry(struct entry *e, struct pe_node *list, const char *layer_type)
{
    const struct pe_target *target = e->target;
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_string(node, "to", target->info.name);
    if (layer_type)
        pe_put_string(node, "layer_type", layer_type);
    if (!target->info.members) {
        pe_put_string(node, "architecture", e->architecture);
        pe_put_boolean(node, "architecture_assumed", e->is_assumed);
    }
    pe_put_value(node, "value", &e->value);
    struct pe_node *needs = pe_put_object(node, "needs");
    for (size_t i = 0; e->value.kind != PE_NULL && i < e->n_needs; i++)
        pe_put_value(needs, e->needs[i].name, &e->needs[i].value);
    pe_put_string(node, "rows",
                  is_permuted(pe_config_word(e->kinds[0]->own.config, "layout"), e->layout) ? "permuted"
                                                                                            : "as_published");
    pe_put_boolean(node, "exact", e->n_losses == 0);
    struct pe_node *losses = pe_put_list(node, "loses");
    for (size_t i = 0; i < e->n_losses; i++)
        put_loss(e, losses, &e->losses[i]);
    pe_put_distance(node, "consequence", e->has_distance ? &e->distance : NULL);
    pe_put_string(node, "certainty", target->info.certainty);
    pe_put_string(node, "source", target->info.source);
}

/* ---- Which architecture ---- */

/* One whose graph turns as the configuration does, where nothing names one. */
static const char *assume(const struct pe_explain *ex, const struct pe_value *config)
{
    const char *channels = pe_config_word(config, "channels"), *rule = pe_config_word(config, "scaling.type");
    bool is_half = pe_same(pe_config_word(config, "layout"), "half");
    bool has_betas = pe_config_number(config, "scaling.beta_fast", 32) != 32 ||
                     pe_config_number(config, "scaling.beta_slow", 1) != 1;
    if (pe_same(channels, "mrope"))
        return "qwen2vl";
    if (pe_is_among("mrope_interleaved|imrope", channels))
        return "qwen3vl";
    if (pe_same(rule, "proportional"))
        return "gemma4";
    if (pe_same(rule, "longrope") && is_half)
        return "phi3";
    if (pe_config_number(config, "rotary_offset", 0) > 0)
        return is_half ? "minicpm3" : "deepseek2"; /* the last channels turn */
    if (pe_config_number(config, "rotary_dim", 0) < pe_config_number(config, "head_dim", 0))
        return is_half ? "stablelm" : "chatglm";
    for (size_t k = 0; is_half && k < ex->n_text; k++)
        if (is_local(ex, &ex->kinds[k]))
            return "gemma3"; /* whose sliding layers have a base of their own */
    return pe_same(rule, "yarn") && has_betas ? "mistral3" : "llama";
}

/* A query has a list of one. */
static enum pe_status check_architecture(const struct pe_explain *ex, const struct pe_value **architecture)
{
    char nearest[192];
    const struct pe_value *asked = *architecture;
    if (!asked)
        return PE_OK;
    if (asked->kind == PE_LIST && asked->list.n == 1)
        asked = *architecture = &asked->list.items[0];
    if (asked->kind != PE_STRING)
        return pe_fail(ex->err, "/architecture", "%s is not a string; write a name", "architecture");
    const struct pe_gguf_architecture *row = pe_gguf_architecture_find(asked->string);
    if (row && row->kind != PE_GGUF_ROPE)
        return pe_fail(ex->err, "/architecture", "architecture \"%.64s\" has no rotary positions", asked->string);
    if (row)
        return PE_OK;
    pe_gguf_nearest(asked->string, nearest, sizeof nearest);
    return pe_fail(ex->err, "/architecture", "architecture \"%.64s\" is not known here%s%s", asked->string,
                   *nearest ? pe_text("; nearest: ") : "", nearest);
}

static const char *choose_architecture(const struct pe_explain *ex, const struct pe_value *asked, bool *is_assumed)
{
    const struct pe_reader_type *type =
        ex->hf ? pe_reader_type_find(pe_reader_of_files(), ex->language.model_type) : NULL;
    const char *named = asked ? asked->string : ex->gguf ? ex->outline->architecture : type ? type->architecture : NULL;
    const struct pe_value *config = ex->kinds[0].own.config;
    for (size_t k = 0; k < ex->n_text && !ex->kinds[0].own.turn.n; k++)
        if (ex->kinds[k].own.turn.n) {
            config = ex->kinds[k].own.config;
            break;
        }
    *is_assumed = !named;
    return named ? named : assume(ex, config);
}

/* ---- All of them ---- */

struct job {
    struct pe_explain *ex;
    const struct pe_dialect_kind *kinds[PE_DIALECT_KINDS_MAX]; /* those that differ */
    size_t n_kinds;
    const char *architecture;
    bool is_assumed;
    struct pe_node *list;
    int64_t n_exact, n_entries;
};

static void list_kinds(struct job *job)
{
    const struct pe_explain *ex = job->ex;
    for (size_t k = 0; k < ex->n_text; k++) {
        bool is_new = true;
        for (size_t i = 0; i < job->n_kinds; i++)
            is_new &= !pe_value_same(job->kinds[i]->own.config, ex->kinds[k].own.config);
        if (is_new)
            job->kinds[job->n_kinds++] = &ex->kinds[k];
    }
}

/* One value states all kinds: a file's architecture decides about them, of a config.json each turns the same channels.
 */
static bool are_joined(const struct job *job, const struct pe_target *target)
{
    static const char *const common[] = {"head_dim", "rotary_offset", "layout"};
    if (!target->has_kinds || !target->info.members)
        return target->has_kinds;
    for (size_t k = 0; k < job->n_kinds; k++) {
        const struct pe_value *config = job->kinds[k]->own.config, *first = job->kinds[0]->own.config;
        if (!job->kinds[k]->own.turn.n)
            return false;
        for (size_t i = 0; i < 3; i++) {
            struct pe_value a = pe_config_at(first, common[i]), b = pe_config_at(config, common[i]);
            if (!pe_value_same(&a, &b))
                return false;
        }
    }
    return true;
}

static enum pe_status add_entry(struct job *job, const struct pe_target *target, size_t first, size_t n)
{
    struct entry *e = pe_values_room(job->ex->values, sizeof *e);
    if (!e)
        return pe_no_memory(job->ex->err);
    e->ex = job->ex;
    e->target = target;
    e->kinds = job->kinds + first;
    e->n_kinds = n;
    e->architecture = job->architecture;
    e->is_assumed = job->is_assumed;
    if (fill_entry(e))
        return job->ex->err->status;
    put_entry(e, job->list, n < job->n_kinds ? e->kinds[0]->layer_type : NULL);
    job->n_exact += e->n_losses == 0;
    job->n_entries++;
    return PE_OK;
}

static enum pe_status add_target(struct job *job, const struct pe_target *target)
{
    if (pe_is_cancelled_at(0))
        return pe_fail(job->ex->err, "", "cancelled");
    if (are_joined(job, target))
        return add_entry(job, target, 0, job->n_kinds);
    for (size_t k = 0; k < job->n_kinds; k++)
        if (add_entry(job, target, k, 1))
            return job->ex->err->status;
    return PE_OK;
}

/* The names of `to`; *n = 0: all. */
static enum pe_status check_to(const struct pe_explain *ex, const struct pe_value *to, const struct pe_value **names,
                               size_t *n)
{
    bool is_list = to && to->kind == PE_LIST;
    *names = is_list ? to->list.items : to;
    *n = is_list ? to->list.n : to ? 1 : 0;
    if (is_list && !*n)
        return pe_fail(ex->err, "/to", "to is an empty list; name a target, or all");
    for (size_t i = 0; i < *n; i++) {
        if ((*names)[i].kind != PE_STRING)
            return pe_fail(ex->err, "/to", "to is neither a name nor a list of names");
        if (!pe_same((*names)[i].string, "all") && !pe_target_find((*names)[i].string))
            return pe_target_unknown((*names)[i].string, "/to", ex->err);
    }
    return PE_OK;
}

static enum pe_status add_all(struct job *job)
{
    for (size_t i = 0; pe_targets[i]; i++)
        if (add_target(job, pe_targets[i]))
            return job->ex->err->status;
    return PE_OK;
}

static enum pe_status add_targets(struct job *job, const struct pe_value *names, size_t n)
{
    enum pe_status status = n ? PE_OK : add_all(job);
    for (size_t i = 0; !status && i < n; i++)
        status = pe_same(names[i].string, "all") ? add_all(job) : add_target(job, pe_target_find(names[i].string));
    return status;
}

/* A kind that no plan has cannot be said. */
static enum pe_status check_kinds(struct pe_explain *ex)
{
    for (size_t k = 0; k < ex->n_text; k++)
        if (!ex->kinds[k].own.config)
            return pe_dialect_read_refused(ex, k);
    return PE_OK;
}

static enum pe_status put_answer(struct job *job, const struct pe_value *names, size_t n)
{
    struct pe_explain *ex = job->ex;
    struct pe_node *root = pe_values_root(ex->values);
    pe_put_string(root, "dialect", pe_dialect_name(ex));
    pe_dialect_put_model(ex, root);
    if (job->n_kinds == 1)
        pe_put_value(root, "config", job->kinds[0]->own.config);
    else
        pe_put_null(root, "config");
    pe_dialect_put_layers(ex, root);
    job->list = pe_put_list(root, "targets");
    if (add_targets(job, names, n))
        return ex->err->status;
    pe_put_integer(root, "exact", job->n_exact);
    pe_put_integer(root, "entries", job->n_entries);
    pe_put_detail(root, ex->request->lang, "{exact} of {entries} translations state exactly these positions.");
    ex->answer = pe_values_done(ex->values);
    return ex->answer ? PE_OK : pe_no_memory(ex->err);
}

static enum pe_status translate(struct pe_explain *ex)
{
    struct own_fields own;
    struct job job = {.ex = ex};
    const struct pe_value *names;
    size_t n;
    ex->is_translation = true;
    if (pe_dialect_open(ex, rows, &own) || check_to(ex, own.to, &names, &n) ||
        check_architecture(ex, &own.architecture))
        return ex->err->status;
    ex->length = own.length == PE_UNSET_INT ? 0 : own.length;
    if (pe_dialect_kinds(ex) || check_kinds(ex))
        return ex->err->status;
    list_kinds(&job);
    job.architecture = choose_architecture(ex, own.architecture, &job.is_assumed);
    return put_answer(&job, names, n);
}

enum pe_status pe_translate_new(const struct pe_explain_request *request, struct pe_explain **translation,
                                struct pe_failure *err)
{
    return pe_dialect_new(request, translate, translation, err);
}

/* ---- Members of the answer ---- */

static const struct pe_member loss_members[] = {
    {.name = "what", .types = "string", .summary = "a field of the configuration, or rounding"},
    {.name = "wanted", .summary = "its value; of rounding a frequency or the factor"},
    {.name = "gets", .summary = "what the tool computes with; null: nothing"},
    {.name = "layer_type",
     .types = "string",
     .summary = "of several kinds of layers that are said",
     .is_optional = true},
    {.name = "", .members = pe_detail_members},
    {.name = NULL},
};

static const struct pe_member target_members[] = {
    {.name = "to", .types = "string", .summary = "the target"},
    {.name = "text", .types = "string|null", .summary = "the value as a shell, JSON or Python has it, ready to paste"},
    {.name = "layer_type",
     .types = "string",
     .summary = "the kind of layers, where one value states one kind",
     .is_optional = true},
    {.name = "architecture", .types = "string", .summary = "of gguf", .is_optional = true},
    {.name = "architecture_assumed", .types = "boolean", .summary = "nothing names it", .is_optional = true},
    {.name = "value", .types = "object|null", .summary = "as said takes it; null: the target cannot state it"},
    {.name = "needs", .types = "object", .summary = "fields beside said, which the value does not state"},
    {.name = "rows",
     .types = "string",
     .summary = "permuted: the tool pairs other channels, so rows of q and k change places; as_published"},
    {.name = "exact", .types = "boolean", .summary = "nothing is lost"},
    {.name = "loses", .types = "array", .summary = "what differs", .items = "object", .members = loss_members},
    {.name = "consequence",
     .types = "object|null",
     .summary = "how far cosines and sines are off; null: exact, or not computable",
     .members = pe_distance_members},
    {.name = "certainty", .types = "string", .summary = "how sure the target's row is"},
    {.name = "source", .types = "string", .summary = "where it was read"},
    {.name = NULL},
};

const struct pe_member pe_translate_members[] = {
    {.name = "dialect", .types = "string", .summary = "hf_config, gguf, said, preset or fields"},
    {.name = "model", .types = "object", .summary = "what is translated", .members = pe_dialect_model_members},
    {.name = "config", .types = "object|null", .summary = "with every parameter; null: layers differ"},
    {.name = "layers",
     .types = "array",
     .summary = "kinds of layers, as an explanation has them",
     .items = "object",
     .members = pe_dialect_layer_members},
    {.name = "targets",
     .types = "array",
     .summary = "one for each target, or kind of layers of a target, in the order of to",
     .items = "object",
     .members = target_members},
    {.name = "exact", .types = "integer", .summary = "how many entries lose nothing"},
    {.name = "entries", .types = "integer", .summary = "how many there are"},
    {.name = "", .members = pe_detail_members},
    {.name = NULL},
};
