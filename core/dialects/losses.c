/* What a target loses of one kind of layers: our configuration beside the one that the tool reads back.
 *
 * Two rotations are the same if every frequency, the factor on cos and sin, the rotated channels and the axes are. Up
 * to 2^-22 a difference is rounding (what is stored as f32); else the loss is named by the fields of the two
 * configurations that differ. */
#include "core/dialects/statement.h"

#include <string.h>

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

const char *pe_keep_word(struct pe_values *values, const char *word)
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
        v.string = pe_keep_word(values, v.string);
    return v;
}

struct pe_loss *pe_add_loss(struct pe_statement *e, const char *what, struct pe_value wanted, struct pe_value gets,
                            const char *pattern)
{
    struct pe_loss *loss = &e->losses[e->n_losses < PE_LOSSES_MAX ? e->n_losses++ : PE_LOSSES_MAX - 1];
    *loss = (struct pe_loss){.what = what,
                             .wanted = keep(e->ex->values, wanted),
                             .gets = keep(e->ex->values, gets),
                             .layer_type = e->n_kinds > 1 ? e->kind->layer_type : NULL,
                             .pattern = pattern};
    return loss;
}

/* ---- Are the rotations the same? ---- */

/* The same channels turn in the same directions, by the same axes. */
static const char *const shape[] = {
    "head_dim",     "rotary_dim",    "rotary_offset", "direction", "channels", "axes_dim",
    "channel_axis", "mrope_section", "axis_order",    "coords",    "ref_grid", "crop_end",
    "axis_scale",   "axis_divisor",  "axis_shift",    "max_freq",  NULL};

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
static struct pe_turn turn_of(struct pe_statement *e, const struct pe_reading *reading)
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
    enum likeness found = a->factor == b->factor ? SAME : pe_is_near(a->factor, b->factor) ? ROUNDED : OTHER;
    for (size_t c = 0; c < a->n && found != OTHER; c++)
        if (a->w[c] != b->w[c])
            found = pe_is_near(a->w[c], b->w[c]) ? ROUNDED : OTHER;
    return found;
}

static bool pairs_neighbours(const char *layout) { return pe_is_among("interleaved|interleaved_to_half", layout); }

/* Of layouts that pair halves, or neighbours, the rows of q and k change with the pairing; others are the model's. */
static bool is_layout_lost(const char *ours, const char *theirs)
{
    bool is_usual = pe_same(ours, "half") || pairs_neighbours(ours);
    return !is_usual && !pe_same(ours, theirs);
}

bool pe_is_permuted(const char *ours, const char *theirs)
{
    return (pe_same(ours, "half") && pairs_neighbours(theirs)) || (pairs_neighbours(ours) && pe_same(theirs, "half"));
}

/* ---- What is lost ---- */

static const char text_of_value[] = "{tool} computes with {what} {gets} in place of {wanted}.";
static const char text_of_list[] = "{tool} cannot state {what}.";
static const char text_of_length[] =
    "{tool} chooses the list by a length of {gets} whatever the sequence; shorter sequences turn otherwise.";
static const char text_of_one[] =
    "{tool} has one list, whatever the length of the sequence; on the other side of the original length it is wrong.";
static const char text_of_rule[] = "{tool} cannot state the scaling {a}; it computes {b}.";

static bool is_plain(const struct pe_value *v)
{
    return v->kind == PE_STRING || v->kind == PE_INTEGER || v->kind == PE_REAL || v->kind == PE_BOOLEAN;
}

static void lose_field(struct pe_statement *e, const char *what, struct pe_value wanted, struct pe_value gets)
{
    bool are_plain = is_plain(&wanted) && is_plain(&gets);
    pe_add_loss(e, what, wanted, gets, are_plain ? text_of_value : text_of_list);
}

static bool differ(const struct pe_value *a, const struct pe_value *b)
{
    return !pe_value_same(a, b) && !pe_is_near(pe_value_number(a), pe_value_number(b)) &&
           (a->kind != PE_NULL || b->kind != PE_NULL);
}

static void lose_shape(struct pe_statement *e, const struct pe_sides *sides)
{
    for (size_t i = 0; shape[i]; i++)
        if (!is_shape_same(&sides->ours, &sides->theirs, shape[i]))
            lose_field(e, shape[i], pe_config_at(sides->ours.config, shape[i]),
                       pe_config_at(sides->theirs.config, shape[i]));
}

static const char *rule_of(const struct pe_reading *reading)
{
    const char *word = pe_config_word(reading->config, "scaling.type");
    return *word ? word : "default";
}

struct pe_value pe_word_or(const struct pe_reading *reading, const char *path, const char *otherwise)
{
    const char *word = pe_config_word(reading->config, path);
    return pe_word(*word ? word : otherwise);
}

/* A field of a rule; where it is not there, it is the row's default. */
static void lose_if_apart(struct pe_statement *e, const struct pe_sides *sides, const struct pe_param *row)
{
    struct pe_value scaling = pe_config_at(sides->ours.config, "scaling"),
                    other = pe_config_at(sides->theirs.config, "scaling");
    struct pe_value a = pe_config_at(&scaling, row->name), b = pe_config_at(&other, row->name);
    struct pe_value otherwise = row->type == PE_T_VALUE                           ? pe_flag(row->fallback != 0)
                                : row->type == PE_T_REAL && !isnan(row->fallback) ? pe_real(row->fallback)
                                                                                  : pe_null();
    a = a.kind == PE_NULL ? otherwise : a;
    b = b.kind == PE_NULL ? otherwise : b;
    if (differ(&a, &b))
        lose_field(e, row->name, a, b);
}

/* Those that rules share, and the rule's own but the factor on cos and sin, which is beside it. */
static void lose_inside(struct pe_statement *e, const struct pe_sides *sides)
{
    static const char *const common[] = {"factor", "original_max_position_embeddings", "max_position_embeddings",
                                         "partial_rotary_factor"};
    const struct pe_scaling_rule *rule = pe_scaling_find(rule_of(&sides->ours));
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        lose_if_apart(e, sides, pe_param_find(pe_scaling_params, common[i]));
    for (const struct pe_param *row = rule->fields; row && row->name; row++)
        if (row->type != PE_T_WORD && !pe_is_among(rule->attention, row->name))
            lose_if_apart(e, sides, row);
}

static void lose_rule(struct pe_statement *e, const struct pe_sides *sides)
{
    struct pe_loss *loss = pe_add_loss(e, "scaling", pe_config_at(sides->ours.config, "scaling"),
                                       pe_config_at(sides->theirs.config, "scaling"), text_of_rule);
    loss->a = pe_keep_word(e->ex->values, rule_of(&sides->ours));
    loss->b = pe_keep_word(e->ex->values, rule_of(&sides->theirs));
}

static bool have_one_convention(const struct pe_sides *sides)
{
    return pe_same(pe_word_or(&sides->ours, "scaling.convention", "transformers").string,
                   pe_word_or(&sides->theirs, "scaling.convention", "transformers").string);
}

static bool have_one_rule(const struct pe_sides *sides)
{
    return pe_same(rule_of(&sides->ours), rule_of(&sides->theirs));
}

static bool has_list(const struct pe_reading *reading)
{
    return pe_config_at(reading->config, "inv_freq").kind != PE_NULL ||
           pe_config_at(reading->config, "scaling.divisors").kind != PE_NULL;
}

static void lose_convention(struct pe_statement *e, const struct pe_sides *sides)
{
    lose_field(e, "convention", pe_word_or(&sides->ours, "scaling.convention", "transformers"),
               pe_word_or(&sides->theirs, "scaling.convention", "transformers"));
}

/* Numbers differ by more than rounding: by which fields? Divisors, and frequencies as such, stand for a rule. */
static void lose_numbers(struct pe_statement *e, const struct pe_sides *sides)
{
    static const char *const outside[] = {"base", "inv_freq", "attention_factor"};
    const struct pe_value *ours = sides->ours.config, *theirs = sides->theirs.config;
    size_t before = e->n_losses;
    bool is_listed = has_list(&sides->theirs);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        struct pe_value a = pe_config_at(ours, outside[i]), b = pe_config_at(theirs, outside[i]);
        if (differ(&a, &b) && !(is_listed && i < 2))
            lose_field(e, outside[i], a, b);
    }
    if (!is_listed)
        (have_one_rule(sides) ? lose_inside : lose_rule)(e, sides);
    struct pe_value a = pe_config_at(ours, "scaling.divisors"), b = pe_config_at(theirs, "scaling.divisors");
    if (e->n_losses == before && a.kind != PE_NULL && differ(&a, &b))
        lose_field(e, "divisors", a, b);
    if (e->n_losses == before && has_shape_of(&sides->ours, &sides->theirs))
        lose_convention(e, sides);
}

/* The number that is rounded most. */
static void lose_rounding(struct pe_statement *e, const struct pe_sides *sides)
{
    struct pe_turn ours = turn_of(e, &sides->ours), theirs = turn_of(e, &sides->theirs);
    double wanted = ours.factor, gets = theirs.factor, worst = fabs(gets - wanted) / fabs(wanted);
    for (size_t c = 0; c < ours.n; c++) {
        double off = ours.w[c] != 0 ? fabs(theirs.w[c] - ours.w[c]) / fabs(ours.w[c]) : 0;
        if (off > worst) {
            worst = off;
            wanted = ours.w[c];
            gets = theirs.w[c];
        }
    }
    pe_add_loss(e, "rounding", pe_real(wanted), pe_real(gets),
                "{tool}: numbers are rounded, a frequency or factor by at most one part in four million.");
}

/* At some lengths only, where the answer's length does not show it: a rule that is not stated, a number of it, a list
 * that is chosen by another length or one position later. */
static void lose_length(struct pe_statement *e, const struct pe_sides *sides)
{
    struct pe_value taken = pe_config_at(sides->theirs.config, "scaling.seq_len");
    const char *theirs = pe_config_word(sides->theirs.config, "scaling.convention");
    bool is_known = taken.kind == PE_INTEGER || taken.kind == PE_REAL;
    bool has_rule = !has_list(&sides->theirs); /* else frequencies, in place of any rule */
    size_t before = e->n_losses;
    if (has_rule && !have_one_rule(sides))
        lose_rule(e, sides);
    else if (has_rule && have_one_convention(sides))
        lose_inside(e, sides);
    else if (has_rule && !pe_same(theirs, "ggml"))
        lose_convention(e, sides);
    if (e->n_losses == before)
        pe_add_loss(e, "seq_len", pe_null(), taken, is_known ? text_of_length : text_of_one);
}

/* ---- Measuring ---- */

static enum pe_status measure(struct pe_statement *e, const struct pe_sides *sides)
{
    struct pe_distance distance;
    const struct pe_reading *ours = &sides->ours, *theirs = &sides->theirs;
    struct pe_turn a = turn_of(e, ours), b = turn_of(e, theirs);
    bool has_other_rows =
        pe_is_permuted(pe_config_word(ours->config, "layout"), pe_config_word(theirs->config, "layout"));
    if (pe_dialect_measure(e->ex, &a, &b, has_other_rows, sides->stretch.at, &distance))
        return e->ex->err->status;
    if (!e->has_distance || fmax(distance.cos, distance.sin) > fmax(e->distance.cos, e->distance.sin))
        e->distance = distance;
    e->has_distance = true;
    return PE_OK;
}

static void compare_softmax(struct pe_statement *e, const struct pe_sides *sides)
{
    double a = pe_config_number(sides->ours.config, "scaling.softmax_scale_factor", 1),
           b = pe_config_number(sides->theirs.config, "scaling.softmax_scale_factor", 1);
    if (!pe_is_near(a, b))
        lose_field(e, "softmax_scale_factor", pe_real(a), pe_real(b));
}

static enum likeness compare_sides(struct pe_statement *e, const struct pe_sides *sides)
{
    struct pe_turn turn = turn_of(e, &sides->ours), other = turn_of(e, &sides->theirs);
    enum likeness likeness = turn.n == other.n ? compare_turns(&turn, &other) : OTHER;
    if (likeness == SAME && pe_same(rule_of(&sides->ours), "ntk") && !have_one_rule(sides))
        return ROUNDED; /* the base in its place is rounded to a double: cosines of large angles show it */
    return likeness;
}

/* The side that names what is lost: that of the answer's length, or else the first. NULL: none is so. */
static const struct pe_sides *first_of(const struct pe_sides *sides, const enum likeness *found, size_t n, size_t at,
                                       enum likeness likeness)
{
    size_t i = 0;
    while (i < n && found[i] != likeness)
        i++;
    return i == n ? NULL : &sides[found[at] == likeness ? at : i];
}

/* Numbers, at all lengths. */
static enum pe_status lose_by_length(struct pe_statement *e, const struct pe_sides *sides, const enum likeness *found,
                                     size_t n, size_t at)
{
    const struct pe_sides *rounded = first_of(sides, found, n, at, ROUNDED),
                          *other = first_of(sides, found, n, at, OTHER);
    struct pe_lengths *lengths = pe_values_room(e->ex->values, sizeof *lengths);
    size_t before;
    if (!lengths)
        return pe_no_memory(e->ex->err);
    for (size_t i = 0; i < n; i++)
        pe_lengths_add(lengths, &sides[i].stretch, found[i] == OTHER);
    pe_lengths_done(lengths, &sides[n - 1].stretch);
    if (rounded && other != &sides[at])
        lose_rounding(e, rounded);
    before = e->n_losses;
    if (other && other->ours.turn.n == other->theirs.turn.n)
        (other == &sides[at] ? lose_numbers : lose_length)(e, other);
    for (size_t i = before; i < e->n_losses; i++)
        e->losses[i].lengths = lengths;
    return PE_OK;
}

enum pe_status pe_statement_compare(struct pe_statement *e, const struct pe_sides *sides, size_t n, size_t at)
{
    const struct pe_reading *ours = &sides[at].ours, *theirs = &sides[at].theirs;
    enum likeness found[PE_STRETCHES_MAX];
    size_t before = e->n_losses;
    struct pe_value a = pe_word_or(ours, "scheme", ""), b = pe_word_or(theirs, "scheme", "");
    if (!pe_same(a.string, b.string)) {
        lose_field(e, "scheme", a, b);
        return PE_OK;
    }
    if (!ours->turn.n)
        return PE_OK;
    if (is_layout_lost(pe_config_word(ours->config, "layout"), e->layout))
        lose_field(e, "layout", pe_config_at(ours->config, "layout"), pe_word(e->layout));
    if (!has_shape_of(ours, theirs))
        lose_shape(e, &sides[at]);
    for (size_t i = 0; i < n; i++)
        found[i] = compare_sides(e, &sides[i]);
    if (lose_by_length(e, sides, found, n, at))
        return e->ex->err->status;
    compare_softmax(e, &sides[at]);
    enum pe_status status = e->n_losses > before ? measure(e, &sides[at]) : PE_OK;
    for (size_t i = 0; !status && i < n; i++)
        if (i != at && found[i] != SAME && !(i + 1 < n && sides[i + 1].stretch.grows && found[i + 1] == OTHER))
            status = measure(e, &sides[i]); /* of a rule that grows the longest */
    return status;
}
